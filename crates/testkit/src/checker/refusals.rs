//! S4: a refused call changes nothing and is refused with a code that belongs to it. S6: what
//! belongs to one move becomes visible with it.

use super::facts::Facts;
use super::{Findings, firings};
use crate::history::{Answer, Call, JobDump, Operation, Outcome, Seen};
use mainspring_kernel::StateName;

/// Beginnings of codes with which a server refuses whatever it is asked: nobody is there, no room,
/// no right, not now.
const OF_ANY_CALL: [&str; 12] = [
    "UNREACHABLE",
    "BUSY",
    "STORE_",
    "NO_ROOM",
    "DISK_FULL",
    "OVERLOAD",
    "RATE_",
    "TOO_MANY_",
    "BACKLOG_",
    "SHUTTING_DOWN",
    "AUTH_",
    "TENANT_",
];

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    for operation in &facts.history.operations {
        if let Outcome::Fail(code) = &operation.outcome {
            let is_among = |codes: &[&str]| codes.iter().any(|known| code.starts_with(known));
            let is_specified = specified(&operation.call)
                .is_none_or(|codes| is_among(codes) || is_among(&OF_ANY_CALL));
            let text = format!("{:?} was refused with {code}", operation.call);
            found.expect(is_specified, "S4", code, text);
        }
    }
    for job in &facts.history.dump.jobs {
        let calls = facts.calls.get(&*job.id).map(Vec::as_slice).unwrap_or_default();
        cancels(job, calls, found);
        effects(job, calls, found);
        for (_, answer) in facts.accepted(&job.id) {
            if let Answer::Seen(seen) = answer {
                together(job, seen, found);
            }
        }
    }
}

/// How the codes begin that a call may be refused with, if they are few.
fn specified(call: &Call) -> Option<&'static [&'static str]> {
    match call {
        Call::Complete { .. } | Call::Fail { .. } | Call::Release { .. } => {
            Some(&["LEASE_LOST", "REPORT_CONFLICT", "JOB_NOT_FOUND"])
        }
        Call::Heartbeat { .. } => Some(&["LEASE_LOST", "JOB_NOT_FOUND"]),
        Call::Effect { .. } => Some(&["LEASE_LOST", "EFFECT", "JOB_NOT_FOUND"]),
        Call::Cancel { .. } => Some(&["JOB_CANCEL_CONFLICT", "JOB_NOT_FOUND"]),
        Call::Requeue { .. } => Some(&["DLQ_", "IDEMPOTENCY_CONFLICT"]),
        Call::RequestDiscard { .. } | Call::ApproveDiscard { .. } | Call::RejectDiscard { .. } => {
            Some(&["DLQ_", "APPROVAL_"])
        }
        Call::Read { .. } => Some(&["JOB_NOT_FOUND"]),
        Call::Submit { .. }
        | Call::Pull { .. }
        | Call::Pause { .. }
        | Call::ListJobs { .. }
        | Call::ListItems
        | Call::Knock { .. }
        | Call::Revoke { .. } => None,
    }
}

/// S4: what somebody is said to have cancelled, somebody may have cancelled; or the schedule that
/// it came from.
fn cancels(job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    if job.key.as_deref().and_then(firings::source).is_some() {
        return;
    }
    let is_by_hand = job
        .events
        .last()
        .is_some_and(|event| event.to == StateName::Cancelled && event.actor.starts_with("user:"));
    let is_asked = calls
        .iter()
        .any(|call| matches!(call.call, Call::Cancel { .. }) && call.may_have_happened());
    found.expect(!is_by_hand || is_asked, "S4", &job.id, "was cancelled by a refused call");
}

/// S4: every effect was committed by a call that may have happened.
fn effects(job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    for (name, value) in &job.effects {
        let is_asked = calls.iter().any(|call| {
            let is_it = matches!(&call.call, Call::Effect { name: n, value: v, .. }
                if n == name && v == value);
            is_it && call.may_have_happened()
        });
        found.expect(is_asked, "S4", &job.id, format!("effect {name} came by a refused call"));
    }
}

/// S6.
fn together(job: &JobDump, seen: &Seen, found: &mut Findings) {
    let known = job.events.iter().take_while(|event| event.seq <= seen.seq);
    let retries =
        known.clone().filter(|event| event.to == StateName::Retrying && !event.is_release());
    let retries = u32::try_from(retries.count()).ok();
    let text = format!("showed {seen:?}");
    let is_counted = seen.retry_count.is_none() || seen.retry_count == retries;
    found.expect(is_counted, "S6", &job.id, &text);
    let is_timed = known.last().is_none_or(|event| event.at == seen.updated_at);
    found.expect(is_timed, "S6", &job.id, &text);
    found.expect(seen.has_item != Some(false), "S6", &job.id, "failed before its item was there");
}
