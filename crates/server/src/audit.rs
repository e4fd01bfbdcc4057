//! Writing the audit trail: a change of what is governed or administered is committed together with
//! the line that tells of it, or not at all; what is refused for want of a role is told, too.

use crate::app::App;
use crate::ask::Ask;
use crate::refusal::{Kind, Refusal};
use crate::route::Route;
use crate::seal;
use hyper::Method;
use mainspring_kernel::entity::audit::{AuditCommand, AuditNote, Fate, Seen};
use mainspring_kernel::governance::RiskTier;
use mainspring_kernel::sealing::Seal;
use mainspring_kernel::{Command, DlqItem, EntityId, Principal, Receipt, Rejection, Role, UserId};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a line tells of a change, besides who made it.
#[derive(Debug, Default)]
pub(crate) struct Note {
    /// What was done.
    pub(crate) action: &'static str,
    /// To what kind of thing.
    pub(crate) object_type: &'static str,
    /// To which one.
    pub(crate) object_id: String,
    /// What it was.
    pub(crate) before: Option<Value>,
    /// What was asked for, or what it is.
    pub(crate) after: Option<Value>,
    /// Why.
    pub(crate) reason: Option<String>,
    /// What proves it.
    pub(crate) evidence_refs: Vec<String>,
    /// How much harm it could do.
    pub(crate) risk_tier: Option<RiskTier>,
    /// The decision behind it; a high risk gets one of its own.
    pub(crate) decision_trace_id: Option<String>,
    /// What `before` tells of: nothing is done if it has changed since it was read.
    pub(crate) seen: Option<Seen>,
    /// Whether the line is written however many there were today.
    pub(crate) is_owed: bool,
}

/// What a thing looks like, for a line.
pub(crate) fn json(thing: &impl Serialize) -> Option<Value> {
    serde_json::to_value(thing).ok()
}

/// The note of a step with a dead-letter item.
pub(crate) fn of_item(command: &Command, item: &DlqItem, reason: Option<String>) -> Note {
    Note {
        action: command.name(),
        object_type: "dlq_item",
        object_id: item.id.to_string(),
        before: Some(Value::from(item.state.as_str())),
        reason,
        evidence_refs: vec![item.job.id.to_string()],
        ..Note::default()
    }
}

/// The note of a step with a schedule.
pub(crate) fn of_schedule(action: &'static str, id: EntityId) -> Note {
    Note { action, object_type: "schedule", object_id: id.to_string(), ..Note::default() }
}

/// Makes a change and writes the line of it, both or neither.
pub(crate) async fn change(
    ask: &Ask,
    who: &Principal,
    command: Command,
    note: Note,
) -> Result<Receipt, Refusal> {
    let done = change_together(ask, who, vec![command], note).await?;
    done.into_iter().next().ok_or_else(crate::refusal::internal)
}

/// How often a change is tried again that somebody else got ahead of.
pub(crate) const TRIES: usize = 8;

/// Whether what a line says was so before had changed when the change was to be made: it is read
/// and tried again, so that the line tells the truth.
pub(crate) fn has_changed<T>(outcome: &Result<T, Refusal>) -> bool {
    outcome.as_ref().is_err_and(|no| no.code == "ENTITY_CHANGED")
}

/// Makes several changes, of which one line tells: all or none. What turns out to be done already
/// is answered again, without a line.
pub(crate) async fn change_together(
    ask: &Ask,
    who: &Principal,
    mut commands: Vec<Command>,
    note: Note,
) -> Result<Vec<Receipt>, Refusal> {
    commands.push(line(&ask.app, who, note, Fate::Done, ask.trace.as_deref()));
    let receipt = ask.engine().execute_one(Command::Together(commands)).await??;
    let Receipt::Together(mut parts) = receipt else { return Ok(vec![receipt]) };
    if let Some(Receipt::Audited { seq, hash }) = parts.last() {
        ask.app.anchor.note(&who.tenant, *seq, *hash);
        parts.pop();
    }
    Ok(parts)
}

/// Writes that somebody was refused what they may not do: for want of a role, because it is not
/// theirs, or because it takes a second person or an open gate. Only what changes something counts;
/// a line that cannot be written keeps nobody from being told no.
pub(crate) async fn denied(
    app: &App,
    route: &Route,
    (who, path): (&Principal, &str),
    no: &Refusal,
) {
    if route.method != Method::GET && is_told(route.path, no) {
        let path = &path[..path.floor_char_boundary(DENIED_PATH_BYTES)];
        let about = ("route", format!("{} {path}", route.method));
        attempted(app, who, about, no).await;
    }
}

/// Writes that somebody was refused something.
pub(crate) async fn attempted(
    app: &App,
    who: &Principal,
    (object_type, object_id): (&'static str, String),
    no: &Refusal,
) {
    let note = Note {
        action: "access.denied",
        object_type,
        object_id,
        reason: Some(format!("{}: {}", no.code, no.message)),
        ..Note::default()
    };
    let line = line(app, who, note, Fate::Denied, None);
    if let Ok(Ok(Receipt::Audited { seq, hash })) = app.engine.execute_one(line).await {
        app.anchor.note(&who.tenant, seq, hash);
    }
}

/// Whether a refusal on a route is told. A governed job is tried at by many routes; an approval
/// that is refused is told whatever was wrong with it.
fn is_told(path: &str, no: &Refusal) -> bool {
    let rejection = no.rejection.as_deref();
    let is_governed = rejection.is_some_and(Rejection::is_of_governance);
    let is_approval = path.ends_with("/approve") && no.kind == Kind::Conflict;
    matches!(rejection, Some(Rejection::JobGoverned))
        || is_sensitive(path) && (no.kind == Kind::Denied || is_governed || is_approval)
}

/// The line of a seal, which the server itself writes.
pub(crate) fn of_seal(app: &App, sealed: &Seal) -> Command {
    AuditCommand::Append {
        tenant: seal::tenant(),
        note: Box::new(AuditNote {
            fate: Fate::Done,
            user: UserId::stored("mainspring".into()),
            token: None,
            action: seal::ACTION.into(),
            object_type: seal::OBJECT.0.into(),
            object_id: seal::OBJECT.1.into(),
            before: None,
            after: Some(seal::told(sealed).to_string().into()),
            reason: None,
            evidence_refs: Vec::new(),
            trace_id: None,
            risk_tier: None,
            decision_trace_id: None,
        }),
        keep_ms: keep_ms(app),
        is_unbounded: true,
        seen: None,
    }
    .into()
}

fn keep_ms(app: &App) -> u64 {
    u64::try_from(app.config.audit_keep.as_millis()).unwrap_or(u64::MAX)
}

/// What a line keeps of the path that was asked for.
const DENIED_PATH_BYTES: usize = 150;

/// Whether a route is about what is governed or administered.
fn is_sensitive(path: &str) -> bool {
    const PATHS: [&str; 12] = [
        "/api/v1/internal/",
        "/api/v1/tenants",
        "/api/v1/tokens",
        "/api/v1/types",
        "/api/v1/queues",
        "/api/v1/dlq",
        "/api/v1/objects",
        "/api/v1/gates",
        "/api/v1/alerts",
        "/api/v1/bulk",
        "/api/v1/subscriptions",
        "/scheduler/",
    ];
    PATHS.iter().any(|sensitive| path.starts_with(sensitive))
}

fn line(app: &App, who: &Principal, note: Note, fate: Fate, trace: Option<&str>) -> Command {
    let is_high = note.risk_tier == Some(RiskTier::High);
    let made = || format!("dtr_{:032x}", app.engine.fresh_bits());
    let decision = note.decision_trace_id.or_else(|| is_high.then(made));
    let text = |value: Option<Value>| value.map(|value| value.to_string().into());
    let is_owed = note.is_owed || who.roles.any(&[Role::Operator]);
    AuditCommand::Append {
        tenant: who.tenant.clone(),
        note: Box::new(AuditNote {
            fate,
            user: who.user.clone(),
            token: Some(who.token),
            action: note.action.into(),
            object_type: note.object_type.into(),
            object_id: note.object_id.into(),
            before: text(note.before),
            after: text(note.after),
            reason: note.reason.map(Into::into),
            evidence_refs: note.evidence_refs.into_iter().map(Into::into).collect(),
            trace_id: trace.map(Into::into),
            risk_tier: note.risk_tier,
            decision_trace_id: decision.map(Into::into),
        }),
        keep_ms: keep_ms(app),
        is_unbounded: fate == Fate::Done && is_owed,
        seen: note.seen.map(Box::new),
    }
    .into()
}

/// Text that was kept of a value, as a value again.
pub(crate) fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}
