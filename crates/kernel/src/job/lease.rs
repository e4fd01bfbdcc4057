//! The lease: one worker's right to one attempt, and the token that proves it.

use crate::name::WorkerId;
use crate::time::Timestamp;
use std::fmt;

/// One worker's right to one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Strictly greater than that of every earlier lease of the job.
    pub fence: u32,
    /// Unguessable; together with the fence it is the lease token.
    pub secret: u128,
    /// Who holds it.
    pub worker: WorkerId,
    /// When it was granted, which is when the attempt started.
    pub granted_at: Timestamp,
    /// When it ends unless renewed.
    pub expires_at: Timestamp,
    /// When the attempt is over whatever the worker does (start-to-close timeout).
    pub deadline_at: Timestamp,
}

impl Lease {
    /// What the worker presents.
    pub fn token(&self) -> LeaseToken {
        LeaseToken { fence: self.fence, secret: self.secret }
    }

    /// Whether the lease still counts at `now`.
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.expires_at && now < self.deadline_at
    }

    /// The instant at which the reaper has to look at this lease.
    pub fn ends_at(&self) -> Timestamp {
        self.expires_at.min(self.deadline_at)
    }
}

/// The credential of one attempt: a counter that orders leases and a secret nobody can guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseToken {
    /// The fencing number.
    pub fence: u32,
    /// The secret.
    pub secret: u128,
}

impl fmt::Display for LeaseToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:032x}", self.fence, self.secret)
    }
}

impl std::str::FromStr for LeaseToken {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (fence, secret) = text.split_once('.').ok_or(())?;
        if secret.len() != 32 || secret.bytes().any(|b| b.is_ascii_uppercase() || b == b'+') {
            return Err(());
        }
        Ok(Self {
            fence: fence.parse().map_err(|_| ())?,
            secret: u128::from_str_radix(secret, 16).map_err(|_| ())?,
        })
    }
}
