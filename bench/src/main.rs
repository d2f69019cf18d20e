//! Measures Russet next to a peer and a floor.
fn main() {}
