//! Tells jobs that wait for others of what has ended. A word that gets lost costs time, never a
//! job: every wait looks for itself now and then (`kernel/src/entity/wait.rs`).
//!
//! Which jobs have ended is heard after their commit, and who waits for them is asked of the store
//! then; so whichever of an end and a wait is committed last finds the other. A wait that was just
//! made asks the other way round: which of its jobs have ended meanwhile.

use crate::engine::{Engine, Shared};
use crate::limits::{ENDS_AT_ONCE, ENDS_IN_MIND_MAX, SETTLED_AT_ONCE, WAITS_LOOK_EVERY};
use crate::timers::send_each;
use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, Entity, EntityId, JobId, Receipt, Rejection};
use mainspring_store::{EntityFilter, Error, Scope};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::time::Instant;

/// What is to be told.
pub(crate) struct Dependents {
    /// Whether there may be anybody to tell. While there is not, ends are not kept in mind.
    is_anybody_waiting: AtomicBool,
    /// How many waits were made here.
    made: AtomicU64,
    /// Whether that may have changed elsewhere.
    is_stale: AtomicBool,
    to_tell: Mutex<ToTell>,
    rung: Notify,
}

#[derive(Default)]
struct ToTell {
    ended: Vec<JobId>,
    /// New waits, with the jobs that they name.
    made: Vec<(EntityId, Vec<JobId>)>,
}

impl Default for Dependents {
    fn default() -> Self {
        Dependents {
            is_anybody_waiting: AtomicBool::new(true),
            made: AtomicU64::new(0),
            is_stale: AtomicBool::new(false),
            to_tell: Mutex::default(),
            rung: Notify::new(),
        }
    }
}

impl Dependents {
    /// Jobs have ended, and waits were made, in a commit that is durable.
    pub(crate) fn tell(&self, ended: &[JobId], made: &[(EntityId, Vec<JobId>)]) {
        if !made.is_empty() {
            self.made.fetch_add(1, Ordering::AcqRel);
            self.is_anybody_waiting.store(true, Ordering::Release);
        }
        let is_wanted = self.is_anybody_waiting.load(Ordering::Acquire);
        if made.is_empty() && (ended.is_empty() || !is_wanted) {
            return;
        }
        let mut to_tell = self.to_tell.lock().unwrap_or_else(PoisonError::into_inner);
        let room = ENDS_IN_MIND_MAX.saturating_sub(to_tell.ended.len());
        to_tell.ended.extend(ended.iter().take(room));
        let room = ENDS_IN_MIND_MAX.saturating_sub(to_tell.made.len());
        to_tell.made.extend(made.iter().take(room).cloned());
        drop(to_tell);
        self.rung.notify_one();
    }

    /// Another server did something: perhaps somebody waits from now on.
    pub(crate) fn look_elsewhere(&self) {
        if !self.is_anybody_waiting.load(Ordering::Acquire)
            && !self.is_stale.swap(true, Ordering::AcqRel)
        {
            self.rung.notify_one();
        }
    }

    fn take(&self) -> ToTell {
        std::mem::take(&mut *self.to_tell.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A wait as it was made, with the jobs that it names.
pub(crate) fn made(entity: &Entity) -> Option<(EntityId, Vec<JobId>)> {
    let Body::Wait(wait) = &entity.body else { return None };
    (entity.version == 1).then(|| (entity.id, wait.open.clone()))
}

impl Engine {
    /// Submits jobs of which some wait for others among them: all are taken, or none.
    ///
    /// # Errors
    /// If the store failed; the inner error if the rules say no.
    pub async fn submit_together(
        &self,
        wishes: Vec<Submit>,
    ) -> Result<Result<Vec<Receipt>, Rejection>, Error> {
        let parts = wishes.into_iter().map(|wish| Command::Submit(Box::new(wish))).collect();
        let told = self.execute_one(Command::Together(parts)).await?;
        Ok(told.map(
            |told| {
                if let Receipt::Together(receipts) = told { receipts } else { Vec::new() }
            },
        ))
    }
}

/// Runs until the engine stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut looked_at: Option<Instant> = None;
    loop {
        tokio::select! {
            () = shared.dependents.rung.notified() => {}
            () = shared.stop.cancelled() => return,
        }
        let told = tell_all(&shared).await;
        let is_quiet = matches!(told, Ok(0));
        if let Err(error) = told {
            tracing::debug!(%error, "jobs that wait for others will look for themselves");
        }
        // Not more often than that: a store that others share is asked.
        let may_look = looked_at.is_none_or(|at| at.elapsed() >= WAITS_LOOK_EVERY);
        if is_quiet && may_look {
            looked_at = Some(Instant::now());
            look_for_waits(&shared).await;
        } else if shared.dependents.is_stale.load(Ordering::Acquire) {
            let shared = shared.clone();
            tokio::spawn(async move {
                tokio::time::sleep(WAITS_LOOK_EVERY).await;
                shared.dependents.rung.notify_one();
            });
        }
    }
}

/// Learns whether anybody waits for a job at all: mostly nobody does, and nothing needs to be told.
async fn look_for_waits(shared: &Shared) {
    let dependents = &shared.dependents;
    dependents.is_stale.store(false, Ordering::Release);
    let made = dependents.made.load(Ordering::Acquire);
    let filter = EntityFilter::of(Kind::Wait, Scope::All);
    let is_anybody = shared.store.count_entities(&filter, 1).await.map_or(true, |it| it > 0);
    dependents.is_anybody_waiting.store(is_anybody, Ordering::Release);
    // Whoever came while we looked was perhaps not seen.
    if dependents.made.load(Ordering::Acquire) != made {
        dependents.is_anybody_waiting.store(true, Ordering::Release);
    }
}

/// Tells everything there is to tell; how many waits there were.
async fn tell_all(shared: &Arc<Shared>) -> Result<usize, Error> {
    let ToTell { ended, made } = shared.dependents.take();
    let mut told = made.len();
    let mut waits: BTreeMap<EntityId, Vec<JobId>> = BTreeMap::new();
    for some in made.chunks(SETTLED_AT_ONCE) {
        let named: Vec<JobId> = some.iter().flat_map(|(_, jobs)| jobs).copied().collect();
        let ended: HashSet<JobId> = shared.store.ended(&named).await?.into_iter().collect();
        for (wait, jobs) in some {
            let jobs: Vec<JobId> = jobs.iter().copied().filter(|it| ended.contains(it)).collect();
            if !jobs.is_empty() {
                waits.entry(*wait).or_default().extend(jobs);
            }
        }
    }
    settle(shared, waits).await?;
    for some in ended.chunks(ENDS_AT_ONCE) {
        told += tell_of(shared, some).await?;
    }
    Ok(told)
}

/// Tells whoever waits for these jobs, some at a time: a hundred thousand may wait for one. What
/// was told is not found again, but for waits on the batch of a job; there are fewer jobs here than
/// waits are asked for, so those are not all that is found.
async fn tell_of(shared: &Arc<Shared>, ended: &[JobId]) -> Result<usize, Error> {
    let mut seen: HashSet<(EntityId, JobId)> = HashSet::new();
    loop {
        let found = shared.store.waits_on(ended, SETTLED_AT_ONCE).await?;
        let is_all = found.len() < SETTLED_AT_ONCE;
        let mut waits: BTreeMap<EntityId, Vec<JobId>> = BTreeMap::new();
        for (wait, job) in found.into_iter().filter(|pair| seen.insert(*pair)) {
            waits.entry(wait).or_default().push(job);
        }
        if waits.is_empty() {
            return Ok(seen.len());
        }
        settle(shared, waits).await?;
        if is_all {
            return Ok(seen.len());
        }
    }
}

async fn settle(shared: &Arc<Shared>, waits: BTreeMap<EntityId, Vec<JobId>>) -> Result<(), Error> {
    let waits: Vec<_> = waits.into_iter().collect();
    let command = |(entity, jobs)| Command::Settle { entity, jobs };
    send_each(shared, waits, command, |_, _| {}).await.map(|_| ())
}
