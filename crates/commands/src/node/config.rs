//! The configuration: one table says what every directive is; from it follow reading files and
//! the command line, the values that the rest of the server reads, and CONFIG GET, SET and
//! REWRITE. What a changed value means to a part of the server is that part's business: it is
//! told by the `apply` of `Config::set`.

mod amounts;
mod change;
mod check;
mod directive;
mod effect;
mod error;
mod events;
mod include;
mod load;
mod rewrite;
mod settings;
mod spec;
mod startup;
mod store;
mod table;
mod users;
mod value;

pub use amounts::{BufferLimit, ClientClass, SavePoint};
pub use change::{Requester, Undo};
pub use check::{CheckReport, CheckedLine, Verdict};
pub use directive::Directive;
pub(crate) use error::os_text;
pub use error::{ConfigError, Fault, Position};
pub use events::EventFlags;
pub(crate) use rewrite::replace as replace_file;
pub use settings::Settings;
pub use spec::{Change, Effect, Kind, Spec, TextCheck};
pub use startup::{HIDDEN, Startup, without_secrets};
pub use store::Config;
pub use table::{AREAS, Area};

#[cfg(test)]
mod tests;
