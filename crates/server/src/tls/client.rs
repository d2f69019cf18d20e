//! What connections that this server opens are encrypted with: `tls-cluster`.

use super::{Identity, OF_SERVER, authorities, certified_key, provider, versions};
use russet_commands::node::config::{Config, Directive};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

const OF_CLIENT: Identity =
    [Directive::TlsClientCertFile, Directive::TlsClientKeyFile, Directive::TlsClientKeyFilePass];

/// Whether a change of the directive concerns connections that are opened.
pub fn is_outgoing(directive: Directive) -> bool {
    let is_shared = matches!(
        directive,
        Directive::TlsCertFile
            | Directive::TlsKeyFile
            | Directive::TlsKeyFilePass
            | Directive::TlsCaCertFile
            | Directive::TlsCaCertDir
            | Directive::TlsProtocols
            | Directive::TlsCiphers
            | Directive::TlsCiphersuites
    );
    is_shared || directive == Directive::TlsCluster || OF_CLIENT.contains(&directive)
}

/// None if connections are not to be encrypted; an error says which file or directive is wrong.
pub fn client_config(config: &Config) -> Result<Option<Arc<ClientConfig>>, String> {
    if !config.flag(Directive::TlsCluster) {
        return Ok(None);
    }
    let provider = Arc::new(provider(config)?);
    let roots = authorities(config)?;
    // COMPAT: without a certificate of its own a client shows that of the server.
    let has_own = OF_CLIENT[..2].iter().all(|directive| !config.string(*directive).is_empty());
    let identity = if has_own { OF_CLIENT } else { OF_SERVER };
    let certified = certified_key(config, &provider, identity)?;
    let verifier = Arc::new(ChainVerifier { roots, provider: provider.clone() });
    let mut made = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(&config.string(Directive::TlsProtocols))?)
        .map_err(|error| format!("tls-protocols and the ciphers: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    made.enable_sni = false;
    Ok(Some(Arc::new(made)))
}

/// COMPAT: a server is good if an authority vouches for it, whatever name it has. Servers of one
/// cluster are known by their addresses, which certificates seldom name.
#[derive(Debug)]
struct ChainVerifier {
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &parsed,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
