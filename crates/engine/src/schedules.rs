//! What concerns schedules and takes more than one command. Everything else is a
//! [`ScheduleCommand`] by way of [`Engine::execute_one`], and [`Engine::entity`] to read.

use crate::engine::Engine;
use mainspring_kernel::entity::schedule::{ScheduleCommand, ScheduleSpec, named};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::limits::BACKFILL_MAX;
use mainspring_kernel::{EntityId, JobId, Receipt, Rejection, TenantId, Timestamp};
use mainspring_store::Error;

/// Firings that are filled in by one commit, so that others come between.
const BACKFILL_PER_COMMIT: usize = 50;
/// The space of the names of templates.
const TEMPLATES: &str = "template";

/// The schedule of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ensured {
    /// The schedule.
    pub id: EntityId,
    /// Whether it was made now.
    pub is_new: bool,
}

/// A firing that was filled in, or had a job already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backfilled {
    /// Which firing.
    pub at: Timestamp,
    /// Its job, and whether it was made now; or why there is none.
    pub outcome: Result<(JobId, bool), Rejection>,
}

impl Engine {
    /// Makes the schedule of a system template, unless it is there: its id follows from tenant and
    /// name, so that no two servers and no two starts make a second one. It belongs to `system`.
    /// One that is there is changed only if `entry`, the digest of what the configuration says, is
    /// not the one it was last made from; one that was stopped stays so.
    ///
    /// # Errors
    /// If the store failed; the inner error if the rules say no.
    pub async fn ensure_template(
        &self,
        tenant: TenantId,
        name: &str,
        entry: Digest,
        spec: ScheduleSpec,
    ) -> Result<Result<Ensured, Rejection>, Error> {
        let id = template_id(&tenant, name);
        let (name, spec) = (name.into(), Box::new(spec));
        let command = ScheduleCommand::Ensure { id, tenant, name, entry, spec };
        let outcome = self.execute_one(command.into()).await?;
        Ok(outcome
            .map(|receipt| Ensured { id, is_new: receipt == Receipt::Ensured { is_new: true } }))
    }

    /// Makes a job of a schedule now, whatever its rhythm and whatever runs.
    ///
    /// # Errors
    /// If the store failed; the inner error if the rules say no.
    pub async fn trigger(&self, id: EntityId) -> Result<Result<JobId, Rejection>, Error> {
        // Rhythms come at whole seconds; what is asked for between them is no firing of any.
        let now = self.now();
        let at = if now.0 % 1_000_000 == 0 { Timestamp(now.0 + 1) } else { now };
        let command = ScheduleCommand::Trigger { id, at };
        Ok(self
            .execute_one(command.into())
            .await?
            .and_then(|receipt| made(&receipt))
            .map(|it| it.0))
    }

    /// Makes the jobs of firings from `from` to `to` that lie in the past and have none: those that
    /// the schedule would have, were it there and as it is now. At most `limit` of them, and never
    /// more than [`BACKFILL_MAX`]; the last one says where to go on. A firing that has a job keeps
    /// it; one whose job is forgotten gets no other.
    ///
    /// # Errors
    /// If the store failed: what was made by then stays, and asking again goes on. The inner error
    /// if there is no such schedule.
    pub async fn backfill(
        &self,
        id: EntityId,
        (from, to): (Timestamp, Timestamp),
        limit: usize,
    ) -> Result<Result<Vec<Backfilled>, Rejection>, Error> {
        let unknown = Rejection::EntityUnknown { kind: Kind::Schedule };
        let Some(entity) = self.entity(id).await? else { return Ok(Err(unknown)) };
        let Body::Schedule(schedule) = entity.body else { return Ok(Err(unknown)) };
        let (after, until) = (Timestamp(from.0.saturating_sub(1)), to.min(self.now()));
        let firings = schedule.spec.firings(after, until, limit.min(BACKFILL_MAX));
        let mut filled = Vec::with_capacity(firings.len());
        for some in firings.chunks(BACKFILL_PER_COMMIT) {
            let command = |at: &Timestamp| ScheduleCommand::Backfill { id, at: *at }.into();
            let outcomes = self.execute(some.iter().map(command).collect()).await?;
            for (at, outcome) in some.iter().zip(outcomes) {
                // What is about to fire by itself is not filled in.
                if outcome != Err(Rejection::NotDue) {
                    let outcome = outcome.and_then(|receipt| made(&receipt));
                    filled.push(Backfilled { at: *at, outcome });
                }
            }
        }
        Ok(Ok(filled))
    }
}

/// The id of the schedule of a system template.
pub fn template_id(tenant: &TenantId, name: &str) -> EntityId {
    named(tenant, TEMPLATES, name)
}

/// The job that a receipt tells of, and whether it is new.
#[expect(clippy::wildcard_enum_match_arm, reason = "two receipts name a job that was asked for")]
fn made(receipt: &Receipt) -> Result<(JobId, bool), Rejection> {
    match receipt {
        Receipt::Submitted { job } => Ok((*job, true)),
        Receipt::Existing { job, .. } => Ok((*job, false)),
        _ => Err(Rejection::JobUnknown),
    }
}
