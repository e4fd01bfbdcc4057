//! Loading what a batch names: jobs, effects, items, entities and idempotency keys, in as few round
//! trips as there are dependencies. Nothing is locked.

use crate::commit::desk::{Entry, ItemEntry, KeyEntry, PostgresDesk};
use crate::commit::transaction::Transaction;
use crate::connections::{Call, Value};
use crate::entities;
use crate::fault::Fault;
use crate::lanes::Lanes;
use crate::queries::Query;
use crate::rows::{Stored, read_effect, read_holder, read_item, read_job};
use crate::stock::Offer;
use crate::this_server::ThisServer;
use crate::values::{digest, hash_uuid, item_uuid, uuid};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::governance::object_of;
use mainspring_kernel::job::Effect;
use mainspring_kernel::{DlqItem, Entity, EntityId, JobId};
use mainspring_store::Needs;
use std::collections::{HashMap, HashSet};
use tokio_postgres::Row;
use uuid::Uuid;

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
    /// Loads what the batch names and what is not recalled, in one round trip for most; the jobs
    /// behind idempotency keys take a second one.
    pub(crate) async fn load_named(
        server: &ThisServer,
        transaction: &mut Transaction<'_>,
        wants: Wants<'_>,
    ) -> Result<Loaded, Fault> {
        let Wants { needs, offers, recalled } = wants;
        let mut loaded = Loaded { recalled, offers, ..Loaded::default() };
        loaded.keys.extend(needs.keys.iter().map(|key| (*key, None)));
        let calls = [
            loaded.load_named_jobs(needs),
            load_by_ids(Query::LoadItems, needs.items.iter().map(|id| item_uuid(*id))),
            load_by_ids(Query::LoadKeys, needs.keys.iter().map(|key| hash_uuid(*key))),
            entities::load(&loaded.entities_wanted(needs)),
            // After the jobs: an effect that is committed in between is no surprise, a missing one
            // is.
            loaded.load_named_effects(needs),
        ];
        let calls: Vec<Call> = calls.into_iter().flatten().collect();
        if calls.is_empty() {
            return Ok(loaded);
        }
        let queries: Vec<Query> = calls.iter().map(|call| call.query).collect();
        let answers = transaction.run(calls).await?;
        for (query, rows) in queries.into_iter().zip(answers) {
            loaded.take_in(server, query, &rows).await?;
        }
        loaded.load_key_holders(server, transaction).await?;
        Ok(loaded)
    }

    /// Entities that the batch names, and those that the claim of an offered job looks at.
    fn entities_wanted(&self, needs: &Needs) -> Vec<EntityId> {
        let offered = self.offers.iter().filter_map(|(.., stored)| object_of(&stored.job));
        let mut ids: Vec<EntityId> = needs.entities.iter().copied().chain(offered).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// `job` with `live` and `finished`, for the jobs that are not recalled.
    fn load_named_jobs(&self, needs: &Needs) -> Option<Call> {
        let known: HashSet<JobId> = self.recalled.iter().map(|it| it.job.id).collect();
        let ids = needs.jobs.iter().filter(|id| !known.contains(id)).map(|id| uuid(*id));
        load_by_ids(Query::LoadJobs, ids)
    }

    /// `effect`, by job and name: not of jobs that are known to have none.
    fn load_named_effects(&self, needs: &Needs) -> Option<Call> {
        let has_none = |id: JobId| {
            let known = self.recalled.iter().find(|stored| stored.job.id == id);
            known.is_some_and(|stored| stored.job.effect_totals().count == 0)
        };
        let wanted = needs.effects.iter().filter(|(job, _)| !has_none(*job));
        let (jobs, names): (Vec<Uuid>, Vec<String>) =
            wanted.map(|(job, name)| (uuid(*job), name.to_string())).unzip();
        let values: Vec<Value> = vec![Box::new(jobs.clone()), Box::new(names)];
        (!jobs.is_empty()).then(|| Call::new(Query::LoadEffects, values))
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
                self.keys.insert(digest(row.try_get(0)?), Some(read_holder(row)?));
            }
        }
        Ok(())
    }

    /// The jobs behind the keys: a repeat is answered with where its job stands.
    async fn load_key_holders(
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
        let rows = transaction.run_one(Call::new(Query::LoadJobs, vec![Box::new(ids)])).await?;
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
            desk.entities.lay_out(entity);
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

/// The statement that loads rows by their ids, if there are any.
fn load_by_ids(query: Query, ids: impl Iterator<Item = Uuid>) -> Option<Call> {
    let ids: Vec<Uuid> = ids.collect();
    (!ids.is_empty()).then(|| Call::new(query, vec![Box::new(ids)]))
}
