//! The pulse of the server over the last hour: a sample every few seconds of numbers that are kept
//! anyway, in a ring that does not grow. Pages draw it; nobody counts anything for them.

use super::parts;
use crate::limits::{PULSE_EVERY_SECS, PULSE_SAMPLES_MAX};
use mainspring_engine::store::Counts;
use mainspring_engine::{Engine, Pickup};
use mainspring_kernel::{StateName, Timestamp};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(PULSE_EVERY_SECS);
/// Over how many samples a rate is told.
const RATE_SAMPLES: usize = 6;

/// What was seen at one moment.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) at: Timestamp,
    /// Indexed like [`StateName::ALL`].
    pub(super) by_state: [u64; 8],
    pub(super) submitted: u64,
    pub(super) claims: u64,
    pub(super) retries: u64,
    /// How long the oldest job that is ready has been.
    pub(super) oldest_ready: Duration,
    /// How long jobs waited for their first attempt, on this server, since it started.
    pub(super) pickup: Pickup,
}

impl Sample {
    fn of(counts: &Counts, pickup: Pickup, at: Timestamp) -> Self {
        Sample {
            at,
            by_state: counts.by_state,
            submitted: counts.submitted,
            claims: counts.claims,
            retries: counts.retries,
            oldest_ready: counts.oldest_due.map_or(Duration::ZERO, |due| at.since(due)),
            pickup,
        }
    }

    fn ended(&self) -> u64 {
        of(&self.by_state, StateName::Succeeded)
            + of(&self.by_state, StateName::Failed)
            + of(&self.by_state, StateName::Cancelled)
    }
}

/// How many are in a state.
pub(super) fn of(by_state: &[u64; 8], state: StateName) -> u64 {
    let found = StateName::ALL.iter().zip(by_state).find(|(one, _)| **one == state);
    found.map_or(0, |(_, count)| *count)
}

/// How often the moves of the lifecycle are made, per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Rates {
    pub(super) submitted: f64,
    pub(super) claims: f64,
    pub(super) retries: f64,
    pub(super) succeeded: f64,
    pub(super) failed: f64,
    pub(super) cancelled: f64,
}

/// One line of a chart: what it was at each moment, from then until now.
#[derive(Debug, Clone, Default)]
pub(super) struct Course {
    pub(super) points: Vec<(Timestamp, f64)>,
}

/// The last hour.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<VecDeque<Sample>>);

impl Pulse {
    fn note(&self, sample: Sample) {
        let mut samples = self.samples();
        // A clock that was set back would draw a line backwards.
        if samples.back().is_some_and(|last| last.at >= sample.at) {
            samples.clear();
        }
        if samples.len() >= PULSE_SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// How often moves are made, over the last minute.
    pub(super) fn rates(&self) -> Rates {
        let samples = self.samples();
        let Some(last) = samples.back() else { return Rates::default() };
        let first = &samples[samples.len().saturating_sub(RATE_SAMPLES + 1)];
        let secs = last.at.since(first.at).as_secs_f64();
        let per = |now: u64, before: u64| match secs > 0.0 {
            true => now.saturating_sub(before) as f64 / secs,
            false => 0.0,
        };
        let state = |state| per(of(&last.by_state, state), of(&first.by_state, state));
        Rates {
            submitted: per(last.submitted, first.submitted),
            claims: per(last.claims, first.claims),
            retries: per(last.retries, first.retries),
            succeeded: state(StateName::Succeeded),
            failed: state(StateName::Failed),
            cancelled: state(StateName::Cancelled),
        }
    }

    /// Jobs that ended, per second.
    pub(super) fn throughput(&self) -> Course {
        self.between(|before, now, secs| {
            Some(now.ended().saturating_sub(before.ended()) as f64 / secs)
        })
    }

    /// How long half of the jobs, or all but a few, waited for a worker, in seconds.
    pub(super) fn pickup(&self, share: f64) -> Course {
        self.between(|before, now, _| {
            let waited = now.pickup.since(&before.pickup).quantile(share)?;
            Some(waited.as_secs_f64())
        })
    }

    /// How long the oldest ready job has waited, in seconds.
    pub(super) fn oldest_ready(&self) -> Course {
        self.between(|_, now, _| Some(now.oldest_ready.as_secs_f64()))
    }

    fn between(&self, value: impl Fn(&Sample, &Sample, f64) -> Option<f64>) -> Course {
        let samples = self.samples();
        let pairs = samples.iter().zip(samples.iter().skip(1));
        let points = pairs.filter_map(|(before, now)| {
            let secs = now.at.since(before.at).as_secs_f64();
            value(before, now, secs.max(0.001)).map(|value| (now.at, value))
        });
        Course { points: points.collect() }
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<Sample>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Course {
    /// The latest value as text.
    pub(super) fn now(&self, told: fn(f64) -> String) -> String {
        self.points.last().map_or_else(|| "–".to_owned(), |(_, value)| told(*value))
    }

    /// The greatest value.
    pub(super) fn most(&self) -> f64 {
        self.points.iter().map(|(_, value)| *value).fold(0.0, f64::max)
    }
}

/// Seconds as text.
pub(super) fn seconds(value: f64) -> String {
    match value > 0.0 {
        true => parts::span(Duration::from_secs_f64(value)),
        false => "0 s".to_owned(),
    }
}

/// Samples until the task ends. While the store cannot be had there is no sample.
pub(super) async fn run(pulse: &Pulse, engine: &Engine) {
    loop {
        if let Ok(counts) = engine.counts().await {
            pulse.note(Sample::of(&counts, engine.execution().pickup, engine.now()));
        }
        tokio::time::sleep(EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(secs: i64, submitted: u64, succeeded: u64) -> Sample {
        let mut by_state = [0; 8];
        by_state[5] = succeeded;
        let counts = Counts { by_state, submitted, ..Counts::default() };
        Sample::of(&counts, Pickup::default(), Timestamp(secs * 1_000_000))
    }

    #[test]
    fn rates_are_of_the_last_minute() {
        let pulse = Pulse::default();
        assert_eq!(pulse.rates(), Rates::default());
        pulse.note(sample(0, 0, 0));
        assert_eq!(pulse.rates(), Rates::default(), "one sample has no rate");
        for n in 1..=10 {
            pulse.note(sample(n * 10, 1_000_000, (n * 30) as u64));
        }
        let rates = pulse.rates();
        assert_eq!((rates.submitted, rates.succeeded), (0.0, 3.0), "what was long ago is over");
        let course = pulse.throughput();
        assert_eq!(course.points.len(), 10);
        assert!(course.points.iter().all(|(_, value)| *value == 3.0));
    }

    #[test]
    fn the_ring_does_not_grow_and_no_line_runs_back() {
        let pulse = Pulse::default();
        for n in 0..2 * PULSE_SAMPLES_MAX as i64 {
            pulse.note(sample(n, 0, 0));
        }
        assert_eq!(pulse.samples().len(), PULSE_SAMPLES_MAX);
        pulse.note(sample(5, 0, 0));
        assert_eq!(pulse.samples().len(), 1, "the clock was set back");
    }
}
