//! TLS for the service: which certificate it shows, and how long a handshake may take. It knows nothing of what is sent
//! inside; the addresses that webhooks go to have their own trust, in `deliver/client.rs`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::Code;
use interlock_runtime::startup::{StartupFault, check_secret_file};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest certificate or key file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A certificate with its key, ready to be shown.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Loads a chain of certificates, the server's own first, and its key, both PEM. A key that others can read is
    /// refused, and so is one that does not belong to the certificate.
    pub fn load(certificate: &Path, key: &Path) -> Result<Tls, StartupFault> {
        check_secret_file(key)?;
        let chain = certificates(certificate)?;
        let key_der = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| {
            // What the reader says may quote the file, so it is not repeated.
            refused(key, "holds no private key in PEM (PKCS #8, PKCS #1 or SEC 1, not encrypted)")
        })?;
        let config = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
        let config = config.map_err(|error| refused(certificate, &error.to_string()))?.with_no_client_auth();
        let mut config = config.with_single_cert(chain, key_der).map_err(|error| {
            let message = format!("and the key {} cannot be used together: {error}", key.display());
            refused(certificate, &message)
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands with a client, within the time that is allowed.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let handshake = self.0.accept(stream);
        tokio::time::timeout(HANDSHAKE_TIME_MAX, handshake).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// The one provider of cryptography; nothing is left to a default of the process.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Every certificate of a file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, StartupFault> {
    let bytes = read(path)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.ok().filter(|certificates| !certificates.is_empty());
    certificates.ok_or_else(|| refused(path, "holds no certificate in PEM"))
}

fn read(path: &Path) -> Result<Vec<u8>, StartupFault> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX.saturating_add(1)).read_to_end(&mut bytes));
    match read {
        Ok(length) if u64::try_from(length).is_ok_and(|length| length <= FILE_BYTES_MAX) => Ok(bytes),
        Ok(_) => Err(refused(path, &format!("has more than {FILE_BYTES_MAX} bytes"))),
        Err(error) => Err(refused(path, &format!("cannot be read: {error}"))),
    }
}

fn refused(path: &Path, what: &str) -> StartupFault {
    StartupFault { code: Code::ConfigInvalid, message: format!("{} {what}", path.display()) }
}
