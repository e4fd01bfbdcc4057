//! E3 and E4: every accepted step with a dead letter has its line in the audit trail, no line tells
//! of a step that nobody took, and the chain of each tenant is whole.

use super::Findings;
use super::facts::Facts;
use crate::history::{Call, TrailDump};
use std::collections::BTreeMap;

/// How often a step was certainly taken, and how often perhaps.
#[derive(Default)]
struct Taken {
    certainly: u64,
    perhaps: u64,
}

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let trails = &facts.history.dump.trails;
    if trails.is_empty() {
        return;
    }
    trails.iter().for_each(|trail| chain(trail, found));
    let mut steps: BTreeMap<(&str, &str), Taken> = BTreeMap::new();
    for operation in &facts.history.operations {
        let Some(step) = step(&operation.call) else { continue };
        let taken = steps.entry(step).or_default();
        taken.certainly += u64::from(operation.answer().is_some());
        taken.perhaps += u64::from(operation.may_have_happened());
    }
    // The same requeue under the same key is answered again, and is one step.
    for ((action, _), taken) in &mut steps {
        if *action == "requeue_item" {
            taken.certainly = taken.certainly.min(1);
            taken.perhaps = taken.perhaps.min(1);
        }
    }
    let mut told: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in trails.iter().flat_map(|trail| &trail.lines).filter(|line| !line.is_denied) {
        if STEPS.contains(&&*line.action) {
            *told.entry((&line.action, &line.object)).or_default() += 1;
        }
    }
    for (step, taken) in &steps {
        let lines = told.remove(step).unwrap_or(0);
        let holds = (taken.certainly..=taken.perhaps.max(taken.certainly)).contains(&lines);
        let Taken { certainly, perhaps } = taken;
        let text = format!("{}: {lines} lines, taken {certainly} to {perhaps} times", step.0);
        found.expect(holds, "E3", step.1, text);
    }
    for ((action, object), lines) in told {
        found.add("E3", object, format!("{action}: {lines} lines of what nobody did"));
    }
}

/// What the lines of steps with dead letters call them.
const STEPS: [&str; 4] = ["requeue_item", "request_discard", "approve_discard", "reject_discard"];

fn step(call: &Call) -> Option<(&'static str, &str)> {
    match call {
        Call::Requeue { item, .. } => Some(("requeue_item", item)),
        Call::RequestDiscard { item, .. } => Some(("request_discard", item)),
        Call::ApproveDiscard { item, .. } => Some(("approve_discard", item)),
        Call::RejectDiscard { item, .. } => Some(("reject_discard", item)),
        Call::Submit { .. }
        | Call::Complete { .. }
        | Call::Fail { .. }
        | Call::Release { .. }
        | Call::Heartbeat { .. }
        | Call::Effect { .. }
        | Call::Pull { .. }
        | Call::Cancel { .. }
        | Call::Read { .. }
        | Call::Pause { .. }
        | Call::ListJobs { .. }
        | Call::ListItems
        | Call::Knock { .. }
        | Call::Revoke { .. } => None,
    }
}

/// E4: without a gap, and whole.
fn chain(trail: &TrailDump, found: &mut Findings) {
    found.expect(trail.is_valid, "E4", &trail.tenant, "its audit trail is broken");
    for (nth, line) in trail.lines.iter().enumerate() {
        let expected = nth as u64 + 1;
        if line.seq != expected {
            let text = format!("line {} stands where {expected} should", line.seq);
            found.add("E4", &trail.tenant, text);
            return;
        }
    }
}
