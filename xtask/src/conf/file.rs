//! The commented configuration file.

use super::{areas, plain_doc, values, when};
use std::fmt::Write;

const HEAD: &str = "\
# Russet's configuration: every directive that has an effect, with its default. A line that begins
# with `#` and a name is a setting: take the `#` away and change the value.
#
# Start with it: russet /etc/russet/russet.conf [--name value ...]
# Check it:      russet --check-config /etc/russet/russet.conf
#
# Files for Redis and Valkey work as they are; docs/configuration.md says what becomes of directives
# that are not here. Amounts of memory may have a unit: 1k is 1000 bytes, 1kb is 1024, and so on.
# `include path` reads another file there; lines below it come after. Users (`user name rules`) and
# what they may do: docs/security.md.
#
# Made by `cargo xtask conf` from the table of directives.
";
const LINE_COLUMNS_MAX: usize = 100;

pub(super) fn text() -> String {
    let mut text = HEAD.to_owned();
    for (title, specs) in areas().filter(|(_, specs)| !specs.is_empty()) {
        let rule = "#".repeat(LINE_COLUMNS_MAX.saturating_sub(title.len() + 3));
        // Writing to a string can't fail.
        let _ = write!(text, "\n# {title} {rule}\n");
        for spec in specs {
            let _ = write!(text, "\n# {}.\n", plain_doc(spec));
            for line in wrapped(&format!("Values: {}. {}.", values(spec), when(spec))) {
                let _ = writeln!(text, "# {line}");
            }
            for line in spec.default_lines() {
                let _ = writeln!(text, "#{line}");
            }
        }
    }
    text
}

/// Lines that fit behind `# `.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() + 2 <= LINE_COLUMNS_MAX {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
