//! The pulls that wait. They are served inside the commit that makes a job ready, oldest first,
//! so one new job wakes one worker and a thousand idle workers cost nothing.

use crate::engine::Shared;
use crate::request::Request;
use mainspring_kernel::Timestamp;
use tokio::time::Instant;

/// Waiting pulls, oldest first.
#[derive(Default)]
pub(crate) struct Dispatcher {
    parked: Vec<Request>,
}

impl Dispatcher {
    pub(crate) fn len(&self) -> usize {
        self.parked.len()
    }

    /// Hands the waiting pulls to a commit; those it cannot serve come back through
    /// [`Dispatcher::park`]. Callers who have gone away are forgotten.
    pub(crate) fn take(&mut self) -> Vec<Request> {
        let mut parked = std::mem::take(&mut self.parked);
        parked.retain(|request| !request.is_abandoned());
        parked
    }

    /// Keeps pulls waiting, each until its own deadline.
    pub(crate) fn park(&mut self, shared: &Shared, mut requests: Vec<Request>, now: Timestamp) {
        for request in &mut requests {
            let Some(pull) = &request.pull else { continue };
            // From its first commit on: later ones must not make it wait anew.
            request.until.get_or_insert_with(|| {
                shared.workers.pulled(pull, now, 0);
                Instant::now() + pull.wait
            });
        }
        self.parked.extend(requests);
    }

    /// Ends when the next waiting pull has waited long enough; never, if none waits.
    pub(crate) async fn next_is_late(&self) {
        match self.parked.iter().filter_map(|request| request.until).min() {
            Some(until) => tokio::time::sleep_until(until).await,
            None => std::future::pending().await,
        }
    }

    /// Answers the pulls that have waited long enough with no jobs.
    pub(crate) fn send_home_late(&mut self) {
        let now = Instant::now();
        let is_late = |request: &mut Request| request.until.is_some_and(|until| until <= now);
        for request in self.parked.extract_if(.., is_late) {
            request.answer(Ok(()));
        }
    }

    /// Answers every waiting pull with no jobs: the engine is stopping.
    pub(crate) fn send_all_home(&mut self) {
        for request in self.parked.drain(..) {
            request.answer(Ok(()));
        }
    }
}
