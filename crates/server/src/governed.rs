//! Governed objects and gates, for every contract: the same shapes and rules, whichever envelope
//! they come in.

use crate::ask::Ask;
use crate::audit::{self, Note};
use crate::json;
use crate::limits::OBJECTS_PER_TENANT_MAX;
use crate::refusal::{self, Refusal};
use mainspring_api::Time;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::gate::{GateCommand, GateState};
use mainspring_kernel::entity::object::{
    Epistemic, Object, ObjectCommand, ObjectWish, Signals, Status, UnknownType,
};
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::governance::{Action, Gate, ObjectType, RiskTier, gate_id, object_id};
use mainspring_kernel::{Entity, EntityId, Principal, Rejection, Role, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who may say what is to be known of objects, and set gates.
pub(crate) const OPERATORS: &[Role] = &[Role::Operator];
/// How often a change is tried again that somebody else got ahead of.
const TRIES: usize = 8;

/// What is to be known of an object; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutGovernedObject {
    /// `low`, `medium` or `high`: how much harm a wrong move can do.
    risk_tier: Option<String>,
    /// `certain` or `uncertain`.
    epistemic: Option<String>,
    /// Why it is uncertain: `multipath`, `out_of_scope` or `ontic_unknowable`.
    unknown_type: Option<String>,
    /// How often it is verified by itself while it is uncertain. Saying it starts the count anew.
    auto_verify_budget: Option<u32>,
    /// How long the uncertainty may last; kept as it is written.
    uncertainty_ttl: Option<String>,
    /// Where the object stands, in the words of its kind.
    status: Option<String>,
    /// What speaks for it.
    signals: Option<GovernedSignals>,
    /// When something has to be done to it.
    next_action_at: Option<String>,
    /// What is enqueued by itself then; `none` for nothing.
    next_action: Option<String>,
}

/// What speaks for an object that was given up.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GovernedSignals {
    /// Somebody says that it should come back.
    reinstate_signal: bool,
    /// How often it was confirmed in use.
    reinforcement_count: u32,
    /// New evidence.
    new_evidence_count: u32,
    /// When it was last confirmed.
    last_reinforced_at: Option<String>,
    /// Since when it is stale.
    stale_since: Option<String>,
    /// How sure one is of it, from 0 to 1.
    confidence: Option<f64>,
}

/// A governed object.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GovernedObject {
    /// What kind of object.
    object_type: &'static str,
    /// Its name.
    object_id: String,
    /// How much harm a wrong move can do.
    risk_tier: &'static str,
    /// How far it is understood.
    epistemic: &'static str,
    /// Why not further.
    unknown_type: Option<&'static str>,
    /// How often it is verified by itself while it is uncertain; as configured if it does not say.
    auto_verify_budget: Option<u32>,
    /// How much of that is used up.
    auto_verify_used: u32,
    /// How often a verification was handed out since it is uncertain.
    verify_tries: u32,
    /// How long the uncertainty may last.
    uncertainty_ttl: Option<String>,
    /// Where it stands.
    status: Option<&'static str>,
    /// What speaks for it.
    signals: GovernedSignals,
    /// When something has to be done to it.
    pub(crate) next_action_at: Option<String>,
    /// What is enqueued by itself then.
    next_action: Option<&'static str>,
    /// What a worker called the last entry that tells of it.
    audit_event_id: Option<String>,
    /// How many of its jobs are held.
    held_jobs: usize,
    /// Grows with every change.
    version: u32,
    /// When it last changed.
    updated_at: String,
}

/// A gate is to be opened or closed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetGovernedGate {
    /// `pass` or `block`.
    state: String,
    /// Why.
    reason: Option<String>,
}

/// A gate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GovernedGate {
    /// Which gate.
    name: &'static str,
    /// `pass` or `block`.
    state: &'static str,
    /// Who set it last.
    set_by: Option<String>,
    /// Why.
    reason: Option<String>,
    /// When.
    updated_at: Option<String>,
}

/// All gates of a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct GovernedGates {
    /// The gates.
    pub(crate) items: Vec<GovernedGate>,
}

/// Says what is to be known of the object of the path.
pub(crate) async fn put(ask: &Ask, who: &Principal) -> Result<GovernedObject, Refusal> {
    let wire: PutGovernedObject = json::read(json::check(&ask.body)?)?;
    let wish = wish(&wire)?;
    let (kind, name) = path(ask)?;
    let id = object_id(&who.tenant, kind, name);
    for _ in 0..TRIES {
        let found = ask.engine().entity(id).await?;
        let before = found.as_ref().and_then(shown);
        let known = found.as_ref().and_then(object);
        let parked = known.map(|object| object.parked.clone());
        if found.is_none() && !has_room(ask, who, id).await? {
            return Err(refusal::too_many_objects(OBJECTS_PER_TENANT_MAX));
        }
        let command = ObjectCommand::Put {
            id,
            tenant: who.tenant.clone(),
            by: who.user.clone(),
            name: (kind, name.into()),
            version: found.as_ref().map_or(0, |entity| entity.version),
            wish: Box::new(wish.clone()),
            jobs: parked.unwrap_or_default(),
        };
        let tier = wish.risk_tier.max(known.map(|object| object.risk_tier));
        let note = Note {
            action: "object.put",
            object_type: "object",
            object_id: format!("{}:{name}", kind.as_str()),
            before: before.as_ref().and_then(audit::json),
            after: serde_json::from_slice(&ask.body).ok(),
            risk_tier: tier,
            ..Note::default()
        };
        match audit::change(ask, who, command.into(), note).await {
            Err(refusal) if refusal.code == "ENTITY_CHANGED" => {}
            outcome => {
                outcome?;
                return find(ask, id).await?.ok_or_else(|| unseen(who, Kind::Object));
            }
        }
    }
    Err(Rejection::EntityChanged { kind: Kind::Object }.into())
}

/// The object of the path.
pub(crate) async fn get(ask: &Ask, who: &Principal) -> Result<GovernedObject, Refusal> {
    let Ok((kind, name)) = path(ask) else { return Err(unseen(who, Kind::Object)) };
    let id = object_id(&who.tenant, kind, name);
    find(ask, id).await?.ok_or_else(|| unseen(who, Kind::Object))
}

/// An object by its id.
pub(crate) async fn find(ask: &Ask, id: EntityId) -> Result<Option<GovernedObject>, Refusal> {
    Ok(ask.engine().entity(id).await?.as_ref().and_then(shown))
}

/// Whether the object is there, or may be made.
pub(crate) async fn has_room(ask: &Ask, who: &Principal, id: EntityId) -> Result<bool, Refusal> {
    if ask.engine().entity(id).await?.is_some() {
        return Ok(true);
    }
    let all = EntityFilter::of(Kind::Object, Scope::Tenant(who.tenant.clone()));
    let known = ask.engine().count_entities(&all, OBJECTS_PER_TENANT_MAX).await?;
    Ok(known < OBJECTS_PER_TENANT_MAX)
}

/// Opens or closes the gate of the path. What an open gate lets go goes at once.
pub(crate) async fn set_gate(ask: &Ask, who: &Principal) -> Result<GovernedGate, Refusal> {
    let wire: SetGovernedGate = json::read(json::check(&ask.body)?)?;
    let state = GateState::parse(&wire.state)
        .ok_or_else(|| refusal::invalid("state", "must be pass or block"))?;
    let gate = gate_of(ask, who)?;
    for _ in 0..TRIES {
        let found = ask.engine().entity(gate_id(&who.tenant, gate)).await?;
        let command = GateCommand::Set {
            tenant: who.tenant.clone(),
            gate,
            version: found.as_ref().map_or(0, |entity| entity.version),
            state,
            by: who.user.clone(),
            reason: wire.reason.as_deref().map(Into::into),
        };
        let before = one_gate(ask, who, gate).await?;
        let note = Note {
            action: "gate.set",
            object_type: "gate",
            object_id: gate.as_str().to_owned(),
            before: audit::json(&before),
            after: serde_json::from_slice(&ask.body).ok(),
            reason: wire.reason.clone(),
            ..Note::default()
        };
        match audit::change(ask, who, command.into(), note).await {
            Err(refusal) if refusal.code == "ENTITY_CHANGED" => {}
            outcome => {
                outcome?;
                if state == GateState::Pass {
                    ask.engine().let_parked_go(&who.tenant).await?;
                }
                return one_gate(ask, who, gate).await;
            }
        }
    }
    Err(Rejection::EntityChanged { kind: Kind::Gate }.into())
}

/// The gate of the path.
pub(crate) async fn get_gate(ask: &Ask, who: &Principal) -> Result<GovernedGate, Refusal> {
    one_gate(ask, who, gate_of(ask, who)?).await
}

/// All gates of the caller's tenant.
pub(crate) async fn gates(ask: &Ask, who: &Principal) -> Result<Vec<GovernedGate>, Refusal> {
    let mut all = Vec::with_capacity(Gate::ALL.len());
    for gate in Gate::ALL {
        all.push(one_gate(ask, who, *gate).await?);
    }
    Ok(all)
}

async fn one_gate(ask: &Ask, who: &Principal, gate: Gate) -> Result<GovernedGate, Refusal> {
    let found = ask.engine().entity(gate_id(&who.tenant, gate)).await?;
    let card = found
        .as_ref()
        .and_then(|entity| if let Body::Gate(card) = &entity.body { Some(card) } else { None });
    Ok(GovernedGate {
        name: gate.as_str(),
        state: card.map_or(GateState::Pass, |card| card.state).as_str(),
        set_by: card.map(|card| card.by.to_string()),
        reason: card.and_then(|card| card.reason.as_deref().map(str::to_owned)),
        updated_at: found.as_ref().map(|entity| text(entity.updated_at)),
    })
}

fn gate_of(ask: &Ask, who: &Principal) -> Result<Gate, Refusal> {
    Gate::parse(ask.param()).ok_or_else(|| unseen(who, Kind::Gate))
}

/// What whoever asks for something that is not there is told.
fn unseen(who: &Principal, kind: Kind) -> Refusal {
    match who.is_admin() {
        true => Rejection::EntityUnknown { kind }.into(),
        false => refusal::denied(),
    }
}

/// The kind and name of the object of the path.
fn path(ask: &Ask) -> Result<(ObjectType, &str), Refusal> {
    let kind = ObjectType::parse(ask.param())
        .ok_or_else(|| refusal::invalid("object_type", "is no kind of object"))?;
    Ok((kind, ask.params.get(1).map_or("", String::as_str)))
}

fn wish(wire: &PutGovernedObject) -> Result<ObjectWish, Refusal> {
    fn word<T>(
        field: &'static str,
        text: &Option<String>,
        parse: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Refusal> {
        let unknown = || refusal::invalid(field, "is not one of the words of this field");
        text.as_deref().map(|text| parse(text).ok_or_else(unknown)).transpose()
    }
    let next_action = match wire.next_action.as_deref() {
        None => None,
        Some("none") => Some(None),
        Some(_) => Some(word("next_action", &wire.next_action, Action::parse)?),
    };
    Ok(ObjectWish {
        risk_tier: word("risk_tier", &wire.risk_tier, RiskTier::parse)?,
        epistemic: word("epistemic", &wire.epistemic, Epistemic::parse)?,
        unknown_type: word("unknown_type", &wire.unknown_type, UnknownType::parse)?,
        auto_verify_budget: wire.auto_verify_budget,
        uncertainty_ttl: wire.uncertainty_ttl.as_deref().map(Into::into),
        status: word("status", &wire.status, Status::parse)?,
        signals: wire.signals.as_ref().map(signals).transpose()?,
        next_action_at: instant("next_action_at", wire.next_action_at.as_deref())?,
        next_action,
    })
}

fn signals(wire: &GovernedSignals) -> Result<Signals, Refusal> {
    let confidence_millis = match wire.confidence {
        None => None,
        Some(sure) if (0.0..=1.0).contains(&sure) => Some((sure * 1_000.0).round() as u16),
        Some(_) => return Err(refusal::invalid("signals.confidence", "must be from 0 to 1")),
    };
    Ok(Signals {
        reinstate_signal: wire.reinstate_signal,
        reinforcement_count: wire.reinforcement_count,
        new_evidence_count: wire.new_evidence_count,
        last_reinforced_at: instant(
            "signals.last_reinforced_at",
            wire.last_reinforced_at.as_deref(),
        )?,
        stale_since: instant("signals.stale_since", wire.stale_since.as_deref())?,
        confidence_millis,
    })
}

fn instant(field: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Refusal> {
    let parse = |text: &str| text.parse::<Time>().map(|time| Timestamp(time.0));
    let bad = |_| refusal::invalid(field, "must be an RFC 3339 instant");
    text.map(|text| parse(text).map_err(bad)).transpose()
}

fn text(at: Timestamp) -> String {
    Time(at.0).to_jiff().to_string()
}

/// The object that an entity is.
pub(crate) fn object(entity: &Entity) -> Option<&Object> {
    if let Body::Object(object) = &entity.body { Some(object) } else { None }
}

/// An object as it is shown.
pub(crate) fn shown(entity: &Entity) -> Option<GovernedObject> {
    let object = object(entity)?;
    let signals = &object.signals;
    Some(GovernedObject {
        object_type: object.object_type.as_str(),
        object_id: object.object_id.to_string(),
        risk_tier: object.risk_tier.as_str(),
        epistemic: object.epistemic.as_str(),
        unknown_type: object.unknown_type.map(UnknownType::as_str),
        auto_verify_budget: object.auto_verify_budget,
        auto_verify_used: object.verifies_used,
        verify_tries: object.verify_tries,
        uncertainty_ttl: object.uncertainty_ttl.as_deref().map(str::to_owned),
        status: object.status.map(Status::as_str),
        signals: GovernedSignals {
            reinstate_signal: signals.reinstate_signal,
            reinforcement_count: signals.reinforcement_count,
            new_evidence_count: signals.new_evidence_count,
            last_reinforced_at: signals.last_reinforced_at.map(text),
            stale_since: signals.stale_since.map(text),
            confidence: signals.confidence_millis.map(|sure| f64::from(sure) / 1_000.0),
        },
        next_action_at: object.next_action_at.map(text),
        next_action: object.next_action.map(Action::as_str),
        audit_event_id: object.audit_event_id.as_deref().map(str::to_owned),
        held_jobs: object.parked.len(),
        version: entity.version,
        updated_at: text(entity.updated_at),
    })
}
