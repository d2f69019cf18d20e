#![forbid(unsafe_code)]
//! Workflows shared between this program and clients in other languages, at the same time:
//!
//!     shared 'python3 tests/clients/toolkit.py' 'java -cp ... JedisToolkit.java'
//!
//! `RUSSET_PORT` says where the server is. Each command gets `TOOLKIT_APP`, does its part by FCALL
//! and prints a line for all that it was granted: `admitted`, `sold <order>`, `acked <job>`,
//! `ran <request>`, `held`. This program does the same by the kit, and adds all up.

use russet::idempotency::{Idempotency, IdempotencyKey, Outcome, Ttls};
use russet::lease::{Attempt, Lease, Terms};
use russet::limit::{Decision, Limit, Limiter, Outage};
use russet::queue::{Acked, Bounds, Jobs, NewJob};
use russet::sale::{self, Bought, Sale, Window};
use russet::{Kit, Request};
use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

/// What each side tries, and what there is in all. The clients have the same numbers.
const CHECKS: u32 = 60;
const LIMIT: u64 = 80;
const BUYERS: u32 = 40;
const STOCK: u32 = 50;
const JOBS: u32 = 90;
const REQUESTS: u32 = 20;
const TURNS: u32 = 15;
const HOUR: Duration = Duration::from_secs(3600);

type Outcomes = Result<Vec<String>, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let port = std::env::var("RUSSET_PORT")?;
    let app = format!("shared-{:08x}", rand::random::<u32>());
    let url = format!("redis://127.0.0.1:{port}");
    let kit = Kit::builder().app(&app).timeout(Duration::from_secs(30)).connect(&url).await?;
    let load = Request::new("FUNCTION").arg("LOAD").arg("REPLACE").arg(russet::functions());
    kit.call(&load).await?;
    prepare(&kit).await?;

    let commands: Vec<String> = std::env::args().skip(1).collect();
    let clients: Vec<_> = commands
        .iter()
        .map(|command| {
            let (command, app) = (command.clone(), app.clone());
            tokio::task::spawn_blocking(move || client(&command, &app))
        })
        .collect();
    let mut lines = take_part(&kit).await?;
    for client in clients {
        lines.extend(client.await??);
    }
    check(&lines, commands.len())?;
    println!("shared by {} clients and this program: ok", commands.len());
    Ok(())
}

async fn prepare(kit: &Kit) -> Result<(), Box<dyn Error + Send + Sync>> {
    let window = Window::ForNext(HOUR);
    let terms = sale::Terms { stock: STOCK, window, hold: None, keep: HOUR, outbox_max: 1000 };
    let _ = Sale::new(kit, "sale")?.open(&terms).await?;
    let jobs = jobs(kit)?;
    for number in 0..JOBS {
        let _ = jobs.schedule(&NewJob::new(number.to_string()), None).await?;
    }
    Ok(())
}

fn jobs(kit: &Kit) -> russet::Result<Jobs> {
    let bounds = Bounds { capacity: 1000, ttl: HOUR };
    Jobs::builder(kit, "jobs", bounds).visibility(HOUR).build()
}

/// Runs a client to its end.
fn client(command: &str, app: &str) -> Outcomes {
    let run = std::process::Command::new("sh")
        .args(["-c", command])
        .env("TOOLKIT_APP", app)
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !run.status.success() {
        return Err(format!("{command}: {}", run.status).into());
    }
    Ok(String::from_utf8(run.stdout)?.lines().map(str::to_owned).collect())
}

async fn take_part(kit: &Kit) -> Outcomes {
    let mut lines = admitted(kit).await?;
    lines.extend(sold(kit).await?);
    lines.extend(acked(kit).await?);
    lines.extend(ran(kit).await?);
    lines.extend(held(kit).await?);
    Ok(lines)
}

async fn admitted(kit: &Kit) -> Outcomes {
    let limits = [Limit::window("hourly", LIMIT, HOUR * 24 * 365)?];
    let limiter = Limiter::new(kit, "api", limits, Outage::Deny)?;
    let mut lines = Vec::new();
    for _ in 0..CHECKS {
        if let Decision::Allowed(_) = limiter.check("user", 1, None).await? {
            lines.push("admitted".to_owned());
        }
    }
    Ok(lines)
}

async fn sold(kit: &Kit) -> Outcomes {
    let sale = Sale::new(kit, "sale")?;
    let mut lines = Vec::new();
    for number in 0..BUYERS {
        if let Bought::Ordered { order, .. } = sale.buy(format!("rust-{number}"), None).await? {
            lines.push(format!("sold {}", String::from_utf8_lossy(order.as_bytes())));
        }
    }
    Ok(lines)
}

async fn acked(kit: &Kit) -> Outcomes {
    let jobs = jobs(kit)?;
    let mut lines = Vec::new();
    loop {
        let claimed = jobs.claim_due(2, None).await?.jobs();
        if claimed.is_empty() {
            return Ok(lines);
        }
        for job in claimed {
            if jobs.ack(&job.receipt, None).await? == Acked::Acked {
                lines.push(format!("acked {}", String::from_utf8_lossy(&job.payload)));
            }
        }
    }
}

async fn ran(kit: &Kit) -> Outcomes {
    let requests = Idempotency::new(kit, "order", Ttls { claim: HOUR, result: HOUR })?;
    let mut lines = Vec::new();
    for number in 0..REQUESTS {
        let key = IdempotencyKey::new("acme", number.to_string());
        if let Outcome::Claimed(claim) = requests.claim(&key, "the request").await? {
            lines.push(format!("ran {number}"));
            let _ = claim.complete(number.to_string()).await?;
        }
    }
    Ok(lines)
}

/// Holders add to a counter in two commands, which only a lease makes one.
async fn held(kit: &Kit) -> Outcomes {
    let lease = Lease::new(kit, "report", Terms::new(Duration::from_secs(60)))?;
    let family = russet::key::Family { purpose: "shared", version: 1 };
    let key = kit.keys(family, "report")?.key("total");
    let mut lines = Vec::new();
    while lines.len() < TURNS as usize {
        let Attempt::Held(guard) = lease.acquire(Duration::from_secs(60)).await? else {
            continue;
        };
        let total = kit.call(&Request::new("GET").key(&key)).await?.as_int().unwrap_or(0);
        let set = Request::new("SET").key(&key).arg(total + 1).arg("PX").arg(HOUR);
        kit.call(&set).await?;
        let _ = guard.release().await?;
        lines.push(format!("held {}", total + 1));
    }
    Ok(lines)
}

/// Whatever was granted was granted once, and all of it.
fn check(lines: &[String], clients: usize) -> Result<(), String> {
    let count =
        |name: &str| lines.iter().filter(|line| line.split(' ').next() == Some(name)).count();
    let everyone = clients + 1;
    let expected = [
        ("admitted", (LIMIT as usize).min(CHECKS as usize * everyone)),
        ("sold", (STOCK as usize).min(BUYERS as usize * everyone)),
        ("acked", JOBS as usize),
        ("ran", REQUESTS as usize),
        ("held", TURNS as usize * everyone),
    ];
    for (name, wanted) in expected {
        let found = count(name);
        println!("{name}: {found}");
        if found != wanted {
            return Err(format!("{name}: {found} instead of {wanted}"));
        }
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for line in lines.iter().filter(|line| *line != "admitted") {
        *seen.entry(line).or_default() += 1;
    }
    match seen.iter().find(|(_line, times)| **times > 1) {
        Some((line, times)) => Err(format!("{line}: {times} times")),
        None => Ok(()),
    }
}
