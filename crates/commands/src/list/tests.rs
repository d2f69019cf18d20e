//! Lists as clients see them, without sockets.

mod waiting;

use crate::testing::Desk;

#[test]
fn both_ends_push_and_pop() {
    let mut desk = Desk::new();
    assert_eq!(desk.say("RPUSH k a b c"), "3");
    assert_eq!(desk.say("LPUSH k 1 2"), "5");
    assert_eq!(desk.say("LRANGE k 0 -1"), r#"["2", "1", "a", "b", "c"]"#);
    assert_eq!(desk.say("LPOP k"), r#""2""#);
    assert_eq!(desk.say("RPOP k 2"), r#"["c", "b"]"#);
    assert_eq!(desk.say("LLEN k"), "2");
    assert_eq!(desk.say("LPOP k 0"), "[]");
    assert_eq!(desk.say("LPOP k 9"), r#"["1", "a"]"#);
    assert_eq!(desk.say("LPOP k"), "nil");
    assert_eq!(desk.say("LPOP k 1"), "nil-array");
    assert_eq!(desk.say("DEL k"), "0");
}
