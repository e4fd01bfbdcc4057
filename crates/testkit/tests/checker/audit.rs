//! Audit trails that do not tell what was done.

use super::refused::operation;
use mainspring_testkit::checker::check;
use mainspring_testkit::history::{
    Answer, AuditDump, Call, Dump, History, ItemDump, Outcome, TrailDump, lines,
};

const ITEM: &str = "dlq_1";

fn line(seq: u64, action: &str) -> AuditDump {
    let (action, object, actor) = (action.to_owned(), ITEM.to_owned(), "ann".to_owned());
    AuditDump { seq, action, object, actor, is_denied: false }
}

/// Somebody asked for a discard, it was rejected, and nobody knows about a second request.
fn history() -> History {
    let (item, by) = (ITEM.to_owned(), "ann".to_owned());
    let ask = Call::RequestDiscard { item: item.clone(), by: by.clone(), reason: "r".to_owned() };
    let reject = Call::RejectDiscard { item: item.clone(), by };
    let lines = vec![line(1, "request_discard"), line(2, "set_queue"), line(3, "reject_discard")];
    let trail = TrailDump { tenant: "acme".to_owned(), is_valid: true, lines };
    let item = ItemDump {
        id: item,
        job: "job_1".to_owned(),
        state: "open".to_owned(),
        requeued_as: None,
        proposed_by: None,
        approved_by: None,
    };
    let dump = Dump { items: vec![item], trails: vec![trail], ..Dump::default() };
    let operations = vec![
        operation(1, ask.clone(), Outcome::Ok(Answer::Done)),
        operation(3, reject, Outcome::Ok(Answer::Done)),
        operation(5, ask, Outcome::Info),
    ];
    History { operations, dump, ..History::default() }
}

/// The rules of the trail that a history breaks after `change`.
fn broken(change: impl FnOnce(&mut TrailDump)) -> Vec<&'static str> {
    let mut history = history();
    change(&mut history.dump.trails[0]);
    let found = check(&history);
    found.iter().map(|violation| violation.rule).filter(|rule| rule.starts_with('E')).collect()
}

#[test]
fn trails_that_do_not_tell_what_was_done_are_named() {
    assert_eq!(broken(|_| {}), Vec::<&str>::new());
    assert_eq!(broken(|trail| trail.lines.push(line(4, "request_discard"))), [""; 0], "perhaps");
    assert_eq!(broken(|trail| drop(trail.lines.pop())), ["E3"], "a step without a line");
    assert_eq!(broken(|trail| trail.lines[0].is_denied = true), ["E3"], "told as refused");
    assert_eq!(broken(|trail| trail.lines.push(line(4, "reject_discard"))), ["E3"], "told twice");
    assert_eq!(broken(|trail| trail.lines.push(line(4, "requeue_item"))), ["E3"], "nobody did");
    assert_eq!(broken(|trail| trail.is_valid = false), ["E4"]);
    assert_eq!(broken(|trail| drop(trail.lines.remove(1))), ["E4"], "a gap");
}

#[test]
fn the_line_format_keeps_trails() {
    assert_eq!(lines::read(&lines::write(&history())), Ok(history()));
}
