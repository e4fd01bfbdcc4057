//! F2: within one line, what should come first comes first. F3: nobody waits while others are
//! served again and again. F6: while a fresh job waits, one retry of its line is handed out at most
//! before a fresh one is.

use super::Findings;
use super::facts::{Facts, Given};
use super::limits;
use crate::history::{Answer, Call, JobDump, fence};
use std::collections::BTreeMap;

/// What one point of priority is worth, in microseconds of waiting.
const POINT_MICROS: i64 = 1_000_000;
/// A job that has only just become due may not have been noticed.
const NOTICE_MICROS: i64 = 100_000;
/// Most grants to others while a tenant has work that could run. Tenants are served in turn, so
/// with three of them two would do; a restart forgets whose turn it was.
const OTHERS_MAX: usize = 6;

/// A job whose first try is known from beginning to end.
struct First<'a> {
    job: &'a JobDump,
    given: &'a Given<'a>,
    /// When its submission had been answered.
    visible_at: u64,
    rank: (i64, &'a str),
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    if !facts.history.is_simulated {
        return;
    }
    let firsts = firsts(facts);
    for late in &firsts {
        overtaken(facts, late, &firsts, found);
        let is_free = facts
            .history
            .types
            .iter()
            .any(|rules| rules.name == late.job.job_type && rules.is_free());
        if is_free && late.job.queue == "default" {
            in_turn(facts, late, found);
        }
        if is_free {
            before_retries(facts, late, found);
        }
    }
}

fn firsts<'a>(facts: &'a Facts<'a>) -> Vec<First<'a>> {
    let mut visible: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in &facts.history.operations {
        if let (
            Call::Submit { .. },
            Some(Answer::Submitted { job, is_hit: false, .. }),
            Some(ended_at),
        ) = (&operation.call, operation.answer(), operation.ended_at)
        {
            visible.insert(job, ended_at);
        }
    }
    let jobs = facts.jobs.values().filter_map(|job| {
        let grants = facts.grants.get(&*job.id)?;
        let given = grants.iter().find(|given| fence(&given.grant.token) == 1)?;
        let rank = (job.run_at - i64::from(job.priority) * POINT_MICROS, &*job.id);
        Some(First { job, given, visible_at: *visible.get(&*job.id)?, rank })
    });
    jobs.collect()
}

/// F2.
fn overtaken(facts: &Facts<'_>, late: &First<'_>, firsts: &[First<'_>], found: &mut Findings) {
    let rules = facts.history.types.iter().find(|rules| rules.name == late.job.job_type);
    // Where a limit is counted by key, each key has a line of its own.
    let key = |job: &JobDump| rules.and_then(|rules| limits::key(rules, job));
    for early in firsts {
        let is_same_line = (&early.job.tenant, &early.job.queue, &early.job.job_type)
            == (&late.job.tenant, &late.job.queue, &late.job.job_type)
            && key(early.job) == key(late.job);
        let was_waiting = late.visible_at < early.given.invoked_at
            && late.job.run_at + NOTICE_MICROS <= early.given.grant.granted_at
            && late.given.invoked_at > early.given.ended_at
            // If time ran back meanwhile, it may have become due only after that.
            && late.given.grant.granted_at >= early.given.grant.granted_at;
        if is_same_line && was_waiting && late.rank < early.rank {
            found.add("F2", &late.job.id, format!("was overtaken by {}", early.job.id));
        }
    }
}

/// Whether something happened while a job waited after which turns are counted anew.
fn has_jumped(facts: &Facts<'_>, late: &First<'_>) -> bool {
    facts.history.faults.iter().any(|fault| {
        // A batch that is decided again takes the turn of those it had taken jobs of.
        matches!(
            &*fault.kind,
            "restart"
                | "clock_back"
                | "clock_forward"
                | "decided_again"
                | "store_busy"
                | "store_failed"
                | "store_unknown"
        ) && (late.visible_at..=late.given.ended_at).contains(&fault.at)
    })
}

/// F3.
fn in_turn(facts: &Facts<'_>, late: &First<'_>, found: &mut Findings) {
    let (from, until) = (late.job.run_at + NOTICE_MICROS, late.given.grant.granted_at);
    if has_jumped(facts, late) || until <= from {
        return;
    }
    // All tries of the own tenant, told or not, and what others were told they got.
    let own = facts.jobs.values().filter(|job| job.tenant == late.job.tenant);
    let own = own.flat_map(|job| job.attempts()).map(|(start, _)| (start.at, true));
    let others = facts.grants.values().flatten().filter(|given| {
        let is_other =
            facts.jobs.get(&*given.grant.job).is_some_and(|job| job.tenant != late.job.tenant);
        let is_between =
            given.invoked_at >= late.visible_at && given.ended_at <= late.given.ended_at;
        is_other && given.scope.is_open() && is_between
    });
    let others = others.map(|given| (given.grant.granted_at, false));
    let mut served: Vec<(i64, bool)> =
        own.chain(others).filter(|(at, _)| (from..until).contains(at)).collect();
    served.sort_unstable();
    let mut count = 0;
    // In which order those of one batch were served is not told: perhaps the own one came last.
    for batch in served.chunk_by(|one, other| one.0 == other.0) {
        let has_own = batch.iter().any(|(_, is_own)| *is_own);
        count = if has_own { 0 } else { count + batch.len() };
        if count > OTHERS_MAX {
            let text = format!("waited while others were served {count} times");
            found.add("F3", &late.job.id, text);
            return;
        }
    }
}

/// F6.
fn before_retries(facts: &Facts<'_>, late: &First<'_>, found: &mut Findings) {
    let (from, until) = (late.job.run_at + NOTICE_MICROS, late.given.grant.granted_at);
    if has_jumped(facts, late) || until <= from {
        return;
    }
    let line = |job: &JobDump| (job.tenant.clone(), job.queue.clone());
    let beside = facts.jobs.values().filter(|job| line(job) == line(late.job));
    // Whatever was handed out as fresh, told or not; and the retries that could have been `late`.
    let mut served: Vec<(i64, bool)> = Vec::new();
    for job in beside {
        let starts = job.attempts().into_iter().map(|(start, _)| start);
        served.extend(starts.filter(|start| start.attempt == 1).map(|start| (start.at, false)));
        for given in facts.grants.get(&*job.id).into_iter().flatten() {
            let could = given.scope.is_open() && given.invoked_at >= late.visible_at;
            let is_retry = given.grant.attempt > 1 && could;
            served.extend(is_retry.then_some((given.grant.granted_at, true)));
        }
    }
    served.retain(|(at, _)| (from..until).contains(at));
    served.sort_unstable();
    let mut in_a_row = 0;
    for (_, is_retry) in served {
        in_a_row = if is_retry { in_a_row + 1 } else { 0 };
        if in_a_row > 1 {
            found.add("F6", &late.job.id, "waited while one retry after the other was handed out");
            return;
        }
    }
}
