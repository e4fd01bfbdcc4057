//! What people should look at is looked for here; what becomes of it the kernel decides
//! (`kernel/src/entity/alert.rs`). `alerts/reports.rs` is what commits and the server tell, a few
//! words for what is out of the ordinary and nothing otherwise; `alerts/sentry.rs` is the task that
//! takes it in and `alerts/looks.rs` what it looks up: numbers that are kept, and short stretches
//! of lists. It never goes through jobs.
//!
//! Every server looks for itself. An alert's id follows from what it is about, so what several see
//! is one alert; it goes on while any of them sees it, and clears by its alarm. A late start is
//! seen by whoever commits it, dead letters are counted in the store, and servers tell each other
//! of the moves that they refuse in a row (`alerts/rows.rs`).

mod looks;
mod promises;
mod reports;
mod rows;
mod sentry;

pub(crate) use reports::{Reports, Signals};
pub(crate) use sentry::run;

use crate::engine::Engine;
use mainspring_kernel::TenantId;
use mainspring_kernel::entity::alert::Milli;
use std::time::Duration;
use tokio::sync::watch;

/// When alerts are raised. Zero turns a rule off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertConfig {
    /// The share of jobs that are being retried among those that have not ended.
    pub retrying_ratio: Milli,
    /// Jobs of one tenant that fail for good within a minute.
    pub dlq_growth_per_minute: u64,
    /// Moves of one tenant in a row that the lifecycle does not have.
    pub invalid_transitions: u64,
    /// How much later than due a job may start.
    pub lag: Duration,
    /// How long jobs may wait for a type that no worker asks for.
    pub no_worker: Duration,
    /// Whether schedules that leave out a firing are told of.
    pub tells_skips: bool,
    /// How often is looked.
    pub check_every: Duration,
    /// For how long too many jobs must be retried.
    pub hold: Duration,
    /// For how long nothing must be seen before an alert clears.
    pub quiet: Duration,
}

impl AlertConfig {
    /// Nothing is looked for.
    pub const fn none() -> Self {
        AlertConfig {
            retrying_ratio: Milli(0),
            dlq_growth_per_minute: 0,
            invalid_transitions: 0,
            lag: Duration::ZERO,
            no_worker: Duration::ZERO,
            tells_skips: false,
            check_every: Duration::from_secs(15),
            hold: Duration::from_secs(60),
            quiet: Duration::from_secs(300),
        }
    }

    /// Whether anything is looked for.
    fn is_on(&self) -> bool {
        let AlertConfig { retrying_ratio, dlq_growth_per_minute, invalid_transitions, .. } = *self;
        let AlertConfig { lag, no_worker, tells_skips, .. } = *self;
        retrying_ratio.0 + dlq_growth_per_minute + invalid_transitions > 0
            || !lag.is_zero()
            || !no_worker.is_zero()
            || tells_skips
    }
}

impl Engine {
    /// A move that somebody of `tenant` asked for at `place` is not in the lifecycle.
    pub fn move_refused(&self, tenant: &TenantId, place: &'static str) {
        self.shared.reports.refused(tenant, place, self.now());
    }

    /// A part of the server died when it last ran: `why`, for people.
    pub fn part_died(&self, why: &str) {
        self.shared.reports.died(why);
    }

    /// What is wrong with the certificate that this server shows, for people; nothing once it is
    /// well again. May be told as often as is looked.
    pub fn certificate_is(&self, trouble: Option<&str>) {
        self.shared.reports.certificate(trouble);
    }

    /// Changes when alerts were changed by this server. A hint.
    pub fn alerts_changed(&self) -> watch::Receiver<u64> {
        self.shared.alerts_changed.subscribe()
    }

    /// What somebody of `tenant` asked for at `place` was done: what was refused there before is no
    /// longer in a row.
    pub fn move_taken(&self, tenant: &TenantId, place: &'static str) {
        self.shared.reports.rows.taken(tenant, place, || self.now());
    }
}
