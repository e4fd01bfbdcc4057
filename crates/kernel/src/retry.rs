//! The retry rule: exponential delay with a jitter that is the same on every replay.

use crate::fingerprint::{digest, number};
use crate::id::JobId;

/// How long to wait between tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Delay before the first retry.
    pub base_ms: u32,
    /// No delay is longer than this, before jitter.
    pub max_ms: u32,
}

impl Backoff {
    /// One second, doubling, at most thirty.
    pub const DEFAULT: Backoff = Backoff { base_ms: 1_000, max_ms: 30_000 };
    /// At once.
    pub const NONE: Backoff = Backoff { base_ms: 0, max_ms: 0 };
}

/// Largest jitter.
pub const JITTER_MS_MAX: u64 = 300;

/// `min(max_ms, base_ms * 2^(retry_count - 1)) + jitter`, with `retry_count` counted from one. A
/// base of zero is no delay at all, not a jitter alone.
pub fn delay_ms(backoff: Backoff, job: JobId, retry_count: u16) -> u64 {
    debug_assert!(retry_count >= 1, "the first retry has retry_count 1");
    if backoff.base_ms == 0 {
        return 0;
    }
    let doublings = u32::from(retry_count.saturating_sub(1)).min(32);
    let grown = u64::from(backoff.base_ms) << doublings;
    grown.min(u64::from(backoff.max_ms)) + jitter_ms(job, retry_count)
}

/// A number in `0..=300` that depends on nothing but the job and the retry.
pub fn jitter_ms(job: JobId, retry_count: u16) -> u64 {
    let hash = digest(&[b"jitter", &job.0.to_be_bytes(), &retry_count.to_be_bytes()]);
    number(hash) % (JITTER_MS_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_formula_and_repeat() {
        for bits in 0..2_000u128 {
            let job = JobId(bits << 64);
            for (retry, low) in
                [(1, 1_000), (2, 2_000), (3, 4_000), (5, 16_000), (6, 30_000), (999, 30_000)]
            {
                let delay = delay_ms(Backoff::DEFAULT, job, retry);
                assert!((low..=low + 300).contains(&delay), "retry {retry} gave {delay}");
                assert_eq!(delay, delay_ms(Backoff::DEFAULT, job, retry));
            }
        }
    }

    #[test]
    fn a_base_of_zero_is_no_delay_at_all() {
        for retry in [1, 2, 999] {
            assert_eq!(delay_ms(Backoff::NONE, JobId(7 << 64), retry), 0);
            assert_eq!(delay_ms(Backoff { base_ms: 0, max_ms: 9 }, JobId(7 << 64), retry), 0);
        }
    }

    #[test]
    fn jitter_reaches_both_ends() {
        let seen: std::collections::BTreeSet<u64> =
            (0..20_000u128).map(|bits| jitter_ms(JobId(bits), 1)).collect();
        assert_eq!((seen.first(), seen.last()), (Some(&0), Some(&300)));
        assert_eq!(seen.len(), 301);
    }
}
