//! E1 and E2: a subscriber gets every move once and in order, or is told that it did not; and every
//! move it gets is in the history.

use super::Findings;
use super::facts::Facts;
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let mut last = None;
    for moved in &facts.history.stream {
        let is_next = last.is_none_or(|last: u64| {
            moved.position == last + 1 || (moved.is_reset && moved.position > last)
        });
        let text = format!("position {} came after {last:?}", moved.position);
        found.expect(is_next, "E1", &moved.job, text);
        last = Some(moved.position);
        let job = facts.jobs.get(&*moved.job);
        let is_known = job.is_some_and(|job| {
            job.events.iter().any(|event| event.seq == moved.seq && event.to == moved.to)
        });
        let text = format!("event {} to {} was streamed and is not", moved.seq, moved.to);
        let is_known = is_known || facts.may_be_gone(&moved.job);
        found.expect(is_known, "E2", &moved.job, text);
    }
    if facts.history.is_stream_whole && facts.history.stream.iter().all(|moved| !moved.is_reset) {
        complete(facts, found);
    }
}

/// E1: whoever followed from the beginning to the end got every move, and each once.
fn complete(facts: &Facts<'_>, found: &mut Findings) {
    let mut told: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    for moved in &facts.history.stream {
        *told.entry((&moved.job, moved.seq)).or_default() += 1;
    }
    for job in facts.jobs.values() {
        for event in &job.events {
            let times = told.get(&(&*job.id, event.seq)).copied().unwrap_or(0);
            let text = format!("event {} was streamed {times} times", event.seq);
            found.expect(times == 1, "E1", &job.id, text);
        }
    }
}
