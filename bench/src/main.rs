#![forbid(unsafe_code)]
//! Measures Russet next to a peer and a floor: one command starts them all, drives each with the
//! same load in turn, and prints tables. README.md says how to run it and how to read them.

mod builds;
mod calls;
mod client;
mod compare;
mod cpu;
mod embedded;
mod engine;
mod eviction;
mod expiry;
mod failure;
mod figures;
mod find;
mod growth;
mod instructions;
mod isolation;
mod load;
mod loading;
mod log;
mod lua;
mod machine;
mod memory;
mod once;
mod options;
mod probe;
mod removal;
mod replies;
mod report;
mod servers;
mod settings;
mod snapshot;
mod sweep;
mod template;
mod throughput;
mod tls;
mod toolkit;
mod values;
mod workloads;

use failure::Result;
use find::Field;
use options::{Comparison, HELP, Options, Section};
use report::Table;
use std::process::ExitCode;

/// The server's: the engine in this process is to work as it does there.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == [machine::TOUCH] {
        machine::touch_memory();
        return ExitCode::SUCCESS;
    }
    match Options::parse(&args).and_then(|options| run(&options)) {
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
    if !options.is_quick && !options.counts_instructions() {
        machine::have_memory_touched()?;
    }
    if let Some((comparison, builds)) = &options.builds {
        let table = match comparison {
            Comparison::Time => compare::run(options, builds)?,
            Comparison::Instructions => instructions::run(options, builds)?,
        };
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
        let tables = measure(*section, options, &field)?;
        for table in tables {
            println!("{table}");
            text.push_str(&format!("\n{table}"));
        }
        // After each section, so that what was measured outlives a failure later on.
        if let Some(path) = &options.markdown {
            report::write(path, &text)?;
        }
    }
    Ok(())
}

fn measure(section: Section, options: &Options, field: &Field) -> Result<Vec<Table>> {
    let table = match section {
        Section::Throughput => throughput::run(options, field)?,
        Section::Memory => memory::run(options, field)?,
        Section::Calls => calls::run(options, field)?,
        Section::Isolation => {
            let all = isolation::ALL.iter();
            return all.map(|one| isolation::run(options, field, one)).collect();
        }
        Section::Busy => isolation::run(options, field, &isolation::SCRIPT)?,
        Section::Tls => tls::run(options, field)?,
        Section::Once => once::run(options, field)?,
        Section::Settings => settings::run(options, field)?,
        Section::Lua => lua::run(options, field)?,
        Section::Growth => growth::run(options, field)?,
        Section::Expiry => expiry::run(options, field)?,
        Section::Eviction => eviction::run(options, field)?,
        Section::Removal => removal::run(options, field)?,
        Section::Load => loading::run(options, field)?,
        Section::Log => return log::run(options, field),
        Section::Snapshot => snapshot::run(options, field)?,
        Section::Values => values::run(options, field)?,
        Section::Engine => engine::run(options)?,
        Section::Embedded => embedded::run(options)?,
        Section::Toolkit => toolkit::run(options, field)?,
        Section::Sweep => sweep::run(options, field)?,
    };
    Ok(vec![table])
}
