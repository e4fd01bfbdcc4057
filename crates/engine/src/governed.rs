//! What concerns governed objects and gates and takes more than one command.

use crate::engine::{Engine, Shared};
use crate::explain::WhyWaiting;
use crate::limits::LET_GO_STEP;
use mainspring_kernel::entity::object::{Object, ObjectCommand};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::governance::{self, Duty, Gate, RiskTier};
use mainspring_kernel::{Command, Entity, Job, QueueSpec, TenantId, Timestamp, Transition};
use mainspring_store::{EntityFilter, Error, Scope};

impl Engine {
    /// Lets the parked jobs of a tenant's objects go, after a gate was opened. What is missed here
    /// is found when the alarm of its object rings.
    ///
    /// # Errors
    /// If the store failed: what was let go by then stays so.
    pub async fn let_parked_go(&self, tenant: &TenantId) -> Result<(), Error> {
        let state = Some("held".to_owned());
        let scope = Scope::Tenant(tenant.clone());
        let held = EntityFilter { state, ..EntityFilter::of(Kind::Object, scope) };
        let mut before = None;
        loop {
            let page = self.entities(&held, before, LET_GO_STEP).await?;
            let let_go = |entity: &Entity| {
                let jobs = object(entity)?.parked.clone();
                Some(Command::from(ObjectCommand::LetGo { id: entity.id, jobs }))
            };
            let commands: Vec<Command> = page.items.iter().filter_map(let_go).collect();
            if !commands.is_empty() {
                self.execute(commands).await?;
            }
            match page.next {
                Some(next) => before = Some(next),
                None => return Ok(()),
            }
        }
    }
}

/// The object that an entity is.
fn object(entity: &Entity) -> Option<&Object> {
    if let Body::Object(object) = &entity.body { Some(object) } else { None }
}

/// What holds a governed job that waits.
pub(crate) async fn held(
    shared: &Shared,
    job: &Job,
    history: &[Transition],
) -> Result<Option<WhyWaiting>, Error> {
    let Some(duty) = Duty::of(&job.job_type) else { return Ok(None) };
    if job.due_at() == Some(Timestamp::NEVER)
        && let Some(reason) = history.last().and_then(|step| step.reason.as_deref())
        && let Some(code) = governance_code(&reason.code)
    {
        return Ok(Some(WhyWaiting { code, message: reason.message.to_string() }));
    }
    if duty.risk_tier != RiskTier::High {
        return Ok(None);
    }
    let queues = shared.store.queues().await?;
    let is_open = |gate: &Gate| {
        let name = governance::gate_queue(&job.tenant, *gate);
        QueueSpec::is_open(queues.iter().find(|spec| spec.name == name))
    };
    let closed = Gate::ALL.iter().find(|gate| !is_open(gate));
    Ok(closed.map(|gate| WhyWaiting {
        code: "GATE_CLOSED",
        message: format!("the gate {} is closed", gate.as_str()),
    }))
}

/// The code of a hold.
fn governance_code(code: &str) -> Option<&'static str> {
    use mainspring_kernel::event::HoldCode;
    HoldCode::ALL.iter().map(|it| it.as_str()).find(|known| *known == code)
}
