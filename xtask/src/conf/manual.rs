//! The man pages: russet(1) and russet.conf(5).

use super::{areas, plain_doc, values, when};
use std::fmt::Write;

const PROGRAM: &str = r#".SH NAME
russet \- data-structure server that speaks the protocol of Redis
.SH SYNOPSIS
.B russet
.RI [ file ]
.RI [ \-\-name " " value " ...]"
.br
.B russet \-\-check\-config
.I file
.br
.B russet check
.RB [ \-\-fix " [" \-\-yes ]]
.RB [ \-\-largest
.IR n ]
.I data
.br
.B russet convert
.RB [ \-\-commands ]
.RB [ \-\-field\-ttl\-format " valkey|redis]"
.I from to
.br
.B russet export
.RB [ \-\-json " | " \-\-commands " [" \-\-replace ]]
.RB [ \-\-output
.IR file ]
.I data
.SH DESCRIPTION
.B russet
serves strings, lists, sets, hashes, sorted sets, streams, scripts and publish/subscribe to clients
of Redis and Valkey, on all cores. Without arguments it listens on 127.0.0.1, port 6379, and keeps
its data in the current directory.
.PP
.I file
is a configuration in the style of redis.conf, or
.B \-
for standard input; see
.BR russet.conf (5).
Every directive of such a file can be given as an option behind it, and then replaces what the file
says.
.SH OPTIONS
.TP
.BI \-\-name " value"
Any directive of
.BR russet.conf (5),
such as
.BR "\-\-port 7000" .
.TP
.BI \-\-check\-config " file"
Says of each line of the file whether it has an effect, none, or is refused, and starts nothing.
.TP
.BR \-\-help ", " \-h
Prints a short help.
.TP
.BR \-\-version ", " \-v
Prints the version.
.SH TOOLS
.B russet check
says whether a dump.rdb, an appendonlydir or a log file is good, and what it holds;
.B russet convert
makes an RDB file or a log of another one;
.B russet export
writes data as lines of JSON, or as commands for
.BR "redis\-cli \-\-pipe" .
Each says more with
.BR \-\-help .
.SH SIGNALS
.TP
.BR SIGTERM ", " SIGINT
Finish replies under way, save what is to be saved, and end.
.SH EXIT STATUS
0 after an orderly end, 1 if the server could not start or not save its log. The tools end with 0 if
all is good, 1 if data is damaged, 2 if the end of a log is torn, 3 if it could not be done.
.SH FILES
.TP
.I /etc/russet/russet.conf
The configuration, where a package installs it.
.TP
.I /var/lib/russet
The data, where a package puts it: dump.rdb and appendonlydir.
.SH SEE ALSO
.BR russet.conf (5),
.BR redis\-cli (1)
"#;

const FILE_HEAD: &str = r#".SH NAME
russet.conf \- configuration of russet
.SH DESCRIPTION
A line is the name of a directive and its values, apart by spaces; values with spaces are in quotes.
Lines that begin with # are comments. The same directives can be given as options of
.BR russet (1),
read with CONFIG GET and, many of them, changed with CONFIG SET. Amounts of memory may have a unit:
1k is 1000 bytes, 1kb is 1024, and so on.
.PP
.B include
.I path
reads another file there, wildcards allowed.
.B user
.I name rules
makes a user, as ACL SETUSER does.
.PP
Directives of Redis and Valkey that are not listed here are read, kept and shown, and have no
effect;
.B russet \-\-check\-config
says which.
"#;

/// Dashes as they are typed, and nothing that the formatter would take for its own.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text,
    }
}

fn head(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {name} {section} \"\" \"Russet {version}\" \"Russet manual\"\n")
}

pub(super) fn program() -> String {
    head("RUSSET", 1) + PROGRAM
}

pub(super) fn file() -> String {
    let mut text = head("RUSSET.CONF", 5) + FILE_HEAD;
    for (title, specs) in areas().filter(|(_, specs)| !specs.is_empty()) {
        // Writing to a string can't fail.
        let _ = writeln!(text, ".SH {}", title.to_ascii_uppercase());
        for spec in specs {
            let _ = write!(text, ".TP\n.B {}\n", escaped(spec.directive.name()));
            let _ = writeln!(text, "{}.", escaped(&plain_doc(spec)));
            let _ = writeln!(text, "{}.", escaped(&format!("Values: {}", values(spec))));
            for line in spec.default_lines() {
                let _ = writeln!(text, ".br\nDefault: {}", escaped(&line));
            }
            let _ = write!(text, ".br\n{}.\n", escaped(when(spec)));
        }
    }
    text + ".SH SEE ALSO\n.BR russet (1)\n"
}
