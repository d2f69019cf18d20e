#![forbid(unsafe_code)]
//! Measures Russet next to a peer and a floor: one command starts them all, drives each with the
//! same load in turn, and prints tables. README.md says how to run it and how to read them.

mod client;
mod compare;
mod cpu;
mod engine;
mod expiry;
mod failure;
mod figures;
mod find;
mod growth;
mod isolation;
mod load;
mod machine;
mod memory;
mod once;
mod options;
mod probe;
mod removal;
mod replies;
mod report;
mod servers;
mod template;
mod throughput;
mod workloads;

use failure::Result;
use options::{HELP, Options, Section};
use std::process::ExitCode;

/// The server's: the engine in this process is to work as it does there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Options::parse(&words).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("russet-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    if options.wants_help {
        print!("{HELP}");
        return Ok(());
    }
    let mut lines = machine::describe();
    if let Some(builds) = &options.builds {
        let table = compare::run(options, builds)?;
        let text: String = lines.iter().map(|line| format!("- {line}\n")).collect();
        let text = format!("{text}\n{table}");
        println!("{text}");
        return options.markdown.as_ref().map_or(Ok(()), |path| report::write(path, &text));
    }
    let field = find::field(options)?;
    lines.extend(field.notes.iter().cloned());
    if options.is_quick {
        lines.push("A quick run: it shows that everything works, not how fast it is".into());
    }
    let mut text = String::from("# Benchmarks\n\n");
    text.extend(lines.iter().map(|line| format!("- {line}\n")));
    println!("{text}");
    for section in &options.sections {
        let table = match section {
            Section::Throughput => throughput::run(options, &field)?,
            Section::Memory => memory::run(options, &field)?,
            Section::Isolation => isolation::run(options, &field, &isolation::LIST)?,
            Section::Busy => isolation::run(options, &field, &isolation::SCRIPT)?,
            Section::Once => once::run(options, &field)?,
            Section::Growth => growth::run(options, &field)?,
            Section::Expiry => expiry::run(options, &field)?,
            Section::Removal => removal::run(options, &field)?,
            Section::Engine => engine::run(options)?,
        };
        println!("{table}");
        text.push_str(&format!("\n{table}"));
        // After each section, so that what was measured outlives a failure later on.
        if let Some(path) = &options.markdown {
            report::write(path, &text)?;
        }
    }
    Ok(())
}
