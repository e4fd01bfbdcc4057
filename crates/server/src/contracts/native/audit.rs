//! The audit trail: reading it, and seeing whether it is whole.

use super::filters;
use crate::anchor::hex;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::audit::raw;
use crate::cursor;
use crate::limits::{AUDIT_PAGE, PAGE_MAX, POSITION_MAX};
use crate::refusal::{self, Refusal};
use crate::seal::inspect::{Verdict, inspect};
use mainspring_api as api;
use mainspring_engine::store::{EntityFilter, Scope};
use mainspring_kernel::entity::audit::{AuditEntry, AuditHead, Inspector, head_id};
use mainspring_kernel::entity::{Body, EntityId, Kind};
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::governance::RiskTier;
use mainspring_kernel::limits::NAME_BYTES_MAX;
use mainspring_kernel::{Entity, Principal};

/// What can be asked of the list.
pub(super) const FILTERS: [(&str, &str); 6] = [
    ("limit", "Lines of a page, up to 100."),
    ("cursor", "Where the page starts: `next_cursor` of the one before."),
    ("action", "Of this action only."),
    ("object_type", "Of this kind of thing only."),
    ("object_id", "Of this thing only."),
    ("actor", "Of this person only."),
];

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&FILTERS.map(|(name, _)| name))?;
    let limit = query.limit()?;
    let mut asked: Vec<(&'static str, String)> = Vec::new();
    for name in ["object_id", "actor", "action", "object_type"] {
        asked.extend(filters::bounded(&query, name, NAME_BYTES_MAX)?.map(|value| (name, value)));
    }
    // The index knows one field at a time; the others are asked of what it finds.
    let is_indexed = |(name, _): &&(&'static str, String)| matches!(*name, "object_id" | "actor");
    let field = asked.iter().find(is_indexed);
    let field = field.map(|(name, value)| ((*name).to_owned(), value.clone()));
    let filter = EntityFilter { field, ..lines(&who) };
    let place = place(&who, &asked);
    let mut before =
        filters::before(&query, place)?.map(|bits| EntityId { kind: Kind::AuditEntry, bits });
    let (mut items, mut next) = (Vec::new(), None);
    // A page may look through so many lines that it does not show; the next one goes on.
    for _ in 0..PAGE_MAX {
        let page = ask.engine().entities(&filter, before, limit - items.len()).await?;
        let wanted = page.items.iter().filter_map(entry).filter(|entry| is_asked(entry, &asked));
        items.extend(wanted.map(shown));
        next = page.next;
        before = page.next;
        if items.len() >= limit || page.next.is_none() {
            break;
        }
    }
    let next_cursor = next.map(|next| cursor::write(place, next.bits));
    Ok(Reply::data(&api::Page { items, next_cursor, total: None, total_at_least: None }))
}

/// What can be asked of the verdict.
pub(super) const VERIFY: [(&str, &str); 1] = [(
    "before",
    "Compare moves of jobs before this position only: `history.next` of the last one.",
)];

pub(super) async fn verify(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let until = ask.query(&VERIFY.map(|(name, _)| name))?.number("before")?;
    if until.is_some_and(|until| until > POSITION_MAX) {
        return Err(refusal::invalid("before", format_args!("must be at most {POSITION_MAX}")));
    }
    let head = ask.engine().entity(head_id(&who.tenant)).await?.and_then(head);
    let (anchor, now) = (ask.app.anchor.of(&who.tenant), ask.engine().now());
    let mut inspector = Inspector::new(who.tenant.clone(), head, anchor, now);
    let (filter, mut before) = (lines(&who), None);
    loop {
        let page = ask.engine().entities(&filter, before, AUDIT_PAGE).await?;
        // Lines that came after the head was read are not its business.
        let seen = |entry: &&AuditEntry| head.is_none_or(|head| entry.seq <= head.seq);
        page.items.iter().filter_map(entry).filter(seen).for_each(|entry| inspector.see(entry));
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    let keep_ms = u64::try_from(ask.app.config.audit_keep.as_millis()).unwrap_or(u64::MAX);
    let checked = match inspector.verdict(keep_ms) {
        (checked, None) => checked,
        (checked, Some(seq)) => return Err(refusal::audit_broken(checked, seq)),
    };
    match inspect(&ask, until).await? {
        Verdict::Whole(history) => {
            let (valid, first_bad_seq) = (true, None);
            let history = Some(history);
            Ok(Reply::data(&api::audit::AuditVerdict { valid, checked, first_bad_seq, history }))
        }
        Verdict::Changed(after, to) => Err(refusal::history_broken(checked, (after, to))),
    }
}

fn lines(who: &Principal) -> EntityFilter {
    EntityFilter::of(Kind::AuditEntry, Scope::Tenant(who.tenant.clone()))
}

fn place(who: &Principal, asked: &[(&'static str, String)]) -> Digest {
    let mut parts = vec![&b"audit"[..], who.tenant.as_str().as_bytes()];
    for (name, value) in asked {
        parts.extend([name.as_bytes(), value.as_bytes()]);
    }
    digest(&parts)
}

fn entry(entity: &Entity) -> Option<&AuditEntry> {
    if let Body::AuditEntry(entry) = &entity.body { Some(entry) } else { None }
}

fn head(entity: Entity) -> Option<AuditHead> {
    if let Body::AuditHead(head) = entity.body { Some(head) } else { None }
}

fn is_asked(entry: &AuditEntry, asked: &[(&'static str, String)]) -> bool {
    asked.iter().all(|(name, value)| {
        let has = match *name {
            "action" => &*entry.note.action,
            "object_type" => &*entry.note.object_type,
            "object_id" => &*entry.note.object_id,
            _ => entry.note.user.as_str(),
        };
        has == value
    })
}

fn shown(entry: &AuditEntry) -> api::audit::AuditLine {
    let note = &entry.note;
    let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
    api::audit::AuditLine {
        seq: entry.seq,
        at: api::Time(entry.at.0),
        actor: api::audit::AuditActor {
            user_id: note.user.to_string(),
            token_id: note.token.map(|token| token.to_string()),
        },
        action: note.action.to_string(),
        outcome: entry.state().to_owned(),
        object_type: note.object_type.to_string(),
        object_id: note.object_id.to_string(),
        before: note.before.as_deref().and_then(raw),
        after: note.after.as_deref().and_then(raw),
        reason: text(&note.reason),
        evidence_refs: note.evidence_refs.iter().map(ToString::to_string).collect(),
        trace_id: text(&note.trace_id),
        risk_tier: note.risk_tier.map(RiskTier::as_str).map(str::to_owned),
        decision_trace_id: text(&note.decision_trace_id),
        prev_hash: hex(&entry.prev_hash),
        hash: hex(&entry.hash),
    }
}
