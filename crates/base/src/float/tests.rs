//! The layout of doubles. Every text here is what a real Valkey 9.1 answers to ZSCORE.

use super::format_f64;

fn text(value: f64) -> String {
    let mut out = Vec::new();
    format_f64(value, &mut out);
    String::from_utf8(out).expect("digits are text")
}

#[test]
fn zero() {
    assert_eq!(text(0.0), "0");
}
