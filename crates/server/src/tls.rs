//! From the `tls-` directives and the files that they name to what connections are encrypted with.
//! How bytes pass through it is in `event_loop/tls.rs`.

mod certificate;
mod ciphers;
mod client;
mod private_key;
mod sessions;
mod watch;

pub use certificate::{common_name, serial_and_end, uri_names};
pub use client::{client_config, is_outgoing};
pub use watch::CertificateWatch;

use russet_commands::node::config::{Config, Directive};
use russet_commands::node::{CertificateFacts, CertificateReport};
use rustls::RootCertStore;
use rustls::ServerConfig;
use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::{TLS12, TLS13};
use sessions::SessionCache;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A certificate or key file is at most this long: a wrong path must not fill the memory.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// What a new client may resume with. Each costs a place among the sessions, and a client that
/// wants another gets it with its next connection.
const TICKETS: usize = 1;

/// What new connections are encrypted with; an error says which file or directive is wrong.
pub fn server_config(config: &Config) -> Result<Arc<ServerConfig>, String> {
    let provider = Arc::new(provider(config)?);
    let versions = versions(&config.string(Directive::TlsProtocols))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| format!("tls-protocols and the ciphers: {error}"))?;
    let certified = certified_key(config, &provider, OF_SERVER)?;
    let mut made = builder
        .with_client_cert_verifier(client_verifier(config, &provider)?)
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
    made.ignore_client_order = config.flag(Directive::TlsPreferServerCiphers);
    let sessions_max = usize::try_from(config.int(Directive::TlsSessionCacheSize)).unwrap_or(0);
    if config.flag(Directive::TlsSessionCaching) {
        let seconds = config.int(Directive::TlsSessionCacheTimeout).unsigned_abs();
        made.session_storage = SessionCache::new(sessions_max, Duration::from_secs(seconds));
        made.send_tls13_tickets = TICKETS;
    } else {
        made.session_storage = Arc::new(NoServerSessionStorage {});
        made.send_tls13_tickets = 0;
    }
    Ok(Arc::new(made))
}

/// What INFO tells about the certificates that the directives name, as they are in their files.
pub fn certificate_report(config: &Config) -> CertificateReport {
    let of = |directive| {
        let path = config.string(directive);
        certificates(Path::new(&path)).unwrap_or_default()
    };
    let facts = |certificate: &CertificateDer| {
        let (serial, expires_at) = serial_and_end(certificate)?;
        Some(CertificateFacts { serial, expires_at })
    };
    let mut authorities = of(Directive::TlsCaCertFile);
    let dir = config.string(Directive::TlsCaCertDir);
    if !dir.is_empty() {
        let paths = directory(Path::new(&dir)).unwrap_or_default();
        authorities.extend(paths.iter().filter_map(|path| certificates(path).ok()).flatten());
    }
    let first_to_end = authorities.iter().filter_map(facts).min_by_key(|facts| facts.expires_at);
    // The chain behind it is for clients.
    let server = of(Directive::TlsCertFile).first().and_then(facts);
    let client = of(Directive::TlsClientCertFile).first().and_then(facts);
    CertificateReport { server, client, authority: first_to_end }
}

/// The files whose contents count, as they are named.
pub fn files(config: &Config) -> Vec<PathBuf> {
    let named = [
        Directive::TlsCertFile,
        Directive::TlsKeyFile,
        Directive::TlsCaCertFile,
        Directive::TlsClientCertFile,
        Directive::TlsClientKeyFile,
    ];
    let paths = named.into_iter().map(|directive| config.string(directive));
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let dir = config.string(Directive::TlsCaCertDir);
    if !dir.is_empty() {
        paths.extend(directory(Path::new(&dir)).unwrap_or_default());
    }
    paths
}

fn provider(config: &Config) -> Result<CryptoProvider, String> {
    let mut provider = ring::default_provider();
    let old = ciphers::up_to_tls12(&config.string(Directive::TlsCiphers), &provider.cipher_suites)?;
    let new =
        ciphers::of_tls13(&config.string(Directive::TlsCiphersuites), &provider.cipher_suites)?;
    provider.cipher_suites = [new, old].concat();
    Ok(provider)
}

/// DIFFERS: there is nothing older than TLS 1.2.
fn versions(text: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let mut versions = Vec::new();
    for name in text.split_ascii_whitespace() {
        let version = match name.to_ascii_lowercase().as_str() {
            "tlsv1.2" => &TLS12,
            "tlsv1.3" => &TLS13,
            "tlsv1" | "tlsv1.1" => {
                return Err(format!("tls-protocols: {name} is broken and not supported"));
            }
            _ => return Err(format!("tls-protocols: '{name}' is not TLSv1.2 or TLSv1.3")),
        };
        versions.push(version);
    }
    Ok(if versions.is_empty() { vec![&TLS12, &TLS13] } else { versions })
}

/// The directives that name a certificate, its key and the key's password.
type Identity = [Directive; 3];
const OF_SERVER: Identity =
    [Directive::TlsCertFile, Directive::TlsKeyFile, Directive::TlsKeyFilePass];

fn certified_key(
    config: &Config,
    provider: &CryptoProvider,
    [certificate, key, password]: Identity,
) -> Result<CertifiedKey, String> {
    let path = named_file(config, certificate)?;
    let chain = certificates(&path)?;
    let key_path = named_file(config, key)?;
    let password = config.text(password);
    let of_key = |why: String| format!("{}: {why}", key_path.display());
    let key = provider
        .key_provider
        .load_private_key(private_key::parse(&read(&key_path)?, &password).map_err(of_key)?)
        .map_err(|error| of_key(error.to_string()))?;
    let certified = CertifiedKey::new(chain, key);
    // Whatever else is odd about it, such as an old version of its format, is for clients to judge.
    match certified.keys_match() {
        Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch)) => {
            Err(format!("{} is not the key of {}", key_path.display(), path.display()))
        }
        _ => Ok(certified),
    }
}

fn client_verifier(
    config: &Config,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let wanted = config.choice(Directive::TlsAuthClients);
    if wanted == "no" {
        return Ok(WebPkiClientVerifier::no_client_auth());
    }
    let roots = Arc::new(authorities(config)?);
    let mut builder = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
    if wanted == "optional" {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map_err(|error| format!("the certificates of authorities: {error}"))
}

/// Who may vouch for clients.
fn authorities(config: &Config) -> Result<RootCertStore, String> {
    let (file, dir) =
        (config.string(Directive::TlsCaCertFile), config.string(Directive::TlsCaCertDir));
    if file.is_empty() && dir.is_empty() {
        let why = match config.flag(Directive::TlsCluster) {
            true => "tls-auth-clients and tls-cluster need",
            false => "tls-auth-clients needs",
        };
        return Err(format!("{why} tls-ca-cert-file or tls-ca-cert-dir"));
    }
    let mut roots = RootCertStore::empty();
    if !file.is_empty() {
        let path = Path::new(&file);
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| format!("{file}: {error}"))?;
        }
    }
    if !dir.is_empty() {
        let paths = directory(Path::new(&dir)).map_err(|error| format!("{dir}: {error}"))?;
        // Other files may be there, too: hashes, lists of what was revoked.
        let found = paths.iter().filter_map(|path| certificates(path).ok()).flatten();
        let (_added, _ignored) = roots.add_parsable_certificates(found);
    }
    if roots.is_empty() {
        return Err(format!("no certificate of an authority in {file}{dir}"));
    }
    Ok(roots)
}

fn directory(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn named_file(config: &Config, directive: Directive) -> Result<PathBuf, String> {
    let path = config.string(directive);
    if path.is_empty() { Err(format!("no {}", directive.name())) } else { Ok(path.into()) }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(path)?;
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| format!("{}: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{} has no certificate in PEM format", path.display()));
    }
    Ok(found)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", path.display());
    // What is no file may have no end, or let nobody open it.
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let file = std::fs::File::open(path).map_err(fail)?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("{} is longer than a certificate can be", path.display()));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_tls_that_are_broken_are_refused() {
        assert_eq!(versions("").unwrap(), [&TLS12, &TLS13]);
        assert_eq!(versions("TLSv1.3").unwrap(), [&TLS13]);
        assert_eq!(versions(" tlsv1.2  TLSV1.3 ").unwrap(), [&TLS12, &TLS13]);
        assert!(versions("TLSv1.1 TLSv1.2").unwrap_err().contains("TLSv1.1 is broken"));
        assert!(versions("SSLv3").unwrap_err().contains("'SSLv3' is not"));
    }
}
