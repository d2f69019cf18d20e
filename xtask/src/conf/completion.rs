//! Completions of bash, zsh and fish: tools, options, and the values of directives that have few.

use super::{listed, plain_doc};
use russet_commands::node::config::{Kind, Spec, TextCheck};
use std::fmt::Write;

/// What can stand behind a directive.
enum Values {
    Words(Vec<&'static str>),
    Directories,
    Files,
    Anything,
}

fn values(spec: &Spec) -> Values {
    match spec.kind {
        Kind::Flag { .. } => Values::Words(vec!["yes", "no"]),
        Kind::Choice { names, .. } | Kind::Choices { names } => Values::Words(names.to_vec()),
        Kind::Text { check: TextCheck::Directory, .. } => Values::Directories,
        Kind::Text { check: TextCheck::Any, .. } if is_path(spec) => Values::Files,
        _ => Values::Anything,
    }
}

fn is_path(spec: &Spec) -> bool {
    let name = spec.directive.name();
    name.ends_with("file") || name == "unixsocket"
}

/// Tools, each with its options.
const TOOLS: &[(&str, &str, &[&str])] = &[
    ("check", "Say whether data files are good", &["--fix", "--yes", "--largest", "--help"]),
    ("convert", "Make an RDB file or a log", &["--commands", "--field-ttl-format", "--help"]),
    (
        "export",
        "Write data as JSON or commands",
        &["--json", "--commands", "--replace", "--output", "--help"],
    ),
];
const PLAIN_OPTIONS: &[(&str, &str)] = &[
    ("--check-config", "Say what each line of a file does"),
    ("--help", "Print a short help"),
    ("--version", "Print the version"),
];
const MADE: &str = "# Made by `cargo xtask conf`.\n";

pub(super) fn bash() -> String {
    let mut text =
        format!("# Completion of russet for bash. {}\n_russet() {{\n", &MADE[2..].trim());
    text.push_str(
        "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n    \
         local tool=${COMP_WORDS[1]}\n    COMPREPLY=()\n    case \"$previous\" in\n",
    );
    for spec in listed() {
        let action = match values(spec) {
            Values::Words(words) => format!("-W \"{}\"", words.join(" ")),
            Values::Directories => "-d".to_owned(),
            Values::Files => "-f".to_owned(),
            Values::Anything => continue,
        };
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "        --{}) COMPREPLY=($(compgen {action} -- \"$word\")); return ;;",
            spec.directive.name()
        );
    }
    text.push_str(
        "        --check-config | --output) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n    \
         esac\n    case \"$tool\" in\n",
    );
    for (tool, _, options) in TOOLS {
        let _ = writeln!(
            text,
            "        {tool}) [ \"$COMP_CWORD\" -eq 1 ] || {{ COMPREPLY=($(compgen -f -W \"{}\" -- \
             \"$word\")); return; }} ;;",
            options.join(" ")
        );
    }
    text.push_str("    esac\n    local options=\"\n");
    for option in options() {
        let _ = writeln!(text, "        {option}");
    }
    let tools: Vec<&str> = TOOLS.iter().map(|(tool, _, _)| *tool).collect();
    let _ = write!(
        text,
        "    \"\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        \
         COMPREPLY=($(compgen -f -W \"{} $options\" -- \"$word\"))\n    else\n        \
         COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    fi\n}}\n\
         complete -o filenames -F _russet russet\n",
        tools.join(" ")
    );
    text
}

fn options() -> Vec<String> {
    let plain = PLAIN_OPTIONS.iter().map(|(option, _)| (*option).to_owned());
    plain.chain(listed().map(|spec| format!("--{}", spec.directive.name()))).collect()
}

pub(super) fn zsh() -> String {
    let mut text = format!("#compdef russet\n{MADE}\n_arguments -s \\\n");
    for (option, doc) in PLAIN_OPTIONS {
        let value = if *option == "--check-config" { ":file:_files" } else { "" };
        let _ = writeln!(text, "    '{option}[{doc}]{value}' \\");
    }
    for spec in listed() {
        let value = match values(spec) {
            Values::Words(words) => format!(":value:({})", words.join(" ")),
            Values::Directories => ":directory:_files -/".to_owned(),
            Values::Files => ":file:_files".to_owned(),
            Values::Anything => ":value: ".to_owned(),
        };
        let doc: String =
            plain_doc(spec).chars().filter(|c| !matches!(c, '\'' | '[' | ']' | ':')).collect();
        let _ = writeln!(text, "    '--{}[{doc}]{value}' \\", spec.directive.name());
    }
    let tools: Vec<String> =
        TOOLS.iter().map(|(tool, doc, _)| format!("{tool}\\:\"{doc}\"")).collect();
    let _ = writeln!(
        text,
        "    '1:configuration file or tool:{{_alternative \"tools:tool:(({}))\" \
         \"files:file:_files\"}}' \\\n    '*:file:_files'",
        tools.join(" ")
    );
    text
}

pub(super) fn fish() -> String {
    let mut text = format!("# Completion of russet for fish. {}\n", &MADE[2..].trim());
    let tools: Vec<&str> = TOOLS.iter().map(|(tool, _, _)| *tool).collect();
    let no_tool = format!("not __fish_seen_subcommand_from {}", tools.join(" "));
    for (tool, doc, options) in TOOLS {
        let _ = writeln!(text, "complete -c russet -n __fish_is_first_token -a {tool} -d '{doc}'");
        for option in *options {
            let _ = writeln!(
                text,
                "complete -c russet -n '__fish_seen_subcommand_from {tool}' -l {}",
                option.trim_start_matches('-')
            );
        }
    }
    for (option, doc) in PLAIN_OPTIONS {
        let value = if *option == "--check-config" { " -r -F" } else { "" };
        let _ = writeln!(
            text,
            "complete -c russet -n '{no_tool}' -l {} -d '{doc}'{value}",
            option.trim_start_matches('-')
        );
    }
    for spec in listed() {
        let value = match values(spec) {
            Values::Words(words) => format!("-x -a '{}'", words.join(" ")),
            Values::Directories => "-x -a '(__fish_complete_directories)'".to_owned(),
            Values::Files => "-r -F".to_owned(),
            Values::Anything => "-x".to_owned(),
        };
        let doc = plain_doc(spec).replace('\'', "\\'");
        let _ = writeln!(
            text,
            "complete -c russet -n '{no_tool}' -l {} -d '{doc}' {value}",
            spec.directive.name()
        );
    }
    text
}
