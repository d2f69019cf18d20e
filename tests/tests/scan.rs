//! SCAN's guarantee: a key that is there from beginning to end is returned, whatever else comes and
//! goes and however the table grows or shrinks meanwhile. The same for the elements of a
//! collection, in whatever form it is kept when the walk begins and ends.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use russet_tests::client::{Client, REPLY_WAIT, Reply, encode};
use russet_tests::server::{Kind, Server};

const STAYING: usize = 3_000;

fn write_many(client: &mut Client, requests: impl Iterator<Item = [String; 3]>) {
    let mut count = 0;
    let mut bytes = Vec::new();
    for args in requests {
        let args: Vec<Vec<u8>> =
            args.into_iter().filter(|w| !w.is_empty()).map(String::into_bytes).collect();
        bytes.extend(encode(&args));
        count += 1;
    }
    client.send_raw(&bytes).unwrap();
    for _ in 0..count {
        assert!(!client.read(REPLY_WAIT).unwrap().is_error());
    }
}

fn set(prefix: &str, n: usize) -> [String; 3] {
    ["SET".to_owned(), format!("{prefix}:{n}"), "v".to_owned()]
}

fn del(prefix: &str, n: usize) -> [String; 3] {
    ["DEL".to_owned(), format!("{prefix}:{n}"), String::new()]
}

/// Walks the whole keyspace; which of the staying keys came up.
fn walk(client: &mut Client, count: &str) -> HashSet<String> {
    let mut found = HashSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.call(&["SCAN", &cursor, "MATCH", "stay:*", "COUNT", count]).unwrap();
        let Reply::Array(parts) = reply else { panic!("not an array") };
        let [next, Reply::Array(keys)] = parts.as_slice() else { panic!("not a page") };
        let text = |reply: &Reply| String::from_utf8(reply.text().unwrap().to_vec()).unwrap();
        found.extend(keys.iter().map(text));
        cursor = text(next);
        if cursor == "0" {
            return found;
        }
    }
}

/// As the server comes, where one loop may serve both clients, and with four loops.
#[test]
fn keys_that_stay_are_all_returned() {
    for args in [&[][..], &["--threads", "4", "--threads-min", "4"]] {
        walk_beside_a_writer(&Server::start(Kind::Russet, args).unwrap());
    }
}

fn walk_beside_a_writer(server: &Server) {
    let mut client = Client::connect(server.address()).unwrap();
    write_many(&mut client, (0..STAYING).map(|n| set("stay", n)));

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = Client::connect(server.address()).unwrap();
            // Each round grows the table several times over and empties it again.
            while !done.load(Ordering::Relaxed) {
                write_many(&mut other, (0..20_000).map(|n| set("pass", n)));
                write_many(&mut other, (0..20_000).map(|n| del("pass", n)));
            }
        });
        for count in ["1", "10", "1000", "10", "100"] {
            let found = walk(&mut client, count);
            let missing: Vec<usize> =
                (0..STAYING).filter(|n| !found.contains(&format!("stay:{n}"))).collect();
            if !missing.is_empty() {
                done.store(true, Ordering::Relaxed);
            }
            assert!(missing.is_empty(), "COUNT {count}: {} keys missing", missing.len());
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// How the elements of one type are added, removed and walked.
struct Collection {
    scan: &'static str,
    add: fn(&str) -> Vec<String>,
    remove: &'static str,
    /// Items of a page for each element.
    items_per_element: usize,
}

const COLLECTIONS: [Collection; 3] = [
    Collection {
        scan: "SSCAN",
        add: |element| vec!["SADD".into(), "key".into(), element.into()],
        remove: "SREM",
        items_per_element: 1,
    },
    Collection {
        scan: "HSCAN",
        add: |element| vec!["HSET".into(), "key".into(), element.into(), "v".into()],
        remove: "HDEL",
        items_per_element: 2,
    },
    Collection {
        scan: "ZSCAN",
        add: |element| vec!["ZADD".into(), "key".into(), element.len().to_string(), element.into()],
        remove: "ZREM",
        items_per_element: 2,
    },
];

/// Directives that say how large a small form may be.
const FORMS: [&str; 4] = [
    "set-max-listpack-entries",
    "set-max-intset-entries",
    "hash-max-listpack-entries",
    "zset-max-listpack-entries",
];

fn run(client: &mut Client, requests: &[Vec<String>]) {
    let encoded = requests.iter().flat_map(|args| {
        encode(&args.iter().map(|arg| arg.clone().into_bytes()).collect::<Vec<_>>())
    });
    client.send_raw(&encoded.collect::<Vec<u8>>()).unwrap();
    for args in requests {
        let reply = client.read(REPLY_WAIT).unwrap();
        assert!(!reply.is_error(), "{args:?}: {reply:?}");
    }
}

/// Walks a collection, and calls `between` after each page with its number and its length.
fn walk_elements(
    client: &mut Client,
    collection: &Collection,
    count: &str,
    mut between: impl FnMut(&mut Client, usize, usize),
) -> HashSet<String> {
    let text = |reply: &Reply| String::from_utf8(reply.text().unwrap().to_vec()).unwrap();
    let (mut found, mut cursor) = (HashSet::new(), "0".to_owned());
    for page in 0.. {
        let reply = client.call(&[collection.scan, "key", &cursor, "COUNT", count]).unwrap();
        let Reply::Array(parts) = reply else { panic!("not an array") };
        let [next, Reply::Array(items)] = parts.as_slice() else { panic!("not a page") };
        found.extend(items.iter().step_by(collection.items_per_element).map(text));
        cursor = text(next);
        between(client, page, items.len() / collection.items_per_element);
        if cursor == "0" {
            break;
        }
    }
    found
}

/// A name of an element that stays; integers for sets of them.
fn staying(n: usize, is_integer: bool) -> String {
    if is_integer { n.to_string() } else { format!("stay:{n}") }
}

#[test]
fn elements_that_stay_are_returned_whatever_the_collection_becomes() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let cases = [0, 128, 512]
        .into_iter()
        .flat_map(|limit| [1, 7, 127, 128, 129, 512, 513, 2000].map(|len| (limit, len)));
    for (limit, len) in cases {
        for form in FORMS {
            client.call(&["CONFIG", "SET", form, &limit.to_string()]).unwrap();
        }
        for (collection, is_integer) in
            COLLECTIONS.iter().flat_map(|collection| [(collection, false), (collection, true)])
        {
            client.call(&["DEL", "key"]).unwrap();
            let all: Vec<_> = (0..len).map(|n| (collection.add)(&staying(n, is_integer))).collect();
            run(&mut client, &all);
            let found = walk_elements(&mut client, collection, "5", |client, page, _| {
                // Pages alternate between growth, which changes the form, and what undoes it.
                let passing = |n: usize| format!("pass:{}:{n}", page / 2);
                let requests: Vec<Vec<String>> = match page % 2 {
                    0 => (0..300).map(|n| (collection.add)(&passing(n))).collect(),
                    _ => {
                        let args = [collection.remove, "key"].map(str::to_owned).into_iter();
                        vec![args.chain((0..300).map(passing)).collect()]
                    }
                };
                run(client, &requests);
            });
            let missing = (0..len).filter(|n| !found.contains(&staying(*n, is_integer))).count();
            assert_eq!(missing, 0, "{} of {len}, limit {limit}", collection.scan);
        }
    }
}

/// HSCAN and SSCAN showed whole cells of up to 64 elements, and small hashtables at once: a hash of
/// 72 fields gave all of them for COUNT 50, and SSCAN COUNT 1 gave dozens. BullMQ, which shows
/// pages of COUNT, got pages of another size.
#[test]
fn a_page_keeps_to_its_count() {
    let server = Server::start(Kind::Russet, &[]).unwrap();
    let mut client = Client::connect(server.address()).unwrap();
    let long = "x".repeat(100);
    for (collection, len) in
        COLLECTIONS.iter().flat_map(|collection| [20, 72, 150, 3000].map(|len| (collection, len)))
    {
        client.call(&["DEL", "key"]).unwrap();
        // A long element makes a table of it, however few there are.
        let all = (0..len).map(|n| format!("element:{n}")).chain([long.clone()]);
        run(&mut client, &all.map(|element| (collection.add)(&element)).collect::<Vec<_>>());
        for count in [1, 10, 50, 1000] {
            let most = count + (count / 4).max(10);
            let count = count.to_string();
            let found = walk_elements(&mut client, collection, &count, |_, _, shown| {
                assert!(shown <= most, "{} of {len}: {shown} for {count}", collection.scan);
            });
            assert_eq!(found.len(), len + 1, "{} of {len}", collection.scan);
        }
    }
}
