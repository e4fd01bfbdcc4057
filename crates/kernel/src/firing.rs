//! One job for each time an entity fires. The job carries a key made of the entity and the instant,
//! so that a second job for the same firing is refused by the rule that every store enforces.

use crate::command::Submit;
use crate::decide::{self, Receipt};
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
}

/// Follows the scope of a key if the entity wants to hear of the job's end.
const WATCHED: &str = ":watched";

/// Where `job` came from, if an entity submitted it.
pub fn origin(job: &Job) -> Option<Origin> {
    let held = job.idempotency.as_ref()?;
    let (scope, is_watched) = match held.scope.strip_suffix(WATCHED) {
        Some(scope) => (scope, true),
        None => (&*held.scope, false),
    };
    let kind = Kind::ALL.iter().copied().find(|kind| kind.as_str() == scope)?;
    let (entity, at) = held.key.split_once('@')?;
    let entity = EntityId::parse(kind, entity).ok()?;
    let at = Timestamp(at.parse().ok()?);
    // Anybody may write such a text, but nobody has such a digest.
    (held.hash == key(entity, at)).then_some(Origin { entity, at, is_watched })
}

/// Submits `wish` as the job of `entity` at `at`, unless that was done before.
///
/// # Errors
/// If the job is refused.
pub(crate) fn fire(
    entity: EntityId,
    at: Timestamp,
    is_watched: bool,
    wish: Submit,
    facts: &Facts<'_>,
) -> Result<Fired, Rejection> {
    let watched = if is_watched { WATCHED } else { "" };
    let key = Idempotency {
        hash: key(entity, at),
        scope: format!("{}{watched}", entity.kind.as_str()).into(),
        key: format!("{entity}@{}", at.0).into(),
        fingerprint: None,
        window_secs: Some(WINDOW_SECS),
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
        | Receipt::Done => unreachable!("a submission is taken or found"),
    }
}
