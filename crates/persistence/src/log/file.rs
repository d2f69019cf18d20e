//! A file of the log on its disk: opened, verified, run, and cut where it is torn.

use super::LogError;
use super::read::{Target, Verified, looks_summed, replay, verify, verify_while_loading};
use super::trusted::{Reporter, Trusted, TrustedPart};
use crate::disk::Disk;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::thread;

/// What RDB files begin with.
const RDB_MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];

/// Whether a file that begins so is an RDB file, or begins with one.
pub fn starts_as_rdb(head: &[u8]) -> bool {
    RDB_MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// A file whose RDB part, if it has one, was loaded, and of whose commands it is known how far
/// they can be trusted.
pub(super) struct Opened<'f> {
    disk: &'f dyn Disk,
    path: PathBuf,
    /// Where the commands begin.
    pub start: u64,
    pub verified: Verified,
}

impl<'f> Opened<'f> {
    pub fn open(
        disk: &'f dyn Disk,
        path: &Path,
        target: &mut dyn Target,
    ) -> Result<Self, LogError> {
        let start = Self::load_rdb(disk, path, target)?;
        Opened::verify(disk, path, start)
    }

    /// Loads the RDB part, if there is one; where the commands begin.
    fn load_rdb(disk: &dyn Disk, path: &Path, target: &mut dyn Target) -> Result<u64, LogError> {
        let fail = || LogError::io("read it");
        let mut source = disk.read(path).map_err(fail())?;
        let mut head = Vec::new();
        let magic_len = RDB_MAGICS[1].len() as u64;
        (&mut source).take(magic_len).read_to_end(&mut head).map_err(fail())?;
        match starts_as_rdb(&head) {
            true => {
                let loaded = target.rdb(&mut head.chain(source));
                loaded.map_err(|(at, why)| LogError::Base { at, why })
            }
            false => Ok(0),
        }
    }

    /// As [`Opened::open`], and runs the commands while another thread verifies those that follow.
    /// What came of running them is told apart: what is wrong with the file comes first.
    pub fn load(
        disk: &'f dyn Disk,
        path: &Path,
        target: &mut dyn Target,
    ) -> Result<(Self, Result<(), LogError>), LogError> {
        let start = Self::load_rdb(disk, path, target)?;
        let read = || disk.read_from(path, start).map_err(LogError::io("read it"));
        let looks_summed = looks_summed(read()?)?;
        let (verified_source, source) = (read()?, read()?);
        let trusted = Trusted::new(start);
        let reporter = Reporter::new(&trusted, start);
        let verify = move || verify_while_loading(verified_source, start, (looks_summed, reporter));
        let (verified, replayed) = thread::scope(|scope| {
            let thread = thread::Builder::new().name("load-verify".into());
            let verifying = thread.spawn_scoped(scope, verify);
            let verifying = verifying.map_err(LogError::io("start a thread that verifies it"))?;
            target.begin_file(trusted.has_sums(start));
            let replayed = replay(TrustedPart::new(source, start, &trusted), start, target);
            let verified =
                verifying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            verified.map(|verified| (verified, replayed))
        })?;
        Ok((Opened { disk, path: path.to_owned(), start, verified }, replayed))
    }

    /// A file whose commands begin at this offset.
    pub fn verify(disk: &'f dyn Disk, path: &Path, start: u64) -> Result<Self, LogError> {
        let commands = disk.read_from(path, start).map_err(LogError::io("read it"))?;
        let verified = verify(commands, start)?;
        Ok(Opened { disk, path: path.to_owned(), start, verified })
    }

    /// Whether commands that are ours are in it.
    pub fn has_sums(&self) -> bool {
        self.verified.checked_end > self.start
    }

    /// What is to be said of commands that no checksum vouches for.
    pub fn unchecked_warning(&self, name: &str) -> Option<String> {
        let bytes = self.verified.end - self.verified.checked_end;
        (self.has_sums() && bytes > 0).then(|| {
            format!(
                "The last {bytes} bytes of {name} have no checksum: another server wrote them, or \
                 they were on their way when the process ended"
            )
        })
    }

    /// Runs the commands that can be trusted.
    pub fn replay(&self, target: &mut dyn Target) -> Result<(), LogError> {
        let source = self.disk.read_from(&self.path, self.start);
        let source = source.map_err(LogError::io("read it"))?;
        target.begin_file(self.has_sums());
        replay(source.take(self.verified.end - self.start), self.start, target)
    }

    /// Cuts the torn end, and keeps it beside. Says what was done.
    pub fn cut(&self, dir: &Path, name: &str) -> io::Result<String> {
        let end = self.verified.end;
        // What was kept before stays.
        let names = (0..).map(|number| match number {
            0 => format!("{name}.torn-at-{end}"),
            number => format!("{name}.torn-at-{end}-{number}"),
        });
        let mut free = names.filter(|kept| self.disk.len(&dir.join(kept)).is_err());
        let kept = free.next().unwrap_or_default();
        let cut = self.copy_end(&dir.join(&kept)).inspect_err(|_| {
            // A part of it helps nobody, and takes room if that is what was missing.
            let _removed = self.disk.remove(&dir.join(&kept));
        })?;
        self.disk.sync_dir(dir)?;
        let original = self.disk.append(&self.path)?;
        original.truncate(end)?;
        original.sync_data()?;
        Ok(format!("The end of {name} was torn: {cut} bytes were cut and kept in {kept}"))
    }

    /// Copies the torn end; how many bytes that is.
    fn copy_end(&self, path: &Path) -> io::Result<u64> {
        let mut copy = self.disk.create(path)?;
        let end = self.verified.end;
        let bytes = io::copy(&mut self.disk.read_from(&self.path, end)?, &mut copy)?;
        copy.sync_data()?;
        Ok(bytes)
    }
}
