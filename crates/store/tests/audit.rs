//! Ten thousand ways of tampering with an audit trail as the stores keep it: records, by id. Both
//! stores have the same records and read them through the same codec and the same inspector, so
//! what is found here is found wherever somebody got at the bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::audit::{
    AuditCommand, AuditEntry, AuditHead, AuditNote, Fate, Inspector, entry_id,
};
use mainspring_kernel::governance::RiskTier;
use mainspring_kernel::{Entity, Event, Facts, TenantId, Timestamp, TokenId, UserId, decide};
use mainspring_store::record::{Names, decode_entity, encode_entity};
use std::collections::BTreeMap;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const KEEP_MS: u64 = 1_000_000_000;
const LINES: usize = 24;
const TAMPERINGS: u64 = 10_000;

/// A generator of numbers: xorshift, seeded.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

fn tenant() -> TenantId {
    TenantId::stored("acme".into())
}

/// A trail as a store has it: the records of its lines by number, and of its head.
#[derive(Clone, PartialEq)]
struct Trail {
    lines: BTreeMap<u64, Vec<u8>>,
    head: Vec<u8>,
}

fn encoded(entity: &Entity) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_entity(entity, &mut bytes);
    bytes
}

fn decoded(bytes: &[u8]) -> Option<Entity> {
    decode_entity(bytes, &mut Names::default()).ok()
}

fn written() -> Trail {
    let (mut head, mut lines) = (None::<Entity>, BTreeMap::new());
    for index in 0..LINES {
        let facts = Facts { entity: head.as_ref(), ..Facts::at(NOW.plus_millis(index as u64)) };
        let note = AuditNote {
            fate: if index % 5 == 0 { Fate::Denied } else { Fate::Done },
            user: UserId::stored(format!("user-{}", index % 3).into()),
            token: (index % 4 != 3).then_some(TokenId(index as u128 + 1)),
            action: "object.put".into(),
            object_type: "object".into(),
            object_id: format!("memory:m{index}").into(),
            before: Some("{\"risk_tier\":\"low\"}".into()),
            after: (index % 2 == 0).then(|| "{\"risk_tier\":\"high\"}".into()),
            reason: (index % 3 == 0).then(|| "asked for".into()),
            evidence_refs: vec!["job_1".into(); index % 4],
            trace_id: Some("t".into()),
            risk_tier: (index % 3 != 1).then_some(RiskTier::High),
            decision_trace_id: (index % 3 != 1).then(|| "dtr_1".into()),
        };
        let (note, is_unbounded, keep_ms) = (Box::new(note), false, KEEP_MS);
        let append =
            AuditCommand::Append { tenant: tenant(), note, keep_ms, is_unbounded, seen: None };
        for event in decide(&append.into(), &facts).unwrap().events {
            let Event::EntitySet(entity) = event else { panic!("{event:?}") };
            if let Body::AuditEntry(line) = &entity.body {
                lines.insert(line.seq, encoded(&entity));
            } else {
                head = Some(*entity);
            }
        }
    }
    Trail { lines, head: encoded(&head.unwrap()) }
}

/// Whether somebody who looks finds something: a record that cannot be read, one that is another's,
/// or what the inspector says.
fn is_found(trail: &Trail, anchor: (u64, [u8; 32])) -> bool {
    let Some(Body::AuditHead(head)) = decoded(&trail.head).map(|entity| entity.body) else {
        return true;
    };
    let now = NOW.plus_millis(1_000);
    let mut inspector = Inspector::new(tenant(), Some(head), Some(anchor), now);
    for (seq, bytes) in trail.lines.iter().rev() {
        let Some(entity) = decoded(bytes) else { return true };
        let Body::AuditEntry(line) = &entity.body else { return true };
        // A store lists by id.
        if entity.id != entry_id(&tenant(), *seq) {
            return true;
        }
        inspector.see(line);
    }
    inspector.verdict(KEEP_MS).1.is_some()
}

fn line(trail: &Trail, seq: u64) -> (Entity, AuditEntry) {
    let entity = decoded(&trail.lines[&seq]).unwrap();
    let Body::AuditEntry(line) = &entity.body else { panic!("a line") };
    let line = (**line).clone();
    (entity, line)
}

fn put(trail: &mut Trail, seq: u64, line: AuditEntry) {
    let (entity, _) = self::line(trail, seq);
    let body = Body::AuditEntry(Box::new(line));
    trail.lines.insert(seq, encoded(&Entity { body, ..entity }));
}

fn fit_head(trail: &mut Trail) {
    let entity = decoded(&trail.head).unwrap();
    let Body::AuditHead(head) = entity.body else { panic!("a head") };
    let last = trail.lines.keys().next_back().map(|seq| line(trail, *seq).1);
    let (seq, hash) = last.map_or((0, [0; 32]), |line| (line.seq, line.hash));
    let body = Body::AuditHead(AuditHead { seq, hash, ..head });
    trail.head = encoded(&Entity { body, ..entity });
}

/// Another word in a line, in any of its fields; one that everything after it may be made to fit.
fn edit(random: &mut Random, mut line: AuditEntry) -> AuditEntry {
    let other = |text: &Option<Box<str>>| match text {
        Some(_) => None,
        None => Some("".into()),
    };
    match random.below(16) {
        0 => line.note.object_id = "memory:other".into(),
        1 => line.note.user = UserId::stored("somebody".into()),
        2 => line.note.reason = Some("no reason".into()),
        3 => line.note.before = None,
        4 => line.at = line.at.plus_millis(1),
        5 => line.last_at = line.last_at.plus_millis(1),
        6 => line.keep_until = line.keep_until.plus_millis(1),
        7 => line.note.token = Some(TokenId(99)),
        8 => line.note.action = "object.get".into(),
        9 => line.note.object_type = "gate".into(),
        10 => line.note.after = other(&line.note.after),
        11 => line.note.trace_id = Some("u".into()),
        12 => {
            let was_high = line.note.risk_tier.is_some();
            line.note.risk_tier = (!was_high).then_some(RiskTier::Low);
        }
        13 => line.note.decision_trace_id = other(&line.note.decision_trace_id),
        14 => {
            line.note.fate = match line.note.fate {
                Fate::Done => Fate::Denied,
                Fate::Denied => Fate::Done,
            }
        }
        _ => line.note.evidence_refs.push("forged".into()),
    }
    line
}

fn tamper(random: &mut Random, trail: &mut Trail) -> &'static str {
    let seq = 1 + random.below(LINES) as u64;
    let other = 1 + random.below(LINES) as u64;
    match random.below(10) {
        0 => {
            let bytes = trail.lines.get_mut(&seq).unwrap();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            "a bit of a record"
        }
        1 => {
            let bytes = trail.lines.get_mut(&seq).unwrap();
            let (at, value) = (random.below(bytes.len()), random.below(256) as u8);
            match random.below(3) {
                0 => bytes.insert(at, value),
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
            "bytes put in or taken out"
        }
        2 => {
            trail.lines.remove(&seq);
            "a line taken away"
        }
        3 => {
            let (one, two) = (line(trail, seq).1, line(trail, other).1);
            put(trail, seq, two);
            put(trail, other, one);
            "two lines in each other's place"
        }
        4 => {
            let copy = line(trail, other).1;
            put(trail, seq, copy);
            "a line over another"
        }
        5 => {
            let from = seq;
            trail.lines.retain(|known, _| *known < from);
            if random.below(2) == 0 {
                fit_head(trail);
            }
            "the end cut off"
        }
        6 => {
            let mut forged = edit(random, line(trail, seq).1);
            if random.below(2) == 0 {
                forged.hash = forged.true_hash(&tenant());
            }
            put(trail, seq, forged);
            "a line that says something else"
        }
        7 => {
            // Everything after it made to fit, up to the head.
            let mut forged = edit(random, line(trail, seq).1);
            forged.hash = forged.true_hash(&tenant());
            let mut before = forged.hash;
            put(trail, seq, forged);
            for later in seq + 1..=LINES as u64 {
                let mut next = line(trail, later).1;
                next.prev_hash = before;
                next.hash = next.true_hash(&tenant());
                before = next.hash;
                put(trail, later, next);
            }
            fit_head(trail);
            "a whole new end"
        }
        8 => {
            trail.lines.retain(|known, _| *known > seq);
            "the beginning cut off"
        }
        _ => {
            let at = random.below(trail.head.len());
            trail.head[at] ^= 1 << random.below(8);
            "a bit of the head"
        }
    }
}

/// What a trail says, as far as anybody is told: not how often a record was written, nor when.
fn said(trail: &Trail) -> Option<(Vec<AuditEntry>, u64, [u8; 32])> {
    let Body::AuditHead(head) = decoded(&trail.head)?.body else { return None };
    let mut lines = Vec::new();
    for bytes in trail.lines.values() {
        let Body::AuditEntry(line) = decoded(bytes)?.body else { return None };
        lines.push(*line);
    }
    Some((lines, head.seq, head.hash))
}

#[test]
fn d10_ten_thousand_tamperings_are_found() {
    let trail = written();
    let (_, last) = line(&trail, LINES as u64);
    let anchor = (last.seq, last.hash);
    assert!(!is_found(&trail, anchor), "the trail is whole");
    let truth = said(&trail);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut found, mut by_way) = (0_u64, BTreeMap::<&str, u64>::new());
    while found < TAMPERINGS {
        let mut bad = trail.clone();
        let way = tamper(&mut random, &mut bad);
        // A line in its own place, or a bit beside what is said, is no tampering.
        if bad == trail || said(&bad) == truth {
            continue;
        }
        assert!(is_found(&bad, anchor), "{way} was not found");
        found += 1;
        *by_way.entry(way).or_default() += 1;
    }
    assert_eq!(by_way.len(), 10, "every way was tried: {by_way:?}");
    println!("{found} tamperings found: {by_way:?}");
}
