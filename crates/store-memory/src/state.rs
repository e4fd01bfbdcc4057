//! All live state in RAM: jobs, what is indexed about them, and the small registries. One writer at
//! a time applies events; the same code rebuilds it at recovery. Knows nothing of files.
//! Read next: `state/index.rs` for what makes a pull cheap, `state/load.rs` for recovery.

mod entities;
mod finished;
mod index;
mod items;
mod keys;
mod list;
mod load;
mod moves;
mod postings;
mod read;
mod restore;
mod slab;

pub(crate) use finished::Batch;
pub(crate) use list::Walked;
pub(crate) use load::Loader;

use entities::Entities;
use finished::Finished;
use index::{Index, Spot};
use items::Items;
use keys::Keys;
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::evolve::{Mismatch, Transition, keep_effect, renew};
use mainspring_kernel::job::ProgressNote;
use mainspring_kernel::{
    Event, Job, JobEvent, JobId, Lease, Timestamp, Token, TokenId, Totals, evolve,
};
use mainspring_store::{JobWithHistory, Scope};
use moves::RecentMoves;
use postings::Postings;
use slab::{Entry, Slab};
use std::collections::BTreeMap;

/// Everything the store knows without asking the disk.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) slab: Slab,
    pub(crate) index: Index,
    pub(crate) items: Items,
    pub(crate) entities: Entities,
    pub(crate) tokens: BTreeMap<TokenId, Token>,
    pub(crate) keys: Keys,
    pub(crate) finished: Finished,
    /// Of every job here, live or ended.
    postings: Postings,
    pub(crate) moves: RecentMoves,
    pub(crate) totals: Totals,
    /// Taken from the book in this commit; those not claimed go back at its end.
    taken: Vec<u32>,
    /// Whether the store is being opened: jobs are indexed all at once at the end of that.
    is_loading: bool,
    /// Whether what is applied is in the totals and the stream already.
    is_counted: bool,
}

impl State {
    /// Notes the instant of a commit: what is due by then is ready.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.index.begin(&mut self.slab, now);
    }

    /// Puts back what was taken and not claimed.
    pub(crate) fn end(&mut self) {
        for slot in std::mem::take(&mut self.taken) {
            if let Some(entry) = self.slab.get_mut(slot)
                && entry.spot == Spot::Nowhere
                && entry.job.due_at().is_some()
            {
                entry.spot = self.index.place(slot, &entry.job);
            }
        }
    }

    /// Takes ready jobs out of the book, in dispatch order.
    pub(crate) fn take_ready(
        &mut self,
        wanted: &Wanted<'_>,
        limit: usize,
        now: Timestamp,
    ) -> Vec<JobId> {
        self.index.promote(&mut self.slab, now);
        let slots = self.index.take(wanted, limit);
        let mut ids = Vec::with_capacity(slots.len());
        for slot in slots {
            let entry = self.slab.get_mut(slot).expect("the book names live jobs");
            entry.spot = Spot::Nowhere;
            self.index.left_the_book(&entry.job);
            self.taken.push(slot);
            ids.push(entry.job.id);
        }
        ids
    }

    /// Makes one event true: one that was decided just now, or one of the journal.
    ///
    /// # Errors
    /// If it does not fit the job: a damaged journal. What was decided from this state fits.
    pub(crate) fn apply(&mut self, event: Event) -> Result<(), Mismatch> {
        match event {
            Event::JobSubmitted(job) => self.submit(*job),
            Event::JobMoved(event) => self.advance(&event)?,
            Event::LeaseRenewed { job, fence, expires_at, progress_pct, note, settled } => {
                self.renew(job, fence, expires_at, (progress_pct, note, settled));
            }
            Event::EffectCommitted { job, effect } => {
                if let Some(entry) = self.slab.by_id_mut(job) {
                    // A replay may bring an effect that a snapshot already has.
                    let _ = keep_effect(&mut entry.job, &effect);
                }
            }
            Event::ItemOpened(item) => self.items.open(*item),
            Event::ItemChanged { item, version, at, state } => {
                self.items.change(item, version, at, *state);
            }
            Event::EntitySet(entity) => self.entities.set(*entity),
            Event::EntityRemoved { entity, version } => self.entities.remove(entity, version),
            Event::TypeSet(spec) if self.is_loading => self.index.know_type(*spec),
            Event::TypeSet(spec) => self.index.set_type(*spec, &mut self.slab),
            Event::QueueSet(spec) => self.index.set_queue(spec, &mut self.slab),
            Event::TokenIssued(token) => {
                self.tokens.insert(token.id, *token);
            }
            Event::TokenRevoked { token, at } => {
                if let Some(token) = self.tokens.get_mut(&token) {
                    token.revoke(at);
                }
            }
        }
        Ok(())
    }

    fn submit(&mut self, mut job: Job) {
        self.index.share_names(&mut job);
        if !self.is_counted {
            self.totals.submitted += 1;
            self.moves.push(&job, Transition::submitted(&job));
        }
        job.keys().for_each(|key| self.keys.hold(key, job.id));
        let slot = self.slab.insert(job);
        if !self.is_loading {
            let entry = self.slab.get_mut(slot).expect("just inserted");
            entry.spot = self.index.enter(slot, &entry.job);
            list::enter(&mut self.postings, &entry.job);
        }
    }

    fn advance(&mut self, event: &JobEvent) -> Result<(), Mismatch> {
        let slot = self.slab.slot_of(event.job).expect("only live jobs move");
        let entry = self.slab.get_mut(slot).expect("slots of live jobs are taken");
        let was = (!self.is_loading).then(|| {
            self.index.leave(slot, &entry.job, entry.spot);
            list::Passing::of(&entry.job)
        });
        entry.spot = Spot::Nowhere;
        let step = evolve(&mut entry.job, event)?;
        if !self.is_counted {
            self.index.note(&entry.job, event);
            self.totals.count(&step, &entry.job);
            self.moves.push(&entry.job, step.clone());
        }
        entry.note(step);
        if let Some(was) = was {
            was.become_those_of(&entry.job, &mut self.postings);
        }
        if entry.job.finished_at().is_some() {
            let entry = self.slab.remove(slot).expect("slots of live jobs are taken");
            self.retire(entry);
        } else if !self.is_loading {
            entry.spot = self.index.enter(slot, &entry.job);
        }
        Ok(())
    }

    /// A job that has ended leaves RAM by way of the finished buffer.
    fn retire(&mut self, entry: Entry) {
        let ended_at = entry.job.finished_at().expect("only ended jobs retire");
        entry.job.keys().for_each(|key| self.keys.release(key, entry.job.id, ended_at));
        self.finished.push(entry.into_job_with_history());
    }

    fn renew(&mut self, id: JobId, fence: u32, expires_at: Timestamp, rest: Rest) {
        let Some(slot) = self.slab.slot_of(id) else { return };
        let job = &mut self.slab.get_mut(slot).expect("slots of live jobs are taken").job;
        let old_end = job.lease().map(Lease::ends_at);
        // A replay may bring a renewal of a lease that a snapshot knows to be over.
        let is_renewed = renew(job, fence, expires_at, (rest.0, rest.1.as_deref()), rest.2).is_ok();
        if let (Some(old_end), Some(lease)) = (old_end, job.lease())
            && is_renewed
            && !self.is_loading
        {
            self.index.alarm_moved(slot, old_end, lease.ends_at());
        }
    }

    /// A job that is live or has ended so lately that it is still in RAM.
    pub(crate) fn job(&self, id: JobId) -> Option<&Job> {
        match self.slab.by_id(id) {
            Some(entry) => Some(&entry.job),
            None => self.finished.get(id).map(|ended| &ended.job),
        }
    }

    /// The same with its history, if it is in scope; a stranger's is not copied.
    pub(crate) fn job_within(&self, id: JobId, scope: &Scope) -> Option<JobWithHistory> {
        let job = match self.slab.by_id(id) {
            Some(entry) => &entry.job,
            None => &self.finished.get(id)?.job,
        };
        scope.covers(&job.tenant, &job.user).then(|| self.job_with_history(id)).flatten()
    }

    /// The same, whoever asks.
    pub(crate) fn job_with_history(&self, id: JobId) -> Option<JobWithHistory> {
        #[cfg(test)]
        COPIES.set(COPIES.get() + 1);
        match self.slab.by_id(id) {
            Some(entry) => Some(entry.job_with_history()),
            None => self.finished.get(id).cloned(),
        }
    }
}

// Jobs that this thread had copied, whether or not anybody was shown them.
#[cfg(test)]
std::thread_local! {
    pub(crate) static COPIES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What a renewal says beside the new end: progress, and what a jump of the clock changed.
type Rest = (Option<u8>, Option<Box<ProgressNote>>, Option<(Timestamp, Timestamp)>);
