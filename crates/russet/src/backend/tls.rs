//! How connections are made: addresses, and for `rediss://` the certificates of both ends.

use crate::error::{Error, Result};
use redis::{ConnectionInfo, IntoConnectionInfo};
#[cfg(feature = "tls")]
use std::fmt;

/// What connections over TLS are made with, beside the address. All are in PEM format.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use russet::backend::{ClientCertificate, TlsOptions};
/// use russet::Kit;
///
/// let client = ClientCertificate {
///     chain: std::fs::read("/etc/shop/client.crt")?,
///     key: std::fs::read("/etc/shop/client.key")?,
/// };
/// let tls = TlsOptions { ca: Some(std::fs::read("/etc/shop/ca.crt")?), client: Some(client) };
/// let kit = Kit::builder().tls(tls).connect("rediss://cache.example.org:6379").await?;
/// # let _ = kit;
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "tls")]
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// The certificates of the authorities that must vouch for a server. Without any these are the
    /// public ones of the web.
    pub ca: Option<Vec<u8>>,
    /// What is shown to servers that ask for a certificate (`tls-auth-clients`).
    pub client: Option<ClientCertificate>,
}

/// A certificate of this program, and the key that proves it.
#[cfg(feature = "tls")]
#[derive(Clone)]
pub struct ClientCertificate {
    /// The certificate, then those that lead to the authority.
    pub chain: Vec<u8>,
    /// Its private key, which may not need a password.
    pub key: Vec<u8>,
}

/// Says what there is, and nothing of its content.
#[cfg(feature = "tls")]
impl fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsOptions")
            .field("has_ca", &self.ca.is_some())
            .field("has_client", &self.client.is_some())
            .finish()
    }
}

/// Says nothing of its content.
#[cfg(feature = "tls")]
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// How connections are made, but for the address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connector {
    #[cfg(feature = "tls")]
    pub tls: Option<TlsOptions>,
}

impl Connector {
    /// All that is needed to connect to an address. Every connection is made of it: the shared one,
    /// those of blocking calls, and the one over which changes are heard.
    pub fn info(&self, url: &str) -> Result<ConnectionInfo> {
        #[cfg(feature = "tls")]
        if url.starts_with("rediss:") || self.tls.is_some() {
            return self.info_over_tls(url);
        }
        url.into_connection_info().map_err(|error| invalid(&error))
    }

    #[cfg(feature = "tls")]
    fn info_over_tls(&self, url: &str) -> Result<ConnectionInfo> {
        use rustls::crypto::{CryptoProvider, ring};
        // redis-rs takes the one of the process, and panics if there is none. Where two threads do
        // this at once either has the same one.
        if CryptoProvider::get_default().is_none() {
            let _ = ring::default_provider().install_default();
        }
        let Some(TlsOptions { ca, client }) = &self.tls else {
            return url.into_connection_info().map_err(|error| invalid(&error));
        };
        let chain = client.as_ref().map(|client| &client.chain);
        if [ca.as_ref(), chain].into_iter().flatten().any(|pem| !has_certificate(pem)) {
            return Err(Error::invalid("there is no certificate in what Builder::tls was given"));
        }
        let certificates = redis::TlsCertificates {
            client_tls: client.as_ref().map(|client| redis::ClientTlsConfig {
                client_cert: client.chain.clone(),
                client_key: client.key.clone(),
            }),
            root_cert: ca.clone(),
        };
        let client = redis::Client::build_with_tls(url, certificates);
        let client = client.map_err(|error| invalid(&error))?;
        Ok(client.get_connection_info().clone())
    }
}

/// No authority that is trusted has signed the server's certificate, or it is another server's:
/// trying again does not help.
#[cfg(feature = "tls")]
pub(super) fn is_not_vouched_for(error: &redis::RedisError) -> bool {
    use std::error::Error;
    // redis-rs gives the error in an `Arc`, which is an error of its own.
    type Inner = std::sync::Arc<dyn Error + Send + Sync>;
    let inner = error.source().and_then(|it| it.downcast_ref::<Inner>());
    let failed = inner.and_then(|it| it.downcast_ref::<std::io::Error>());
    let refused = failed.and_then(|it| it.get_ref()?.downcast_ref::<rustls::Error>());
    matches!(refused, Some(rustls::Error::InvalidCertificate(_)))
}

/// With none in it every server would be refused, and with words that do not say why.
#[cfg(feature = "tls")]
fn has_certificate(pem: &[u8]) -> bool {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    CertificateDer::pem_slice_iter(pem).next().is_some_and(|it| it.is_ok())
}

fn invalid(error: &redis::RedisError) -> Error {
    Error::Invalid(format!("the url or its certificates: {error}"))
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    fn options(ca: &str) -> Connector {
        Connector { tls: Some(TlsOptions { ca: Some(ca.into()), client: None }) }
    }

    #[test]
    fn certificates_that_could_not_serve_are_refused_at_once() {
        for pem in ["", "not a certificate", "-----BEGIN CERTIFICATE-----\nx"] {
            let refused = options(pem).info("rediss://localhost");
            assert!(matches!(refused, Err(Error::Invalid(_))), "{pem}");
        }
        // Nor are any left unused: a plain address is a mistake.
        let unused = Connector { tls: Some(TlsOptions::default()) }.info("redis://localhost");
        assert!(matches!(unused, Err(Error::Invalid(_))));
        assert!(Connector::default().info("rediss://localhost").is_ok());
    }

    #[test]
    fn nothing_of_a_key_is_shown() {
        let client = ClientCertificate { chain: b"chain".to_vec(), key: b"secret".to_vec() };
        let bytes = format!("{:?}", client.key);
        let tls = TlsOptions { ca: None, client: Some(client) };
        let shown = format!("{tls:?} {:?}", crate::Kit::builder().tls(tls.clone()));
        assert!(!shown.contains("secret") && !shown.contains(&bytes), "{shown}");
        assert!(shown.contains("has_client: true"), "{shown}");
    }
}
