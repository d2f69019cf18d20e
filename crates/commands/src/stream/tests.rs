//! What the wire files cannot show of streams.
