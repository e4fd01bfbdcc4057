//! F5: when two attempts of a type that has a circuit fail in a row, no other is handed out for as
//! long as the circuit stays open; then one is, alone until it ends.
//!
//! Only what is certain counts. Two attempts that ran side by side began while the circuit was
//! closed, because an open one lets one through at a time. If both fail, and nothing else of the
//! type ended in between or failed since they began, the circuit has opened by the second at the
//! latest. It may have opened before, by what failed before they began: then one that began in
//! between may be the one that is tried, and its end may close the circuit again. So none may.

use super::Findings;
use super::facts::{Facts, RELEASED};
use super::limits::CLOCKS_APART_MICROS;
use crate::history::{EventDump, JobDump};
use mainspring_kernel::StateName;

/// An attempt of a type: when it began and how it ended.
struct Attempt<'a> {
    job: &'a str,
    from: i64,
    to: i64,
    has_failed: bool,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    // A circuit stays open by the server's clock. Where that was set back and the server started
    // again, time ran back: what began after the circuit had closed may bear an earlier time.
    if facts.history.faults.iter().any(|fault| fault.kind == "clock_back") {
        return;
    }
    for rules in &facts.history.types {
        let Some(open_micros) = rules.circuit else { continue };
        let jobs = || facts.jobs.values().copied().filter(|job| job.job_type == rules.name);
        let mut attempts: Vec<Attempt<'_>> = jobs().flat_map(attempts).collect();
        attempts.sort_by_key(|attempt| (attempt.from, attempt.job));
        let mut failures: Vec<i64> =
            jobs().flat_map(|job| &job.events).filter_map(failure).collect();
        failures.sort_unstable();
        for (first, second) in opened(&attempts, &failures) {
            let closed = first + open_micros - CLOCKS_APART_MICROS;
            let after = attempts.iter().filter(|it| it.from > second + CLOCKS_APART_MICROS);
            let Some(probe) = after.clone().next() else { continue };
            let text = format!("begun at {}, open from {second} to {closed}", probe.from);
            found.expect(probe.from >= closed, "F5", probe.job, text);
            let beside = after.filter(|it| it.job != probe.job || it.from != probe.from);
            for other in beside.take_while(|it| it.from < probe.to - CLOCKS_APART_MICROS) {
                let text = format!("begun while {} was being tried", probe.job);
                found.add("F5", other.job, text);
            }
        }
    }
}

fn attempts<'a>(job: &'a JobDump) -> impl Iterator<Item = Attempt<'a>> {
    let attempts = job.attempts().into_iter();
    let known = attempts.filter(|(start, _)| start.actor.starts_with("worker:"));
    known.map(|(start, end)| Attempt {
        job: &job.id,
        from: start.at,
        to: end.map_or(i64::MAX, |end| end.at),
        has_failed: end.and_then(failure).is_some(),
    })
}

/// When it was that something failed, by a worker or by hand.
fn failure(event: &EventDump) -> Option<i64> {
    let has_failed = match event.to {
        StateName::DlqPending => true,
        StateName::Retrying => event.code.as_deref() != Some(RELEASED),
        StateName::Queued
        | StateName::Running
        | StateName::DlqRecorded
        | StateName::Succeeded
        | StateName::Failed
        | StateName::Cancelled => false,
    };
    has_failed.then_some(event.at)
}

/// The instants of two failures by which a circuit has certainly opened.
fn opened(attempts: &[Attempt<'_>], failures: &[i64]) -> Vec<(i64, i64)> {
    let mut opened = Vec::new();
    for one in attempts.iter().filter(|it| it.has_failed) {
        for other in attempts.iter().filter(|it| it.has_failed && it.to > one.to) {
            let from = one.from.min(other.from) - CLOCKS_APART_MICROS;
            let is_beside = one.from.max(other.from) + CLOCKS_APART_MICROS < one.to;
            let between = one.to - CLOCKS_APART_MICROS..=other.to + CLOCKS_APART_MICROS;
            let is_in_a_row = attempts.iter().filter(|it| between.contains(&it.to)).count() == 2
                && !attempts.iter().any(|it| between.contains(&it.from));
            let is_first = !failures.iter().any(|at| (from..one.to).contains(at));
            let no_more = failures.iter().filter(|at| between.contains(at)).count() == 2;
            if is_beside && is_in_a_row && is_first && no_more {
                opened.push((one.to, other.to));
            }
        }
    }
    opened
}
