//! A client of https servers that says what it was shown, and minds only what it is told to mind.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    StreamOwned,
};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// The bytes of the first certificate in a PEM text.
pub(crate) fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

/// Takes any certificate, such as one that is out of date; the signatures have to be right.
#[derive(Debug)]
struct Anybody(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// A client that shakes hands anew for every connection.
#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    config: Arc<ClientConfig>,
}

/// One connection.
pub(crate) struct Line(pub(crate) StreamOwned<ClientConnection, TcpStream>);

impl Client {
    /// One that takes any certificate.
    pub(crate) fn trusting_anybody(address: SocketAddr, authority: &str) -> Self {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        let verifier = Arc::new(Anybody(verifier.build().unwrap()));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        // Who resumes is shown no certificate.
        config.resumption = rustls::client::Resumption::disabled();
        Client { address, config: Arc::new(config) }
    }

    pub(crate) fn connect(&self) -> io::Result<Line> {
        let tcp = TcpStream::connect(self.address)?;
        tcp.set_read_timeout(Some(Duration::from_secs(60)))?;
        let name = ServerName::try_from("localhost").unwrap();
        let line = ClientConnection::new(self.config.clone(), name).map_err(io::Error::other)?;
        let mut line = Line(StreamOwned::new(line, tcp));
        while line.0.conn.is_handshaking() {
            line.0.conn.complete_io(&mut line.0.sock)?;
        }
        Ok(line)
    }
}

impl Line {
    /// The certificate that the server has shown.
    pub(crate) fn shown(&self) -> Vec<u8> {
        self.0.conn.peer_certificates().unwrap()[0].to_vec()
    }

    /// Asks and answers with status and body; the connection can be used again.
    pub(crate) fn get(&mut self, path: &str, token: &str) -> io::Result<(u16, String)> {
        let ask = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        self.0.write_all(ask.as_bytes())?;
        self.0.flush()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
        self.0.read_exact(&mut body)?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}
