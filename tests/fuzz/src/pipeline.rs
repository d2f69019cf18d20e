//! Pipelines: calls as the bytes of one write, parsed and run in batches as the event loop does.

use crate::stage::{FuzzServer, check_count, whole_replies};
use russet_base::limits::{ARGUMENTS_MAX, INLINE_BYTES_MAX};
use russet_commands::call::batch::BATCH_MAX;
use russet_commands::call::dispatch::Progress;
use russet_commands::call::session::ReplyMode;
use russet_protocol::{Batch, Output, RequestLimits, request};

/// No word of a made-up call is nearly as long.
const BULK_BYTES_MAX: usize = 1 << 20;

impl FuzzServer {
    /// Runs these calls of a client until one must wait; what stands behind that is dropped.
    pub fn pipeline(&mut self, who: usize, calls: &[Vec<Vec<u8>>]) {
        if !self.clients[who].client.may_run() {
            return;
        }
        let mut bytes = Vec::new();
        for words in calls.iter().filter(|words| !words.is_empty()) {
            request::encode_into(words, &mut bytes);
        }
        let limits = RequestLimits {
            bulk_bytes_max: BULK_BYTES_MAX,
            arguments_max: ARGUMENTS_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            authenticated: true,
        };
        let (mut batch, mut done) = (Batch::new(), 0);
        self.worker.read_clock();
        self.worker.begin_batch();
        loop {
            let rest = &bytes[done..];
            let parsed = batch.parse_batch(rest, &limits, BATCH_MAX);
            assert!(parsed.is_ok(), "a request of our own can't be read: {parsed:?}");
            if batch.is_empty() {
                break;
            }
            let (ran, goes_on) = self.run_batch(who, &batch, rest);
            batch.truncate(ran);
            done += batch.consumed();
            if !goes_on {
                break;
            }
        }
        self.worker.end_batch();
        self.end_turn(who);
    }

    /// How many calls of the batch are done with, and whether the next can run.
    fn run_batch(&mut self, who: usize, batch: &Batch, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < batch.len() {
            let connected = &mut self.clients[who];
            let was_answered = connected.client.session.reply_mode == ReplyMode::On;
            let mut out = Output::default();
            if at + 1 < batch.len() {
                let commands = batch.commands(at, bytes);
                let ran = connected.client.run_batch(&mut self.worker, commands, &mut out);
                let replies = whole_replies(&out.bytes_from(0)).len();
                assert!(!was_answered || replies == ran.count, "{replies} replies to {ran:?}");
                if ran.count > 0 {
                    at += ran.count;
                    if ran.is_cut && batch.len() == BATCH_MAX {
                        return (at, true);
                    }
                    continue;
                }
            }
            let args = batch.command(at, bytes);
            let progress = connected.client.run(&mut self.worker, args, &mut out);
            let replies = whole_replies(&out.bytes_from(0));
            check_count(connected, was_answered, (progress, args), &replies);
            at += 1;
            if progress != Progress::Done || connected.client.session.is_closing {
                return (at, false);
            }
        }
        (batch.len(), true)
    }
}
