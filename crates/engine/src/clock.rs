//! The one clock. Time never runs backwards here and never stands still; what happens when a
//! machine's or a database's clock is set is the rule of `kernel/src/shared_time.rs`. This file
//! reads the clocks, keeps the rule, logs and counts.

use mainspring_kernel::Timestamp;
use mainspring_kernel::shared_time::{
    JUMP_MIN, Judgement, Jump, Known, Look, SharedTime, Silence, remember, worked_off,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present instant; never before one it gave earlier.
    fn now(&self) -> Timestamp;
    /// The last spans over which the clock was set forward, oldest first. Leases and deadlines are
    /// longer by them, so that no worker loses its job to a time server.
    fn jumps(&self) -> Arc<[Jump]>;
    /// The last spans in which no server could reach the store, oldest first. A store of one
    /// process is always there; what it missed while it was not is the restart's grace.
    fn silences(&self) -> Arc<[Silence]> {
        Arc::default()
    }
    /// How often the clock was set, and how far it is from the wall.
    fn course(&self) -> Course {
        Course::default()
    }
}

/// How often a clock was set since this process started, and how far it is from the wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// Times it was set forward.
    pub forward: u64,
    /// Times it was set back.
    pub back: u64,
    /// How far it is ahead of the wall.
    pub ahead: Duration,
}

/// The clocks of a machine, to be replaced in tests.
pub struct Sources {
    /// What people call the time. May be set at any moment.
    pub wall: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// Goes on at a steady pace from any beginning; stops while the machine sleeps.
    pub steady: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl Sources {
    /// The clocks of this machine.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn system() -> Self {
        let began = Instant::now();
        Sources { wall: Box::new(wall), steady: Box::new(move || began.elapsed()) }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
fn wall() -> Timestamp {
    Timestamp::EPOCH + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The machine's clock.
pub struct SystemClock {
    sources: Sources,
    reading: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    given: Timestamp,
    at: Duration,
    jumps: Arc<[Jump]>,
    course: Course,
}

impl SystemClock {
    /// Starts from the machine's present time.
    pub fn new() -> Self {
        Self::of(Sources::system())
    }

    /// A clock that reads these sources.
    pub fn of(sources: Sources) -> Self {
        let (given, at) = ((sources.wall)(), (sources.steady)());
        let reading = Reading { given, at, jumps: Arc::default(), course: Course::default() };
        SystemClock { sources, reading: Mutex::new(reading) }
    }

    fn read(&self) -> MutexGuard<'_, Reading> {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, at) = ((self.sources.wall)(), (self.sources.steady)());
        reading.go_on(wall, at);
        reading
    }
}

impl Reading {
    fn go_on(&mut self, wall: Timestamp, at: Duration) {
        let passed = at.saturating_sub(self.at);
        let expected = self.given + passed;
        let jump = wall.since(expected);
        // What was ahead before is no news; what is more than that was set back since.
        let set_back = expected.since(wall).saturating_sub(self.course.ahead);
        if jump >= JUMP_MIN {
            self.jumps = remember(&self.jumps, Jump { from: expected, to: wall }).into();
            self.course.forward += 1;
            tracing::warn!(?jump, "the clock was set forward; leases and deadlines move along");
        } else if set_back >= JUMP_MIN {
            self.course.back += 1;
            tracing::warn!(?set_back, "the clock was set back; time goes on until it is met");
        }
        // A wall that is ahead is followed, one that is behind is waited for, but not at rest.
        let ahead = worked_off(expected.since(wall), passed);
        self.given = (wall + ahead).max(self.given);
        self.course.ahead = self.given.since(wall);
        self.at = at;
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.read().given
    }

    fn jumps(&self) -> Arc<[Jump]> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner).jumps.clone()
    }

    fn course(&self) -> Course {
        self.read().course
    }
}

/// The clock of servers that share a database: paced by this machine's steady clock, set by the
/// database's, which they all see. The machine's own idea of the time does not matter.
pub struct SharedClock {
    sources: Sources,
    state: Mutex<ClockState>,
}

struct ClockState {
    set: Timestamp,
    at: Duration,
    given: Timestamp,
    /// What was last seen; `None` while this is only the machine's time.
    known: Option<i64>,
    jumps: Arc<[Jump]>,
    silences: Arc<[Silence]>,
    course: Course,
}

impl SharedClock {
    /// Starts from the machine's time until it is first set.
    pub fn new() -> Self {
        Self::of(Sources::system())
    }

    /// A clock that reads these sources.
    pub fn of(sources: Sources) -> Self {
        let state = ClockState {
            set: (sources.wall)(),
            at: (sources.steady)(),
            given: Timestamp::EPOCH,
            known: None,
            jumps: Arc::default(),
            silences: Arc::default(),
            course: Course::default(),
        };
        SharedClock { sources, state: Mutex::new(state) }
    }

    /// Takes in a look at the database's clock. If the record about it has to be changed first,
    /// answers with what it must be: time goes on at its own pace until a look finds it so.
    pub fn set(&self, look: &Look, record: &SharedTime) -> Option<SharedTime> {
        let (mut state, wall) = (self.lock(), look.wall);
        let at = (self.sources.steady)();
        let expected = state.set + at.saturating_sub(state.at);
        let known = state.known.map(|epoch| Known { epoch, expected });
        let time = match record.judge(look, known) {
            Judgement::Correct(better) => return Some(better),
            Judgement::Fine(time) => time,
        };
        if known.is_none() {
            // The machine may be hours ahead; nobody has gone by its time yet.
            state.given = Timestamp::EPOCH;
        }
        let ahead = record.ahead_at(wall);
        if known.is_some() && state.known != Some(record.epoch) {
            let newest = record.jumps.last().filter(|jump| !state.jumps.contains(jump));
            if let Some(jump) = newest {
                state.course.forward += 1;
                let jump = jump.span();
                tracing::warn!(?jump, "the database's clock was set forward; leases move along");
            } else if ahead.saturating_sub(state.course.ahead) >= JUMP_MIN {
                state.course.back += 1;
                tracing::warn!(?ahead, "the database's clock was set back; time goes on");
            }
        }
        state.course.ahead = ahead;
        state.known = Some(record.epoch);
        state.jumps = record.jumps.as_slice().into();
        state.silences = record.silences.as_slice().into();
        (state.set, state.at) = (time, at);
        None
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SharedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Timestamp {
        let mut state = self.lock();
        let passed = (self.sources.steady)().saturating_sub(state.at);
        state.given = state.given.max(state.set + passed);
        state.given
    }

    fn jumps(&self) -> Arc<[Jump]> {
        self.lock().jumps.clone()
    }

    fn silences(&self) -> Arc<[Silence]> {
        self.lock().silences.clone()
    }

    fn course(&self) -> Course {
        self.lock().course
    }
}

#[cfg(test)]
mod tests;
