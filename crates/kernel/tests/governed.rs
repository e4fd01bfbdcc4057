//! The rules of governed jobs, objects, gates and the audit trail, without a store.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::audit::{
    AuditCommand, AuditEntry, AuditHead, AuditNote, Fate, Inspector, START, Seen, entry_id, head_id,
};
use mainspring_kernel::entity::object::{Object, Signals, Status, outcome};
use mainspring_kernel::governance::{Action, ObjectType, RiskTier};
use mainspring_kernel::{
    Entity, Event, Facts, JobType, QueueName, QueueSpec, Receipt, Rejection, TenantId, Timestamp,
    TypeSpec, UserId, decide,
};

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const KEEP_MS: u64 = 1_000_000;

fn tenant() -> TenantId {
    TenantId::stored("acme".into())
}

fn note(index: usize) -> AuditNote {
    AuditNote {
        fate: Fate::Done,
        user: UserId::stored("ada".into()),
        token: None,
        action: "gate.set".into(),
        object_type: "gate".into(),
        object_id: format!("g{index}").into(),
        before: None,
        after: Some("{}".into()),
        reason: None,
        evidence_refs: vec!["e".into()],
        trace_id: None,
        risk_tier: None,
        decision_trace_id: None,
    }
}

/// Writes `count` lines and answers with them and where the trail ends.
fn written(count: usize) -> (Vec<AuditEntry>, AuditHead) {
    let mut head: Option<Entity> = None;
    let mut lines = Vec::new();
    for index in 0..count {
        let facts = Facts { entity: head.as_ref(), ..Facts::at(NOW) };
        let (note, is_unbounded) = (Box::new(note(index)), false);
        let command = AuditCommand::Append {
            tenant: tenant(),
            note,
            keep_ms: KEEP_MS,
            is_unbounded,
            seen: None,
        };
        let decision = decide(&command.into(), &facts).unwrap();
        assert!(
            matches!(decision.receipt, Receipt::Audited { seq, .. } if seq == index as u64 + 1)
        );
        for event in decision.events {
            let Event::EntitySet(entity) = event else { panic!("{event:?}") };
            if let Body::AuditEntry(entry) = &entity.body {
                assert_eq!(entity.id, entry_id(&tenant(), entry.seq));
                lines.push((**entry).clone());
            } else {
                assert_eq!(entity.id, head_id(&tenant()));
                head = Some(*entity);
            }
        }
    }
    let Body::AuditHead(last) = head.unwrap().body else { panic!("no head") };
    (lines, last)
}

fn verdict(
    lines: &[AuditEntry],
    head: Option<AuditHead>,
    anchor: Option<(u64, [u8; 32])>,
) -> Option<u64> {
    let mut inspector = Inspector::new(tenant(), head, anchor, NOW.plus_millis(10));
    lines.iter().rev().for_each(|line| inspector.see(line));
    inspector.verdict(KEEP_MS).1
}

#[test]
fn every_edit_move_gap_and_cut_of_a_trail_is_found() {
    let (lines, head) = written(9);
    let anchor = Some((9, head.hash));
    assert_eq!(lines[0].prev_hash, START);
    assert_eq!(verdict(&lines, Some(head), anchor), None);
    for at in 0..lines.len() {
        // A word of it.
        let mut edited = lines.clone();
        edited[at].note.object_id = "other".into();
        assert_eq!(verdict(&edited, Some(head), None), Some(at as u64 + 1));
        // The same with its hash made to fit.
        edited[at].hash = edited[at].true_hash(&tenant());
        assert!(verdict(&edited, Some(head), None).is_some(), "line {at}");
        // One is missing.
        let mut without = lines.clone();
        without.remove(at);
        assert!(verdict(&without, Some(head), None).is_some(), "line {at}");
        // Two change places.
        if at > 0 {
            let mut swapped = lines.clone();
            swapped.swap(at, at - 1);
            assert!(verdict(&swapped, Some(head), None).is_some(), "line {at}");
        }
        // The end is cut off, and the head made to fit: only the anchor knows.
        if at > 0 {
            let cut = &lines[..at];
            let last = &cut[at - 1];
            let fitted = AuditHead { seq: last.seq, hash: last.hash, ..head };
            assert_eq!(verdict(cut, Some(fitted), None), None);
            assert!(verdict(cut, Some(fitted), anchor).is_some(), "cut at {at}");
        }
    }
    // A whole new trail that fits in itself, of the same length.
    let mut forged = lines.clone();
    let mut prev = START;
    for line in &mut forged {
        line.note.reason = Some("forged".into());
        line.prev_hash = prev;
        line.hash = line.true_hash(&tenant());
        prev = line.hash;
    }
    let fitted = AuditHead { hash: prev, ..head };
    assert_eq!(verdict(&forged, Some(fitted), None), None, "nothing in the store tells");
    assert_eq!(verdict(&forged, Some(fitted), anchor), Some(9));
    // Nothing is left.
    assert!(verdict(&[], None, anchor).is_some());
    assert!(verdict(&[], Some(head), None).is_some());
    assert!(verdict(&lines, None, None).is_some());
}

#[test]
fn what_is_past_keeping_may_go_and_nothing_else() {
    let (lines, head) = written(5);
    let late = NOW.plus_millis(KEEP_MS + 10);
    let seen = |lines: &[AuditEntry], now| {
        let mut inspector = Inspector::new(tenant(), Some(head), None, now);
        lines.iter().rev().for_each(|line| inspector.see(line));
        inspector.verdict(KEEP_MS).1
    };
    assert_eq!(seen(&lines[2..], late), None);
    assert_eq!(seen(&[], late), None);
    assert_eq!(seen(&lines[2..], NOW.plus_millis(5)), Some(2));
}

#[test]
fn a_high_risk_names_its_decision_and_users_have_a_bound() {
    let append = |note: AuditNote, head: Option<&Entity>, is_unbounded| {
        let facts = Facts { entity: head, ..Facts::at(NOW) };
        let note = Box::new(note);
        let command =
            AuditCommand::Append { tenant: tenant(), note, keep_ms: 1, is_unbounded, seen: None };
        decide(&command.into(), &facts)
    };
    let risky = AuditNote { risk_tier: Some(RiskTier::High), ..note(1) };
    assert_eq!(append(risky.clone(), None, true), Err(Rejection::DecisionMissing));
    let named = AuditNote { decision_trace_id: Some("dtr_1".into()), ..risky };
    assert!(append(named, None, true).is_ok());
    let day = NOW.as_millis().div_euclid(24 * 3600 * 1000);
    let head =
        AuditHead { seq: 7, hash: START, at: NOW, day, changes: u32::MAX, denials: u32::MAX };
    let full = Entity {
        id: head_id(&tenant()),
        version: 7,
        tenant: tenant(),
        owner: UserId::stored("ada".into()),
        created_at: NOW,
        updated_at: NOW,
        body: Body::AuditHead(head),
    };
    assert_eq!(append(note(1), Some(&full), false), Err(Rejection::AuditFull));
    assert!(append(note(1), Some(&full), true).is_ok(), "operators are not bound");
    let denied = AuditNote { fate: Fate::Denied, ..note(1) };
    assert_eq!(append(denied, Some(&full), false), Err(Rejection::AuditFull));
}

#[test]
fn the_table_of_transitions_has_no_other_move() {
    let mut moves = 0;
    for kind in ObjectType::ALL {
        for from in Status::ALL {
            for action in Action::ALL {
                for is_wanted in [false, true] {
                    let signals = Signals { reinstate_signal: is_wanted, ..Signals::default() };
                    let object =
                        Object { status: Some(*from), signals, ..Object::plain(*kind, "o") };
                    let done = outcome(&object, *action, NOW);
                    assert!(done.next_action_at > NOW);
                    moves += usize::from(done.status.is_some_and(|to| to != *from));
                    assert!(*kind != ObjectType::Cognition || done.status.is_none());
                }
            }
        }
    }
    // Memory: verify 4, revalidate 1 + 3, decay 2, archive 3, reinstate-check 2, twice where no
    // signal is asked for. Experience: verify 1, revalidate 2 + 3, decay 1, archive 3, check 1.
    let memory = 4 * 2 + 1 + 3 + 2 * 2 + 3 * 2 + 2;
    let experience = 2 + (2 + 3) + 2 + 3 * 2 + 1;
    assert_eq!(moves, memory + experience);
}

/// A line says what was so before; if that has changed since it was read, nothing is done.
#[test]
fn a_line_is_written_only_if_what_it_says_was_so() {
    let (kind, place) = (JobType::stored("mill".into()), QueueName::stored("q".into()));
    let (spec, queue) = (TypeSpec::plain(kind.clone()), QueueSpec::plain(place.clone()));
    let other = TypeSpec { priority: 7, ..spec.clone() };
    let paused = QueueSpec { is_paused: true, ..queue.clone() };
    let append = |seen: Seen, facts: &Facts<'_>| {
        let (note, keep_ms, is_unbounded) = (Box::new(note(1)), KEEP_MS, false);
        let seen = Some(Box::new(seen));
        let command = AuditCommand::Append { tenant: tenant(), note, keep_ms, is_unbounded, seen };
        decide(&command.into(), facts).is_ok()
    };
    let of_type = |known| Seen::Type(kind.clone(), known);
    let known = Facts { job_type: Some(&spec), ..Facts::at(NOW) };
    assert!(append(of_type(Some(Box::new(spec.clone()))), &known));
    assert!(!append(of_type(Some(Box::new(other))), &known));
    assert!(!append(of_type(None), &known));
    assert!(append(of_type(None), &Facts::at(NOW)));
    let of_queue = |known| Seen::Queue(place.clone(), known);
    let known = Facts { queue: Some(&paused), ..Facts::at(NOW) };
    assert!(append(of_queue(Some(paused.clone())), &known));
    assert!(!append(of_queue(Some(queue.clone())), &known) && !append(of_queue(None), &known));
    // One that nobody configured is a plain one.
    let plain = Facts { queue: Some(&queue), ..Facts::at(NOW) };
    assert!(append(of_queue(None), &plain) && append(of_queue(Some(queue.clone())), &plain));
    assert!(append(of_queue(None), &Facts::at(NOW)));
    let thing = Entity {
        id: head_id(&tenant()),
        version: 3,
        tenant: tenant(),
        owner: UserId::stored("ann".into()),
        created_at: NOW,
        updated_at: NOW,
        body: Body::AuditHead(AuditHead {
            seq: 0,
            hash: [0; 32],
            at: NOW,
            day: 0,
            changes: 0,
            denials: 0,
        }),
    };
    let known = Facts { seen: Some(&thing), ..Facts::at(NOW) };
    assert!(
        append(Seen::Entity(thing.id, 3), &known) && !append(Seen::Entity(thing.id, 2), &known)
    );
    assert!(append(Seen::Entity(thing.id, 0), &Facts::at(NOW)));
    assert!(!append(Seen::Entity(thing.id, 3), &Facts::at(NOW)));
}
