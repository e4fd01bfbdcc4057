//! Tells whoever wants to know of what has ended: jobs that wait for others, and the schedule,
//! trigger or plan that a job came of. What cannot be told, because somebody outside holds the
//! entity's row or the store is away, is told again in a while. A word that a crash loses costs
//! time, never a job: every entity looks for itself now and then (`kernel/src/entity/wait.rs`).
//!
//! Which jobs have ended is heard after their commit, and who waits for them is asked of the store
//! then; so whichever of an end and a wait is committed last finds the other. A wait that was just
//! made asks the other way round: which of its jobs have ended meanwhile.

use crate::engine::{Engine, Shared};
use crate::limits::{
    ENDS_AT_ONCE, ENDS_IN_MIND_MAX, RETRY_AFTER, SETTLED_AT_ONCE, TELLS_MAX, WAITS_LOOK_EVERY,
};
use crate::timers::send_each;
use mainspring_kernel::command::Submit;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Command, Entity, EntityId, JobId, Receipt, Rejection};
use mainspring_store::{EntityFilter, Error, Scope};
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
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
    /// For entities that are known to want to hear of it.
    words: Vec<Word>,
}

/// That a job has ended, for an entity that wants to hear of it.
#[derive(Debug, Clone, Copy)]
struct Word {
    entity: EntityId,
    job: JobId,
    /// How often it was told in vain.
    tries: u32,
}

impl Word {
    const fn new((entity, job): (EntityId, JobId)) -> Self {
        Word { entity, job, tries: 0 }
    }
}

impl ToTell {
    /// Keeps in mind what there is room for.
    fn add(&mut self, more: ToTell) {
        fn extend<T>(known: &mut Vec<T>, more: Vec<T>) {
            let room = ENDS_IN_MIND_MAX.saturating_sub(known.len());
            known.extend(more.into_iter().take(room));
        }
        extend(&mut self.ended, more.ended);
        extend(&mut self.made, more.made);
        extend(&mut self.words, more.words);
    }

    fn is_empty(&self) -> bool {
        self.ended.is_empty() && self.made.is_empty() && self.words.is_empty()
    }
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
    /// Jobs have ended, of which entities in `settled` want to hear, and waits were made, in a
    /// commit that is durable.
    pub(crate) fn tell(
        &self,
        ended: &[JobId],
        settled: &[(EntityId, JobId)],
        made: &[(EntityId, Vec<JobId>)],
    ) {
        if !made.is_empty() {
            self.made.fetch_add(1, Ordering::AcqRel);
            self.is_anybody_waiting.store(true, Ordering::Release);
        }
        let is_wanted = self.is_anybody_waiting.load(Ordering::Acquire);
        let ended = if is_wanted { ended } else { &[] };
        if made.is_empty() && ended.is_empty() && settled.is_empty() {
            return;
        }
        let words = settled.iter().copied().map(Word::new).collect();
        self.keep(ToTell { ended: ended.to_vec(), made: made.to_vec(), words });
        self.rung.notify_one();
    }

    fn keep(&self, more: ToTell) {
        self.to_tell.lock().unwrap_or_else(PoisonError::into_inner).add(more);
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
        let Told { waits, untold } = tell_all(&shared).await;
        if !untold.is_empty() {
            shared.dependents.keep(untold);
            ring_in(&shared, RETRY_AFTER);
        }
        // Not more often than that: a store that others share is asked.
        let may_look = looked_at.is_none_or(|at| at.elapsed() >= WAITS_LOOK_EVERY);
        if waits == 0 && may_look {
            looked_at = Some(Instant::now());
            look_for_waits(&shared).await;
        } else if shared.dependents.is_stale.load(Ordering::Acquire) {
            ring_in(&shared, WAITS_LOOK_EVERY);
        }
    }
}

fn ring_in(shared: &Arc<Shared>, pause: Duration) {
    let shared = shared.clone();
    tokio::spawn(async move {
        tokio::time::sleep(pause).await;
        shared.dependents.rung.notify_one();
    });
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

/// What became of all there was to tell.
#[derive(Default)]
struct Told {
    /// How many waits there were.
    waits: usize,
    /// What has to be told again.
    untold: ToTell,
}

/// Tells everything there is to tell.
async fn tell_all(shared: &Arc<Shared>) -> Told {
    let ToTell { ended, made, words } = shared.dependents.take();
    let mut told = Told { waits: made.len(), untold: ToTell::default() };
    told.untold.words = settle(shared, words).await;
    for (at, some) in made.chunks(SETTLED_AT_ONCE).enumerate() {
        match ended_meanwhile(shared, some).await {
            Ok(words) => told.untold.words.extend(settle(shared, words).await),
            Err(error) => {
                told_again(&error);
                told.untold.made.extend_from_slice(&made[at * SETTLED_AT_ONCE..]);
                break;
            }
        }
    }
    for (at, some) in ended.chunks(ENDS_AT_ONCE).enumerate() {
        match tell_of(shared, some, &mut told.untold.words).await {
            Ok(waits) => told.waits += waits,
            Err(error) => {
                told_again(&error);
                told.untold.ended.extend_from_slice(&ended[at * ENDS_AT_ONCE..]);
                break;
            }
        }
    }
    told
}

fn told_again(error: &Error) {
    tracing::debug!(%error, "ends of jobs are told again");
}

/// Which of the jobs that new waits name have ended.
async fn ended_meanwhile(
    shared: &Shared,
    made: &[(EntityId, Vec<JobId>)],
) -> Result<Vec<Word>, Error> {
    let named: Vec<JobId> = made.iter().flat_map(|(_, jobs)| jobs).copied().collect();
    let ended: HashSet<JobId> = shared.store.ended(&named).await?.into_iter().collect();
    let pairs = made.iter().flat_map(|(wait, jobs)| jobs.iter().map(|job| (*wait, *job)));
    Ok(pairs.filter(|(_, job)| ended.contains(job)).map(Word::new).collect())
}

/// Tells whoever waits for these jobs, some at a time: a hundred thousand may wait for one. What
/// was told is not found again, but for waits on the batch of a job; there are fewer jobs here than
/// waits are asked for, so those are not all that is found.
async fn tell_of(
    shared: &Arc<Shared>,
    ended: &[JobId],
    untold: &mut Vec<Word>,
) -> Result<usize, Error> {
    let mut seen: HashSet<(EntityId, JobId)> = HashSet::new();
    loop {
        let found = shared.store.waits_on(ended, SETTLED_AT_ONCE).await?;
        let is_all = found.len() < SETTLED_AT_ONCE;
        let new = found.into_iter().filter(|pair| seen.insert(*pair));
        let words: Vec<Word> = new.map(Word::new).collect();
        if words.is_empty() {
            return Ok(seen.len());
        }
        untold.extend(settle(shared, words).await);
        if is_all {
            return Ok(seen.len());
        }
    }
}

/// Tells entities of ends; answers what has to be told again. What was told in vain too often is
/// left to them: they look for themselves.
async fn settle(shared: &Arc<Shared>, words: Vec<Word>) -> Vec<Word> {
    let mut untold = Vec::new();
    for some in words.chunks(ENDS_AT_ONCE) {
        let mut by_entity: BTreeMap<EntityId, Vec<JobId>> = BTreeMap::new();
        for word in some {
            by_entity.entry(word.entity).or_default().push(word.job);
        }
        let command = |(entity, jobs)| Command::Settle { entity, jobs };
        let sent = send_each(shared, by_entity.into_iter().collect(), command, |_, _| {}).await;
        match sent {
            Ok(held) if held.is_empty() => {}
            Ok(held) => {
                told_again(&Error::Busy);
                let held: HashSet<EntityId> = held.into_iter().map(|(entity, _)| entity).collect();
                untold.extend(some.iter().filter(|word| held.contains(&word.entity)));
            }
            Err(error) => {
                told_again(&error);
                untold.extend_from_slice(some);
            }
        }
    }
    untold.retain(|word| word.tries < TELLS_MAX);
    untold.iter_mut().for_each(|word| word.tries += 1);
    untold
}
