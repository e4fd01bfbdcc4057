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

/// What was measured a few times: the middle one, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Figure {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Figure {
    pub(crate) fn of(figures: Vec<f64>) -> Self {
        let ends = |pick: fn(f64, f64) -> f64| figures.iter().copied().reduce(pick);
        let (least, most) = (ends(f64::min), ends(f64::max));
        let median = median(figures);
        Figure { median, least: least.unwrap_or(median), most: most.unwrap_or(median) }
    }

    /// From the least to the most, if there was more than one.
    pub(crate) fn spread(self) -> Option<[f64; 2]> {
        (self.least < self.most).then_some([self.least, self.most])
    }
}

impl From<f64> for Figure {
    fn from(only: f64) -> Self {
        Figure { median: only, least: only, most: only }
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
        let figure = Figure::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((figure.median, figure.spread()), (2.0, Some([1.0, 3.0])));
        assert_eq!(Figure::from(2.0).spread(), None);
        assert!(Figure::of(vec![]).median.is_nan());
        assert!(median(vec![]).is_nan() && quantile(&[], 0.5).is_nan());
    }
}
