//! A new base in place of all that came before it. What is written meanwhile goes to a new
//! increment; the old files are the log until the base is complete.

use super::block::Block;
use super::thread::Writer;
use crate::data_file::Form;
use crate::disk::Disk;
use crate::log::LogError;
use crate::log::manifest::LogFile;
use crate::log::render::{Rendered, Renderer};
use russet_engine::record::Encoded;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Instant;

/// What a log is to be replaced by.
pub enum Rewrite {
    /// All data, as a file, and the journal's offset at which it was taken.
    Whole { at: u64, base: Vec<u8>, form: Form },
    /// A snapshot, which has what calls of versions before `cut_version` have appended. All of that
    /// is before the offset, once it is known.
    Cut { joined: Option<u64> },
    /// A snapshot that is not to come.
    GivenUp,
}

/// The version of a cut that is none.
pub(super) const NO_CUT: u64 = u64::MAX;

impl Rewrite {
    /// Where the file is changed.
    pub(super) fn offset(&self) -> Option<u64> {
        match self {
            Rewrite::Whole { at, .. } => Some(*at),
            Rewrite::Cut { joined } => *joined,
            Rewrite::GivenUp => None,
        }
    }
}

/// The file that a new base is to be written to. Who drops it without [`BaseFile::written`] has
/// given up.
pub struct BaseFile {
    pub path: PathBuf,
    /// What it is to hold.
    pub form: Form,
    pub disk: Arc<dyn Disk>,
    result: SyncSender<io::Result<()>>,
}

impl BaseFile {
    /// It is complete and durable, or it can't be written.
    pub fn written(self, result: io::Result<()>) {
        // Nobody waits for a result any more once the writer has ended.
        let _sent = self.result.send(result);
    }
}

/// Where the log goes on behind a new base.
#[derive(Clone, Copy)]
enum Behind {
    /// In the increment of this number, which is part of the log already.
    Increment(u64),
    /// With this block, in a file that is yet to be made: the log can't be written. The blocks
    /// before it are kept until the base is there.
    Block(usize),
}

/// A base that is being written.
pub(super) struct NewBase {
    file: LogFile,
    behind: Behind,
    /// By someone who may wait for a shard that who waits for the log holds.
    is_cut: bool,
    result: Receiver<io::Result<()>>,
}

/// Records of calls that are newer than a cut, while older ones may still come.
pub(super) struct Aside {
    renderer: Renderer,
    records: Rendered,
    /// The number of the first frame, and what is behind all that was gathered with it.
    pub frames: Range<u64>,
    frame_bytes: u64,
    /// When the first came.
    pub at: Instant,
}

impl Aside {
    pub fn beginning(number: u64) -> Self {
        let (renderer, records) = (Renderer::default(), Rendered::default());
        Aside { renderer, records, frames: number..number, frame_bytes: 0, at: Instant::now() }
    }

    pub fn frame(&mut self, frame: &Encoded) {
        self.renderer.frame(frame, &mut self.records);
        self.frame_bytes += frame.bytes_total() as u64;
    }
}

impl Writer {
    /// Before frames are taken: ends a rewrite that is not to come.
    pub(super) fn end_given_up(&mut self, is_stopping: bool) {
        let mut asked = self.shared.asked_rewrite();
        let is_given_up = matches!(*asked, Some(Rewrite::GivenUp));
        if is_given_up || is_stopping && matches!(*asked, Some(Rewrite::Cut { .. })) {
            *asked = None;
            drop(asked);
            self.end_aside();
            self.shared.end_rewrite(false);
        }
    }

    /// The offset beyond which nothing may be gathered before the file is changed.
    pub(super) fn rewrite_offset(&self) -> Option<u64> {
        self.shared.asked_rewrite().as_ref().and_then(Rewrite::offset)
    }

    /// What was set aside follows what is in the file.
    fn end_aside(&mut self) {
        self.shared.cut_version.store(NO_CUT, Ordering::SeqCst);
        if let Some(aside) = self.aside.take() {
            let end = (aside.frames.end, aside.frame_bytes);
            self.blocks.push_back(Block::new(aside.records, self.renderer.db(), end));
            self.renderer = aside.renderer;
        }
    }

    /// Begins a new increment where the base ends, and has the base written.
    pub(super) fn begin_rewrite(&mut self, next: u64) -> io::Result<()> {
        if self.new_base.is_some() || self.rewrite_offset().is_none_or(|at| at > next) {
            return Ok(());
        }
        let is_failed = self.failed_at.is_some();
        let behind = if is_failed { self.first_block() } else { self.first_increment()? };
        self.note_doubts();
        let shared = self.shared.clone();
        // It may have been given up meanwhile.
        let mut asked = shared.asked_rewrite();
        let Some(rewrite) = asked.take_if(|rewrite| rewrite.offset().is_some()) else {
            return Ok(());
        };
        self.end_aside();
        let form = match &rewrite {
            Rewrite::Whole { form, .. } => *form,
            _ if shared.has_command_base.load(Ordering::Relaxed) => Form::Commands,
            _ => Form::Rdb,
        };
        let (file, path) = self.directory.next_base(form);
        let (sender, result) = sync_channel(1);
        let disk = self.directory.disk();
        let is_cut = matches!(rewrite, Rewrite::Cut { .. });
        let target = BaseFile { path, form, disk, result: sender };
        match rewrite {
            Rewrite::GivenUp => {}
            Rewrite::Cut { .. } => *shared.base_file() = Some(target),
            Rewrite::Whole { base, .. } => {
                let run = move || {
                    let written = target.disk.create(&target.path).and_then(|file| {
                        super::block::write_all(&*file, &base)?;
                        file.sync_data()
                    });
                    target.written(written);
                };
                // Without a thread nothing is sent, which is a failure of the rewrite and not of
                // the log.
                let _ended = std::thread::Builder::new().name("log-rewrite".into()).spawn(run);
            }
        }
        self.new_base = Some(NewBase { file, behind, is_cut, result });
        Ok(())
    }

    /// The increment that goes on after the base: a new one, unless the last is still empty.
    fn first_increment(&mut self) -> io::Result<Behind> {
        self.check_files(Some(self.len))?;
        let last = self.directory.last_increment().filter(|_| self.len == 0);
        if let Some(number) = last {
            return Ok(Behind::Increment(number));
        }
        // What belongs to the old file must be durable there before another follows it.
        self.end_sync(true)?;
        self.sync_now()?;
        self.write_claim()?;
        self.sync_now()?;
        let (name, file) = self.directory.create_increment()?;
        let number = name.number;
        self.directory.commit_increment(name).map_err(other)?;
        self.use_file(file);
        Ok(Behind::Increment(number))
    }

    /// The first block that the base does not hold, of a log that can't be written.
    fn first_block(&mut self) -> Behind {
        // Whatever it came to: the base holds all of it, and until it is there the file is the log.
        let _no_matter = self.keep_whole();
        Behind::Block(self.blocks.len())
    }

    /// The first base of a log is complete: what is behind it goes to the first increment.
    pub(super) fn begin_log(&mut self, base: LogFile, first: usize) -> Result<(), LogError> {
        let made = self.directory.create_increment();
        let (name, file) = made.map_err(LogError::io("make a new file of the log"))?;
        self.directory.begin_with(base, name)?;
        self.written = first;
        self.forget(first, true);
        let renderer = std::mem::take(&mut self.renderer);
        self.use_file(file);
        if let Some(block) = self.blocks.front_mut() {
            block.make_first();
            self.renderer = renderer;
        }
        (self.awaits_base, self.failed_at) = (false, None);
        Ok(())
    }

    /// Whether a base is being written so that a log can be written again that can't be now.
    pub(super) fn is_recovering(&self) -> bool {
        self.new_base.as_ref().is_some_and(|base| matches!(base.behind, Behind::Block(_)))
    }

    /// Looks whether the new base is there, and makes it the log's.
    pub(super) fn end_rewrite(&mut self, may_wait: bool) {
        let Some(base) = &self.new_base else { return };
        let is_given_up = may_wait && base.is_cut;
        let result = match may_wait && !base.is_cut {
            true => base.result.recv().map_err(|_| TryRecvError::Disconnected),
            false => base.result.try_recv(),
        };
        let result = match result {
            Ok(result) => result,
            Err(TryRecvError::Empty) if !is_given_up => return,
            Err(_) => Err(io::Error::other("the writing did not end")),
        };
        let Some(NewBase { file, behind, .. }) = self.new_base.take() else {
            return;
        };
        let (name, is_first) = (file.name.clone(), self.awaits_base);
        let replaced =
            result.map_err(LogError::io("write the new base")).and_then(|()| match behind {
                Behind::Increment(first) => self.directory.replace_base(file, first),
                Behind::Block(first) => self.begin_behind(file, first),
            });
        let is_good = replaced.is_ok();
        match replaced {
            Ok(()) => {
                self.end_doubts();
                let (base, all) = self.directory.sizes();
                self.shared.base_bytes.store(base, Ordering::Relaxed);
                self.shared.rewritten_bytes.store(all, Ordering::Relaxed);
                self.others_bytes = all.saturating_sub(self.len);
                self.shared.rewrites.fetch_add(u64::from(!is_first), Ordering::Relaxed);
            }
            Err(error) => {
                self.directory.discard_base(&name);
                self.events.warn(&format!("The log was not rewritten: {error}"));
            }
        }
        self.shared.end_rewrite(is_good);
    }
}

pub(super) fn other(error: LogError) -> io::Error {
    io::Error::other(error.to_string())
}
