//! What others see as the command line of this process. Every user of the machine can read it: so
//! secrets are covered at once, and then, with `set-proc-title`, it says what the server is.

use crate::sys::arg_memory::ArgMemory;
use russet_commands::node::config::{Config, Directive, HIDDEN, without_secrets};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Mutex;

pub struct CommandLine {
    /// What the program was called by.
    name: OsString,
    /// None where the system does not let it be changed.
    memory: Option<Mutex<ArgMemory>>,
}

impl CommandLine {
    /// Covers the secrets among the arguments, which the process has read. The second value is
    /// what is to be logged if that can't be done: the server runs all the same.
    pub fn take(args: &[OsString]) -> (CommandLine, Option<String>) {
        let name = std::env::args_os().next().unwrap_or_default();
        let shown = without_secrets(args);
        match (ArgMemory::take(), shown) {
            (Ok(mut memory), shown) => {
                if let Some(shown) = shown {
                    cover(&mut memory, &name, &shown);
                }
                (CommandLine { name, memory: Some(Mutex::new(memory)) }, None)
            }
            (Err(error), shown) => {
                let warning = shown.map(|_| {
                    format!(
                        "A secret is on the command line, where every user of this machine can \
                         read it, and can't be hidden ({error}): better put it into a file"
                    )
                });
                (CommandLine { name, memory: None }, warning)
            }
        }
    }

    /// Shows what `proc-title-template` says, unless `set-proc-title` says no.
    ///
    /// DIFFERS: in Redis a new template is shown though `set-proc-title` says no.
    pub fn show_title(&self, config: &Config) {
        let Some(memory) = &self.memory else { return };
        if config.flag(Directive::SetProcTitle) {
            let title = title(config, &self.name.to_string_lossy());
            let mut memory = memory.lock().unwrap_or_else(|poison| poison.into_inner());
            memory.show_title(title.as_bytes());
        }
    }
}

/// Shows these arguments. What stands for a secret may be longer than the secret was.
fn cover(memory: &mut ArgMemory, name: &OsStr, shown: &[OsString]) {
    let all = |cover: &[u8]| -> Vec<Vec<u8>> {
        let args = shown.iter().map(|arg| match arg.as_bytes() {
            whole if whole == HIDDEN.as_bytes() => cover.to_vec(),
            other => other.to_vec(),
        });
        std::iter::once(name.as_bytes().to_vec()).chain(args).collect()
    };
    for short in [HIDDEN, "*", ""] {
        let args = all(short.as_bytes());
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        if memory.show_args(&args) {
            return;
        }
    }
    memory.show_title(&all(HIDDEN.as_bytes()).join(&b' '));
}

/// Whether the title names what this directive says.
pub fn concerns(directive: Directive) -> bool {
    matches!(
        directive,
        Directive::ProcTitleTemplate | Directive::Bind | Directive::Port | Directive::TlsPort
    )
}

fn title(config: &Config, name: &str) -> String {
    let template = config.string(Directive::ProcTitleTemplate);
    let mut parts = template.split('{');
    let mut title = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // That every field is closed and known was checked when the template was set.
        let (field, rest) = part.split_once('}').unwrap_or((part, ""));
        title.push_str(&value_of(field, config, name));
        title.push_str(rest);
    }
    title.truncate(title.trim_end().len());
    title
}

fn value_of(field: &str, config: &Config, name: &str) -> String {
    let port = config.int(Directive::Port);
    let tls_port = config.int(Directive::TlsPort);
    let socket = config.string(Directive::UnixSocket);
    match field {
        "title" => name.to_owned(),
        "port" => port.to_string(),
        "tls-port" => tls_port.to_string(),
        "unixsocket" => socket,
        // Of `-` and a path the former is no file.
        "config-file" => config.file().map_or("-".to_owned(), |path| path.display().to_string()),
        "listen-addr" if port == 0 && tls_port == 0 => format!("unixsocket:{socket}"),
        "listen-addr" => {
            let bind = config.list(Directive::Bind);
            let address = bind.first().map_or("*", |address| address.trim_start_matches('-'));
            format!("{address}:{}", if port == 0 { tls_port } else { port })
        }
        // `server-mode`: nothing, unless there is a cluster.
        _ => String::new(),
    }
}
