//! A session as it is stored, field by field, and what can be wrong with it.

use super::id::{SessionHandle, User};
use crate::error::{Error, Result};
use crate::observe;
use crate::reply::{Envelope, Reply};
use std::time::Duration;

/// The newest layout that this version writes and reads.
const SCHEMA_VERSION: u64 = 1;

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// What a password grants.
    Active,
    /// Nothing yet: a challenge is to be met first.
    MfaRequired,
    /// What a second factor grants.
    MfaVerified,
    /// Nothing any more.
    Revoked,
}

impl Status {
    pub(super) fn name(self) -> &'static str {
        match self {
            Status::Active => "ACTIVE",
            Status::MfaRequired => "MFA_REQUIRED",
            Status::MfaVerified => "MFA_VERIFIED",
            Status::Revoked => "REVOKED",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let all = [Status::Active, Status::MfaRequired, Status::MfaVerified, Status::Revoked];
        all.into_iter().find(|status| status.name() == text)
    }
}

/// How well the user is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuthLevel {
    /// By one factor.
    Basic,
    /// By two.
    Mfa,
}

impl AuthLevel {
    pub(super) fn name(self) -> &'static str {
        match self {
            AuthLevel::Basic => "BASIC",
            AuthLevel::Mfa => "MFA",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [AuthLevel::Basic, AuthLevel::Mfa].into_iter().find(|level| level.name() == text)
    }
}

/// Whose request it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthContext {
    /// Who has logged in.
    pub user: User,
    /// How well that is known.
    pub auth_level: AuthLevel,
}

/// What a request with this session may do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Authorization {
    /// What this user may.
    Granted(AuthContext),
    /// Only meet its challenge.
    MfaRequired(AuthContext),
    /// Nothing: it was ended.
    Revoked,
    /// It has ended, or never was.
    Missing,
    /// The field that is missing or wrong. Treat it as missing, and look into it.
    Corrupt(&'static str),
}

/// What was found of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Lookup {
    /// Whether it grants anything is in its status.
    Found(Session),
    /// A challenge was to be met, but its time is over: ask anew.
    ExpiredChallenge(Session),
    /// It has ended, or never was.
    Missing,
    /// The field that is missing or wrong.
    Corrupt(&'static str),
}

/// A whole session. Times are in milliseconds since 1970, by the server's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Which one, without a way to use it.
    pub handle: SessionHandle,
    /// Who has logged in.
    pub user: User,
    /// What it may do.
    pub status: Status,
    /// How well the user is known.
    pub auth_level: AuthLevel,
    /// The log-in.
    pub created_at_ms: u64,
    /// The last touch that renewed its TTL.
    pub last_seen_at_ms: u64,
    /// When it got its present id, if that is not its first.
    pub last_rotated_at_ms: Option<u64>,
    /// When it ends, however much it is used.
    pub absolute_at_ms: u64,
    /// Since the last one that was met.
    pub failed_mfa_attempts: u64,
    /// When the second factor was given, if it was.
    pub mfa_verified_at_ms: Option<u64>,
    /// When it was ended, if it was.
    pub revoked_at_ms: Option<u64>,
    /// Why, in the words of who did it.
    pub revoked_reason: Option<String>,
    /// Until it ends if it is not used.
    pub expires_in: Duration,
}

/// The fields of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    SchemaVersion,
    UserId,
    TenantId,
    Status,
    AuthLevel,
    CreatedAt,
    LastSeenAt,
    LastRotatedAt,
    AbsoluteAt,
    FailedMfaAttempts,
    MfaVerifiedAt,
    RevokedAt,
    RevokedReason,
}

/// In the order in which they are asked for.
pub(super) const FIELDS: [Field; 13] = [
    Field::SchemaVersion,
    Field::UserId,
    Field::TenantId,
    Field::Status,
    Field::AuthLevel,
    Field::CreatedAt,
    Field::LastSeenAt,
    Field::LastRotatedAt,
    Field::AbsoluteAt,
    Field::FailedMfaAttempts,
    Field::MfaVerifiedAt,
    Field::RevokedAt,
    Field::RevokedReason,
];

impl Field {
    pub fn name(self) -> &'static str {
        match self {
            Field::SchemaVersion => "schema_version",
            Field::UserId => "user_id",
            Field::TenantId => "tenant_id",
            Field::Status => "status",
            Field::AuthLevel => "auth_level",
            Field::CreatedAt => "created_at_ms",
            Field::LastSeenAt => "last_seen_at_ms",
            Field::LastRotatedAt => "last_rotated_at_ms",
            Field::AbsoluteAt => "absolute_at_ms",
            Field::FailedMfaAttempts => "failed_mfa_attempt_count",
            Field::MfaVerifiedAt => "mfa_verified_at_ms",
            Field::RevokedAt => "revoked_at_ms",
            Field::RevokedReason => "revoked_reason",
        }
    }
}

/// The field that makes a record unreadable.
type Corrupt = &'static str;

/// The values of a record, by field.
struct Values(Vec<Reply>);

impl Values {
    fn text(&self, field: Field) -> Result<Option<&str>, Corrupt> {
        let value = self.0.get(field as usize);
        match value.and_then(Reply::as_bytes) {
            Some(bytes) => std::str::from_utf8(bytes).map(Some).map_err(|_bytes| field.name()),
            None => Ok(None),
        }
    }

    fn required(&self, field: Field) -> Result<&str, Corrupt> {
        self.text(field)?.filter(|text| !text.is_empty()).ok_or(field.name())
    }

    fn number(&self, field: Field) -> Result<u64, Corrupt> {
        self.required(field)?.parse().map_err(|_text| field.name())
    }

    fn optional_number(&self, field: Field) -> Result<Option<u64>, Corrupt> {
        self.text(field)?.map(|text| text.parse().map_err(|_text| field.name())).transpose()
    }
}

/// What a step that reads the four fields has found.
pub(super) fn authorization(mut reply: Envelope) -> Result<Authorization> {
    observe::count("redis.session.find.count", "session", 1);
    match reply.status() {
        "FOUND" => {}
        "MISSING" => {
            observe::count("redis.session.find.miss.count", "session", 1);
            return Ok(Authorization::Missing);
        }
        "CORRUPT" => return Ok(Authorization::Corrupt(corrupt("type"))),
        _ => return Err(reply.unexpected()),
    }
    let mut text = |name: &'static str| match reply.take(name).map(Reply::into_bytes) {
        Some(Ok(Some(bytes))) if !bytes.is_empty() => String::from_utf8(bytes).map_err(|_| name),
        _ => Err(name),
    };
    let read = || {
        let user = User::new(text("tenant_id")?, text("user_id")?);
        let status = Status::parse(&text("status")?).ok_or("status")?;
        let auth_level = AuthLevel::parse(&text("auth_level")?).ok_or("auth_level")?;
        let context = AuthContext { user, auth_level };
        Ok(match status {
            Status::Active | Status::MfaVerified => Authorization::Granted(context),
            Status::MfaRequired => Authorization::MfaRequired(context),
            Status::Revoked => Authorization::Revoked,
        })
    };
    let mut read = read;
    Ok(read().unwrap_or_else(|field: Corrupt| Authorization::Corrupt(corrupt(field))))
}

/// What a step that reads all fields has found.
pub(super) fn lookup(handle: &SessionHandle, mut reply: Envelope) -> Result<Lookup> {
    observe::count("redis.session.find.count", "session", 1);
    match reply.status() {
        "FOUND" => {}
        "MISSING" => {
            observe::count("redis.session.find.miss.count", "session", 1);
            return Ok(Lookup::Missing);
        }
        "CORRUPT" => return Ok(Lookup::Corrupt(corrupt("type"))),
        _ => return Err(reply.unexpected()),
    }
    let values = Values(reply.list("values")?);
    if values.0.len() != FIELDS.len() {
        return Err(Error::Corrupt("a session of another number of fields".into()));
    }
    let bytes = values.0.iter().filter_map(Reply::as_bytes).map(<[u8]>::len).sum();
    observe::size("redis.session.hgetall.payload.bytes", "session", bytes);
    let expires_in = reply.duration("ttl_ms")?;
    let is_challenge_live = reply.int("is_challenge_live")? == 1;
    Ok(match session(handle, &values, expires_in) {
        Err(field) => Lookup::Corrupt(corrupt(field)),
        Ok(session) if session.status == Status::MfaRequired && !is_challenge_live => {
            Lookup::ExpiredChallenge(session)
        }
        Ok(session) => Lookup::Found(session),
    })
}

fn session(
    handle: &SessionHandle,
    values: &Values,
    expires_in: Duration,
) -> Result<Session, Corrupt> {
    let schema_version = values.number(Field::SchemaVersion)?;
    if schema_version < SCHEMA_VERSION {
        observe::count("redis.session.schema.old.count", "session", 1);
    } else if schema_version > SCHEMA_VERSION {
        return Err(Field::SchemaVersion.name());
    }
    let status = Status::parse(values.required(Field::Status)?).ok_or(Field::Status.name())?;
    let auth_level = AuthLevel::parse(values.required(Field::AuthLevel)?);
    let mfa_verified_at_ms = values.optional_number(Field::MfaVerifiedAt)?;
    let revoked_at_ms = values.optional_number(Field::RevokedAt)?;
    if status == Status::MfaVerified && mfa_verified_at_ms.is_none() {
        return Err(Field::MfaVerifiedAt.name());
    }
    if status == Status::Revoked && revoked_at_ms.is_none() {
        return Err(Field::RevokedAt.name());
    }
    Ok(Session {
        handle: handle.clone(),
        user: User::new(values.required(Field::TenantId)?, values.required(Field::UserId)?),
        status,
        auth_level: auth_level.ok_or(Field::AuthLevel.name())?,
        created_at_ms: values.number(Field::CreatedAt)?,
        last_seen_at_ms: values.number(Field::LastSeenAt)?,
        last_rotated_at_ms: values.optional_number(Field::LastRotatedAt)?,
        absolute_at_ms: values.number(Field::AbsoluteAt)?,
        failed_mfa_attempts: values.number(Field::FailedMfaAttempts)?,
        mfa_verified_at_ms,
        revoked_at_ms,
        revoked_reason: values.text(Field::RevokedReason)?.map(str::to_owned),
        expires_in,
    })
}

/// Counts and logs it.
fn corrupt(field: Corrupt) -> Corrupt {
    tracing::warn!(object = "session", key = "session:v1:{*}:state", field, "corrupt");
    observe::count("redis.session.find.corrupt.count", "session", 1);
    field
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_asked_for_in_their_order() {
        assert!(FIELDS.iter().enumerate().all(|(index, field)| *field as usize == index));
    }

    #[test]
    fn half_a_session_is_corrupt_and_says_why() {
        let handle = SessionHandle::new(b"tag", b"member".to_vec());
        let whole = ["1", "u", "t", "ACTIVE", "BASIC", "5", "5", "", "9", "0", "", "", ""];
        let values = |changed: Option<Field>, text: &'static str| {
            let reply = |(index, it): (usize, &&'static str)| {
                let is_changed = changed.is_some_and(|field| field as usize == index);
                match if is_changed { text } else { *it } {
                    "" => Reply::Nil,
                    text => Reply::Text(text.into()),
                }
            };
            Values(whole.iter().enumerate().map(reply).collect())
        };
        let read = |values: &Values| session(&handle, values, Duration::ZERO);
        assert!(read(&values(None, "")).is_ok());
        for (field, text) in [
            (Field::UserId, ""),
            (Field::CreatedAt, "soon"),
            (Field::Status, "LOST"),
            (Field::SchemaVersion, "2"),
            (Field::AbsoluteAt, "-1"),
        ] {
            assert_eq!(read(&values(Some(field), text)), Err(field.name()));
        }
        assert_eq!(read(&values(Some(Field::Status), "MFA_VERIFIED")), Err("mfa_verified_at_ms"));
        assert_eq!(read(&values(Some(Field::Status), "REVOKED")), Err("revoked_at_ms"));
    }
}
