//! How often something costly is done: no more than a small part of the time goes into it. A look
//! over rows that a long transaction keeps from being cleaned up takes ever longer, so it comes
//! ever less often. What took long only once is no cost: the machine, or the database, stood still.

use std::time::Duration;
use tokio::time::Instant;

/// One part in this many of the time, at most.
const SHARE: u32 = 20;

/// What takes no longer is not worth putting off.
const CHEAP: Duration = Duration::from_millis(5);

/// Nothing is put off for longer, whatever it costs: jobs may wait to be found.
const PUT_OFF_MAX: Duration = Duration::from_secs(5);

/// When something was last done, and how long it takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    at: Instant,
    took: Duration,
    /// The shorter of the last two times.
    cost: Duration,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Pace { last: None }
    }

    /// Whether it is time again, if it is to be done every so often at most.
    pub(crate) fn is_due(&self, every: Duration) -> bool {
        self.due_in(every).is_zero()
    }

    /// How long until it is time again.
    pub(crate) fn due_in(&self, every: Duration) -> Duration {
        let Some(Last { at, cost, .. }) = self.last else { return Duration::ZERO };
        let share = if cost < CHEAP { Duration::ZERO } else { (cost * SHARE).min(PUT_OFF_MAX) };
        every.max(share).saturating_sub(at.elapsed())
    }

    /// It was done just now, since `started`.
    pub(crate) fn done(&mut self, started: Instant) {
        let now = Instant::now();
        let took = now - started;
        let cost = self.last.map_or(Duration::ZERO, |last| took.min(last.took));
        self.last = Some(Last { at: now, took, cost });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pace after something that took this long, one time after the other.
    fn after(times: &[Duration]) -> Pace {
        let mut pace = Pace::new();
        for took in times {
            pace.done(Instant::now() - *took);
        }
        pace
    }

    #[test]
    fn what_takes_long_each_time_is_put_off_and_never_for_long() {
        let (little, long) = (Duration::from_millis(100), Duration::from_secs(3));
        assert!(after(&[]).is_due(long), "never done");
        let put_off = after(&[little, little]).due_in(Duration::ZERO);
        assert!(put_off > little * 15 && put_off < little * 25, "{put_off:?}");
        let put_off = after(&[long, long]).due_in(Duration::ZERO);
        assert!(put_off > long && put_off <= PUT_OFF_MAX, "{put_off:?}");
    }

    /// A server whose first look stood still for 1.5 s did not look again for 30.
    #[test]
    fn what_took_long_once_is_not_put_off() {
        let (quick, long) = (Duration::from_millis(1), Duration::from_secs(3));
        for times in [&[long][..], &[quick, long], &[long, quick]] {
            assert!(after(times).is_due(Duration::ZERO), "{times:?}");
            assert!(!after(times).is_due(long), "{times:?}");
        }
    }
}
