//! DEBUG RELOAD of a file that can't be loaded.

use super::{dir_of, fill, server_on};
use russet_persistence::disk::Disk;
use russet_persistence::disk::simulated::SimulatedDisk;
use std::io::{Read, Write};

/// All data was given up before the file was looked at, and what could be loaded of it was left in
/// its place.
#[test]
fn a_file_that_can_not_be_loaded_costs_nothing() {
    let disk = SimulatedDisk::new();
    let mut server = server_on(&disk, 1);
    fill(&mut server);
    let library = "#!lua name=lib\nredis.register_function('f', function() return 1 end)";
    server.run(&["FUNCTION", "LOAD", library]);
    server.say("SAVE");
    let path = dir_of(&server).join("dump.rdb");
    let mut file = Vec::new();
    disk.read(&path).unwrap().read_to_end(&mut file).unwrap();
    server.say("SET behind 1");
    server.say("SELECT 2");
    server.say("SET there 1");
    server.say("SELECT 0");
    let digest = server.say("DEBUG DIGEST FULL");
    let mut of_other_version = file.clone();
    of_other_version[..9].copy_from_slice(b"REDIS0099");
    let mut flipped = file.clone();
    flipped[file.len() / 2] ^= 1;
    let bad = [&of_other_version[..], &file[..file.len() - 9], &flipped, b"", b"nonsense"];
    for bytes in bad {
        disk.create(&path).unwrap().write_all(bytes).unwrap();
        let reply = server.say("DEBUG RELOAD NOSAVE");
        assert!(reply.starts_with("-ERR Error trying to load the RDB dump"), "{reply}");
        assert_eq!(server.say("DEBUG DIGEST FULL"), digest, "{reply}");
    }
    disk.remove(&path).unwrap();
    assert!(server.say("DEBUG RELOAD NOSAVE").contains("there is no file"));
    assert_eq!(server.say("DEBUG DIGEST FULL"), digest);
    disk.create(&path).unwrap().write_all(&file).unwrap();
    // A library of the file that is there was replaced without MERGE.
    let reply = server.say("DEBUG RELOAD NOSAVE NOFLUSH");
    assert!(reply.contains("already exists"), "{reply}");
    assert_eq!(server.say("DEBUG DIGEST FULL"), digest);
    server.say("FUNCTION DELETE lib");
    let digest = server.say("DEBUG DIGEST FULL");
    let reply = server.say("DEBUG RELOAD NOSAVE NOFLUSH");
    assert!(reply.contains("a key that is there twice"), "{reply}");
    assert_eq!(server.say("DEBUG DIGEST FULL"), digest);
    // A function of the file that another library has by now.
    server.run(&["FUNCTION", "LOAD", &library.replace("lib", "other")]);
    let reply = server.say("DEBUG RELOAD NOSAVE");
    assert!(reply.contains("already exists"), "{reply}");
    assert_eq!(server.say("DBSIZE"), "52");
    server.say("FUNCTION FLUSH");
    assert_eq!(server.say("DEBUG RELOAD NOSAVE NOFLUSH MERGE"), "+OK");
    assert_eq!(server.say("DBSIZE"), "52");
    assert_eq!(server.say("DEBUG RELOAD NOSAVE"), "+OK");
    assert_eq!(server.say("DBSIZE"), "51");
    assert_eq!(server.say("FCALL f 0"), "1");
}
