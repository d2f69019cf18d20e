//! Records as the log has them: commands in RESP with SELECT where the database changes, MULTI and
//! EXEC around what happened at once.

use super::once;
use russet_base::SharedBytes;
use russet_base::num::write_u64;
use russet_engine::record::{Encoded, EncodedRecord};
use std::ops::Range;

const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";
/// Recorded as a command, logged as an annotation.
const ONCE: &[u8] = b"ONCE";
/// An entry whose producer has named it, and where that is said.
const XADD: &[u8] = b"XADD";
const IDMP: &[u8] = b"IDMP";
const PRODUCER_AT: usize = 2;
/// Longest name of an entry that becomes an annotation; one that is longer stays with the command.
const NOTE_BYTES_MAX: usize = 256 << 10;

/// Bytes of a file. Long arguments are not copied: they are kept with their offset.
#[derive(Debug, Default)]
pub struct Rendered {
    pub bytes: Vec<u8>,
    /// Offsets in `bytes`, in ascending order, and what belongs there.
    pub splices: Vec<(usize, SharedBytes)>,
}

impl Rendered {
    pub fn with_room(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Rendered { bytes, splices: Vec::new() }
    }

    pub fn bytes_total(&self) -> usize {
        self.bytes.len() + self.splices.iter().map(|(_, long)| long.len()).sum::<usize>()
    }
}

/// Turns frames of the journal into bytes of a file.
#[derive(Debug, Default)]
pub struct Renderer {
    /// The database that is selected where the file ends.
    db: usize,
    has_db: bool,
}

impl Renderer {
    /// The database of the command before the next.
    pub fn db(&self) -> usize {
        self.db
    }

    /// A frame: the units of one call or of a batch.
    pub fn frame(&mut self, frame: &Encoded, out: &mut Rendered) {
        let mut run = Run { frame, place: 0..0 };
        let mut unit: Vec<EncodedRecord> = Vec::new();
        for record in frame.iter() {
            if record.destination.is_logged() && unit.is_empty() && record.ends_unit {
                if self.is_selected(record.db) && is_copied(record) {
                    run.add(record.place());
                    continue;
                }
                run.end(out);
                self.record(record, out);
                continue;
            }
            run.end(out);
            if record.destination.is_logged() {
                unit.push(record);
            }
            if record.ends_unit {
                self.unit(&unit, out);
                unit.clear();
            }
        }
        run.end(out);
        self.unit(&unit, out);
    }

    fn unit(&mut self, unit: &[EncodedRecord], out: &mut Rendered) {
        match unit {
            [] => {}
            [record] => self.record(*record, out),
            [first, ..] => {
                // Before MULTI, so that a log which is cut there has selected it.
                self.select(first.db, &mut out.bytes);
                out.bytes.extend_from_slice(MULTI);
                unit.iter().for_each(|record| self.record(*record, out));
                out.bytes.extend_from_slice(EXEC);
            }
        }
    }

    fn record(&mut self, record: EncodedRecord, out: &mut Rendered) {
        self.select(record.db, &mut out.bytes);
        match record.name() {
            ONCE => {
                let mut text = Vec::new();
                record.pieces(|piece| text.extend_from_slice(piece));
                once::write(&mut out.bytes, &text);
            }
            XADD if record.arg(PRODUCER_AT) == Some(IDMP) => named_entry(record, out),
            _ => as_it_is(record, out),
        }
    }

    #[inline]
    fn is_selected(&self, db: usize) -> bool {
        self.db == db && self.has_db
    }

    fn select(&mut self, db: usize, out: &mut Vec<u8>) {
        if !self.is_selected(db) {
            (self.db, self.has_db) = (db, true);
            write_select(db, out);
        }
    }
}

/// Records that follow each other in a frame and stand in the file as they stand there: as a rule
/// all of a batch, which are copied at once.
struct Run<'f> {
    frame: &'f Encoded,
    place: Range<usize>,
}

impl Run<'_> {
    #[inline]
    fn add(&mut self, place: Range<usize>) {
        if self.place.is_empty() {
            self.place.start = place.start;
        }
        self.place.end = place.end;
    }

    #[inline]
    fn end(&mut self, out: &mut Rendered) {
        if !self.place.is_empty() {
            out.bytes.extend_from_slice(self.frame.run(std::mem::take(&mut self.place)));
        }
    }
}

/// Whether nothing is made of a record but a copy of its bytes.
#[inline]
fn is_copied(record: EncodedRecord) -> bool {
    record.whole().is_some() && !matches!(record.name(), ONCE | XADD)
}

/// An entry of a stream with the name that its producer gave it, `XADD key IDMP producer message id
/// field value...`: Redis 7.0 knows the entry, and the name is an annotation, without the fields.
fn named_entry(record: EncodedRecord, out: &mut Rendered) {
    let args = record.args();
    let args: Vec<&[u8]> = args.as_args().iter().collect();
    let [name, key, _, _, _, id, fields @ ..] = args.as_slice() else { return };
    let note = &args[..args.len() - fields.len()];
    if note.iter().map(|arg| arg.len()).sum::<usize>() > NOTE_BYTES_MAX {
        return as_it_is(record, out);
    }
    write_command(&[&[*name, *key, *id], fields].concat(), &mut out.bytes);
    let mut text = Vec::new();
    write_command(note, &mut text);
    once::write(&mut out.bytes, &text);
}

#[inline]
fn as_it_is(record: EncodedRecord, out: &mut Rendered) {
    if let Some(bytes) = record.whole() {
        return out.bytes.extend_from_slice(bytes);
    }
    record.parts(|bytes, long| {
        out.bytes.extend_from_slice(bytes);
        out.splices.extend(long.map(|long| (out.bytes.len(), long.clone())));
    });
}

fn write_command(args: &[&[u8]], out: &mut Vec<u8>) {
    let number = |kind: u8, value: usize, out: &mut Vec<u8>| {
        out.push(kind);
        write_u64(out, value as u64);
        out.extend_from_slice(b"\r\n");
    };
    number(b'*', args.len(), out);
    for arg in args {
        number(b'$', arg.len(), out);
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}

/// `SELECT db`.
pub fn write_select(db: usize, out: &mut Vec<u8>) {
    let mut digits = Vec::with_capacity(4);
    write_u64(&mut digits, db as u64);
    out.extend_from_slice(b"*2\r\n$6\r\nSELECT\r\n$");
    write_u64(out, digits.len() as u64);
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(&digits);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_base::random::Random;
    use russet_engine::record::{Destination, Records};

    fn rendered(args: &[&[u8]]) -> Vec<u8> {
        let mut records = Records::recording();
        records.push(0, args.iter().copied());
        records.end_unit();
        let mut out = Rendered::default();
        Renderer { db: 0, has_db: true }.frame(records.encoded_mut(), &mut out);
        let Rendered { mut bytes, splices } = out;
        for (at, long) in splices.iter().rev() {
            bytes.splice(at..at, long.iter().copied());
        }
        bytes
    }

    fn command(args: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        write_command(args, &mut out);
        out
    }

    #[test]
    fn the_name_of_an_entry_is_an_annotation() {
        let plain: [&[u8]; 5] = [b"XADD", b"IDMP", b"1-1", b"f", b"IDMP"];
        assert_eq!(rendered(&plain), command(&plain));
        let named: [&[u8]; 8] = [b"XADD", b"s", b"IDMP", b"p", b"m", b"1-1", b"f", b"v"];
        let mut expected = command(&[b"XADD", b"s", b"1-1", b"f", b"v"]);
        once::write(&mut expected, &command(&named[..6]));
        assert_eq!(rendered(&named), expected);
        let long = vec![b'm'; NOTE_BYTES_MAX];
        let named: [&[u8]; 8] = [b"XADD", b"s", b"IDMP", b"p", &long, b"1-1", b"f", b"v"];
        assert_eq!(rendered(&named), command(&named), "it has no room in a line");
    }

    /// What is copied many records at once is what comes of one at a time.
    #[test]
    fn a_frame_is_what_its_records_are_one_by_one() {
        let mut random = Random::from_seed(7);
        let names: [&[u8]; 5] = [b"SET", b"HSET", b"XADD", b"ONCE", b"PEXPIREAT"];
        for _ in 0..500 {
            let (mut records, mut renderer) = (Records::recording(), Renderer::default());
            let (mut expected, mut unit) = (Vec::new(), Vec::new());
            for _ in 0..1 + random.index(12) {
                let db = random.index(2);
                let name = names[if random.chance(0.7) { 0 } else { random.index(5) }];
                let args = [name, b"key", &b"0123456789ab"[..random.index(13)]];
                if random.chance(0.2) {
                    records.destination = Destination::ReplicasOnly;
                } else {
                    unit.push((db, args));
                }
                records.push(db, args);
                records.destination = Destination::Everyone;
                if random.chance(0.8) {
                    records.end_unit();
                    write_unit(&mut renderer, &std::mem::take(&mut unit), &mut expected);
                }
            }
            records.end_unit();
            write_unit(&mut renderer, &unit, &mut expected);
            let mut out = Rendered::default();
            Renderer::default().frame(records.encoded_mut(), &mut out);
            let (out, expected) = (out.bytes.escape_ascii(), expected.escape_ascii());
            assert_eq!(out.to_string(), expected.to_string());
        }
    }

    fn write_unit(renderer: &mut Renderer, unit: &[(usize, [&[u8]; 3])], out: &mut Vec<u8>) {
        let is_many = unit.len() > 1;
        for (at, (db, args)) in unit.iter().enumerate() {
            renderer.select(*db, out);
            if is_many && at == 0 {
                out.extend_from_slice(MULTI);
            }
            if args[0] == ONCE {
                once::write(out, &command(args));
            } else {
                write_command(args, out);
            }
        }
        if is_many {
            out.extend_from_slice(EXEC);
        }
    }
}
