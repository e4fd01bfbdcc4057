//! Making schedules, for every contract: whoever asks in whichever words is bound by the same
//! number of them.

use crate::ask::Ask;
use crate::limits::SCHEDULES_PER_TENANT_MAX;
use crate::refusal::{self, Refusal};
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::Principal;
use mainspring_kernel::entity::schedule::{ScheduleCommand, ScheduleSpec};
use mainspring_kernel::entity::{EntityId, Kind};

/// Makes a schedule that belongs to `who`.
pub(crate) async fn make(
    ask: &Ask,
    who: &Principal,
    spec: ScheduleSpec,
) -> Result<EntityId, Refusal> {
    let tenant = EntityFilter::of(Kind::Schedule, Scope::Tenant(who.tenant.clone()));
    let known = ask.engine().count_entities(&tenant, SCHEDULES_PER_TENANT_MAX).await?;
    if known >= SCHEDULES_PER_TENANT_MAX {
        return Err(refusal::too_many_schedules(SCHEDULES_PER_TENANT_MAX));
    }
    let id = EntityId { kind: Kind::Schedule, bits: ask.engine().fresh_id() };
    let (tenant, owner) = (who.tenant.clone(), who.user.clone());
    let command = ScheduleCommand::Create { id, tenant, owner, spec: Box::new(spec) };
    ask.engine().execute_one(command.into()).await??;
    Ok(id)
}
