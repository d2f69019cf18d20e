//! Tokens for an API that can be revoked, and a link to set a new password that works once.

use russet::session::User;
use russet::token::reset::ResetTokens;
use russet::token::{Issued, NewToken, Policy, Tokens};
use russet::{Kit, RequestId};
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let kit = Kit::from_env().await?;
    let user = User::new("acme", "ann");
    let policy = Policy { tokens_max: 100, safety: Duration::from_secs(60) };
    let tokens = Tokens::new(&kit, policy)?.audited(|event| println!("audit: {:?}", event.action));

    let new = NewToken { kind: "api", scopes: "read", ttl: Duration::from_secs(3600) };
    let Issued::Issued(token) = tokens.issue(&user, &new).await? else {
        return Err("too many tokens".into());
    };
    println!("a request: {:?}", tokens.check(&token).await?);
    println!("revoked: {:?}", tokens.revoke_all(&user, "stolen").await?);
    println!("a request: {:?}", tokens.check(&token).await?);

    let resets = ResetTokens::new(&kit, "password", Duration::from_secs(900))?;
    let link = resets.issue(&user).await?;
    let click = RequestId::random();
    println!("the link: {:?}", resets.consume(&link, Some(&click)).await?);
    println!("sent again: {:?}", resets.consume(&link, Some(&click)).await?);
    println!("clicked again: {:?}", resets.consume(&link, None).await?);
    Ok(())
}
