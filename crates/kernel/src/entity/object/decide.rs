//! How an object changes: by what is said of it, by what was done to it, and by time.

use super::{Epistemic, Object, ObjectCommand, ObjectWish, Status, UnknownType, outcome};
use crate::command::Submit;
use crate::decide::{Decision, Receipt};
use crate::entity::{Body, Entity, EntityId, Kind};
use crate::event::{Change, Event, JobEvent};
use crate::facts::Facts;
use crate::firing::{self, Ties};
use crate::governance::{self, Action, Gate, ObjectType, RiskTier};
use crate::id::JobId;
use crate::job::{Actor, Job, State};
use crate::limits::{HELD_LOOK_MS, NAME_BYTES_MAX, OBJECT_ID_BYTES_MAX, PARKED_MAX};
use crate::name::{QueueName, TenantId, UserId};
use crate::registry::QueueSpec;
use crate::rejection::Rejection;
use crate::text::refuse_control;
use crate::time::Timestamp;

pub(crate) fn decide(command: &ObjectCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    match command {
        ObjectCommand::Put { id, tenant, by, name, version, wish, .. } => {
            if facts.entity.map_or(0, |entity| entity.version) != *version {
                return Err(Rejection::EntityChanged { kind: Kind::Object });
            }
            check(&name.1, wish)?;
            let made = Maker { id: *id, tenant, by, name };
            Ok(put(made, wish, facts))
        }
        ObjectCommand::LetGo { .. } => {
            let unknown = Rejection::EntityUnknown { kind: Kind::Object };
            let entity = facts.entity.ok_or(unknown.clone())?;
            let Body::Object(object) = &entity.body else { return Err(unknown) };
            let mut next = (**object).clone();
            let mut events = let_go(&mut next, facts);
            events.push(set(entity, next, facts.now));
            Ok(Decision { events, receipt: Receipt::Done })
        }
    }
}

/// Whose object is made, if it is not there.
struct Maker<'a> {
    id: EntityId,
    tenant: &'a TenantId,
    by: &'a UserId,
    name: &'a (ObjectType, Box<str>),
}

fn put(maker: Maker<'_>, wish: &ObjectWish, facts: &Facts<'_>) -> Decision {
    let known = facts.entity.and_then(of);
    let before = known.cloned().unwrap_or_else(|| Object::plain(maker.name.0, &maker.name.1));
    let mut next = before.clone();
    merge(&mut next, wish);
    let mut events = let_go(&mut next, facts);
    if is_stricter(&before, &next) {
        // Every server must look at the object anew before it hands out another job: a change of
        // the queues is what each of them looks for in every commit.
        events.push(Event::QueueSet(watchword()));
    }
    events.push(match facts.entity {
        Some(entity) => set(entity, next, facts.now),
        None => made(maker.id, (maker.tenant, maker.by), next, facts.now),
    });
    Decision { events, receipt: Receipt::Done }
}

/// A queue that nobody uses. To set it says that something has changed, on every server.
fn watchword() -> QueueSpec {
    let name = QueueName::stored("gate:objects".into());
    QueueSpec::plain(name)
}

/// Whether fewer jobs may be handed out than before.
fn is_stricter(before: &Object, after: &Object) -> bool {
    let tells = |object: &Object| {
        (object.risk_tier, object.epistemic, object.unknown_type, object.auto_verify_budget)
    };
    tells(before) != tells(after)
        && (after.risk_tier == RiskTier::High || after.epistemic == Epistemic::Uncertain)
}

fn merge(object: &mut Object, wish: &ObjectWish) {
    let was = object.epistemic;
    object.risk_tier = wish.risk_tier.unwrap_or(object.risk_tier);
    object.epistemic = wish.epistemic.unwrap_or(object.epistemic);
    object.unknown_type = wish.unknown_type.or(object.unknown_type);
    if object.epistemic == Epistemic::Certain {
        object.unknown_type = None;
    }
    if object.epistemic != was {
        (object.verifies_used, object.verify_tries) = (0, 0);
    }
    if wish.auto_verify_budget.is_some() {
        object.auto_verify_budget = wish.auto_verify_budget;
        object.verifies_used = 0;
    }
    if wish.uncertainty_ttl.is_some() {
        object.uncertainty_ttl.clone_from(&wish.uncertainty_ttl);
    }
    object.status = wish.status.or(object.status);
    object.signals = wish.signals.unwrap_or(object.signals);
    object.next_action = wish.next_action.unwrap_or(object.next_action);
    object.next_action_at = wish.next_action_at.or(object.next_action_at);
    if wish.next_action_at.is_some() || wish.next_action.is_some() {
        object.alarm_at = object.next_action_at.filter(|_| object.next_action.is_some());
    }
}

fn check(name: &str, wish: &ObjectWish) -> Result<(), Rejection> {
    let invalid = |field, reason| Err(Rejection::FieldInvalid { field, reason });
    if name.is_empty() || name.len() > OBJECT_ID_BYTES_MAX || name.trim() != name {
        return invalid(
            "object_id",
            "must be 1 to 160 bytes long and not start or end with a space",
        );
    }
    refuse_control("object_id", name)?;
    if let Some(ttl) = &wish.uncertainty_ttl {
        if ttl.is_empty() || ttl.len() > NAME_BYTES_MAX {
            return invalid("uncertainty_ttl", "must be between 1 and 200 bytes long");
        }
        refuse_control("uncertainty_ttl", ttl)?;
    }
    if wish.unknown_type.is_some() && wish.epistemic == Some(Epistemic::Certain) {
        return invalid("unknown_type", "goes with an object that is uncertain");
    }
    Ok(())
}

/// What a job that was done leaves behind: the table's status, and when the next one is due.
pub(crate) fn acted(
    (entity, job): (Option<&Entity>, &Job),
    (action, next_action_at, audit_event_id): (Action, Option<Timestamp>, Option<&str>),
    now: Timestamp,
) -> Option<Event> {
    let (object_type, name) = governance::object_name(job)?;
    let known = entity.and_then(of);
    let mut object = known.cloned().unwrap_or_else(|| Object::plain(object_type, name));
    let done = outcome(&object, action, now);
    if let Some(status) = done.status {
        if matches!(status, Status::Stale | Status::StaleUncertain) {
            object.signals.stale_since = Some(now);
        }
        object.status = Some(status);
    }
    object.next_action_at = Some(next_action_at.unwrap_or(done.next_action_at));
    object.alarm_at = object.next_action_at.filter(|_| object.next_action.is_some());
    if let Some(id) = audit_event_id {
        object.audit_event_id = Some(id.into());
    }
    Some(match entity {
        Some(entity) => set(entity, object, now),
        None => made(governance::object_of(job)?, (&job.tenant, &job.user), object, now),
    })
}

/// One more verification of an uncertain object is handed out.
pub(crate) fn verified(entity: &Entity, object: &Object, now: Timestamp) -> Event {
    let next = Object {
        verifies_used: object.verifies_used.saturating_add(1),
        verify_tries: object.verify_tries.saturating_add(1),
        ..object.clone()
    };
    set(entity, next, now)
}

/// A job has to wait for the object, or for a gate; nothing if too many do already.
pub(crate) fn parked(
    (entity, object): (&Entity, &Object),
    job: JobId,
    gate: Option<Gate>,
    now: Timestamp,
) -> Option<Event> {
    if object.parked.len() >= PARKED_MAX {
        return None;
    }
    let mut next = object.clone();
    if !next.parked.contains(&job) {
        next.parked.push(job);
    }
    if gate.is_some() {
        let look_at = now.plus_millis(HELD_LOOK_MS);
        next.alarm_at = Some(next.alarm_at.map_or(look_at, |at| at.min(look_at)));
    }
    Some(set(entity, next, now))
}

/// Submits the next action, if it is due, and lets parked jobs go once the gates are open.
pub(crate) fn ring(entity: &Entity, object: &Object, at: Timestamp, facts: &Facts<'_>) -> Decision {
    let is_free = object.parked.is_empty() || facts.closed_gate.is_some();
    if !is_free && facts.watched.is_empty() {
        let receipt = Receipt::Wanting { jobs: object.parked.clone() };
        return Decision { events: Vec::new(), receipt };
    }
    let mut next = object.clone();
    let mut events = if is_free { Vec::new() } else { let_go(&mut next, facts) };
    let is_due = object.next_action_at.is_some_and(|due| due <= facts.now);
    if let (true, Some(job_type)) = (is_due, object.job_type()) {
        let (tenant, owner) = (entity.tenant.clone(), entity.owner.clone());
        let name = governance::subject(object.object_type, &object.object_id);
        let wish = Submit {
            subject: Some(name.into()),
            labels: governance::labels(object.object_type, &object.object_id),
            run_at: object.next_action_at,
            ..Submit::plain(tenant, owner, job_type)
        };
        // Once for each instant: the next one is set when the job was done.
        if let Ok(fired) = firing::fire(entity.id, at, Ties::default(), wish, facts) {
            events.extend(fired.events);
            next.next_action_at = None;
        }
    }
    // What could not be submitted, and what a gate holds, is looked at again.
    let look_at = facts.now.plus_millis(HELD_LOOK_MS);
    let is_waiting = !next.parked.is_empty() && next.risk_tier == RiskTier::High;
    let due_at = next.next_action_at.filter(|_| next.next_action.is_some());
    let due_at = due_at.map(|due_at| if due_at <= facts.now { look_at } else { due_at });
    next.alarm_at = due_at.into_iter().chain(is_waiting.then_some(look_at)).min();
    events.push(set(entity, next, facts.now));
    Decision { events, receipt: Receipt::Done }
}

/// Makes the parked jobs of `object` that still wait due at once.
fn let_go(object: &mut Object, facts: &Facts<'_>) -> Vec<Event> {
    let (shown, rest): (Vec<JobId>, Vec<JobId>) =
        object.parked.iter().partition(|id| facts.watched.iter().any(|(shown, _)| shown == *id));
    object.parked = rest;
    let waiting = |id: &JobId| {
        let (_, job) = facts.watched.iter().find(|(shown, _)| shown == id)?;
        job.filter(|job| matches!(job.state, State::Retrying { due_at } if due_at > facts.now))
    };
    let hastened = shown.iter().filter_map(waiting).map(|job| {
        Event::JobMoved(JobEvent {
            job: job.id,
            seq: job.seq + 1,
            at: facts.now.max(job.updated_at),
            actor: Actor::Reaper,
            change: Change::Hastened,
        })
    });
    hastened.collect()
}

/// The object that an entity is.
pub(crate) fn of(entity: &Entity) -> Option<&Object> {
    if let Body::Object(object) = &entity.body { Some(object) } else { None }
}

fn set(entity: &Entity, object: Object, now: Timestamp) -> Event {
    Event::EntitySet(Box::new(entity.changed(Body::Object(Box::new(object)), now)))
}

fn made(
    id: EntityId,
    (tenant, owner): (&TenantId, &UserId),
    object: Object,
    now: Timestamp,
) -> Event {
    Event::EntitySet(Box::new(Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: owner.clone(),
        created_at: now,
        updated_at: now,
        body: Body::Object(Box::new(object)),
    }))
}

impl UnknownType {
    /// Whether looking again cannot help.
    pub const fn is_unknowable(self) -> bool {
        matches!(self, UnknownType::OnticUnknowable)
    }
}
