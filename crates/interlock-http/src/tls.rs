//! TLS for the service and for those who speak to others: which certificate is shown, whom one believes, and how long a
//! handshake may take. It knows nothing of what is sent inside.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::Code;
use interlock_runtime::startup::{StartupFault, check_secret_file};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{CertificateError, ClientConfig, ClientConnection, OtherError, RootCertStore, ServerConfig, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
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

/// Believes what the machine believes, and whom the operator named beside that.
pub(crate) fn trust(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, StartupFault> {
    let invalid = |message: String| StartupFault { code: Code::ConfigInvalid, message };
    let mut roots = RootCertStore::empty();
    // Of some hundred certificates one may be unreadable; the others are no worse for that.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = authorities {
        for certificate in certificates(path)? {
            let added = roots.add(certificate);
            added.map_err(|error| invalid(format!("{} holds no authority: {error}", path.display())))?;
        }
    }
    if roots.is_empty() {
        let message = "https needs certificates of authorities, and this machine has none; install its package \
                       `ca-certificates`, or name a file";
        return Err(invalid(message.to_owned()));
    }
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| invalid(error.to_string()))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Wraps a connection to a host in TLS, for a client that waits. `authorities` is believed beside the machine's own.
pub(crate) fn encrypted<S: Read + Write + 'static>(
    stream: S,
    host: &str,
    authorities: Option<&Path>,
) -> Result<impl Read + Write + use<S>, StartupFault> {
    let invalid = |message: String| StartupFault { code: Code::ConfigInvalid, message };
    let name = ServerName::try_from(host.to_owned()).map_err(|error| invalid(error.to_string()))?;
    let connection = ClientConnection::new(trust(authorities)?, name).map_err(|error| invalid(error.to_string()))?;
    Ok(StreamOwned::new(connection, stream))
}

/// What is wrong with a server's certificate, and what helps, if that is why a connection failed.
pub fn certificate_trouble(error: &io::Error) -> Option<(String, &'static str)> {
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    let rustls::Error::InvalidCertificate(why) = error else {
        return Some((format!("does not agree on TLS: {error}"), "see that the port speaks HTTPS and not HTTP"));
    };
    let (what, next) = explain(why);
    Some((format!("{what} ({error})"), next))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever else is wrong with a certificate, nobody believes it")]
fn explain(why: &CertificateError) -> (&'static str, &'static str) {
    let is_authority =
        |other: &OtherError| matches!(other.0.downcast_ref::<webpki::Error>(), Some(webpki::Error::CaUsedAsEndEntity));
    #[rustfmt::skip]
    let found = match why {
        CertificateError::UnknownIssuer => (
            "has a certificate that nobody signed whom this machine believes",
            "name the authority's certificate, PEM, with --ca-file or INTERLOCK_CA_FILE"),
        CertificateError::Other(other) if is_authority(other) => (
            "has the certificate of an authority (CA:TRUE), which is none of a server",
            "give it one that the authority signed, or a self-signed one with basicConstraints CA:FALSE"),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            "has a certificate for another name", "name the server by a name that stands in it as subjectAltName"),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
            "has a certificate that is not valid yet", "look at its dates, and at the clocks of both machines"),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            "has a certificate that has expired", "renew it and restart the server"),
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => (
            "has a certificate that is not made for servers", "give it one whose extendedKeyUsage has serverAuth"),
        _ => ("has a certificate that cannot be believed", "see what signed it"),
    };
    found
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
