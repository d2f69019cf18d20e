//! The engine.
pub mod store;
pub mod types;
