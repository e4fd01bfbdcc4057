//! R1 to R6: how often, when and whether at all a job is tried again.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call, EventDump, JobDump, Operation, Seen};
use mainspring_kernel::StateName;

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    for job in &facts.history.dump.jobs {
        counts(job, found);
        let calls = facts.calls.get(&*job.id).map(Vec::as_slice).unwrap_or_default();
        choices(job, calls, found);
        delays(facts, job, calls, found);
        promises(facts, job, calls, found);
    }
}

/// R1, R2 and R6.
fn counts(job: &JobDump, found: &mut Findings) {
    let mut used = 0;
    for (start, end) in job.attempts() {
        let text = format!("attempt {} follows {used} used ones", start.attempt);
        found.expect(start.attempt == used + 1, "R2", &job.id, text);
        let is_counted = end.is_some_and(|end| {
            matches!(end.to, StateName::Retrying | StateName::DlqPending) && !end.is_release()
        });
        used += u32::from(is_counted);
    }
    let most = job.max_retries + 1;
    found.expect(used <= most, "R1", &job.id, format!("used {used} of {most} attempts"));
    found.expect(job.retry_count < most, "R1", &job.id, "counts more retries than allowed");
    let pairs: Vec<_> = job.attempts();
    for two in pairs.windows(2) {
        let [(first, end), (second, _)] = two else { continue };
        let is_new = first.attempt != second.attempt || end.is_some_and(EventDump::is_release);
        found.expect(is_new, "R6", &job.id, format!("attempt {} ran twice", first.attempt));
    }
}

/// R4 and R5.
fn choices(job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    for (nth, (start, end)) in job.attempts().into_iter().enumerate() {
        let Some(end) = end else { continue };
        let is_last = start.attempt == job.max_retries + 1;
        let is_exhausted = end.code.as_deref() == Some("TASK_RETRY_EXHAUSTED");
        let fence = u32::try_from(nth + 1).ok();
        let mut said = calls.iter().filter(|call| {
            let is_final = matches!(call.call, Call::Fail { retryable: false, .. });
            call.fence() == fence && call.may_have_happened() && is_final
        });
        let is_by_hand = end.actor.starts_with("user:");
        match end.to {
            StateName::DlqPending if is_exhausted => {
                found.expect(is_last, "R5", &job.id, "was given up with tries left");
            }
            StateName::DlqPending => {
                let is_asked = is_by_hand || said.next().is_some();
                found.expect(is_asked, "R5", &job.id, "was given up although it may be retried");
            }
            StateName::Retrying if !end.is_release() => {
                found.expect(!is_last, "R5", &job.id, "is retried more often than allowed");
                let mut accepted = said.filter(|call| call.answer().is_some());
                let is_final = accepted.next().is_some();
                found.expect(!is_final, "R4", &job.id, "is retried although that cannot help");
            }
            _ => {}
        }
    }
}

/// Most jitter.
const JITTER_MS: u64 = 300;

/// R3: what is shown as the time of the next try is the rule's: not before and not after.
fn promises(facts: &Facts<'_>, job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    let Some(rules) = facts.history.types.iter().find(|rules| rules.name == job.job_type) else {
        return;
    };
    for (_, answer) in facts.accepted(&job.id) {
        let Answer::Seen(Seen { seq, due_at: Some(due_at), .. }) = answer else { continue };
        let tries = job.attempts().into_iter().enumerate();
        let mut tries = tries.filter(|(_, (_, end))| end.is_some_and(|end| end.seq == *seq));
        let Some((nth, (start, Some(end)))) = tries.next() else { continue };
        if end.is_release() {
            found.expect(*due_at == end.at, "R3", &job.id, "a release has to wait");
            continue;
        }
        let fence = u32::try_from(nth + 1).ok();
        let own = calls.iter().filter(|call| call.fence() == fence && call.may_have_happened());
        let chosen: Vec<u64> = own
            .filter_map(|call| match &call.call {
                Call::Fail { delay_ms, .. } => *delay_ms,
                _ => None,
            })
            .collect();
        let grown = (rules.base_ms << (start.attempt - 1).min(20)).min(rules.max_ms);
        let wait = u64::try_from((due_at - end.at) / 1000).unwrap_or(u64::MAX);
        let is_kept = (grown..=grown + JITTER_MS).contains(&wait) || chosen.contains(&wait);
        let text = format!("waits {wait} ms where the rule says {grown} to {JITTER_MS} more");
        found.expect(is_kept, "R3", &job.id, text);
    }
}

/// R3: not before the delay.
fn delays(facts: &Facts<'_>, job: &JobDump, calls: &[&Operation], found: &mut Findings) {
    let Some(rules) = facts.history.types.iter().find(|rules| rules.name == job.job_type) else {
        return;
    };
    let attempts = job.attempts();
    for (nth, two) in attempts.windows(2).enumerate() {
        let [(start, Some(end)), (next, _)] = two else { continue };
        if end.is_release() {
            continue;
        }
        let fence = u32::try_from(nth + 1).ok();
        let doublings = (start.attempt - 1).min(20);
        let grown = (rules.base_ms << doublings).min(rules.max_ms);
        // Of several reports about one attempt the first counts, and that may be any of them; if
        // none was acknowledged, the attempt may have ended without one.
        let told = calls.iter().filter(|call| call.fence() == fence && call.may_have_happened());
        let mut delays: Vec<u64> = told
            .clone()
            .filter_map(|call| match &call.call {
                Call::Fail { delay_ms, .. } => Some(delay_ms.unwrap_or(grown)),
                _ => None,
            })
            .collect();
        if !told.into_iter().any(|call| call.is_report() && call.answer().is_some()) {
            delays.push(grown);
        }
        let least = delays.into_iter().min().unwrap_or(grown);
        let waited = (next.at - end.at) / 1000;
        let is_kept = u64::try_from(waited).is_ok_and(|waited| waited >= least);
        found.expect(is_kept, "R3", &job.id, format!("retried after {waited} of {least} ms"));
    }
}
