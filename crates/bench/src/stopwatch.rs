//! Elapsed time, and the figures made of it.

use std::time::{Duration, Instant};

/// Started when made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    pub(crate) fn start() -> Self {
        Stopwatch(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Nanoseconds so far, for stamps inside payloads.
    pub(crate) fn nanos(self) -> u64 {
        u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// How many a second, up to now.
    pub(crate) fn rate(self, count: usize) -> f64 {
        count as f64 / self.elapsed().as_secs_f64().max(1e-9)
    }
}

/// The middle one.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The value below which `share` of the sorted `figures` lie.
pub(crate) fn quantile(figures: &[f64], share: f64) -> f64 {
    let last = figures.len().saturating_sub(1);
    let index = (share * last as f64).round() as usize;
    figures.get(index.min(last)).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles_are_members() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&sorted, 0.5), quantile(&sorted, 0.99)), (51.0, 99.0));
        assert!(median(vec![]).is_nan() && quantile(&[], 0.5).is_nan());
    }
}
