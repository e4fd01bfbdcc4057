//! How much of a type may be handed out, and when: keys that concurrency is counted by, rate
//! limits, circuit breakers, pauses. What has to be remembered for it is in `flow/meters.rs`.

mod bucket;
mod circuit;
mod key;
mod meters;

pub use bucket::{Bucket, RateLimit};
pub use circuit::{Circuit, CircuitState};
pub(crate) use key::check_given;
pub use key::{KeySource, LimitKeys};
pub use meters::{Held, HeldBy, Meter, Meters};

use crate::fingerprint::{Digest, digest};
use crate::name::UserId;
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// What holds back jobs of a type, beside its concurrency limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flow {
    /// Where the key is found under which the concurrency limit counts; one count for all if
    /// `None`. Jobs may bring a key of their own.
    pub concurrency_key: Option<KeySource>,
    /// How many may be handed out in a time.
    pub rate_limit: Option<RateLimit>,
    /// When nothing is handed out because too much fails.
    pub circuit: Option<Circuit>,
    /// How often the circuit was set anew: each time it starts closed, with nothing in mind.
    pub circuit_turn: u32,
    /// Who had it hand out nothing for now. Set by pausing, kept by whoever sets the type.
    pub paused: Option<Pause>,
}

/// A pause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who asked for it.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
}

/// What can be done to a type beside setting it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TypeChange {
    /// Hand out none of its jobs for now.
    Pause {
        /// Who asks.
        by: UserId,
    },
    /// Hand them out again.
    Resume,
    /// Have its circuit closed, with nothing in mind.
    ResetCircuit,
}

impl Flow {
    /// What is kept of one that somebody sets, where the type had `known` before: pausing is an
    /// act of its own, which nobody does or undoes by setting a type, and a circuit that is changed
    /// starts anew.
    #[must_use]
    pub fn kept(mut self, known: Option<&Flow>) -> Self {
        self.paused = known.and_then(|known| known.paused.clone());
        self.circuit_turn = known.map_or(0, |known| {
            known.circuit_turn.wrapping_add(u32::from(self.circuit != known.circuit))
        });
        self
    }

    /// Whether anything has to be remembered of what was handed out.
    pub fn has_meters(&self) -> bool {
        self.rate_limit.is_some() || self.circuit.is_some()
    }

    /// Refuses what breaks a bound.
    ///
    /// # Errors
    /// If something does.
    pub fn check(&self) -> Result<(), Rejection> {
        self.concurrency_key.as_ref().map_or(Ok(()), |key| key.check("concurrency_key"))?;
        self.rate_limit.as_ref().map_or(Ok(()), RateLimit::check)?;
        self.circuit.as_ref().map_or(Ok(()), Circuit::check)
    }
}

/// What the bucket of a type is kept under, or of a key of it.
fn bucket_key(job_type: &str, key: Option<&str>) -> Digest {
    let mut parts = vec![&b"bucket"[..], job_type.as_bytes()];
    parts.extend(key.map(str::as_bytes));
    digest(&parts)
}

/// What the circuit of a type is kept under, until it is set anew.
fn circuit_key(job_type: &str, turn: u32) -> Digest {
    digest(&[&b"circuit"[..], job_type.as_bytes(), &turn.to_be_bytes()])
}
