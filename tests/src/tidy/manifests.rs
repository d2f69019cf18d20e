//! Rules for `Cargo.toml` files: which crate may know which, and versions in one place.

use super::Offence;

/// Each crate of the product, and those of ours that it may depend on, tests included.
///
/// base < protocol, catalog, engine, scripting < persistence < commands < embedded < server,
/// russet
const MAY_KNOW: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("protocol", &["base"]),
    ("catalog", &["base"]),
    ("engine", &["base"]),
    ("scripting", &["base"]),
    ("persistence", &["base", "engine"]),
    ("commands", &["base", "protocol", "catalog", "engine", "scripting", "persistence"]),
    ("embedded", &["base", "protocol", "engine", "persistence", "commands"]),
    (
        "server",
        &[
            "base",
            "protocol",
            "catalog",
            "engine",
            "scripting",
            "persistence",
            "commands",
            "embedded",
        ],
    ),
    ("russet-derive", &[]),
    ("russet", &["base", "embedded", "derive"]),
];

/// A dependency as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub name: String,
    pub line: usize,
    /// What stands after the name.
    pub rest: String,
}

/// The lines of all `[...dependencies]` sections.
pub fn dependencies(text: &str) -> Vec<Dependency> {
    let mut found = Vec::new();
    let mut is_inside = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            is_inside = section.trim_end_matches(']').ends_with("dependencies");
            continue;
        }
        let Some(end) = line.find(['.', ' ', '=']).filter(|_| is_inside) else { continue };
        if line.starts_with('#') {
            continue;
        }
        let (name, rest) = line.split_at(end);
        found.push(Dependency { name: name.to_owned(), line: index + 1, rest: rest.to_owned() });
    }
    found
}

/// Crates of the product depend downwards only.
pub fn direction(path: &str, text: &str) -> Vec<Offence> {
    let Some(name) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
    else {
        return Vec::new();
    };
    let Some((_, allowed)) = MAY_KNOW.iter().find(|(known, _)| *known == name) else {
        return vec![Offence::new(path, 0, "a new crate: give it a place in the tidy test")];
    };
    let ours = dependencies(text).into_iter().filter_map(|dependency| {
        let other = dependency.name.strip_prefix("russet-")?.to_owned();
        (!allowed.contains(&other.as_str())).then_some((dependency.line, other))
    });
    ours.map(|(line, other)| Offence::new(path, line, format!("{name} may not know {other}")))
        .collect()
}

/// Versions stand once, in the workspace.
pub fn versions(path: &str, text: &str) -> Vec<Offence> {
    if text.contains("[workspace") {
        return Vec::new();
    }
    let own = dependencies(text).into_iter();
    let is_shared =
        |rest: &str| rest.starts_with(".workspace = true") || rest.contains("{ workspace = true");
    let own = own.filter(|dependency| !is_shared(&dependency.rest));
    let own = own.filter(|dependency| !dependency.rest.contains("path = "));
    own.map(|dependency| {
        let text = format!("{}: its version belongs in the workspace", dependency.name);
        Offence::new(path, dependency.line, text)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upward_dependencies_are_seen() {
        let text = "[package]\nname = \"x\"\n[dependencies]\nrusset-base.workspace = true\n\
                    russet-server.workspace = true\nlibc = \"1\"\n[lints]\nworkspace = true\n";
        let names: Vec<String> = dependencies(text).into_iter().map(|found| found.name).collect();
        assert_eq!(names, ["russet-base", "russet-server", "libc"]);
        assert_eq!(direction("crates/engine/Cargo.toml", text).len(), 1);
        assert_eq!(direction("crates/server/Cargo.toml", text).len(), 1, "itself");
        assert_eq!(direction("bench/Cargo.toml", text), []);
        assert_eq!(direction("crates/new/Cargo.toml", text).len(), 1);
        assert_eq!(versions("crates/engine/Cargo.toml", text).len(), 1);
    }
}
