//! What the wire files can't show.

use crate::testing::Desk;

#[test]
fn too_many_samples_are_refused() {
    let mut desk = Desk::new();
    desk.say("SADD k a");
    assert_eq!(desk.say("SRANDMEMBER k -9223372036854775807"), "-ERR value is out of range");
    assert_eq!(desk.say("SRANDMEMBER none -9223372036854775807"), "[]");
}
