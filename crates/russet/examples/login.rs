//! Logins and one-time passwords that can't be guessed.

use russet::Kit;
use russet::limit::policy::{Login, LoginThrottle, OtpAttempts};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let builder = Kit::builder().app("example-login").secret("from the vault");
    let kit = match std::env::var("RUSSET_URL") {
        Ok(urls) if urls.contains(',') => builder.cluster(urls.split(',')).await?,
        Ok(url) => builder.connect(&url).await?,
        Err(_) => builder.embedded(russet::Options::default())?,
    };
    let account = format!("ann-{}@example.org", std::process::id());
    let throttle = LoginThrottle::new(&kit)?;
    let login = Login { tenant: "acme", account: &account, address: "192.0.2.7" };
    for guess in ["12345", "letmein", "secret", "password", "qwerty", "correct horse"] {
        let decision = throttle.attempt(&login, None).await?;
        if !decision.is_allowed() {
            println!("{guess}: not even compared; again in {:?}", decision.retry_after());
        } else if guess == "correct horse" {
            throttle.succeeded(&login, &decision).await?;
        } else {
            println!("{guess}: wrong");
        }
    }

    let otp = OtpAttempts::new(&kit)?;
    let phone = format!("+1 202 555 {:04}", std::process::id() % 10_000);
    while otp.attempt("acme", &phone, None).await?.is_allowed() {
        println!("a one-time password was compared");
    }
    otp.succeeded("acme", &phone).await?;
    Ok(())
}
