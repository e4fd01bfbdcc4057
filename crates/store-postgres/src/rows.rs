//! Rows as jobs, effects and dead-letter items; and the parts of a job's row that are not plain
//! columns.

use crate::fault::Fault;
use crate::lanes::Lanes;
use crate::values::{At, digest, hash_uuid, job_id};
use mainspring_kernel::entity::{EntityId, Kind};
use mainspring_kernel::event::{Change, DEPENDENCIES_MET, KeyHolder};
use mainspring_kernel::flow::LimitKeys;
use mainspring_kernel::job::{
    Actor, After, AfterCondition, Bounds, Effect, EffectTotals, Extras, Idempotency, Payload,
};
use mainspring_kernel::{
    DlqId, DlqItem, Job, JobEvent, JobId, State, StateName, Timestamp, Transition, UserId, evolve,
};
use mainspring_store::record::{Names, Record, apply_progress, records_of};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

/// What stands in the column `more`: the rare fields of a submission.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct More {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Key>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_dlq: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<(Box<str>, Box<str>)>,
    /// Microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// The name that the caller chose.
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<Key>,
    /// The schedule of the plan that the job stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<Box<str>>,
    /// Who made the job ready by hand before anybody had started it, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    hastened: Option<(Box<str>, i64)>,
    /// Microseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_timeout_ms: Option<u32>,
    /// What the job waits for, or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Followed>,
    /// When the jobs that it waited for were done. It was made ready by hand after that, if at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    unblocked: Option<i64>,
    /// The keys that limits count it by: of concurrency and of rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Keys>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Followed {
    jobs: Vec<Uuid>,
    members: u32,
    condition: u8,
}

/// Of concurrency and of rate.
type Keys = (Option<Box<str>>, Option<Box<str>>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    hash: Uuid,
    scope: Box<str>,
    key: Box<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_secs: Option<u32>,
}

impl Key {
    fn of(key: &Idempotency) -> Self {
        Key {
            hash: hash_uuid(key.hash),
            scope: key.scope.clone(),
            key: key.key.clone(),
            fingerprint: key.fingerprint.map(hash_uuid),
            window_secs: key.window_secs,
        }
    }

    fn into_key(self) -> Box<Idempotency> {
        Box::new(Idempotency {
            hash: digest(self.hash),
            scope: self.scope,
            key: self.key,
            fingerprint: self.fingerprint.map(digest),
            window_secs: self.window_secs,
        })
    }
}

/// How a job that nobody has started was made ready, if it was: lines of its history that are kept
/// with the submission, because there is no row of `live` yet. The last of them.
pub(crate) fn hastening(history: &[Transition]) -> Option<&Transition> {
    let before_start = history.iter().skip(1).take_while(|step| step.to == StateName::Queued);
    before_start.last()
}

/// The lines among them that say that it waits for no other job any more, and that somebody made it
/// ready by hand.
fn made_ready(history: &[Transition]) -> (Option<&Transition>, Option<&Transition>) {
    let before_start = || history.iter().skip(1).take_while(|step| step.to == StateName::Queued);
    let is_unblocked = |step: &&Transition| {
        step.reason.as_ref().is_some_and(|reason| reason.code == DEPENDENCIES_MET)
    };
    (before_start().find(is_unblocked), before_start().find(|step| !is_unblocked(step)))
}

/// The rare fields of a submission as text; most jobs have none.
pub(crate) fn more(job: &Job, history: &[Transition]) -> Option<String> {
    let (unblocked, hastened) = made_ready(history);
    if job.idempotency.is_none() && job.extras.is_none() && hastened.is_none() {
        return None;
    }
    let mut more = More {
        key: job.idempotency.as_deref().map(Key::of),
        alias: job.alias().map(Key::of),
        plan: job.plan().map(|plan| Uuid::from_u128(plan.bits)),
        traceparent: job.traceparent().map(Into::into),
        hastened: hastened.map(|step| (actor_text(&step.actor), step.at.0)),
        unblocked: unblocked.map(|step| step.at.0),
        limits: job.limit_keys().map(|keys| (keys.concurrency.clone(), keys.rate.clone())),
        ..More::default()
    };
    if let Some(extras) = &job.extras {
        // Progress comes later and is kept with the attempts; effects are rows of their own.
        let Extras { parent, source_dlq, subject, labels, expires_at, .. } = &**extras;
        more.parent = parent.map(|id| Uuid::from_u128(id.0));
        more.source_dlq = source_dlq.map(|id| Uuid::from_u128(id.0));
        more.subject = subject.clone();
        more.labels = labels.clone();
        more.expires_at = expires_at.map(|at| at.0);
    }
    if let Some(Bounds { deadline_at, queue_timeout_ms, after }) = job.bounds() {
        more.deadline_at = deadline_at.map(|at| at.0);
        more.queue_timeout_ms = *queue_timeout_ms;
        more.after = after.as_ref().map(|After { jobs, members, condition }| Followed {
            jobs: jobs.iter().map(|job| Uuid::from_u128(job.0)).collect(),
            members: *members,
            condition: condition.number(),
        });
    }
    if more == More::default() {
        return None;
    }
    serde_json::to_string(&more).ok()
}

/// A job with its history, and the version of its row in `live` if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) job: Box<Job>,
    pub(crate) history: Vec<Transition>,
    pub(crate) version: Option<i32>,
    /// The number of the lane it was submitted in, if it is in the database.
    pub(crate) lane: Option<i32>,
}

/// The lane of the row whose columns start at `at`.
pub(crate) fn lane_of(row: &Row, at: usize) -> Result<i32, Fault> {
    Ok(row.try_get(at + 1)?)
}

/// Reads the columns of a job from `at` on: the submission, then the version and record of `live`,
/// then, if `with_end`, the record of `finished`.
pub(crate) fn read_job(
    row: &Row,
    at: usize,
    with_end: bool,
    lanes: &Lanes,
) -> Result<Stored, Fault> {
    let number = lane_of(row, at)?;
    let lane = lanes.key(number).ok_or_else(|| Fault::Broken(format!("no lane {number}")))?;
    let created_at = row.try_get::<_, At>(at + 5)?.0;
    let more = match row.try_get::<_, Option<&str>>(at + 10)? {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Fault::Broken(format!("a job's rare fields: {error}")))?,
        None => More::default(),
    };
    let (idempotency, extras, hastened, unblocked) = split(more);
    let mut job = Box::new(Job {
        id: job_id(row.try_get(at)?),
        tenant: lane.tenant.clone(),
        user: UserId::stored(row.try_get::<_, &str>(at + 7)?.into()),
        job_type: lane.job_type.clone(),
        queue: lane.queue.clone(),
        payload: row.try_get::<_, &str>(at + 8)?.into(),
        priority: narrow(row.try_get::<_, i16>(at + 2)?)?,
        max_retries: narrow(row.try_get::<_, i16>(at + 3)?)?,
        retry_count: 0,
        timeout_ms: narrow(row.try_get::<_, i32>(at + 4)?)?,
        seq: 1,
        fence: 0,
        created_at,
        updated_at: created_at,
        run_at: row.try_get::<_, At>(at + 6)?.0,
        started_at: None,
        trace: row.try_get::<_, Option<&str>>(at + 9)?.map(Into::into),
        idempotency,
        last_failure: None,
        last_report: None,
        extras,
        state: State::Queued,
    });
    let version: Option<i32> = row.try_get(at + 11)?;
    let live: Option<&[u8]> = row.try_get(at + 12)?;
    let end: Option<&[u8]> = if with_end { row.try_get(at + 13)? } else { None };
    let history = match end.or(live) {
        Some(record) => apply_progress(&mut job, record)?,
        None => {
            let mut history = vec![Transition::submitted(&job)];
            let run_at = job.run_at;
            let unblocked = unblocked.map(|at| (Actor::Reaper, at, Change::Unblocked { run_at }));
            let hastened = hastened
                .map(|(by, at)| (Actor::User(UserId::stored((*by).into())), at, Change::Hastened));
            for (actor, at, change) in unblocked.into_iter().chain(hastened) {
                let event = JobEvent { job: job.id, seq: job.seq + 1, at, actor, change };
                let step = evolve(&mut job, &event);
                history.push(step.map_err(|bad| Fault::Broken(bad.text))?);
            }
            history
        }
    };
    let version = if end.is_some() { None } else { version };
    Ok(Stored { job, history, version, lane: Some(number) })
}

type Parts = (
    Option<Box<Idempotency>>,
    Option<Box<Extras>>,
    Option<(Box<str>, Timestamp)>,
    Option<Timestamp>,
);

fn split(more: More) -> Parts {
    let after = more.after.map(|Followed { jobs, members, condition }| After {
        jobs: jobs.into_iter().map(|id| JobId(id.as_u128())).collect(),
        members,
        condition: AfterCondition::of_number(condition).unwrap_or(AfterCondition::Success),
    });
    let bounds = Bounds {
        deadline_at: more.deadline_at.map(Timestamp),
        queue_timeout_ms: more.queue_timeout_ms,
        after,
    };
    let extras = Extras {
        parent: more.parent.map(|id| JobId(id.as_u128())),
        source_dlq: more.source_dlq.map(|id| DlqId(id.as_u128())),
        subject: more.subject,
        labels: more.labels,
        expires_at: more.expires_at.map(Timestamp),
        effects: Vec::new(),
        effects_elsewhere: EffectTotals::default(),
        progress_pct: None,
        alias: more.alias.map(Key::into_key),
        plan: more.plan.map(|id| EntityId { kind: Kind::Schedule, bits: id.as_u128() }),
        traceparent: more.traceparent,
        bounds: (bounds != Bounds::default()).then(|| Box::new(bounds)),
        course: None,
        limit_keys: more
            .limits
            .map(|(concurrency, rate)| Box::new(LimitKeys { concurrency, rate })),
    };
    let extras = (extras != Extras::default()).then(|| Box::new(extras));
    let hastened = more.hastened.map(|(by, at)| (by, Timestamp(at)));
    (more.key.map(Key::into_key), extras, hastened, more.unblocked.map(Timestamp))
}

/// Who made a job ready: only people do.
fn actor_text(actor: &Actor) -> Box<str> {
    match actor {
        Actor::User(user) => user.as_str().into(),
        Actor::Worker(_) | Actor::Reaper => actor.to_string().into(),
    }
}

fn narrow<T, U: TryFrom<T>>(number: T) -> Result<U, Fault> {
    U::try_from(number).map_err(|_| Fault::Broken("a number is out of range".into()))
}

/// The number of a state in the tables.
pub(crate) fn state_number(state: StateName) -> i16 {
    StateName::ALL.iter().position(|other| *other == state).unwrap_or(0) as i16
}

/// An effect with the job it belongs to.
pub(crate) fn read_effect(row: &Row) -> Result<(JobId, Effect), Fault> {
    let effect = Effect {
        name: row.try_get::<_, &str>(1)?.into(),
        value: row.try_get::<_, &str>(2)?.into(),
        committed_at: row.try_get::<_, At>(3)?.0,
    };
    Ok((job_id(row.try_get(0)?), effect))
}

/// What a worker left for the next try, behind its job.
pub(crate) fn read_checkpoint(row: &Row) -> Result<(JobId, Payload), Fault> {
    Ok((job_id(row.try_get(0)?), row.try_get::<_, &str>(1)?.into()))
}

/// The holder of a key, behind the key.
pub(crate) fn read_holder(row: &Row) -> Result<KeyHolder, Fault> {
    Ok(KeyHolder {
        job: job_id(row.try_get(1)?),
        fingerprint: row.try_get::<_, Option<Uuid>>(2)?.map(digest),
        free_at: row.try_get::<_, Option<At>>(3)?.map(|at| at.0),
    })
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
