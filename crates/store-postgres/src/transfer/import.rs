//! Writing everything, in one transaction.

use super::Session;
use super::export::{Cursor, TOTALS};
use crate::commit::effects::Effects;
use crate::commit::entities::{insert, insert_terms};
use crate::commit::items::item_terms;
use crate::commit::meters::set_meters;
use crate::commit::tallies::COUNTED_BY_TYPE;
use crate::config::PostgresConfig;
use crate::connections::{Call, Value};
use crate::fault::Fault;
use crate::lanes::Lanes;
use crate::migrate::{self, MigrateError, failed};
use crate::queries::{Queries, Query};
use crate::registry::{Registry, RegistryChange, write_queue, write_token, write_type};
use crate::rows::{more, state_number};
use crate::terms;
use crate::values::{At, hash_uuid, item_uuid, uuid};
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{DlqItem, StateName, Timestamp};
use mainspring_store::record::{LoggedStep, Record, encode_item, encode_progress, encode_steps};
use mainspring_store::transfer::Seal;
use mainspring_store::{JobWithHistory, LoggedMove};
use std::collections::{BTreeMap, HashSet};
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Fills an empty database.
pub struct PostgresImport {
    session: Session,
    registry: Registry,
    lanes: Lanes,
    now: Timestamp,
    /// Numbers to be kept.
    tally: BTreeMap<String, i64>,
}

impl PostgresImport {
    /// Opens a database; an empty one gets its tables.
    ///
    /// # Errors
    /// If it cannot be reached, a server uses it, or something is in it.
    pub async fn open(config: &PostgresConfig) -> Result<Self, MigrateError> {
        migrate::refuse_unsafe(config).await?;
        migrate::prepare(config).await?;
        let client = migrate::connect(config).await?;
        let session = Session { client, queries: Queries::new(&config.schema) };
        session.begin().await?;
        let sql = "SELECT w.name FROM (
                SELECT 'jobs' AS name WHERE EXISTS (SELECT 1 FROM mainspring.job)
                UNION ALL SELECT 'items' WHERE EXISTS (SELECT 1 FROM mainspring.item)
                UNION ALL SELECT 'types' WHERE EXISTS (SELECT 1 FROM mainspring.type)
                UNION ALL SELECT 'queues' WHERE EXISTS (SELECT 1 FROM mainspring.queue)
                UNION ALL SELECT 'tokens' WHERE EXISTS (SELECT 1 FROM mainspring.token)
                UNION ALL SELECT 'keys' WHERE EXISTS (SELECT 1 FROM mainspring.held_key)
                UNION ALL SELECT 'numbers' WHERE EXISTS (SELECT 1 FROM mainspring.tally)
            ) w LIMIT 1";
        if let Some(row) = session.script(sql, Vec::new(), &[]).await?.first() {
            let schema = &config.schema;
            return Err(MigrateError::Refused(format!(
                "the schema {schema} has {} already; name an empty database or another schema, or \
                 DROP SCHEMA {schema} CASCADE if nobody needs it",
                row.get::<_, &str>(0)
            )));
        }
        let (registry, lanes) = (Registry::default(), Lanes::default());
        let now = (config.now)();
        Ok(PostgresImport { session, registry, lanes, now, tally: BTreeMap::new() })
    }

    /// Takes more in. Types and queues come before the jobs that they place.
    ///
    /// # Errors
    /// If the database refuses; nothing of the move then counts.
    pub async fn put(&mut self, records: Vec<Record>) -> Result<(), MigrateError> {
        let (mut jobs, mut items, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let (mut entities, mut meters) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Job(found) => jobs.push(*found),
                Record::Item(item) => items.push(*item),
                Record::Entity(entity) => entities.push(*entity),
                Record::Key { hash, holder } => keys.push((hash, holder)),
                Record::Type(spec) => self.set(RegistryChange::Type(spec)).await?,
                Record::Queue(spec) => self.set(RegistryChange::Queue(spec)).await?,
                Record::Token(token) => self.set(RegistryChange::Token(token)).await?,
                Record::Meter { key, meter } => meters.push((key, meter)),
                Record::Moves(moves) => self.put_moves(&moves).await?,
                Record::Counters(counters) => {
                    for (name, n) in TOTALS.iter().zip(counters) {
                        self.count(name, "", i64::try_from(n).unwrap_or(i64::MAX));
                    }
                }
            }
        }
        if !jobs.is_empty() {
            self.put_jobs(&jobs).await?;
        }
        if !items.is_empty() {
            self.put_items(&items).await?;
        }
        let entities: Vec<_> = entities.iter().collect();
        let calls = [insert(&entities), insert_terms(&entities), set_meters(&meters)];
        for Call { query, values } in calls.into_iter().flatten() {
            self.session.call(query, values).await?;
        }
        if !keys.is_empty() {
            self.put_keys(&keys).await?;
        }
        Ok(())
    }

    /// A stretch of the stream. It is as old as the move of the store.
    async fn put_moves(&self, moves: &[LoggedMove]) -> Result<(), MigrateError> {
        let (Some(first), Some(last)) = (moves.first(), moves.last()) else { return Ok(()) };
        let step = |it: &LoggedMove| {
            let step = it.transition.from.is_some().then(|| it.transition.clone());
            (it.job, step)
        };
        let steps: Vec<LoggedStep> = moves.iter().map(step).collect();
        let mut bytes = Vec::new();
        encode_steps(&steps, first.transition.at, &mut bytes);
        let values: Vec<Value> = vec![
            Box::new(vec![i64::try_from(last.position).unwrap_or(i64::MAX)]),
            Box::new(vec![i32::try_from(moves.len()).unwrap_or(i32::MAX)]),
            Box::new(At(self.now)),
            Box::new(vec![bytes]),
        ];
        self.session.call(Query::InsertStream, values).await?;
        Ok(())
    }

    /// Reads everything again and commits if it is what `sent` says.
    ///
    /// # Errors
    /// If it is not, or the database refuses; nothing of the move then counts.
    pub async fn finish(self, sent: &Seal) -> Result<(), MigrateError> {
        let (names, numbers): (Vec<String>, Vec<i64>) =
            self.tally.into_iter().filter(|(_, n)| *n != 0).unzip();
        let session = self.session;
        session.call(Query::AddTally, vec![Box::new(names), Box::new(numbers)]).await?;
        let sql = "UPDATE mainspring.registry SET version = version + 1";
        session.script(sql, Vec::new(), &[]).await?;
        let (mut found, mut cursor) = (Seal::default(), Cursor::default());
        while let Some(records) = cursor.next(&session).await? {
            records.iter().for_each(|record| found.add(record));
        }
        let differences = sent.differences(&found);
        if !differences.is_empty() {
            let text = format!("the copy is not the same: {}", differences.join("; "));
            return Err(MigrateError::Failed(text));
        }
        session.client.batch_execute("COMMIT").await.map_err(failed)?;
        // Plans of the first minutes should not be those of empty tables; not worth an error.
        let schema = session.queries.schema();
        let tables = [
            "job",
            "ready",
            "waiting",
            "live",
            "finished",
            "held_key",
            "item",
            "effect",
            "checkpoint",
            "term",
            "item_term",
            "entity",
            "entity_term",
        ];
        let tables: Vec<String> = tables.iter().map(|it| format!("{schema}.{it}")).collect();
        let _ = session.client.batch_execute(&format!("ANALYZE {}", tables.join(", "))).await;
        Ok(())
    }

    fn count(&mut self, kind: &str, name: &str, n: i64) {
        *self.tally.entry(format!("{kind}{name}")).or_default() += n;
    }

    async fn set(&mut self, change: RegistryChange) -> Result<(), Fault> {
        self.registry.apply(&change);
        let call = match &change {
            RegistryChange::Type(spec) => write_type(spec),
            RegistryChange::Queue(spec) => write_queue(spec),
            RegistryChange::Token(token) => write_token(token),
            // A token comes with all that happened to it.
            RegistryChange::Revoked { .. } => return Ok(()),
        };
        self.session.call(call.query, call.values).await.map(|_| ())
    }

    /// Gives the lanes of these jobs their numbers.
    async fn number_lanes(&mut self, lanes: Vec<LaneKey>) -> Result<Vec<i32>, Fault> {
        let new: HashSet<&LaneKey> =
            lanes.iter().filter(|lane| self.lanes.number(lane).is_none()).collect();
        if !new.is_empty() {
            let column = |of: fn(&LaneKey) -> &str| -> Vec<String> {
                new.iter().map(|lane| of(lane).to_owned()).collect()
            };
            let values: Vec<Value> = vec![
                Box::new(column(|lane| lane.tenant.as_str())),
                Box::new(column(|lane| lane.queue.as_str())),
                Box::new(column(|lane| lane.job_type.as_str())),
                Box::new(new.iter().map(|lane| lane.part()).collect::<Vec<_>>()),
            ];
            self.session.call(Query::AddLanes, values).await?;
            let rows = self.session.call(Query::LoadLanes, vec![Box::new(0_i32)]).await?;
            self.lanes.learn(&rows)?;
        }
        let number = |lane| {
            let found = self.lanes.number(lane);
            found.ok_or_else(|| Fault::Broken(format!("{lane:?} has no number")))
        };
        lanes.iter().map(number).collect()
    }

    async fn put_jobs(&mut self, jobs: &[JobWithHistory]) -> Result<(), Fault> {
        let homes = jobs.iter().map(|it| self.registry.home(&it.job)).collect();
        let homes = self.number_lanes(homes).await?;
        let lanes = jobs.iter().map(|it| self.registry.lane(&it.job)).collect();
        let lanes = self.number_lanes(lanes).await?;
        self.put_submissions(jobs, &homes).await?;
        self.put_codes(jobs).await?;
        self.put_waits(jobs, &lanes).await?;
        self.put_effects(jobs).await?;
        let progress = |it: &JobWithHistory| {
            let mut record = Vec::with_capacity(160);
            encode_progress(&it.job, &it.history, &mut record);
            record
        };
        let state = |it: &JobWithHistory| it.job.state.name();
        for it in jobs.iter().filter(|it| !state(it).is_terminal()) {
            self.count("jobs/", it.job.tenant.as_str(), 1);
            let bytes = i64::try_from(held_bytes(&it.job)).unwrap_or(i64::MAX);
            self.count("bytes/", it.job.tenant.as_str(), bytes);
            if COUNTED_BY_TYPE.contains(&state(it)) {
                self.count("type/", &format!("{}/{}", state(it), it.job.job_type), 1);
            }
        }
        let ended: Vec<&JobWithHistory> =
            jobs.iter().filter(|it| state(it).is_terminal()).collect();
        if !ended.is_empty() {
            let at = |it: &&JobWithHistory| At(it.job.finished_at().unwrap_or(it.job.updated_at));
            let values: Vec<Value> = vec![
                Box::new(ended.iter().map(|it| uuid(it.job.id)).collect::<Vec<_>>()),
                Box::new(ended.iter().map(|it| state_number(state(it))).collect::<Vec<_>>()),
                Box::new(ended.iter().map(at).collect::<Vec<_>>()),
                Box::new(ended.iter().map(|it| progress(it)).collect::<Vec<_>>()),
            ];
            self.session.call(Query::InsertFinished, values).await?;
        }
        let live: Vec<(&JobWithHistory, i32)> = jobs
            .iter()
            .zip(homes)
            .filter(|(it, _)| !state(it).is_terminal() && state(it) != StateName::Queued)
            .collect();
        if live.is_empty() {
            return Ok(());
        }
        for (it, _) in &live {
            self.count("state/", state(it).as_str(), 1);
            if it.job.lease().is_some() {
                self.count("running/", it.job.queue.as_str(), 1);
            }
        }
        let limit = |it: &JobWithHistory| self.registry.counted_under(&it.job);
        let worker =
            |it: &JobWithHistory| it.job.lease().map(|lease| lease.worker.as_str().to_owned());
        let values: Vec<Value> = vec![
            Box::new(live.iter().map(|(it, _)| uuid(it.job.id)).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(it, _)| state_number(state(it))).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(_, lane)| *lane).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(it, _)| it.job.alarm_at().map(At)).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(it, _)| limit(it).map(hash_uuid)).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(it, _)| worker(it)).collect::<Vec<_>>()),
            Box::new(live.iter().map(|(it, _)| progress(it)).collect::<Vec<_>>()),
        ];
        self.session.call(Query::InsertLive, values).await.map(|_| ())
    }

    async fn put_effects(&self, jobs: &[JobWithHistory]) -> Result<(), Fault> {
        let mut effects = Effects::default();
        for JobWithHistory { job, .. } in jobs {
            effects.push_last(job, job.effect_totals().count as usize);
        }
        if let Some(Call { query, values }) = effects.insert() {
            self.session.call(query, values).await?;
        }
        let kept = jobs.iter().filter_map(|it| {
            let value = it.job.course()?.checkpoint.as_ref()?;
            Some((uuid(it.job.id), value.to_string()))
        });
        let (ids, values): (Vec<Uuid>, Vec<String>) = kept.unzip();
        if !ids.is_empty() {
            let values: Vec<Value> = vec![Box::new(ids), Box::new(values)];
            self.session.call(Query::PutCheckpoints, values).await?;
        }
        Ok(())
    }

    /// The codes of failed attempts, by which lists find jobs.
    async fn put_codes(&self, jobs: &[JobWithHistory]) -> Result<(), Fault> {
        let coded = jobs.iter().filter_map(|it| Some((terms::code(&it.job)?, uuid(it.job.id))));
        let (numbers, ids): (Vec<i64>, Vec<Uuid>) = coded.unzip();
        let values: Vec<Value> = vec![Box::new(numbers), Box::new(ids)];
        self.session.call(Query::InsertTerms, values).await.map(|_| ())
    }

    async fn put_submissions(&self, whole: &[JobWithHistory], lanes: &[i32]) -> Result<(), Fault> {
        let jobs = || whole.iter().map(|it| &it.job);
        let small = |n: u16| i16::try_from(n).unwrap_or(i16::MAX);
        let values: Vec<Value> = vec![
            Box::new(jobs().map(|it| uuid(it.id)).collect::<Vec<_>>()),
            Box::new(lanes.to_vec()),
            Box::new(jobs().map(|it| i16::from(it.priority)).collect::<Vec<_>>()),
            Box::new(jobs().map(|it| small(it.max_retries)).collect::<Vec<_>>()),
            Box::new(
                jobs()
                    .map(|it| i32::try_from(it.timeout_ms).unwrap_or(i32::MAX))
                    .collect::<Vec<_>>(),
            ),
            Box::new(jobs().map(|it| At(it.created_at)).collect::<Vec<_>>()),
            Box::new(jobs().map(|it| At(it.run_at)).collect::<Vec<_>>()),
            Box::new(jobs().map(|it| it.user.as_str().to_owned()).collect::<Vec<_>>()),
            Box::new(jobs().map(|it| it.payload.to_string()).collect::<Vec<_>>()),
            Box::new(jobs().map(|it| it.trace.as_deref().map(str::to_owned)).collect::<Vec<_>>()),
            Box::new(whole.iter().map(|it| more(&it.job, &it.history)).collect::<Vec<_>>()),
        ];
        let types = [
            Type::UUID_ARRAY,
            Type::INT4_ARRAY,
            Type::INT2_ARRAY,
            Type::INT2_ARRAY,
            Type::INT4_ARRAY,
            Type::TIMESTAMPTZ_ARRAY,
            Type::TIMESTAMPTZ_ARRAY,
            Type::TEXT_ARRAY,
            Type::TEXT_ARRAY,
            Type::TEXT_ARRAY,
            Type::TEXT_ARRAY,
        ];
        let sql = include_str!("../../scripts/import_jobs.sql");
        self.session.script(sql, values, &types).await.map(|_| ())
    }

    /// Jobs that wait for a worker or for their time, and when those that were never tried expire.
    async fn put_waits(&mut self, jobs: &[JobWithHistory], lanes: &[i32]) -> Result<(), Fault> {
        let waits: Vec<_> = jobs
            .iter()
            .zip(lanes)
            .filter_map(|(it, lane)| Some((&it.job, *lane, it.job.due_at()?)))
            .collect();
        let mut expiring: (Vec<At>, Vec<Uuid>) = Default::default();
        for (job, _, due_at) in &waits {
            let kind = if *due_at <= self.now { "ready/" } else { "pending/" };
            self.count(kind, job.queue.as_str(), 1);
            if job.state.name() == StateName::Queued {
                self.count("state/", StateName::Queued.as_str(), 1);
                if let Some(at) = job.alarm_at() {
                    expiring.0.push(At(at));
                    expiring.1.push(uuid(job.id));
                }
            }
        }
        let (ready, waiting): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|(.., due_at)| *due_at <= self.now);
        for (is_ready, waits) in [(true, ready), (false, waiting)] {
            let lanes: Value = Box::new(waits.iter().map(|(_, lane, _)| *lane).collect::<Vec<_>>());
            let key = |(job, _, due_at): &(&mainspring_kernel::Job, i32, Timestamp)| {
                self.registry.key(job, *due_at)
            };
            let keys: Value = Box::new(waits.iter().map(key).collect::<Vec<_>>());
            let ids: Value =
                Box::new(waits.iter().map(|(job, ..)| uuid(job.id)).collect::<Vec<_>>());
            let due: Value = Box::new(waits.iter().map(|(.., at)| At(*at)).collect::<Vec<_>>());
            let is_retry = |job: &mainspring_kernel::Job| job.state.name() != StateName::Queued;
            let retries: Value =
                Box::new(waits.iter().map(|(job, ..)| is_retry(job)).collect::<Vec<_>>());
            let (query, values) = match is_ready {
                true => (Query::InsertReady, vec![lanes, keys, ids, due, retries]),
                false => (Query::InsertWaiting, vec![ids, due, lanes, keys, retries]),
            };
            if !waits.is_empty() {
                self.session.call(query, values).await?;
            }
        }
        if expiring.0.is_empty() {
            return Ok(());
        }
        let values: Vec<Value> = vec![Box::new(expiring.0), Box::new(expiring.1)];
        self.session.call(Query::InsertExpiry, values).await.map(|_| ())
    }

    async fn put_items(&self, items: &[DlqItem]) -> Result<(), Fault> {
        let text = |of: fn(&DlqItem) -> &str| -> Vec<String> {
            items.iter().map(|item| of(item).to_owned()).collect()
        };
        let version = |item: &DlqItem| i32::try_from(item.version).unwrap_or(i32::MAX);
        let record = |item: &DlqItem| {
            let mut record = Vec::new();
            encode_item(item, &mut record);
            record
        };
        let values: Vec<Value> = vec![
            Box::new(items.iter().map(|item| item_uuid(item.id)).collect::<Vec<_>>()),
            Box::new(items.iter().map(version).collect::<Vec<_>>()),
            Box::new(text(|item| item.state.as_str())),
            Box::new(text(|item| item.job.tenant.as_str())),
            Box::new(text(|item| item.job.user.as_str())),
            Box::new(text(|item| item.job.job_type.as_str())),
            Box::new(items.iter().map(|item| At(item.created_at)).collect::<Vec<_>>()),
            Box::new(items.iter().map(record).collect::<Vec<_>>()),
        ];
        self.session.call(Query::InsertItems, values).await?;
        if let Some(call) = item_terms(items.iter()) {
            self.session.call(call.query, call.values).await?;
        }
        Ok(())
    }

    async fn put_keys(&self, keys: &[(Digest, KeyHolder)]) -> Result<(), Fault> {
        for keys in keys.chunks(1_000) {
            let holders = || keys.iter().map(|(_, holder)| holder);
            let values: Vec<Value> = vec![
                Box::new(keys.iter().map(|(hash, _)| hash_uuid(*hash)).collect::<Vec<_>>()),
                Box::new(holders().map(|it| uuid(it.job)).collect::<Vec<_>>()),
                Box::new(holders().map(|it| it.fingerprint.map(hash_uuid)).collect::<Vec<_>>()),
                Box::new(vec![None::<Uuid>; keys.len()]),
                Box::new(holders().map(|it| it.free_at.map(At)).collect::<Vec<_>>()),
            ];
            self.session.call(Query::InsertKeys, values).await?;
        }
        Ok(())
    }
}
