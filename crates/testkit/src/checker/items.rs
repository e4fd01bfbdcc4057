//! Q1 to Q5: dead-letter items, run again once or dropped by two people.

use super::Findings;
use super::facts::Facts;
use crate::history::{Answer, Call, ItemDump};
use mainspring_kernel::StateName;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts<'_>, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for item in &facts.history.dump.items {
        found.expect(seen.insert(&item.id), "Q1", &item.id, "is listed twice");
        let job = facts.jobs.get(&*item.job);
        let is_failed =
            job.is_some_and(|job| matches!(job.state, StateName::DlqRecorded | StateName::Failed));
        let is_failed = is_failed || (job.is_none() && facts.may_be_gone(&item.job));
        found.expect(is_failed, "Q1", &item.id, "is about a job that did not fail");
        requeues(facts, item, found);
        discards(facts, item, found);
    }
    listed(facts, &seen, found);
    for operation in facts.history.operations.iter().filter(|op| op.answer().is_some()) {
        let item = match &operation.call {
            Call::Requeue { item, .. }
            | Call::RequestDiscard { item, .. }
            | Call::ApproveDiscard { item, .. }
            | Call::RejectDiscard { item, .. } => item,
            _ => continue,
        };
        found.expect(seen.contains(item), "D2", item, "answered and is gone");
    }
}

/// Q5: what was listed once is listed ever after.
fn listed(facts: &Facts<'_>, kept: &BTreeSet<&String>, found: &mut Findings) {
    let mut known: BTreeMap<&str, u64> = BTreeMap::new();
    for operation in &facts.history.operations {
        let (Call::ListItems, Some(Answer::Listed(ids)), Some(ended_at)) =
            (&operation.call, operation.answer(), operation.ended_at)
        else {
            continue;
        };
        for id in ids {
            found.expect(kept.contains(id), "Q5", id, "was listed and is gone");
        }
        for (id, since) in &known {
            let is_there = *since >= operation.invoked_at || ids.iter().any(|one| one == id);
            found.expect(is_there, "Q5", id, "was listed and then was not");
        }
        for id in ids {
            let since = known.entry(id).or_insert(ended_at);
            *since = (*since).min(ended_at);
        }
    }
}

/// Q2 and Q4.
fn requeues(facts: &Facts<'_>, item: &ItemDump, found: &mut Findings) {
    let made: BTreeSet<&str> = facts
        .jobs
        .values()
        .filter(|job| job.source_item.as_ref() == Some(&item.id))
        .map(|job| &*job.id)
        .collect();
    let told: BTreeSet<&str> = facts
        .history
        .operations
        .iter()
        .filter_map(|op| match (&op.call, op.answer()) {
            (Call::Requeue { item: id, .. }, Some(Answer::Requeued { job })) if *id == item.id => {
                Some(&**job)
            }
            _ => None,
        })
        .collect();
    let is_requeued = item.state == "requeued";
    let text = format!("is {} and runs again as {made:?}", item.state);
    let is_gone = item.requeued_as.as_ref().is_some_and(|job| facts.may_be_gone(job));
    let is_made = made.len() == usize::from(is_requeued) || (made.is_empty() && is_gone);
    found.expect(is_made, "Q2", &item.id, text);
    let is_told = told.iter().all(|job| item.requeued_as.as_deref() == Some(job));
    found.expect(is_told, "Q2", &item.id, format!("was answered with {told:?}"));
    let is_both = item.state == "discarded" && !made.is_empty();
    found.expect(!is_both, "Q4", &item.id, "was requeued and discarded");
}

/// Q3.
fn discards(facts: &Facts<'_>, item: &ItemDump, found: &mut Findings) {
    let mut proposers = BTreeSet::new();
    let mut approvers = BTreeSet::new();
    for operation in facts.history.operations.iter().filter(|op| op.may_have_happened()) {
        match &operation.call {
            Call::RequestDiscard { item: id, by, reason }
                if *id == item.id && !reason.is_empty() =>
            {
                proposers.insert(&**by);
            }
            Call::ApproveDiscard { item: id, by } if *id == item.id => {
                approvers.insert(&**by);
                let is_kept = operation.answer().is_none() || item.state == "discarded";
                found.expect(is_kept, "D2", &item.id, "a discard was undone");
            }
            _ => {}
        }
    }
    if item.state != "discarded" {
        return;
    }
    let (Some(first), Some(second)) = (&item.proposed_by, &item.approved_by) else {
        found.add("Q3", &item.id, "was discarded without two people");
        return;
    };
    let is_two = first != second && proposers.contains(&**first) && approvers.contains(&**second);
    found.expect(is_two, "Q3", &item.id, format!("was discarded by {first} and {second}"));
}
