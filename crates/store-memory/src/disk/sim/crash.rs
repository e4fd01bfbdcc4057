//! What a simulated disk looks like after the power came back.
//!
//! Within one sector the writes form a history and the platter holds some prefix of it (the page
//! cache merges them in order); different sectors, files and names are independent. Must never
//! produce a state the rules of `sim.rs` forbid: a false alarm here costs a day in the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::{Change, Inode, SECTOR, SimDisk, State};

/// Which of the changes that were not durable survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashChoice {
    /// Nothing that was not synced.
    DropAll,
    /// Everything, as if the power failed just after the write-back.
    KeepAll,
    /// The first changes only.
    Prefix(usize),
    /// The first changes, and of the next one the first sectors.
    Torn {
        /// Whole changes kept.
        changes: usize,
        /// Sectors kept of the change after them.
        sectors: usize,
    },
    /// All but one change: a later write overtook it.
    DropOne(usize),
    /// Bit n decides the n-th fragment (a sector of a write, or a directory change), oldest first.
    Mask(u64),
    /// Each change is kept, dropped or torn sector by sector, as the seed says.
    Random(u64),
}

/// Up to here every combination of fragments is tried instead of a sample.
const FRAGMENTS_EXHAUSTIVE_MAX: usize = 10;

/// Tears tried per write when there are too many fragments for all combinations.
const TEARS_PER_WRITE_MAX: usize = 64;

impl SimDisk {
    /// The disk a restart sees when the power fails now. The original stays as it is.
    pub fn crash(&self, choice: CrashChoice) -> SimDisk {
        let state = self.lock();
        let mut inodes: Vec<Inode> = state.inodes.clone();
        let mut names = state.durable_names.clone();
        // A sector that missed one write also misses the later ones to the same place.
        let mut stale = BTreeSet::new();
        let mut picker = Picker { choice, fragment: 0 };
        for (index, pending) in state.pending.iter().enumerate() {
            match &pending.change {
                Change::Write { inode, offset, bytes } => {
                    for (nth, (at, piece)) in sectors(*offset, bytes).enumerate() {
                        let keeps = picker.keeps(index, nth);
                        if keeps && !stale.contains(&(*inode, at / SECTOR)) {
                            place(Arc::make_mut(&mut inodes[*inode].durable), at, piece);
                        } else {
                            stale.insert((*inode, at / SECTOR));
                        }
                    }
                }
                Change::SetLen { .. }
                | Change::Link { .. }
                | Change::Rename { .. }
                | Change::Unlink { .. } => {
                    if picker.keeps(index, 0) {
                        apply(&mut inodes, &mut names, &pending.change);
                    }
                }
            }
        }
        for inode in &mut inodes {
            inode.now = Arc::clone(&inode.durable);
        }
        let restarted =
            State { inodes, names: names.clone(), durable_names: names, ..State::default() };
        SimDisk { state: Arc::new(Mutex::new(restarted)) }
    }

    /// The choices worth trying at this point: every combination when there are few fragments,
    /// otherwise the named ones and `samples` random ones derived from the seed.
    pub fn crash_choices(&self, samples: u64, seed: u64) -> Vec<CrashChoice> {
        let state = self.lock();
        let changes = state.pending.len();
        let sizes: Vec<usize> =
            state.pending.iter().map(|pending| pending.change.fragments()).collect();
        let fragments: usize = sizes.iter().sum();
        if fragments <= FRAGMENTS_EXHAUSTIVE_MAX {
            return (0..1 << fragments).map(CrashChoice::Mask).collect();
        }
        let mut choices = vec![CrashChoice::DropAll, CrashChoice::KeepAll];
        choices.extend((1..changes).map(CrashChoice::Prefix));
        choices.extend((0..changes).map(CrashChoice::DropOne));
        for (index, &size) in sizes.iter().enumerate() {
            let tears = (1..size).map(|sectors| CrashChoice::Torn { changes: index, sectors });
            choices.extend(tears.take(TEARS_PER_WRITE_MAX));
        }
        choices.extend((0..samples).map(|nth| CrashChoice::Random(mix(seed ^ mix(nth)))));
        choices
    }
}

struct Picker {
    choice: CrashChoice,
    fragment: u32,
}

impl Picker {
    fn keeps(&mut self, change: usize, sector: usize) -> bool {
        let fragment = self.fragment;
        self.fragment += 1;
        match self.choice {
            CrashChoice::DropAll => false,
            CrashChoice::KeepAll => true,
            CrashChoice::Prefix(count) => change < count,
            CrashChoice::Torn { changes, sectors } => {
                change < changes || (change == changes && sector < sectors)
            }
            CrashChoice::DropOne(dropped) => change != dropped,
            CrashChoice::Mask(mask) => mask.checked_shr(fragment).unwrap_or(0) & 1 == 1,
            CrashChoice::Random(seed) => {
                let whole = mix(seed ^ mix(change as u64));
                match whole % 4 {
                    0 => true,
                    1 => false,
                    _ => mix(whole ^ sector as u64) & 1 == 1,
                }
            }
        }
    }
}

impl Change {
    /// The file this belongs to; `None` for a change of the directory.
    pub(super) fn inode(&self) -> Option<usize> {
        match self {
            Self::Write { inode, .. } | Self::SetLen { inode, .. } => Some(*inode),
            Self::Link { .. } | Self::Rename { .. } | Self::Unlink { .. } => None,
        }
    }

    /// Whether this change, once durable, leaves nothing of `older`.
    pub(super) fn supersedes(&self, older: &Change) -> bool {
        match (self, older) {
            (
                Self::Write { inode, offset, bytes },
                Self::Write { inode: same, offset: old, bytes: old_bytes },
            ) => {
                let end = |offset: &u64, bytes: &[u8]| offset + bytes.len() as u64;
                let sectors = offset / SECTOR..end(offset, bytes).div_ceil(SECTOR);
                let old_sectors = old / SECTOR..end(old, old_bytes).div_ceil(SECTOR);
                inode == same && sectors.start < old_sectors.end && old_sectors.start < sectors.end
            }
            _ => self.name().is_some() && self.name() == older.name(),
        }
    }

    /// The name a change of the directory is about.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Link { name, .. } | Self::Unlink { name } => Some(name),
            Self::Rename { to, .. } => Some(to),
            Self::Write { .. } | Self::SetLen { .. } => None,
        }
    }

    fn fragments(&self) -> usize {
        if let Self::Write { offset, bytes, .. } = self {
            return sectors(*offset, bytes).count();
        }
        1
    }
}

/// Makes one change durable. A directory change whose precondition was lost has no effect.
pub(super) fn apply(inodes: &mut [Inode], names: &mut BTreeMap<String, usize>, change: &Change) {
    match change {
        Change::Write { inode, offset, bytes } => {
            place(Arc::make_mut(&mut inodes[*inode].durable), *offset, bytes);
        }
        Change::SetLen { inode, size } => {
            Arc::make_mut(&mut inodes[*inode].durable).resize(*size as usize, 0);
        }
        Change::Link { name, inode } => {
            names.insert(name.clone(), *inode);
        }
        Change::Rename { from, to, inode } => {
            if names.get(from) == Some(inode) {
                names.remove(from);
            }
            names.insert(to.clone(), *inode);
        }
        Change::Unlink { name } => {
            names.remove(name);
        }
    }
}

/// Writes into a file image, growing it with zeros.
pub(super) fn place(file: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = offset as usize;
    let end = start + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[start..end].copy_from_slice(bytes);
}

/// The pieces of a write that fall into different sectors.
fn sectors(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = offset;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let room = (SECTOR - at % SECTOR) as usize;
        let (piece, tail) = rest.split_at(room.min(rest.len()));
        let found = (at, piece);
        at += piece.len() as u64;
        rest = tail;
        Some(found)
    })
}

/// SplitMix64: a full-period scrambler, enough for choosing and free of state.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
