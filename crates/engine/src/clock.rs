//! The one clock. Time never runs backwards here: when the machine's clock is set back, ours goes
//! on at the pace of the monotonic clock until the machine has caught up.

use mainspring_kernel::Timestamp;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present instant; never before one it gave earlier.
    fn now(&self) -> Timestamp;
    /// How far the clock was set forward since the last call, beyond what went by. Leases are
    /// extended by it, so that no worker loses its job to a time server.
    fn take_jump(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock(Mutex<Reading>);

#[derive(Debug)]
struct Reading {
    given: Timestamp,
    at: Instant,
    jumped: Duration,
}

/// A difference between wall and monotonic time that is no longer mere slewing.
const JUMP_MIN: Duration = Duration::from_secs(2);

impl SystemClock {
    /// Starts from the machine's present time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        SystemClock(Mutex::new(Reading {
            given: wall(),
            at: Instant::now(),
            jumped: Duration::ZERO,
        }))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> Timestamp {
        let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Instant::now();
        let steady = reading.given + at.duration_since(reading.at);
        let wall = wall();
        let jump = wall.since(steady);
        if jump >= JUMP_MIN {
            reading.jumped += jump;
        }
        // Small differences follow the wall; a wall that is behind is waited for.
        reading.given = wall.max(steady);
        reading.at = at;
        reading.given
    }

    fn take_jump(&self) -> Duration {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).jumped)
    }
}

/// The clock of servers that share a database: paced by this machine's monotonic clock, set by the
/// database's, which they all see. The machine's own idea of the time does not matter.
#[derive(Debug)]
pub struct SharedClock(Mutex<Course>);

#[derive(Debug)]
struct Course {
    set: Timestamp,
    at: Instant,
    given: Timestamp,
    /// Whether this is the shared time, and not yet only the machine's.
    is_shared: bool,
}

impl SharedClock {
    /// Starts from the machine's time until it is first set.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        SharedClock(Mutex::new(Course {
            set: wall(),
            at: Instant::now(),
            given: Timestamp::EPOCH,
            is_shared: false,
        }))
    }

    /// Sets the clock to what the shared time is now. Set back, it stands still until the shared
    /// time has caught up; except the first time, for a machine may be hours ahead.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn set(&self, shared: Timestamp) {
        let mut course = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (course.set, course.at) = (shared, Instant::now());
        if !std::mem::replace(&mut course.is_shared, true) {
            course.given = Timestamp::EPOCH;
        }
    }
}

impl Default for SharedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        let mut course = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        course.given = course.given.max(course.set + course.at.elapsed());
        course.given
    }

    /// Never: one server must not extend the leases of all.
    fn take_jump(&self) -> Duration {
        Duration::ZERO
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn wall() -> Timestamp {
    Timestamp::EPOCH + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
