//! Passwords, access control, and what is locked until asked for.

use super::super::directive::Directive as D;
use super::super::spec::*;

const WHO: &[&str] = &["no", "yes", "local"];

pub(super) const SPECS: &[Spec] = &[
    text(D::RequirePass, "", "Password of the default user; empty is none").secret(),
    text(D::AclFile, "", "File of users").at_start(),
    int(D::AclLogMaxLen, 128, 0..=i64::MAX, "Entries of ACL LOG"),
    choice(
        D::AclPubsubDefault,
        "resetchannels",
        &["allchannels", "resetchannels"],
        "Channels that a new user may use",
    ),
    choice(D::EnableProtectedConfigs, "no", WHO, "Who may change directives that name files")
        .at_start(),
    choice(D::EnableDebugCommand, "no", WHO, "Who may use DEBUG").at_start(),
    choice(D::EnableModuleCommand, "no", WHO, "Who may use MODULE").at_start().only(&["no"]),
];
