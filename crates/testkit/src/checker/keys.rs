//! I1 to I4: one job per tenant and key while the key is taken, and never two meanings of one key.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call, JobDump, Operation};
use std::collections::{BTreeMap, BTreeSet};

/// How long after its window a key may still be found taken: the answer is a little later than
/// the decision.
const SLACK_MICROS: i64 = 1_000_000;

#[derive(Default)]
struct Uses<'a> {
    jobs: BTreeSet<&'a str>,
    firsts: BTreeMap<&'a str, usize>,
    window_secs: Option<u32>,
    hits: Vec<(&'a Operation, &'a str)>,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let mut uses: BTreeMap<(&str, &str), Uses<'_>> = BTreeMap::new();
    for operation in &facts.history.operations {
        let Call::Submit { tenant, key: Some(key), window_secs, payload, job_type, .. } =
            &operation.call
        else {
            continue;
        };
        let held = uses.entry((tenant, key)).or_default();
        held.window_secs = *window_secs;
        let Some(Answer::Submitted { job: id, is_hit, .. }) = operation.answer() else { continue };
        held.jobs.insert(id);
        if *is_hit {
            held.hits.push((operation, id));
        } else {
            *held.firsts.entry(id).or_default() += 1;
        }
        let Some(job) = facts.jobs.get(&**id) else { continue };
        let is_same = (&job.payload, &job.job_type) == (payload, job_type);
        found.expect(is_same, "I2", id, format!("key {key} was answered with other work"));
        found.expect(job.tenant == *tenant, "I3", id, format!("key {key} crossed tenants"));
    }
    for job in facts.jobs.values() {
        if let Some(key) = &job.key {
            uses.entry((&job.tenant, key)).or_default().jobs.insert(&job.id);
        }
    }
    for ((tenant, key), held) in uses {
        let subject = format!("{tenant}/{key}");
        for (id, count) in &held.firsts {
            let text = format!("{id} was answered as new more than once");
            found.expect(*count <= 1, "I1", &subject, text);
        }
        match held.window_secs {
            None => {
                let kept = held.jobs.iter().filter(|id| !facts.may_be_gone(id)).count();
                let text = format!("has the jobs {:?}", held.jobs);
                found.expect(kept <= 1, "I1", &subject, text);
            }
            Some(secs) => windows(facts, &subject, &held, i64::from(secs) * 1_000_000, found),
        }
    }
}

/// I1 for keys that become free again: not before their window is over, and then they are.
fn windows(facts: &Facts<'_>, subject: &str, held: &Uses<'_>, window: i64, found: &mut Findings) {
    let mut jobs: Vec<&&JobDump> = held.jobs.iter().filter_map(|id| facts.jobs.get(id)).collect();
    jobs.sort_by_key(|job| job.created_at);
    for two in jobs.windows(2) {
        let free_at = two[0].finished_at.map(|end| end + window);
        let is_free = free_at.is_some_and(|free_at| two[1].created_at >= free_at);
        let text = format!("{} was made while {} held the key", two[1].id, two[0].id);
        found.expect(is_free, "I1", subject, text);
    }
    let Some(offset) = server_time_least(facts) else { return };
    for (operation, id) in &held.hits {
        let Some(end) = facts.jobs.get(id).and_then(|job| job.finished_at) else { continue };
        let at = offset + operation.invoked_at as i64;
        let is_taken = at <= end + window + SLACK_MICROS;
        found.expect(is_taken, "I1", subject, format!("{id} holds the key beyond its window"));
    }
}

/// What must at least be added to the harness's time to get the server's, if neither jumped.
fn server_time_least(facts: &Facts<'_>) -> Option<i64> {
    let has_jumps = facts.history.faults.iter().any(|fault| fault.kind.starts_with("clock"));
    let made = facts.history.operations.iter().filter_map(|operation| {
        match (operation.answer()?, operation.ended_at?) {
            (Answer::Submitted { is_hit: false, created_at, .. }, ended_at) => {
                Some(created_at - ended_at as i64)
            }
            _ => None,
        }
    });
    made.max().filter(|_| !has_jumps)
}
