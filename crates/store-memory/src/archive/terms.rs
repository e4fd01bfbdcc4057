//! Which records of a run have a term: pairs of term and key, sorted, in checksummed blocks behind
//! the records. Only the first pair of every block stays in memory, so a filter finds its records
//! by reading a few blocks, however many records the run has. What a term means is none of its
//! business. Runs of the first format have none; see `archive/lookup.rs` for what becomes of them.

use super::Key;
use crate::bytes::{Fields, checksum, read_exact};
use crate::disk::DiskFile;
use crate::error::FileError;

/// A block is closed when it reaches this.
const BLOCK_BYTES: usize = 8 << 10;
const BLOCK_HEADER: usize = 8;
/// A pair of the index: term, key, offset, length.
const INDEX_ENTRY: usize = 36;

/// Puts bytes at an offset.
type Write<'a> = dyn FnMut(u64, &[u8]) -> Result<(), FileError> + 'a;

/// A term and the key of a record that has it.
pub type Pair = (u64, u128);

/// The blocks of one run.
#[derive(Debug, Default)]
pub(super) struct Terms {
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    first: Pair,
    offset: u64,
    length: u32,
}

/// Collects pairs into blocks.
pub(super) struct TermsWriter {
    terms: Terms,
    bytes: Vec<u8>,
    first: Pair,
    last: Option<Pair>,
    end: u64,
}

impl TermsWriter {
    /// Blocks that start at `offset`.
    pub(super) fn new(offset: u64) -> Self {
        TermsWriter {
            terms: Terms::default(),
            bytes: vec![0; BLOCK_HEADER],
            first: (0, 0),
            last: None,
            end: offset,
        }
    }

    /// Takes the next pair; a block that is full is handed to `write`. An equal pair is dropped.
    ///
    /// # Panics
    /// When the pairs do not ascend: a list out of order would lose records silently.
    pub(super) fn push(&mut self, pair: Pair, write: &mut Write<'_>) -> Result<(), FileError> {
        if self.last == Some(pair) {
            return Ok(());
        }
        assert!(self.last.is_none_or(|last| last < pair), "the pairs of a run ascend");
        if self.bytes.len() == BLOCK_HEADER {
            self.first = pair;
            self.bytes.extend_from_slice(&pair.0.to_le_bytes());
            self.bytes.extend_from_slice(&pair.1.to_le_bytes());
        } else {
            let (term, key) = self.last.unwrap_or(self.first);
            push_number(&mut self.bytes, pair.0 - term);
            if pair.0 == term {
                push_number(&mut self.bytes, (pair.1 >> 64) as u64 - (key >> 64) as u64);
                self.bytes.extend_from_slice(&(pair.1 as u64).to_le_bytes());
            } else {
                self.bytes.extend_from_slice(&pair.1.to_le_bytes());
            }
        }
        self.last = Some(pair);
        if self.bytes.len() >= BLOCK_BYTES { self.flush(write) } else { Ok(()) }
    }

    /// Writes the last block.
    pub(super) fn finish(mut self, write: &mut Write<'_>) -> Result<(Terms, u64), FileError> {
        if self.bytes.len() > BLOCK_HEADER {
            self.flush(write)?;
        }
        Ok((self.terms, self.end))
    }

    fn flush(&mut self, write: &mut Write<'_>) -> Result<(), FileError> {
        let length = (self.bytes.len() - BLOCK_HEADER) as u32;
        let sum = checksum(&[&self.end.to_le_bytes(), &self.bytes[BLOCK_HEADER..]]);
        self.bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.bytes[4..BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
        write(self.end, &self.bytes)?;
        let length = self.bytes.len() as u32;
        self.terms.blocks.push(Block { first: self.first, offset: self.end, length });
        self.end += u64::from(length);
        self.bytes.truncate(BLOCK_HEADER);
        Ok(())
    }
}

impl Terms {
    /// The index as bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for block in &self.blocks {
            out.extend_from_slice(&block.first.0.to_le_bytes());
            out.extend_from_slice(&block.first.1.to_le_bytes());
            out.extend_from_slice(&block.offset.to_le_bytes());
            out.extend_from_slice(&block.length.to_le_bytes());
        }
    }

    /// The index from bytes, all of them.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let mut blocks = Vec::with_capacity(bytes.len() / INDEX_ENTRY);
        while !fields.0.is_empty() {
            let first = (fields.u64()?, u128::from_le_bytes(fields.array()?));
            blocks.push(Block { first, offset: fields.u64()?, length: fields.u32()? });
        }
        Some(Terms { blocks })
    }

    /// How many blocks there are.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// The pairs of one block.
    pub(super) fn read(
        &self,
        index: usize,
        file: &dyn DiskFile,
        name: &str,
    ) -> Result<Vec<Pair>, FileError> {
        let Block { first, offset, length } = self.blocks[index];
        let bytes = read_exact(file, name, offset, length as usize)?;
        let pairs = parse_block(&bytes, offset).filter(|pairs| pairs.first() == Some(&first));
        pairs.ok_or_else(|| FileError::damaged(name, offset, "the block of terms is invalid"))
    }

    /// The last block that starts at or below a pair.
    pub(super) fn block_at(&self, pair: Pair) -> Option<usize> {
        self.blocks.partition_point(|block| block.first <= pair).checked_sub(1)
    }
}

/// Goes through the keys of one term, newest first.
pub(super) struct TermCursor<'a> {
    terms: &'a Terms,
    file: &'a dyn DiskFile,
    name: &'a str,
    term: u64,
    block: Option<(usize, Vec<Pair>)>,
    /// Blocks read.
    pub(super) reads: usize,
}

impl<'a> TermCursor<'a> {
    pub(super) fn new(
        terms: &'a Terms,
        file: &'a dyn DiskFile,
        name: &'a str,
        term: u64,
    ) -> TermCursor<'a> {
        TermCursor { terms, file, name, term, block: None, reads: 0 }
    }

    /// The greatest key of the term that is at most `from`.
    pub(super) fn at_most(&mut self, from: u128) -> Result<Option<u128>, FileError> {
        let wanted = (self.term, from);
        let Some(index) = self.terms.block_at(wanted) else { return Ok(None) };
        if self.block.as_ref().is_none_or(|(held, _)| *held != index) {
            self.reads += 1;
            self.block = Some((index, self.terms.read(index, self.file, self.name)?));
        }
        let pairs = self.block.as_ref().map_or(&[][..], |(_, pairs)| pairs);
        let place = pairs.partition_point(|pair| *pair <= wanted);
        let found = place.checked_sub(1).map(|place| pairs[place]);
        Ok(found.filter(|(term, _)| *term == self.term).map(|(_, key)| key))
    }
}

/// The key of a pair as it sorts in a run.
pub(super) fn number_of(key: &Key) -> u128 {
    u128::from_be_bytes(*key)
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(fields: &mut Fields<'_>) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let [byte] = fields.array()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn parse_block(bytes: &[u8], offset: u64) -> Option<Vec<Pair>> {
    let mut fields = Fields(bytes);
    let is_whole = fields.u32()? as usize == bytes.len() - BLOCK_HEADER;
    let sum = fields.u32()?;
    if !is_whole || sum != checksum(&[&offset.to_le_bytes(), fields.0]) {
        return None;
    }
    let mut pair = (fields.u64()?, u128::from_le_bytes(fields.array()?));
    let mut pairs = vec![pair];
    while !fields.0.is_empty() {
        let step = take_number(&mut fields)?;
        if step == 0 {
            let upper = ((pair.1 >> 64) as u64).checked_add(take_number(&mut fields)?)?;
            pair.1 = u128::from(upper) << 64 | u128::from(fields.u64()?);
        } else {
            pair = (pair.0.checked_add(step)?, u128::from_le_bytes(fields.array()?));
        }
        pairs.push(pair);
    }
    Some(pairs)
}
