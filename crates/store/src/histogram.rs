//! How large things were: counted by size as they happen, without a lock, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the sizes that are told apart where time is measured, in microseconds.
pub const SPANS: &[u64] = &[
    200,
    1_000,
    5_000,
    25_000,
    100_000,
    500_000,
    2_500_000,
    10_000_000,
    60_000_000,
    600_000_000,
    3_600_000_000,
];

/// Upper ends of the sizes that are told apart where things are counted.
pub const NUMBERS: &[u64] = &[1, 4, 16, 64, 256, 1_024, 4_096, 16_384];

/// Counts by size.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One for each bound, and one for what is larger than all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

impl Histogram {
    /// Of spans of time.
    pub fn of_spans() -> Self {
        Histogram::new(SPANS)
    }

    /// Of numbers of things.
    pub fn of_numbers() -> Self {
        Histogram::new(NUMBERS)
    }

    fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Counts a span of time.
    pub fn took(&self, span: Duration) {
        self.add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts a number.
    pub fn add(&self, size: u64) {
        let at = self.bounds.partition_point(|bound| *bound < size);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(size, Ordering::Relaxed);
    }

    /// What was counted so far.
    pub fn readout(&self) -> Readout {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Readout { bounds: self.bounds, counts, sum: self.sum.load(Ordering::Relaxed) }
    }
}

/// What a histogram had counted at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readout {
    /// Upper ends of the sizes that are told apart.
    pub bounds: &'static [u64],
    /// How many there were up to each, above the one before; the last has no upper end.
    pub counts: Vec<u64>,
    /// All sizes added up.
    pub sum: u64,
}

impl Readout {
    /// Of spans of time, of which there were none.
    pub fn no_spans() -> Self {
        Histogram::of_spans().readout()
    }

    /// Adds what another one counted by the same sizes.
    pub fn add(&mut self, other: &Readout) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
    }
}

/// What a store spends time on, since the process started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// Until the disk had what was written to the journal.
    pub syncs: Readout,
    /// Until the database had answered.
    pub database: Readout,
}

impl Default for Spent {
    fn default() -> Self {
        Spent { syncs: Readout::no_spans(), database: Readout::no_spans() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_counts_where_it_belongs() {
        let sizes = Histogram::of_numbers();
        for size in [0, 1, 2, 4, 5, 16_384, 16_385, u64::MAX / 2] {
            sizes.add(size);
        }
        let told = sizes.readout();
        assert_eq!(told.counts, [2, 2, 1, 0, 0, 0, 0, 1, 2]);
        let mut twice = told.clone();
        twice.add(&told);
        assert_eq!(twice.counts.iter().sum::<u64>(), 16);
        let spans = Histogram::of_spans();
        spans.took(Duration::from_micros(201));
        spans.took(Duration::from_secs(7_200));
        let told = spans.readout();
        assert_eq!((told.counts[1], told.counts[11], told.sum), (1, 1, 7_200_000_201));
    }
}
