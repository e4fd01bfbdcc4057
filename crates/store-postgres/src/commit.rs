//! One commit: load what the batch named, let the kernel decide, write the difference. Nothing is
//! locked but the ready rows that may be claimed; every other change names the version it was
//! decided on, and a batch that somebody got ahead of is decided again.
//!
//! Jobs that this server handed out are remembered, so that reports on them need no load: their
//! statements travel with the beginning and the end of the transaction in one go.

use crate::desk::{Entry, Ground, PostgresDesk};
use crate::fault::Fault;
use crate::field::{Field, Found, Plan};
use crate::link::Call;
use crate::load::{Loaded, Transaction, Wants, taken};
use crate::queries::Query;
use crate::rows::Stored;
use crate::settings;
use crate::shared::Shared;
use crate::values::{digest, hash_uuid, uuid};
use crate::writes;
use mainspring_kernel::dispatch::Book;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Event, Job, JobId, StateName, Timestamp};
use mainspring_store::{Needs, Work};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What the one writer of this process keeps between batches.
#[derive(Default)]
pub(crate) struct Writer {
    /// Who was served when; empty of jobs between batches.
    book: Book<JobId>,
    /// Running jobs that this server handed out, as they were last seen.
    held: HashMap<JobId, Stored>,
    pub(crate) field: Field,
}

/// Jobs remembered, at most.
const HELD_MAX: usize = 100_000;
/// Attempts at one batch before it is given back as busy.
const ATTEMPTS_MAX: u32 = 12;
/// From the third attempt on, whoever got ahead is given this much longer each time.
const PAUSE: Duration = Duration::from_millis(2);
/// Lanes with ready jobs that are learned of at once, at most.
const LANES_FOUND_MAX: i32 = 10_000;

/// What an attempt learned that the next one has to start from.
#[derive(Default)]
struct Lessons {
    /// The changes to the registries that the batch makes.
    settings: Vec<Event>,
    /// Limits that the batch needs counted.
    limits: HashSet<Digest>,
    /// Whether remembered jobs must not be trusted.
    is_wary: bool,
}

/// What others have to hear of a commit.
#[derive(Debug, Default, Clone)]
pub(crate) struct Done {
    /// Ready jobs were left for others.
    pub(crate) has_ready: bool,
    /// Jobs moved.
    pub(crate) has_moved: bool,
    /// When the first of the jobs that were put to wait is due.
    pub(crate) next_due: Option<Timestamp>,
}

impl Writer {
    /// Runs a batch.
    pub(crate) async fn commit(
        &mut self,
        shared: &Shared,
        needs: &Needs,
        work: &mut Work<'_>,
    ) -> Result<Done, Fault> {
        let mut lessons = Lessons::default();
        let mut last = Fault::Conflict;
        for attempt in 0..ATTEMPTS_MAX {
            match self.attempt(shared, needs, work, &mut lessons).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(Fault::RegistryChanged) => shared.read_registry().await?,
                Err(Fault::Conflict) => {
                    lessons.is_wary = true;
                    tokio::time::sleep(PAUSE * attempt.saturating_sub(2)).await;
                }
                Err(Fault::Held) if attempt == 0 => last = Fault::Held,
                Err(fault) => {
                    self.forget(needs);
                    return Err(fault);
                }
            }
        }
        Err(last)
    }

    /// What is known of these jobs may be wrong.
    pub(crate) fn forget(&mut self, needs: &Needs) {
        for id in &needs.jobs {
            self.held.remove(id);
        }
        self.field.forget();
    }

    /// Tries once; nothing if it has to be tried again with what was learned.
    async fn attempt(
        &mut self,
        shared: &Shared,
        needs: &Needs,
        work: &mut Work<'_>,
        lessons: &mut Lessons,
    ) -> Result<Option<Done>, Fault> {
        let known = shared.registry();
        let mut registry = known.clone();
        for event in &lessons.settings {
            Arc::make_mut(&mut registry).apply(event);
        }
        let mut transaction = Transaction::new(shared.links.get().await?);
        if !lessons.settings.is_empty() {
            let guard = Call::new(Query::GuardForChange, vec![Box::new(known.version)]);
            transaction.run(vec![guard]).await?;
            let link = &mut transaction.link;
            settings::write(link, shared, &known, &registry, &lessons.settings).await?;
            self.field.forget();
        }
        let guard = || Call::new(Query::Guard, vec![Box::new(known.version)]);
        let running = count_limits(&mut transaction, guard(), &lessons.limits).await?;
        let plan = self.plan(shared, &mut transaction, guard(), needs, &registry).await?;
        let wants = Wants { needs, plan: &plan, recalled: self.recall(needs, lessons) };
        let loaded = Loaded::load(shared, &mut transaction, guard(), wants).await?;
        let found = loaded.found();
        let mut desk = PostgresDesk::new(Ground {
            now: needs.now,
            shown: known.clone(),
            registry: &registry,
            book: &mut self.book,
            running,
        });
        loaded.lay_out(&mut desk);
        work(&mut desk);
        desk.clear_book();
        if desk.settings != lessons.settings || !desk.uncounted.is_empty() {
            lessons.settings = std::mem::take(&mut desk.settings);
            lessons.limits.extend(&desk.uncounted);
            transaction.undo().await;
            return Ok(None);
        }
        // What was remembered is proved by a change that names its version, or by a load.
        if desk.entries.values().any(|entry| entry.is_recalled && !entry.is_changed) {
            lessons.is_wary = true;
            transaction.undo().await;
            return Ok(None);
        }
        let unnumbered = writes::lanes_needed(&desk, &shared.lanes());
        shared.number_lanes(unnumbered).await?;
        let mut calls = writes::calls(&mut desk, &shared.lanes())?;
        let after = After::of(&desk, taken(found, &desk), plan, shared);
        if calls.is_empty() && lessons.settings.is_empty() {
            // Decided on registries that may have changed meanwhile; a pull alone decides nothing.
            let has_decided = needs.pulls.is_empty();
            match transaction.has_begun() {
                true => transaction.undo().await,
                false if has_decided => shared.check_registry(known.version).await?,
                false => {}
            }
            self.field.searched(&after.plan, &after.found);
            return Ok(Some(Done::default()));
        }
        if !transaction.has_begun() {
            calls.insert(0, guard());
        }
        transaction.end(calls).await?;
        if !lessons.settings.is_empty() {
            Arc::make_mut(&mut registry).version = known.version + 1;
            shared.learn_registry(registry);
        }
        Ok(Some(self.remember(after)))
    }

    /// Which ready rows to lock for the pulls of a batch.
    async fn plan(
        &mut self,
        shared: &Shared,
        transaction: &mut Transaction<'_>,
        guard: Call,
        needs: &Needs,
        registry: &crate::registry::Registry,
    ) -> Result<Plan, Fault> {
        if needs.pulls.is_empty() {
            return Ok(Plan::default());
        }
        shared.promote(needs.now).await?;
        shared.fill(&mut self.field);
        if self.field.has_to_look() {
            let mut calls = vec![Call::new(Query::FindLanes, vec![Box::new(LANES_FOUND_MAX)])];
            if !transaction.has_begun() {
                calls.insert(0, guard);
            }
            let rows = transaction.run(calls).await?.pop().unwrap_or_default();
            let lanes: Result<Vec<i32>, _> = rows.iter().map(|row| row.try_get(0)).collect();
            let lanes = lanes?;
            shared.know_lanes(&lanes).await?;
            self.field.found(lanes);
        }
        let named = needs.jobs.iter().filter(|id| !self.held.contains_key(id)).count();
        Ok(self.field.plan(&needs.pulls, named, registry, &shared.lanes()))
    }

    /// The jobs of a batch that are remembered.
    fn recall(&self, needs: &Needs, lessons: &Lessons) -> Vec<Stored> {
        match lessons.is_wary {
            true => Vec::new(),
            false => needs.jobs.iter().filter_map(|id| self.held.get(id)).cloned().collect(),
        }
    }

    /// Takes in what was committed.
    fn remember(&mut self, after: After) -> Done {
        for (id, stored) in after.held {
            match stored {
                Some(stored) => self.held.insert(id, stored),
                None => self.held.remove(&id),
            };
        }
        if self.held.len() > HELD_MAX {
            // Leases that ran out are most likely somebody else's by now.
            let is_live = |job: &Job| job.lease().is_some_and(|lease| lease.is_live(after.now));
            self.held.retain(|_, stored| is_live(&stored.job));
            if self.held.len() > HELD_MAX {
                self.held.clear();
            }
        }
        self.field.searched(&after.plan, &after.found);
        for (lane, spot) in after.filled {
            self.field.filled(lane, spot);
        }
        after.done
    }
}

/// What is true once a batch is committed.
struct After {
    held: Vec<(JobId, Option<Stored>)>,
    plan: Plan,
    found: Found,
    /// Ready rows that were written.
    filled: Vec<(i32, (i64, Uuid))>,
    done: Done,
    now: Timestamp,
}

impl After {
    fn of(desk: &PostgresDesk<'_>, found: Found, plan: Plan, shared: &Shared) -> After {
        let mut after = After {
            held: Vec::new(),
            plan,
            found,
            filled: Vec::new(),
            done: Done::default(),
            now: desk.now,
        };
        after.done.has_moved = !desk.steps.is_empty();
        let lanes = shared.lanes();
        for id in &desk.changed {
            let Some(entry) = desk.entries.get(id) else { continue };
            after.held.push((*id, held(entry)));
            let Some(due_at) = entry.job.due_at() else { continue };
            if due_at > desk.now {
                let next = &mut after.done.next_due;
                *next = Some(next.map_or(due_at, |next| next.min(due_at)));
            } else if let Some(lane) = lanes.number(&desk.registry.lane(&entry.job)) {
                after.done.has_ready = true;
                let key = desk.registry.key(&entry.job, due_at);
                after.filled.push((lane, (key, uuid(*id))));
            }
        }
        after
    }
}

/// A running job as it is in the database once the batch is committed.
fn held(entry: &Entry) -> Option<Stored> {
    (entry.job.state.name() == StateName::Running).then(|| Stored {
        job: entry.job.clone(),
        history: entry.history.clone(),
        version: Some(match entry.origin {
            crate::desk::Origin::Live(version) => version + 1,
            _ => 1,
        }),
    })
}

/// How many run under each limit, with other servers kept from counting meanwhile.
async fn count_limits(
    transaction: &mut Transaction<'_>,
    guard: Call,
    limits: &HashSet<Digest>,
) -> Result<HashMap<Digest, u32>, Fault> {
    if limits.is_empty() {
        return Ok(HashMap::new());
    }
    let keys: Vec<Uuid> = limits.iter().map(|key| hash_uuid(*key)).collect();
    let mut calls = vec![
        Call::new(Query::LockLimits, vec![Box::new(keys.clone())]),
        Call::new(Query::CountLimits, vec![Box::new(keys)]),
    ];
    if !transaction.has_begun() {
        calls.insert(0, guard);
    }
    let rows = transaction.run(calls).await?.pop().unwrap_or_default();
    let mut running = HashMap::new();
    for row in rows {
        let count: i64 = row.try_get(1)?;
        running.insert(digest(row.try_get(0)?), u32::try_from(count).unwrap_or(u32::MAX));
    }
    Ok(running)
}
