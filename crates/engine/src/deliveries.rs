//! What the requests of a commit are told once it is durable. The outcomes of one sync leave
//! together: whoever learns of them puts them down here and rings once, and a task on the runtime
//! answers everybody, so that no request costs a wake-up across cores. A small commit is made
//! durable by that task itself, which costs none at all; `Engine::held_up` tells whoever keeps a
//! thread in reserve when the disk takes long over it.
//!
//! Must never answer before the store has said that a commit is durable, nor out of order.

use crate::commit::Delivery;
use crate::engine::Shared;
use mainspring_store::Error;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Outcomes on their way.
#[derive(Default)]
pub(crate) struct Deliveries {
    waiting: Mutex<Waiting>,
    rung: Notify,
    /// Whether a commit waits to be settled by the task.
    is_settling_asked: AtomicBool,
    watch: Watch,
}

#[derive(Default)]
struct Waiting {
    known: Vec<(Delivery, Result<(), Error>)>,
    /// Whether the task runs: before and after, whoever learns of an outcome answers.
    is_open: bool,
}

impl Deliveries {
    /// Whether the task runs, so that a commit may be left to it.
    pub(crate) fn is_open(&self) -> bool {
        self.waiting().is_open
    }

    /// Has everybody answered who is concerned.
    pub(crate) fn put(&self, shared: &Shared, delivery: Delivery, outcome: Result<(), Error>) {
        let mut waiting = self.waiting();
        if !waiting.is_open {
            drop(waiting);
            return delivery.hand_out(shared, &outcome);
        }
        waiting.known.push((delivery, outcome));
        let is_first = waiting.known.len() == 1;
        drop(waiting);
        if is_first {
            self.rung.notify_one();
        }
    }

    /// Has what was just committed made durable.
    pub(crate) fn settle_soon(&self, shared: &Shared) {
        self.is_settling_asked.store(true, Ordering::Release);
        match self.is_open() {
            true => self.rung.notify_one(),
            false => self.settle(shared),
        }
    }

    fn settle(&self, shared: &Shared) {
        if self.is_settling_asked.swap(false, Ordering::AcqRel) {
            self.watch.begins();
            shared.store.settle();
            self.watch.ends();
        }
    }

    fn hand_out(&self, shared: &Shared) {
        let known = std::mem::take(&mut self.waiting().known);
        for (delivery, outcome) in known {
            delivery.hand_out(shared, &outcome);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Open for as long as the task runs, however it ends.
struct Open(Arc<Shared>);

impl Open {
    fn new(shared: Arc<Shared>) -> Self {
        shared.deliveries.waiting().is_open = true;
        Open(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let deliveries = &self.0.deliveries;
        deliveries.waiting().is_open = false;
        deliveries.settle(&self.0);
        deliveries.hand_out(&self.0);
        deliveries.watch.stop();
    }
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let open = Open::new(shared);
    let shared = &open.0;
    loop {
        tokio::select! {
            biased;
            () = shared.deliveries.rung.notified() => {}
            () = shared.stop.cancelled() => return,
        }
        shared.deliveries.settle(shared);
        shared.deliveries.hand_out(shared);
    }
}

/// How long a sync on a thread of the runtime is under way.
struct Watch {
    started: Instant,
    /// Microseconds from then to the start of the sync; 0 while there is none.
    since: AtomicU64,
    /// How many there were.
    count: AtomicU64,
    /// Whether somebody sleeps until the next one.
    is_asleep: AtomicBool,
    is_over: Mutex<bool>,
    rung: Condvar,
}

impl Default for Watch {
    fn default() -> Self {
        Watch {
            started: Instant::now(),
            since: AtomicU64::new(0),
            count: AtomicU64::new(0),
            is_asleep: AtomicBool::new(false),
            is_over: Mutex::new(false),
            rung: Condvar::new(),
        }
    }
}

impl Watch {
    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn begins(&self) {
        self.since.store(self.micros(), Ordering::SeqCst);
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            drop(self.lock());
            self.rung.notify_all();
        }
    }

    fn ends(&self) {
        self.since.store(0, Ordering::SeqCst);
    }

    fn stop(&self) {
        *self.lock() = true;
        self.rung.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held_up_for(&self) -> Duration {
        match self.since.load(Ordering::SeqCst) {
            0 => Duration::ZERO,
            since => Duration::from_micros(self.micros().saturating_sub(since)),
        }
    }

    /// Blocks until a sync takes longer than `patience`, or for so long, or longer where nothing
    /// happens: whoever blocks has to look after what it has in hand now and then.
    fn wait(&self, patience: Duration) -> Reserve {
        let mut is_over = self.lock();
        let seen = self.count.load(Ordering::SeqCst);
        is_over = self.sleep(is_over, patience);
        if *is_over {
            return Reserve::Over;
        }
        if self.held_up_for() >= patience {
            return Reserve::HeldUp;
        }
        self.is_asleep.store(true, Ordering::SeqCst);
        let is_quiet =
            self.count.load(Ordering::SeqCst) == seen && self.since.load(Ordering::SeqCst) == 0;
        if is_quiet {
            is_over = self.sleep(is_over, QUIET);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
        if *is_over { Reserve::Over } else { Reserve::Quiet }
    }

    fn sleep<'a>(&self, is_over: MutexGuard<'a, bool>, most: Duration) -> MutexGuard<'a, bool> {
        if *is_over {
            return is_over;
        }
        self.rung.wait_timeout(is_over, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// How long a thread in reserve sleeps at most.
const QUIET: Duration = Duration::from_secs(1);

/// What a thread in reserve learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// Nothing to do.
    Quiet,
    /// A sync holds up another thread of the runtime.
    HeldUp,
    /// The engine has stopped.
    Over,
}

impl crate::engine::Engine {
    /// Blocks the thread, for a second at most, until a sync on another thread of the runtime takes
    /// longer than `patience`.
    pub fn wait_until_held_up(&self, patience: Duration) -> Reserve {
        self.shared.deliveries.watch.wait(patience)
    }

    /// Whether such a sync is under way.
    pub fn is_held_up(&self) -> bool {
        self.shared.deliveries.watch.held_up_for() > Duration::ZERO
    }
}
