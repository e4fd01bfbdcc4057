//! Rate limits: a bucket of tokens that fills up by itself. Handing out a job takes one.

use super::key::KeySource;
use crate::limits::{RATE_BURST_MAX, RATE_NANOS_MIN, RATE_PER_SECOND_MAX};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// Nanoseconds in a second, and nano-tokens in a token.
const NANOS: i64 = 1_000_000_000;

/// How many jobs may be handed out in a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Billionths of a job a second.
    nanos_per_second: u64,
    /// At most this many at once, after a pause.
    pub burst: u32,
    /// Where the key is found that has a bucket of its own; one bucket for all if `None`.
    pub key: Option<KeySource>,
}

impl RateLimit {
    /// So many a second; at once as many as `burst` says, or as fall into a second.
    pub fn new(per_second: f64, burst: Option<u32>, key: Option<KeySource>) -> Self {
        let per_second = if per_second.is_finite() { per_second.max(0.0) } else { 0.0 };
        let most = f64::from(RATE_PER_SECOND_MAX) + 1.0;
        let nanos_per_second = (per_second.min(most) * NANOS as f64).floor() as u64;
        let a_second = (per_second.min(most).ceil() as u32).min(RATE_BURST_MAX);
        RateLimit { nanos_per_second, burst: burst.unwrap_or(a_second.max(1)), key }
    }

    /// The same from what is stored.
    pub const fn stored(nanos_per_second: u64, burst: u32, key: Option<KeySource>) -> Self {
        RateLimit { nanos_per_second, burst, key }
    }

    /// Billionths of a job a second.
    pub const fn nanos_per_second(&self) -> u64 {
        self.nanos_per_second
    }

    /// How many a second.
    pub fn per_second(&self) -> f64 {
        self.nanos_per_second as f64 / NANOS as f64
    }

    /// Nanoseconds from one token to the next: rounded up, so that the rate is never exceeded.
    fn interval(&self) -> i64 {
        let nanos = u128::from(self.nanos_per_second.max(1));
        let interval = (NANOS as u128 * NANOS as u128).div_ceil(nanos);
        i64::try_from(interval).unwrap_or(i64::MAX)
    }

    /// Nanoseconds in which an empty bucket fills up.
    fn fills_in(&self) -> i64 {
        self.interval().saturating_mul(i64::from(self.burst))
    }

    pub(super) fn check(&self) -> Result<(), Rejection> {
        let refuse = |field, reason| Err(Rejection::FieldInvalid { field, reason });
        let most = u64::from(RATE_PER_SECOND_MAX) * NANOS as u64;
        if !(RATE_NANOS_MIN..=most).contains(&self.nanos_per_second) {
            return refuse("rate_limit.per_second", "must be between 0.00001 and 100000");
        }
        if self.burst == 0 || self.burst > RATE_BURST_MAX {
            return refuse("rate_limit.burst", "must be between 1 and 10000");
        }
        self.key.as_ref().map_or(Ok(()), |key| key.check("rate_limit.key"))
    }
}

/// How full a bucket is: all of it in one instant, as nothing but time fills it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bucket {
    /// When it is full, if nothing is taken from it; nanoseconds since 1970. A full bucket is as
    /// good as none.
    pub full_at: i64,
}

impl Bucket {
    /// When it is full, seen at `now`. A clock that was set back leaves nobody waiting for longer
    /// than an empty bucket would.
    fn full_at(self, limit: &RateLimit, now: Timestamp) -> i64 {
        let now = nanos(now);
        self.full_at.clamp(now, now.saturating_add(limit.fills_in()))
    }

    /// How many may be handed out at `now`.
    pub fn room(self, limit: &RateLimit, now: Timestamp) -> u32 {
        let missing = self.full_at(limit, now).saturating_sub(nanos(now));
        let missing = (missing as u64).div_ceil(limit.interval() as u64);
        limit.burst.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX))
    }

    /// One is handed out at `now`.
    pub fn take(&mut self, limit: &RateLimit, now: Timestamp) {
        let after = self.full_at(limit, now).saturating_add(limit.interval());
        // Moves by hand are counted, too, and may find it empty.
        self.full_at = after.min(nanos(now).saturating_add(limit.fills_in()));
    }

    /// When the next one may be handed out, at `now` or later.
    pub fn refills_at(self, limit: &RateLimit, now: Timestamp) -> Timestamp {
        let rest = limit.interval().saturating_mul(i64::from(limit.burst) - 1);
        let at = self.full_at(limit, now).saturating_sub(rest);
        Timestamp(at.div_euclid(1000) + i64::from(at.rem_euclid(1000) > 0)).max(now)
    }

    /// From when on it is full.
    pub fn idle_from(self) -> Timestamp {
        Timestamp(self.full_at.div_euclid(1000).saturating_add(1))
    }
}

fn nanos(at: Timestamp) -> i64 {
    at.0.saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limit(per_second: f64, burst: u32) -> RateLimit {
        RateLimit::new(per_second, Some(burst), None)
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp(1_700_000_000_000_000 + millis * 1000)
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_the_rate() {
        let limit = limit(2.0, 3);
        let mut bucket = Bucket::default();
        assert_eq!(bucket.room(&limit, at(0)), 3);
        for left in [2, 1, 0] {
            bucket.take(&limit, at(0));
            assert_eq!(bucket.room(&limit, at(0)), left);
        }
        assert_eq!(bucket.refills_at(&limit, at(0)), at(500));
        assert_eq!((bucket.room(&limit, at(499)), bucket.room(&limit, at(500))), (0, 1));
        assert_eq!(bucket.room(&limit, at(60_000)), 3, "never more than the burst");
        assert_eq!(bucket.refills_at(&limit, at(700)), at(700), "it may go at once");
        assert!(bucket.idle_from() > at(1_500) && bucket.idle_from() < at(1_501));
    }

    #[test]
    fn an_odd_rate_is_rounded_down_and_never_up() {
        let limit = limit(3.0, 1);
        let mut bucket = Bucket::default();
        let (mut now, mut given) = (at(0), 0);
        while now < at(10_000) {
            assert_eq!(bucket.room(&limit, now), 1);
            bucket.take(&limit, now);
            given += 1;
            let next = bucket.refills_at(&limit, now);
            assert_eq!(bucket.room(&limit, Timestamp(next.0 - 1)), 0, "not a moment sooner");
            now = next;
        }
        assert_eq!(given, 30);
    }

    #[test]
    fn a_clock_that_was_set_back_does_not_hold_for_longer_than_an_empty_bucket() {
        let limit = limit(1.0, 2);
        let mut bucket = Bucket::default();
        bucket.take(&limit, at(3_600_000));
        assert_eq!(bucket.refills_at(&limit, at(0)), at(1_000));
        bucket.take(&limit, at(0));
        assert_eq!(bucket.refills_at(&limit, at(0)), at(1_000), "as empty as it gets");
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        for (bad, good) in [
            (limit(0.0, 1), limit(0.00001, 1)),
            (limit(100_001.0, 1), limit(100_000.0, 1)),
            (limit(f64::NAN, 1), limit(0.5, 1)),
            (limit(1.0, 0), limit(1.0, 1)),
            (limit(100_000.0, 10_001), limit(100_000.0, 10_000)),
            (limit(0.000009, 1), limit(5.0 / 86_400.0, 5)),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
            assert_eq!(good.check(), Ok(()), "{good:?}");
        }
        assert_eq!(RateLimit::new(2.5, None, None).burst, 3, "as fall into a second");
        assert_eq!(RateLimit::new(0.1, None, None).burst, 1);
    }

    proptest! {
        /// Whatever is asked when: in any stretch of time no more is given than the burst and the
        /// rate allow.
        #[test]
        fn no_stretch_of_time_gets_more(
            rate in 1u32..2_000,
            burst in 1u32..20,
            steps in proptest::collection::vec((0i64..400_000, 0u32..9), 1..60),
        ) {
            let limit = limit(f64::from(rate) / 10.0, burst);
            let (mut bucket, mut now, mut given) = (Bucket::default(), at(0), Vec::new());
            for (pause, wanted) in steps {
                now = Timestamp(now.0 + pause);
                let room = bucket.room(&limit, now);
                prop_assert_eq!(room > 0, bucket.refills_at(&limit, now) == now);
                for _ in 0..wanted.min(room) {
                    bucket.take(&limit, now);
                    given.push(now);
                }
            }
            for (first, start) in given.iter().enumerate() {
                for (count, end) in given[first..].iter().enumerate() {
                    let span = (end.0 - start.0) as f64 / 1e6;
                    let most = f64::from(burst) + span * f64::from(rate) / 10.0;
                    prop_assert!(count as f64 + 1.0 <= most + 1e-6, "{} in {}", count + 1, span);
                }
            }
        }
    }
}
