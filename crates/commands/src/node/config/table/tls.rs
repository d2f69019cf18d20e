//! TLS. Of what this server opens itself, only MIGRATE's connections can be encrypted.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    int(D::TlsPort, 0, 0..=PORT_MAX, "Port for TLS; 0 is none"),
    flag(D::TlsReplication, false, "Replicate over TLS").only(&["no"]),
    flag(D::TlsCluster, false, "Connect to other servers of a cluster over TLS, as MIGRATE does"),
    text(D::TlsCertFile, "", "Certificate of the server").reread(),
    text(D::TlsKeyFile, "", "Key of the server").reread(),
    text(D::TlsKeyFilePass, "", "Password of that key").secret(),
    text(D::TlsClientCertFile, "", "Certificate for outgoing connections").reread(),
    text(D::TlsClientKeyFile, "", "Key for outgoing connections").reread(),
    text(D::TlsClientKeyFilePass, "", "Password of that key").secret(),
    text(D::TlsDhParamsFile, "", "Diffie-Hellman parameters").without_effect(),
    text(D::TlsCaCertFile, "", "Certificates that clients are checked against").reread(),
    text(D::TlsCaCertDir, "", "Directory of such certificates").reread(),
    choice(
        D::TlsAuthClients,
        "yes",
        &["no", "yes", "optional"],
        "Whether clients must show a certificate",
    ),
    choice(
        D::TlsAuthClientsUser,
        "off",
        &["CN", "URI", "off"],
        "Field of the certificate that names the user",
    ),
    text(D::TlsProtocols, "", "Versions of TLS to speak"),
    text(D::TlsCiphers, "", "Ciphers up to TLS 1.2"),
    text(D::TlsCiphersuites, "", "Ciphers of TLS 1.3"),
    flag(D::TlsPreferServerCiphers, false, "Prefer our order of ciphers"),
    flag(D::TlsSessionCaching, true, "Let clients resume sessions"),
    int(D::TlsSessionCacheSize, 20_480, 0..=INT_MAX, "Sessions remembered"),
    int(D::TlsSessionCacheTimeout, 300, 0..=INT_MAX, "Seconds that a session is remembered"),
    int(
        D::TlsAutoReloadInterval,
        0,
        0..=INT_MAX,
        "Seconds between looks for new certificates; 0 is never",
    ),
    int(
        D::MaxNewTlsConnectionsPerCycle,
        1,
        1..=1000,
        "TLS connections accepted in one turn of an event loop",
    ),
];
