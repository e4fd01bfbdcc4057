//! An encrypted connection, as the driver wants it: the handshake, the bytes, and the hash that
//! binds a password's proof to this very connection (SCRAM-SHA-256-PLUS).

use super::words::{TlsFault, explain_handshake};
use super::{Check, Encryption};
use crate::connections::address;
use futures_util::future::BoxFuture;
use rustls::ClientConfig;
use rustls::pki_types::{IpAddr, Ipv4Addr, ServerName};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Makes the encrypted connections of one address.
#[derive(Clone)]
pub(crate) struct Maker {
    encryption: Encryption,
    /// What its files hold, or why they cannot be used.
    loaded: Result<Arc<ClientConfig>, TlsFault>,
}

impl Maker {
    /// Reads the files of certificates, if encryption is wanted at all.
    pub(crate) async fn load(encryption: &Encryption) -> Self {
        let wanted = encryption.clone();
        let loaded = tokio::task::spawn_blocking(move || wanted.load().map(Arc::new)).await;
        let loaded =
            loaded.unwrap_or_else(|error| Err(TlsFault::Files(format!("not read: {error}"))));
        Maker { encryption: encryption.clone(), loaded }
    }

    /// Why there can be no connection, whatever the server does.
    pub(crate) fn fault(&self) -> Option<&TlsFault> {
        self.loaded.as_ref().err()
    }
}

/// One connection to be.
pub(crate) struct Handshake {
    config: Arc<ClientConfig>,
    encryption: Encryption,
    host: String,
}

impl MakeTlsConnect<Socket> for Maker {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = TlsFault;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, TlsFault> {
        let (config, encryption) = (self.loaded.clone()?, self.encryption.clone());
        Ok(Handshake { config, encryption, host: host.to_owned() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = TlsFault;
    type Future = BoxFuture<'static, Result<Stream, TlsFault>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let Handshake { config, encryption, host } = self;
            let name = match ServerName::try_from(host.clone()) {
                Ok(name) => name,
                // A name that is none is not said to the server, and nobody compares it.
                Err(_) if encryption.check() != Check::ChainAndName => nameless(),
                Err(_) => {
                    let why = "the host is no name that a certificate could be for";
                    return Err(TlsFault::Handshake(why.to_owned()));
                }
            };
            match TlsConnector::from(config).connect(name, socket).await {
                Ok(stream) => Ok(Stream(stream)),
                Err(error) => Err(TlsFault::Handshake(explain_handshake(
                    &error,
                    address::host_name(&host).unwrap_or("this host"),
                    &encryption.trusted(),
                ))),
            }
        })
    }
}

fn nameless() -> ServerName<'static> {
    ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0, 0, 0, 0])))
}

/// The bytes of an encrypted connection.
pub(crate) struct Stream(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(|all| all.first());
        match certificate.and_then(|certificate| end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, room)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// Signatures, as their object identifiers are written, that hash with SHA-256 or with something
/// weaker, for which RFC 5929 says SHA-256: RSA with MD5, SHA-1 and SHA-256, ECDSA with the latter.
const BY_SHA_256: [&[u8]; 5] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 4],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 5],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 1],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
];
const BY_SHA_384: [&[u8]; 2] =
    [&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12], &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]];
const BY_SHA_512: [&[u8]; 2] =
    [&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13], &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4]];

/// `tls-server-end-point` of RFC 5929: the certificate's hash, by the function its signature uses.
/// None for signatures without one (Ed25519) or with one among their parameters (RSA-PSS).
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (body, _) = element(certificate)?;
    let (_signed_part, rest) = element(body)?;
    let (algorithm, _) = element(rest)?;
    let (identifier, _) = element(algorithm)?;
    if BY_SHA_256.contains(&identifier) {
        return Some(Sha256::digest(certificate).to_vec());
    }
    if BY_SHA_384.contains(&identifier) {
        return Some(Sha384::digest(certificate).to_vec());
    }
    BY_SHA_512.contains(&identifier).then(|| Sha512::digest(certificate).to_vec())
}

/// The content of the first DER element, and what follows it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_tag, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    // Below 128 it is the length; above, the number of bytes that the length has.
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate as far as it is looked at: what is signed, then the signature's algorithm.
    fn certificate(identifier: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).expect("short").to_be_bytes();
            [&[tag, 0x82, length[0], length[1]][..], content].concat()
        };
        let algorithm = wrap(0x30, &wrap(0x06, identifier));
        wrap(0x30, &[wrap(0x30, &[7; 300]), algorithm, wrap(0x03, &[9; 70])].concat())
    }

    #[test]
    fn a_certificate_is_hashed_by_the_function_of_its_signature() {
        for (identifiers, bytes) in
            [(&BY_SHA_256[..], 32), (&BY_SHA_384[..], 48), (&BY_SHA_512[..], 64)]
        {
            for identifier in identifiers {
                let hash = end_point(&certificate(identifier)).expect("a hash");
                assert_eq!(hash.len(), bytes, "{identifier:x?}");
            }
        }
        let ed25519 = [0x2b, 0x65, 0x70];
        assert_eq!(end_point(&certificate(&ed25519)), None);
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_hash() {
        let whole = certificate(BY_SHA_256[0]);
        for length in 0..whole.len() {
            assert_eq!(end_point(&whole[..length]), None, "{length}");
        }
        assert_eq!(end_point(&[0x30, 0x85, 1, 1, 1, 1, 1]), None);
        assert_eq!(end_point(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
