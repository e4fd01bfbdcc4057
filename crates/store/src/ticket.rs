//! The promise that a commit becomes durable. Whoever must wait hangs a continuation on it; the
//! thread that synced the disk runs it, so an answer costs no extra hop.

use crate::store::Error;
use std::sync::{Arc, Mutex, PoisonError};

type Next = Box<dyn FnOnce(Result<(), Error>) + Send>;

enum Stage {
    Open,
    Waiting(Next),
    Done(Result<(), Error>),
}

/// The waiting end.
pub struct Ticket(Arc<Mutex<Stage>>);

/// The keeping end. Dropped unkept, it fails the ticket, so nobody waits for ever.
pub struct Promise(Option<Arc<Mutex<Stage>>>);

impl Ticket {
    /// A promise and its ticket.
    pub fn new() -> (Promise, Ticket) {
        let stage = Arc::new(Mutex::new(Stage::Open));
        (Promise(Some(stage.clone())), Ticket(stage))
    }

    /// A ticket for something that is durable already.
    pub fn kept() -> Ticket {
        Ticket(Arc::new(Mutex::new(Stage::Done(Ok(())))))
    }

    /// The outcome, if it is known; else the ticket, to wait with.
    ///
    /// # Errors
    /// If it is not known yet.
    pub fn known(self) -> Result<Result<(), Error>, Ticket> {
        let mut stage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, Stage::Open) {
            Stage::Done(outcome) => Ok(outcome),
            Stage::Open | Stage::Waiting(_) => {
                drop(stage);
                Err(self)
            }
        }
    }

    /// Runs `next` once the outcome is known: now, or on the thread that learns it.
    pub fn then(self, next: impl FnOnce(Result<(), Error>) + Send + 'static) {
        let mut stage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, Stage::Open) {
            Stage::Done(outcome) => {
                drop(stage);
                next(outcome);
            }
            Stage::Open | Stage::Waiting(_) => *stage = Stage::Waiting(Box::new(next)),
        }
    }
}

impl Promise {
    /// Says how it ended.
    pub fn keep(mut self, outcome: Result<(), Error>) {
        self.settle(outcome);
    }

    fn settle(&mut self, outcome: Result<(), Error>) {
        let Some(shared) = self.0.take() else { return };
        let mut stage = shared.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *stage, Stage::Open) {
            Stage::Waiting(next) => {
                drop(stage);
                next(outcome);
            }
            Stage::Open | Stage::Done(_) => *stage = Stage::Done(outcome),
        }
    }
}

impl Drop for Promise {
    fn drop(&mut self) {
        self.settle(Err(Error::Stopped));
    }
}
