//! Several commands that are taken all or none. Each is decided by its own rule on the same facts
//! as if it came alone, so no part may touch what another one does: then the order of the parts
//! does not matter, and what all of them bring about can be applied as one decision.

use crate::command::{Command, Follows};
use crate::decide::{Decision, Receipt};
use crate::entity::EntityCommand;
use crate::entity::audit::{AuditCommand, Fate};
use crate::entity::wait::Member;
use crate::event::{Change, Event, JobEvent};
use crate::job::{After, AfterCondition, StateName};
use crate::limits::{BATCH_MAX, TOGETHER_MAX};
use crate::rejection::Rejection;
use std::collections::HashSet;

/// Refuses parts that cannot be decided beside each other.
///
/// # Errors
/// If there are too many, if two touch the same thing, or if one is itself several.
pub fn check(parts: &[Command]) -> Result<(), Rejection> {
    if parts.len() > TOGETHER_MAX {
        return Err(refused("are too many to be taken together"));
    }
    let (mut jobs, mut items) = (HashSet::new(), HashSet::new());
    let (mut entities, mut keys) = (HashSet::new(), HashSet::new());
    let is_apart = parts.iter().all(|part| {
        !matches!(part, Command::Together(_))
            && part.job().iter().chain(part.watched()).all(|it| jobs.insert(*it))
            && part.item().into_iter().all(|it| items.insert(it))
            && part.entity().into_iter().all(|it| entities.insert(it))
            && part.key().into_iter().chain(part.alias()).all(|it| keys.insert(it))
    });
    if is_apart { Ok(()) } else { Err(refused("must not touch the same thing twice")) }
}

/// The batch of jobs that these parts are, if they are: submissions, of which some may name earlier
/// ones, and perhaps one that follows them all.
pub fn is_batch(parts: &[Command]) -> bool {
    let follows = |part: &Command| matches!(part, Command::Submit(wish) if wish.follows.is_some());
    parts.iter().any(follows)
}

/// Refuses a batch that cannot be taken as one.
///
/// # Errors
/// If it is too large, or if two of its jobs have the same key.
pub fn check_batch(parts: &[Command]) -> Result<(), Rejection> {
    if parts.len() > BATCH_MAX + 1 {
        return Err(refused("are too many to be taken together"));
    }
    let named: usize = parts.iter().map(names).sum();
    if named > BATCH_MAX {
        let reason = "must come to at most 10000 jobs in a batch";
        return Err(Rejection::FieldInvalid { field: "after", reason });
    }
    let mut keys = HashSet::new();
    let is_apart = parts.iter().all(|part| {
        matches!(part, Command::Submit(_))
            && part.key().into_iter().chain(part.alias()).all(|it| keys.insert(it))
    });
    if is_apart { Ok(()) } else { Err(refused("must have different idempotency keys")) }
}

/// How many jobs a submission names one by one.
fn names(part: &Command) -> usize {
    let Command::Submit(wish) = part else { return 0 };
    let places = match &wish.follows {
        Some(Follows::Some(places)) => places.len(),
        Some(Follows::All) | None => 0,
    };
    part.watched().len() + places
}

/// A submission with the jobs of its batch that it waits for named, if there are any; `earlier` are
/// those before it.
///
/// # Errors
/// If it names one that does not come before it.
pub fn naming_earlier(part: &Command, earlier: &[Member]) -> Result<Option<Command>, Rejection> {
    let Command::Submit(wish) = part else { return Ok(None) };
    let Some(follows) = &wish.follows else { return Ok(None) };
    let mut wish = wish.clone();
    let none = || After { jobs: Vec::new(), members: 0, condition: AfterCondition::Success };
    let after = wish.bounds.after.get_or_insert_with(none);
    match follows {
        Follows::All => after.members = u32::try_from(earlier.len()).unwrap_or(u32::MAX),
        Follows::Some(places) => {
            for place in places {
                let reason = "must name jobs that come earlier in the batch";
                let earlier = earlier.get(*place as usize);
                let field = "after";
                after.jobs.push(earlier.ok_or(Rejection::FieldInvalid { field, reason })?.job);
            }
        }
    }
    Ok(Some(Command::Submit(wish)))
}

/// The job of a batch that a decision is about.
pub fn member(decision: &Decision) -> Option<Member> {
    let is_cancelled = |event: &Event| {
        matches!(event, Event::JobMoved(JobEvent { change: Change::Cancelled { .. }, .. }))
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "a submission has two receipts")]
    match decision.receipt {
        Receipt::Submitted { job } if decision.events.iter().any(is_cancelled) => {
            Some(Member { job, state: Some(StateName::Cancelled) })
        }
        Receipt::Submitted { job } => Some(Member { job, state: Some(StateName::Queued) }),
        Receipt::Existing { job, state } => Some(Member { job, state }),
        _ => None,
    }
}

/// Whether what a part asks for is not done now, so that nothing that goes with it is done either:
/// a job that was taken back because of a gate was not acknowledged, and one that was acknowledged
/// before is not acknowledged again.
pub fn stands_alone(part: &Command, decision: &Decision) -> bool {
    let is_taken_back = matches!(decision.receipt, Receipt::TakenBack { .. });
    matches!(part, Command::Ack(_)) && (is_taken_back || decision.events.is_empty())
}

/// Whether a part is the audit line of a deed that the parts before it found done already: what was
/// only answered again is not told again.
pub fn tells_of_nothing(part: &Command, before: &[Decision]) -> bool {
    let Command::Entity(asked) = part else { return false };
    let EntityCommand::Audit(AuditCommand::Append { note, .. }) = &**asked else { return false };
    note.fate == Fate::Done
        && !before.is_empty()
        && before.iter().all(|decision| decision.events.is_empty())
}

/// What all parts bring about.
pub fn merge(parts: Vec<Decision>) -> Decision {
    let (mut events, mut receipts) = (Vec::new(), Vec::with_capacity(parts.len()));
    for part in parts {
        events.extend(part.events);
        receipts.push(part.receipt);
    }
    Decision { events, receipt: Receipt::Together(receipts) }
}

fn refused(reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field: "commands", reason }
}
