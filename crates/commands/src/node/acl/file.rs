//! The file of users, `aclfile`: a `user` line for each.

use super::{BadRule, Changed, Rights, has_all_channels, is_user_name, join_selectors};
use crate::node::Node;
use crate::node::config::{Config, Directive, os_text, replace_file};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

impl Node {
    /// The file of users, if there is one.
    pub fn acl_file(&self) -> Option<PathBuf> {
        let name = self.config.string(Directive::AclFile);
        (!name.is_empty()).then(|| PathBuf::from(name))
    }

    /// Puts the users of the file in the place of all others, unless something is wrong with it:
    /// then the error says what, and nothing is changed.
    pub fn load_acl_file(&self, path: &Path) -> Result<Changed, String> {
        Ok(self.acl.replace_all(read(path, has_all_channels(&self.config))?))
    }

    /// Writes all users to the file.
    pub fn save_acl_file(&self, path: &Path) -> std::io::Result<()> {
        let lines = self.acl.users().into_iter().flat_map(|user| [user.line(), b"\n".to_vec()]);
        replace_file(path, &lines.flatten().collect::<Vec<u8>>())
    }
}

/// What is wrong with `aclfile`, if something is.
pub fn acl_file_obstacle(config: &Config) -> Option<String> {
    let name = config.string(Directive::AclFile);
    if name.is_empty() {
        return None;
    }
    read(Path::new(&name), has_all_channels(config)).err()
}

fn read(path: &Path, has_all_channels: bool) -> Result<BTreeMap<Vec<u8>, Rights>, String> {
    let name = path.display();
    let failed = |why: std::io::Error| {
        format!("Error loading ACLs, opening file '{name}': {}", os_text(&why))
    };
    let mut content = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("Error loading ACLs, file '{name}' is too long"));
    }
    parse(&content, &name.to_string(), has_all_channels)
}

/// The users of a file. All that is wrong is said at once.
fn parse(
    content: &[u8],
    file: &str,
    has_all_channels: bool,
) -> Result<BTreeMap<Vec<u8>, Rights>, String> {
    let mut users = BTreeMap::new();
    let mut errors = String::new();
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        match parse_line(line, has_all_channels) {
            Err(why) => errors.push_str(&format!("{file}:{}{why} ", index + 1)),
            Ok((name, rights)) => {
                let shown = String::from_utf8_lossy(&name).into_owned();
                if users.insert(name, rights).is_some() {
                    let at = index + 1;
                    errors.push_str(&format!(
                        "WARNING: Duplicate user '{shown}' found on line {at}. "
                    ));
                }
            }
        }
    }
    if errors.is_empty() {
        return Ok(users);
    }
    errors.push_str(
        "WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
    );
    Err(errors)
}

/// COMPAT: args are apart by one space each, there are no quotes and no comments.
fn parse_line(line: &[u8], has_all_channels: bool) -> Result<(Vec<u8>, Rights), String> {
    let mut args = line.split(|byte| *byte == b' ');
    let (Some(b"user"), Some(name)) = (args.next(), args.next()) else {
        return Err(" should start with user keyword followed by the username.".to_owned());
    };
    if !is_user_name(name) {
        return Err(": username contains invalid characters.".to_owned());
    }
    let rules = join_selectors(args)
        .map_err(|_| ": Unmatched parenthesis in selector definition.".to_owned())?;
    let mut rights = Rights::new(has_all_channels);
    for rule in rules {
        rights.apply(&rule, has_all_channels).map_err(|bad| describe(&rule, bad))?;
    }
    Ok((name.to_vec(), rights))
}

/// Only a rule that can't be a password is repeated.
fn describe(rule: &[u8], bad: BadRule) -> String {
    match bad {
        BadRule::UnknownName => {
            let rule = String::from_utf8_lossy(rule);
            format!(": Error in applying operation '{rule}': {}.", bad.text())
        }
        _ => format!(": {}.", bad.text()),
    }
}
