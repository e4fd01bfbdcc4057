//! Simulated time: the paused clock of the tokio runtime, carried on from one runtime to the next,
//! and a wall clock beside it that can be set forward and back.

use crate::drive::BEGINNING;
use crate::planted::Plant;
use mainspring_engine::Clock;
use mainspring_kernel::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Both clocks of a world.
#[derive(Debug)]
pub(super) struct SimTime(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Microseconds that earlier runtimes saw.
    base: u64,
    start: Option<Instant>,
    /// How far the wall is ahead of the monotonic clock.
    offset: i64,
    /// How far the wall was set back in all.
    back_micros: u64,
    given: Timestamp,
    given_at: u64,
    jumped: Duration,
    plant: Plant,
}

/// As for the engine's own clock.
const JUMP_MIN: Duration = Duration::from_secs(2);

impl Inner {
    fn mono(&self) -> u64 {
        let here = self.start.map_or(0, |start| start.elapsed().as_micros() as u64);
        self.base + here
    }

    fn wall(&self) -> Timestamp {
        Timestamp(BEGINNING.0 + self.mono() as i64 + self.offset)
    }
}

impl SimTime {
    pub(super) fn new() -> Self {
        SimTime(Mutex::new(Inner { given: BEGINNING, ..Inner::default() }))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The harness's monotonic clock, in microseconds.
    pub(super) fn mono(&self) -> u64 {
        self.lock().mono()
    }

    /// A process starts, inside its runtime: its clock begins with the wall.
    pub(super) fn begin(&self) {
        let mut inner = self.lock();
        inner.start = Some(Instant::now());
        inner.given = inner.wall();
        inner.given_at = inner.mono();
        inner.jumped = Duration::ZERO;
    }

    /// The clock makes this mistake from now on.
    pub(super) fn spoil(&self, plant: Plant) {
        self.lock().plant = plant;
    }

    /// The process has ended, still inside its runtime.
    pub(super) fn end(&self) {
        let mut inner = self.lock();
        // Nothing happens twice at the same instant: a restart takes time.
        inner.base = inner.mono() + 1_000;
        inner.start = None;
    }

    /// Sets the wall clock.
    pub(super) fn jump(&self, micros: i64) {
        let mut inner = self.lock();
        inner.back_micros += u64::try_from(-micros).unwrap_or(0);
        inner.offset += micros;
    }

    /// How much longer things may take because the clock was set back: a restart makes the server
    /// believe it, and when the clock is set forward again leases are extended.
    pub(super) fn behind(&self) -> Duration {
        Duration::from_micros(self.lock().back_micros)
    }
}

impl Clock for SimTime {
    fn now(&self) -> Timestamp {
        let mut inner = self.lock();
        let mono = inner.mono();
        let steady = inner.given + Duration::from_micros(mono - inner.given_at);
        let wall = inner.wall();
        let jump = wall.since(steady);
        if jump >= JUMP_MIN {
            inner.jumped += jump;
        }
        let is_straight = inner.plant == Plant::ClockBack;
        inner.given = if is_straight { wall } else { wall.max(steady) };
        inner.given_at = mono;
        inner.given
    }

    fn take_jump(&self) -> Duration {
        let mut inner = self.lock();
        let jumped = std::mem::take(&mut inner.jumped);
        match inner.plant {
            Plant::IgnoreJump => Duration::ZERO,
            Plant::HalfJump if jumped > Duration::from_secs(100) => jumped / 2,
            _ => jumped,
        }
    }
}
