//! The line `#!lua flags=...` that a script may begin with.

use crate::call::session::{Gate, Session};
use crate::error::Refusal;
use russet_base::escape::escape;
use russet_base::text::split_args;

/// What a script says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags {
    pub has_shebang: bool,
    pub no_writes: bool,
    pub allow_oom: bool,
    pub allow_stale: bool,
    pub no_cluster: bool,
    pub allow_cross_slot_keys: bool,
}

impl ScriptFlags {
    pub const NAMES: [&'static str; 5] =
        ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];

    /// Sets the flag of this name; false if there is none.
    pub fn set(&mut self, name: &[u8]) -> bool {
        let flag = match name {
            b"no-writes" => &mut self.no_writes,
            b"allow-oom" => &mut self.allow_oom,
            b"allow-stale" => &mut self.allow_stale,
            b"no-cluster" => &mut self.no_cluster,
            b"allow-cross-slot-keys" => &mut self.allow_cross_slot_keys,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// Whether it is not begun while there is no memory left, as it may write.
    pub fn is_refused_without_memory(self, session: &Session) -> bool {
        session.gate.has(Gate::OUT_OF_MEMORY) && !self.no_writes && !self.allow_oom
    }

    /// The names of the flags that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let set = [
            self.no_writes,
            self.allow_oom,
            self.allow_stale,
            self.no_cluster,
            self.allow_cross_slot_keys,
        ];
        Self::NAMES.into_iter().zip(set).filter(|(_, is_set)| *is_set).map(|(name, _)| name)
    }
}

/// The flags of a script, and its code with the line blanked out, so that line numbers stay right.
pub fn parse(source: &[u8]) -> Result<(ScriptFlags, &[u8]), Refusal> {
    if !source.starts_with(b"#!") {
        return Ok((ScriptFlags::default(), source));
    }
    let Some(end) = source.iter().position(|byte| *byte == b'\n') else {
        return Err(Refusal::text("ERR Invalid script shebang"));
    };
    let Ok(parts) = split_args(&source[..end]) else {
        return Err(Refusal::text("ERR Invalid engine in script shebang"));
    };
    let (engine, parts) = engine_and_rest(&parts);
    let mut flags = ScriptFlags { has_shebang: true, ..ScriptFlags::default() };
    for part in parts {
        let Some(names) = part.strip_prefix(b"flags=") else {
            let part = escape(part);
            return Err(Refusal::text(format!("ERR Unknown lua shebang option: {part}")));
        };
        for name in names.split(|byte| *byte == b',').filter(|_| !names.is_empty()) {
            if !flags.set(name) {
                let name = escape(name);
                return Err(Refusal::text(format!(
                    "ERR Unexpected flag in script shebang: {name}"
                )));
            }
        }
    }
    if !engine.eq_ignore_ascii_case(b"lua") {
        let engine = escape(engine);
        return Err(Refusal::text(format!("ERR Could not find scripting engine '{engine}'")));
    }
    // The line's end stays: the code begins on line 2.
    Ok((flags, &source[end..]))
}

/// The parts of a line that begins with `#!`: what follows it directly, and the others.
pub fn engine_and_rest(parts: &[Vec<u8>]) -> (&[u8], &[Vec<u8>]) {
    match parts {
        [first, rest @ ..] => (first.get(2..).unwrap_or_default(), rest),
        [] => (b"", &[]),
    }
}
