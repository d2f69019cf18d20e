//! What the integration tests share: starting servers, talking RESP, running wire files.
