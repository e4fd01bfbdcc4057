//! How long due jobs waited for a worker: counted in steps that double, so that it costs nothing to
//! note one and any stretch of time can be looked at by taking two counts from each other.

use mainspring_kernel::{Job, StateName};
use std::time::Duration;

/// Steps: below 16 µs, below 32 µs, and so on; the last is everything above two minutes.
const STEPS: usize = 24;
/// The end of the first step, as a power of two microseconds.
const FIRST: u32 = 4;

/// First attempts by how long the job had been due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pickup([u64; STEPS]);

impl Pickup {
    /// Counts a job that has just been handed out for the first time; when a later attempt was due
    /// is not known any more.
    pub(crate) fn note(&mut self, job: &Job) {
        if job.state.name() != StateName::Running || job.fence != 1 {
            return;
        }
        let due_at = job.run_at.max(job.created_at);
        let waited = job.started_at.map_or(Duration::ZERO, |at| at.since(due_at));
        self.0[step(waited)] += 1;
    }

    /// With what `later` has counted.
    pub(crate) fn add(&mut self, later: &Pickup) {
        self.0.iter_mut().zip(later.0).for_each(|(sum, more)| *sum += more);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|count| *count == 0)
    }

    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Pickup) -> Pickup {
        let mut rest = *self;
        rest.0.iter_mut().zip(earlier.0).for_each(|(sum, less)| *sum = sum.saturating_sub(less));
        rest
    }

    /// How long all but `share` of them waited at most, to the next step; `None` of none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let all: u64 = self.0.iter().sum();
        let wanted = (all as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.0.iter().enumerate() {
            seen += count;
            if all > 0 && seen >= wanted {
                return Some(Duration::from_micros(1 << (FIRST + index as u32)));
            }
        }
        None
    }
}

fn step(waited: Duration) -> usize {
    let micros = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
    let bits = u64::BITS - micros.leading_zeros();
    (bits.saturating_sub(FIRST) as usize).min(STEPS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double() {
        for (micros, expected) in [(0, 0), (15, 0), (16, 1), (31, 1), (32, 2), (1_000, 6)] {
            assert_eq!(step(Duration::from_micros(micros)), expected, "{micros}");
        }
        assert_eq!(step(Duration::MAX), STEPS - 1);
    }

    #[test]
    fn a_quantile_is_of_what_was_counted_since() {
        let mut early = Pickup::default();
        early.0[20] = 100;
        let mut late = early;
        late.0[0] += 99;
        late.0[6] += 1;
        let between = late.since(&early);
        assert_eq!(between.quantile(0.5), Some(Duration::from_micros(16)));
        assert_eq!(between.quantile(1.0), Some(Duration::from_micros(1_024)));
        assert_eq!(early.since(&early).quantile(0.5), None);
        let mut sum = early;
        sum.add(&between);
        assert_eq!(sum, late);
    }
}
