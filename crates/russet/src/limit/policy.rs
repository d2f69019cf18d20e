//! Ready policies: attempts at one-time passwords, and throttled logins.

use super::{Decision, Limit, Limiter, LimiterStats, Outage, Subject};
use crate::error::{Error, Result};
use crate::key::Scope;
use crate::kit::Kit;
use crate::retry::RequestId;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Attempts at a one-time password, per phone number.
const OTP_ATTEMPTS_MAX: u64 = 5;
const OTP_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Five attempts at one-time passwords per phone number in ten minutes from the first. The number
/// is never stored: the kit needs a [secret](crate::Builder::secret).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::limit::policy::OtpAttempts;
///
/// let kit = russet::Kit::builder().secret("from the vault").embedded(Default::default())?;
/// let otp = OtpAttempts::new(&kit)?;
/// for phone in ["+1 202 555 0143", "0012025550143", "+1 (202) 555-0143", "+1-202-555-0143"] {
///     assert!(otp.attempt("acme", phone, None).await?.is_allowed());
/// }
/// assert!(otp.attempt("acme", "+12025550143", None).await?.is_allowed());
/// assert!(!otp.attempt("acme", "+1 202 555 0143", None).await?.is_allowed());
/// otp.succeeded("acme", "+12025550143").await?;
/// assert!(otp.attempt("acme", "+12025550143", None).await?.is_allowed());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct OtpAttempts {
    limiter: Limiter,
}

impl OtpAttempts {
    /// While the store can't be reached no attempt is allowed.
    pub fn new(kit: &Kit) -> Result<OtpAttempts> {
        let limit = Limit::window("attempts", OTP_ATTEMPTS_MAX, OTP_WINDOW)?;
        let limiter = Limiter::new(kit, "otp", [limit], Outage::Deny)?;
        Ok(OtpAttempts { limiter })
    }

    /// Must be called before the password is compared.
    pub async fn attempt(
        &self,
        tenant: &str,
        phone: &str,
        request: Option<&RequestId>,
    ) -> Result<Decision> {
        self.limiter.check(otp_subject(tenant, phone)?, 1, request).await
    }

    /// What this handle and its clones have decided.
    pub fn stats(&self) -> LimiterStats {
        self.limiter.stats()
    }

    /// The password was right: earlier attempts no longer count.
    pub async fn succeeded(&self, tenant: &str, phone: &str) -> Result<()> {
        self.limiter.reset(otp_subject(tenant, phone)?).await
    }
}

fn otp_subject(tenant: &str, phone: &str) -> Result<Scope> {
    Ok(Scope::from(tenant).and_sensitive(normal_phone(phone)?))
}

/// Digits in a phone number, country code included (E.164).
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// The same number always in the same form: `+` and digits. A number without a country code is not
/// told from one of another country: it must have one.
fn normal_phone(phone: &str) -> Result<String> {
    let invalid = || Error::invalid("a phone number is + or 00, country code and number");
    let signs: String = phone.chars().filter(|it| !" -./()\u{a0}".contains(*it)).collect();
    let digits = signs.strip_prefix('+').or_else(|| signs.strip_prefix("00"));
    let digits = digits.ok_or_else(invalid)?;
    if !PHONE_DIGITS.contains(&digits.len()) || !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Err(invalid());
    }
    Ok(format!("+{digits}"))
}

/// Logins: five wrong ones per account and address in a quarter of an hour, fifty per account in a
/// day from wherever, a hundred per address in an hour. So one address can't guess, many together
/// can't either, and nobody is locked out by what a stranger tries from elsewhere, short of fifty a
/// day. The first two are decided in one step; the address is in another slot, and is given back
/// if they deny.
///
/// Names and addresses are never stored: the kit needs a [secret](crate::Builder::secret).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::limit::policy::{Login, LoginThrottle};
///
/// let kit = russet::Kit::builder().secret("from the vault").embedded(Default::default())?;
/// let throttle = LoginThrottle::new(&kit)?;
/// let login = Login { tenant: "acme", account: "ann@example.org", address: "192.0.2.7" };
/// let decision = throttle.attempt(&login, None).await?;
/// if decision.is_allowed() {
///     // Compare the password; if it is right:
///     throttle.succeeded(&login, &decision).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LoginThrottle {
    accounts: Limiter,
    addresses: Limiter,
}

/// What a throttle and its clones have decided in this process. An attempt that the address allows
/// is decided by the account too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoginStats {
    /// By account, and by account and address.
    pub accounts: LimiterStats,
    /// By address alone.
    pub addresses: LimiterStats,
}

/// Who tries to log in, and from where.
#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// Accounts of different tenants share nothing.
    pub tenant: &'a str,
    /// As it is looked up: whether case matters is up to the caller.
    pub account: &'a str,
    /// Of the client, as `203.0.113.7`.
    pub address: &'a str,
}

/// Says nothing of who it is.
impl std::fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Login")
    }
}

impl LoginThrottle {
    /// While the store can't be reached no login is allowed.
    pub fn new(kit: &Kit) -> Result<LoginThrottle> {
        let accounts =
            [Limit::window("from-address", 5, 15 * MINUTE)?, Limit::window("account", 50, DAY)?];
        let addresses = [Limit::sliding("address", 100, HOUR)?];
        Ok(LoginThrottle {
            accounts: Limiter::new(kit, "login", accounts, Outage::Deny)?,
            addresses: Limiter::new(kit, "login", addresses, Outage::Deny)?,
        })
    }

    /// Must be called before the password is compared.
    pub async fn attempt(
        &self,
        login: &Login<'_>,
        request: Option<&RequestId>,
    ) -> Result<Decision> {
        let by_address = self.addresses.check(login.address(), 1, request).await?;
        if !by_address.is_allowed() {
            return Ok(by_address);
        }
        let decision = self.accounts.check(login.subject(), 1, request).await;
        if !decision.as_ref().is_ok_and(Decision::is_allowed)
            && let Some(charge) = by_address.charge()
        {
            // If this fails the address has one attempt less for an hour.
            let _ = self.addresses.refund(charge).await;
        }
        decision
    }

    /// What this handle and its clones have decided.
    pub fn stats(&self) -> LoginStats {
        LoginStats { accounts: self.accounts.stats(), addresses: self.addresses.stats() }
    }

    /// The password was right: this attempt does not count, nor do wrong ones from this address
    /// before it. Those from elsewhere do: they may not be the owner's.
    pub async fn succeeded(&self, login: &Login<'_>, decision: &Decision) -> Result<()> {
        if let Some(charge) = decision.charge() {
            let _returned = self.accounts.refund(charge).await?;
        }
        self.accounts.reset_limit(login.subject(), "from-address").await
    }
}

impl Login<'_> {
    fn subject(&self) -> Subject {
        let account = Scope::from(self.tenant).and_sensitive(self.account);
        Subject::from(account).of("from-address", Scope::sensitive(self.address))
    }

    fn address(&self) -> Scope {
        Scope::from("address").and_sensitive(self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phone_number_has_one_form() {
        for phone in ["+49 30 901820", "0049 (30) 90-18-20", "+4930901820"] {
            assert_eq!(normal_phone(phone).unwrap(), "+4930901820");
        }
        for phone in ["", "030901820", "+", "+12", "+49 30 x", "+1234567890123456"] {
            assert!(normal_phone(phone).is_err(), "{phone}");
        }
    }
}
