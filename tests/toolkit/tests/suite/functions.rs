//! The steps as a function library, for programs in other languages.

use russet::counter::{WindowCounter, Windows};
use russet::key::Family;
use russet::{Kit, Reply, Request};
use std::path::Path;
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    a_function_and_the_kit_share_their_data
    two_versions_serve_side_by_side
}

const WAIT: Duration = Duration::from_secs(30);
const DAY_MS: u64 = 86_400_000;
const FAMILY: Family = Family { purpose: "counter", version: 1 };

fn library_of_another_version() -> String {
    let library = russet::functions();
    library.replace("russet_v1", "russet_v2")
}

/// What a program in another language does: one FCALL, with the keys that the page names.
async fn a_function_and_the_kit_share_their_data(kit: Kit) {
    let windows = Windows::of(Duration::from_millis(DAY_MS)).unwrap();
    let counter = WindowCounter::new(&kit, "n", windows).unwrap();
    assert_eq!(counter.add("a", 2, None).await.unwrap().count, 2);
    let keys = kit.keys(FAMILY, "a").unwrap();
    let (marker, windows) = (keys.marker(&"one".into()), keys.item("windows", "n"));
    let mut own = kit.connection(windows.slot()).await.unwrap();
    let load = Request::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(russet::functions());
    own.call(&load, WAIT).await.unwrap();
    for _ in 0..3 {
        let call = Request::new("FCALL").arg("russet_v1_counter_add").arg(2);
        let call = call.key(&marker).key(&windows).arg(60_000).arg(5).arg(DAY_MS).arg(1);
        let reply = own.call(&call, WAIT).await.unwrap();
        let reply = reply.as_list().unwrap();
        assert_eq!(reply[..2], [Reply::Text(b"OK".to_vec()), Reply::Text(b"count".to_vec())]);
        assert_eq!(reply[2].as_int(), Some(7));
    }
    assert_eq!(counter.read("a", 0).await.unwrap().count, 7);
}

async fn two_versions_serve_side_by_side(kit: Kit) {
    let keys = kit.keys(FAMILY, "b").unwrap();
    let windows = keys.item("windows", "n");
    let mut own = kit.connection(windows.slot()).await.unwrap();
    for library in [russet::functions(), library_of_another_version()] {
        let load = Request::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(library);
        own.call(&load, WAIT).await.unwrap();
    }
    for (function, count) in [("russet_v1_counter_add", 1), ("russet_v2_counter_add", 2)] {
        let call = Request::new("FCALL").arg(function).arg(2).key(&keys.key("request"));
        let call = call.key(&windows).arg(0).arg(1).arg(DAY_MS).arg(1);
        let reply = own.call(&call, WAIT).await.unwrap();
        assert_eq!(reply.as_list().unwrap()[2].as_int(), Some(count), "{function}");
    }
    let bad = Request::new("FCALL").arg("russet_v1_counter_add").arg(2).key(&keys.key("request"));
    let bad = own.call(&bad.key(&windows).arg(0).arg("x").arg(DAY_MS).arg(1), WAIT).await;
    assert_eq!(bad, Err(russet::Error::Invalid("by".into())));
    let remove = Request::new("FUNCTION").arg("DELETE").arg("russet_v2");
    own.call(&remove, WAIT).await.unwrap();
}

/// What is published is what the kit runs.
#[test]
fn the_library_and_its_page_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (file, text) in [
        ("functions/russet.lua", russet::functions()),
        ("docs/functions.md", russet::step::reference()),
    ] {
        let stored = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        assert!(stored == text, "{file} is not current: run `cargo xtask functions`");
    }
}
