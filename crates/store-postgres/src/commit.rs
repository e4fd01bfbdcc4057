//! One commit: load what the batch named, let the kernel decide, write the difference. Nothing is
//! locked but the ready rows that may be claimed; every other change names the version it was
//! decided on, and a batch that somebody got ahead of is decided again.
//!
//! Jobs that this server handed out are remembered, so that reports on them need no load: their
//! statements travel with the beginning and the end of the transaction in one go.

pub(crate) mod columns;
pub(crate) mod desk;
pub(crate) mod effects;
pub(crate) mod load;
pub(crate) mod registry_changes;
pub(crate) mod suspects;
pub(crate) mod tallies;
pub(crate) mod write;

use crate::backlog::OnItsWay;
use crate::commit::desk::{Entry, Ground, Origin, PostgresDesk};
use crate::commit::load::{Loaded, Transaction, Wants, fetch};
use crate::commit::registry_changes;
use crate::commit::suspects::Suspects;
use crate::commit::write;
use crate::connections::{Call, Wait};
use crate::fault::Fault;
use crate::queries::Query;
use crate::rows::Stored;
use crate::stock::{Offer, Plan, ReadyKey, Stock};
use crate::this_server::ThisServer;
use crate::values::{Map, digest, hash_uuid, uuid};
use mainspring_kernel::dispatch::Book;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Event, Job, JobId, StateName, Timestamp};
use mainspring_store::{Needs, Work};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// What the one writer of this process keeps between batches.
#[derive(Default)]
pub(crate) struct Writer {
    /// Who was served when; empty of jobs between batches.
    book: Book<JobId>,
    /// Running jobs that this server handed out, as they were last seen.
    handed_out: Map<JobId, Stored>,
    pub(crate) stock: Stock,
    suspects: Suspects,
}

/// Jobs remembered, at most.
const HANDED_OUT_MAX: usize = 100_000;
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
    /// Whether somebody was found to hold something.
    is_held: bool,
    /// The ready jobs that the last attempt would have handed out.
    claimed: Vec<JobId>,
    /// Whether to hand out nothing: the database refuses something, and it may be among those.
    is_without_offers: bool,
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
        server: &ThisServer,
        needs: &Needs,
        work: &mut Work<'_>,
    ) -> Result<Done, Fault> {
        let mut lessons = Lessons::default();
        let mut last = Fault::Conflict;
        for attempt in 0..ATTEMPTS_MAX {
            self.book.mark();
            let outcome = self.attempt(server, needs, work, &mut lessons).await;
            if !matches!(outcome, Ok(Some(_))) {
                // Nobody got anything: the next attempt has to serve the same ones.
                self.book.undo_servings();
            }
            match outcome {
                Ok(Some(done)) => {
                    self.suspects.learn(&lessons.claimed, lessons.is_without_offers);
                    return Ok(done);
                }
                Err(Fault::Refused(why) | Fault::Unreadable(why) | Fault::Broken(why))
                    if !lessons.is_without_offers && !lessons.claimed.is_empty() =>
                {
                    // The batch, or a job that it would hand out: the batch alone shows which.
                    self.suspects.tell(&why);
                    lessons.is_without_offers = true;
                    self.forget(needs);
                    lessons.is_wary = true;
                }
                Ok(None) => self.stock.drop_stock(),
                Err(Fault::RegistryChanged) => {
                    self.stock.drop_stock();
                    server.read_registry().await?;
                }
                Err(Fault::Conflict) => {
                    lessons.is_wary = true;
                    self.stock.distrust();
                    tokio::time::sleep(PAUSE * attempt.saturating_sub(2)).await;
                }
                Err(Fault::Held) if needs.is_hasty || lessons.is_held => {
                    self.stock.drop_stock();
                    return Err(Fault::Held);
                }
                Err(Fault::Held) => {
                    // Perhaps only a ready job that was to be handed out: others are, then.
                    match needs.pulls.is_empty() {
                        true => self.stock.drop_stock(),
                        false => self.stock.distrust(),
                    }
                    lessons.is_held = true;
                    last = Fault::Held;
                }
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
            self.handed_out.remove(id);
        }
        self.stock.forget();
    }

    /// Tries once; nothing if it has to be tried again with what was learned.
    #[expect(clippy::too_many_lines, reason = "the steps of one attempt, read from top to bottom")]
    async fn attempt(
        &mut self,
        server: &ThisServer,
        needs: &Needs,
        work: &mut Work<'_>,
        lessons: &mut Lessons,
    ) -> Result<Option<Done>, Fault> {
        let known = server.registry();
        let mut registry = known.clone();
        for event in &lessons.settings {
            Arc::make_mut(&mut registry).apply(event);
        }
        let wait = if needs.is_hasty || lessons.is_held { Wait::Hardly } else { Wait::Short };
        let mut transaction = Transaction::new(server.connections.get().await?);
        transaction.connection.wait = wait;
        if !lessons.settings.is_empty() {
            let guard = Call::new(Query::GuardForChange, vec![Box::new(known.version)]);
            transaction.run(vec![guard]).await?;
            let connection = &mut transaction.connection;
            registry_changes::write(connection, server, &known, &registry, &lessons.settings)
                .await?;
            // Only this transaction sees the jobs where they are from now on.
            self.stock.forget();
            self.stock.distrust();
        }
        let guard = || Call::new(Query::Guard, vec![Box::new(known.version)]);
        let running = count_limits(&mut transaction, guard(), &lessons.limits).await?;
        let offered = match lessons.is_without_offers {
            true => Ok((Plan::default(), Vec::new())),
            false => self.offers(server, &mut transaction, guard(), needs, &registry).await,
        };
        let (plan, offers) = match offered {
            Err(Fault::Refused(why) | Fault::Unreadable(why) | Fault::Broken(why)) => {
                // A ready job that cannot be read must not stop everything else.
                self.suspects.tell(&why);
                lessons.is_without_offers = true;
                return Ok(None);
            }
            offered => offered?,
        };
        let wants = Wants { needs, offers, recalled: self.recall(needs, lessons) };
        let loaded = Loaded::load(server, &mut transaction, guard(), wants).await?;
        let mut desk = PostgresDesk::new(Ground {
            now: needs.now,
            shown: known.clone(),
            registry: &registry,
            book: &mut self.book,
            running,
            server,
        });
        loaded.lay_out(&mut desk, &server.lanes());
        if let Some(at) = desk.early {
            server.work_by(at);
        }
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
        let unnumbered = write::lanes_needed(&desk, &server.lanes());
        server.number_lanes(unnumbered, wait).await?;
        let held = desk.tallies.all_held();
        let mut calls = write::calls(&mut desk, &server.lanes())?;
        let is_claimed = |entry: &&Entry| entry.ready_row.is_some() && entry.is_changed;
        if !lessons.is_without_offers {
            lessons.claimed =
                desk.entries.values().filter(is_claimed).map(|entry| entry.job.id).collect();
        }
        let after = After::of(desk, plan, &self.stock, server);
        if calls.is_empty() && lessons.settings.is_empty() {
            // Refused on registries that may have changed meanwhile; a pull alone decides nothing.
            match transaction.has_begun() {
                true => transaction.undo().await,
                false if needs.has_commands => server.check_registry(known.version).await?,
                false => {}
            }
            self.stock.give_back(after.untaken);
            self.stock.searched(&after.plan, None);
            return Ok(Some(Done::default()));
        }
        if !transaction.has_begun() {
            calls.insert(0, guard());
        }
        {
            let _on_its_way = OnItsWay::begin(server);
            transaction.end(calls).await?;
            server.backlog().committed(held);
        }
        server.own_commits.fetch_add(1, Ordering::AcqRel);
        if !lessons.settings.is_empty() {
            Arc::make_mut(&mut registry).version = known.version + 1;
            server.learn_registry(registry);
        }
        server.set_alarms(&after.alarms);
        if let Some(at) = after.first_alarm {
            server.first_alarm.stands_at(at);
        }
        Ok(Some(self.remember(after)))
    }

    /// The ready jobs that the pulls of a batch may take, and where they were looked for.
    async fn offers(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        guard: Call,
        needs: &Needs,
        registry: &crate::registry::Registry,
    ) -> Result<(Plan, Vec<Offer>), Fault> {
        let again = Call::new(guard.query, vec![Box::new(registry.version)]);
        let plan = self.plan(server, transaction, guard, needs, registry).await?;
        let began = Instant::now();
        let fetched = fetch(server, transaction, again, &plan).await?;
        let offers = self.stock.offers(&plan, fetched, began);
        let (offers, rest) = self.suspects.sift(offers);
        self.stock.give_back(rest);
        Ok((plan, offers))
    }

    /// Which ready rows to lock for the pulls of a batch.
    async fn plan(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        guard: Call,
        needs: &Needs,
        registry: &crate::registry::Registry,
    ) -> Result<Plan, Fault> {
        if needs.pulls.is_empty() {
            return Ok(Plan::default());
        }
        server.promote(needs.now).await?;
        server.fill(&mut self.stock);
        if let Some(later) = self.stock.looks_in() {
            server.work_by(needs.now + later);
        }
        if self.stock.has_to_look() {
            let began = Instant::now();
            let mut calls = vec![Call::new(Query::FindLanes, vec![Box::new(LANES_FOUND_MAX)])];
            if !transaction.has_begun() {
                calls.insert(0, guard);
            }
            let rows = transaction.run(calls).await?.pop().unwrap_or_default();
            let lanes: Result<Vec<i32>, _> = rows.iter().map(|row| row.try_get(0)).collect();
            let lanes = lanes?;
            server.know_lanes(&lanes).await?;
            self.stock.found(lanes, began);
        }
        let named = needs.jobs.iter().filter(|id| !self.handed_out.contains_key(id)).count();
        Ok(self.stock.plan(&needs.pulls, named, registry, &server.lanes()))
    }

    /// The jobs of a batch that are remembered.
    fn recall(&self, needs: &Needs, lessons: &Lessons) -> Vec<Stored> {
        match lessons.is_wary {
            true => Vec::new(),
            false => needs.jobs.iter().filter_map(|id| self.handed_out.get(id)).cloned().collect(),
        }
    }

    /// Takes in what was committed.
    fn remember(&mut self, after: After) -> Done {
        for (id, stored) in after.held {
            match stored {
                Some(stored) => self.handed_out.insert(id, stored),
                None => self.handed_out.remove(&id),
            };
        }
        if self.handed_out.len() > HANDED_OUT_MAX {
            // Leases that ran out are most likely somebody else's by now.
            let is_live = |job: &Job| job.lease().is_some_and(|lease| lease.is_live(after.now));
            self.handed_out.retain(|_, stored| is_live(&stored.job));
            if self.handed_out.len() > HANDED_OUT_MAX {
                self.handed_out.clear();
            }
        }
        self.stock.give_back(after.untaken);
        self.stock.searched(&after.plan, Some(&after.passed));
        self.stock.left(&after.left);
        for (lane, spot, stored) in after.filled {
            self.stock.filled(lane, spot, stored);
        }
        after.done
    }
}

/// What is true once a batch is committed.
struct After {
    held: Vec<(JobId, Option<Stored>)>,
    alarms: Vec<(JobId, Option<Timestamp>, Option<Timestamp>)>,
    plan: Plan,
    /// Ready jobs that were offered and not taken.
    untaken: Vec<Offer>,
    /// The last place taken in each lane.
    passed: Map<i32, ReadyKey>,
    /// Jobs that waited, were not offered, and wait no longer.
    left: HashSet<JobId>,
    /// Ready rows that were written, and their jobs if those go into the stock.
    filled: Vec<(i32, ReadyKey, Option<Stored>)>,
    /// The first alarm of an entity that was set.
    first_alarm: Option<Timestamp>,
    done: Done,
    now: Timestamp,
}

impl After {
    fn of(desk: PostgresDesk<'_>, plan: Plan, stock: &Stock, server: &ThisServer) -> After {
        let first_alarm = desk.entities.first_alarm();
        let PostgresDesk { entries, registry, now, steps, .. } = desk;
        let mut after = After {
            held: Vec::with_capacity(entries.len()),
            alarms: Vec::with_capacity(entries.len()),
            plan,
            untaken: Vec::new(),
            passed: Map::default(),
            left: HashSet::new(),
            filled: Vec::new(),
            first_alarm,
            done: Done { has_moved: !steps.is_empty(), ..Done::default() },
            now,
        };
        let lanes = server.lanes();
        for (id, entry) in entries {
            if let Some((lane, key)) = entry.ready_row {
                if !entry.is_changed {
                    after.untaken.push((lane, key, stored(entry)));
                    continue;
                }
                let spot = (key, uuid(id));
                let passed = after.passed.entry(lane).or_insert(spot);
                *passed = spot.max(*passed);
            } else if entry.is_changed && entry.was_due_at.is_some() {
                after.left.insert(id);
            }
            if !entry.is_changed {
                continue;
            }
            after.alarms.push((id, entry.was_alarm, entry.job.alarm_at()));
            match entry.job.due_at() {
                Some(due_at) if due_at > now => {
                    let next = &mut after.done.next_due;
                    *next = Some(next.map_or(due_at, |next| next.min(due_at)));
                }
                Some(due_at) => {
                    after.done.has_ready = true;
                    if let Some(lane) = lanes.number(&registry.lane(&entry.job)) {
                        let spot = (registry.key(&entry.job, due_at), uuid(id));
                        let stored = stock.is_stocked(lane).then(|| stored(entry));
                        after.filled.push((lane, spot, stored));
                    }
                }
                None => {
                    let runs = entry.job.state.name() == StateName::Running;
                    after.held.push((id, runs.then(|| stored(entry))));
                }
            }
        }
        after
    }
}

/// A job as it is in the database once the batch is committed.
fn stored(mut entry: Entry) -> Stored {
    entry.put_effects_away();
    let version = match entry.origin {
        Origin::Live(version) if entry.is_changed => Some(version + 1),
        Origin::Live(version) => Some(version),
        Origin::New | Origin::Queued if entry.job.state.name() == StateName::Queued => None,
        Origin::New | Origin::Queued | Origin::Finished => Some(1),
    };
    Stored { job: entry.job, history: entry.history, version, lane: entry.lane }
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
