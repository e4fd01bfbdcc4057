//! One run: checksummed blocks of sorted records, then blocks of terms (`archive/terms.rs`), then
//! an index, then a trailer that finds it. The first format had no terms, the second none of
//! parents.
//!
//! Written under a temporary name and published when durable, so a run is whole or `Damaged`.
//! Blocks are verified on every read, the index once at opening. Must never hold values in memory
//! beyond the block being read. Many runs together are `archive/lookup.rs`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::terms::{Pair, TermCursor, Terms, TermsWriter, number_of};
use super::{Key, Record};
use crate::bytes::{Fields, checksum, publish, read_exact, temporary};
use crate::disk::{Disk, DiskFile};
use crate::error::FileError;

/// A block is closed when it reaches this; one larger record makes one larger block.
const BLOCK_BYTES: usize = 16 << 10;
const BLOCK_HEADER: usize = 8;
const SYNC_BYTES: usize = 4 << 20;
/// Without terms.
const MAGIC_1: &[u8; 8] = b"MSARUN\0\x01";
/// Without the terms of parents.
const MAGIC_2: &[u8; 8] = b"MSARUN\0\x02";
/// Two bits from those of before, so that one bit that flips makes none of them another.
const MAGIC: &[u8; 8] = b"MSARUN\0\x04";
/// Index length, index checksum, magic.
const TRAILER: usize = 16;
const INDEX_ENTRY: usize = 28;

/// An open run with its sparse index.
#[derive(Debug)]
pub struct Run {
    name: String,
    file: Box<dyn DiskFile>,
    bytes: u64,
    blocks: Vec<Block>,
    /// None in a run of the first format.
    terms: Option<Terms>,
    /// Whether those are all that records have by now.
    has_all_terms: bool,
    summary: Summary,
    /// Where the blocks begin that were found damaged.
    damage: Mutex<BTreeSet<u64>>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    first: Key,
    offset: u64,
    length: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Summary {
    records: u64,
    key_min: Key,
    key_max: Key,
    stamp_min: i64,
    stamp_max: i64,
}

impl Run {
    /// File name in the data directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.summary.records
    }

    /// Smallest and largest key.
    pub fn key_range(&self) -> (Key, Key) {
        (self.summary.key_min, self.summary.key_max)
    }

    /// Oldest and newest stamp.
    pub fn stamp_range(&self) -> (i64, i64) {
        (self.summary.stamp_min, self.summary.stamp_max)
    }

    /// The record under a key: at most one block is read.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when the block is not what was written.
    pub fn get(&self, key: &Key) -> Result<Option<Record>, FileError> {
        if *key > self.summary.key_max {
            return Ok(None);
        }
        let Some(block) = self.block_before(key) else { return Ok(None) };
        let mut records = self.read_block(block)?;
        let found = records.binary_search_by(|record| record.key.cmp(key));
        Ok(found.ok().map(|at| records.swap_remove(at)))
    }

    /// All records with a key up to and including `from`, newest first.
    pub fn descending(self: &Arc<Self>, from: &Key) -> RunDescending {
        RunDescending {
            run: Arc::clone(self),
            next_block: self.block_before(from),
            from: *from,
            records: Vec::new(),
            reads: 0,
        }
    }

    /// Where its records end and its terms begin.
    #[cfg(test)]
    pub(super) fn records_end(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.offset + u64::from(block.length))
    }

    /// Whether its records can be found by all of their terms.
    pub fn has_all_terms(&self) -> bool {
        self.terms.is_some() && self.has_all_terms
    }

    /// Keys of records that have all of `terms`, from `from` down to `to`, both included, newest
    /// first and at most `limit`; also how many blocks were read. `None` if it has no terms.
    ///
    /// # Errors
    /// `Io`, or `Damaged` when a block is not what was written.
    pub fn keys_with(
        &self,
        terms: &[u64],
        (from, to): (&Key, &Key),
        limit: usize,
    ) -> Result<Option<(Vec<Key>, usize)>, FileError> {
        let Some(own) = &self.terms else { return Ok(None) };
        let cursor = |term: &u64| TermCursor::new(own, self.file.as_ref(), &self.name, *term);
        let mut cursors: Vec<TermCursor<'_>> = terms.iter().map(cursor).collect();
        let (mut found, to) = (Vec::new(), number_of(to));
        let (mut candidate, mut agreed, mut at) = (number_of(from), 0, 0);
        while found.len() < limit && !cursors.is_empty() {
            let Some(key) = cursors[at].at_most(candidate)? else { break };
            agreed = if key == candidate { agreed + 1 } else { 1 };
            candidate = key;
            at = (at + 1) % cursors.len();
            if candidate < to {
                break;
            }
            if agreed >= cursors.len() {
                found.push(candidate.to_be_bytes());
                let Some(below) = candidate.checked_sub(1) else { break };
                (candidate, agreed) = (below, 0);
            }
        }
        let reads = cursors.iter().map(|cursor| cursor.reads).sum();
        Ok(Some((found, reads)))
    }

    /// All pairs of term and key, in order; none in a run without terms.
    pub(super) fn pairs(self: &Arc<Self>) -> impl Iterator<Item = Result<Pair, FileError>> + use<> {
        let run = Arc::clone(self);
        let count = self.terms.as_ref().map_or(0, Terms::len);
        (0..count).flat_map(move |index| {
            let terms = run.terms.as_ref().expect("counted above");
            match terms.read(index, run.file.as_ref(), &run.name) {
                Ok(pairs) => pairs.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            }
        })
    }

    /// All records, oldest first.
    pub(super) fn ascending(self: &Arc<Self>) -> RunAscending {
        RunAscending { run: Arc::clone(self), next_block: 0, records: Vec::new().into_iter() }
    }

    /// The last block whose first key is not greater.
    fn block_before(&self, key: &Key) -> Option<usize> {
        self.blocks.partition_point(|block| block.first <= *key).checked_sub(1)
    }

    /// How many blocks were found damaged so far.
    pub fn damaged_blocks(&self) -> u64 {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Reads every block and has `judge` look at every record; what is wrong with the blocks that
    /// are not what was written.
    pub fn examine(&self, judge: &mut dyn FnMut(&Record) -> Result<(), String>) -> Examined {
        let mut examined = Examined { blocks: self.blocks.len() as u64, damage: Vec::new() };
        for (index, block) in self.blocks.iter().enumerate() {
            let judged = self.read_block(index).and_then(|records| {
                let judged = records.iter().try_for_each(&mut *judge);
                judged.map_err(|reason| FileError::damaged(&self.name, block.offset, reason))
            });
            examined.damage.extend(judged.err());
        }
        let terms = self.terms.iter().flat_map(|terms| (0..terms.len()).map(move |it| (terms, it)));
        for (terms, index) in terms {
            examined.blocks += 1;
            examined.damage.extend(terms.read(index, self.file.as_ref(), &self.name).err());
        }
        examined
    }

    fn read_block(&self, index: usize) -> Result<Vec<Record>, FileError> {
        let outcome = self.parsed_block(index);
        if let Err(error) = &outcome
            && error.is_damage()
        {
            let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
            if damage.insert(self.blocks[index].offset) {
                tracing::error!(%error, "a block of finished jobs is damaged; lists leave it out");
            }
        }
        outcome
    }

    fn parsed_block(&self, index: usize) -> Result<Vec<Record>, FileError> {
        let Block { offset, length, first } = self.blocks[index];
        let bytes = read_exact(self.file.as_ref(), &self.name, offset, length as usize)?;
        let records = parse_block(&bytes, offset)
            .filter(|records| records.first().is_some_and(|record| record.key == first));
        records.ok_or_else(|| FileError::damaged(&self.name, offset, "the block is invalid"))
    }
}

/// What [`Run::examine`] found.
#[derive(Debug)]
pub struct Examined {
    /// Blocks read.
    pub blocks: u64,
    /// One for each that could not be used.
    pub damage: Vec<FileError>,
}

/// Iterates one run downwards; goes on behind a block that cannot be read.
#[derive(Debug)]
pub struct RunDescending {
    run: Arc<Run>,
    next_block: Option<usize>,
    from: Key,
    records: Vec<Record>,
    reads: usize,
}

impl RunDescending {
    /// Blocks read so far.
    pub(super) fn reads(&self) -> usize {
        self.reads
    }
}

impl Iterator for RunDescending {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.records.is_empty() {
            let block = self.next_block?;
            self.next_block = block.checked_sub(1);
            self.reads += 1;
            match self.run.read_block(block) {
                Ok(records) => self.records = records,
                Err(error) => return Some(Err(error)),
            }
            let keep = self.records.partition_point(|record| record.key <= self.from);
            self.records.truncate(keep);
        }
        self.records.pop().map(Ok)
    }
}

/// Iterates one run upwards; goes on behind a block that cannot be read.
#[derive(Debug)]
pub(super) struct RunAscending {
    run: Arc<Run>,
    next_block: usize,
    records: std::vec::IntoIter<Record>,
}

impl Iterator for RunAscending {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.records.next() {
                return Some(Ok(record));
            }
            if self.next_block >= self.run.blocks.len() {
                return None;
            }
            self.next_block += 1;
            match self.run.read_block(self.next_block - 1) {
                Ok(records) => self.records = records.into_iter(),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Writes records, ascending and without equal keys, as a new durable run of the first format, in
/// which they can be found by key only. `None` when there are no records: an empty run would have
/// no range.
///
/// # Errors
/// The first error of the iterator, or of the disk; nothing is left under the name then.
///
/// # Panics
/// When the keys do not ascend: a run out of order would lose records silently.
pub fn write_run(
    disk: &dyn Disk,
    name: &str,
    records: impl IntoIterator<Item = Result<Record, FileError>>,
) -> Result<Option<Run>, FileError> {
    write(disk, name, records, None::<fn() -> std::iter::Empty<_>>)
}

/// The same with terms: `pairs` is asked for them, in order, when all records were taken.
///
/// # Errors
/// The first error of an iterator, or of the disk; nothing is left under the name then.
///
/// # Panics
/// When the keys or the pairs do not ascend.
pub fn write_run_with_terms<P>(
    disk: &dyn Disk,
    name: &str,
    records: impl IntoIterator<Item = Result<Record, FileError>>,
    pairs: impl FnOnce() -> P,
) -> Result<Option<Run>, FileError>
where
    P: Iterator<Item = Result<Pair, FileError>>,
{
    write(disk, name, records, Some(pairs))
}

fn write<P>(
    disk: &dyn Disk,
    name: &str,
    records: impl IntoIterator<Item = Result<Record, FileError>>,
    pairs: Option<impl FnOnce() -> P>,
) -> Result<Option<Run>, FileError>
where
    P: Iterator<Item = Result<Pair, FileError>>,
{
    let temporary = temporary(name);
    let written = write_blocks(disk, &temporary, records, pairs);
    let Ok(Some(Written { blocks, terms, summary, bytes })) = written else {
        // Best effort: a leftover is harmless and the next attempt replaces it.
        let _ = disk.remove(&temporary);
        return written.map(|_| None);
    };
    publish(disk, name)?;
    let file = disk.open_read(name).map_err(|source| FileError::io("open", name, source))?;
    let damage = Mutex::default();
    Ok(Some(Run {
        name: name.to_owned(),
        file,
        bytes,
        blocks,
        has_all_terms: true,
        terms,
        summary,
        damage,
    }))
}

struct Written {
    blocks: Vec<Block>,
    terms: Option<Terms>,
    summary: Summary,
    bytes: u64,
}

fn write_blocks<P>(
    disk: &dyn Disk,
    name: &str,
    records: impl IntoIterator<Item = Result<Record, FileError>>,
    pairs: Option<impl FnOnce() -> P>,
) -> Result<Option<Written>, FileError>
where
    P: Iterator<Item = Result<Pair, FileError>>,
{
    let file = disk.create(name).map_err(|source| FileError::io("create", name, source))?;
    let mut out = Out { file: file.as_ref(), name, unsynced: 0 };
    let mut blocks: Vec<Block> = Vec::new();
    let mut summary: Option<Summary> = None;
    let mut end = 0;
    let mut block = vec![0; BLOCK_HEADER];
    let mut first = Key::default();
    for record in records {
        let record = record?;
        summary = Some(add(summary, &record));
        if block.len() == BLOCK_HEADER {
            first = record.key;
        }
        push_record(&mut block, &record);
        if block.len() >= BLOCK_BYTES {
            finish_block(&mut block, end);
            out.write(end, &block)?;
            blocks.push(Block { first, offset: end, length: block.len() as u32 });
            end += block.len() as u64;
            block.truncate(BLOCK_HEADER);
        }
    }
    let Some(summary) = summary else { return Ok(None) };
    if block.len() > BLOCK_HEADER {
        finish_block(&mut block, end);
        out.write(end, &block)?;
        blocks.push(Block { first, offset: end, length: block.len() as u32 });
        end += block.len() as u64;
    }
    let mut terms = None;
    if let Some(pairs) = pairs {
        let mut writer = TermsWriter::new(end);
        for pair in pairs() {
            writer.push(pair?, &mut |offset, bytes| out.write(offset, bytes))?;
        }
        let (made, its_end) = writer.finish(&mut |offset, bytes| out.write(offset, bytes))?;
        (terms, end) = (Some(made), its_end);
    }
    let index = index(&blocks, &summary, terms.as_ref());
    out.write(end, &index)?;
    out.sync()?;
    Ok(Some(Written { blocks, terms, summary, bytes: end + index.len() as u64 }))
}

/// A file being written.
struct Out<'a> {
    file: &'a dyn DiskFile,
    name: &'a str,
    unsynced: usize,
}

impl Out<'_> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        let failed = |source| FileError::io("write", self.name, source);
        self.file.write_at(offset, bytes).map_err(failed)?;
        self.unsynced += bytes.len();
        // Small syncs keep the journal's own from waiting behind this file.
        if self.unsynced >= SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), FileError> {
        self.unsynced = 0;
        self.file.sync_data().map_err(|source| FileError::io("sync", self.name, source))
    }
}

/// Opens a run and verifies its index.
///
/// # Errors
/// `Io`, or `Damaged` when the index is not what was written.
pub fn open_run(disk: &dyn Disk, name: &str) -> Result<Run, FileError> {
    let failed = |source| FileError::io("open", name, source);
    let file = disk.open_read(name).map_err(failed)?;
    let bytes = file.size().map_err(failed)?;
    let damaged = |offset| FileError::damaged(name, offset, "the run index is invalid");
    let trailer_at = bytes.checked_sub(TRAILER as u64).ok_or_else(|| damaged(0))?;
    let trailer = read_exact(file.as_ref(), name, trailer_at, TRAILER)?;
    let mut fields = Fields(&trailer);
    let (length, sum) = (fields.u32().unwrap_or(0), fields.u32().unwrap_or(0));
    let has_all_terms = fields.0 == MAGIC;
    let has_terms = has_all_terms || fields.0 == MAGIC_2;
    let index_at = trailer_at
        .checked_sub(u64::from(length))
        .filter(|_| has_terms || fields.0 == MAGIC_1)
        .ok_or_else(|| damaged(trailer_at))?;
    let index = read_exact(file.as_ref(), name, index_at, length as usize)?;
    if checksum(&[&index]) != sum {
        return Err(damaged(index_at));
    }
    let parsed = parse_index(&index, has_terms).ok_or_else(|| damaged(index_at))?;
    let (blocks, terms, summary) = parsed;
    let damage = Mutex::default();
    Ok(Run { name: name.to_owned(), file, bytes, blocks, terms, has_all_terms, summary, damage })
}

fn add(summary: Option<Summary>, record: &Record) -> Summary {
    let Some(before) = summary else {
        let (key, stamp) = (record.key, record.stamp);
        let (key_min, key_max, stamp_min, stamp_max) = (key, key, stamp, stamp);
        return Summary { records: 1, key_min, key_max, stamp_min, stamp_max };
    };
    assert!(record.key > before.key_max, "the records of a run ascend by key");
    Summary {
        records: before.records + 1,
        key_min: before.key_min,
        key_max: record.key,
        stamp_min: before.stamp_min.min(record.stamp),
        stamp_max: before.stamp_max.max(record.stamp),
    }
}

fn push_record(block: &mut Vec<u8>, record: &Record) {
    block.extend_from_slice(&record.key);
    block.extend_from_slice(&record.stamp.to_le_bytes());
    block.extend_from_slice(&(record.value.len() as u32).to_le_bytes());
    block.extend_from_slice(&record.value);
}

/// The checksum covers the offset, so a block read from the wrong place is noticed.
fn finish_block(block: &mut [u8], offset: u64) {
    let length = (block.len() - BLOCK_HEADER) as u32;
    let sum = checksum(&[&offset.to_le_bytes(), &block[BLOCK_HEADER..]]);
    block[..4].copy_from_slice(&length.to_le_bytes());
    block[4..BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
}

fn parse_block(bytes: &[u8], offset: u64) -> Option<Vec<Record>> {
    let mut fields = Fields(bytes);
    let is_whole = fields.u32()? as usize == bytes.len() - BLOCK_HEADER;
    let sum = fields.u32()?;
    if !is_whole || sum != checksum(&[&offset.to_le_bytes(), fields.0]) {
        return None;
    }
    let mut records = Vec::new();
    while !fields.0.is_empty() {
        let key = fields.array()?;
        let stamp = fields.i64()?;
        let length = fields.u32()? as usize;
        records.push(Record { key, stamp, value: fields.take(length)?.to_vec() });
    }
    Some(records)
}

fn index(blocks: &[Block], summary: &Summary, terms: Option<&Terms>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks.len() * INDEX_ENTRY + 80);
    bytes.extend_from_slice(&summary.records.to_le_bytes());
    bytes.extend_from_slice(&summary.key_min);
    bytes.extend_from_slice(&summary.key_max);
    bytes.extend_from_slice(&summary.stamp_min.to_le_bytes());
    bytes.extend_from_slice(&summary.stamp_max.to_le_bytes());
    if terms.is_some() {
        bytes.extend_from_slice(&(blocks.len() as u32).to_le_bytes());
    }
    for block in blocks {
        bytes.extend_from_slice(&block.first);
        bytes.extend_from_slice(&block.offset.to_le_bytes());
        bytes.extend_from_slice(&block.length.to_le_bytes());
    }
    if let Some(terms) = terms {
        terms.encode(&mut bytes);
    }
    let (length, sum) = (bytes.len() as u32, checksum(&[&bytes]));
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(if terms.is_some() { MAGIC } else { MAGIC_1 });
    bytes
}

type Index = (Vec<Block>, Option<Terms>, Summary);

fn parse_index(bytes: &[u8], has_terms: bool) -> Option<Index> {
    let mut fields = Fields(bytes);
    let summary = Summary {
        records: fields.u64()?,
        key_min: fields.array()?,
        key_max: fields.array()?,
        stamp_min: fields.i64()?,
        stamp_max: fields.i64()?,
    };
    let bytes = match has_terms {
        true => (fields.u32()? as usize).checked_mul(INDEX_ENTRY)?,
        false => fields.0.len(),
    };
    let mut listed = Fields(fields.take(bytes)?);
    let mut blocks = Vec::with_capacity(bytes / INDEX_ENTRY);
    while !listed.0.is_empty() {
        blocks.push(Block { first: listed.array()?, offset: listed.u64()?, length: listed.u32()? });
    }
    let terms = if has_terms { Some(Terms::parse(fields.0)?) } else { None };
    Some((blocks, terms, summary))
}
