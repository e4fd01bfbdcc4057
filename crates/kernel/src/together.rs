//! Several commands that are taken all or none. Each is decided by its own rule on the same facts
//! as if it came alone, so no part may touch what another one does: then the order of the parts
//! does not matter, and what all of them bring about can be applied as one decision.

use crate::command::Command;
use crate::decide::{Decision, Receipt};
use crate::limits::TOGETHER_MAX;
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
