//! Streams against models.
