//! Certificates for tests, made when they are needed, and the clients' side of TLS.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// What `openssl` needs to know of certificates in general.
const OPENSSL_CONFIG: &str = "[req]\ndistinguished_name=dn\n[dn]\n[authority]\n\
    basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n";
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -config made.cnf";
/// What the certificate of a server says of itself.
pub const SERVER_NAMES: &str = "DNS:localhost,IP:127.0.0.1";

/// An authority and what it has signed, in a directory that is removed with this value.
pub struct Certificates {
    dir: PathBuf,
}

impl Certificates {
    /// Makes an authority, and the certificates `server` and `client`.
    pub fn make() -> Result<Certificates, String> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("russet-certificates-{}-{number}", std::process::id());
        let made = Certificates { dir: std::env::temp_dir().join(name) };
        std::fs::create_dir_all(&made.dir).map_err(|error| error.to_string())?;
        made.write("made.cnf", OPENSSL_CONFIG)?;
        made.openssl(&format!(
            "req -x509 {NEW_KEY} -extensions authority -days 3650 -subj /CN=authority \
             -keyout ca.key -out ca.crt"
        ))?;
        made.issue("server", "localhost", SERVER_NAMES)?;
        made.issue("client", "client", "URI:urn:user:client")?;
        Ok(made)
    }

    /// Signs a certificate: `name.crt` with `name.key`. One that is there is replaced.
    pub fn issue(&self, name: &str, common_name: &str, names: &str) -> Result<(), String> {
        self.write(
            &format!("{name}.ext"),
            &format!("basicConstraints=critical,CA:FALSE\nsubjectAltName={names}\n"),
        )?;
        self.openssl(&format!(
            "req -new {NEW_KEY} -subj /CN={common_name} -keyout {name}.key.new -out {name}.csr"
        ))?;
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 \
             -extfile {name}.ext -out {name}.crt.new"
        ))?;
        for kind in ["key", "crt"] {
            std::fs::rename(
                self.dir.join(format!("{name}.{kind}.new")),
                self.dir.join(format!("{name}.{kind}")),
            )
            .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub fn write(&self, name: &str, content: &str) -> Result<(), String> {
        std::fs::write(self.dir.join(name), content).map_err(|error| error.to_string())
    }

    /// Runs `openssl` with these arguments where the certificates are.
    pub fn openssl(&self, args: &str) -> Result<(), String> {
        let output = Command::new("openssl")
            .args(args.split_whitespace())
            .current_dir(&self.dir)
            .output()
            .map_err(|error| format!("openssl: {error}"))?;
        let text = || String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or_else(|| format!("openssl {args}: {}", text()))
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The arguments of a server that has these certificates.
    pub fn server_args(&self) -> Vec<String> {
        let pairs = [
            ("--tls-cert-file", "server.crt"),
            ("--tls-key-file", "server.key"),
            ("--tls-ca-cert-file", "ca.crt"),
        ];
        pairs.iter().flat_map(|(name, file)| [(*name).to_owned(), self.path(file)]).collect()
    }

    /// The first certificate in a file, as a server shows it.
    pub fn certificate(&self, name: &str) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.dir.join(name)).expect("openssl has made it")
    }

    /// Clients of servers that this authority vouches for, with a certificate of their own if one
    /// is named.
    pub fn client_config(&self, name: Option<&str>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate("ca.crt")).expect("openssl has made it");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has both versions")
            .with_root_certificates(roots);
        let config = match name {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let key = PrivateKeyDer::from_pem_file(self.dir.join(format!("{name}.key")));
                let key = key.expect("openssl has made it");
                let chain = vec![self.certificate(&format!("{name}.crt"))];
                builder.with_client_auth_cert(chain, key).expect("they belong together")
            }
        };
        Arc::new(config)
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// An encrypted connection that waits.
pub type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Connects; the handshake is done with the first bytes.
pub fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> io::Result<TlsStream> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let name = ServerName::from(address.ip());
    let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
    Ok(StreamOwned::new(session, socket))
}

/// How a client reaches the server at an address.
pub enum Wire {
    Plain(TcpStream),
    Tls(Box<TlsStream>),
}

impl Wire {
    /// Encrypted, if [`speak_tls`] has said so of the address.
    pub fn connect(address: SocketAddr) -> io::Result<Wire> {
        let known = encrypted().lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&address) {
            Some(config) => Ok(Wire::Tls(Box::new(connect(address, config)?))),
            None => {
                let socket = TcpStream::connect(address)?;
                socket.set_nodelay(true)?;
                Ok(Wire::Plain(socket))
            }
        }
    }

    pub fn socket(&self) -> &TcpStream {
        match self {
            Wire::Plain(socket) => socket,
            Wire::Tls(stream) => &stream.sock,
        }
    }
}

impl Read for Wire {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.read(into),
            Wire::Tls(stream) => stream.read(into),
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Wire::Plain(socket) => socket.write(bytes),
            Wire::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Wire::Plain(socket) => socket.flush(),
            Wire::Tls(stream) => stream.flush(),
        }
    }
}

/// From now on clients of this address encrypt.
pub fn speak_tls(address: SocketAddr, config: Arc<ClientConfig>) {
    encrypted().lock().unwrap_or_else(PoisonError::into_inner).insert(address, config);
}

/// Ports are not used twice by one test program, so an address stays what it is.
fn encrypted() -> &'static Mutex<HashMap<SocketAddr, Arc<ClientConfig>>> {
    static ENCRYPTED: OnceLock<Mutex<HashMap<SocketAddr, Arc<ClientConfig>>>> = OnceLock::new();
    ENCRYPTED.get_or_init(Mutex::default)
}

/// The certificates of all servers of a test program that need no others.
pub fn shared() -> Result<&'static Certificates, String> {
    static SHARED: OnceLock<Result<Certificates, String>> = OnceLock::new();
    SHARED.get_or_init(Certificates::make).as_ref().map_err(String::clone)
}
