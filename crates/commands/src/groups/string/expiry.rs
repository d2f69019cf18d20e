//! The options about time that SET, GETEX, MSETEX and INCREX share.

use super::integer;
use crate::error::Refusal;
use russet_base::UnixMillis;

/// How a time to live was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Ex,
    Px,
    ExAt,
    PxAt,
}

/// What was asked for, its number unread: a bad number is told after bad syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice<'a> {
    Time(Form, &'a [u8]),
    Keep,
    Persist,
}

/// The one option that a command knows beside the four with a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Besides {
    Keep,
    Persist,
}

/// What becomes of the expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deadline {
    /// Nothing was asked for.
    Unsaid,
    At(UnixMillis),
    Keep,
    Persist,
}

impl Deadline {
    /// The new expiry, if one was given.
    pub(crate) fn moment(self) -> Option<UnixMillis> {
        match self {
            Deadline::At(moment) => Some(moment),
            _ => None,
        }
    }
}

/// Collects the options of one command.
pub(crate) struct ExpiryOptions<'a> {
    besides: Besides,
    choice: Option<Choice<'a>>,
}

impl<'a> ExpiryOptions<'a> {
    pub(crate) fn new(besides: Besides) -> Self {
        ExpiryOptions { besides, choice: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.choice.is_none()
    }

    /// Whether a time was given, rather than KEEPTTL or PERSIST.
    pub(crate) fn is_time(&self) -> bool {
        matches!(self.choice, Some(Choice::Time(..)))
    }

    /// Takes an option; how many arguments it has; `None` if the argument is no such option or
    /// goes against one before.
    /// COMPAT: the same option may come again, and the last one counts (test `last_time_counts`).
    pub(crate) fn take(&mut self, arg: &[u8], next: Option<&'a [u8]>) -> Option<usize> {
        let is = |name: &str| arg.eq_ignore_ascii_case(name.as_bytes());
        let (choice, args_len) = match self.besides {
            Besides::Keep if is("KEEPTTL") => (Choice::Keep, 1),
            Besides::Persist if is("PERSIST") => (Choice::Persist, 1),
            _ => {
                let forms = [
                    ("EX", Form::Ex),
                    ("PX", Form::Px),
                    ("EXAT", Form::ExAt),
                    ("PXAT", Form::PxAt),
                ];
                let (_, form) = forms.into_iter().find(|(name, _)| is(name))?;
                (Choice::Time(form, next?), 2)
            }
        };
        let is_compatible = match (self.choice, choice) {
            (None, _) => true,
            (Some(Choice::Time(before, _)), Choice::Time(now, _)) => before == now,
            (Some(before), now) => before == now,
        };
        is_compatible.then(|| {
            self.choice = Some(choice);
            args_len
        })
    }

    /// Reads the number; `command` is named by the refusal.
    pub(crate) fn deadline(
        &self,
        now: UnixMillis,
        command: &'static str,
    ) -> Result<Deadline, Refusal> {
        let (form, number) = match self.choice {
            None => return Ok(Deadline::Unsaid),
            Some(Choice::Keep) => return Ok(Deadline::Keep),
            Some(Choice::Persist) => return Ok(Deadline::Persist),
            Some(Choice::Time(form, number)) => (form, number),
        };
        let amount = integer(number)?;
        let moment = match form {
            _ if amount <= 0 => None,
            Form::Ex => amount.checked_mul(1000).and_then(|ms| now.checked_plus_ms(ms)),
            Form::Px => now.checked_plus_ms(amount),
            Form::ExAt => amount.checked_mul(1000).map(UnixMillis),
            Form::PxAt => Some(UnixMillis(amount)),
        };
        moment.map(Deadline::At).ok_or(Refusal::InvalidExpire(command))
    }
}

/// A time to live that is an argument of its own: SETEX, PSETEX.
pub(crate) fn seconds_from(
    now: UnixMillis,
    number: &[u8],
    command: &'static str,
) -> Result<Deadline, Refusal> {
    let choice = Some(Choice::Time(Form::Ex, number));
    ExpiryOptions { besides: Besides::Keep, choice }.deadline(now, command)
}

/// As [`seconds_from`], in milliseconds.
pub(crate) fn millis_from(
    now: UnixMillis,
    number: &[u8],
    command: &'static str,
) -> Result<Deadline, Refusal> {
    let choice = Some(Choice::Time(Form::Px, number));
    ExpiryOptions { besides: Besides::Keep, choice }.deadline(now, command)
}
