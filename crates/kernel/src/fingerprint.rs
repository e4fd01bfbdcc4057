//! Stable digests: idempotency keys, key-field fingerprints, report digests, retry jitter. Stable
//! means for ever: these values are stored, so the recipe of one must never change. SHA-256, which
//! PostgreSQL has too: a job submitted by SQL must find the key of one submitted here.

use sha2::{Digest as _, Sha256};

/// The first 128 bits of a SHA-256 hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 16]);

/// Digests `parts`; each is preceded by its length, so that no two lists of parts collide.
pub fn digest(parts: &[&[u8]]) -> Digest {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hasher.finalize()[..16]);
    Digest(bytes)
}

/// A number from the first eight bytes of a digest.
pub fn number(digest: Digest) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.0[..8]);
    u64::from_le_bytes(bytes)
}
