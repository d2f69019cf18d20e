//! TLS. Until it is there, no port may ask for it.

use super::super::directive::Directive as D;
use super::super::spec::*;

pub(super) const SPECS: &[Spec] = &[
    int(D::TlsPort, 0, 0..=PORT_MAX, "Port for TLS; 0 is none").only(&["0"]),
    flag(D::TlsReplication, false, "Replicate over TLS").only(&["no"]),
    flag(D::TlsCluster, false, "Use TLS on the bus of the cluster").only(&["no"]),
    text(D::TlsCertFile, "", "Certificate of the server").without_effect(),
    text(D::TlsKeyFile, "", "Key of the server").without_effect(),
    text(D::TlsKeyFilePass, "", "Password of that key").secret().without_effect(),
    text(D::TlsClientCertFile, "", "Certificate for outgoing connections").without_effect(),
    text(D::TlsClientKeyFile, "", "Key for outgoing connections").without_effect(),
    text(D::TlsClientKeyFilePass, "", "Password of that key").secret().without_effect(),
    text(D::TlsDhParamsFile, "", "Diffie-Hellman parameters").without_effect(),
    text(D::TlsCaCertFile, "", "Certificates that clients are checked against").without_effect(),
    text(D::TlsCaCertDir, "", "Directory of such certificates").without_effect(),
    choice(
        D::TlsAuthClients,
        "yes",
        &["no", "yes", "optional"],
        "Whether clients must show a certificate",
    )
    .without_effect(),
    choice(
        D::TlsAuthClientsUser,
        "off",
        &["CN", "URI", "off"],
        "Field of the certificate that names the user",
    )
    .only(&["off"]),
    text(D::TlsProtocols, "", "Versions of TLS to speak").without_effect(),
    text(D::TlsCiphers, "", "Ciphers up to TLS 1.2").without_effect(),
    text(D::TlsCiphersuites, "", "Ciphers of TLS 1.3").without_effect(),
    flag(D::TlsPreferServerCiphers, false, "Prefer our order of ciphers").without_effect(),
    flag(D::TlsSessionCaching, true, "Let clients resume sessions").without_effect(),
    int(D::TlsSessionCacheSize, 20_480, 0..=INT_MAX, "Sessions remembered").without_effect(),
    int(D::TlsSessionCacheTimeout, 300, 0..=INT_MAX, "Seconds that a session is remembered")
        .without_effect(),
    int(
        D::TlsAutoReloadInterval,
        0,
        0..=INT_MAX,
        "Seconds between looks for new certificates; 0 is never",
    )
    .without_effect(),
    int(
        D::MaxNewTlsConnectionsPerCycle,
        1,
        1..=1000,
        "TLS connections accepted in one turn of an event loop",
    )
    .without_effect(),
];
