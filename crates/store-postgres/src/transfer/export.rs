//! Reading everything.

use super::Session;
use crate::commit::meters::read_meter;
use crate::config::PostgresConfig;
use crate::connections::Value;
use crate::entities;
use crate::fault::Fault;
use crate::lanes::Lanes;
use crate::migrate::{self, MIGRATIONS, MigrateError};
use crate::queries::{Queries, Query};
use crate::registry::read_registry;
use crate::rows::{Stored, read_checkpoint, read_effect, read_item, read_job};
use crate::values::{At, digest, job_id, uuid};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::job::{Effect, EffectTotals, Payload};
use mainspring_kernel::{Job, JobId, Transition};
use mainspring_store::record::{Record, decode_steps};
use mainspring_store::{JobWithHistory, LoggedMove};
use std::collections::HashMap;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Rows read at once: a job may be a megabyte, and four more of effects.
const PAGE: i64 = 250;

/// Stretches of the stream read at once: each is what one commit moved.
const STRETCHES: i32 = 20;

/// What is not stamped yet, with the position that its first move will have: in the order of the
/// stamps to come.
const UNSTAMPED: &str = "SELECT
        coalesce((SELECT n FROM mainspring.tally WHERE name = 'stream/newest'), 0)
            + (sum(moves) OVER (ORDER BY id))::bigint - moves + 1, steps
    FROM mainspring.outbox WHERE moves > 0 AND steps IS NOT NULL ORDER BY id";

/// Reads a database that no server uses.
pub struct PostgresExport {
    session: Session,
    cursor: Cursor,
}

/// How far a reading has come.
#[derive(Default)]
pub(super) struct Cursor {
    stage: Stage,
    lanes: Lanes,
}

#[derive(Clone, Copy, Default)]
enum Stage {
    #[default]
    Registries,
    Jobs(Uuid),
    Items(Uuid),
    Entities(i16, Uuid),
    Keys(Uuid),
    Meters(Uuid),
    Moves(i64),
    Unstamped,
    Totals,
    Over,
}

impl PostgresExport {
    /// Opens a database.
    ///
    /// # Errors
    /// If it cannot be reached, has no tables or others than this version's, or a server uses it.
    pub async fn open(config: &PostgresConfig) -> Result<Self, MigrateError> {
        let client = migrate::connect(config).await?;
        let status = migrate::read_status(&client, &config.schema, MIGRATIONS).await?;
        migrate::refuse_problems(&status)?;
        if status.version.is_none() {
            let text = format!("the database has no schema {}", config.schema);
            return Err(MigrateError::Refused(text));
        }
        if !status.pending.is_empty() {
            let text = "the database is of an older version; run mainspring migrate up";
            return Err(MigrateError::Refused(text.to_owned()));
        }
        let session = Session { client, queries: Queries::new(&config.schema) };
        session.begin().await?;
        Ok(PostgresExport { session, cursor: Cursor::default() })
    }

    /// The next records; none at the end.
    ///
    /// # Errors
    /// If the database goes away, or holds something that cannot be read.
    pub async fn next(&mut self) -> Result<Option<Vec<Record>>, MigrateError> {
        Ok(self.cursor.next(&self.session).await?)
    }
}

impl Cursor {
    pub(super) async fn next(&mut self, session: &Session) -> Result<Option<Vec<Record>>, Fault> {
        let nil = Uuid::nil();
        let found = match self.stage {
            Stage::Registries => {
                let rows = session.call(Query::LoadLanes, vec![Box::new(0_i32)]).await?;
                self.lanes.learn(&rows)?;
                self.stage = Stage::Jobs(nil);
                registries(session).await?
            }
            Stage::Jobs(after) => {
                let sql = "SELECT id FROM mainspring.job WHERE id > $1 ORDER BY id LIMIT $2";
                let ids = page(session, sql, after).await?;
                let ids: Result<Vec<Uuid>, _> = ids.iter().map(|row| row.try_get(0)).collect();
                let ids = ids?;
                self.stage = ids.last().map_or(Stage::Items(nil), |last| Stage::Jobs(*last));
                self.jobs(session, ids).await?
            }
            Stage::Items(after) => {
                let sql =
                    "SELECT id, record FROM mainspring.item WHERE id > $1 ORDER BY id LIMIT $2";
                let rows = page(session, sql, after).await?;
                self.stage = match rows.last() {
                    Some(last) => Stage::Items(last.try_get(0)?),
                    None => Stage::Entities(0, nil),
                };
                let items =
                    rows.iter().map(|row| Ok(Record::Item(Box::new(read_item(row.try_get(1)?)?))));
                items.collect::<Result<_, Fault>>()?
            }
            Stage::Entities(kind, after) => {
                let sql = "SELECT record, kind, id FROM mainspring.entity
                    WHERE (kind, id) > ($1, $2) ORDER BY kind, id LIMIT $3";
                let values: Vec<Value> = vec![Box::new(kind), Box::new(after), Box::new(PAGE)];
                let types = [Type::INT2, Type::UUID, Type::INT8];
                let rows = session.script(sql, values, &types).await?;
                self.stage = match rows.last() {
                    Some(last) => Stage::Entities(last.try_get(1)?, last.try_get(2)?),
                    None => Stage::Keys(nil),
                };
                let found =
                    rows.iter().map(|row| Ok(Record::Entity(Box::new(entities::read(row)?))));
                found.collect::<Result<_, Fault>>()?
            }
            Stage::Keys(after) => {
                let sql = "SELECT hash, job, fingerprint, free_at FROM mainspring.held_key
                    WHERE hash > $1 ORDER BY hash LIMIT $2";
                let rows = page(session, sql, after).await?;
                self.stage = match rows.last() {
                    Some(last) => Stage::Keys(last.try_get(0)?),
                    None => Stage::Meters(nil),
                };
                rows.iter().map(key).collect::<Result<_, Fault>>()?
            }
            Stage::Meters(after) => self.meters(session, after).await?,
            Stage::Moves(after) => {
                let values: Vec<Value> = vec![Box::new(after), Box::new(STRETCHES)];
                let rows = session.call(Query::ReadStream, values).await?;
                let mut stretches = Vec::new();
                for row in &rows {
                    let (last, moves): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
                    stretches.push((last - i64::from(moves) + 1, row.try_get(2)?));
                }
                self.stage = match rows.last() {
                    Some(last) => Stage::Moves(last.try_get(0)?),
                    None => Stage::Unstamped,
                };
                self.moves(session, stretches).await?
            }
            Stage::Unstamped => {
                self.stage = Stage::Totals;
                let rows = session.script(UNSTAMPED, Vec::new(), &[]).await?;
                let mut stretches = Vec::new();
                for row in &rows {
                    stretches.push((row.try_get(0)?, row.try_get(1)?));
                }
                self.moves(session, stretches).await?
            }
            Stage::Totals => {
                self.stage = Stage::Over;
                vec![Record::Counters(totals(session).await?)]
            }
            Stage::Over => return Ok(None),
        };
        Ok(Some(found))
    }

    /// Buckets and circuits.
    async fn meters(&mut self, session: &Session, after: Uuid) -> Result<Vec<Record>, Fault> {
        let sql = "SELECT key, record FROM mainspring.meter WHERE key > $1 ORDER BY key LIMIT $2";
        let rows = page(session, sql, after).await?;
        self.stage = match rows.last() {
            Some(last) => Stage::Meters(last.try_get(0)?),
            None => Stage::Moves(0),
        };
        let meter = |row: &Row| -> Result<Record, Fault> {
            let (key, meter) = (digest(row.try_get(0)?), read_meter(row.try_get(1)?)?);
            Ok(Record::Meter { key, meter })
        };
        rows.iter().map(meter).collect()
    }

    /// Stretches of the stream, each with the position of its first move.
    async fn moves(
        &self,
        session: &Session,
        stretches: Vec<(i64, &[u8])>,
    ) -> Result<Vec<Record>, Fault> {
        let mut steps = Vec::new();
        for (first, bytes) in stretches {
            steps.extend((first..).zip(decode_steps(bytes)?));
        }
        let mut ids: Vec<Uuid> = steps.iter().map(|(_, (job, _))| uuid(*job)).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut jobs: HashMap<JobId, Job> = HashMap::new();
        for row in session.call(Query::LoadJobs, vec![Box::new(ids)]).await? {
            let stored = read_job(&row, 0, true, &self.lanes)?;
            jobs.insert(stored.job.id, *stored.job);
        }
        // A stretch has no holes: what is told of jobs that are not kept ends one.
        let mut records: Vec<Vec<LoggedMove>> = vec![Vec::new()];
        for (at, (id, step)) in steps {
            let Some(job) = jobs.get(&id) else {
                records.push(Vec::new());
                continue;
            };
            let step = step.unwrap_or_else(|| Transition::submitted(job));
            let logged = LoggedMove::of(u64::try_from(at).unwrap_or(0), job, step);
            records.last_mut().expect("never empty").push(logged);
        }
        Ok(records.into_iter().filter(|it| !it.is_empty()).map(Record::Moves).collect())
    }

    async fn jobs(&self, session: &Session, ids: Vec<Uuid>) -> Result<Vec<Record>, Fault> {
        let rows = session.call(Query::LoadJobs, vec![Box::new(ids.clone())]).await?;
        let mut effects: HashMap<JobId, Vec<Effect>> = HashMap::new();
        for row in session.call(Query::ReadEffects, vec![Box::new(ids.clone())]).await? {
            let (job, effect) = read_effect(&row)?;
            effects.entry(job).or_default().push(effect);
        }
        let mut checkpoints: HashMap<JobId, Payload> = HashMap::new();
        for row in session.call(Query::ReadCheckpoints, vec![Box::new(ids)]).await? {
            checkpoints.extend([read_checkpoint(&row)?]);
        }
        let jobs = rows.iter().map(|row| {
            let Stored { mut job, history, .. } = read_job(row, 0, true, &self.lanes)?;
            if let Some(mut found) = effects.remove(&job.id) {
                let extras = job.extras_mut();
                extras.effects.append(&mut found);
                extras.effects_elsewhere = EffectTotals::default();
            }
            if job.extras.as_ref().is_some_and(|it| it.effects_elsewhere.count > 0) {
                return Err(Fault::Broken(format!("{} has lost effects", job.id)));
            }
            if job.has_checkpoint() {
                let lost = || Fault::Broken(format!("{} has lost its checkpoint", job.id));
                let value = checkpoints.remove(&job.id).ok_or_else(lost)?;
                let course = job.course_mut();
                course.checkpoint = Some(value);
                course.is_checkpoint_elsewhere = false;
            }
            Ok(Record::Job(Box::new(JobWithHistory { job: *job, history })))
        });
        jobs.collect()
    }
}

async fn page(
    session: &Session,
    sql: &str,
    after: Uuid,
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    session.script(sql, vec![Box::new(after), Box::new(PAGE)], &[Type::UUID, Type::INT8]).await
}

async fn registries(session: &Session) -> Result<Vec<Record>, Fault> {
    let types = session.call(Query::LoadTypes, Vec::new()).await?;
    let queues = session.call(Query::LoadQueues, Vec::new()).await?;
    let tokens = session.call(Query::LoadTokens, Vec::new()).await?;
    let registry = read_registry(0, &types, &queues, &tokens)?;
    let types = registry.types.into_values().map(|spec| Record::Type(Box::new(spec)));
    let tokens = registry.tokens.into_values().map(|token| Record::Token(Box::new(token)));
    Ok(types.chain(registry.queues.into_values().map(Record::Queue)).chain(tokens).collect())
}

fn key(row: &tokio_postgres::Row) -> Result<Record, Fault> {
    let holder = KeyHolder {
        job: job_id(row.try_get(1)?),
        fingerprint: row.try_get::<_, Option<Uuid>>(2)?.map(digest),
        free_at: row.try_get::<_, Option<At>>(3)?.map(|at| at.0),
    };
    Ok(Record::Key { hash: digest(row.try_get(0)?), holder })
}

/// The names of the totals in the order in which they travel; the last is the newest position.
pub(super) const TOTALS: [&str; 8] = [
    "total/submitted",
    "total/claims",
    "total/retries",
    "total/jobs_retried",
    "state/succeeded",
    "state/failed",
    "state/cancelled",
    "stream/newest",
];

/// The totals, with what is not stamped yet.
async fn totals(session: &Session) -> Result<Vec<u64>, Fault> {
    let sql = "SELECT coalesce(sum(n), 0)::bigint FROM (
            SELECT name, n FROM mainspring.tally
            UNION ALL SELECT d.name, d.n
            FROM mainspring.outbox o, unnest(o.names, o.deltas) d (name, n)
            UNION ALL SELECT 'stream/newest', moves FROM mainspring.outbox
        ) w WHERE name = $1";
    let mut totals = Vec::new();
    for name in TOTALS {
        let rows = session.script(sql, vec![Box::new(name)], &[Type::TEXT]).await?;
        let n: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        totals.push(u64::try_from(n).unwrap_or(0));
    }
    Ok(totals)
}
