//! Which commands the wire files exercise.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::file::WireFile;

/// The commands that no file sends. Names are lower case, a subcommand as `parent|name`; a
/// container counts as sent when any of its subcommands is.
pub fn commands_missing<'a>(
    files: &[PathBuf],
    names: impl Iterator<Item = &'a str>,
) -> Result<Vec<&'a str>, String> {
    let mut sent = BTreeSet::new();
    for path in files {
        for words in WireFile::read(path)?.commands_sent() {
            let Some(name) = words.first().map(|word| word.to_lowercase()) else { continue };
            if let Some(second) = words.get(1) {
                sent.insert(format!("{name}|{}", second.to_lowercase()));
            }
            sent.insert(name);
        }
    }
    Ok(names.filter(|name| !sent.contains(*name)).collect())
}
