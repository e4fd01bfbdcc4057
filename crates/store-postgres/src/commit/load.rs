//! Loading what a batch named, in as few round trips as there are dependencies: one for most, a
//! second for the jobs behind idempotency keys and for what the locked rows brought to light.

use crate::commit::desk::{Entry, ItemEntry, KeyEntry, PostgresDesk};
use crate::commit::effects::read_effect;
use crate::connections::{Call, Connection, Value};
use crate::entities;
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::Lanes;
use crate::rows::{Stored, read_job};
use crate::stock::{Offer, Plan};
use crate::this_server::ThisServer;
use crate::values::{At, digest, hash_uuid, item_uuid, job_id, uuid};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::job::Effect;
use mainspring_kernel::{DlqItem, Entity, JobId};
use mainspring_store::Needs;
use mainspring_store::record::{Names, Record, records_of};
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;
use uuid::Uuid;

/// A transaction that may have begun.
pub(crate) struct Transaction<'a> {
    pub(crate) connection: Connection<'a>,
    has_begun: bool,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(connection: Connection<'a>) -> Self {
        Transaction { connection, has_begun: false }
    }

    /// Sends statements; the first ones begin the transaction.
    pub(crate) async fn run(&mut self, calls: Vec<Call>) -> Result<Vec<Vec<Row>>, Fault> {
        let begins = !std::mem::replace(&mut self.has_begun, true);
        let outcome = self.connection.run(begins, calls, false).await;
        self.has_begun = outcome.is_ok();
        outcome
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Sends the last statements and the commit.
    pub(crate) async fn end(mut self, calls: Vec<Call>) -> Result<(), Fault> {
        let outcome = self.connection.run(!self.has_begun, calls, true).await;
        // A statement that was answered with a no took the whole transaction down.
        let is_refused = self.connection.is_refused;
        match outcome {
            Err(Fault::Away(why)) if !is_refused => Err(Fault::Unknown(why)),
            outcome => outcome.map(|_| ()),
        }
    }

    /// Undoes everything.
    pub(crate) async fn undo(mut self) {
        if self.has_begun {
            self.connection.undo().await;
        }
    }
}

/// What was loaded.
#[derive(Default)]
pub(crate) struct Loaded {
    jobs: Vec<Stored>,
    /// From memory, not from the database.
    recalled: Vec<Stored>,
    /// Ready jobs that may be taken.
    offers: Vec<Offer>,
    items: Vec<DlqItem>,
    entities: Vec<Entity>,
    effects: Vec<(JobId, Effect)>,
    keys: HashMap<Digest, Option<KeyHolder>>,
}

/// What a batch needs from the database.
pub(crate) struct Wants<'a> {
    pub(crate) needs: &'a Needs,
    /// Ready jobs that may be taken.
    pub(crate) offers: Vec<Offer>,
    /// Jobs that are remembered.
    pub(crate) recalled: Vec<Stored>,
}

impl Loaded {
    /// Loads everything.
    pub(crate) async fn load(
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        guard: Call,
        wants: Wants<'_>,
    ) -> Result<Loaded, Fault> {
        let Wants { needs, offers, recalled } = wants;
        let mut loaded = Loaded { recalled, offers, ..Loaded::default() };
        let known: HashSet<JobId> = loaded.recalled.iter().map(|it| it.job.id).collect();
        let ids: Vec<Uuid> =
            needs.jobs.iter().filter(|id| !known.contains(id)).map(|id| uuid(*id)).collect();
        let items: Vec<Uuid> = needs.items.iter().map(|id| item_uuid(*id)).collect();
        let keys: Vec<Uuid> = needs.keys.iter().map(|key| hash_uuid(*key)).collect();
        for key in &needs.keys {
            loaded.keys.insert(*key, None);
        }
        let mut calls = Vec::new();
        for (query, ids) in
            [(Query::LoadJobs, ids), (Query::LoadItems, items), (Query::LoadKeys, keys)]
        {
            if !ids.is_empty() {
                calls.push(Call::new(query, vec![Box::new(ids)]));
            }
        }
        calls.extend(entities::load(&needs.entities));
        // After the jobs: an effect that is committed in between is no surprise, a missing one is.
        let (jobs, names) = loaded.effects_wanted(needs);
        if !jobs.is_empty() {
            calls.push(Call::new(Query::LoadEffects, vec![Box::new(jobs), Box::new(names)]));
        }
        if calls.is_empty() {
            return Ok(loaded);
        }
        let queries: Vec<Query> = calls.iter().map(|call| call.query).collect();
        if !transaction.has_begun() {
            calls.insert(0, guard);
        }
        let mut answers = transaction.run(calls).await?;
        let answers = answers.split_off(answers.len() - queries.len());
        for (query, rows) in queries.into_iter().zip(answers) {
            loaded.take_in(server, query, &rows).await?;
        }
        loaded.load_holders(server, transaction).await?;
        Ok(loaded)
    }

    /// The effects to look for: not those of jobs that are known to have none.
    fn effects_wanted(&self, needs: &Needs) -> (Vec<Uuid>, Vec<String>) {
        let has_none = |id: JobId| {
            let known = self.recalled.iter().find(|stored| stored.job.id == id);
            known.is_some_and(|stored| stored.job.effect_totals().count == 0)
        };
        let wanted = needs.effects.iter().filter(|(job, _)| !has_none(*job));
        wanted.map(|(job, name)| (uuid(*job), name.to_string())).unzip()
    }

    async fn take_in(
        &mut self,
        server: &ThisServer,
        query: Query,
        rows: &[Row],
    ) -> Result<(), Fault> {
        if query == Query::LoadJobs {
            server.learn_lanes(rows, 0).await?;
            let lanes = server.lanes();
            for row in rows {
                self.jobs.push(read_job(row, 0, true, &lanes)?);
            }
        } else if query == Query::LoadEffects {
            self.effects = rows.iter().map(read_effect).collect::<Result<_, _>>()?;
        } else if query == Query::LoadEntities {
            self.entities = rows.iter().map(entities::read).collect::<Result<_, _>>()?;
        } else if query == Query::LoadItems {
            for row in rows {
                self.items.push(read_item(row.try_get(2)?)?);
            }
        } else {
            for row in rows {
                let holder = KeyHolder {
                    job: job_id(row.try_get(1)?),
                    fingerprint: row.try_get::<_, Option<Uuid>>(2)?.map(digest),
                    free_at: row.try_get::<_, Option<At>>(3)?.map(|at| at.0),
                };
                self.keys.insert(digest(row.try_get(0)?), Some(holder));
            }
        }
        Ok(())
    }

    /// The jobs behind the keys: a repeat is answered with where its job stands.
    async fn load_holders(
        &mut self,
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
    ) -> Result<(), Fault> {
        let here: HashSet<JobId> = self
            .jobs
            .iter()
            .chain(&self.recalled)
            .chain(self.offers.iter().map(|(.., stored)| stored))
            .map(|stored| stored.job.id)
            .collect();
        let holders = self.keys.values().flatten().map(|holder| holder.job);
        let missing: HashSet<JobId> = holders.filter(|id| !here.contains(id)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = missing.into_iter().map(uuid).collect();
        let call = Call::new(Query::LoadJobs, vec![Box::new(ids)]);
        let rows = transaction.run(vec![call]).await?.pop().unwrap_or_default();
        self.take_in(server, Query::LoadJobs, &rows).await
    }

    /// Puts everything on the desk.
    pub(crate) fn lay_out(self, desk: &mut PostgresDesk<'_>, lanes: &Lanes) {
        for stored in self.jobs {
            desk.entries.insert(stored.job.id, Entry::new(stored));
        }
        for stored in self.recalled {
            let mut entry = Entry::new(stored);
            entry.is_recalled = true;
            desk.entries.insert(entry.job.id, entry);
        }
        for (job, effect) in self.effects {
            if let Some(entry) = desk.entries.get_mut(&job) {
                entry.bring(effect);
            }
        }
        for item in self.items {
            let was = Some(item.version);
            desk.items.insert(item.id, ItemEntry { item, was, is_changed: false });
        }
        for entity in self.entities {
            desk.entities.bring(entity);
        }
        for (hash, was) in self.keys {
            desk.keys.insert(hash, KeyEntry { was, now: was });
        }
        for (number, key, stored) in self.offers {
            if let Some(lane) = lanes.key(number) {
                desk.offer(stored, number, key, lane);
            }
        }
    }
}

/// Fetches the ready jobs a plan names: locked in the transaction, or merely looked at.
pub(crate) async fn fetch(
    server: &ThisServer,
    transaction: &mut Transaction<'_>,
    guard: Call,
    plan: &Plan,
) -> Result<Vec<Offer>, Fault> {
    if plan.fetched.is_empty() {
        return Ok(Vec::new());
    }
    let most = i32::try_from(plan.fetch).unwrap_or(i32::MAX);
    let values: Vec<Value> = vec![
        Box::new(plan.fetched.clone()),
        Box::new(plan.keys.clone()),
        Box::new(plan.ids.clone()),
        Box::new(most),
    ];
    let rows = if plan.is_locking {
        let mut calls = vec![Call::new(Query::LockReady, values)];
        if !transaction.has_begun() {
            calls.insert(0, guard);
        }
        transaction.run(calls).await?.pop().unwrap_or_default()
    } else {
        server.connections.read(Query::PeekReady, values).await?
    };
    server.learn_lanes(&rows, 2).await?;
    let lanes = server.lanes();
    let offer = |row: &Row| -> Result<Offer, Fault> {
        Ok((row.try_get(0)?, row.try_get(1)?, read_job(row, 2, false, &lanes)?))
    };
    rows.iter().map(offer).collect()
}

/// A dead-letter item from its record.
pub(crate) fn read_item(record: &[u8]) -> Result<DlqItem, Fault> {
    let mut names = Names::default();
    match records_of(record, &mut names).next() {
        Some(Ok(Record::Item(item))) => Ok(*item),
        Some(Err(bad)) => Err(bad.into()),
        _ => Err(Fault::Broken("a dead-letter item is no item".into())),
    }
}
