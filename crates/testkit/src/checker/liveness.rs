//! V1: a server that starts is ready soon, and tells nothing before. V2: an attempt nobody renews
//! ends soon after its lease. L11: what a caller that went away was given comes back at once.

use super::Findings;
use super::facts::Facts;
use crate::history::{Call, EventDump, JobDump, Outcome, fence};
use std::collections::BTreeSet;

/// From the start of a process to its first answer.
const READY_MICROS_MAX: u64 = 10_000_000;
/// How much later than it came an answer may be written down.
const NOTED_MICROS: u64 = 1_000_000;
/// From the end of a lease to the end of its attempt.
const REAPED_MICROS_MAX: i64 = 2_000_000;
/// From the grant to a caller that went away to its return.
const RETURNED_MICROS_MAX: i64 = 2_000_000;

/// How long a fault can last.
const LASTING_MICROS: u64 = 20_000_000;

/// Faults that hold up nothing the server does by itself.
const HARMLESS: [&str; 5] =
    ["answer_lost", "caller_vanished", "decided_again", "ready", "disk_healed"];

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    starts(facts, found);
    if !facts.history.is_simulated {
        // How fast a busy machine is says nothing about the rules.
        return;
    }
    for job in facts.jobs.values() {
        reaped(facts, job, found);
    }
    returned(facts, found);
}

/// V1, where the harness wrote down when servers were ready.
fn starts(facts: &Facts<'_>, found: &mut Findings) {
    let faults = &facts.history.faults;
    if !faults.iter().any(|fault| fault.kind == "ready") {
        return;
    }
    for (nth, start) in faults.iter().enumerate().filter(|(_, fault)| fault.kind == "restart") {
        let next = faults[nth + 1..].iter().find(|fault| {
            matches!(&*fault.kind, "ready" | "restart" | "crash" | "disk_failed" | "not_ready")
        });
        let is_soon = next.is_some_and(|next| next.at <= start.at + READY_MICROS_MAX);
        found.expect(is_soon, "V1", "the server", format!("was not ready after {}", start.at));
    }
    for down in faults.iter().filter(|fault| fault.kind == "crash") {
        let up = faults.iter().find(|fault| fault.kind == "restart" && fault.at >= down.at);
        let until = up.map_or(u64::MAX, |up| up.at);
        for operation in &facts.history.operations {
            let is_told = operation.answer().is_some()
                && operation.ended_at.is_some_and(|at| at > down.at + NOTED_MICROS && at < until);
            found.expect(!is_told, "V1", "the server", "answered while it was down");
        }
    }
}

/// Whether something went wrong between two of the harness's instants that may hold things up.
fn is_troubled(facts: &Facts<'_>, from: u64, until: u64) -> bool {
    let in_between = |at: u64| (from.saturating_sub(LASTING_MICROS)..=until).contains(&at);
    facts
        .history
        .faults
        .iter()
        .any(|fault| in_between(fault.at) && !HARMLESS.contains(&&*fault.kind))
}

/// V2.
fn reaped(facts: &Facts<'_>, job: &JobDump, found: &mut Findings) {
    for given in facts.grants.get(&*job.id).into_iter().flatten() {
        let nth = fence(&given.grant.token);
        let Some((_, Some(end))) = job.attempt(nth) else { continue };
        if end.actor != "system:reaper" {
            continue;
        }
        let calls = facts.calls.get(&*job.id).into_iter().flatten();
        let mut beats = calls.filter(|call| {
            call.fence() == Some(nth) && matches!(call.call, Call::Heartbeat { .. })
        });
        // A renewal of which only the server knows its end.
        if beats.clone().any(|beat| matches!(beat.outcome, Outcome::Info | Outcome::Gone)) {
            continue;
        }
        let renewed = beats.by_ref().filter_map(|beat| match beat.answer()? {
            crate::history::Answer::Lease { until } => Some(*until),
            _ => None,
        });
        let until = renewed.fold(given.grant.lease_until, i64::max);
        let took = u64::try_from(end.at - given.grant.granted_at).unwrap_or(0);
        if is_troubled(facts, given.invoked_at, given.ended_at + took + REAPED_MICROS_MAX as u64) {
            continue;
        }
        let late = end.at - until;
        let text = format!("ran {late} µs beyond lease {nth}");
        found.expect(late <= REAPED_MICROS_MAX, "V2", &job.id, text);
    }
}

/// L11: names of pulls that ended so are used once.
fn returned(facts: &Facts<'_>, found: &mut Findings) {
    let mut gone: BTreeSet<(String, u64, u64)> = BTreeSet::new();
    for operation in &facts.history.operations {
        if let (Call::Pull { worker, .. }, Outcome::Gone, Some(ended_at)) =
            (&operation.call, &operation.outcome, operation.ended_at)
        {
            gone.insert((format!("worker:{worker}"), operation.invoked_at, ended_at));
        }
    }
    for job in facts.jobs.values() {
        for (start, end) in job.attempts() {
            let mut all = gone.iter();
            let Some((_, from, until)) = all.find(|(worker, ..)| *worker == start.actor) else {
                continue;
            };
            if is_troubled(facts, *from, until + RETURNED_MICROS_MAX as u64) {
                continue;
            }
            let is_back = end.is_some_and(|end: &EventDump| {
                !end.actor.starts_with("system:") && end.at - start.at <= RETURNED_MICROS_MAX
            });
            let text = format!("stayed with {}, who had gone", start.actor);
            found.expect(is_back, "L11", &job.id, text);
        }
    }
}
