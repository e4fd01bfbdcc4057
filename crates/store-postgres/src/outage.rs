//! Whether the database can be used, and what is done while it cannot: callers wait as long as they
//! are patient (`patience.rs`), the probe finds out when it is back (`probe.rs`), the log gets a
//! line at the beginning and one at the end (`log.rs`).
//!
//! Whoever fails to reach the database begins an outage; only a look that also writes to `node`
//! ends it (`neighbours::say_alive`), because an answer may be one of before, may need no database
//! at all, or come from one that takes no writes.

pub(crate) mod log;
mod patience;
pub(crate) mod probe;

use crate::fault::Fault;
use crate::outage::log::{Line, Outages};
use crate::this_server::ThisServer;
use mainspring_kernel::shared_time::LOOK_GAP_MAX;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// What a caller is told of a database that keeps silent.
pub(crate) const NO_ANSWER: &str = "no answer in time";

/// What this server knows of how the database is.
pub(crate) struct Reach {
    outages: RwLock<Outages>,
    /// Rung when an outage has begun.
    is_lost: Notify,
    /// Changed when one has ended.
    is_back: watch::Sender<u64>,
    /// When the database was last looked at, with or without an answer.
    looked_at: RwLock<Instant>,
    /// When it last took something from this server.
    served_at: RwLock<Instant>,
}

impl Default for Reach {
    fn default() -> Self {
        Reach {
            outages: RwLock::default(),
            is_lost: Notify::new(),
            is_back: watch::Sender::new(0),
            looked_at: RwLock::new(Instant::now()),
            served_at: RwLock::new(Instant::now()),
        }
    }
}

impl ThisServer {
    /// Since when and why the database cannot be used.
    pub(crate) fn away(&self) -> Option<(String, Instant)> {
        self.reach.outages.read().unwrap_or_else(PoisonError::into_inner).present()
    }

    /// Notes what was asked at `asked` if the database could not be reached with it.
    pub(crate) fn note<T>(&self, outcome: &Result<T, Fault>, asked: Instant) {
        let Err(Fault::Away(why) | Fault::Unknown(why)) = outcome else { return };
        let mut outages = self.reach.outages.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(Line::Begins { untold }) = outages.failed(why, asked, Instant::now()) {
            tracing::error!(why, untold, "PostgreSQL is away: requests wait or are refused");
        }
        if outages.present().is_some() {
            self.reach.is_lost.notify_one();
        }
    }

    /// Notes the outcome of a look at the database that writes, too.
    pub(crate) fn note_look(&self, outcome: &Result<(), Fault>, asked: Instant) {
        let now = Instant::now();
        *self.reach.looked_at.write().unwrap_or_else(PoisonError::into_inner) = now;
        if matches!(outcome, Err(Fault::Away(_) | Fault::Unknown(_))) {
            return self.note(outcome, asked);
        }
        self.note_served();
        // Whatever else is wrong, it answers.
        let ended = self.reach.outages.write().unwrap_or_else(PoisonError::into_inner).seen(now);
        let Some(line) = ended else { return };
        if let Some(Line::Ends { lasted, failed }) = line {
            tracing::warn!(?lasted, failed, "PostgreSQL is back");
        }
        self.reach.is_back.send_modify(|turn| *turn += 1);
    }

    /// Notes that the database took something.
    pub(crate) fn note_served(&self) {
        *self.reach.served_at.write().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether nobody here has looked for so long that the process may have stood still.
    fn has_not_looked(&self) -> bool {
        let looked_at = *self.reach.looked_at.read().unwrap_or_else(PoisonError::into_inner);
        looked_at.elapsed() >= LOOK_GAP_MAX
    }

    /// How long this server could not serve: in an outage, or because it stood still. One that only
    /// came too late to look could.
    pub(crate) fn blind_for(&self) -> Duration {
        let served_at = *self.reach.served_at.read().unwrap_or_else(PoisonError::into_inner);
        let still = if self.has_not_looked() { served_at.elapsed() } else { Duration::ZERO };
        self.away().map_or(Duration::ZERO, |(_, since)| since.elapsed()).max(still)
    }
}
