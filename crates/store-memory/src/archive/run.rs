//! One run: checksummed blocks of sorted records, then an index, then a trailer that finds it.
//!
//! Written under a temporary name and published when durable, so a run is whole or `Damaged`.
//! Blocks are verified on every read, the index once at opening. Must never hold values in memory
//! beyond the block being read. Many runs together are `archive/lookup.rs`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Key, Record};
use crate::bytes::{Fields, checksum, publish, read_exact, temporary};
use crate::disk::{Disk, DiskFile};
use crate::error::FileError;

/// A block is closed when it reaches this; one larger record makes one larger block.
const BLOCK_BYTES: usize = 16 << 10;
const BLOCK_HEADER: usize = 8;
const SYNC_BYTES: u64 = 4 << 20;
const MAGIC: &[u8; 8] = b"MSARUN\0\x01";
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
        }
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
}

impl Iterator for RunDescending {
    type Item = Result<Record, FileError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.records.is_empty() {
            let block = self.next_block?;
            self.next_block = block.checked_sub(1);
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

/// Writes records, ascending and without equal keys, as a new durable run. `None` when there are
/// no records: an empty run would have no range.
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
    let temporary = temporary(name);
    let written = write_blocks(disk, &temporary, records);
    let Ok(Some((blocks, summary, bytes))) = written else {
        // Best effort: a leftover is harmless and the next attempt replaces it.
        let _ = disk.remove(&temporary);
        return written.map(|_| None);
    };
    publish(disk, name)?;
    let file = disk.open_read(name).map_err(|source| FileError::io("open", name, source))?;
    let damage = Mutex::default();
    Ok(Some(Run { name: name.to_owned(), file, bytes, blocks, summary, damage }))
}

type Written = (Vec<Block>, Summary, u64);

fn write_blocks(
    disk: &dyn Disk,
    name: &str,
    records: impl IntoIterator<Item = Result<Record, FileError>>,
) -> Result<Option<Written>, FileError> {
    let file = disk.create(name).map_err(|source| FileError::io("create", name, source))?;
    let write = |offset, bytes: &[u8]| {
        file.write_at(offset, bytes).map_err(|source| FileError::io("write", name, source))
    };
    let sync = || file.sync_data().map_err(|source| FileError::io("sync", name, source));
    let mut blocks: Vec<Block> = Vec::new();
    let mut summary: Option<Summary> = None;
    let (mut end, mut synced) = (0, 0);
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
            write(end, &block)?;
            blocks.push(Block { first, offset: end, length: block.len() as u32 });
            end += block.len() as u64;
            block.truncate(BLOCK_HEADER);
        }
        if end - synced >= SYNC_BYTES {
            // Small syncs keep the journal's own from waiting behind this file.
            sync()?;
            synced = end;
        }
    }
    let Some(summary) = summary else { return Ok(None) };
    if block.len() > BLOCK_HEADER {
        finish_block(&mut block, end);
        write(end, &block)?;
        blocks.push(Block { first, offset: end, length: block.len() as u32 });
        end += block.len() as u64;
    }
    let index = index(&blocks, &summary);
    write(end, &index)?;
    sync()?;
    Ok(Some((blocks, summary, end + index.len() as u64)))
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
    let index_at = trailer_at
        .checked_sub(u64::from(length))
        .filter(|_| fields.0 == MAGIC)
        .ok_or_else(|| damaged(trailer_at))?;
    let index = read_exact(file.as_ref(), name, index_at, length as usize)?;
    if checksum(&[&index]) != sum {
        return Err(damaged(index_at));
    }
    let (blocks, summary) = parse_index(&index).ok_or_else(|| damaged(index_at))?;
    Ok(Run { name: name.to_owned(), file, bytes, blocks, summary, damage: Mutex::default() })
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

fn index(blocks: &[Block], summary: &Summary) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(blocks.len() * INDEX_ENTRY + 80);
    bytes.extend_from_slice(&summary.records.to_le_bytes());
    bytes.extend_from_slice(&summary.key_min);
    bytes.extend_from_slice(&summary.key_max);
    bytes.extend_from_slice(&summary.stamp_min.to_le_bytes());
    bytes.extend_from_slice(&summary.stamp_max.to_le_bytes());
    for block in blocks {
        bytes.extend_from_slice(&block.first);
        bytes.extend_from_slice(&block.offset.to_le_bytes());
        bytes.extend_from_slice(&block.length.to_le_bytes());
    }
    let (length, sum) = (bytes.len() as u32, checksum(&[&bytes]));
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(MAGIC);
    bytes
}

fn parse_index(bytes: &[u8]) -> Option<(Vec<Block>, Summary)> {
    let mut fields = Fields(bytes);
    let summary = Summary {
        records: fields.u64()?,
        key_min: fields.array()?,
        key_max: fields.array()?,
        stamp_min: fields.i64()?,
        stamp_max: fields.i64()?,
    };
    let mut blocks = Vec::with_capacity(fields.0.len() / INDEX_ENTRY);
    while !fields.0.is_empty() {
        blocks.push(Block { first: fields.array()?, offset: fields.u64()?, length: fields.u32()? });
    }
    Some((blocks, summary))
}
