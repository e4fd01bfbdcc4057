//! One commit: the batch decides on the state while it is locked, every event goes into one journal
//! frame, and the frame is queued before the lock is let go, so that the journal has the commits in
//! the order in which the state saw them.

use super::{Shared, journal_failed};
use crate::journal::GroupCommit;
use crate::state::State;
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{
    DlqId, DlqItem, Event, Job, JobId, JobType, TenantId, Timestamp, Token, TokenId, TypeSpec,
};
use mainspring_store::record::FrameWriter;
use mainspring_store::{Desk, Error, Needs, Ticket, Work};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

struct MemoryDesk<'a> {
    state: &'a mut State,
    /// Finished jobs the batch named that have left RAM.
    ended: HashMap<JobId, Job>,
    frame: Vec<u8>,
    writer: Option<FrameWriter>,
    now: Timestamp,
    is_journaled: bool,
}

impl Desk for MemoryDesk<'_> {
    fn job(&self, id: JobId) -> Option<&Job> {
        self.state.job(id).or_else(|| self.ended.get(&id))
    }

    fn item(&self, id: DlqId) -> Option<&DlqItem> {
        self.state.items.get(&id)
    }

    fn job_type(&self, name: &JobType) -> Option<&TypeSpec> {
        self.state.index.types.get(name)
    }

    fn key_holder(&self, key: Digest) -> Option<KeyHolder> {
        self.state.keys.get(key)
    }

    fn token(&self, id: TokenId) -> Option<&Token> {
        self.state.tokens.get(&id)
    }

    fn held(&self, tenant: &TenantId) -> (u64, u64) {
        self.state.slab.held(tenant)
    }

    fn take_ready(&mut self, wanted: &Wanted<'_>, limit: usize, now: Timestamp) -> Vec<JobId> {
        self.state.take_ready(wanted, limit, now)
    }

    fn apply(&mut self, events: Vec<Event>) {
        for event in events {
            if self.is_journaled {
                let frame = &mut self.frame;
                let writer = self.writer.get_or_insert_with(|| FrameWriter::begin(frame, self.now));
                writer.push(&event, &mut self.frame);
            }
            self.state.apply(event);
        }
    }
}

/// The least room a frame starts with: a claim and a completion fit.
const FRAME_BYTES: usize = 512;

pub(super) fn commit(
    shared: &Arc<Shared>,
    needs: &Needs,
    work: &mut Work<'_>,
) -> Result<Ticket, Error> {
    let mut state = shared.write();
    let ended = ended(shared, &state, needs);
    state.begin(needs.now);
    let mut desk = MemoryDesk {
        state: &mut state,
        ended,
        // Batches come in rows of like size: room for the last one saves growing step by step.
        frame: Vec::with_capacity(shared.frame_bytes.load(Ordering::Relaxed).max(FRAME_BYTES)),
        writer: None,
        now: needs.now,
        is_journaled: shared.journal.is_some(),
    };
    work(&mut desk);
    let frame = desk.frame;
    state.end();
    let newest_move = state.moves.newest();
    let (promise, ticket) = Ticket::new();
    match &shared.journal {
        None => {
            shared.settled.advance(0, newest_move);
            promise.keep(Ok(()));
        }
        // Nothing was written, but what was seen has to be durable before it is told.
        Some(_) if frame.is_empty() => shared.settled.keep_at(shared.settled.staged(), promise),
        Some(journal) => {
            let settled = shared.settled.clone();
            shared.journal_bytes.fetch_add(frame.len() as u64, Ordering::Relaxed);
            shared.frame_bytes.store(frame.len() + frame.len() / 8, Ordering::Relaxed);
            append(journal, shared, frame, move |outcome| match outcome {
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
    shared: &Shared,
    frame: Vec<u8>,
    done: impl FnOnce(Result<u64, Error>) + Send + 'static,
) {
    let done = Box::new(move |outcome: Result<u64, _>| {
        done(outcome.map_err(|error: Arc<_>| journal_failed(&error)));
    });
    if let Some(lsn) = journal.append(frame, done) {
        shared.settled.stage(lsn);
    }
}

/// The finished jobs among those a batch names that have left RAM: repeats of reports and of
/// idempotency keys. Rare, so the disk is read under the lock. One that cannot be read is treated
/// as gone: a damaged block must not fail the neighbours in the batch.
fn ended(shared: &Shared, state: &State, needs: &Needs) -> HashMap<JobId, Job> {
    let holders = needs.keys.iter().filter_map(|key| state.keys.get(*key)).map(|held| held.job);
    let mut ended = HashMap::new();
    for id in needs.jobs.iter().copied().chain(holders) {
        if state.job(id).is_some() {
            continue;
        }
        match shared.archived(id) {
            Ok(Some(snapshot)) => {
                ended.insert(id, snapshot.job);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(job = %id, %error, "a finished job cannot be read"),
        }
    }
    ended
}
