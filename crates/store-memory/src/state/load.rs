//! Rebuilding the state from a snapshot and the journal behind it.
//!
//! A snapshot is taken while the writer goes on, so it is fuzzy: each job in it is as of some
//! moment between the snapshot's first and last position. Replaying the journal from the first
//! position on brings everything to the same moment, because every record says which version it
//! leads to: what a job already knows is skipped. A job that is missing although its events go on
//! can only have ended before the walk reached it; that must show before the last position.

use super::State;
use super::slab::Entry;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::{
    DlqItem, Entity, Event, Job, JobEvent, JobId, QueueSpec, StateName, Timestamp, Token, Totals,
    TypeSpec,
};
use std::collections::HashSet;

/// A state under construction. Nothing is indexed before [`Loader::finish`].
pub(crate) struct Loader {
    state: State,
    /// Events up to this position are in the snapshot's totals already.
    totals_end: u64,
    /// Jobs whose events came without the job: they must end within the snapshot's span.
    ended: HashSet<JobId>,
}

impl Default for Loader {
    fn default() -> Self {
        let state = State { is_loading: true, ..State::default() };
        Loader { state, totals_end: 0, ended: HashSet::new() }
    }
}

impl Loader {
    pub(crate) fn job(&mut self, job: Job, history: Vec<Transition>) {
        let moves = history.into_iter().skip(1).collect();
        let mut job = job;
        self.state.index.share_names(&mut job);
        job.keys().for_each(|key| self.state.keys.hold(key, job.id));
        self.state.slab.insert_entry(Entry::new(job, moves));
    }

    pub(crate) fn item(&mut self, item: DlqItem) {
        self.state.items.open(item);
    }

    pub(crate) fn entity(&mut self, entity: Entity) {
        self.state.entities.set(entity);
    }

    pub(crate) fn job_type(&mut self, spec: TypeSpec) {
        self.state.index.know_type(spec);
    }

    pub(crate) fn queue(&mut self, spec: QueueSpec) {
        self.state.index.set_queue(spec, &mut self.state.slab);
    }

    pub(crate) fn token(&mut self, token: Token) {
        self.state.tokens.insert(token.id, token);
    }

    pub(crate) fn key(&mut self, key: Digest, holder: KeyHolder) {
        self.state.keys.set(key, holder);
    }

    pub(crate) fn meter(&mut self, key: Digest, meter: Meter) {
        self.state.index.meters.set(key, meter);
    }

    /// Moves up to `position` are in files.
    pub(crate) fn moves_written_to(&mut self, position: u64) {
        self.state.moves.written_to(position);
    }

    /// Totals and the position of the newest move, as of the snapshot's end.
    pub(crate) fn totals(&mut self, stored: [u64; 7], newest_move: u64, end: u64) {
        self.state.totals = Totals::from_array(stored);
        self.state.moves.resume(newest_move);
        self.totals_end = end;
    }

    /// Replays one event of the frame at `position`, unless its job knows it already.
    pub(crate) fn replay(&mut self, event: Event, position: u64) -> Result<(), String> {
        let slab = &self.state.slab;
        #[expect(clippy::wildcard_enum_match_arm, reason = "others may be applied again")]
        match &event {
            Event::JobSubmitted(job) if slab.slot_of(job.id).is_some() => return Ok(()),
            Event::JobMoved(event) => match slab.by_id(event.job) {
                None => return self.ended_in_span(event, position),
                Some(entry) if event.seq <= entry.job.seq => return Ok(()),
                Some(_) => {}
            },
            _ => {}
        }
        self.state.is_counted = position <= self.totals_end;
        self.state.apply(event).map_err(|mismatch| mismatch.text)
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
            | Change::Hastened
            | Change::Unblocked { .. }
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
        (self.state.is_loading, self.state.is_counted) = (false, false);
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
