//! Live jobs in chunks that never move, found by id. Ten million of them must fit in a few
//! gigabytes: no slot is larger than it must be, and growing never copies.

use super::index::Spot;
use super::postings::{Upper, upper};
use foldhash::fast::{FixedState, RandomState};
use hashbrown::{HashMap, HashTable};
use mainspring_kernel::backlog::held_bytes;
use mainspring_kernel::evolve::Transition;
use mainspring_kernel::{Job, JobId, TenantId};
use mainspring_store::{Held, JobWithHistory};
use std::hash::BuildHasher;

/// A live job with its history after the submission, and where the index has it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) job: Job,
    pub(crate) spot: Spot,
    /// Most waiting jobs have none, so an empty one costs a word.
    #[expect(clippy::box_collection, reason = "one word in ten million entries, not three")]
    moves: Option<Box<Vec<Transition>>>,
}

impl Entry {
    /// A job with the moves it has made since its submission.
    pub(crate) fn new(job: Job, moves: Vec<Transition>) -> Self {
        let moves = (!moves.is_empty()).then(|| Box::new(moves));
        Entry { job, spot: Spot::Nowhere, moves }
    }

    /// Goes on with the history.
    pub(crate) fn note(&mut self, step: Transition) {
        self.moves.get_or_insert_default().push(step);
    }

    /// The moves after the submission.
    pub(crate) fn moves(&self) -> &[Transition] {
        self.moves.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The whole history.
    pub(crate) fn history(&self) -> Vec<Transition> {
        let first = Transition::submitted(&self.job);
        std::iter::once(first).chain(self.moves().iter().cloned()).collect()
    }

    /// A copy of the job with its whole history.
    pub(crate) fn job_with_history(&self) -> JobWithHistory {
        JobWithHistory { job: self.job.clone(), history: self.history() }
    }

    /// The job with its whole history.
    pub(crate) fn into_job_with_history(self) -> JobWithHistory {
        let mut history = vec![Transition::submitted(&self.job)];
        history.extend(self.moves.map(|moves| *moves).unwrap_or_default());
        JobWithHistory { job: self.job, history }
    }
}

/// As many as fit in 256 KiB: an allocator has a size class just there, so nothing is wasted.
const CHUNK: usize = (256 << 10) / size_of::<Option<Entry>>();

/// The chunks, and the way from an id to a slot.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    chunks: Vec<Vec<Option<Entry>>>,
    free: Vec<u32>,
    by_id: HashTable<u32>,
    hasher: FixedState,
    /// What the jobs come to, by tenant and in all.
    held: HashMap<TenantId, Held, RandomState>,
    held_bytes: u64,
}

impl Slab {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// One more than the highest slot ever used.
    pub(crate) fn slots(&self) -> u32 {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        u32::try_from(full + self.chunks.last().map_or(0, Vec::len)).expect("slots fit in 32 bits")
    }

    pub(crate) fn insert(&mut self, job: Job) -> u32 {
        self.insert_entry(Entry::new(job, Vec::new()))
    }

    pub(crate) fn insert_entry(&mut self, entry: Entry) -> u32 {
        let id = entry.job.id;
        self.hold(&entry.job);
        let slot = match self.free.pop() {
            Some(slot) => {
                *cell(&mut self.chunks, slot).expect("free slots exist") = Some(entry);
                slot
            }
            None => {
                if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
                    self.chunks.push(Vec::with_capacity(CHUNK));
                }
                let slot = self.slots();
                self.chunks.last_mut().expect("just made sure").push(Some(entry));
                slot
            }
        };
        let (chunks, hasher) = (&self.chunks, &self.hasher);
        let rehash = |slot: &u32| hash(hasher, id_at(chunks, *slot));
        self.by_id.insert_unique(hash(hasher, id), slot, rehash);
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Entry> {
        let entry = cell(&mut self.chunks, slot)?.take()?;
        self.let_go(&entry.job);
        let hash = hash(&self.hasher, entry.job.id);
        if let Ok(found) = self.by_id.find_entry(hash, |other| *other == slot) {
            found.remove();
        }
        self.free.push(slot);
        Some(entry)
    }

    /// The bytes that the jobs of `tenant`, and all jobs, take up.
    pub(crate) fn held(&self, tenant: &TenantId) -> (Held, u64) {
        (self.held_by(tenant), self.held_bytes)
    }

    /// What the jobs of `tenant` come to.
    pub(crate) fn held_by(&self, tenant: &TenantId) -> Held {
        self.held.get(tenant).copied().unwrap_or_default()
    }

    fn hold(&mut self, job: &Job) {
        let bytes = held_bytes(job);
        self.held_bytes += bytes;
        if !self.held.contains_key(&job.tenant) {
            self.held.insert(job.tenant.clone(), Held::default());
        }
        let held = self.held.get_mut(&job.tenant).expect("just made sure");
        held.jobs += 1;
        held.bytes += bytes;
    }

    fn let_go(&mut self, job: &Job) {
        let bytes = held_bytes(job);
        self.held_bytes -= bytes;
        let held = self.held.get_mut(&job.tenant).expect("every job in a slot is counted");
        held.jobs -= 1;
        held.bytes -= bytes;
        if held.jobs == 0 {
            self.held.remove(&job.tenant);
        }
    }

    pub(crate) fn slot_of(&self, id: JobId) -> Option<u32> {
        find(&self.chunks, &self.hasher, &self.by_id, id)
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Entry> {
        self.chunks.get(slot as usize / CHUNK)?.get(slot as usize % CHUNK)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: u32) -> Option<&mut Entry> {
        cell(&mut self.chunks, slot)?.as_mut()
    }

    pub(crate) fn by_id(&self, id: JobId) -> Option<&Entry> {
        self.get(self.slot_of(id)?)
    }

    pub(crate) fn by_id_mut(&mut self, id: JobId) -> Option<&mut Entry> {
        self.get_mut(self.slot_of(id)?)
    }

    /// Live jobs whose ids share an upper half: one, or a few of different makers.
    pub(crate) fn sharing(&self, half: Upper) -> impl Iterator<Item = &Entry> {
        let entries = self.by_id.iter_hash(hash_upper(&self.hasher, half));
        entries.filter_map(|slot| self.get(*slot)).filter(move |entry| upper(entry.job.id) == half)
    }

    /// Every live job with its slot.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Entry)> {
        let cells = self.chunks.iter_mut().flatten().enumerate();
        cells.filter_map(|(at, cell)| Some((u32::try_from(at).ok()?, cell.as_mut()?)))
    }
}

fn cell(chunks: &mut [Vec<Option<Entry>>], slot: u32) -> Option<&mut Option<Entry>> {
    chunks.get_mut(slot as usize / CHUNK)?.get_mut(slot as usize % CHUNK)
}

fn id_at(chunks: &[Vec<Option<Entry>>], slot: u32) -> JobId {
    let entry = chunks[slot as usize / CHUNK][slot as usize % CHUNK].as_ref();
    entry.expect("indexed slots are taken").job.id
}

fn find(
    chunks: &[Vec<Option<Entry>>],
    hasher: &FixedState,
    by_id: &HashTable<u32>,
    id: JobId,
) -> Option<u32> {
    by_id.find(hash(hasher, id), |slot| id_at(chunks, *slot) == id).copied()
}

/// Of the upper half alone, so that a posting finds its jobs.
fn hash(hasher: &FixedState, id: JobId) -> u64 {
    hash_upper(hasher, upper(id))
}

fn hash_upper(hasher: &FixedState, half: Upper) -> u64 {
    hasher.hash_one(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_job_stays_small() {
        assert_eq!(size_of::<Option<Entry>>(), 256, "ten million of these must fit in RAM");
    }
}
