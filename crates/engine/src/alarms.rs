//! Entities whose alarm stands are rung: each gets a command of its own, so that one that cannot be
//! had keeps no other waiting.

use crate::engine::Shared;
use crate::limits::{PASSED_OVER_MAX, REAP_MAX, RETRY_AFTER};
use crate::timers::send_each;
use mainspring_kernel::{Command, EntityId, Receipt, Timestamp};
use mainspring_store::Error;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::time::Instant;

/// Rings what is due.
#[derive(Default)]
pub(crate) struct Bells {
    /// Entities that somebody outside holds or that ringing did not help, and when they are tried
    /// again.
    passed_over: HashMap<EntityId, Instant>,
    /// What was rung the last time.
    rung: HashSet<(EntityId, Timestamp)>,
}

impl Bells {
    /// Rings some of what is due; whether there may be more.
    pub(crate) async fn ring(
        &mut self,
        shared: &Arc<Shared>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        self.passed_over.retain(|_, again_at| Instant::now() < *again_at);
        let most = REAP_MAX + self.passed_over.len();
        let mut due = shared.store.alarms(now, most).await?;
        due.retain(|(entity, _)| !self.passed_over.contains_key(entity));
        due.truncate(REAP_MAX);
        // An alarm that stands right where it was rung would be rung for ever.
        let rung = std::mem::take(&mut self.rung);
        let (unhelped, due): (Vec<_>, Vec<_>) = due.into_iter().partition(|it| rung.contains(it));
        self.rung = due.iter().copied().collect();
        let mut wanting = Vec::new();
        let ring = |(entity, at)| Command::Ring { entity, at, jobs: Vec::new() };
        let mut held = send_each(shared, due, ring, |alarm, reply| {
            if let Some(Ok(Receipt::Wanting { jobs })) = reply.outcomes.into_iter().next() {
                wanting.push((alarm, jobs));
            }
        })
        .await?;
        // Whose jobs matter is rung again with their names. It is rare: mostly their end was told.
        let ring = |((entity, at), jobs)| Command::Ring { entity, at, jobs };
        let held_again = send_each(shared, wanting, ring, |_, _| {}).await?;
        held.extend(held_again.into_iter().map(|(alarm, _)| alarm));
        let again_at = Instant::now() + RETRY_AFTER;
        let room = PASSED_OVER_MAX.saturating_sub(self.passed_over.len());
        let passed = unhelped.into_iter().chain(held).take(room);
        self.passed_over.extend(passed.map(|(entity, _)| (entity, again_at)));
        Ok(!self.rung.is_empty())
    }

    pub(crate) fn waits_for_others(&self) -> bool {
        !self.passed_over.is_empty()
    }
}
