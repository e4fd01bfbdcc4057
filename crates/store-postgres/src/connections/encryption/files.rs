//! The files of certificates, and what is checked by them. They are read for every connection, as
//! libpq does: what was renewed counts from the next connection on, without a restart.

use super::words::TlsFault;
use super::{Check, Encryption, Identity, Roots};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// The protocol inside, said in the handshake so that no other server can be made to answer.
const PROTOCOL: &[u8] = b"postgresql";

impl Encryption {
    /// Reads the files; blocks for as long as the disk takes.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub(super) fn load(&self) -> Result<ClientConfig, TlsFault> {
        let roots = match (&self.roots, self.check()) {
            (_, Check::Nothing) | (None, _) => RootCertStore::empty(),
            (Some(Roots::File(path)), _) => read_roots(path)?,
            (Some(Roots::System), _) => system_roots()?,
        };
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = Verifier { check: self.check(), roots, algorithms };
        let unusable = |error: Error| TlsFault::Files(format!("TLS cannot be set up: {error}"));
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = read_identity(identity)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    TlsFault::Files(format!("sslcert and sslkey do not belong together: {error}"))
                })?
            }
        };
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }

    /// What certificates are checked by, in words.
    pub(super) fn trusted(&self) -> String {
        match &self.roots {
            Some(Roots::File(path)) => path.display().to_string(),
            Some(Roots::System) => "the operating system's list".to_owned(),
            None => "nobody's list".to_owned(),
        }
    }
}

fn read_roots(path: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in read_certificates("sslrootcert", path)? {
        roots.add(certificate).map_err(|error| file_fault("sslrootcert", path, error))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    // One odd certificate among many must not keep us from the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match roots.is_empty() {
        true => Err(TlsFault::Files(
            "sslrootcert=system: no certificates are installed on this system; install the \
             package ca-certificates, or name a file"
                .to_owned(),
        )),
        false => Ok(roots),
    }
}

fn read_certificates(
    parameter: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let text = std::fs::read(path).map_err(|error| file_fault(parameter, path, error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| file_fault(parameter, path, error))?;
    match found.is_empty() {
        true => Err(file_fault(parameter, path, "it holds no certificate in PEM form")),
        false => Ok(found),
    }
}

type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn read_identity(identity: &Identity) -> Result<Shown, TlsFault> {
    let chain = read_certificates("sslcert", &identity.certificate)?;
    let path = &identity.key;
    let fault = |why: &dyn std::fmt::Display| file_fault("sslkey", path, why);
    let found = std::fs::metadata(path).map_err(|error| fault(&error))?;
    // As libpq: a key of root's may be read by a group, any other by nobody else.
    let open_to = if found.uid() == 0 { 0o027 } else { 0o077 };
    if found.is_file() && found.mode() & open_to != 0 {
        return Err(fault(&"others may read it; chmod 600"));
    }
    let text = std::fs::read(path).map_err(|error| fault(&error))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        fault(&"it holds no private key in PEM form; one with a passphrase cannot be used")
    })?;
    Ok((chain, key))
}

fn file_fault(parameter: &str, path: &Path, why: impl std::fmt::Display) -> TlsFault {
    TlsFault::Files(format!("{parameter}: cannot use {}: {why}", path.display()))
}

/// Looks at a server's certificate as far as the address asks for it. That the server holds the
/// key of its certificate is always checked.
#[derive(Debug)]
struct Verifier {
    check: Check,
    roots: RootCertStore,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.check != Check::Nothing {
            let certificate = ParsedCertificate::try_from(certificate)?;
            let (roots, algorithms) = (&self.roots, self.algorithms.all);
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                between,
                now,
                algorithms,
            )?;
            if self.check == Check::ChainAndName {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
