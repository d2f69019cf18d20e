//! Never more than two exports at a time, over all processes. `RUSSET_URL` names a server; without
//! it all is in this process.

use russet::Kit;
use russet::lease::Semaphore;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let exports = Semaphore::new(&kit, "exports", Duration::from_secs(30), 2)?;
    let mut tasks = Vec::new();
    for number in 1..=5 {
        let exports = exports.clone();
        tasks.push(tokio::spawn(async move {
            let attempt = exports.acquire(Duration::from_secs(10)).await?;
            let Some(permit) = attempt.held() else {
                println!("export {number} gives up");
                return Ok(());
            };
            println!("export {number} runs");
            tokio::time::sleep(Duration::from_millis(50)).await;
            permit.release().await.map(drop)
        }));
    }
    for task in tasks {
        let done: russet::Result<()> = task.await?;
        done?;
    }
    println!("{:?}", exports.stats().await?);
    Ok(())
}
