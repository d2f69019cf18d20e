//! What is installed with the server: the container's entry point, completions, the Debian package.
//! Whether the package works is tried by `packaging/debian/try.sh`, which needs root.

use russet_tests::server::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn run(command: &mut Command) -> Output {
    command.current_dir(root()).output().unwrap()
}

#[track_caller]
fn text(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn the_entry_point_takes_what_the_image_of_redis_takes() {
    let said = text(&run(Command::new("bash").arg("packaging/docker/try.sh")));
    assert_eq!(said, "the entry point works\n");
}

#[test]
fn scripts_are_well_formed() {
    for (shell, scripts) in [
        ("sh", &["debian/russet.init", "debian/postinst", "debian/prerm", "debian/postrm"][..]),
        ("sh", &["docker/entrypoint.sh", "docker/health.sh"]),
        ("bash", &["debian/build.sh", "debian/try.sh", "docker/try.sh", "completions/russet.bash"]),
    ] {
        for script in scripts {
            text(&run(Command::new(shell).args(["-n", &format!("packaging/{script}")])));
        }
    }
}

/// What bash offers behind these words.
fn completions(words: &str) -> Vec<String> {
    let script = format!(
        "source packaging/completions/russet.bash; COMP_WORDS=({words}); \
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _russet; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let said = text(&run(Command::new("bash").args(["-c", &script])));
    said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_directives_values_and_tools() {
    assert_eq!(completions("russet --appendf"), ["--appendfilename", "--appendfsync"]);
    assert_eq!(completions("russet a.conf --appendfsync a"), ["always"]);
    assert_eq!(completions("russet --appendonly ''"), ["yes", "no"]);
    assert_eq!(completions("russet conv"), ["convert"]);
    assert_eq!(completions("russet check --la"), ["--largest"]);
    assert_eq!(completions("russet --check-config packaging/russet.c"), ["packaging/russet.conf"]);
}

#[test]
fn the_debian_package_holds_what_it_should() {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        return skip("there is no dpkg-deb");
    }
    let output = std::env::temp_dir().join(format!("russet-deb-{}", std::process::id()));
    let mut build = Command::new("packaging/debian/build.sh");
    // Any program will do: it is not run.
    build.args(["--binary", "/bin/true", "--version", "1.2.3", "--output"]).arg(&output);
    let built = text(&run(&mut build));
    let package = built.trim();
    assert!(package.contains("russet_1.2.3_") && package.ends_with(".deb"), "{package}");
    let listed = text(&run(Command::new("dpkg-deb").args(["--contents", package])));
    for path in [
        "./usr/bin/russet",
        "./lib/systemd/system/russet.service",
        "./etc/init.d/russet",
        "./etc/russet/russet.conf",
        "./usr/share/man/man1/russet.1.gz",
        "./usr/share/man/man5/russet.conf.5.gz",
        "./usr/share/bash-completion/completions/russet",
        "./usr/share/doc/russet/copyright",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(path)), "no {path} in {listed}");
    }
    let fields = text(&run(Command::new("dpkg-deb").args(["--field", package])));
    assert!(fields.contains("Depends: ") && fields.contains("adduser"), "{fields}");
    std::fs::remove_dir_all(output).unwrap();
}
