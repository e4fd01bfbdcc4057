//! One job for each time an entity fires. The job carries a key made of the entity and the instant,
//! so that a second job for the same firing is refused by the rule that every store enforces.

use crate::command::Submit;
use crate::decide::{self, Receipt};
use crate::entity::EntityId;
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::{Digest, digest};
use crate::job::Idempotency;
use crate::rejection::Rejection;
use crate::time::Timestamp;

/// Seconds the key of a firing stays taken after its job has ended. The alarm moved in the same
/// commit, so nobody asks again but who has not heard of that.
const WINDOW_SECS: u32 = 24 * 60 * 60;

/// The digest of the key of one firing.
pub fn key(entity: EntityId, at: Timestamp) -> Digest {
    let kind = [entity.kind.number()];
    digest(&[b"firing", &kind, &entity.bits.to_be_bytes(), &at.0.to_be_bytes()])
}

/// The events that submit `wish` as the job of `entity` at `at`; none if it was submitted before.
///
/// # Errors
/// If the job is refused.
pub(crate) fn fire(
    entity: EntityId,
    at: Timestamp,
    wish: Submit,
    facts: &Facts<'_>,
) -> Result<Vec<Event>, Rejection> {
    let key = Idempotency {
        hash: key(entity, at),
        scope: entity.kind.as_str().into(),
        key: format!("{entity}@{}", at.0).into(),
        fingerprint: None,
        window_secs: Some(WINDOW_SECS),
    };
    let decision = decide::submit(&Submit { idempotency: Some(Box::new(key)), ..wish }, facts)?;
    debug_assert!(matches!(decision.receipt, Receipt::Submitted { .. } | Receipt::Existing { .. }));
    Ok(decision.events)
}
