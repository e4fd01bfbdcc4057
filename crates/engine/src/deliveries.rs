//! What the requests of a commit are told once it is durable. The outcomes of one sync leave
//! together: whoever learns of them puts them down here and rings once, and a task on the runtime
//! answers everybody. So no request costs a wake-up across cores, and what was made for it is given
//! back by the thread that made it.
//!
//! Must never answer before the store has said that a commit is durable, nor out of order.

use crate::commit::Delivery;
use crate::engine::Shared;
use mainspring_store::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Outcomes on their way.
#[derive(Default)]
pub(crate) struct Deliveries {
    waiting: Mutex<Waiting>,
    rung: Notify,
}

#[derive(Default)]
struct Waiting {
    known: Vec<(Delivery, Result<(), Error>)>,
    /// Whether the task runs: before and after, whoever learns of an outcome answers.
    is_open: bool,
}

impl Deliveries {
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
        self.0.deliveries.waiting().is_open = false;
        self.0.deliveries.hand_out(&self.0);
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
        shared.deliveries.hand_out(shared);
    }
}
