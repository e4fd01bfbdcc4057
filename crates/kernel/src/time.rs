//! Points in time as microseconds, the precision PostgreSQL keeps. There is no `now` here: time is
//! always a fact that somebody hands in.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The start of 1970.
    pub const EPOCH: Timestamp = Timestamp(0);
    /// Later than any instant that can be written on the wire.
    pub const MAX: Timestamp = Timestamp(i64::MAX);
    /// When what waits for something else than time is due: the last day but one that every clock
    /// can show.
    pub const NEVER: Timestamp = Timestamp(253_402_128_000_000_000);

    /// From whole milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// The start of the second this is in.
    pub const fn whole_second(self) -> Self {
        Self(self.0.saturating_sub(self.0.rem_euclid(1_000_000)))
    }

    /// This instant moved by `millis`, stopping at the ends of the scale.
    pub const fn plus_millis(self, millis: u64) -> Self {
        let micros =
            if millis > (i64::MAX / 1000) as u64 { i64::MAX } else { millis as i64 * 1000 };
        Self(self.0.saturating_add(micros))
    }

    /// How long after `earlier` this is; zero if it is not.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, span: Duration) -> Timestamp {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_add(micros))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, span: Duration) -> Timestamp {
        let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
        Timestamp(self.0.saturating_sub(micros))
    }
}
