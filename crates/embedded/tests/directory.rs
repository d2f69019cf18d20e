//! An engine with a directory: what it held is there again.

use russet_embedded::{Engine, OpenError, Options};
use std::path::PathBuf;

/// A directory of its own, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let name = format!("russet-embedded-{name}-{}", std::process::id());
        Dir(std::env::temp_dir().join(name))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn get(engine: &Engine, key: &str) -> Option<String> {
    engine.client().query(&["GET", key]).unwrap()
}

#[test]
fn data_is_there_again_when_the_directory_is_opened_again() {
    let dir = Dir::new("again");
    let engine = Engine::open(Options::new().directory(&dir.0)).unwrap();
    engine.client().call(&["SET", "k", "v"]).unwrap();
    drop(engine);
    let engine = Engine::open(Options::new().directory(&dir.0)).unwrap();
    assert_eq!(get(&engine, "k").as_deref(), Some("v"));
    // Without save points only SAVE saves; SHUTDOWN NOSAVE never does.
    engine.client().call(&["CONFIG", "SET", "save", ""]).unwrap();
    engine.client().call(&["SET", "k", "w"]).unwrap();
    drop(engine);
    let engine = Engine::open(Options::new().directory(&dir.0)).unwrap();
    assert_eq!(get(&engine, "k").as_deref(), Some("v"));
    engine.client().call(&["SET", "k", "x"]).unwrap();
    let _closed = engine.client().call(&["SHUTDOWN", "NOSAVE"]);
    assert!(engine.is_closed());
    drop(engine);
    let engine = Engine::open(Options::new().directory(&dir.0)).unwrap();
    assert_eq!(get(&engine, "k").as_deref(), Some("v"));
}

#[test]
fn a_broken_file_is_refused_and_left_alone() {
    let dir = Dir::new("broken");
    std::fs::create_dir_all(&dir.0).unwrap();
    let file = dir.0.join("dump.rdb");
    std::fs::write(&file, b"REDIS0010\xff").unwrap();
    let refused = Engine::open(Options::new().directory(&dir.0)).unwrap_err();
    assert!(matches!(refused, OpenError::Data(_)));
    assert!(refused.to_string().contains("ends at byte 10"), "{refused}");
    assert_eq!(std::fs::read(&file).unwrap(), b"REDIS0010\xff");
}

#[test]
fn without_a_directory_nothing_is_written() {
    let engine = Engine::open(Options::new()).unwrap();
    let refused = engine.client().call(&["SAVE"]).unwrap_err();
    assert_eq!(refused.to_string(), "ERR there is no directory to save to");
}
