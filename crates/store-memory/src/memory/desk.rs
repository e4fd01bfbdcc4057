//! One commit: the batch decides on the state while it is locked, every event goes into a journal
//! frame (several, if they are more than one should hold), and the frames are queued before the
//! lock is let go, so that the journal has the commits in the order in which the state saw them.

use super::{Memory, journal_failed};
use crate::journal::{FRAME_BYTES_MAX, GroupCommit, Syncs};
use crate::limits::FRAME_BYTES;
use crate::state::State;
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Event, Job, JobId, JobType, QueueName, QueueSpec, TenantId,
    Timestamp, Token, TokenId, TypeSpec,
};
use mainspring_store::record::FrameWriter;
use mainspring_store::{Desk, Error, Held, Needs, Ticket, Work};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct MemoryDesk<'a> {
    state: &'a mut State,
    /// Finished jobs the batch named that have left RAM.
    ended: HashMap<JobId, Job>,
    /// Those of them that are damaged.
    unreadable: HashSet<JobId>,
    /// `None` for a store without a journal.
    frames: Option<Frames>,
}

/// The frames of one commit: one, unless it decides more than a frame should hold.
struct Frames {
    full: Vec<Vec<u8>>,
    frame: Vec<u8>,
    writer: Option<FrameWriter>,
    now: Timestamp,
}

impl Frames {
    /// Writes the events of one decision, all into the same frame.
    ///
    /// # Panics
    /// If they are more than the journal takes: before the state has changed, so that it never runs
    /// ahead of the journal. `limits.rs` shows that the rules of a job do not allow it.
    fn push(&mut self, events: &[Event]) {
        if self.frame.len() >= FRAME_BYTES {
            self.full.push(std::mem::take(&mut self.frame));
            self.writer = None;
        }
        let frame = &mut self.frame;
        let writer = self.writer.get_or_insert_with(|| FrameWriter::begin(frame, self.now));
        events.iter().for_each(|event| writer.push(event, frame));
        assert!(frame.len() <= FRAME_BYTES_MAX, "a decision fits a frame of the journal");
    }
}

impl Desk for MemoryDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        self.state.job(id).or_else(|| self.ended.get(&id))
    }

    fn is_unreadable(&self, id: JobId) -> bool {
        self.unreadable.contains(&id)
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        self.state.items.get(&id)
    }

    fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.state.entities.get(id)
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.state.index.types.get(name)
    }

    fn queue(&self, name: &QueueName) -> Option<&QueueSpec> {
        self.state.index.queues.get(name).map(|card| &card.spec)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        self.state.keys.get(key)
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.state.tokens.get(&id)
    }

    fn tokens(&self) -> Vec<&Token> {
        self.state.tokens.values().collect()
    }

    fn held(&self, tenant: &TenantId) -> (Held, u64) {
        self.state.slab.held(tenant)
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId> {
        self.state.take_ready(wanted, limit, now)
    }

    fn opens_at(&self) -> Option<Timestamp> {
        self.state.index.opens_at
    }

    fn apply(&mut self, events: Vec<Event>) {
        if let Some(frames) = &mut self.frames {
            frames.push(&events);
        }
        for event in events {
            self.state.apply(event).expect("decided from this very state");
        }
    }
}

/// The least room a frame starts with: a claim and a completion fit.
const FRAME_BYTES_MIN: usize = 512;

pub(super) fn commit(
    memory: &Arc<Memory>,
    needs: &Needs,
    work: &mut Work<'_>,
) -> Result<Ticket, Error> {
    let mut state = memory.write();
    let (ended, unreadable) = ended(memory, &state, needs);
    state.begin(needs.now);
    // Batches come in rows of like size: room for the last one saves growing step by step.
    let room = memory.frame_bytes.load(Ordering::Relaxed).max(FRAME_BYTES_MIN);
    let frames = memory.journal.as_ref().map(|_| Frames {
        full: Vec::new(),
        frame: Vec::with_capacity(room),
        writer: None,
        now: needs.now,
    });
    let mut desk = MemoryDesk { state: &mut state, ended, unreadable, frames };
    work(&mut desk);
    let frames = desk.frames;
    state.end();
    let newest_move = state.moves.newest();
    let syncs = if needs.is_settled_by_caller { Syncs::Caller } else { Syncs::Thread };
    let (promise, ticket) = Ticket::new();
    match memory.journal.as_ref().zip(frames) {
        None => {
            memory.settled.advance(0, newest_move);
            promise.keep(Ok(()));
        }
        // Nothing was written, but what was seen has to be durable before it is told.
        Some((_, frames)) if frames.frame.is_empty() => {
            memory.settled.keep_at(memory.settled.staged(), promise);
        }
        Some((journal, Frames { full, frame, .. })) => {
            for frame in full {
                let settled = memory.settled.clone();
                memory.journal_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
                append(journal, memory, (frame, syncs), move |outcome| {
                    // Its moves are told with the last frame's; so is a failure.
                    if let Ok(lsn) = outcome {
                        settled.advance(lsn, 0);
                    }
                });
            }
            let settled = memory.settled.clone();
            memory.journal_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
            memory.frame_bytes.store(frame.len() + frame.len() / 8, Ordering::Relaxed);
            append(journal, memory, (frame, syncs), move |outcome| match outcome {
                Ok(lsn) => {
                    settled.advance(lsn, newest_move);
                    promise.keep(Ok(()));
                }
                Err(error) => promise.keep(Err(error)),
            });
        }
    }
    drop(state);
    Ok(ticket)
}

fn append(
    journal: &GroupCommit,
    memory: &Memory,
    (frame, syncs): (Vec<u8>, Syncs),
    done: impl FnOnce(Result<u64, Error>) + Send + 'static,
) {
    let done = Box::new(move |outcome: Result<u64, _>| {
        done(outcome.map_err(|error: Arc<_>| journal_failed(&error)));
    });
    if let Some(lsn) = journal.append_for(syncs, frame, done) {
        memory.settled.stage(lsn);
    }
}

/// The finished jobs among those a batch names that have left RAM: repeats of reports and of
/// idempotency keys. Rare, so the disk is read under the lock. Those that cannot be read are told
/// apart: a damaged block must not fail the neighbours in the batch.
fn ended(memory: &Memory, state: &State, needs: &Needs) -> (HashMap<JobId, Job>, HashSet<JobId>) {
    let holders = needs.keys.iter().filter_map(|key| state.keys.get(*key)).map(|held| held.job);
    let (mut ended, mut unreadable) = (HashMap::new(), HashSet::new());
    for id in needs.jobs.iter().copied().chain(holders) {
        if state.job(id).is_some() {
            continue;
        }
        match memory.archived(id) {
            Ok(Some(found)) => {
                ended.insert(id, found.job);
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(job = %id, %error, "a finished job cannot be read");
                unreadable.insert(id);
            }
        }
    }
    (ended, unreadable)
}
