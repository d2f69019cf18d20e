//! Stand-in until the directive table is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    SlowlogMaxLen,
}
#[derive(Default)]
pub struct Config;
impl Config {
    pub fn int(&self, _directive: Directive) -> i64 {
        128
    }
    pub fn notify_classes(&self) -> u32 {
        0
    }
}
