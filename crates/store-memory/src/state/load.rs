//! Rebuilding the state from a snapshot and the journal behind it.
//!
//! A snapshot is taken while the writer goes on, so it is fuzzy: each job in it is as of some
//! moment between the snapshot's first and last position. Replaying the journal from the first
//! position on brings everything to the same moment, because every record says which version it
//! leads to: what a job already knows is skipped. A job that is missing although its events go on
//! can only have ended before the walk reached it; that must show before the last position.

use super::slab::Entry;
use super::totals::Totals;
use super::{State, renewed};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqItem, Entity, Event, Job, JobEvent, JobId, QueueSpec, StateName, Timestamp, Token, TypeSpec,
    evolve,
};
use std::collections::HashSet;

/// A state under construction. Nothing is indexed before [`Loader::finish`].
#[derive(Default)]
pub(crate) struct Loader {
    state: State,
    /// Events up to this position are in the snapshot's totals already.
    totals_end: u64,
    /// Jobs whose events came without the job: they must end within the snapshot's span.
    ended: HashSet<JobId>,
}

impl Loader {
    pub(crate) fn job(&mut self, job: Job, history: Vec<Transition>) {
        let moves = history.into_iter().skip(1).collect();
        let mut job = job;
        self.state.index.share_names(&mut job);
        if let Some(key) = &job.idempotency {
            self.state.keys.hold(key, job.id);
        }
        self.state.slab.insert_entry(Entry::new(job, moves));
    }

    pub(crate) fn item(&mut self, item: DlqItem) {
        self.state.items.open(item);
    }

    pub(crate) fn entity(&mut self, entity: Entity) {
        self.state.entities.set(entity);
    }

    pub(crate) fn job_type(&mut self, spec: TypeSpec) {
        self.state.index.types.insert(spec.name.clone(), spec);
    }

    pub(crate) fn queue(&mut self, spec: QueueSpec) {
        self.state.apply(Event::QueueSet(spec));
    }

    pub(crate) fn token(&mut self, token: Token) {
        self.state.tokens.insert(token.id, token);
    }

    pub(crate) fn key(&mut self, key: Digest, holder: KeyHolder) {
        self.state.keys.set(key, holder);
    }

    /// Totals and the position of the newest move, as of the snapshot's end.
    pub(crate) fn totals(&mut self, stored: [u64; 7], newest_move: u64, end: u64) {
        self.state.totals = Totals::from_array(stored);
        self.state.moves.resume(newest_move);
        self.totals_end = end;
    }

    /// Replays one event of the frame at `position`.
    pub(crate) fn replay(&mut self, event: Event, position: u64) -> Result<(), String> {
        match event {
            Event::JobSubmitted(job) => {
                if self.state.slab.slot_of(job.id).is_none() {
                    self.submit(*job, position);
                }
                Ok(())
            }
            Event::JobMoved(event) => self.advance(&event, position),
            Event::TypeSet(spec) => {
                self.job_type(*spec);
                Ok(())
            }
            Event::LeaseRenewed { job, fence, expires_at, progress_pct, settled } => {
                // Not through the state: an alarm set before the end would outlive its job.
                if let Some(entry) = self.state.slab.by_id_mut(job) {
                    renewed(&mut entry.job, fence, expires_at, (progress_pct, settled));
                }
                Ok(())
            }
            Event::EffectCommitted { .. }
            | Event::ItemOpened(_)
            | Event::ItemChanged { .. }
            | Event::EntitySet(_)
            | Event::EntityRemoved { .. }
            | Event::QueueSet(_)
            | Event::TokenIssued(_)
            | Event::TokenRevoked { .. } => {
                self.state.apply(event);
                Ok(())
            }
        }
    }

    fn submit(&mut self, job: Job, position: u64) {
        if position > self.totals_end {
            self.state.totals.submitted += 1;
            self.state.moves.push(&job, Transition::submitted(&job));
        }
        let first = Transition::submitted(&job);
        self.job(job, vec![first]);
    }

    fn advance(&mut self, event: &JobEvent, position: u64) -> Result<(), String> {
        let Some(slot) = self.state.slab.slot_of(event.job) else {
            return self.ended_in_span(event, position);
        };
        let entry = self.state.slab.get_mut(slot).expect("slots of live jobs are taken");
        if event.seq <= entry.job.seq {
            return Ok(());
        }
        let step = evolve(&mut entry.job, event).map_err(|mismatch| mismatch.text)?;
        if position > self.totals_end {
            self.state.totals.count(&step, &entry.job);
            self.state.moves.push(&entry.job, step.clone());
        }
        entry.note(step);
        if entry.job.finished_at().is_some() {
            let entry = self.state.slab.remove(slot).expect("slots of live jobs are taken");
            self.state.retire(entry);
        }
        Ok(())
    }

    /// An event of a job that is not there: fine only if the job ended before the snapshot's walk
    /// came by, that is, no later than the snapshot's end.
    fn ended_in_span(&mut self, event: &JobEvent, position: u64) -> Result<(), String> {
        if position > self.totals_end {
            return Err(format!("event {} of {} has no job", event.seq, event.job));
        }
        use mainspring_kernel::event::Change;
        match event.change {
            Change::Succeeded { .. } | Change::Failed | Change::Cancelled { .. } => {
                self.ended.remove(&event.job);
            }
            Change::Claimed(_)
            | Change::RetryScheduled { .. }
            | Change::Released { .. }
            | Change::DeadLettered { .. }
            | Change::DlqRecorded => {
                self.ended.insert(event.job);
            }
        }
        Ok(())
    }

    /// Indexes everything and hands the state over.
    pub(crate) fn finish(mut self, now: Timestamp) -> Result<State, String> {
        if let Some(job) = self.ended.iter().next() {
            return Err(format!("{job} is missing: its last event is not its end"));
        }
        let State { slab, index, .. } = &mut self.state;
        index.promote(slab, now);
        debug_assert!(index.by_state == [0; 8], "nothing is indexed before the end");
        for (slot, entry) in slab.iter_mut() {
            entry.spot = index.enter(slot, &entry.job);
        }
        self.state.enter_all();
        Ok(self.state)
    }

    /// Live jobs, and running ones among them.
    pub(crate) fn tally(state: &State) -> (u64, u64) {
        let running = state.index.by_state[StateName::Running as usize];
        (state.slab.len() as u64, running)
    }
}
