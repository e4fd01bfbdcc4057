//! How often something costly is done: no more than a small part of the time goes into it. A look
//! over rows that a long transaction keeps from being cleaned up takes ever longer, so it comes
//! ever less often.

use std::time::Duration;
use tokio::time::Instant;

/// One part in this many of the time, at most.
const SHARE: u32 = 20;

/// What takes no longer is not worth putting off.
const CHEAP: Duration = Duration::from_millis(5);

/// When something was last done, and how long it took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Throttle {
    last: Option<(Instant, Duration)>,
}

impl Throttle {
    pub(crate) const fn new() -> Self {
        Throttle { last: None }
    }

    /// Whether it is time again, if it is to be done every so often at most.
    pub(crate) fn is_due(&self, every: Duration) -> bool {
        self.due_in(every).is_zero()
    }

    /// How long until it is time again.
    pub(crate) fn due_in(&self, every: Duration) -> Duration {
        let Some((at, took)) = self.last else { return Duration::ZERO };
        let share = if took < CHEAP { Duration::ZERO } else { took * SHARE };
        every.max(share).saturating_sub(at.elapsed())
    }

    /// It was done just now, since `started`.
    pub(crate) fn done(&mut self, started: Instant) {
        let now = Instant::now();
        self.last = Some((now, now - started));
    }
}
