//! I1 to I4: one job per tenant and key, and never two meanings of one key.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
struct Uses<'a> {
    jobs: BTreeSet<&'a str>,
    firsts: usize,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let mut uses: BTreeMap<(&str, &str), Uses<'_>> = BTreeMap::new();
    for operation in &facts.history.operations {
        let Call::Submit { tenant, key: Some(key), payload, job_type, .. } = &operation.call else {
            continue;
        };
        let Some(Answer::Submitted { job: id, is_hit, .. }) = operation.answer() else { continue };
        let held = uses.entry((tenant, key)).or_default();
        held.jobs.insert(id);
        held.firsts += usize::from(!is_hit);
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
        let text = format!("has the jobs {:?}", held.jobs);
        found.expect(held.jobs.len() <= 1, "I1", &subject, text);
        found.expect(held.firsts <= 1, "I1", &subject, "was answered as new more than once");
    }
}
