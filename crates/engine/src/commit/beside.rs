//! A commit beside the loop's own: while one batch is on its way, another one that only makes jobs
//! can be on its way too, if the store has room for both. Nothing in it waits for anything in the
//! other: a request that names what the one beside names waits until that has ended.

use super::{Outcome, Way, write};
use crate::aside::{Thing, things};
use crate::engine::Shared;
use crate::request::Request;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// The commit beside, if there is one.
#[derive(Default)]
pub(super) struct Beside {
    task: Option<JoinHandle<Outcome>>,
    /// The keys that its requests name.
    things: HashSet<Thing>,
}

impl Beside {
    /// Sends off half of what only makes jobs, or the one request that does, unless another commit
    /// is beside already; answers what is left.
    pub(super) fn send_off(&mut self, shared: &Arc<Shared>, batch: Vec<Request>) -> Vec<Request> {
        if self.task.is_some() || !shared.store.commits_beside() {
            return batch;
        }
        let (mut sent, mut left): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(Request::only_makes_jobs);
        left.extend(sent.split_off(sent.len().div_ceil(2)));
        if !sent.is_empty() {
            self.things = sent.iter().flat_map(things).collect();
            let (shared, now) = (shared.clone(), shared.clock.now());
            self.task = Some(tokio::spawn(async move {
                let outcome = write(&shared, sent, &mut Vec::new(), Way::Beside, now).await;
                // Pulls that began to wait meanwhile were told that there is nothing.
                shared.work_is_due.notify_one();
                outcome
            }));
        }
        left
    }

    /// Whether the commit beside has ended, and [`Beside::ended`] says at once how.
    pub(super) fn is_over(&self) -> bool {
        self.task.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Whether any of these names what the commit beside names.
    pub(super) fn holds_some_of<'a>(&self, requests: impl Iterator<Item = &'a Request>) -> bool {
        self.task.is_some()
            && !self.things.is_empty()
            && requests.flat_map(things).any(|thing| self.things.contains(&thing))
    }

    /// Ends with the commit beside; never, if there is none.
    pub(super) async fn ended(&mut self) -> Outcome {
        let Some(task) = &mut self.task else { return std::future::pending().await };
        let ended = task.await;
        self.task = None;
        self.things.clear();
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    /// Waits for the commit beside, if there is one.
    pub(super) async fn ended_at_last(&mut self) -> Outcome {
        if self.task.is_some() { self.ended().await } else { Ok(()) }
    }
}
