//! When a waiting job may be expected to start, and what that rests on. An estimate is told to
//! people and decides nothing; where nothing is known none is made up.

use crate::flow::{Held, HeldBy};
use crate::limits::RETRY_EVERY;
use crate::time::Timestamp;
use std::time::Duration;

/// Estimates do not go further ahead than this: what is later is unknown.
const AHEAD_MAX: Duration = Duration::from_secs(366 * 86_400);

/// What is known of a job that waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// When it is due.
    pub due_at: Timestamp,
    /// What holds it until somebody does something, by its code: a pause, a gate, other jobs, no
    /// worker.
    pub blocked: Option<&'static str>,
    /// The bucket or circuit that holds it.
    pub held: Option<Held>,
    /// Jobs a second that the rate limit lets through.
    pub rate: Option<f64>,
    /// Ready jobs of its kind that go before it.
    pub ahead: usize,
    /// Whether it is a retry that fresh jobs go before.
    pub is_fresh_first: bool,
    /// Whether the concurrency limit is used up.
    pub is_full: bool,
    /// How many jobs of its kind were started lately, and in which time.
    pub pace: Option<(u32, Duration)>,
}

/// What an estimate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// It starts when it is due.
    Due,
    /// It starts when the bucket of its rate limit has room for it.
    Refill,
    /// It starts when the circuit of its type lets one through.
    Circuit,
    /// Nothing of its kind is before it: it goes to the next worker that asks.
    NextPull,
    /// Its place, and how many of its kind were started lately.
    Pace,
    /// Nobody knows: this code of an explanation has to go away first, or none of its kind was
    /// started lately.
    Unknown(Option<&'static str>),
}

impl Basis {
    /// Every word that [`Basis::as_str`] may answer.
    pub const ALL: [&str; 6] = ["due", "refill", "circuit", "next_pull", "pace", "unknown"];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Basis::Due => "due",
            Basis::Refill => "refill",
            Basis::Circuit => "circuit",
            Basis::NextPull => "next_pull",
            Basis::Pace => "pace",
            Basis::Unknown(_) => "unknown",
        }
    }
}

/// When a job may be expected to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// When; nothing if that is unknown.
    pub at: Option<Timestamp>,
    /// What it rests on.
    pub basis: Basis,
}

impl Outlook {
    /// When the job may be expected to start, as things are at `now`.
    pub fn estimate(&self, now: Timestamp) -> Estimate {
        let unknown = |code| Estimate { at: None, basis: Basis::Unknown(code) };
        if let Some(code) = self.blocked {
            return unknown(Some(code));
        }
        let known = |at: Option<Timestamp>, basis| match at {
            Some(at) => Estimate { at: Some(at), basis },
            None => unknown(None),
        };
        if self.due_at > now {
            // Who will be before it then cannot be told.
            let opens_at = self.held.and_then(|held| held.until);
            let at = self.due_at.max(opens_at.unwrap_or(self.due_at));
            return known(later(now, at.since(now)), Basis::Due);
        }
        match (self.held, self.held.and_then(|held| held.until)) {
            (Some(Held { by: HeldBy::Rate, .. }), Some(until)) => {
                let rate = self.rate.filter(|rate| *rate > 0.0);
                let more = rate.map_or(0.0, |rate| self.ahead as f64 / rate);
                known(seconds(until.max(now), more), Basis::Refill)
            }
            (Some(Held { by: HeldBy::Circuit, .. }), Some(until)) if self.ahead == 0 => {
                known(Some(until.max(now)), Basis::Circuit)
            }
            // How the one ends that is tried decides.
            (Some(Held { by: HeldBy::Circuit, .. }), _) => unknown(Some("CIRCUIT_OPEN")),
            (Some(Held { by: HeldBy::Rate, .. }), None) | (None, _) => self.by_pace(now),
        }
    }

    fn by_pace(&self, now: Timestamp) -> Estimate {
        if self.ahead == 0 && !self.is_full && !self.is_fresh_first {
            return Estimate { at: Some(now), basis: Basis::NextPull };
        }
        let found = self.pace.filter(|(started, _)| *started > 0).and_then(|(started, over)| {
            let turns = if self.is_fresh_first { f64::from(RETRY_EVERY) } else { 1.0 };
            let each = over.as_secs_f64() / f64::from(started);
            seconds(now, (self.ahead as f64 + 1.0) * turns * each)
        });
        match found {
            Some(at) => Estimate { at: Some(at), basis: Basis::Pace },
            None => Estimate { at: None, basis: Basis::Unknown(None) },
        }
    }
}

fn seconds(from: Timestamp, more: f64) -> Option<Timestamp> {
    Duration::try_from_secs_f64(more).ok().and_then(|more| later(from, more))
}

fn later(from: Timestamp, more: Duration) -> Option<Timestamp> {
    (more <= AHEAD_MAX).then(|| from + more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint::digest;

    const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
    const READY: Outlook = Outlook {
        due_at: NOW,
        blocked: None,
        held: None,
        rate: None,
        ahead: 0,
        is_fresh_first: false,
        is_full: false,
        pace: None,
    };

    fn at(millis: u64) -> Timestamp {
        NOW.plus_millis(millis)
    }

    fn held(by: HeldBy, until: Option<Timestamp>) -> Option<Held> {
        Some(Held { by, until, key: digest(&[]), is_keyed: false })
    }

    #[test]
    fn an_estimate_says_what_it_rests_on() {
        let minute = Duration::from_secs(60);
        let paced = Outlook { ahead: 29, pace: Some((60, minute)), ..READY };
        let told = [
            (READY, Some(NOW), "next_pull"),
            (Outlook { due_at: at(500), ahead: 7, ..READY }, Some(at(500)), "due"),
            (Outlook { due_at: Timestamp::NEVER, ..READY }, None, "unknown"),
            (Outlook { blocked: Some("QUEUE_PAUSED"), ..READY }, None, "unknown"),
            (paced, Some(at(30_000)), "pace"),
            (Outlook { is_fresh_first: true, ..paced }, Some(at(600_000)), "pace"),
            (Outlook { ahead: 0, is_full: true, ..paced }, Some(at(1_000)), "pace"),
            (Outlook { pace: Some((0, minute)), ..paced }, None, "unknown"),
            (Outlook { pace: None, ..paced }, None, "unknown"),
            (Outlook { held: held(HeldBy::Circuit, Some(at(9))), ..READY }, Some(at(9)), "circuit"),
            (Outlook { held: held(HeldBy::Circuit, None), ..READY }, None, "unknown"),
            (Outlook { held: held(HeldBy::Circuit, Some(at(9))), ..paced }, None, "unknown"),
        ];
        for (outlook, when, basis) in told {
            let found = outlook.estimate(NOW);
            assert_eq!((found.at, found.basis.as_str()), (when, basis), "{outlook:?}");
            assert!(Basis::ALL.contains(&found.basis.as_str()));
        }
    }

    #[test]
    fn a_bucket_lets_those_before_it_go_first() {
        let held = held(HeldBy::Rate, Some(at(200)));
        let limited = Outlook { held, rate: Some(2.0), ahead: 3, ..READY };
        let refill = |at| Estimate { at: Some(at), basis: Basis::Refill };
        assert_eq!(limited.estimate(NOW), refill(at(1_700)));
        assert_eq!(Outlook { ahead: 0, ..limited }.estimate(NOW), refill(at(200)));
        let later = Outlook { due_at: at(100), ..limited }.estimate(NOW);
        assert_eq!(later, Estimate { at: Some(at(200)), basis: Basis::Due });
        let slow = Outlook { rate: Some(1e-12), ..limited }.estimate(NOW);
        assert_eq!(slow.at, None, "nobody knows what will be in a thousand years");
    }
}
