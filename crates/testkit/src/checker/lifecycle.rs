//! S1 to S7: every history is a path through the table, numbered and timed without a flaw.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, EventDump, Injected, JobDump};
use mainspring_kernel::StateName;

/// How far the clocks of two servers may be apart.
const SKEW_MICROS: i64 = 100_000;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    if facts.history.is_simulated {
        clock(facts, found);
    }
    for job in &facts.history.dump.jobs {
        path(job, found);
        numbers(job, found);
        times(job, found);
        endings(facts, job, found);
    }
}

/// S7: as long as no process is replaced, what is asked later is dated later.
fn clock(facts: &Facts<'_>, found: &mut Findings) {
    let mut asked: Vec<(u64, u64, i64, &str)> = Vec::new();
    for operation in &facts.history.operations {
        if let (Some(Answer::Submitted { job, is_hit: false, created_at }), Some(ended_at)) =
            (operation.answer(), operation.ended_at)
        {
            asked.push((operation.invoked_at, ended_at, *created_at, job));
        }
    }
    let mut answered: Vec<(u64, i64)> = asked.iter().map(|(_, end, at, _)| (*end, *at)).collect();
    asked.sort_unstable();
    answered.sort_unstable();
    let is_restart = |fault: &&Injected| fault.kind.contains("restart");
    let mut restarts =
        facts.history.faults.iter().filter(is_restart).map(|fault| fault.at).peekable();
    let (mut next, mut newest) = (0, i64::MIN);
    for (invoked_at, ended_at, at, id) in asked {
        while let Some((end, at)) = answered.get(next).filter(|(end, _)| *end < invoked_at) {
            while restarts.next_if(|restart| restart <= end).is_some() {
                newest = i64::MIN;
            }
            newest = newest.max(*at);
            next += 1;
        }
        // One that comes before this call's end may have been dated by another process.
        while restarts.next_if(|restart| *restart <= ended_at).is_some() {
            newest = i64::MIN;
        }
        let is_later = at.saturating_add(SKEW_MICROS) >= newest;
        found.expect(is_later, "S7", id, "is dated before what was there first");
    }
}

fn path(job: &JobDump, found: &mut Findings) {
    let first = job.events.first();
    let is_born = first.is_some_and(|event| event.from.is_none() && event.to == StateName::Queued);
    found.expect(is_born, "S1", &job.id, "does not begin as queued");
    for event in job.events.iter().skip(1) {
        // A job that waited for others is told once that it waits no longer, before it starts.
        let is_released = event.seq == 2
            && event.from == Some(StateName::Queued)
            && event.to == StateName::Queued
            && event.actor.starts_with("system:");
        let is_legal = is_released || event.from.is_some_and(|from| from.may_become(event.to));
        let text = format!("event {} goes from {:?} to {}", event.seq, event.from, event.to);
        found.expect(is_legal, "S1", &job.id, text);
    }
    let terminal = job.events.iter().position(|event| event.to.is_terminal());
    let is_final = terminal.is_none_or(|nth| nth + 1 == job.events.len());
    found.expect(is_final, "S2", &job.id, "went on after its end");
}

fn numbers(job: &JobDump, found: &mut Findings) {
    for (nth, event) in job.events.iter().enumerate() {
        let is_next = u32::try_from(nth + 1) == Ok(event.seq);
        found.expect(is_next, "S5", &job.id, format!("event {nth} has number {}", event.seq));
        let before = nth.checked_sub(1).map(|nth| job.events[nth].to);
        found.expect(event.from == before, "S5", &job.id, format!("event {nth} has a gap"));
    }
    let is_last = job.events.last().is_some_and(|event| event.to == job.state);
    found.expect(is_last, "S5", &job.id, "is not where its last event left it");
}

fn times(job: &JobDump, found: &mut Findings) {
    let is_rising = job.events.is_sorted_by_key(|event| event.at);
    found.expect(is_rising, "S7", &job.id, "has events that run backwards in time");
    let started = job.started_at.unwrap_or(job.created_at);
    let finished = job.finished_at.unwrap_or(started);
    let is_ordered = job.created_at <= started && started <= finished;
    found.expect(is_ordered, "S7", &job.id, "started or ended before it could");
    let is_fresh = job.events.last().is_some_and(|event| event.at == job.updated_at);
    found.expect(is_fresh, "S7", &job.id, "was not last changed by its last event");
}

/// S3 and Q1: who failed went by way of the dead-letter queue and left exactly one item.
fn endings(facts: &Facts<'_>, job: &JobDump, found: &mut Findings) {
    let states: Vec<StateName> = job.events.iter().map(|event: &EventDump| event.to).collect();
    let items = facts.history.dump.items.iter().filter(|item| item.job == job.id).count();
    let is_recorded = states.contains(&StateName::DlqRecorded);
    if job.state == StateName::Failed {
        let way = [StateName::DlqPending, StateName::DlqRecorded, StateName::Failed];
        found.expect(states.ends_with(&way), "S3", &job.id, "failed by another way");
    }
    let text = format!("has {items} dead-letter items");
    found.expect(items == usize::from(is_recorded), "Q1", &job.id, text);
}
