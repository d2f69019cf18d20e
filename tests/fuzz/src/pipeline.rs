//! Pipelines: calls as the bytes of one write, parsed and run in batches as the event loop does.

use crate::server::{FuzzServer, check_count, runs_others, whole_replies};
use russet_base::limits::{ARGUMENTS_MAX, INLINE_BYTES_MAX};
use russet_commands::call::batch::BATCH_MAX;
use russet_commands::call::dispatch::Progress;
use russet_commands::call::session::ReplyMode;
use russet_protocol::{Batch, Output, RequestLimits, Value, request};

/// No argument of a made-up call is nearly as long.
const BULK_BYTES_MAX: usize = 1 << 20;

/// What became of a batch.
struct Outcome {
    /// How many of its calls are done with.
    done: usize,
    /// The next call can run.
    goes_on: bool,
    /// Every call was refused before it could do anything.
    is_refused: bool,
}

impl FuzzServer {
    /// Runs these calls of a client until one must wait; what stands behind that is dropped. If all
    /// of them are refused the data is as it was.
    pub fn pipeline(&mut self, who: usize, calls: &[Vec<Vec<u8>>]) {
        if !self.clients[who].client.may_run() {
            return;
        }
        let mut bytes = Vec::new();
        for args in calls.iter().filter(|args| !args.is_empty()) {
            request::encode_into(args, &mut bytes);
        }
        let limits = RequestLimits {
            bulk_bytes_max: BULK_BYTES_MAX,
            arguments_max: ARGUMENTS_MAX,
            inline_bytes_max: INLINE_BYTES_MAX,
            authenticated: true,
        };
        let before = self.digest();
        let (mut batch, mut done, mut is_refused) = (Batch::new(), 0, true);
        self.worker.read_clock();
        self.worker.begin_batch();
        loop {
            let rest = &bytes[done..];
            let parsed = batch.parse_batch(rest, &limits, BATCH_MAX);
            assert!(parsed.is_ok(), "a request of our own can't be read: {parsed:?}");
            if batch.is_empty() {
                break;
            }
            let outcome = self.run_batch(who, &batch, rest);
            batch.truncate(outcome.done);
            done += batch.consumed();
            is_refused &= outcome.is_refused;
            if !outcome.goes_on {
                break;
            }
        }
        self.worker.end_batch();
        if is_refused {
            assert_eq!(self.digest(), before, "refused: {}", bytes.escape_ascii());
        }
        self.end_turn(who);
    }

    fn run_batch(&mut self, who: usize, batch: &Batch, bytes: &[u8]) -> Outcome {
        let (mut at, mut is_refused) = (0, true);
        while at < batch.len() {
            let connected = &mut self.clients[who];
            let was_answered = connected.client.session.reply_mode == ReplyMode::On;
            let mut out = Output::default();
            if at + 1 < batch.len() {
                let commands = batch.commands(at, bytes);
                let ran = connected.client.run_batch(&mut self.worker, commands, &mut out);
                let replies = whole_replies(&out.bytes_from(0));
                let count = replies.len();
                assert!(!was_answered || count == ran.count, "{count} replies to {ran:?}");
                if ran.count > 0 {
                    is_refused &= was_answered && are_errors(&replies);
                    at += ran.count;
                    if ran.is_cut && batch.len() == BATCH_MAX {
                        return Outcome { done: at, goes_on: true, is_refused };
                    }
                    continue;
                }
            }
            let args = batch.command(at, bytes);
            let progress = connected.client.run(&mut self.worker, args, &mut out);
            let replies = whole_replies(&out.bytes_from(0));
            check_count(connected, was_answered, (progress, args), &replies);
            is_refused &= !replies.is_empty() && are_errors(&replies) && !runs_others(args);
            at += 1;
            if progress != Progress::Done || connected.client.session.is_closing {
                return Outcome { done: at, goes_on: false, is_refused };
            }
        }
        Outcome { done: batch.len(), goes_on: true, is_refused }
    }
}

fn are_errors(replies: &[Value]) -> bool {
    replies.iter().all(|reply| matches!(reply, Value::Error(_)))
}
