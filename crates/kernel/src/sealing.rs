//! The digest of a stretch of moves of all jobs. A line of the audit trail has it, so that the
//! chain covers the history of jobs without a line for every move. It covers what a move is: which
//! job, from where to where, when, which attempt, why and by whom; and the place in the one order.

use crate::entity::audit::Hash;
use crate::evolve::Transition;
use crate::id::JobId;
use sha2::{Digest as _, Sha256};

/// A stretch of moves, and the digest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// The position before its first move.
    pub after: u64,
    /// The position of its last move.
    pub to: u64,
    /// How many moves it has.
    pub moves: u64,
    /// The digest of all of them, in order.
    pub digest: Hash,
}

/// A stretch that grows.
#[derive(Debug, Clone)]
pub struct Stretch {
    hasher: Sha256,
    after: u64,
    to: u64,
    moves: u64,
}

impl Stretch {
    /// One that begins behind a position.
    pub fn after(position: u64) -> Self {
        Stretch { hasher: Sha256::new(), after: position, to: position, moves: 0 }
    }

    /// The position of the last move; that before the first one, if there is none.
    pub fn position(&self) -> u64 {
        self.to
    }

    /// How many moves there are.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The next move; no step is a submission, of which the id of the job tells when it was.
    pub fn add(&mut self, position: u64, job: JobId, step: Option<&Transition>) {
        self.hasher.update(position.to_be_bytes());
        self.hasher.update(job.0.to_be_bytes());
        match step.filter(|step| !is_submission(step)) {
            None => self.hasher.update([0]),
            Some(step) => self.add_step(step),
        }
        self.to = position;
        self.moves += 1;
    }

    fn add_step(&mut self, step: &Transition) {
        let Transition { seq, from, to, at, attempt, reason, actor } = step;
        self.hasher.update([1]);
        self.hasher.update(seq.to_be_bytes());
        self.hasher.update(attempt.to_be_bytes());
        self.hasher.update(at.0.to_be_bytes());
        self.part(from.map_or("", |from| from.as_str()));
        self.part(to.as_str());
        self.part(&actor.to_string());
        // No reason and an empty one are not the same.
        self.hasher.update([u8::from(reason.is_some())]);
        if let Some(reason) = reason {
            self.part(&reason.code);
            self.part(&reason.message);
        }
    }

    fn part(&mut self, text: &str) {
        self.hasher.update((text.len() as u64).to_be_bytes());
        self.hasher.update(text.as_bytes());
    }

    /// The stretch as it stands.
    pub fn seal(&self) -> Seal {
        let digest = self.hasher.clone().finalize().into();
        Seal { after: self.after, to: self.to, moves: self.moves, digest }
    }
}

/// Whether a move is the submission of its job. One store keeps nothing of it but the job.
pub fn is_submission(step: &Transition) -> bool {
    step.from.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evolve::Reason;
    use crate::job::{Actor, StateName};
    use crate::name::{UserId, WorkerId};
    use crate::time::Timestamp;

    fn step() -> Transition {
        Transition {
            seq: 2,
            from: Some(StateName::Queued),
            to: StateName::Running,
            at: Timestamp(1_790_000_000_000_000),
            attempt: 1,
            reason: None,
            actor: Actor::Worker(WorkerId::stored("w".into())),
        }
    }

    fn digest(position: u64, job: u128, step: Option<&Transition>) -> Hash {
        let mut stretch = Stretch::after(position - 1);
        stretch.add(position, JobId(job), step);
        stretch.seal().digest
    }

    #[test]
    fn whatever_is_changed_of_a_move_changes_the_digest() {
        let truth = digest(7, 1, Some(&step()));
        assert_eq!(digest(7, 1, Some(&step())), truth);
        let reason = |code: &'static str, message: &str| {
            Some(Box::new(Reason { code: code.into(), message: message.into() }))
        };
        let others = [
            Transition { seq: 3, ..step() },
            Transition { from: Some(StateName::Retrying), ..step() },
            Transition { to: StateName::Cancelled, ..step() },
            Transition { at: Timestamp(step().at.0 + 1), ..step() },
            Transition { attempt: 2, ..step() },
            Transition { actor: Actor::Worker(WorkerId::stored("x".into())), ..step() },
            Transition { actor: Actor::User(UserId::stored("w".into())), ..step() },
            Transition { reason: reason("", ""), ..step() },
            Transition { reason: reason("A", "b"), ..step() },
            Transition { reason: reason("Ab", ""), ..step() },
        ];
        let mut all: Vec<Hash> = others.iter().map(|it| digest(7, 1, Some(it))).collect();
        all.extend([truth, digest(8, 1, Some(&step())), digest(7, 2, Some(&step()))]);
        all.push(digest(7, 1, None));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "no two are alike");
    }

    #[test]
    fn a_submission_is_the_same_whether_its_step_is_kept_or_not() {
        let user = Actor::User(UserId::stored("u".into()));
        let first = Transition { seq: 1, from: None, to: StateName::Queued, actor: user, ..step() };
        assert_eq!(digest(1, 5, Some(&first)), digest(1, 5, None));
    }

    #[test]
    fn a_stretch_tells_where_it_begins_and_ends() {
        let mut stretch = Stretch::after(40);
        assert_eq!((stretch.position(), stretch.moves()), (40, 0));
        stretch.add(41, JobId(1), None);
        stretch.add(42, JobId(1), Some(&step()));
        let seal = stretch.seal();
        assert_eq!((seal.after, seal.to, seal.moves), (40, 42, 2));
    }
}
