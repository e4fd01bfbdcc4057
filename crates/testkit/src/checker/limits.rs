//! F1: never more valid grants than the type allows; F4: never more in any stretch of time than its
//! rate allows; P1: a paused queue hands out nothing.
//!
//! For F1 only time during which a worker certainly held a grant counts: from the answer of its
//! pull to the earliest of its report, a cancel, or the end of the lease as the worker knows it.

use super::Findings;
use super::facts::{Facts, Given};
use crate::history::{Answer, Call, EventDump, JobDump, TypeRules, fence};
use mainspring_kernel::StateName;

/// Servers that share a database keep their clocks this near to each other, each within half of it
/// of the database's: on one of them a lease may end that much sooner than its worker thinks.
pub(super) const CLOCKS_APART_MICROS: i64 = 40_000;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    for rules in &facts.history.types {
        if let Some(limit) = rules.limit {
            concurrency(facts, rules, limit, found);
        }
        if let Some((nanos, burst)) = rules.rate {
            rate(facts, rules, nanos as f64 / 1e9, f64::from(burst), found);
        }
    }
    pauses(facts, found);
}

/// A grant that was certainly held: from when to when, by which tenant and key it counts, its job.
type Held<'a> = (u64, u64, (&'a str, Option<String>), &'a str);

fn concurrency(facts: &Facts<'_>, rules: &TypeRules, limit: u32, found: &mut Findings) {
    let mut held: Vec<Held<'_>> = Vec::new();
    for (id, grants) in &facts.grants {
        let Some(job) = facts.jobs.get(id).filter(|job| job.job_type == rules.name) else {
            continue;
        };
        for given in grants {
            let until = held_until(facts, id, given);
            if until > given.ended_at && !is_doubtful(facts, job, given, until) {
                let tenant = if rules.is_per_tenant { &*job.tenant } else { "" };
                held.push((given.ended_at, until, (tenant, key(rules, job)), &*job.id));
            }
        }
    }
    for (at, _, under, id) in &held {
        let others = held
            .iter()
            .filter(|(from, until, other, _)| from <= at && at < until && other == under);
        let count = others.count();
        let text = format!("{count} of {} run where {limit} may", rules.name);
        found.expect(count as u64 <= u64::from(limit), "F1", id, text);
    }
}

/// What a job is counted by, beside its type.
pub(super) fn key(rules: &TypeRules, job: &JobDump) -> Option<String> {
    let payload: serde_json::Value = serde_json::from_str(&job.payload).ok()?;
    Some(payload.get(rules.key.as_ref()?)?.to_string())
}

/// F4: by the instants in the histories. Moves by hand may find the bucket empty.
fn rate(facts: &Facts<'_>, rules: &TypeRules, per_second: f64, burst: f64, found: &mut Findings) {
    let mut starts: Vec<(i64, &str)> = Vec::new();
    for job in facts.jobs.values().filter(|job| job.job_type == rules.name) {
        let is_start = |event: &&EventDump| {
            event.to == StateName::Running && event.actor.starts_with("worker:")
        };
        starts.extend(job.events.iter().filter(is_start).map(|event| (event.at, &*job.id)));
    }
    starts.sort_unstable();
    for (first, (from, _)) in starts.iter().enumerate() {
        for (more, (to, id)) in starts[first..].iter().enumerate() {
            let (count, span) = (more as f64 + 1.0, (to - from) as f64 / 1e6);
            let text = format!("{count} of {} in {span} s", rules.name);
            found.expect(count <= burst + span * per_second + 1e-6, "F4", id, text);
        }
    }
}

/// Until when the worker certainly held the grant.
fn held_until(facts: &Facts<'_>, id: &str, given: &Given<'_>) -> u64 {
    let lease = (given.lease_ms * 1000).saturating_sub(CLOCKS_APART_MICROS.unsigned_abs());
    let mut until = given.invoked_at + lease;
    if let Some(job) = facts.jobs.get(id) {
        until = until.min(given.invoked_at + job.timeout_ms * 1000);
    }
    for call in facts.calls.get(id).into_iter().flatten() {
        let is_cancel = matches!(call.call, Call::Cancel { .. });
        let is_own = call.is_report() && call.token() == Some(&*given.grant.token);
        if is_cancel || is_own {
            until = until.min(call.invoked_at);
        }
    }
    until
}

/// A restart or a clock set forward can end an attempt before its worker knows.
fn is_doubtful(facts: &Facts<'_>, job: &JobDump, given: &Given<'_>, until: u64) -> bool {
    let end = job.attempt(fence(&given.grant.token)).and_then(|(_, end)| end);
    let is_reaped = end.is_some_and(|end| end.actor == "system:reaper");
    is_reaped
        && facts.history.faults.iter().any(|fault| {
            matches!(&*fault.kind, "restart" | "clock_forward")
                && (given.invoked_at..=until).contains(&fault.at)
        })
}

fn pauses(facts: &Facts<'_>, found: &mut Findings) {
    let mut pauses = Vec::new();
    for (nth, operation) in facts.history.operations.iter().enumerate() {
        let Call::Pause { queue, is_paused: true } = &operation.call else { continue };
        let (Some(from), Some(Answer::Done)) = (operation.ended_at, operation.answer()) else {
            continue;
        };
        // A resumption of the same queue that was under way meanwhile, or came later, ends it.
        let others = facts.history.operations.iter().enumerate().filter(|(other, op)| {
            let ends = matches!(&op.call, Call::Pause { queue: q, is_paused: false } if q == queue);
            *other != nth && ends && op.ended_at.is_none_or(|ended| ended >= operation.invoked_at)
        });
        let until = others.map(|(_, op)| op.invoked_at).min().unwrap_or(u64::MAX);
        pauses.push((queue, from, until));
    }
    for given in facts.grants.values().flatten() {
        for (queue, from, until) in &pauses {
            let is_paused =
                given.grant.queue == **queue && given.invoked_at > *from && given.ended_at < *until;
            found.expect(!is_paused, "P1", &given.grant.job, format!("{queue} was paused"));
        }
    }
}
