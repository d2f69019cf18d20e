//! A client that is known by its TLS certificate: `tls-auth-clients-user`.

use super::Login;
use crate::call::session::Session;
use crate::node::Node;

impl Node {
    /// A checked certificate names these users: its client is logged in as the first of them that
    /// exists and is on. If none does, it stays who it was, and ACL LOG has the last name.
    pub fn log_in_by_certificate(&self, session: &mut Session, names: &[&[u8]]) {
        let user =
            names.iter().find_map(|name| self.acl.user(name).filter(|user| user.rights().is_on));
        match (user, names.last()) {
            (Some(user), _) => session.log_in(Login::of_user(&self.acl, user)),
            (None, Some(name)) => self.note_unknown_certificate(session, name),
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::TestServer;

    #[test]
    fn a_certificate_logs_in_the_first_user_that_exists_and_is_on() {
        let mut server = TestServer::new();
        server.run(&["ACL", "SETUSER", "app", "on", "allkeys", "+@all"]);
        server.run(&["ACL", "SETUSER", "gone", "off", "allkeys", "+@all"]);
        let node = server.worker.node.clone();
        let session = &mut server.session;
        node.log_in_by_certificate(session, &[b"nobody", b"gone", b"app"]);
        assert_eq!(session.card.names().user, b"app");
        // Names that lead nowhere change nothing.
        node.log_in_by_certificate(session, &[]);
        node.log_in_by_certificate(session, &[b"nobody", b"gone"]);
        assert_eq!(session.card.names().user, b"app");
        let entries = node.acl.log.newest(10);
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].reason, &entries[0].user[..]), ("tls-cert", &b"gone"[..]));
    }
}
