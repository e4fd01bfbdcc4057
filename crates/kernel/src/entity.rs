//! Everything that is not a job but has an id, an owner, a state and perhaps an instant at which
//! something has to happen. All kinds take one path through commits, stores, lists and timers,
//! which sees only what this file tells of them; what a kind is and does is a file of its own below
//! `entity/`. `docs/adding-a-kind.md` shows the steps.
//!
//! An entity changes as a whole: every change is a new version of all of it. Kinds that change
//! often, or of which there are millions, do not belong here.

pub mod alert;
pub mod audit;
pub mod beacon;
pub mod bulk;
pub mod gate;
pub mod object;
pub mod question;
pub mod schedule;
pub mod subscription;
pub mod tenant;
pub mod trigger;
pub mod wait;

use crate::decide::Decision;
use crate::facts::Facts;
use crate::fingerprint::Digest;
use crate::id::{self, DlqId, JobId};
use crate::name::{JobType, TenantId, UserId};
use crate::rejection::Rejection;
use crate::time::Timestamp;
use alert::{Alert, AlertCommand};
use audit::{AuditCommand, AuditEntry, AuditHead};
use beacon::{Beacon, BeaconCommand};
use bulk::{Bulk, BulkCommand, BulkPage};
use gate::{GateCard, GateCommand};
use object::{Object, ObjectCommand};
use question::{Question, QuestionCommand};
use schedule::{Schedule, ScheduleCommand};
use std::fmt;
use subscription::{Subscription, SubscriptionCommand};
use tenant::{TenantCard, TenantCommand};
use trigger::{Trigger, TriggerCommand};
use wait::Wait;

/// The kinds of entities. The numbers are stored: append only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Submits a job every so often; see [`beacon`].
    Beacon = 1,
    /// Makes jobs at set times; see [`schedule`].
    Schedule = 2,
    /// Makes agent runs; see [`trigger`].
    Trigger = 7,
    /// Waits for a person's answer; see [`question`].
    Question = 10,
    /// What governed jobs are done to; see [`object`].
    Object = 20,
    /// What stands before jobs on high-risk objects; see [`gate`].
    Gate = 21,
    /// Where a tenant's audit trail ends; see [`audit`].
    AuditHead = 22,
    /// One line of it.
    AuditEntry = 23,
    /// What a person should look at; see [`alert`].
    Alert = 30,
    /// The same thing done to many; see [`bulk`].
    Bulk = 31,
    /// What became of some of them.
    BulkPage = 32,
    /// Passes events on; see [`subscription`].
    Subscription = 35,
    /// A job waits for others; see [`wait`].
    Wait = 40,
    /// What a tenant gets and may have; see [`tenant`].
    Tenant = 45,
}

impl Kind {
    /// All of them.
    pub const ALL: &'static [Kind] = &[
        Kind::Beacon,
        Kind::Schedule,
        Kind::Question,
        Kind::Trigger,
        Kind::Object,
        Kind::Gate,
        Kind::AuditHead,
        Kind::AuditEntry,
        Kind::Alert,
        Kind::Bulk,
        Kind::BulkPage,
        Kind::Subscription,
        Kind::Wait,
        Kind::Tenant,
    ];

    /// The number it is stored under.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The kind of that number.
    pub fn of_number(number: u8) -> Option<Kind> {
        Kind::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// Its name, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Beacon => "beacon",
            Kind::Schedule => "schedule",
            Kind::Question => "question",
            Kind::Trigger => "trigger",
            Kind::Object => "object",
            Kind::Gate => "gate",
            Kind::AuditHead => "audit_head",
            Kind::AuditEntry => "audit_entry",
            Kind::Alert => "alert",
            Kind::Bulk => "bulk",
            Kind::BulkPage => "bulk_page",
            Kind::Subscription => "subscription",
            Kind::Wait => "wait",
            Kind::Tenant => "tenant",
        }
    }

    /// What the text form of its ids starts with, without the underscore.
    pub const fn prefix(self) -> &'static str {
        match self {
            Kind::Beacon => "bcn",
            Kind::Schedule => "sch",
            Kind::Question => "qst",
            Kind::Trigger => "trg",
            Kind::Object => "obj",
            Kind::Gate => "gat",
            Kind::AuditHead => "auh",
            Kind::AuditEntry => "aud",
            Kind::Alert => "alt",
            Kind::Bulk => "blk",
            Kind::BulkPage => "blp",
            Kind::Subscription => "sub",
            Kind::Wait => "wai",
            Kind::Tenant => "tnt",
        }
    }
}

/// Names one entity. An id whose entity was removed is never given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntityId {
    /// Of which kind.
    pub kind: Kind,
    /// Which one of its kind. Time ordered unless the kind derives it from a name.
    pub bits: u128,
}

impl fmt::Display for EntityId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        id::write(f, self.kind.prefix(), self.bits)
    }
}

impl EntityId {
    /// The id of that kind and text form.
    ///
    /// # Errors
    /// If the text is no id of that kind.
    pub fn parse(kind: Kind, text: &str) -> Result<EntityId, id::BadId> {
        let bits = id::read(kind.prefix(), text).ok_or(id::BadId { expected: kind.prefix() })?;
        Ok(EntityId { kind, bits })
    }
}

/// One entity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name.
    pub id: EntityId,
    /// Grows by one with every change. A change names the version it was decided on.
    pub version: u32,
    /// The tenant.
    pub tenant: TenantId,
    /// Who made it.
    pub owner: UserId,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What it is.
    pub body: Body,
}

/// What an entity is, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// A beacon.
    Beacon(Beacon),
    /// A schedule.
    Schedule(Box<Schedule>),
    /// A question.
    Question(Box<Question>),
    /// A trigger.
    Trigger(Box<Trigger>),
    /// A governed object.
    Object(Box<Object>),
    /// A gate.
    Gate(GateCard),
    /// Where an audit trail ends.
    AuditHead(AuditHead),
    /// A line of an audit trail.
    AuditEntry(Box<AuditEntry>),
    /// An alert.
    Alert(Box<Alert>),
    /// A bulk operation.
    Bulk(Box<Bulk>),
    /// What became of some of the things of one.
    BulkPage(BulkPage),
    /// A subscription.
    Subscription(Box<Subscription>),
    /// What a job waits for.
    Wait(Box<Wait>),
    /// A tenant.
    Tenant(TenantCard),
}

impl Body {
    /// The kind of it.
    pub const fn kind(&self) -> Kind {
        match self {
            Body::Beacon(_) => Kind::Beacon,
            Body::Schedule(_) => Kind::Schedule,
            Body::Question(_) => Kind::Question,
            Body::Trigger(_) => Kind::Trigger,
            Body::Object(_) => Kind::Object,
            Body::Gate(_) => Kind::Gate,
            Body::AuditHead(_) => Kind::AuditHead,
            Body::AuditEntry(_) => Kind::AuditEntry,
            Body::Alert(_) => Kind::Alert,
            Body::Bulk(_) => Kind::Bulk,
            Body::BulkPage(_) => Kind::BulkPage,
            Body::Subscription(_) => Kind::Subscription,
            Body::Wait(_) => Kind::Wait,
            Body::Tenant(_) => Kind::Tenant,
        }
    }
}

impl Entity {
    /// Where it stands, in a word of its kind. Lists can ask for it.
    pub fn state(&self) -> &'static str {
        match &self.body {
            Body::Beacon(beacon) => beacon.state(),
            Body::Schedule(schedule) => schedule.state(),
            Body::Question(question) => question.state(),
            Body::Trigger(trigger) => trigger.state(),
            Body::Object(object) => object.state(),
            Body::Gate(gate) => gate.state.as_str(),
            Body::AuditHead(_) => "open",
            Body::AuditEntry(entry) => entry.state(),
            Body::Alert(alert) => alert.state().as_str(),
            Body::Bulk(bulk) => bulk.status.as_str(),
            Body::BulkPage(_) => "kept",
            Body::Subscription(subscription) => subscription.state(),
            Body::Wait(_) => "open",
            Body::Tenant(card) => {
                if card.paused.is_some() {
                    "paused"
                } else {
                    "active"
                }
            }
        }
    }

    /// When something has to happen to it, if ever: then it is rung.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        match &self.body {
            Body::Beacon(beacon) => beacon.next_at,
            Body::Schedule(schedule) => schedule.alarm_at(),
            Body::Question(question) => question.alarm_at(),
            Body::Trigger(trigger) => trigger.alarm_at(),
            Body::Object(object) => object.alarm_at,
            Body::AuditEntry(entry) => Some(entry.keep_until),
            Body::Alert(alert) => alert.alarm_at(),
            Body::Bulk(bulk) => bulk.alarm_at(),
            Body::BulkPage(page) => Some(page.keep_until),
            Body::Wait(wait) => Some(wait.look_at),
            Body::Gate(_) | Body::AuditHead(_) | Body::Subscription(_) | Body::Tenant(_) => None,
        }
    }

    /// The type of the job it submits when it is rung, if it submits one.
    pub fn job_type(&self) -> Option<&JobType> {
        match &self.body {
            Body::Beacon(beacon) => Some(&beacon.job_type),
            Body::Schedule(schedule) => Some(&schedule.spec.job_type),
            Body::Question(_) => None,
            // The types of runs and questions are built in.
            Body::Trigger(_) => None,
            // A type that is there without being registered.
            Body::Object(_) | Body::Gate(_) | Body::AuditHead(_) | Body::AuditEntry(_) => None,
            Body::Alert(_) | Body::Bulk(_) | Body::BulkPage(_) => None,
            Body::Subscription(_) | Body::Wait(_) | Body::Tenant(_) => None,
        }
    }

    /// Shows every field that lists can ask for: a name and a value. A name has one value at most,
    /// but for the jobs of a wait.
    pub fn fields(&self, mut visit: impl FnMut(&'static str, &str)) {
        match &self.body {
            Body::Beacon(beacon) => visit("job_type", beacon.job_type.as_str()),
            Body::Schedule(schedule) => {
                visit("job_type", schedule.spec.job_type.as_str());
                visit("namespace", &schedule.namespace);
            }
            Body::Question(_) => {}
            Body::Trigger(trigger) => visit("type", trigger.spec.kind.as_str()),
            Body::Object(_) | Body::Gate(_) | Body::AuditHead(_) | Body::Subscription(_) => {}
            Body::AuditEntry(entry) => {
                visit("object_id", &entry.note.object_id);
                visit("actor", entry.note.user.as_str());
            }
            Body::Alert(alert) => visit("rule", alert.rule.as_str()),
            Body::Bulk(bulk) => visit("action", bulk.spec.action.as_str()),
            Body::BulkPage(_) | Body::Tenant(_) => {}
            Body::Wait(wait) => {
                wait.open.iter().for_each(|job| visit("job", &job.to_string()));
                wait.members
                    .iter()
                    .for_each(|it| visit("batch", &Wait::batch_of(it.first).to_string()));
            }
        }
    }

    /// What is set as a whole: the next version of what is known, or the first, of this tenant and
    /// by this person.
    pub(crate) fn set(
        known: Option<&Entity>,
        (id, tenant, by): (EntityId, &TenantId, &UserId),
        body: Body,
        now: Timestamp,
    ) -> Entity {
        match known {
            Some(entity) => entity.changed(body, now),
            None => Entity {
                id,
                version: 1,
                tenant: tenant.clone(),
                owner: by.clone(),
                created_at: now,
                updated_at: now,
                body,
            },
        }
    }

    /// The next version of it, changed at `now`.
    pub(crate) fn changed(&self, body: Body, now: Timestamp) -> Entity {
        Entity {
            version: self.version + 1,
            updated_at: now.max(self.updated_at),
            body,
            ..self.clone()
        }
    }
}

/// What can be asked of an entity, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntityCommand {
    /// Of a beacon.
    Beacon(BeaconCommand),
    /// Of a schedule.
    Schedule(ScheduleCommand),
    /// Of a question.
    Question(QuestionCommand),
    /// Of a trigger.
    Trigger(TriggerCommand),
    /// Of a governed object.
    Object(ObjectCommand),
    /// Of a gate.
    Gate(GateCommand),
    /// Of an audit trail.
    Audit(AuditCommand),
    /// Of an alert.
    Alert(AlertCommand),
    /// Of a bulk operation.
    Bulk(BulkCommand),
    /// Of a subscription.
    Subscription(SubscriptionCommand),
    /// Of a tenant.
    Tenant(TenantCommand),
}

impl EntityCommand {
    /// The entity it is about, whether it exists or is to be made.
    pub fn entity(&self) -> EntityId {
        match self {
            EntityCommand::Beacon(command) => command.entity(),
            EntityCommand::Schedule(command) => command.entity(),
            EntityCommand::Question(command) => command.entity(),
            EntityCommand::Trigger(command) => command.entity(),
            EntityCommand::Object(command) => command.entity(),
            EntityCommand::Gate(command) => command.entity(),
            EntityCommand::Audit(command) => command.entity(),
            EntityCommand::Alert(command) => command.entity(),
            EntityCommand::Bulk(command) => command.entity(),
            EntityCommand::Subscription(command) => command.entity(),
            EntityCommand::Tenant(command) => command.entity(),
        }
    }

    /// A short name for logs and metrics.
    pub fn name(&self) -> &'static str {
        match self {
            EntityCommand::Beacon(command) => command.name(),
            EntityCommand::Schedule(command) => command.name(),
            EntityCommand::Question(command) => command.name(),
            EntityCommand::Trigger(command) => command.name(),
            EntityCommand::Object(command) => command.name(),
            EntityCommand::Gate(_) => "set_gate",
            EntityCommand::Audit(_) => "append_audit",
            EntityCommand::Alert(command) => command.name(),
            EntityCommand::Bulk(command) => command.name(),
            EntityCommand::Subscription(command) => command.name(),
            EntityCommand::Tenant(_) => "set_tenant",
        }
    }

    /// The key of the job that it may submit.
    pub fn key(&self) -> Option<Digest> {
        match self {
            // A trigger fires by its alarm alone.
            EntityCommand::Beacon(_)
            | EntityCommand::Trigger(_)
            | EntityCommand::Question(_)
            | EntityCommand::Object(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Audit(_)
            | EntityCommand::Alert(_)
            | EntityCommand::Bulk(_) => None,
            EntityCommand::Subscription(_) | EntityCommand::Tenant(_) => None,
            EntityCommand::Schedule(command) => command.key(),
        }
    }

    /// Whether it asks for more work, or for something that will.
    pub fn is_new_work(&self) -> bool {
        match self {
            EntityCommand::Beacon(_)
            | EntityCommand::Question(_)
            | EntityCommand::Object(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Audit(_)
            | EntityCommand::Alert(_)
            | EntityCommand::Tenant(_) => false,
            EntityCommand::Schedule(command) => command.is_new_work(),
            EntityCommand::Trigger(command) => command.is_new_work(),
            EntityCommand::Bulk(command) => command.is_new_work(),
            EntityCommand::Subscription(command) => command.is_new_work(),
        }
    }

    /// Jobs that it looks at besides.
    pub fn watched(&self) -> &[JobId] {
        match self {
            EntityCommand::Object(command) => command.watched(),
            EntityCommand::Bulk(command) => command.watched(),
            EntityCommand::Beacon(_)
            | EntityCommand::Schedule(_)
            | EntityCommand::Trigger(_)
            | EntityCommand::Question(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Audit(_)
            | EntityCommand::Alert(_) => &[],
            EntityCommand::Subscription(_) | EntityCommand::Tenant(_) => &[],
        }
    }

    /// How many bytes of text it carries, roughly.
    pub fn text_bytes(&self) -> usize {
        match self {
            EntityCommand::Beacon(_)
            | EntityCommand::Object(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Tenant(_)
            | EntityCommand::Subscription(_) => 0,
            EntityCommand::Audit(command) => command.text_bytes(),
            EntityCommand::Alert(command) => command.text_bytes(),
            EntityCommand::Bulk(command) => command.text_bytes(),
            EntityCommand::Schedule(command) => command.text_bytes(),
            EntityCommand::Question(command) => command.text_bytes(),
            EntityCommand::Trigger(command) => command.text_bytes(),
        }
    }

    /// The type that it names.
    pub fn job_type(&self) -> Option<&JobType> {
        match self {
            EntityCommand::Beacon(_)
            | EntityCommand::Trigger(_)
            | EntityCommand::Question(_)
            | EntityCommand::Object(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Audit(_)
            | EntityCommand::Alert(_)
            | EntityCommand::Bulk(_) => None,
            EntityCommand::Subscription(_) | EntityCommand::Tenant(_) => None,
            EntityCommand::Schedule(command) => command.job_type(),
        }
    }

    /// The dead letter that it is about, too.
    pub fn item(&self) -> Option<DlqId> {
        if let EntityCommand::Bulk(command) = self { command.item() } else { None }
    }

    /// Whether the decision looks at who issued whose token.
    pub fn needs_people(&self) -> bool {
        if let EntityCommand::Bulk(command) = self { command.needs_people() } else { false }
    }

    /// The job that it is about, too.
    pub fn job(&self) -> Option<JobId> {
        match self {
            EntityCommand::Beacon(_)
            | EntityCommand::Schedule(_)
            | EntityCommand::Trigger(_)
            | EntityCommand::Object(_)
            | EntityCommand::Gate(_)
            | EntityCommand::Audit(_)
            | EntityCommand::Alert(_) => None,
            EntityCommand::Subscription(_) | EntityCommand::Tenant(_) => None,
            EntityCommand::Question(command) => Some(command.job()),
            EntityCommand::Bulk(command) => command.job(),
        }
    }
}

/// Decides what was asked of an entity.
pub(crate) fn decide(command: &EntityCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    match command {
        EntityCommand::Beacon(command) => beacon::decide(command, facts),
        EntityCommand::Schedule(command) => schedule::decide(command, facts),
        EntityCommand::Question(command) => question::decide(command, facts),
        EntityCommand::Trigger(command) => trigger::decide(command, facts),
        EntityCommand::Object(command) => object::decide(command, facts),
        EntityCommand::Gate(command) => gate::decide(command, facts),
        EntityCommand::Audit(command) => audit::decide(command, facts),
        EntityCommand::Alert(command) => alert::decide(command, facts),
        EntityCommand::Bulk(command) => bulk::decide(command, facts),
        EntityCommand::Subscription(command) => subscription::decide(command, facts),
        EntityCommand::Tenant(command) => tenant::decide(command, facts),
    }
}

/// Does what is due: the alarm that stood at `at` has come. One that was moved meanwhile, perhaps
/// by another server, is left alone.
pub(crate) fn ring(at: Timestamp, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let entity = facts.entity.ok_or(Rejection::NotDue)?;
    if entity.alarm_at() != Some(at) || facts.now < at {
        return Err(Rejection::NotDue);
    }
    match &entity.body {
        Body::Beacon(beacon) => Ok(beacon::ring(entity, beacon, at, facts)),
        Body::Schedule(schedule) => Ok(schedule::ring(entity, schedule, at, facts)),
        Body::Question(question) => Ok(question::ring(entity, question, facts)),
        Body::Trigger(trigger) => Ok(trigger::ring(entity, trigger, at, facts)),
        Body::Object(object) => Ok(object::ring(entity, object, at, facts)),
        Body::AuditEntry(_) => Ok(audit::ring(entity)),
        Body::Alert(alert) => Ok(alert::ring(entity, alert, at, facts)),
        Body::Bulk(bulk) => Ok(bulk::ring(entity, bulk, facts)),
        Body::BulkPage(_) => Ok(bulk::ring_page(entity)),
        Body::Wait(wait) => Ok(wait::ring(entity, wait, facts)),
        Body::Gate(_) | Body::AuditHead(_) | Body::Subscription(_) | Body::Tenant(_) => {
            Err(Rejection::NotDue)
        }
    }
}

/// Tells an entity of jobs that may have ended.
pub(crate) fn settle(facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let entity = facts.entity.ok_or(Rejection::NotDue)?;
    match &entity.body {
        Body::Beacon(_)
        | Body::Question(_)
        | Body::Object(_)
        | Body::Gate(_)
        | Body::AuditHead(_)
        | Body::AuditEntry(_)
        | Body::Alert(_)
        | Body::Bulk(_)
        | Body::BulkPage(_) => Err(Rejection::NotDue),
        Body::Subscription(_) | Body::Tenant(_) => Err(Rejection::NotDue),
        Body::Schedule(schedule) => schedule::settle(entity, schedule, facts),
        Body::Trigger(trigger) => trigger::settle(entity, trigger, facts),
        Body::Wait(wait) => wait::settle(entity, wait, facts),
    }
}
