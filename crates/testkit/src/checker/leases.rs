//! L1, L2, L5 to L9: one holder at a time, tokens that only rise, leases kept as promised.

use super::Findings;
use super::facts::{Facts, Given};
use crate::history::{Answer, Call, JobDump, Outcome, fence};
use mainspring_kernel::StateName;
use std::collections::{BTreeMap, BTreeSet};

/// A clock set forward by less than this counts as slewing, and leases are not extended for it.
const SKEW_MICROS: u64 = 2_000_000;

/// How far the clocks of servers that share a store may be apart.
const APART_MICROS: u64 = 100_000;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let mut tokens = BTreeSet::new();
    for (id, grants) in &facts.grants {
        tokens_rise(id, grants, &mut tokens, found);
        let Some(job) = facts.jobs.get(id) else {
            found.expect(facts.may_be_gone(id), "D1", id, "was granted and is gone");
            continue;
        };
        for given in grants {
            agrees(job, given, found);
        }
        leases_kept(facts, job, grants, found);
        after_cancel(facts, job, grants, found);
        stale_heartbeats(facts, job, grants, found);
        refused_in_time(facts, job, grants, found);
    }
    ledger(facts, found);
}

/// L1: no token twice, and a later grant has a greater counter.
fn tokens_rise<'a>(
    id: &str,
    grants: &[Given<'a>],
    tokens: &mut BTreeSet<(&'a str, &'a str)>,
    found: &mut Findings,
) {
    for given in grants {
        let is_new = tokens.insert((&given.grant.job, &given.grant.token));
        found.expect(is_new, "L1", id, format!("token {} was issued twice", given.grant.token));
    }
    for early in grants {
        for late in grants.iter().filter(|late| late.invoked_at > early.ended_at) {
            let rises = fence(&late.grant.token) > fence(&early.grant.token);
            found.expect(rises, "L1", id, format!("fence {} did not rise", late.grant.token));
        }
    }
}

/// L2, L9 and D4: the grant is the attempt the history tells of, and was not early.
fn agrees(job: &JobDump, given: &Given<'_>, found: &mut Findings) {
    let grant = given.grant;
    let text = format!("grant {} is not in the history", grant.token);
    let Some((start, _)) = job.attempt(fence(&grant.token)) else {
        found.add("L2", &job.id, text);
        return;
    };
    let is_same = start.at == grant.granted_at && start.attempt == grant.attempt;
    found.expect(is_same, "L2", &job.id, text);
    let is_due = grant.granted_at >= job.run_at;
    found.expect(is_due, "L9", &job.id, "was granted before its time");
    found.expect(grant.payload == job.payload, "D4", &job.id, "was delivered with other work");
}

/// L5 and L6: no attempt is taken away before the end its worker was told last.
fn leases_kept(facts: &Facts<'_>, job: &JobDump, grants: &[Given<'_>], found: &mut Findings) {
    let mut until: BTreeMap<u32, i64> = BTreeMap::new();
    for given in grants {
        until.insert(fence(&given.grant.token), given.grant.lease_until);
    }
    for (operation, answer) in facts.accepted(&job.id) {
        if let (Some(fence), Answer::Lease { until: promised }) = (operation.fence(), answer) {
            let known = until.entry(fence).or_insert(*promised);
            *known = (*known).max(*promised);
        }
    }
    for (fence, until) in until {
        let Some((start, Some(end))) = job.attempt(fence) else { continue };
        let timeout = i64::try_from(job.timeout_ms).unwrap_or(i64::MAX / 1000) * 1000;
        let deadline = start.at.saturating_add(timeout);
        if end.actor == "system:reaper" && end.at < until.min(deadline) {
            let early = until.min(deadline) - end.at;
            found.add("L6", &job.id, format!("lease {fence} was ended {early} µs early"));
        }
    }
}

/// L8: nothing is granted after a cancel, and the holder is told.
fn after_cancel(facts: &Facts<'_>, job: &JobDump, grants: &[Given<'_>], found: &mut Findings) {
    let cancels = facts.accepted(&job.id).filter(|(op, _)| matches!(op.call, Call::Cancel { .. }));
    let Some(cancelled_at) = cancels.filter_map(|(op, _)| op.ended_at).min() else { return };
    let late = grants.iter().any(|given| given.invoked_at > cancelled_at);
    found.expect(!late, "L8", &job.id, "was granted after it was cancelled");
    for (operation, answer) in facts.accepted(&job.id) {
        let is_late = operation.invoked_at > cancelled_at;
        let is_renewed = matches!(answer, Answer::Lease { .. });
        found.expect(!(is_late && is_renewed), "L8", &job.id, "was renewed after its cancel");
    }
}

/// L6: a lease that was superseded is never renewed.
fn stale_heartbeats(facts: &Facts<'_>, job: &JobDump, grants: &[Given<'_>], found: &mut Findings) {
    for (operation, answer) in facts.accepted(&job.id) {
        let is_use = matches!(answer, Answer::Lease { .. } | Answer::Effect { .. });
        let Some(used) = operation.fence().filter(|_| is_use) else { continue };
        let mut newer = grants.iter().filter(|given| fence(&given.grant.token) > used);
        let is_stale = newer.any(|given| given.ended_at < operation.invoked_at);
        found.expect(!is_stale, "L6", &job.id, format!("stale lease {used} was honoured"));
    }
}

/// L5: a worker that reports within its lease, by its own clock, is heard, whatever the server's
/// clock does; unless the server restarted in between, when only the grace counts.
fn refused_in_time(facts: &Facts<'_>, job: &JobDump, grants: &[Given<'_>], found: &mut Findings) {
    let calls = facts.calls.get(&*job.id).map(Vec::as_slice).unwrap_or_default();
    for call in calls.iter().filter(|call| call.outcome == Outcome::Fail("LEASE_LOST".into())) {
        let (Some(token), Some(ended_at)) = (call.token(), call.ended_at) else { continue };
        let Some(given) = grants.iter().find(|given| given.grant.token == token) else { continue };
        let Some((start, end)) = job.attempt(fence(token)) else { continue };
        // The start-to-close timeout is not a lease: it goes by the server's clock.
        let timeout = i64::try_from(job.timeout_ms).unwrap_or(0) * 1000;
        let has_other_end =
            end.is_some_and(|end| end.actor.starts_with("user:") || end.at >= start.at + timeout);
        let is_over = calls.iter().any(|other| {
            let ends = matches!(other.call, Call::Cancel { .. })
                || (other.is_report() && other.token() == Some(token));
            ends && !std::ptr::eq(*other, *call)
                && other.may_have_happened()
                && other.invoked_at <= ended_at
        });
        let has_restarted = facts.history.faults.iter().any(|fault| {
            fault.kind == "restart" && fault.at > given.invoked_at && fault.at <= ended_at
        });
        let jumps = facts.history.faults.iter().filter(|fault| {
            fault.kind == "clock_forward" && (given.invoked_at..=ended_at).contains(&fault.at)
        });
        let slack = APART_MICROS + SKEW_MICROS * jumps.count() as u64;
        let is_in_time = ended_at + slack < given.invoked_at + given.lease_ms * 1000;
        if is_in_time && !has_other_end && !is_over && !has_restarted {
            found.add("L5", &job.id, format!("{token} was refused within its lease"));
        }
    }
}

/// L7: no work without a grant, no accepted success without work.
fn ledger(facts: &Facts<'_>, found: &mut Findings) {
    let mut ended: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for work in &facts.history.ledger {
        if work.is_end {
            ended.entry((&work.job, &work.token)).or_insert(work.at);
            continue;
        }
        let mut grants = facts.grants.get(&*work.job).into_iter().flatten();
        let is_given = grants.any(|g| g.worker == work.worker && g.grant.token == work.token);
        found.expect(is_given, "L7", &work.job, format!("{} was not given it", work.worker));
    }
    for job in facts.jobs.values().filter(|job| job.state == StateName::Succeeded) {
        for (operation, _) in facts.accepted(&job.id) {
            let (Call::Complete { .. }, Some(token)) = (&operation.call, operation.token()) else {
                continue;
            };
            let is_done =
                ended.get(&(&*job.id, token)).is_some_and(|at| *at <= operation.invoked_at);
            found.expect(is_done, "L7", &job.id, "succeeded without work");
        }
    }
}
