//! Log in with a second factor, use the session, log out everywhere.

use russet::Kit;
use russet::session::{Created, NewSession, Policy, Rotated, Sessions, Timeouts, User};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let timeouts =
        Timeouts { idle: Duration::from_secs(1800), absolute: Duration::from_secs(12 * 3600) };
    let sessions = Sessions::new(&kit, Policy::new(timeouts, 5))?;
    let user = User::new("acme", "ann");

    let new = NewSession::of(&user).from("203.0.113.7", "a browser").mfa_required();
    let Created::Created(id) = sessions.create(&new).await? else {
        return Err("too many sessions".into());
    };
    println!("logged in: {:?}", sessions.authorize(&id).await?);
    println!("asked for a code: {:?}", sessions.begin_mfa(&id, "493817").await?);
    println!("a wrong code: {:?}", sessions.verify_mfa(&id, "000000", None).await?);
    println!("the right code: {:?}", sessions.verify_mfa(&id, "493817", None).await?);
    // The rights have changed, and so does the id.
    let Rotated::Rotated(id) = sessions.rotate(&id).await? else {
        return Err("the session is gone".into());
    };
    println!("a request: {:?}", sessions.touch(&id).await?);
    println!("log out everywhere: {:?}", sessions.revoke_all(&user, "logout").await?);
    println!("a late request: {:?}", sessions.touch(&id).await?);
    Ok(())
}
