//! What the wire files can't show.

use crate::testing::TestServer;

#[test]
fn too_many_samples_are_refused() {
    let mut server = TestServer::new();
    server.say("SADD k a");
    assert_eq!(server.say("SRANDMEMBER k -9223372036854775807"), "-ERR value is out of range");
    assert_eq!(server.say("SRANDMEMBER none -9223372036854775807"), "[]");
}

#[test]
fn members_that_were_drawn_are_recorded_by_name() {
    let mut server = TestServer::new();
    server.say("SADD k a b c d 5");
    let records = server.records_of("SPOP k 2");
    let gone: Vec<&str> = records[0].split(' ').collect();
    assert_eq!((records.len(), gone.len(), gone[0], gone[1]), (1, 4, "SREM", "k"));
    assert_eq!(server.say(&format!("SMISMEMBER k {} {}", gone[2], gone[3])), "[0, 0]");
    assert!(server.records_of("SPOP k")[0].starts_with("SREM k "));
    assert_eq!(server.records_of("SPOP k 9"), ["DEL k"]);
    assert_eq!(server.records_of("SPOP k 9"), [""; 0]);
}
