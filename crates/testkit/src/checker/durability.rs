//! D1 to D5: what was acknowledged is there, unchanged, and nothing else is.

use super::facts::Facts;
use super::{Findings, firings};
use crate::history::{Answer, Call, Outcome, Seen};
use mainspring_kernel::entity::alert::ALERT_TYPE;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    submissions(facts, found);
    phantoms(facts, found);
    effects_of_calls(facts, found);
    reads_never_go_back(facts, found);
    after_a_failed_disk(facts, found);
}

/// D1 and D4: an accepted job is there as it was wished.
fn submissions(facts: &Facts<'_>, found: &mut Findings) {
    for operation in &facts.history.operations {
        let (Call::Submit { tenant, job_type, payload, delay_ms, .. }, Some(answer)) =
            (&operation.call, operation.answer())
        else {
            continue;
        };
        let Answer::Submitted { job: id, is_hit, created_at } = answer else { continue };
        let Some(job) = facts.jobs.get(&**id) else {
            found.expect(facts.may_be_gone(id), "D1", id, "was accepted and is gone");
            continue;
        };
        if *is_hit {
            continue;
        }
        let is_same = (&job.tenant, &job.job_type, &job.payload) == (tenant, job_type, payload);
        found.expect(is_same, "D4", id, "is not what was submitted");
        found.expect(job.created_at == *created_at, "D4", id, "has another time of creation");
        let earliest = created_at + i64::try_from(*delay_ms).unwrap_or(0) * 1000;
        found.expect(job.run_at >= earliest, "L9", id, "lost its delay");
    }
}

/// D3: every job comes from a call that may have happened, and each call made at most one.
fn phantoms(facts: &Facts<'_>, found: &mut Findings) {
    let mut wishes: BTreeMap<(&str, &str), (usize, BTreeSet<&str>)> = BTreeMap::new();
    for operation in &facts.history.operations {
        let Call::Submit { tenant, payload, .. } = &operation.call else { continue };
        let (unknown, known) = wishes.entry((tenant, payload)).or_default();
        match &operation.outcome {
            Outcome::Ok(Answer::Submitted { job, .. }) => {
                known.insert(job);
            }
            Outcome::Info | Outcome::Gone => *unknown += 1,
            Outcome::Ok(_) | Outcome::Fail(_) => {}
        }
    }
    let mut made: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let is_fired = |key: &str| firings::source(key).is_some();
    // Alerts are told by jobs of the server's own.
    let asked = |job: &&&crate::history::JobDump| {
        job.source_item.is_none()
            && job.job_type != ALERT_TYPE
            && !job.key.as_deref().is_some_and(is_fired)
    };
    for job in facts.jobs.values().filter(asked) {
        let wish = (&*job.tenant, &*job.payload);
        let count = made.entry(wish).or_default();
        *count += 1;
        let most = wishes.get(&wish).map_or(0, |(unknown, known)| unknown + known.len());
        found.expect(*count <= most, "D3", &job.id, "nobody asked for this job");
    }
}

/// D2: what an accepted call did is in the final state.
fn effects_of_calls(facts: &Facts<'_>, found: &mut Findings) {
    for (id, job) in &facts.jobs {
        for (operation, answer) in facts.accepted(id) {
            match (&operation.call, answer) {
                (Call::Cancel { .. }, _) => {
                    let is_kept = job.state == mainspring_kernel::StateName::Cancelled;
                    found.expect(is_kept, "D2", id, "was cancelled and is not");
                }
                (Call::Effect { name, .. }, Answer::Effect { value, .. }) => {
                    let is_kept = job.effects.iter().any(|(n, v)| n == name && v == value);
                    found.expect(is_kept, "D2", id, format!("effect {name} is gone"));
                }
                (Call::Read { .. }, Answer::Seen(Seen { state, seq, updated_at, .. })) => {
                    let event = job.events.iter().find(|event| event.seq == *seq);
                    let is_kept = event.is_some_and(|event| event.to == *state);
                    found.expect(is_kept, "D2", id, format!("was {state} at event {seq}"));
                    let is_later = job.updated_at >= *updated_at;
                    found.expect(is_later, "S7", id, "was changed later than it says");
                }
                _ => {}
            }
        }
    }
}

/// D2: whoever looks sees no less than was seen before.
fn reads_never_go_back(facts: &Facts<'_>, found: &mut Findings) {
    for id in facts.jobs.keys() {
        let mut seen: Vec<(u64, u32)> = Vec::new();
        for (operation, answer) in facts.accepted(id) {
            let (Answer::Seen(now), Some(ended_at)) = (answer, operation.ended_at) else {
                continue;
            };
            let before = seen.iter().filter(|(at, _)| *at < operation.invoked_at);
            let known = before.map(|(_, seq)| *seq).max().unwrap_or(0);
            let text = format!("was at event {known} and then at {}", now.seq);
            found.expect(now.seq >= known, "D2", id, text);
            seen.push((ended_at, now.seq));
        }
    }
}

/// D5: once the disk has failed nothing is acknowledged until the restart.
fn after_a_failed_disk(facts: &Facts<'_>, found: &mut Findings) {
    let mut failed_at = None;
    for fault in &facts.history.faults {
        match &*fault.kind {
            "stopped_for_nothing" => {
                found.add("D5", "the store", "stopped although no write or sync had failed");
            }
            "disk_failed" => failed_at = failed_at.or(Some(fault.at)),
            "restart" => {
                if let Some(from) = failed_at.take() {
                    acknowledged_between(facts, from, fault.at, found);
                }
            }
            _ => {}
        }
    }
}

fn acknowledged_between(facts: &Facts<'_>, from: u64, until: u64, found: &mut Findings) {
    for operation in &facts.history.operations {
        let (Some(ended_at), Some(answer)) = (operation.ended_at, operation.answer()) else {
            continue;
        };
        let is_change = match answer {
            Answer::Grants(grants) => !grants.is_empty(),
            Answer::Seen(_) | Answer::Listed(_) => false,
            _ => true,
        };
        if is_change && ended_at > from && ended_at < until {
            let subject = format!("{:?}", operation.call);
            found.add("D5", &subject, "was acknowledged after the disk had failed");
        }
    }
}
