//! One job for each time an entity fires. The job carries a key made of the entity and the instant,
//! so that a second job for the same firing is refused by the rule that every store enforces.

use crate::calendar;
use crate::command::Submit;
use crate::decide::{self, Receipt};
use crate::entity::schedule::TaskPlan;
use crate::entity::{EntityId, Kind};
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::{Digest, digest};
use crate::id::JobId;
use crate::job::{Idempotency, Job};
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// Seconds the key of a firing stays taken after its job has ended. The alarm moved in the same
/// commit, so nobody asks again but who has not heard of that; and a schedule keeps account of
/// what has fired for as long as it exists (`entity/schedule/account.rs`).
const WINDOW_SECS: u32 = 24 * 60 * 60;

/// The digest of the key of one firing.
pub fn key(entity: EntityId, at: Timestamp) -> Digest {
    let kind = [entity.kind.number()];
    digest(&[b"firing", &kind, &entity.bits.to_be_bytes(), &at.0.to_be_bytes()])
}

/// What a firing brought about.
#[derive(Debug)]
pub(crate) struct Fired {
    /// The job of it.
    pub(crate) job: JobId,
    /// Whether it was submitted now, not before.
    pub(crate) is_new: bool,
    /// What makes that true.
    pub(crate) events: Vec<Event>,
}

/// Where a job came from that an entity submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Which entity.
    pub entity: EntityId,
    /// For which instant.
    pub at: Timestamp,
    /// Whether the entity wants to hear of the job's end.
    pub is_watched: bool,
    /// Whether the job is a task, of the name in its label [`TASK_LABEL`].
    pub is_task: bool,
}

/// What ties a job to the entity that fires it, besides the key.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ties<'a> {
    /// Whether the entity wants to hear of the job's end.
    pub(crate) is_watched: bool,
    /// The plan whose task it is.
    pub(crate) task: Option<&'a TaskPlan>,
}

/// The label that tells a worker which task it has.
pub const TASK_LABEL: &str = "task_id";

/// Follows the scope of a key if the job is a task.
const TASK: &str = ":task";
/// Follows the scope of a key if the entity wants to hear of the job's end.
const WATCHED: &str = ":watched";

/// The name of the task of a plan at `at`.
pub fn task_id(plan: &str, at: Timestamp) -> String {
    format!("{plan}@{}", calendar::utc_text(at))
}

/// Where `job` came from, if an entity submitted it.
pub fn origin(job: &Job) -> Option<Origin> {
    let held = job.idempotency.as_ref()?;
    let (scope, is_watched) = match held.scope.strip_suffix(WATCHED) {
        Some(scope) => (scope, true),
        None => (&*held.scope, false),
    };
    let (scope, is_task) = match scope.strip_suffix(TASK) {
        Some(scope) => (scope, true),
        None => (scope, false),
    };
    let kind = Kind::ALL.iter().copied().find(|kind| kind.as_str() == scope)?;
    let (entity, at) = held.key.split_once('@')?;
    let entity = EntityId::parse(kind, entity).ok()?;
    let at = Timestamp(at.parse().ok()?);
    // Anybody may write such a text, but nobody has such a digest.
    (held.hash == key(entity, at)).then_some(Origin { entity, at, is_watched, is_task })
}

/// Submits `wish` as the job of `entity` at `at`, unless that was done before.
///
/// # Errors
/// If the job is refused.
pub(crate) fn fire(
    entity: EntityId,
    at: Timestamp,
    ties: Ties<'_>,
    mut wish: Submit,
    facts: &Facts<'_>,
) -> Result<Fired, Rejection> {
    let task = if ties.task.is_some() { TASK } else { "" };
    let watched = if ties.is_watched { WATCHED } else { "" };
    if let Some(plan) = ties.task {
        wish.labels.push((TASK_LABEL.into(), task_id(&plan.task_id, at).into()));
    }
    let key = Idempotency {
        hash: key(entity, at),
        scope: format!("{}{task}{watched}", entity.kind.as_str()).into(),
        key: format!("{entity}@{}", at.0).into(),
        fingerprint: None,
        window_secs: ties.task.map_or(Some(WINDOW_SECS), |plan| plan.window_secs),
    };
    let decision = decide::submit(&Submit { idempotency: Some(Box::new(key)), ..wish }, facts)?;
    let events = decision.events;
    match decision.receipt {
        Receipt::Submitted { job } => Ok(Fired { job, is_new: true, events }),
        Receipt::Existing { job, .. } => Ok(Fired { job, is_new: false, events }),
        Receipt::Moved { .. }
        | Receipt::Renewed { .. }
        | Receipt::CancelledMeanwhile
        | Receipt::Effect { .. }
        | Receipt::Ran { .. }
        | Receipt::Requeued { .. }
        | Receipt::Item { .. }
        | Receipt::Wanting { .. }
        | Receipt::Ensured { .. }
        | Receipt::TakenBack { .. }
        | Receipt::Audited { .. }
        | Receipt::Together(_)
        | Receipt::Done => unreachable!("a submission is taken or found"),
    }
}
