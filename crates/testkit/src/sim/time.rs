//! Simulated time: the paused clock of the tokio runtime, carried on from one runtime to the next,
//! and a wall clock beside it that can be set forward and back. What the server makes of the two is
//! the engine's own clock, which reads these.

use crate::drive::BEGINNING;
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

    /// The process has ended, still inside its runtime.
    pub(super) fn end(&self) {
        let mut inner = lock(&self.inner);
        // Nothing happens twice at the same instant: a restart takes time.
        inner.base = inner.mono() + 1_000;
        inner.start = None;
    }

    /// Sets the wall clock.
    pub(super) fn jump(&self, micros: i64) {
        lock(&self.inner).offset += micros;
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
        self.clock().map_or_else(|| lock(&self.inner).wall(), |clock| clock.now())
    }

    fn jumps(&self) -> Arc<[Jump]> {
        self.clock().map(|clock| clock.jumps()).unwrap_or_default()
    }
}
