//! Circuit breakers: a type of which too much fails is handed out no more for a while; then one job
//! is tried, and how it ends decides.

use crate::event::Change;
use crate::id::JobId;
use crate::limits::{CIRCUIT_CALLS_MAX, CIRCUIT_OPEN_SECS_MAX};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// When a circuit opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circuit {
    /// It opens when so many of a thousand attempts fail.
    pub failure_permille: u16,
    /// It looks at the last so many attempts that ended, and does not open before there were as
    /// many.
    pub min_calls: u8,
    /// It stays open for so long before one job is tried.
    pub open_secs: u32,
}

impl Circuit {
    pub(super) fn check(&self) -> Result<(), Rejection> {
        let refuse = |field, reason| Err(Rejection::FieldInvalid { field, reason });
        if !(1..=1000).contains(&self.failure_permille) {
            return refuse("circuit.failure_ratio", "must be between 0.001 and 1");
        }
        if self.min_calls == 0 || self.min_calls > CIRCUIT_CALLS_MAX {
            return refuse("circuit.min_calls", "must be between 1 and 100");
        }
        if self.open_secs == 0 || self.open_secs > CIRCUIT_OPEN_SECS_MAX {
            return refuse("circuit.open_seconds", "must be between 1 and 86400");
        }
        Ok(())
    }

    /// Whether so many failures among the last `min_calls` attempts are too many.
    fn is_too_much(&self, failures: u32) -> bool {
        failures * 1000 >= u32::from(self.failure_permille) * u32::from(self.min_calls)
    }
}

/// Where a circuit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CircuitState {
    /// Jobs are handed out.
    Closed {
        /// How the last attempts ended, the newest in the lowest bit; a failure is a one.
        ends: u128,
        /// How many attempts that is.
        count: u8,
    },
    /// None is, until then; after that, one is.
    Open {
        /// Until when.
        until: Timestamp,
    },
    /// One was, and how it ends decides.
    HalfOpen {
        /// Which.
        probe: JobId,
    },
}

impl Default for CircuitState {
    fn default() -> Self {
        CircuitState::Closed { ends: 0, count: 0 }
    }
}

impl CircuitState {
    /// How many jobs may be handed out at `now`.
    pub fn room(&self, now: Timestamp) -> u32 {
        match self {
            CircuitState::Closed { .. } => u32::MAX,
            CircuitState::Open { until } => u32::from(*until <= now),
            CircuitState::HalfOpen { .. } => 0,
        }
    }

    /// Whether a circuit has to know of such a move.
    pub(super) const fn is_told(change: &Change) -> bool {
        match change {
            Change::Claimed(_)
            | Change::Succeeded { .. }
            | Change::RetryScheduled { .. }
            | Change::DeadLettered { .. }
            | Change::Released { .. }
            | Change::Cancelled { .. } => true,
            Change::Hastened | Change::Unblocked { .. } | Change::DlqRecorded | Change::Failed => {
                false
            }
        }
    }

    /// A job of the type moved. One that was handed out before the circuit opened says nothing
    /// about how things are now.
    pub fn note(&mut self, circuit: &Circuit, job: JobId, change: &Change, at: Timestamp) {
        let has_failed = match change {
            Change::Claimed(_) => {
                if matches!(self, CircuitState::Open { .. }) {
                    *self = CircuitState::HalfOpen { probe: job };
                }
                return;
            }
            Change::Succeeded { .. } => Some(false),
            Change::RetryScheduled { .. } | Change::DeadLettered { .. } => Some(true),
            // Neither well nor badly: the next one is tried instead.
            Change::Released { .. } | Change::Cancelled { .. } => None,
            Change::Hastened | Change::Unblocked { .. } | Change::DlqRecorded | Change::Failed => {
                return;
            }
        };
        *self = match (*self, has_failed) {
            (CircuitState::HalfOpen { probe }, has_failed) if probe == job => match has_failed {
                Some(false) => CircuitState::default(),
                Some(true) => CircuitState::open(circuit, at),
                None => CircuitState::Open { until: at },
            },
            (CircuitState::Closed { ends, count }, Some(has_failed)) => {
                let ends = (ends << 1) | u128::from(has_failed);
                let count = count.saturating_add(1).min(circuit.min_calls);
                let window = ends & ((1 << u32::from(circuit.min_calls)) - 1);
                match count == circuit.min_calls && circuit.is_too_much(window.count_ones()) {
                    true => CircuitState::open(circuit, at),
                    false => CircuitState::Closed { ends: window, count },
                }
            }
            (other, _) => other,
        };
    }

    fn open(circuit: &Circuit, at: Timestamp) -> Self {
        CircuitState::Open { until: at.plus_millis(u64::from(circuit.open_secs) * 1000) }
    }

    /// The word for it at `now`.
    pub fn as_str(&self, now: Timestamp) -> &'static str {
        match self {
            CircuitState::Closed { .. } => "closed",
            CircuitState::Open { until } if *until > now => "open",
            CircuitState::Open { .. } | CircuitState::HalfOpen { .. } => "half_open",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Failure;

    const RULE: Circuit = Circuit { failure_permille: 500, min_calls: 4, open_secs: 10 };

    fn at(secs: i64) -> Timestamp {
        Timestamp(secs * 1_000_000)
    }

    fn failed() -> Change {
        let failure = Failure { code: "X".into(), message: "".into(), retryable: true };
        Change::RetryScheduled { failure, due_at: at(0), report: None }
    }

    const WELL: Change = Change::Succeeded { result: None, report: None };
    const GONE: Change = Change::Cancelled { code: "JOB_CANCELLED", reason: None };

    fn claimed() -> Change {
        Change::Claimed(Box::new(crate::job::Lease {
            fence: 1,
            secret: 1,
            worker: crate::name::WorkerId::new("w").unwrap(),
            granted_at: at(0),
            expires_at: at(9),
            deadline_at: at(9),
            settled_at: None,
            due_at: None,
            holder: None,
        }))
    }

    fn after(ends: &[bool]) -> CircuitState {
        let mut state = CircuitState::default();
        for has_failed in ends {
            let change = if *has_failed { failed() } else { WELL };
            state.note(&RULE, JobId(1), &change, at(0));
        }
        state
    }

    #[test]
    fn it_opens_when_so_many_of_the_last_attempts_failed() {
        let open = CircuitState::Open { until: at(10) };
        assert_eq!(after(&[true, true, true]).room(at(0)), u32::MAX, "too few to tell");
        assert_eq!(after(&[true, true, true, true]), open);
        assert_eq!(after(&[true, false, false, true]), open, "half is enough");
        assert_ne!(after(&[true, false, false, false]), open);
        assert_ne!(after(&[true, false, false, false, true, false]), open, "only the last four");
        assert_eq!((open.room(at(9)), open.room(at(10))), (0, 1), "then one is tried");
    }

    #[test]
    fn the_probe_decides_and_nobody_else() {
        let half_open = |changes: &[(u128, Change)]| {
            let mut state = CircuitState::Open { until: at(10) };
            for (job, change) in changes {
                state.note(&RULE, JobId(*job), change, at(12));
            }
            state
        };
        let probing = half_open(&[(7, claimed())]);
        assert_eq!(probing, CircuitState::HalfOpen { probe: JobId(7) });
        assert_eq!(probing.room(at(99)), 0, "one, and no other");
        assert_eq!(half_open(&[(7, claimed()), (8, WELL), (8, failed())]), probing);
        assert_eq!(half_open(&[(7, claimed()), (7, WELL)]), CircuitState::default());
        let open = CircuitState::Open { until: at(22) };
        assert_eq!(half_open(&[(7, claimed()), (7, failed())]), open);
        let again = CircuitState::Open { until: at(12) };
        assert_eq!(half_open(&[(7, claimed()), (7, GONE)]), again, "another is tried at once");
        assert_eq!(half_open(&[(8, WELL), (9, failed())]), CircuitState::Open { until: at(10) });
    }
}
