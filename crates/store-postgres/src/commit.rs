//! One commit: load what the batch names, let the kernel decide, write the difference. No row that
//! the batch names is locked between load and write: every change names the version it was decided
//! on, and a batch that somebody got ahead of is tried again. What is locked until the end is the
//! row of `registry`, which all commits share; each limit that has to be counted; and, for a second
//! after another server emptied the stock, the rows of `ready` that are read for pulls.
//!
//! A try is a row of steps (`try_once`):
//!
//! | step | tables it reads | tables it writes |
//! |---|---|---|
//! | `write_registry_changes`, if any | `registry`, `lane`, `live` | `type`, `queue`, `token` |
//! | ... and jobs that count or stand elsewhere by it | | `lane`, `ready`, `waiting`, `live` |
//! | `count_limited`, if limits matter | `live`, `meter`, with a lock per limit | |
//! | `gather_offers` (`offers.rs`), for pulls | `ready`, `job`, `live` | `waiting`, `ready` |
//! | `recall`: jobs that this server handed out | | |
//! | `load_named` (`load.rs`) | `job`, `live`, `finished`, `effect` | |
//! | ... in the same round trip | `item`, `entity`, `held_key` | |
//! | ... and then the jobs that hold those keys | `job`, `live`, `finished` | |
//! | the batch works on the desk (`desk.rs`) | | |
//! | `number_lanes` | `lane` | `lane` |
//! | `statements` (`write.rs`), with COMMIT | | whatever changed, and `outbox` |
//! | `Consequences::come_true` | | none: what this server keeps in mind |
//!
//! The first statement of all is `guard()`: the registries are those that the batch decides by.
//! Jobs that this server handed out are remembered, so that reports on them need no load: their
//! statements travel with the beginning and the end of the transaction in one go. Numbers of lanes
//! are given outside of the transaction: whatever becomes of it, they stay given.

pub(crate) mod columns;
mod consequences;
pub(crate) mod desk;
pub(crate) mod effects;
pub(crate) mod entities;
pub(crate) mod items;
mod keys;
mod lessons;
pub(crate) mod load;
pub(crate) mod meters;
mod offers;
mod registry_changes;
mod suspects;
pub(crate) mod tallies;
mod transaction;
pub(crate) mod write;

use crate::backlog::OnItsWay;
use crate::commit::consequences::Consequences;
use crate::commit::desk::{Ground, PostgresDesk};
use crate::commit::lessons::Lessons;
use crate::commit::load::{Loaded, Wants};
use crate::commit::meters::{DeskMeters, load_meters};
use crate::commit::suspects::Suspects;
use crate::commit::transaction::Transaction;
use crate::connections::{Call, Wait};
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::Registry;
use crate::rows::Stored;
use crate::stock::{Offer, Plan, Stock};
use crate::this_server::ThisServer;
use crate::values::{Map, digest, hash_uuid};
use mainspring_kernel::dispatch::Book;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meters;
use mainspring_kernel::{Job, JobId, Timestamp};
use mainspring_store::{Needs, Work};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// What the one writer of this process keeps between batches.
#[derive(Default)]
pub(crate) struct Writer {
    /// Who was served when; empty of jobs between batches.
    book: Book<JobId>,
    /// Running jobs that this server handed out, as they were last seen in `live`.
    handed_out: Map<JobId, Stored>,
    stock: Stock,
    suspects: Suspects,
}

/// Jobs handed out that are remembered, at most.
const HANDED_OUT_MAX: usize = 100_000;
/// Tries at one batch before it is given back as busy.
const TRIES_MAX: u32 = 12;
/// From the third try on, whoever got ahead is given this much longer each time.
const PAUSE: Duration = Duration::from_millis(2);

/// How a try ended that did not fail.
enum Tried {
    /// The database has taken the batch.
    Committed,
    /// It has to be tried again with what was learned.
    Again,
}

impl Writer {
    /// Runs a batch.
    pub(crate) async fn commit(
        &mut self,
        server: &ThisServer,
        needs: &Needs,
        work: &mut Work<'_>,
    ) -> Result<(), Fault> {
        let mut lessons = Lessons::default();
        self.foresee_meters(server, needs, &mut lessons);
        let mut last = Fault::Conflict;
        for tries in 0..TRIES_MAX {
            self.book.mark();
            let outcome = self.try_once(server, needs, work, &mut lessons).await;
            if !matches!(outcome, Ok(Tried::Committed)) {
                // Nobody got anything: the next try has to serve the same ones.
                self.book.undo_servings();
                server.lanes_mut().forget(&std::mem::take(&mut lessons.uncommitted_lanes));
            }
            match outcome {
                Ok(Tried::Committed) => {
                    self.suspects.learn(&lessons.claimed, lessons.is_without_offers);
                    return Ok(());
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
                Ok(Tried::Again) => self.stock.empty(),
                Err(Fault::RegistryChanged) => {
                    self.stock.empty();
                    server.read_registry().await?;
                }
                Err(Fault::Conflict) => {
                    lessons.is_wary = true;
                    self.stock.lock_for_a_while();
                    tokio::time::sleep(PAUSE * tries.saturating_sub(2)).await;
                }
                Err(Fault::Locked) if needs.is_hasty || lessons.has_met_lock => {
                    self.stock.empty();
                    return Err(Fault::Locked);
                }
                Err(Fault::Locked) => {
                    // Perhaps only a ready job that was to be handed out: others are, then.
                    match needs.pulls.is_empty() {
                        true => self.stock.empty(),
                        false => self.stock.lock_for_a_while(),
                    }
                    lessons.has_met_lock = true;
                    last = Fault::Locked;
                }
                Err(fault) => {
                    self.forget(needs);
                    return Err(fault);
                }
            }
        }
        Err(last)
    }

    /// Reports on jobs whose type has a circuit need it: that is known before the first try.
    fn foresee_meters(&self, server: &ThisServer, needs: &Needs, lessons: &mut Lessons) {
        let registry = server.registry();
        for stored in needs.jobs.iter().filter_map(|id| self.handed_out.get(id)) {
            if let Some(spec) = registry.metered(&stored.job.job_type)
                && spec.flow.circuit.is_some()
            {
                lessons.meters.extend(Meters::keys_of(spec, None).last());
            }
        }
    }

    /// The steps of one try, as the table above has them.
    async fn try_once(
        &mut self,
        server: &ThisServer,
        needs: &Needs,
        work: &mut Work<'_>,
        lessons: &mut Lessons,
    ) -> Result<Tried, Fault> {
        let Round { known, mut registry, wait, mut transaction } =
            Round::begin(server, needs, lessons).await?;
        self.write_registry_changes(server, &mut transaction, &known, &registry, lessons).await?;
        let (running, meters) = count_limited(&mut transaction, lessons).await?;
        let offers = self.offers(server, &mut transaction, needs, &registry, lessons).await?;
        let Some((plan, offers)) = offers else { return Ok(Tried::Again) };
        let wants = Wants { needs, offers, recalled: self.recall(needs, lessons) };
        let loaded = Loaded::load_named(server, &mut transaction, wants).await?;
        let mut desk = PostgresDesk::new(Ground {
            now: needs.now,
            due_by: needs.due_by.map_or(needs.now, |at| at.max(needs.now)),
            shown: known.clone(),
            registry: &registry,
            book: &mut self.book,
            running,
            meters,
            server,
        });
        loaded.lay_out(&mut desk, &server.lanes());
        desk.offered_in_part(&plan.cut, &server.lanes());
        if let Some(at) = desk.early {
            server.work_by(at);
        }
        work(&mut desk);
        desk.clear_book();
        if let Some(at) = desk.opens_at {
            server.work_by(at);
        }
        if lessons.learn(&mut desk) {
            transaction.undo().await;
            return Ok(Tried::Again);
        }
        let unnumbered = write::lanes_needed(&desk, &server.lanes());
        server.number_lanes(unnumbered, wait).await?;
        let backlog = desk.tallies.all_held();
        let calls = write::statements(&mut desk, &server.lanes())?;
        lessons.note_claims(&desk);
        let mut consequences = Consequences::of(desk, plan, &self.stock, server);
        if calls.is_empty() && lessons.registry_changes.is_empty() {
            end_unchanged(server, transaction, needs, known.version).await?;
            consequences.of_nothing(server, self);
            return Ok(Tried::Committed);
        }
        consequences.backlog = backlog;
        if !lessons.registry_changes.is_empty() {
            Arc::make_mut(&mut registry).version = known.version + 1;
            consequences.registry = Some(registry);
        }
        let _on_its_way = OnItsWay::begin(server);
        transaction.commit(calls).await?;
        consequences.come_true(server, self);
        Ok(Tried::Committed)
    }

    /// Writes what the last try found the batch to change of types, queues and tokens: before
    /// anything is loaded, because waiting jobs change lanes and places by it.
    async fn write_registry_changes(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        known: &Registry,
        registry: &Registry,
        lessons: &mut Lessons,
    ) -> Result<(), Fault> {
        if lessons.registry_changes.is_empty() {
            return Ok(());
        }
        transaction.begin_for_change().await?;
        let connection = &mut transaction.connection;
        let changes = &lessons.registry_changes;
        lessons.uncommitted_lanes =
            registry_changes::write(connection, server, known, registry, changes).await?;
        // Only this transaction sees the jobs where they are from now on.
        self.stock.forget_lanes();
        self.stock.lock_for_a_while();
        Ok(())
    }

    /// The rows of `ready` that the batch may claim; nothing if it has to be tried without any.
    async fn offers(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        needs: &Needs,
        registry: &Registry,
        lessons: &mut Lessons,
    ) -> Result<Option<(Plan, Vec<Offer>)>, Fault> {
        if lessons.is_without_offers {
            return Ok(Some(Default::default()));
        }
        match self.gather_offers(server, transaction, needs, registry).await {
            Err(Fault::Refused(why) | Fault::Unreadable(why) | Fault::Broken(why)) => {
                // A ready job that cannot be read must not stop everything else.
                self.suspects.tell(&why);
                lessons.is_without_offers = true;
                Ok(None)
            }
            gathered => gathered.map(Some),
        }
    }

    /// The jobs of a batch that this server handed out and remembers.
    fn recall(&self, needs: &Needs, lessons: &Lessons) -> Vec<Stored> {
        match lessons.is_wary {
            true => Vec::new(),
            false => needs.jobs.iter().filter_map(|id| self.handed_out.get(id)).cloned().collect(),
        }
    }

    /// What is known of these jobs may be wrong.
    fn forget(&mut self, needs: &Needs) {
        for id in &needs.jobs {
            self.handed_out.remove(id);
        }
        self.stock.forget_lanes();
    }

    /// Jobs that workers of this server hold from now on, and those they hold no more.
    fn remember_handed_out(&mut self, jobs: Vec<(JobId, Option<Stored>)>, now: Timestamp) {
        for (id, stored) in jobs {
            match stored {
                Some(stored) => self.handed_out.insert(id, stored),
                None => self.handed_out.remove(&id),
            };
        }
        if self.handed_out.len() > HANDED_OUT_MAX {
            // Leases that ran out are most likely somebody else's by now.
            let is_live = |job: &Job| job.lease().is_some_and(|lease| lease.is_live(now));
            self.handed_out.retain(|_, stored| is_live(&stored.job));
            if self.handed_out.len() > HANDED_OUT_MAX {
                self.handed_out.clear();
            }
        }
    }
}

/// What a try starts from.
struct Round<'a> {
    /// The registries as they are.
    known: Arc<Registry>,
    /// The registries as the batch leaves them.
    registry: Arc<Registry>,
    /// How long the try waits for locks.
    wait: Wait,
    transaction: Transaction<'a>,
}

impl<'a> Round<'a> {
    async fn begin(
        server: &'a ThisServer,
        needs: &Needs,
        lessons: &Lessons,
    ) -> Result<Round<'a>, Fault> {
        let known = server.registry();
        let mut registry = known.clone();
        for change in &lessons.registry_changes {
            Arc::make_mut(&mut registry).apply(change);
        }
        let wait = if needs.is_hasty || lessons.has_met_lock { Wait::Hardly } else { Wait::Short };
        let mut transaction = Transaction::new(server.connections.get().await?, known.version);
        transaction.connection.wait = wait;
        Ok(Round { known, registry, wait, transaction })
    }
}

/// How many rows of `live` count under each limit, and how meters stand, with other servers kept
/// from counting the same ones meanwhile.
async fn count_limited(
    transaction: &mut Transaction<'_>,
    lessons: &Lessons,
) -> Result<(HashMap<Digest, u32>, DeskMeters), Fault> {
    let Lessons { limits, meters, .. } = lessons;
    if limits.is_empty() && meters.is_empty() {
        return Ok(Default::default());
    }
    let counted: Vec<Uuid> = limits.iter().map(|key| hash_uuid(*key)).collect();
    let locked: Vec<Uuid> = limits.union(meters).map(|key| hash_uuid(*key)).collect();
    let mut calls = vec![
        Call::new(Query::LockLimits, vec![Box::new(locked)]),
        Call::new(Query::CountLimits, vec![Box::new(counted)]),
    ];
    if !meters.is_empty() {
        calls.push(load_meters(meters));
    }
    let mut answers = transaction.run(calls).await?.into_iter().skip(1);
    let (rows, loaded) = (answers.next().unwrap_or_default(), answers.next().unwrap_or_default());
    let mut running = HashMap::new();
    for row in rows {
        let count: i64 = row.try_get(1)?;
        running.insert(digest(row.try_get(0)?), u32::try_from(count).unwrap_or(u32::MAX));
    }
    Ok((running, DeskMeters::read(meters, &loaded)?))
}

/// Ends a batch that changed nothing. What it was refused must rest on registries that are true
/// still; a pull alone decides nothing.
async fn end_unchanged(
    server: &ThisServer,
    transaction: Transaction<'_>,
    needs: &Needs,
    registry_version: i64,
) -> Result<(), Fault> {
    match transaction.has_begun() {
        true => transaction.undo().await,
        false if needs.has_commands => server.check_registry(registry_version).await?,
        false => {}
    }
    Ok(())
}
