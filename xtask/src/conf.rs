//! What is made from the table of directives: the commented configuration file, the man pages and
//! the completions of shells.

mod completion;
mod file;
mod manual;

use crate::generated::{self, Generated};
use russet_commands::node::config::{AREAS, Area, Change, Effect, Kind, Spec};

/// Writes all of them, or with `--check` compares them; false: one is not current.
pub fn main(args: &[String]) -> Result<bool, String> {
    generated::main(args, "conf", &files())
}

fn files() -> Vec<Generated> {
    vec![
        ("packaging/russet.conf", file::text()),
        ("packaging/man/russet.1", manual::program()),
        ("packaging/man/russet.conf.5", manual::file()),
        ("packaging/completions/russet.bash", completion::bash()),
        ("packaging/completions/_russet", completion::zsh()),
        ("packaging/completions/russet.fish", completion::fish()),
    ]
}

/// Every area, and what of it a person can use: directives that are obeyed, and take more than one
/// value.
fn areas() -> impl Iterator<Item = (&'static str, Vec<&'static Spec>)> {
    AREAS.iter().map(|Area { title, specs }| {
        let is_usable = |spec: &&Spec| {
            spec.effect != Effect::None && spec.supported.len() != 1 && !spec.is_hidden
        };
        (*title, specs.iter().filter(is_usable).collect())
    })
}

/// Every directive that is shown to people, obeyed or not.
fn listed() -> impl Iterator<Item = &'static Spec> {
    AREAS.iter().flat_map(|area| area.specs).filter(|spec| !spec.is_hidden)
}

/// Its description as plain text.
fn plain_doc(spec: &Spec) -> String {
    spec.doc.replace('`', "")
}

/// What may be written behind the name.
fn values(spec: &Spec) -> String {
    match spec.kind {
        _ if !spec.supported.is_empty() => {
            let shown = spec.supported.iter().map(|value| match *value {
                "" => "\"\"",
                other => other,
            });
            shown.collect::<Vec<_>>().join(", ")
        }
        Kind::Flag { .. } => "yes or no".to_owned(),
        Kind::Integer { min, max: i64::MAX, .. } => format!("a whole number from {min}"),
        Kind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
        Kind::Octal { max, .. } => format!("an octal number up to {max:o}"),
        Kind::Memory { min: 0, .. } => "an amount of memory such as 100mb".to_owned(),
        Kind::Memory { min, .. } => format!("an amount of memory, from {min} bytes"),
        Kind::MemoryOrPercent => "an amount of memory such as 100mb, or a percentage".to_owned(),
        Kind::Choice { names, .. } => names.join(", "),
        Kind::Choices { names } => format!("any of {}", names.join(", ")),
        Kind::Text { .. } => "text, in quotes if it has spaces".to_owned(),
        Kind::List { len_max, .. } => format!("up to {len_max} words"),
        Kind::SavePoints => "seconds and changes, on as many lines as wanted, or \"\"".to_owned(),
        Kind::BufferLimits => {
            "class (normal, replica, pubsub), hard, soft, soft seconds".to_owned()
        }
        Kind::OomScores => "three whole numbers from -2000 to 2000".to_owned(),
        Kind::Percentiles => "numbers from 0 to 100".to_owned(),
        Kind::EventClasses => "letters, see CONFIG SET notify-keyspace-events".to_owned(),
    }
}

/// When it can change.
fn when(spec: &Spec) -> &'static str {
    match spec.change {
        Change::Anytime => "CONFIG SET can change it",
        Change::Protected => "CONFIG SET can change it if enable-protected-configs allows",
        Change::AtStart => "Read at the start",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use russet_commands::node::config::{Config, Directive, Startup};
    use std::path::PathBuf;

    /// Files made from the table would say what was so once, if nobody made them again.
    #[test]
    fn files_are_current() {
        for (path, text) in files() {
            let is_current = generated::is_current(path, &text);
            assert!(is_current, "{path} is not current: run `cargo xtask conf`");
        }
    }

    fn startup(args: &[&str]) -> Startup {
        let args: Vec<_> = args.iter().map(std::ffi::OsString::from).collect();
        Startup::parse(&args).unwrap()
    }

    struct TempFile(PathBuf);

    impl Drop for TempFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// A line of the commented file that is taken as it stands must be accepted and change nothing.
    #[test]
    fn each_line_of_the_file_says_the_default() {
        let text = file::text();
        let is_setting = |line: &&str| line.starts_with('#') && !line.starts_with("# ");
        let settings: Vec<&str> = text
            .lines()
            .filter(is_setting)
            .map(|line| &line[1..])
            .filter(|l| !l.is_empty())
            .collect();
        assert!(settings.len() > 80, "{}", settings.len());
        let path = std::env::temp_dir().join(format!("russet-conf-{}.conf", std::process::id()));
        let file = TempFile(path);
        std::fs::write(&file.0, settings.join("\n")).unwrap();
        let name = file.0.to_str().unwrap();
        let Startup::Check(report) = startup(&["--check-config", name]) else {
            panic!("no report")
        };
        assert!(report.is_accepted(), "{report}");
        let Startup::Run(config) = startup(&[name]) else { panic!("no configuration") };
        let default = Config::default();
        for directive in Directive::ALL {
            let [shown, expected] =
                [&*config, &default].map(|it| String::from_utf8(it.shown(*directive)).unwrap());
            assert_eq!(shown, expected, "{}", directive.name());
        }
    }

    #[test]
    fn every_directive_is_completed_and_the_usable_ones_explained() {
        let [bash, manual] = [completion::bash(), manual::file()];
        for spec in listed() {
            let option = format!("--{}", spec.directive.name());
            assert!(bash.split_whitespace().any(|word| word == option), "{option}");
        }
        for spec in areas().flat_map(|(_, specs)| specs) {
            let line = format!(".B {}\n", manual::escaped(spec.directive.name()));
            assert!(manual.contains(&line), "{line}");
        }
    }
}
