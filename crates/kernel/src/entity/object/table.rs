//! What becomes of an object when an action on it was done, and when the next one is due. Pairs
//! that the table does not have change nothing, but the next action is set all the same.

use super::{Object, Status};
use crate::governance::{Action, ObjectType};
use crate::time::Timestamp;

const DAY_MS: u64 = 24 * 3600 * 1000;
/// From here on, in thousandths, an experience is believed without a signal.
const BELIEVED_MILLIS: u16 = 600;

/// What an action comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Where the object stands afterwards; as before if it does not say.
    pub status: Option<Status>,
    /// When the next action is due, if nobody says otherwise.
    pub next_action_at: Timestamp,
}

/// What `action`, done at `now`, makes of `object`.
pub fn outcome(object: &Object, action: Action, now: Timestamp) -> Outcome {
    let days = match action {
        Action::Verify => 14,
        Action::Revalidate | Action::ReinstateCheck => 7,
        Action::Decay => 3,
        Action::Archive => 30,
    };
    let status = object.status.and_then(|from| match object.object_type {
        ObjectType::Memory => of_memory(object, from, action),
        ObjectType::Experience => of_experience(object, from, action),
        ObjectType::Cognition => None,
    });
    Outcome { status, next_action_at: now.plus_millis(days * DAY_MS) }
}

fn of_memory(object: &Object, from: Status, action: Action) -> Option<Status> {
    let is_wanted = object.signals.speak_for_it();
    let is_stale = matches!(from, Status::Stale | Status::StaleUncertain);
    match action {
        Action::Verify => match from {
            Status::Candidate | Status::Quarantine | Status::StaleUncertain => {
                Some(Status::Verified)
            }
            Status::Poisoned => Some(Status::RejectedPoisoned),
            Status::Verified
            | Status::Active
            | Status::Stale
            | Status::RejectedPoisoned
            | Status::NeedsReview
            | Status::Invalidated
            | Status::Archived => None,
        },
        Action::Revalidate if is_stale && is_wanted => Some(Status::Active),
        Action::Revalidate if is_stale => Some(Status::StaleUncertain),
        Action::Revalidate if from == Status::Verified && is_wanted => Some(Status::Active),
        Action::Decay if matches!(from, Status::Active | Status::Verified) => Some(Status::Stale),
        Action::Archive if is_stale || from == Status::RejectedPoisoned => Some(Status::Archived),
        Action::ReinstateCheck if is_stale && is_wanted => Some(Status::Active),
        Action::Revalidate | Action::Decay | Action::Archive | Action::ReinstateCheck => None,
    }
}

fn of_experience(object: &Object, from: Status, action: Action) -> Option<Status> {
    let is_wanted = object.signals.speak_for_it();
    let is_believed = object.signals.confidence_millis.is_some_and(|sure| sure >= BELIEVED_MILLIS);
    let is_open = matches!(from, Status::NeedsReview | Status::Invalidated | Status::Candidate);
    match action {
        Action::Verify if from == Status::Candidate => Some(Status::Active),
        Action::Revalidate if is_open && (is_wanted || is_believed) => Some(Status::Active),
        Action::Revalidate if is_open => Some(Status::NeedsReview),
        Action::Decay if from == Status::Active => Some(Status::NeedsReview),
        Action::Archive
            if matches!(from, Status::NeedsReview | Status::Active | Status::Invalidated) =>
        {
            Some(Status::Archived)
        }
        Action::ReinstateCheck if from == Status::NeedsReview && is_wanted => Some(Status::Active),
        Action::Verify
        | Action::Revalidate
        | Action::Decay
        | Action::Archive
        | Action::ReinstateCheck => None,
    }
}
