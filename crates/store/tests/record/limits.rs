//! Samples of what holds jobs back: keys, rates, circuits, shares of tenants.

use super::samples::{hash, later, plain_job, spec};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::tenant::TenantCard;
use mainspring_kernel::flow::{
    Circuit, CircuitState, Flow, KeySource, LimitKeys, Meter, Pause, RateLimit,
};
use mainspring_kernel::job::Extras;
use mainspring_kernel::registry::{ConcurrencyScope, Sla, TenantShare};
use mainspring_kernel::{Event, Job, QueueName, QueueSpec, Transition, TypeSpec, UserId};
use mainspring_store::JobWithHistory;
use mainspring_store::record::Record;

pub(crate) fn keyed() -> JobWithHistory {
    let keys = LimitKeys { concurrency: Some("customer-7".into()), rate: None };
    let extras = Some(Box::new(Extras { limit_keys: Some(Box::new(keys)), ..Extras::default() }));
    let job = Job { extras, ..plain_job("{}") };
    JobWithHistory { history: vec![Transition::submitted(&job)], job }
}

fn share() -> TenantShare {
    TenantShare { weight: 5, backlog_max: Some(1_000), backlog_bytes_max: None }
}

pub(crate) fn share_of_tenant() -> QueueSpec {
    let name = QueueName::stored("gate:tenant:acme".into());
    QueueSpec { share: Some(share()), ..QueueSpec::plain(name) }
}

pub(crate) fn tenant_card() -> Body {
    let pause = Pause { by: UserId::stored("ada".into()), at: later(6) };
    Body::Tenant(TenantCard { share: share(), paused: Some(pause) })
}

pub(crate) fn flowing() -> TypeSpec {
    let flow = Flow {
        concurrency_key: Some(KeySource::new("customer")),
        rate_limit: Some(RateLimit::new(2.5, Some(10), Some(KeySource::new("/customer/id")))),
        circuit: Some(Circuit { failure_permille: 500, min_calls: 20, open_secs: 30 }),
        circuit_turn: 3,
        paused: Some(Pause { by: UserId::stored("ada".into()), at: later(5) }),
    };
    TypeSpec { flow: Box::new(flow), ..spec(Some(4), ConcurrencyScope::Tenant) }
}

pub(crate) fn meter(meter: Meter) -> Record {
    Record::Meter { key: hash("bucket"), meter }
}

pub(crate) fn circuit(state: CircuitState) -> Record {
    meter(Meter::Circuit { state, at: later(9) })
}

/// A type of which something is promised.
pub(crate) fn promised(spec: TypeSpec) -> Event {
    let sla = Some(Sla { start_within_ms: Some(5_000), finish_within_ms: None });
    Event::TypeSet(Box::new(TypeSpec { sla, ..spec }))
}
