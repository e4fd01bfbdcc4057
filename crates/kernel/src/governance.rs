//! Work on governed objects: what can be done to what, how risky it is, and which gates stand
//! before it. Such a job is known by its type, which says all three, so that a pull picks by lanes
//! and never looks through jobs; its subject names the object.
//!
//! A gate is a reserved queue without jobs that is paused while the gate is closed. Every commit
//! checks the queues it decides by, so a gate holds on all servers from the moment it is told
//! closed. What an object is and remembers is in `entity/object.rs`, what a claim makes of it in
//! `decide/governed.rs`.

use crate::dispatch::LaneKey;
use crate::entity::{EntityId, Kind};
use crate::fingerprint::digest;
use crate::id::JobId;
use crate::job::Job;
use crate::name::{JobType, QueueName, TenantId};
use crate::registry::QueueSpec;

/// An enum with its wire names.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $word:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$word_doc])* $word,)*
        }

        impl $name {
            /// Every one, in the order of the contract.
            pub const ALL: &'static [$name] = &[$($name::$word),*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$word => $text,)* }
            }

            /// The one of that name.
            pub fn parse(text: &str) -> Option<$name> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }

            /// The number it is stored under: its place, so append only.
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// The one of that number.
            pub fn of_number(number: u8) -> Option<$name> {
                Self::ALL.get(usize::from(number)).copied()
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What kind of object a job is about.
    ObjectType {
        /// A memory.
        Memory = "memory",
        /// An experience.
        Experience = "experience",
        /// A cognition.
        Cognition = "cognition",
    }
}

words! {
    /// What is done to an object.
    Action {
        /// Look for evidence.
        Verify = "verify",
        /// Look again whether it still holds.
        Revalidate = "revalidate",
        /// Let it age.
        Decay = "decay",
        /// Put it away.
        Archive = "archive",
        /// See whether it deserves to come back.
        ReinstateCheck = "reinstate-check",
    }
}

words! {
    /// How much harm a wrong move can do.
    RiskTier {
        /// Little.
        Low = "low",
        /// Some.
        Medium = "medium",
        /// Much: the gates stand before it.
        High = "high",
    }
}

words! {
    /// The gates of a tenant. One that nobody has set lets everything pass.
    Gate {
        /// Whether it is in keeping with the persona.
        Persona = "persona",
        /// Whether it is understood well enough.
        Cognition = "cognition",
        /// Whether the risk is acceptable.
        Risk = "risk",
        /// Whether others are concerned.
        Social = "social",
    }
}

/// What all types of governed jobs begin with.
const TYPES: &str = "scheduler.";
/// What the names of the queues of gates begin with; nobody else may have such a queue.
const GATES: &str = "gate:";
/// What the names of the queues of tenants begin with.
const TENANTS: &str = "gate:tenant:";
/// The queue of governed jobs, unless they are sharded.
pub const QUEUE: &str = "scheduler";
/// The scope of the keys of governed jobs.
pub const KEY_SCOPE: &str = "scheduler";
/// The label that all governed jobs have, with the value [`QUEUE`].
pub const CONTRACT_LABEL: &str = "contract";
/// The label that names the object of a job.
pub const OBJECT_LABEL: &str = "object";

/// What a governed job is to do, as its type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duty {
    /// To what kind of object.
    pub object_type: ObjectType,
    /// What.
    pub action: Action,
    /// How risky the object was when the job was submitted.
    pub risk_tier: RiskTier,
}

impl Duty {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Duty> {
        let tiers = |object_type, action| {
            RiskTier::ALL.iter().map(move |&risk_tier| Duty { object_type, action, risk_tier })
        };
        let actions = move |object_type| {
            Action::ALL.iter().flat_map(move |&action| tiers(object_type, action))
        };
        ObjectType::ALL.iter().flat_map(move |&object_type| actions(object_type))
    }

    /// The type of jobs that do this.
    pub fn job_type(self) -> JobType {
        let Duty { object_type, action, risk_tier } = self;
        let [object_type, action, risk_tier] =
            [object_type.as_str(), action.as_str(), risk_tier.as_str()];
        JobType::stored(format!("{TYPES}{object_type}.{action}.{risk_tier}").into())
    }

    /// What jobs of this type do, if they are governed.
    pub fn of(job_type: &JobType) -> Option<Duty> {
        let mut parts = job_type.as_str().strip_prefix(TYPES)?.split('.');
        let duty = Duty {
            object_type: ObjectType::parse(parts.next()?)?,
            action: Action::parse(parts.next()?)?,
            risk_tier: RiskTier::parse(parts.next()?)?,
        };
        parts.next().is_none().then_some(duty)
    }
}

/// Whether jobs of this type are governed.
pub fn is_governed(job_type: &JobType) -> bool {
    Duty::of(job_type).is_some()
}

/// The subject of jobs about an object.
pub fn subject(object_type: ObjectType, object_id: &str) -> String {
    format!("{}:{object_id}", object_type.as_str())
}

/// The labels of jobs about an object, by which lists find them.
pub fn labels(object_type: ObjectType, object_id: &str) -> Vec<(Box<str>, Box<str>)> {
    let object = subject(object_type, object_id);
    vec![(CONTRACT_LABEL.into(), QUEUE.into()), (OBJECT_LABEL.into(), object.into())]
}

/// The kind and name of the object that a governed job is about.
pub fn object_name(job: &Job) -> Option<(ObjectType, &str)> {
    let duty = Duty::of(&job.job_type)?;
    let (kind, name) = job.extras.as_ref()?.subject.as_deref()?.split_once(':')?;
    (kind == duty.object_type.as_str()).then_some((duty.object_type, name))
}

/// The object that a claim of `job` looks at: stores load it with the job.
pub fn object_of(job: &Job) -> Option<EntityId> {
    let (object_type, name) = object_name(job)?;
    Some(object_id(&job.tenant, object_type, name))
}

/// The id of an object.
pub fn object_id(tenant: &TenantId, object_type: ObjectType, name: &str) -> EntityId {
    let parts = [tenant.as_str(), object_type.as_str(), name].map(str::as_bytes);
    let [tenant, object_type, name] = parts;
    let bits = u128::from_be_bytes(digest(&[b"object", tenant, object_type, name]).0);
    EntityId { kind: Kind::Object, bits }
}

/// The id of a gate of a tenant.
pub fn gate_id(tenant: &TenantId, gate: Gate) -> EntityId {
    let (tenant, gate) = (tenant.as_str().as_bytes(), gate.as_str().as_bytes());
    EntityId { kind: Kind::Gate, bits: u128::from_be_bytes(digest(&[b"gate", tenant, gate]).0) }
}

/// The queue that is paused while a gate of a tenant is closed.
pub fn gate_queue(tenant: &TenantId, gate: Gate) -> QueueName {
    let tenant = u128::from_be_bytes(digest(&[b"tenant", tenant.as_str().as_bytes()]).0);
    QueueName::stored(format!("{GATES}{}:{tenant:032x}", gate.as_str()).into())
}

/// The queue that has what a tenant gets and may have, and is paused while the tenant is. No job
/// stands in it.
pub fn tenant_queue(tenant: &TenantId) -> QueueName {
    QueueName::stored(format!("{TENANTS}{tenant}").into())
}

/// The tenant whose queue it is.
pub fn tenant_of(queue: &QueueName) -> Option<TenantId> {
    queue.as_str().strip_prefix(TENANTS).map(|tenant| TenantId::stored(tenant.into()))
}

/// How many turns the tenant of such a queue has; none while it is paused.
pub fn weight_of(spec: &QueueSpec) -> u32 {
    if spec.is_paused { 0 } else { spec.share.map_or(1, |share| share.weight.into()) }
}

/// Whether a queue is a gate's, and so nobody's to set.
pub fn is_reserved(queue: &QueueName) -> bool {
    queue.as_str().starts_with(GATES)
}

/// The first gate of a tenant that is closed, as `is_open` tells of queues.
pub fn closed_gate(tenant: &TenantId, is_open: &mut dyn FnMut(&QueueName) -> bool) -> Option<Gate> {
    Gate::ALL.iter().copied().find(|gate| !is_open(&gate_queue(tenant, *gate)))
}

/// Whether a closed gate holds all jobs of a lane.
pub fn is_held(lane: &LaneKey, is_open: &mut dyn FnMut(&QueueName) -> bool) -> bool {
    Duty::of(&lane.job_type).is_some_and(|duty| duty.risk_tier == RiskTier::High)
        && closed_gate(&lane.tenant, is_open).is_some()
}

/// The name of the decision to hand out `job` under the lease of that fence.
pub fn decision_trace_id(job: JobId, fence: u32) -> String {
    let made = digest(&[b"decision", &job.0.to_be_bytes(), &fence.to_be_bytes()]);
    format!("dtr_{:032x}", u128::from_be_bytes(made.0))
}

/// What the configuration says about governed objects that do not say it themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Governance {
    /// How often an object that is uncertain is verified by itself.
    pub auto_verify_budget: u32,
    /// How often one that cannot be known is.
    pub unknowable_tries_max: u32,
}

impl Governance {
    /// Two and three.
    pub const DEFAULT: Governance = Governance { auto_verify_budget: 2, unknowable_tries_max: 3 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duty_is_told_from_its_type_and_from_nothing_else() {
        assert_eq!(Duty::all().count(), 45);
        for duty in Duty::all() {
            assert_eq!(Duty::of(&duty.job_type()), Some(duty));
        }
        for other in ["scheduler", "scheduler.memory.verify", "scheduler.memory.verify.low.x"] {
            assert!(!is_governed(&JobType::stored(other.into())), "{other}");
        }
        assert!(!is_governed(&JobType::stored("x.memory.verify.low".into())));
    }

    #[test]
    fn a_tenant_of_any_name_has_a_queue_that_tells_it() {
        for name in ["t".to_owned(), "t".repeat(200), "é".repeat(100)] {
            let tenant = TenantId::new(&name).expect("it is a name");
            assert_eq!(tenant_of(&tenant_queue(&tenant)), Some(tenant));
        }
    }

    #[test]
    fn only_high_lanes_of_the_tenant_are_held() {
        let [acme, other] = ["acme", "other"].map(|name| TenantId::stored(name.into()));
        let closed = gate_queue(&acme, Gate::Social);
        let mut is_open = |queue: &QueueName| *queue != closed;
        for duty in Duty::all() {
            for tenant in [&acme, &other] {
                let lane = LaneKey {
                    tenant: tenant.clone(),
                    queue: QueueName::stored(QUEUE.into()),
                    job_type: duty.job_type(),
                    user: None,
                    keys: None,
                    is_retry: false,
                };
                let expected = duty.risk_tier == RiskTier::High && tenant == &acme;
                assert_eq!(is_held(&lane, &mut is_open), expected);
            }
        }
        assert!(is_reserved(&closed));
    }
}
