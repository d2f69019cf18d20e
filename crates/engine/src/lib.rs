//! The engine.
pub mod types;
