//! What a wire file can't show: that the first few of many are right, in every form a sorted set
//! has.

use crate::testing::TestServer;
use russet_base::Random;

#[test]
fn the_first_few_begin_the_full_answer() {
    let mut random = Random::from_seed(21);
    for points in [50, 1000] {
        let mut server = TestServer::new();
        for n in 0..points {
            let (x, y) = (random.unit() * 20.0, random.unit() * 20.0 + 30.0);
            server.say(&format!("GEOADD k {x} {y} place:{n}"));
        }
        for _ in 0..20 {
            let (x, y) = (random.unit() * 20.0, random.unit() * 20.0 + 30.0);
            let shape = match random.below(2) {
                0 => format!("FROMLONLAT {x} {y} BYRADIUS {} km", random.below(1500)),
                _ => format!("FROMLONLAT {x} {y} BYBOX {} 700 km", random.below(1500)),
            };
            for order in ["ASC", "DESC"] {
                let all = server.say(&format!("GEOSEARCH k {shape} {order}"));
                let few = server.say(&format!("GEOSEARCH k {shape} {order} COUNT 5"));
                let few = few.trim_end_matches(']');
                assert!(all.starts_with(few), "{few} of {all}");
            }
        }
    }
}

#[test]
fn a_key_that_was_not_announced_is_never_written() {
    let mut server = TestServer::new();
    server.say("GEOADD k 1 1 a");
    for store in ["STORE a STORE b", "STOREDIST STORE STORE b", "STOREDIST a storedist b"] {
        let reply = server.say(&format!("GEORADIUS k 1 1 1 km {store}"));
        assert_eq!(reply, "-ERR syntax error", "{store}");
    }
    assert_eq!(server.say("GEORADIUS k 1 1 1 km STORE a STOREDIST b"), "1");
    assert_eq!(server.say("EXISTS a b"), "1");
}

/// Servers that know no polygons would pass over the call.
#[test]
fn what_lies_in_a_polygon_is_recorded_as_what_it_is() {
    let mut server = TestServer::new();
    server.say("GEOADD k 13.361389 38.115556 palermo 15.087269 37.502669 catania 40 40 far");
    server.check_records(&[
        (
            "GEOSEARCHSTORE to k BYPOLYGON 4 12 37 18 37 18 40 12 40",
            "DEL to | ZADD to 3479099956230698 palermo 3479447370796909 catania",
        ),
        ("GEOSEARCHSTORE to k BYPOLYGON 3 1 1 2 2 3 1", "DEL to"),
        ("GEOSEARCHSTORE to k BYPOLYGON 3 1 1 2 2 3 1", ""),
        ("GEOSEARCHSTORE to k FROMLONLAT 15 37 BYRADIUS 1 m", ""),
    ]);
}
