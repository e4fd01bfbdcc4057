//! Simulated time: the paused clock of the tokio runtime, carried on from one runtime to the next,
//! and a wall clock beside it that can be set forward and back. What the server makes of the two is
//! the engine's own clock, which reads these.

use crate::drive::BEGINNING;
use crate::planted::Plant;
use mainspring_engine::{Clock, Sources, SystemClock};
use mainspring_kernel::Timestamp;
use mainspring_kernel::shared_time::Jump;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Both clocks of a world.
pub(super) struct SimTime {
    inner: Arc<Mutex<Inner>>,
    /// The clock of the process that runs.
    clock: Mutex<Option<Arc<SystemClock>>>,
}

impl std::fmt::Debug for SimTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// Microseconds that earlier runtimes saw.
    base: u64,
    start: Option<Instant>,
    /// How far the wall is ahead of the monotonic clock.
    offset: i64,
    /// How far the wall was set back in all.
    back_micros: u64,
    plant: Plant,
}

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
        SimTime { inner: Arc::default(), clock: Mutex::default() }
    }

    /// The harness's monotonic clock, in microseconds.
    pub(super) fn mono(&self) -> u64 {
        lock(&self.inner).mono()
    }

    /// A process starts, inside its runtime: its clock begins with the wall.
    pub(super) fn begin(&self) {
        lock(&self.inner).start = Some(Instant::now());
        let (wall, steady) = (self.inner.clone(), self.inner.clone());
        let sources = Sources {
            wall: Box::new(move || lock(&wall).wall()),
            steady: Box::new(move || Duration::from_micros(lock(&steady).mono())),
        };
        *lock(&self.clock) = Some(Arc::new(SystemClock::of(sources)));
    }

    /// The clock makes this mistake from now on.
    pub(super) fn spoil(&self, plant: Plant) {
        lock(&self.inner).plant = plant;
    }

    /// The process has ended, still inside its runtime.
    pub(super) fn end(&self) {
        let mut inner = lock(&self.inner);
        // Nothing happens twice at the same instant: a restart takes time.
        inner.base = inner.mono() + 1_000;
        inner.start = None;
    }

    /// Sets the wall clock.
    pub(super) fn jump(&self, micros: i64) {
        let mut inner = lock(&self.inner);
        inner.back_micros += u64::try_from(-micros).unwrap_or(0);
        inner.offset += micros;
    }

    /// How much longer things may take because the clock was set back: a restart makes the server
    /// believe it, and when the clock is set forward again leases are extended.
    pub(super) fn behind(&self) -> Duration {
        Duration::from_micros(lock(&self.inner).back_micros)
    }

    fn clock(&self) -> Option<Arc<SystemClock>> {
        lock(&self.clock).clone()
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clock for SimTime {
    fn now(&self) -> Timestamp {
        let inner = lock(&self.inner);
        let wall = (inner.plant == Plant::ClockBack).then(|| inner.wall());
        drop(inner);
        match (wall, self.clock()) {
            (Some(wall), _) => wall,
            (None, Some(clock)) => clock.now(),
            (None, None) => lock(&self.inner).wall(),
        }
    }

    fn jumps(&self) -> Arc<[Jump]> {
        let jumps = self.clock().map(|clock| clock.jumps()).unwrap_or_default();
        match lock(&self.inner).plant {
            Plant::IgnoreJump => Arc::default(),
            Plant::HalfJump => jumps.iter().map(halved).collect(),
            _ => jumps,
        }
    }
}

/// A long jump of which only the first half is told.
fn halved(jump: &Jump) -> Jump {
    let length = jump.to.since(jump.from);
    let is_long = length > Duration::from_secs(100);
    Jump { from: jump.from, to: if is_long { jump.from + length / 2 } else { jump.to } }
}
