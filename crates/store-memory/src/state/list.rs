//! Lists of jobs in RAM, by the terms they have. A walk looks at a bounded number of postings under
//! one hold of the lock and says where it stopped; whoever asked goes on from there.

use super::State;
use super::postings::{Met, Postings, Upper, first_of, last_of, upper};
use mainspring_kernel::{Job, JobId, StateName};
use mainspring_store::filter::{lasting_terms, passing_terms};
use mainspring_store::{JobFilter, JobWithHistory, Term};
use std::sync::Arc;

/// Postings looked at under one hold of the lock: a millisecond or two.
const STEPS_MAX: usize = 20_000;

/// What a walk came across.
pub(crate) struct Walked<T> {
    /// What was wanted, newest first.
    pub(crate) found: Vec<T>,
    /// Every job from this id on was looked at, and older ones were not. `None`: all were, or
    /// enough was found.
    pub(crate) stopped_at: Option<JobId>,
    /// Postings looked at.
    pub(crate) steps: usize,
}

/// Puts a job into the postings.
pub(super) fn enter(postings: &mut Postings, job: &Job) {
    postings.enter(job.id);
    lasting_terms(job, |term| postings.add(term, job.id));
    passing_terms(job, |term| postings.add(term, job.id));
}

fn leave(postings: &mut Postings, job: &Job) {
    postings.leave(job.id);
    lasting_terms(job, |term| postings.remove(term, job.id));
    passing_terms(job, |term| postings.remove(term, job.id));
}

/// The terms of a job that a move may change.
pub(super) struct Passing {
    state: StateName,
    code: Option<Arc<str>>,
}

impl Passing {
    pub(super) fn of(job: &Job) -> Self {
        let code = job.last_failure.as_ref().map(|last_failure| last_failure.failure.code.clone());
        Passing { state: job.state.name(), code }
    }

    /// The job has moved.
    pub(super) fn become_those_of(self, job: &Job, postings: &mut Postings) {
        let state = job.state.name();
        if state != self.state {
            postings.remove(Term::State(self.state.as_str()), job.id);
            postings.add(Term::State(state.as_str()), job.id);
        }
        let code = job.last_failure.as_ref().map(|last_failure| &last_failure.failure.code);
        if code != self.code.as_ref() {
            if let Some(was) = &self.code {
                postings.remove(Term::Code(was), job.id);
            }
            if let Some(code) = code {
                postings.add(Term::Code(code), job.id);
            }
        }
    }
}

impl State {
    /// Indexes every job that is here, after loading.
    pub(super) fn enter_all(&mut self) {
        let State { slab, finished, postings, .. } = self;
        slab.iter_mut().for_each(|(_, entry)| enter(postings, &entry.job));
        finished.iter().for_each(|job| enter(postings, job));
    }

    /// Jobs that lists find here, and jobs that are here.
    #[cfg(test)]
    pub(crate) fn listed_and_held(&self) -> (usize, usize) {
        (self.postings.len(), self.slab.len() + self.finished.iter().count())
    }

    /// An ended job comes from elsewhere.
    pub(super) fn take_in_ended(&mut self, ended: JobWithHistory) {
        enter(&mut self.postings, &ended.job);
        self.finished.push(ended);
    }

    /// Ended jobs that the archive lists from now on leave the lists of RAM.
    pub(crate) fn unlist<'a>(&mut self, jobs: impl Iterator<Item = &'a Job>) {
        jobs.for_each(|job| leave(&mut self.postings, job));
    }

    /// Jobs here that a filter admits, below `end`, newest first, each told by `take`; at most
    /// `limit`.
    pub(crate) fn walk<T>(
        &self,
        filter: &JobFilter,
        end: Option<JobId>,
        limit: usize,
        take: impl Fn(&Job) -> T,
    ) -> Walked<T> {
        let mut walked = Walked { found: Vec::new(), stopped_at: None, steps: 0 };
        let oldest = upper(filter.ids().0);
        let own = filter.traced_job().map(upper);
        let mut meeting = self.postings.meeting(&filter.terms());
        let mut from = match end {
            None => Some(Upper::MAX),
            Some(end) => end.0.checked_sub(1).map(|last| (last >> 64) as Upper),
        };
        while let Some(at) = from {
            let met = match meeting.as_mut() {
                Some(meeting) => meeting.at_most(at, STEPS_MAX),
                None => Met::Nowhere,
            };
            let own = own.filter(|own| *own <= at);
            let next = match met {
                Met::At(met) => own.max(Some(met)),
                Met::Nowhere => own,
                // What makes the trace by its id comes in between.
                Met::NotAbove(met) => match own.filter(|own| *own > met) {
                    Some(own) => Some(own),
                    None => {
                        walked.stopped_at = Some(first_of(met.saturating_add(1)));
                        break;
                    }
                },
            };
            let Some(next) = next.filter(|next| *next >= oldest) else { break };
            for job in self.sharing(next) {
                if end.is_none_or(|end| job.id < end) && filter.admits(job) {
                    walked.found.push(take(job));
                }
            }
            if walked.found.len() >= limit {
                break;
            }
            if meeting.as_ref().is_some_and(|meeting| meeting.steps >= STEPS_MAX) {
                walked.stopped_at = Some(first_of(next));
                break;
            }
            from = next.checked_sub(1);
        }
        walked.steps = meeting.map_or(0, |meeting| meeting.steps);
        walked
    }

    /// Jobs whose ids share an upper half, newest first, each once.
    fn sharing(&self, half: Upper) -> Vec<&Job> {
        let live = self.slab.sharing(half).map(|entry| &entry.job);
        let ended = self.finished.between(first_of(half)..=last_of(half));
        let mut jobs: Vec<&Job> = live.chain(ended).collect();
        if jobs.len() > 1 {
            jobs.sort_by_key(|job| std::cmp::Reverse(job.id));
            jobs.dedup_by_key(|job| job.id);
        }
        jobs
    }
}
