//! L10, T1 to T4: what is one tenant's nobody else gets, sees, finds out about or changes, and a
//! token that was revoked opens nothing.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// How long a revoked token may still be honoured.
const REVOKED_MICROS: u64 = 1_000_000;

/// Refusals that say nothing about what was asked for.
const BESIDE_THE_POINT: [&str; 5] =
    ["UNREACHABLE", "AUTH_UNAUTHORIZED", "BUSY", "NO_ROOM", "RATE_LIMITED"];

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    pulls(facts, found);
    lists(facts, found);
    knocks(facts, found);
    revocations(facts, found);
}

/// L10.
fn pulls(facts: &Facts<'_>, found: &mut Findings) {
    for given in facts.grants.values().flatten() {
        let Some(job) = facts.jobs.get(&*given.grant.job) else { continue };
        let scope = given.scope;
        let is_covered = scope.tenant.as_ref().is_none_or(|tenant| *tenant == job.tenant)
            && scope.types.as_ref().is_none_or(|types| types.contains(&job.job_type))
            && scope.queues.as_ref().is_none_or(|queues| queues.contains(&job.queue));
        let text = format!("{} asked for {scope:?}", given.worker);
        found.expect(is_covered, "L10", &job.id, text);
    }
}

/// T1.
fn lists(facts: &Facts<'_>, found: &mut Findings) {
    for operation in &facts.history.operations {
        let (Call::ListJobs { tenant }, Some(Answer::Listed(ids))) =
            (&operation.call, operation.answer())
        else {
            continue;
        };
        for id in ids {
            let Some(job) = facts.jobs.get(&**id) else { continue };
            let text = format!("was shown to {tenant} and is {}'s", job.tenant);
            found.expect(job.tenant == *tenant, "T1", id, text);
        }
    }
}

/// T2 and T3.
fn knocks(facts: &Facts<'_>, found: &mut Findings) {
    let mut foreign: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in &facts.history.operations {
        let Call::Knock { tenant, job, what, .. } = &operation.call else { continue };
        let owner = facts.jobs.get(&**job).map(|job| &job.tenant);
        if owner == Some(tenant) {
            continue;
        }
        match &operation.outcome {
            Outcome::Ok(_) => {
                found.add("T3", job, format!("{tenant} may {what} it, {owner:?} owns it"));
            }
            Outcome::Fail(code) if !BESIDE_THE_POINT.contains(&&**code) => {
                let kind = if owner.is_some() { &mut foreign } else { &mut unknown };
                kind.entry(what).or_default().insert(code);
            }
            Outcome::Fail(_) | Outcome::Info | Outcome::Gone => {}
        }
    }
    for (what, codes) in &foreign {
        let Some(others) = unknown.get(what) else { continue };
        let text = format!("others' jobs answer {codes:?}, jobs that are not {others:?}");
        found.expect(codes == others, "T2", what, text);
    }
}

/// T4.
fn revocations(facts: &Facts<'_>, found: &mut Findings) {
    let mut revoked: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in &facts.history.operations {
        if let (Call::Revoke { token }, Some(_), Some(at)) =
            (&operation.call, operation.answer(), operation.ended_at)
        {
            let known = revoked.entry(token).or_insert(at);
            *known = (*known).min(at);
        }
    }
    for operation in &facts.history.operations {
        let Call::Knock { token, job, .. } = &operation.call else { continue };
        let Some(at) = revoked.get(&**token) else { continue };
        let is_late = operation.invoked_at > at + REVOKED_MICROS;
        let is_honoured = is_late && operation.answer().is_some();
        found.expect(!is_honoured, "T4", job, format!("{token} was honoured after its end"));
    }
}
