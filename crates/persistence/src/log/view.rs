//! A log that is only looked at: nothing is locked, made, moved or cut, unless a repair is asked
//! for.

use super::directory::TEMPORARY_PREFIX;
use super::file::Opened;
use super::manifest::{FileKind, MANIFEST_BYTES_MAX, Manifest};
use super::{LogError, Target};
use crate::disk::Disk;
use std::io::Read;
use std::path::{Path, PathBuf};

const MANIFEST_SUFFIX: &str = ".manifest";

/// The files of a log in their order.
pub struct LogView<'v> {
    disk: &'v dyn Disk,
    dir: PathBuf,
    /// `appendfilename`, if there is a manifest.
    base_name: Option<String>,
    /// The name of each, and whether it is the base.
    files: Vec<(String, bool)>,
}

/// What was found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFound {
    pub name: String,
    pub is_base: bool,
    /// Where its commands begin, behind an RDB file.
    pub start: u64,
    /// Bytes of it, a torn end included.
    pub bytes: u64,
    /// Whether checksums of ours are in it.
    pub has_sums: bool,
    /// Where a torn end begins, and what is wrong with it.
    pub torn: Option<(u64, &'static str)>,
    pub warning: Option<String>,
}

/// The `appendfilename` of a log that has a file of this name.
fn log_of(name: &str) -> Option<&str> {
    let suffixes = [".incr.aof", ".base.aof", ".base.rdb"];
    let numbered = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix))?;
    let (base, number) = numbered.rsplit_once('.')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some(base)
}

impl<'v> LogView<'v> {
    /// The one log in a directory.
    pub fn of_directory(disk: &'v dyn Disk, dir: &Path) -> Result<Self, LogError> {
        let listed = disk.list(dir).map_err(LogError::io("list the log's files"))?;
        let is_manifest =
            |name: &&String| name.ends_with(MANIFEST_SUFFIX) && !name.starts_with(TEMPORARY_PREFIX);
        let mut manifests = listed.iter().filter(is_manifest);
        let (Some(name), None) = (manifests.next(), manifests.next()) else {
            let why = "it is no directory of a log: there is not one manifest in it".to_owned();
            return Err(LogError::Unexplained { why });
        };
        Self::of_manifest(disk, dir, name)
    }

    /// The log of this `appendfilename` in a directory, where there may be others.
    pub fn of_log(disk: &'v dyn Disk, dir: &Path, base_name: &str) -> Result<Self, LogError> {
        Self::of_manifest(disk, dir, &format!("{base_name}{MANIFEST_SUFFIX}"))
    }

    fn of_manifest(disk: &'v dyn Disk, dir: &Path, name: &str) -> Result<Self, LogError> {
        let mut bytes = Vec::new();
        let opened = disk.read(&dir.join(name));
        opened
            .and_then(|file| file.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
            .map_err(LogError::io("read the log's manifest"))?;
        let manifest = Manifest::parse(&bytes)?;
        let files = manifest.base().into_iter().chain(manifest.increments());
        let files = files.map(|file| (file.name.clone(), file.kind == FileKind::Base)).collect();
        let base_name = name.strip_suffix(MANIFEST_SUFFIX).map(str::to_owned);
        Ok(LogView { disk, dir: dir.to_owned(), base_name, files })
    }

    /// One file, whatever wrote it.
    pub fn of_file(disk: &'v dyn Disk, path: &Path) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let dir = path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."));
        let dir = dir.to_owned();
        let base_name = log_of(&name).map(str::to_owned);
        let is_of_log =
            |base: &String| disk.len(&dir.join(format!("{base}{MANIFEST_SUFFIX}"))).is_ok();
        let base_name = base_name.filter(is_of_log);
        LogView { disk, dir, base_name, files: vec![(name, true)] }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(name, _)| self.len_of(name)).sum()
    }

    fn len_of(&self, name: &str) -> u64 {
        self.disk.len(&self.dir.join(name)).unwrap_or(0)
    }

    /// Runs all that the log holds. A torn end of the last file is passed over; elsewhere it is
    /// damage, as for a server.
    pub fn load(&self, target: &mut dyn Target) -> Result<Vec<FileFound>, LogError> {
        let mut found = Vec::new();
        for (index, (name, is_base)) in self.files.iter().enumerate() {
            let is_last = index + 1 == self.files.len();
            let file = self.load_file(name, (*is_base, is_last), target);
            found.push(file.map_err(|error| error.in_file(name))?);
        }
        Ok(found)
    }

    fn load_file(
        &self,
        name: &str,
        (is_base, is_last): (bool, bool),
        target: &mut dyn Target,
    ) -> Result<FileFound, LogError> {
        let opened = Opened::open(self.disk, &self.dir.join(name), target)?;
        let torn = opened.verified.why_cut.map(|why| (opened.verified.end, why));
        if let (Some((at, why)), false) = (torn, is_last) {
            return Err(LogError::damage(at, why));
        }
        opened.replay(target)?;
        Ok(FileFound {
            name: name.to_owned(),
            is_base,
            start: opened.start,
            bytes: self.len_of(name),
            has_sums: opened.has_sums(),
            torn,
            warning: opened.unchecked_warning(name),
        })
    }

    /// Cuts the torn end of a file, and keeps it beside; what was done. Nobody else may use the log
    /// meanwhile.
    pub fn cut_torn_end(&self, found: &FileFound) -> Result<String, LogError> {
        let _lock = match &self.base_name {
            Some(base_name) => {
                let path = self.dir.join(format!("{base_name}.lock"));
                let locked = self.disk.lock(&path);
                let shown = self.dir.display().to_string();
                Some(locked.map_err(|error| match error.kind() {
                    std::io::ErrorKind::WouldBlock => LogError::InUse { path: shown },
                    _ => LogError::io(format!("lock {}", path.display()))(error),
                })?)
            }
            None => None,
        };
        let name = &found.name;
        // It may have changed since it was looked at.
        let opened = Opened::verify(self.disk, &self.dir.join(name), found.start)?;
        match opened.verified.why_cut {
            Some(_) => opened.cut(&self.dir, name).map_err(LogError::io("cut its end")),
            None => Err(LogError::Unexplained { why: format!("the end of {name} is not torn") }),
        }
    }
}
