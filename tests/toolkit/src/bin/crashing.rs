#![forbid(unsafe_code)]
//! Carries out numbered requests on an engine in this process until it is killed:
//!
//!     crashing <directory> <first number>
//!
//! It prints each number when the request has been carried out.

use russet_toolkit_tests::{Journal, durable};
use std::error::Error;
use std::path::PathBuf;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let directory = PathBuf::from(args.next().ok_or("no directory")?);
    let first: u64 = args.next().and_then(|it| it.to_str()?.parse().ok()).ok_or("no number")?;
    let kit = durable(&directory)?;
    let journal = Journal::open(&kit).await?;
    for number in first.. {
        journal.carry_out(number).await?;
        println!("{number}");
    }
    Ok(())
}
