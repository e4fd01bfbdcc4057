//! Fixed values of governed objects, gates, audit trails and alerts.

use super::samples::{id, later, user};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::alert::{Acknowledged, Alert, Milli, Rule};
use mainspring_kernel::entity::audit::{AuditEntry, AuditHead, AuditNote, Fate};
use mainspring_kernel::entity::gate::{GateCard, GateState};
use mainspring_kernel::entity::object::{Epistemic, Object, Signals, Status, UnknownType};
use mainspring_kernel::governance::{Action, Gate, ObjectType, RiskTier};
use mainspring_kernel::{Timestamp, TokenId};

/// A governed object, made of whatever there is.
pub(crate) fn object(name: &str, at: Option<Timestamp>, small: u32) -> Body {
    let signals = Signals {
        reinstate_signal: true,
        reinforcement_count: small,
        new_evidence_count: 1,
        last_reinforced_at: at,
        stale_since: at,
        confidence_millis: Some(600),
    };
    Body::Object(Box::new(Object {
        risk_tier: RiskTier::High,
        epistemic: Epistemic::Uncertain,
        unknown_type: Some(UnknownType::OnticUnknowable),
        auto_verify_budget: Some(small),
        verifies_used: small,
        verify_tries: 2,
        uncertainty_ttl: Some("P7D".into()),
        status: Some(Status::StaleUncertain),
        signals,
        next_action_at: at,
        next_action: Some(Action::ReinstateCheck),
        alarm_at: at,
        audit_event_id: Some("aud_1".into()),
        parked: vec![id(3), id(4)],
        ..Object::plain(ObjectType::Experience, name)
    }))
}

/// A gate that is closed.
pub(crate) fn gate(reason: Option<&str>) -> Body {
    let reason = reason.map(Into::into);
    Body::Gate(GateCard { gate: Gate::Social, state: GateState::Block, by: user("ada"), reason })
}

/// Where an audit trail ends.
pub(crate) fn audit_head() -> Body {
    let (at, hash) = (later(9), [7; 32]);
    Body::AuditHead(AuditHead { seq: 12, hash, at, day: 20_700, changes: 3, denials: 1 })
}

/// A line of an audit trail, made of whatever there is.
pub(crate) fn audit_entry(text: Option<&str>, small: u32) -> Body {
    let boxed = |text: Option<&str>| text.map(Into::into);
    Body::AuditEntry(Box::new(AuditEntry {
        seq: u64::from(small),
        at: later(9),
        last_at: later(8),
        keep_until: later(9_000),
        note: AuditNote {
            fate: if text.is_some() { Fate::Done } else { Fate::Denied },
            user: user("ada"),
            token: text.map(|_| TokenId(77)),
            action: "gate.set".into(),
            object_type: "gate".into(),
            object_id: "risk".into(),
            before: boxed(text),
            after: boxed(text),
            reason: boxed(text),
            evidence_refs: text.into_iter().map(Into::into).collect(),
            trace_id: boxed(text),
            risk_tier: text.map(|_| RiskTier::High),
            decision_trace_id: boxed(text),
        },
        prev_hash: [1; 32],
        hash: [2; 32],
    }))
}

/// An object that nothing is known of.
pub(crate) fn plain_object() -> Body {
    Body::Object(Box::new(Object::plain(ObjectType::Memory, "mem_1")))
}

/// An alert about a subject, perhaps one that is over.
pub(crate) fn alert(subject: &str, over: Option<Timestamp>) -> Body {
    let note = over.map(|_| subject.into());
    let acknowledged = over.map(|at| Acknowledged { by: user("ada"), at, note });
    Body::Alert(Box::new(Alert {
        rule: Rule::NoWorker,
        subject: subject.into(),
        message: "nobody comes".into(),
        value: Milli(1_500),
        threshold: Milli::whole(1),
        raised_at: later(10),
        seen_at: later(20),
        count: 3,
        quiet_ms: 300_000,
        acknowledged,
        cleared_at: over,
    }))
}
