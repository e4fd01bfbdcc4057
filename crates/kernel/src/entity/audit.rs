//! The audit trail: one line for every change of what is governed or administered, and for every
//! sensitive attempt that was refused. A line is written in the commit of what it tells of, is
//! never changed, and goes when it is past keeping.
//!
//! Each tenant has a chain of its own. A line has the hash of the line before it, and its own hash
//! covers that and everything it says, so no line can be changed, moved or left out without every
//! later hash being wrong. The head knows the last one; a copy of that is kept outside of the
//! store, because whoever can write there could make a whole new chain.

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::Command;
use crate::decide::{Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::{digest, number};
use crate::governance::RiskTier;
use crate::id::TokenId;
use crate::limits::{
    AUDIT_DENIALS_PER_DAY_MAX, AUDIT_EVIDENCE_MAX, AUDIT_PER_DAY_MAX, AUDIT_TEXT_BYTES_MAX,
    MESSAGE_BYTES_MAX, NAME_BYTES_MAX,
};
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::registry::{QueueSpec, TypeSpec};
use crate::rejection::Rejection;
use crate::text::cleaned;
use crate::time::Timestamp;
use sha2::{Digest as _, Sha256};

/// A SHA-256 hash.
pub type Hash = [u8; 32];

/// What stands before the first line.
pub const START: Hash = [0; 32];

/// Whether it came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was done.
    Done,
    /// It was refused.
    Denied,
}

/// What a line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditNote {
    /// Whether it came about.
    pub fate: Fate,
    /// Who.
    pub user: UserId,
    /// With which token.
    pub token: Option<TokenId>,
    /// Did what.
    pub action: Box<str>,
    /// To what kind of thing.
    pub object_type: Box<str>,
    /// To which one.
    pub object_id: Box<str>,
    /// What it was, as JSON text.
    pub before: Option<Box<str>>,
    /// What it is, as JSON text.
    pub after: Option<Box<str>>,
    /// Why.
    pub reason: Option<Box<str>>,
    /// What proves it.
    pub evidence_refs: Vec<Box<str>>,
    /// In which trace.
    pub trace_id: Option<Box<str>>,
    /// How much harm it could do.
    pub risk_tier: Option<RiskTier>,
    /// The decision behind it; needed where the risk is high.
    pub decision_trace_id: Option<Box<str>>,
}

/// A line of the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// 1, 2, 3… without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// When the line before it was written; the epoch for the first.
    pub last_at: Timestamp,
    /// Until when it is kept.
    pub keep_until: Timestamp,
    /// What it tells.
    pub note: AuditNote,
    /// The hash of the line before it.
    pub prev_hash: Hash,
    /// Its own.
    pub hash: Hash,
}

impl AuditEntry {
    /// Whether what it tells of was done.
    pub const fn state(&self) -> &'static str {
        match self.note.fate {
            Fate::Done => "done",
            Fate::Denied => "denied",
        }
    }

    /// The hash that it must have.
    pub fn true_hash(&self, tenant: &TenantId) -> Hash {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        let note = &self.note;
        part(&self.prev_hash);
        part(tenant.as_str().as_bytes());
        for number in [self.seq.cast_signed(), self.at.0, self.last_at.0, self.keep_until.0] {
            part(&number.to_be_bytes());
        }
        part(self.state().as_bytes());
        part(note.user.as_str().as_bytes());
        let token = note.token.map(|token| token.0.to_be_bytes());
        part(token.as_ref().map_or(&[], |bits| &bits[..]));
        for text in [&note.action, &note.object_type, &note.object_id] {
            part(text.as_bytes());
        }
        let rest = [&note.before, &note.after, &note.reason, &note.trace_id];
        for text in rest.into_iter().chain([&note.decision_trace_id]) {
            // Nothing and an empty text are not the same.
            part(&[u8::from(text.is_some())]);
            part(text.as_deref().unwrap_or("").as_bytes());
        }
        part(note.risk_tier.map_or("", RiskTier::as_str).as_bytes());
        part(&(note.evidence_refs.len() as u64).to_be_bytes());
        note.evidence_refs.iter().for_each(|text| part(text.as_bytes()));
        hasher.finalize().into()
    }
}

/// Where a trail ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditHead {
    /// The number of the last line.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it was written.
    pub at: Timestamp,
    /// The day of it, counted from 1970.
    pub day: i64,
    /// Changes of that day.
    pub changes: u32,
    /// Refused attempts of that day.
    pub denials: u32,
}

impl AuditHead {
    const NONE: AuditHead =
        AuditHead { seq: 0, hash: START, at: Timestamp::EPOCH, day: 0, changes: 0, denials: 0 };
}

/// What can be asked of an audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditCommand {
    /// Write a line.
    Append {
        /// Whose trail.
        tenant: TenantId,
        /// What to write.
        note: Box<AuditNote>,
        /// For how long, in milliseconds.
        keep_ms: u64,
        /// Whether whoever acts may write as much as there is to write: whoever runs the tenant.
        is_unbounded: bool,
        /// What the line says was so before; if it is not, nothing is done.
        seen: Option<Box<Seen>>,
    },
}

/// What somebody read before they made a change, of which the line tells as what was before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A type, if it was registered.
    Type(JobType, Option<Box<TypeSpec>>),
    /// A queue, if it was configured.
    Queue(QueueName, Option<QueueSpec>),
    /// An entity and its version; zero if it was not there.
    Entity(EntityId, u32),
}

impl Seen {
    /// Whether it still is as it was seen.
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match self {
            Seen::Type(_, spec) => facts.job_type == spec.as_deref(),
            Seen::Queue(name, spec) => {
                // One that nobody configured is a plain one, which stores may or may not know.
                let plain = QueueSpec::plain(name.clone());
                facts.queue.unwrap_or(&plain) == spec.as_ref().unwrap_or(&plain)
            }
            Seen::Entity(_, version) => facts.seen.map_or(0, |it| it.version) == *version,
        }
    }
}

impl AuditCommand {
    pub(super) fn entity(&self) -> EntityId {
        let AuditCommand::Append { tenant, .. } = self;
        head_id(tenant)
    }

    /// What must be as it was seen.
    pub fn seen(&self) -> Option<&Seen> {
        let AuditCommand::Append { seen, .. } = self;
        seen.as_deref()
    }

    pub(super) fn text_bytes(&self) -> usize {
        let AuditCommand::Append { note, .. } = self;
        [&note.before, &note.after, &note.reason].into_iter().flatten().map(|it| it.len()).sum()
    }
}

impl From<AuditCommand> for Command {
    fn from(command: AuditCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Audit(command)))
    }
}

/// The id of the head of a tenant's trail.
pub fn head_id(tenant: &TenantId) -> EntityId {
    let bits = u128::from_be_bytes(digest(&[b"audit head", tenant.as_str().as_bytes()]).0);
    EntityId { kind: Kind::AuditHead, bits }
}

/// The id of a line: those of one tenant are in the order of their numbers.
pub fn entry_id(tenant: &TenantId, seq: u64) -> EntityId {
    let tenant = number(digest(&[b"audit", tenant.as_str().as_bytes()]));
    EntityId { kind: Kind::AuditEntry, bits: (u128::from(tenant) << 64) | u128::from(seq) }
}

pub(super) fn decide(command: &AuditCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let AuditCommand::Append { tenant, note, keep_ms, is_unbounded, seen } = command;
    if seen.as_ref().is_some_and(|seen| !seen.holds(facts)) {
        return Err(Rejection::EntityChanged { kind: Kind::AuditEntry });
    }
    if note.risk_tier == Some(RiskTier::High) && note.decision_trace_id.is_none() {
        return Err(Rejection::DecisionMissing);
    }
    let known = facts
        .entity
        .and_then(|entity| if let Body::AuditHead(head) = entity.body { Some(head) } else { None });
    let head = next_head(known.unwrap_or(AuditHead::NONE), note.fate, facts.now);
    let head = match head {
        Err(full) if *is_unbounded => known.ok_or(full)?,
        head => head?,
    };
    let at = facts.now.max(head.at);
    let mut entry = AuditEntry {
        seq: head.seq + 1,
        at,
        last_at: head.at,
        keep_until: at.plus_millis(*keep_ms),
        note: kept(note),
        prev_hash: head.hash,
        hash: START,
    };
    entry.hash = entry.true_hash(tenant);
    let next = AuditHead { seq: entry.seq, hash: entry.hash, at, ..head };
    let made = |id, body| Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: note.user.clone(),
        created_at: at,
        updated_at: at,
        body,
    };
    let line = made(entry_id(tenant, entry.seq), Body::AuditEntry(Box::new(entry)));
    let head = match facts.entity {
        Some(entity) => entity.changed(Body::AuditHead(next), facts.now),
        None => made(head_id(tenant), Body::AuditHead(next)),
    };
    let events = vec![Event::EntitySet(Box::new(line)), Event::EntitySet(Box::new(head))];
    Ok(Decision { events, receipt: Receipt::Audited { seq: next.seq, hash: next.hash } })
}

/// The head with one more line counted. What may be written in a day is bounded, so that nobody
/// fills the store; refused attempts have a bound of their own, so that they cannot keep changes
/// from being made.
fn next_head(head: AuditHead, fate: Fate, now: Timestamp) -> Result<AuditHead, Rejection> {
    let day = now.as_millis().div_euclid(24 * 3600 * 1000);
    let mut head = match head.day == day {
        true => head,
        false => AuditHead { day, changes: 0, denials: 0, ..head },
    };
    let (count, most) = match fate {
        Fate::Done => (&mut head.changes, AUDIT_PER_DAY_MAX),
        Fate::Denied => (&mut head.denials, AUDIT_DENIALS_PER_DAY_MAX),
    };
    if *count >= most {
        return Err(Rejection::AuditFull);
    }
    *count += 1;
    Ok(head)
}

/// A note as it is kept: within bounds.
fn kept(note: &AuditNote) -> AuditNote {
    let cut = |text: &str, most: usize| -> Box<str> {
        let text = cleaned(&text[..text.floor_char_boundary(most)]).into_owned();
        text[..text.floor_char_boundary(most)].into()
    };
    let shown = |text: &str| -> Box<str> {
        match text.len() <= AUDIT_TEXT_BYTES_MAX {
            true => cut(text, AUDIT_TEXT_BYTES_MAX),
            false => {
                let hash = u128::from_be_bytes(digest(&[text.as_bytes()]).0);
                format!("{{\"digest\":\"{hash:032x}\",\"bytes\":{}}}", text.len()).into()
            }
        }
    };
    AuditNote {
        action: cut(&note.action, NAME_BYTES_MAX),
        object_type: cut(&note.object_type, NAME_BYTES_MAX),
        object_id: cut(&note.object_id, NAME_BYTES_MAX),
        before: note.before.as_deref().map(shown),
        after: note.after.as_deref().map(shown),
        reason: note.reason.as_deref().map(|text| cut(text, MESSAGE_BYTES_MAX)),
        evidence_refs: (note.evidence_refs.iter().take(AUDIT_EVIDENCE_MAX))
            .map(|text| cut(text, NAME_BYTES_MAX))
            .collect(),
        trace_id: note.trace_id.as_deref().map(|text| cut(text, NAME_BYTES_MAX)),
        ..note.clone()
    }
}

/// A line that is past keeping goes.
pub(super) fn ring(entity: &Entity) -> Decision {
    let gone = Event::EntityRemoved { entity: entity.id, version: entity.version + 1 };
    Decision { events: vec![gone], receipt: Receipt::Done }
}

/// Looks through a trail from its end to its beginning, a line at a time.
#[derive(Debug)]
pub struct Inspector {
    tenant: TenantId,
    now: Timestamp,
    /// What is known outside of the store: a line and its hash.
    anchor: Option<(u64, Hash)>,
    is_anchored: bool,
    /// The number and hash that the next line must have.
    expected: Option<(u64, Hash)>,
    /// The line seen last: its number, and when the one before it was written.
    last: Option<(u64, Timestamp)>,
    checked: u64,
    first_bad: Option<u64>,
    /// When the last line was written.
    head_at: Timestamp,
}

impl Inspector {
    /// Of the trail of `tenant`, whose head stands so, and which had the line of `anchor`.
    pub fn new(
        tenant: TenantId,
        head: Option<AuditHead>,
        anchor: Option<(u64, Hash)>,
        now: Timestamp,
    ) -> Self {
        let expected = head.map(|head| (head.seq, head.hash));
        let is_cut = match (anchor, head) {
            (Some((seq, _)), Some(head)) => head.seq < seq,
            (Some(_), None) => true,
            (None, _) => false,
        };
        Inspector {
            tenant,
            now,
            anchor,
            is_anchored: false,
            expected,
            last: None,
            checked: 0,
            first_bad: anchor.map(|(seq, _)| seq).filter(|_| is_cut),
            head_at: head.map_or(Timestamp::EPOCH, |head| head.at),
        }
    }

    /// The next line, going back.
    pub fn see(&mut self, entry: &AuditEntry) {
        self.checked += 1;
        let is_in_place = self.expected == Some((entry.seq, entry.hash));
        let is_whole = entry.true_hash(&self.tenant) == entry.hash;
        let is_anchored =
            self.anchor.is_none_or(|(seq, hash)| seq != entry.seq || hash == entry.hash);
        self.is_anchored |= self.anchor.is_some_and(|(seq, _)| seq == entry.seq);
        if !is_in_place || !is_whole || !is_anchored {
            self.found(entry.seq);
        }
        self.expected = Some((entry.seq.saturating_sub(1), entry.prev_hash));
        self.last = Some((entry.seq, entry.last_at));
    }

    fn found(&mut self, seq: u64) {
        self.first_bad = Some(self.first_bad.map_or(seq, |known| known.min(seq)));
    }

    /// How many lines there were, and the first that is wrong or missing; `keep_ms` is for how long
    /// lines are kept.
    pub fn verdict(mut self, keep_ms: u64) -> (u64, Option<u64>) {
        match (self.last, self.expected) {
            // Nothing before the first line.
            (Some((1, ..)), Some((_, hash))) if hash != START => self.found(1),
            (Some((1, ..)), _) => {}
            // The line before was kept for as long as it was to be, or somebody took it away.
            (Some((seq, last_at)), _) if last_at.plus_millis(keep_ms) > self.now => {
                self.found(seq - 1);
            }
            (Some(_), _) | (None, None) => {}
            // A head without its line: that may be past keeping, if it is old enough.
            (None, Some((seq, _))) if seq > 0 && !self.is_past_keeping(keep_ms) => self.found(seq),
            (None, Some(_)) => {}
        }
        let is_lost = self.anchor.is_some_and(|(seq, _)| {
            !self.is_anchored && self.last.is_none_or(|(first, ..)| first <= seq)
        });
        if let (true, Some((seq, _))) = (is_lost && self.checked > 0, self.anchor) {
            self.found(seq);
        }
        (self.checked, self.first_bad)
    }

    fn is_past_keeping(&self, keep_ms: u64) -> bool {
        self.head_at.plus_millis(keep_ms) <= self.now
    }
}
