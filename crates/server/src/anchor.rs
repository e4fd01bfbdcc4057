//! What is known of audit trails outside of the store: the number and hash of the last line that
//! this server wrote in each. Whoever can write to the store could make a whole new trail there,
//! but not one that ends in these.
//!
//! A file of lines; of two about one tenant the later one counts. It is written after the commit,
//! so after a crash it may know of one line less, never of one too many.

use mainspring_kernel::TenantId;
use mainspring_kernel::entity::audit::Hash;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Lines beyond one for each tenant after which the file is written anew.
const SPARE_LINES: usize = 10_000;

/// The file, and what it says.
pub(crate) struct Anchor {
    inner: Mutex<Inner>,
}

struct Inner {
    path: Option<PathBuf>,
    known: HashMap<String, (u64, Hash)>,
    lines: usize,
}

#[derive(Serialize, Deserialize)]
struct Line {
    tenant: String,
    seq: u64,
    hash: String,
}

impl Anchor {
    /// Reads the file, if there is one. One that cannot be read is told to the log.
    pub(crate) fn open(path: Option<PathBuf>) -> Self {
        let mut inner = Inner { path, known: HashMap::new(), lines: 0 };
        let text = match inner.path.as_deref().map(fs::read_to_string) {
            Some(Ok(text)) => text,
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => {
                tracing::error!(%error, "the anchor of the audit trail cannot be read");
                String::new()
            }
            Some(Err(_)) | None => String::new(),
        };
        for line in text.lines() {
            inner.lines += 1;
            let line = serde_json::from_str::<Line>(line).ok();
            let hash = line.as_ref().and_then(|line| unhex(&line.hash));
            if let (Some(line), Some(hash)) = (line, hash) {
                inner.learn(line.tenant, line.seq, hash);
            }
        }
        Anchor { inner: Mutex::new(inner) }
    }

    /// The last line that is known of a tenant's trail.
    pub(crate) fn of(&self, tenant: &TenantId) -> Option<(u64, Hash)> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.known.get(tenant.as_str()).copied()
    }

    /// A line was written.
    pub(crate) fn note(&self, tenant: &TenantId, seq: u64, hash: Hash) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.learn(tenant.as_str().to_owned(), seq, hash);
        if let Err(error) = inner.write(tenant.as_str()) {
            tracing::error!(%error, "the anchor of the audit trail cannot be written");
        }
    }
}

impl Inner {
    fn learn(&mut self, tenant: String, seq: u64, hash: Hash) {
        let known = self.known.entry(tenant).or_insert((seq, hash));
        if known.0 <= seq {
            *known = (seq, hash);
        }
    }

    fn write(&mut self, tenant: &str) -> io::Result<()> {
        let Some(path) = self.path.clone() else { return Ok(()) };
        if self.lines > self.known.len() + SPARE_LINES {
            return self.write_anew(&path);
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        file.write_all(self.line(tenant).as_bytes())?;
        self.lines += 1;
        file.sync_data()
    }

    fn write_anew(&mut self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        let mut file = File::create(&beside)?;
        for tenant in self.known.keys() {
            file.write_all(self.line(tenant).as_bytes())?;
        }
        file.sync_data()?;
        fs::rename(&beside, path)?;
        self.lines = self.known.len();
        Ok(())
    }

    fn line(&self, tenant: &str) -> String {
        let (seq, hash) = self.known.get(tenant).copied().unwrap_or_default();
        let line = Line { tenant: tenant.to_owned(), seq, hash: hex(&hash) };
        let mut text = serde_json::to_string(&line).expect("our own shapes are JSON");
        text.push('\n');
        text
    }
}

/// A hash as text.
pub(crate) fn hex(hash: &Hash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A hash out of text.
pub(crate) fn unhex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_after_a_restart() {
        let path = std::env::temp_dir().join(format!("anchor-{}", std::process::id()));
        let [acme, other] = ["acme", "a \"b\""].map(|name| TenantId::stored(name.into()));
        let anchor = Anchor::open(Some(path.clone()));
        anchor.note(&acme, 1, [1; 32]);
        anchor.note(&other, 7, [2; 32]);
        anchor.note(&acme, 2, [3; 32]);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"tenant\":\"torn").unwrap();
        let again = Anchor::open(Some(path.clone()));
        assert_eq!(again.of(&acme), Some((2, [3; 32])));
        assert_eq!(again.of(&other), Some((7, [2; 32])));
        fs::remove_file(path).unwrap();
    }
}
