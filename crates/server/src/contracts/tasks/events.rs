//! The stream of moves as events of tasks.

use super::view::{self, Named};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::follow::{self, Tell, Words};
use crate::limits::FOLLOWED_MAX;
use crate::refusal::Refusal;
use crate::write::Out;
use futures_util::future::BoxFuture;
use mainspring_engine::store::LoggedMove;
use mainspring_engine::{Engine, Error};
use mainspring_kernel::{JobId, Principal};
use std::collections::HashMap;

pub(super) async fn follow(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = Words { name: "tasks", teller: || Box::new(Telling::default()) };
    follow::moves(&ask, &who, words).await
}

/// What is known of tasks that were told of lately; a move itself does not name its task.
#[derive(Default)]
struct Telling {
    known: HashMap<JobId, Named>,
}

impl Tell for Telling {
    fn tell<'a>(
        &'a mut self,
        engine: &'a Engine,
        moves: &'a [&'a LoggedMove],
        out: &'a mut Out,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            for logged in moves {
                let Some(named) = self.named(engine, logged.job).await? else { continue };
                let events = view::events(logged.job, named, &logged.transition);
                let last = events.len().saturating_sub(1);
                for (index, event) in events.iter().enumerate() {
                    // Only with the last one is the move told: who breaks off before it gets both
                    // again, by the same ids.
                    if index == last {
                        out.raw("id: ");
                        out.number(logged.position);
                        out.raw("\n");
                    }
                    out.raw("event: task_state_changed\ndata: ");
                    out.serde(event);
                    out.raw("\n\n");
                }
                if logged.transition.to.is_terminal() {
                    self.known.remove(&logged.job);
                }
            }
            Ok(())
        })
    }
}

impl Telling {
    /// What is known of a job; none if it is no longer kept.
    async fn named(&mut self, engine: &Engine, job: JobId) -> Result<Option<&Named>, Error> {
        if !self.known.contains_key(&job) {
            let Some(found) = engine.job(job).await? else { return Ok(None) };
            if self.known.len() >= FOLLOWED_MAX {
                self.known.clear();
            }
            self.known.insert(job, Named::of(&found.job));
        }
        Ok(self.known.get(&job))
    }
}
