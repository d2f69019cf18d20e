//! What the integration tests share: starting servers, talking RESP, running wire files.
//!
//! Nothing here uses the product's own protocol code: a test that decodes a reply with the
//! encoder's twin would not notice when both are wrong.
#![forbid(unsafe_code)]

pub mod client;
pub mod differ;
pub mod lua;
pub mod replay;
pub mod server;
pub mod tidy;
pub mod tls;
pub mod wait;
pub mod wire;
