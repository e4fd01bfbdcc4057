//! Encryption of the door: which certificate is shown, and how another one takes its place while
//! the server runs. A connection that is open keeps what it was opened with. A new certificate that
//! cannot be used changes nothing: the old one stays, and `/readyz` and the log say so.
//! When to look is the caller's business; `serve.rs` shakes hands.

mod validity;

use crate::limits::TLS_FILE_BYTES_MAX;
use mainspring_kernel::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// How long before its end a certificate is near it, unless it is a short-lived one.
const NEAR: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The certificate of a server, and where the next one will be found. Clones are the same one.
#[derive(Clone)]
pub struct Tls {
    inner: Arc<Inner>,
}

struct Inner {
    certificate: PathBuf,
    key: PathBuf,
    shelf: Arc<Shelf>,
    config: Arc<ServerConfig>,
    watched: Mutex<Watched>,
}

/// What is shown to whoever connects.
#[derive(Debug)]
struct Shelf(RwLock<Arc<Shown>>);

#[derive(Debug)]
struct Shown {
    key: Arc<CertifiedKey>,
    /// From when on people should know that it ends.
    near: Timestamp,
    /// The last moment of its validity.
    until: Timestamp,
}

/// What is known of the files.
struct Watched {
    /// As they were when they were last tried.
    tried: Stamps,
    /// As they were at the last look, if that was different.
    seen: Option<Stamps>,
    /// Why what was tried last is not what is shown.
    trouble: Option<String>,
    reloads: u64,
}

/// What tells one state of the two files from another.
type Stamps = [Option<(u64, u64, i64, i64)>; 2];

/// A certificate or a key that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(String);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unusable {}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys stay out of logs.
        f.debug_struct("Tls").field("certificate", &self.inner.certificate).finish_non_exhaustive()
    }
}

impl ResolvesServerCert for Shelf {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown().key.clone())
    }
}

impl Shelf {
    fn shown(&self) -> Arc<Shown> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn show(&self, shown: Shown) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shown);
    }
}

impl Tls {
    /// Reads a chain of certificates and the key of its first one, both in PEM form.
    ///
    /// # Errors
    /// Which file cannot be used, and why.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, Unusable> {
        let tried = stamps(certificate, key);
        let shelf = Arc::new(Shelf(RwLock::new(Arc::new(load(certificate, key)?))));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Unusable(format!("TLS cannot be set up: {error}")))?
            .with_no_client_auth();
        let mut config = config.with_cert_resolver(shelf.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let watched = Mutex::new(Watched { tried, seen: None, trouble: None, reloads: 0 });
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        let config = Arc::new(config);
        Ok(Tls { inner: Arc::new(Inner { certificate, key, shelf, config, watched }) })
    }

    /// Looks whether the files have changed, and takes them over once they have rested from one
    /// look to the next: whoever writes them may still be at it. Blocks for as long as the disk
    /// takes. Answers with what became of it, if anything did.
    pub fn look(&self, now: Timestamp) -> Option<Result<Timestamp, Unusable>> {
        let found = stamps(&self.inner.certificate, &self.inner.key);
        {
            let mut watched = self.watched();
            if found == watched.tried {
                watched.seen = None;
                return None;
            }
            if watched.seen != Some(found) {
                watched.seen = Some(found);
                return None;
            }
        }
        Some(self.reload(now))
    }

    /// Takes the files over as they are now, and answers with the end of the new certificate.
    ///
    /// # Errors
    /// Why they cannot be used; then everything stays as it was.
    pub fn reload(&self, now: Timestamp) -> Result<Timestamp, Unusable> {
        let tried = stamps(&self.inner.certificate, &self.inner.key);
        let loaded = load(&self.inner.certificate, &self.inner.key);
        let loaded = loaded.and_then(|new| self.is_no_step_back(new, now));
        let mut watched = self.watched();
        watched.tried = tried;
        watched.seen = None;
        match loaded {
            Ok(new) => {
                let until = new.until;
                self.inner.shelf.show(new);
                watched.trouble = None;
                watched.reloads += 1;
                Ok(until)
            }
            Err(unusable) => {
                watched.trouble = Some(unusable.0.clone());
                Err(unusable)
            }
        }
    }

    /// A certificate that is out of date does not replace one that is not.
    fn is_no_step_back(&self, new: Shown, now: Timestamp) -> Result<Shown, Unusable> {
        match new.until < now && now <= self.until() {
            true => Err(Unusable("the new certificate is out of date".into())),
            false => Ok(new),
        }
    }

    /// The last moment at which what is shown is valid.
    pub fn until(&self) -> Timestamp {
        self.inner.shelf.shown().until
    }

    /// What a person should look at: the files are not what is shown, or what is shown ends soon.
    /// Where files are is only for who reads the log.
    pub fn worry(&self, now: Timestamp) -> Option<String> {
        if self.watched().trouble.is_some() {
            return Some("a new one is there and cannot be used; the log says why".to_owned());
        }
        let shown = self.inner.shelf.shown();
        let until = jiff::Timestamp::from_microsecond(shown.until.0).unwrap_or_default();
        (now >= shown.near).then(|| format!("it is valid until {until} only"))
    }

    /// Why the files are not what is shown.
    pub fn trouble(&self) -> Option<String> {
        self.watched().trouble.clone()
    }

    /// How often another certificate took the place of one.
    pub(crate) fn reloads(&self) -> u64 {
        self.watched().reloads
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.inner.config.clone()
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.inner.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(certificate: &Path, key: &Path) -> Stamps {
    // A link is followed: where secrets are mounted, it is the link that changes.
    [certificate, key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    })
}

fn load(certificate: &Path, key: &Path) -> Result<Shown, Unusable> {
    let chain = read(certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|error| unusable(certificate, error))?;
    let Some(first) = chain.first() else {
        return Err(unusable(certificate, "it holds no certificate in PEM form"));
    };
    let (from, until) = validity::span(first)
        .ok_or_else(|| unusable(certificate, "its first certificate cannot be read"))?;
    let secret = PrivateKeyDer::from_pem_slice(&read(key)?)
        .map_err(|_| unusable(key, "it holds no private key in PEM form"))?;
    let key = CertifiedKey::from_der(chain, secret, &ring::default_provider())
        .map_err(|error| unusable(key, format_args!("it is not the certificate's: {error}")))?;
    Ok(Shown { key: Arc::new(key), near: near(from, until), until })
}

/// When a certificate is near its end: two weeks before, or a quarter of its time if that is less.
fn near(from: Timestamp, until: Timestamp) -> Timestamp {
    until - (until.since(from) / 4).min(NEAR)
}

fn read(path: &Path) -> Result<Vec<u8>, Unusable> {
    let found = std::fs::metadata(path).map_err(|error| unusable(path, error))?;
    if !found.is_file() || found.size() > TLS_FILE_BYTES_MAX {
        return Err(unusable(path, "it is no file of up to 1 MiB"));
    }
    std::fs::read(path).map_err(|error| unusable(path, error))
}

fn unusable(path: &Path, why: impl std::fmt::Display) -> Unusable {
    Unusable(format!("{} cannot be used: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_near_two_weeks_before_or_in_the_last_quarter() {
        let day = 24 * 3_600 * 1_000_000;
        let near = |days: i64| near(Timestamp(0), Timestamp(days * day)).0;
        assert_eq!(near(90), 76 * day);
        assert_eq!(near(8), 6 * day);
        assert_eq!(near(0), 0);
    }
}
