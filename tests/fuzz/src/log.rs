//! What the append-only log is loaded from: no bytes may panic, or run what a checksum does not
//! vouch for; a file that is loaded is loaded the same again after it was cut where it was torn.

use crate::source::Source;
use russet_base::Args;
use russet_engine::journal::{Journal, Mode};
use russet_engine::record::Records;
use russet_persistence::disk::simulated::SimulatedDisk;
use russet_persistence::disk::{Disk, DiskFile};
use russet_persistence::log::manifest::Manifest;
use russet_persistence::log::{
    Log, LogDirectory, LogEvents, LogNames, LogView, Policy, Refused, Target,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const DIR: &str = "/data/appendonlydir";
const FILE: &str = "appendonly.aof.1.incr.aof";
const MANIFEST: &str = "appendonly.aof.manifest";
const MANIFEST_TEXT: &[u8] = b"file appendonly.aof.1.incr.aof seq 1 type i\n";

/// Pieces that logs are made of, right and wrong.
const PIECES: &[&[u8]] = &[
    b"*1\r\n$5\r\nMULTI\r\n",
    b"*1\r\n$4\r\nEXEC\r\n",
    b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
    b"#TS:1700000000\r\n",
    b"#RUSSET:SUM 0000000000000000 0 0 00000000\r\n",
    b"#RUSSET:ONCE 2a310d0a\r\n",
    b"#RUSSET:ONCE+ 2a\r\n",
    b"#RUSSET:ONCE ",
    b"REDIS0010\xff\0\0\0\0\0\0\0\0",
    b"*1\r\n$536870912\r\n",
    b"*1048576\r\n",
    b"$-1\r\n",
    b"\r\n",
];

/// What was run: a line for each command, and one for each edge of a unit.
#[derive(Default)]
struct Ran(Vec<Vec<u8>>);

impl Target for Ran {
    fn command(&mut self, _at: u64, args: Args<'_>) -> Result<(), Refused> {
        assert!(!args.is_empty(), "a command has a name");
        self.0.push(args.iter().collect::<Vec<_>>().concat());
        Ok(())
    }

    fn edge_of_unit(&mut self, is_begin: bool) {
        self.0.push(if is_begin { b"(".to_vec() } else { b")".to_vec() });
    }

    fn rdb(&mut self, source: &mut dyn Read) -> Result<u64, Refused> {
        // The head, an operation that ends it, and the sum.
        let mut bytes = Vec::new();
        let read = source.take(18).read_to_end(&mut bytes);
        match (read, bytes.get(9)) {
            (Ok(18), Some(0xff)) => Ok(18),
            _ => Err((bytes.len() as u64, "no RDB file".to_owned())),
        }
    }
}

fn disk_with(file: &[u8]) -> Arc<SimulatedDisk> {
    let disk = SimulatedDisk::new();
    let dir = Path::new(DIR);
    disk.create_dir(dir).expect("a disk that works");
    for (name, bytes) in [(FILE, file), (MANIFEST, MANIFEST_TEXT)] {
        let mut made: Box<dyn DiskFile> = disk.create(&dir.join(name)).expect("a disk that works");
        made.write_all(bytes).expect("a disk that works");
    }
    Arc::new(disk)
}

fn names() -> LogNames {
    let (dir, file) = ("appendonlydir".to_owned(), "appendonly.aof".to_owned());
    LogNames { root: PathBuf::from("/data"), dir, file }
}

struct Unheard;

impl LogEvents for Unheard {
    fn warn(&self, _line: &str) {}
}

/// A file as it is really written: several blocks, transactions and a request that ran once.
fn example() -> Vec<u8> {
    static EXAMPLE: OnceLock<Vec<u8>> = OnceLock::new();
    EXAMPLE.get_or_init(write_example).clone()
}

fn write_example() -> Vec<u8> {
    const WORKS: &str = "nothing fails on this disk";
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new("/data")).expect(WORKS);
    let directory = LogDirectory::open(Arc::new(disk.clone()), names()).expect(WORKS);
    let journal = Arc::new(Journal::new(Arc::default()));
    journal.set_mode(Mode::Strict);
    let log = Log::start(directory, journal.clone(), Policy::Always, Arc::new(Unheard));
    let log = log.expect(WORKS);
    for number in 0..8 {
        let mut records = Records::recording();
        let text = number.to_string();
        records.push(number % 2, ["SET", "k", &text]);
        if number % 3 == 0 {
            records.push(0, ["RPUSH", "l", "a\r\n#RUSSET:SUM 0 0 0\r\n", &text]);
            records.push(0, ["ONCE", "id", "PXAT", "1", "ff", "reply"]);
        }
        records.end_unit();
        let offset = journal.append(records.encoded_mut());
        // One block each.
        while journal.durable() < offset {
            std::thread::yield_now();
        }
    }
    drop(log);
    let mut bytes = Vec::new();
    let mut file = disk.read(&Path::new(DIR).join(FILE)).expect(WORKS);
    file.read_to_end(&mut bytes).expect(WORKS);
    bytes
}

fn load(disk: Arc<SimulatedDisk>, may_cut: bool) -> Option<Vec<Vec<u8>>> {
    let directory = LogDirectory::open(disk, names()).ok()?;
    let mut ran = Ran::default();
    directory.load(&mut ran, may_cut).ok()?;
    Some(ran.0)
}

/// A file of ours with some of its bytes changed, or made of pieces.
pub fn check_file(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut file = match source.one_in(2) {
        true => example(),
        false => Vec::new(),
    };
    let whole = (!file.is_empty()).then(|| file.clone());
    for _ in 0..source.below(12) {
        let at = source.below(file.len() + 1);
        match source.below(6) {
            0 => file.truncate(at),
            1 => {
                let end = (at + source.below(64)).min(file.len());
                file.drain(at..end);
            }
            2 if at < file.len() => file[at] ^= 1 << source.below(8),
            3 => {
                let inserted = source.take(16).to_vec();
                file.splice(at..at, inserted);
            }
            4 => file.extend_from_slice(source.pick(PIECES)),
            _ => {
                let piece = source.pick(PIECES);
                file.splice(at..at, piece.iter().copied());
            }
        }
    }
    check_load(&file, whole.as_deref());
}

fn check_load(file: &[u8], whole: Option<&[u8]>) {
    let disk = disk_with(file);
    let mut viewed = Ran::default();
    let view = LogView::of_directory(&*disk, Path::new(DIR)).expect("the manifest is right");
    let seen = view.load(&mut viewed);
    let strict = load(disk_with(file), false);
    let loaded = load(disk.clone(), true);
    assert_eq!(seen.is_ok(), loaded.is_some(), "looking at it and loading it agree");
    let Some(loaded) = loaded else { return };
    assert_eq!(loaded, viewed.0, "looking at it runs the same");
    let is_torn = seen.is_ok_and(|files| files.iter().any(|file| file.torn.is_some()));
    assert_eq!(strict.is_none(), is_torn, "without leave to cut only a torn end is refused");
    assert_eq!(load(disk, false), Some(loaded.clone()), "what was cut is whole");
    // Of our own file a beginning is loaded, and what was put behind it.
    if let Some(whole) = whole.filter(|whole| whole.starts_with(file)) {
        let all = load(disk_with(whole), false).expect("the example is good");
        assert!(all.starts_with(&loaded), "a beginning of what was written");
    }
}

/// A manifest: any bytes, or a right one with some of them changed.
pub fn check_manifest(bytes: &[u8]) {
    let mut source = Source::new(bytes);
    let mut text = match source.below(3) {
        0 => source.take(400).to_vec(),
        1 => b"file \"a b\" seq 1 type b\nfile x.incr seq 2 type i startoffset 9\n".to_vec(),
        _ => {
            let right = Manifest::parse(MANIFEST_TEXT).expect("it is right");
            right.to_text().into_bytes()
        }
    };
    for _ in 0..source.below(4) {
        let at = source.below(text.len() + 1);
        match source.below(3) {
            0 => text.truncate(at),
            1 if at < text.len() => text[at] = source.byte(),
            _ => text.insert(at, source.byte()),
        }
    }
    let Ok(parsed) = Manifest::parse(&text) else { return };
    let again = Manifest::parse(parsed.to_text().as_bytes());
    assert_eq!(again, Ok(parsed.clone()), "what is written is read");
    for file in &parsed.files {
        assert!(!file.name.contains('/'), "a file of another directory: {}", file.name);
    }
}
