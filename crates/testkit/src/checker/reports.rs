//! L3, L4 and D2 for reports: an accepted report is what ended its attempt, once; and X1, an effect
//! is committed once.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call, EventDump, JobDump, Operation};
use mainspring_kernel::StateName;
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    for (id, calls) in &facts.calls {
        let Some(job) = facts.jobs.get(id) else {
            let is_known =
                facts.may_be_gone(id) || calls.iter().all(|call| call.answer().is_none());
            found.expect(is_known, "D1", id, "answered and is gone");
            continue;
        };
        reports(facts, job, found);
        effects(facts, job, found);
        unexplained(job, calls, found);
    }
}

/// L3 and L4.
fn reports(facts: &Facts<'_>, job: &JobDump, found: &mut Findings) {
    let mut said: BTreeMap<&str, &Call> = BTreeMap::new();
    for (operation, _) in facts.accepted(&job.id).filter(|(op, _)| op.is_report()) {
        let (Some(token), Some(fence)) = (operation.token(), operation.fence()) else { continue };
        let first = *said.entry(token).or_insert(&operation.call);
        let is_same = has_same_content(first, &operation.call);
        found.expect(is_same, "L4", &job.id, format!("lease {fence} ended in two ways"));
        let Some((_, end)) = job.attempt(fence) else {
            found.add("L3", &job.id, format!("a report under unknown lease {fence} was accepted"));
            continue;
        };
        let is_kept = end.is_some_and(|end| is_outcome(&operation.call, end));
        let text = format!("the accepted report under lease {fence} did not end it: {end:?}");
        found.expect(is_kept, "L3", &job.id, text);
    }
}

fn has_same_content(a: &Call, b: &Call) -> bool {
    match (a, b) {
        // The wish for a delay is not part of what was reported.
        (
            Call::Fail { code, retryable, .. },
            Call::Fail { code: other, retryable: other_retryable, .. },
        ) => code == other && retryable == other_retryable,
        _ => a == b,
    }
}

/// Whether `end` is what `call` brings about.
fn is_outcome(call: &Call, end: &EventDump) -> bool {
    match call {
        Call::Complete { .. } => end.to == StateName::Succeeded,
        Call::Release { .. } => end.is_release(),
        Call::Fail { code, retryable, .. } => {
            let is_code = end.code.as_ref() == Some(code);
            match end.to {
                StateName::Retrying => *retryable && is_code,
                StateName::DlqPending if *retryable => {
                    end.code.as_deref() == Some("TASK_RETRY_EXHAUSTED")
                }
                StateName::DlqPending => is_code,
                _ => false,
            }
        }
        _ => true,
    }
}

/// L3: what a worker is said to have ended, a worker may have ended.
fn unexplained(job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    for (nth, (_, end)) in job.attempts().into_iter().enumerate() {
        let Some(end) = end.filter(|end| end.actor.starts_with("worker:")) else { continue };
        let fence = u32::try_from(nth + 1).ok();
        let is_explained = end.is_release()
            || calls.iter().any(|call| {
                call.is_report()
                    && call.fence() == fence
                    && call.may_have_happened()
                    && is_outcome(&call.call, end)
            });
        found.expect(is_explained, "L3", &job.id, format!("nobody reported {end:?}"));
    }
}

/// X1.
fn effects(facts: &Facts<'_>, job: &JobDump, found: &mut Findings) {
    let mut values: BTreeMap<&str, &str> = BTreeMap::new();
    let mut firsts: BTreeMap<&str, u32> = BTreeMap::new();
    for (operation, answer) in facts.accepted(&job.id) {
        let (Call::Effect { name, .. }, Answer::Effect { value, is_first }) =
            (&operation.call, answer)
        else {
            continue;
        };
        let known = *values.entry(name).or_insert(value);
        found.expect(known == value, "X1", &job.id, format!("effect {name} has two values"));
        let count = firsts.entry(name).or_default();
        *count += u32::from(*is_first);
        found.expect(*count <= 1, "X1", &job.id, format!("effect {name} was committed twice"));
    }
}
