//! Objects with an index.

use super::{FAMILY, HOUR};
use russet::state::{Indexed, Object, Page, Put};
use russet::{Error, Kit, ManualTime, Options, Request, RequestId};
use russet_toolkit_tests::{Fault, faulty};
use std::time::Duration;

russet_toolkit_tests::on_every_backend! {
    the_old_entry_goes_with_the_change
    an_object_stands_once_in_the_index
    a_version_is_used_once
    a_repeated_put_is_one
    pages_neither_skip_nor_repeat
    objects_have_a_cap
    what_has_run_out_is_not_found
}

async fn ids(objects: &Indexed, value: &str) -> Vec<String> {
    let page = objects.find(value, None, 1000).await.unwrap();
    page.ids.into_iter().map(|id| String::from_utf8(id).unwrap()).collect()
}

/// Pattern 18; S1 §4, S2 §7: the index of the old status is never removed.
async fn the_old_entry_goes_with_the_change(kit: Kit) {
    let objects = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    let stored = objects.put(Object::new("o1", "open").set("name", "x"), None).await.unwrap();
    assert_eq!(stored, Put::Stored { version: 1 });
    let stored = objects.put(Object::new("o1", "done").set("note", "y"), None).await.unwrap();
    assert_eq!(stored, Put::Stored { version: 2 });
    assert!(ids(&objects, "open").await.is_empty());
    assert_eq!(ids(&objects, "done").await, ["o1"]);
    let (version, fields) = objects.load("o1").await.unwrap().unwrap();
    assert_eq!(version, 2);
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), [("note".to_owned(), b"y".to_vec())]);
    assert!(objects.remove("o1").await.unwrap());
    assert!(!objects.remove("o1").await.unwrap());
    assert!(ids(&objects, "done").await.is_empty());
    assert_eq!(objects.load("o1").await.unwrap(), None);
}

async fn an_object_stands_once_in_the_index(kit: Kit) {
    let objects = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    let mut tasks = Vec::new();
    for number in 0..32 {
        let objects = objects.clone();
        tasks.push(tokio::spawn(async move {
            let value = format!("v{}", number % 4);
            let _ = objects.put(Object::new("o1", &value), None).await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut found = 0;
    for number in 0..4 {
        found += ids(&objects, &format!("v{number}")).await.len();
    }
    assert_eq!(found, 1);
    assert_eq!(objects.load("o1").await.unwrap().unwrap().0, 32);
}

async fn a_version_is_used_once(kit: Kit) {
    let objects = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    let new = objects.put(Object::new("o1", "a").at_version(1), None).await.unwrap();
    assert_eq!(new, Put::Stale { version: 0 });
    let _ = objects.put(Object::new("o1", "a"), None).await.unwrap();
    let stored = objects.put(Object::new("o1", "b").at_version(1), None).await.unwrap();
    assert_eq!(stored, Put::Stored { version: 2 });
    let stale = objects.put(Object::new("o1", "c").at_version(1), None).await.unwrap();
    assert_eq!(stale, Put::Stale { version: 2 });
    assert_eq!(ids(&objects, "b").await, ["o1"]);
}

async fn a_repeated_put_is_one(kit: Kit) {
    let (kit, faults) = faulty(&kit);
    let objects = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    let id = RequestId::random();
    faults.set(|number| if number < 2 { Fault::ReplyLost } else { Fault::None });
    for _ in 0..2 {
        let stored = objects.put(Object::new("o1", "a"), Some(&id)).await.unwrap();
        assert_eq!(stored, Put::Stored { version: 1 });
    }
}

async fn pages_neither_skip_nor_repeat(kit: Kit) {
    let objects = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    for number in 0..25 {
        let id = format!("o{number:02}");
        let _ = objects.put(Object::new(&id, "a"), None).await.unwrap();
    }
    // Values that begin alike are others.
    let _ = objects.put(Object::new("x", "a1"), None).await.unwrap();
    let _ = objects.put(Object::new("y", ""), None).await.unwrap();
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let Page { ids, next } = objects.find("a", after.as_deref(), 10).await.unwrap();
        assert!(ids.len() <= 10);
        found.extend(ids);
        if next.is_none() {
            break;
        }
        after = next;
    }
    let wanted: Vec<Vec<u8>> = (0..25).map(|it| format!("o{it:02}").into_bytes()).collect();
    assert_eq!(found, wanted);
    // S2 §11: top(0) returns the whole board.
    assert!(matches!(objects.find("a", None, 0).await, Err(Error::Invalid(_))));
}

async fn objects_have_a_cap(kit: Kit) {
    let objects = Indexed::new(&kit, "acme", HOUR, 2).unwrap();
    let _ = objects.put(Object::new("o1", "a"), None).await.unwrap();
    let _ = objects.put(Object::new("o2", "a"), None).await.unwrap();
    assert_eq!(objects.put(Object::new("o3", "a"), None).await.unwrap(), Put::Full);
    assert_eq!(objects.load("o3").await.unwrap(), None);
    let again = objects.put(Object::new("o1", "b"), None).await.unwrap();
    assert_eq!(again, Put::Stored { version: 2 });
    assert!(matches!(Indexed::new(&kit, "acme", HOUR, 0), Err(Error::Invalid(_))));
    let odd = objects.put(Object::new("o1", "a\0b"), None).await;
    assert!(matches!(odd, Err(Error::Invalid(_))));
}

/// Defect 9: the index keeps the ids of what has run out.
async fn what_has_run_out_is_not_found(kit: Kit) {
    let short = Indexed::new(&kit, "acme", Duration::from_millis(60), 100).unwrap();
    let long = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    // The short one last: a write removes those that have run out by then.
    let _ = long.put(Object::new("o2", "a"), None).await.unwrap();
    let _ = short.put(Object::new("o1", "a"), None).await.unwrap();
    while ids(&short, "a").await != ["o2"] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let swept = long.sweep().await.unwrap();
    assert_eq!((swept.removed, swept.left), (1, 0));
    let index = kit.keys(FAMILY, "acme").unwrap().key("index");
    let count = kit.call(&Request::new("ZCARD").key(&index)).await.unwrap();
    assert_eq!(count.as_int(), Some(1));
}

/// S1 §11: the index's time to live shrinks below that of a live object. S2 §14: an item that was
/// renewed after the look at the index is deleted.
#[tokio::test]
async fn the_index_lives_as_long_as_its_objects() {
    let time = ManualTime::new();
    let kit = Kit::builder().embedded_at(Options::default(), &time).unwrap();
    let long = Indexed::new(&kit, "acme", HOUR, 100).unwrap();
    let short = Indexed::new(&kit, "acme", HOUR / 60, 100).unwrap();
    let _ = long.put(Object::new("o1", "a"), None).await.unwrap();
    let _ = short.put(Object::new("o2", "a"), None).await.unwrap();
    time.advance(HOUR / 2);
    assert_eq!(ids(&long, "a").await, ["o1"]);
    let _ = long.put(Object::new("o1", "a"), None).await.unwrap();
    time.advance(HOUR - Duration::from_secs(1));
    assert_eq!(long.sweep().await.unwrap().removed, 0);
    assert_eq!(ids(&long, "a").await, ["o1"]);
    time.advance(Duration::from_secs(2));
    assert!(ids(&long, "a").await.is_empty());
    for part in ["index", "values", "deadlines"] {
        let key = kit.keys(FAMILY, "acme").unwrap().key(part);
        let exists = kit.call(&Request::new("EXISTS").key(&key)).await.unwrap();
        assert_eq!(exists.as_int(), Some(0), "{part}");
    }
}
