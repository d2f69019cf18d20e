//! What a wire file can't show: the promise of the error rate, through the commands.

use crate::testing::TestServer;

#[test]
fn filters_keep_their_promise_through_the_commands() {
    for reserve in ["BF.RESERVE k 0.02 2000 NONSCALING", "BF.RESERVE k 0.02 200 EXPANSION 2"] {
        let mut server = TestServer::new();
        assert_eq!(server.say(reserve), "+OK");
        for n in 0..2000 {
            server.say(&format!("BF.ADD k item:{n}"));
        }
        for n in 0..2000 {
            assert_eq!(server.say(&format!("BF.EXISTS k item:{n}")), "1");
        }
        let strangers = 20_000;
        let wrong =
            (0..strangers).filter(|n| server.say(&format!("BF.EXISTS k other:{n}")) == "1").count();
        assert!(wrong < strangers / 50, "{wrong} of {strangers} after {reserve}");
    }
}

#[test]
fn a_copy_goes_its_own_way() {
    let mut server = TestServer::new();
    server.say("BF.ADD k a");
    assert_eq!(server.say("COPY k c"), "1");
    server.say("BF.ADD c b");
    assert_eq!(server.say("BF.EXISTS k b"), "0");
    assert_eq!(server.say("BF.EXISTS c a"), "1");
    assert_ne!(server.say("DEBUG DIGEST-VALUE k"), server.say("DEBUG DIGEST-VALUE c"));
}

/// Items before the one that finds the filter full stay, and so the call is recorded though it
/// failed.
#[test]
fn a_filter_that_is_full_records_what_it_took() {
    TestServer::new().check_records(&[
        ("BF.RESERVE f 0.01 2 NONSCALING", "BF.RESERVE f 0.01 2 NONSCALING"),
        ("BF.ADD f a", "BF.ADD f a"),
        ("BF.ADD f a", ""),
        ("BF.MADD f b c d", "BF.MADD f b c d"),
        ("BF.ADD f e", ""),
        ("BF.INSERT g ITEMS a", "BF.INSERT g ITEMS a"),
    ]);
}
