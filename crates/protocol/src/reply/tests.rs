//! Tests of the decoder.
