//! Making schedules, for every contract: whoever asks in whichever words is bound by the same
//! number of them.

use crate::ask::Ask;
use crate::audit;
use crate::refusal::Refusal;
use mainspring_kernel::Principal;
use mainspring_kernel::entity::schedule::{ScheduleCommand, ScheduleSpec};
use mainspring_kernel::entity::{EntityId, Kind};

/// Makes a schedule that belongs to `who`.
pub(crate) async fn make(
    ask: &Ask,
    who: &Principal,
    spec: ScheduleSpec,
) -> Result<EntityId, Refusal> {
    ask.room_for_a_schedule(who).await?;
    let id = EntityId { kind: Kind::Schedule, bits: ask.engine().fresh_id() };
    let (tenant, owner) = (who.tenant.clone(), who.user.clone());
    let command = ScheduleCommand::Create { id, tenant, owner, spec: Box::new(spec) };
    let note = audit::of_schedule("schedule.create", id);
    audit::change(ask, who, command.into(), note).await?;
    Ok(id)
}
