//! The stream behind the ring in RAM: files of moves, each a stretch of positions that its name
//! tells. The keeper writes them; a snapshot counts only once every move before it is in one, so
//! that ring and files together have whatever is young enough to be kept, also after a crash.
//!
//! Nothing rests on these files but reading the stream back: one that is damaged is a gap in it.

use super::{Memory, failed};
use crate::disk::Disk;
use crate::error::FileError;
use crate::limits::{MOVES_PER_CHUNK, MOVES_PER_FILE, MOVES_WRITTEN_FROM, STREAM_BYTES_MAX};
use crate::snapshot::{SnapshotReader, SnapshotWriter};
use mainspring_kernel::Timestamp;
use mainspring_store::record::{decode_moves, encode_moves, first_of_moves};
use mainspring_store::{Error, LoggedMove, MovesPage, StepsPage};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

/// The files, by the position of their last move.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    by_last: BTreeMap<u64, Piece>,
    bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    first: u64,
    last: u64,
    /// When the last of them was made.
    at: Timestamp,
    bytes: u64,
}

impl Piece {
    fn name(&self) -> String {
        let Piece { first, last, at, .. } = self;
        format!("stream-{first:016x}-{last:016x}-{:016x}.moves", at.0.cast_unsigned())
    }

    /// The piece of that name.
    fn named(name: &str, bytes: u64) -> Option<Piece> {
        let text = name.strip_prefix("stream-")?.strip_suffix(".moves")?;
        let mut numbers = text.split('-').map(|part| u64::from_str_radix(part, 16));
        let mut number = || numbers.next()?.ok();
        let (first, last, at) = (number()?, number()?, Timestamp(number()?.cast_signed()));
        (first <= last).then_some(Piece { first, last, at, bytes })
    }
}

impl Pieces {
    /// What there is.
    pub(super) fn open(disk: &dyn Disk) -> Result<Pieces, FileError> {
        let mut pieces = Pieces::default();
        let names = disk.list().map_err(|source| FileError::io("list", ".", source))?;
        for name in names.iter().filter(|name| name.ends_with(".moves")) {
            let size = disk.open_read(name).and_then(|file| file.size());
            let size = size.map_err(|source| FileError::io("open", name, source))?;
            if let Some(piece) = Piece::named(name, size) {
                pieces.add(piece);
            }
        }
        Ok(pieces)
    }

    /// The position of the last move that is in a file.
    pub(super) fn last(&self) -> u64 {
        self.by_last.keys().next_back().copied().unwrap_or(0)
    }

    /// Removes what is of another life of the store: moves that it does not know of.
    pub(super) fn forget_after(&mut self, disk: &dyn Disk, newest: u64) -> Result<(), FileError> {
        let strange: Vec<Piece> =
            self.by_last.range(newest.saturating_add(1)..).map(|(_, it)| it.clone()).collect();
        for piece in strange {
            let name = piece.name();
            disk.remove(&name).map_err(|source| FileError::io("remove", &name, source))?;
            self.remove(&piece);
        }
        Ok(())
    }

    fn add(&mut self, piece: Piece) {
        self.bytes += piece.bytes;
        self.by_last.insert(piece.last, piece);
    }

    fn remove(&mut self, piece: &Piece) {
        if self.by_last.remove(&piece.last).is_some() {
            self.bytes -= piece.bytes;
        }
    }

    /// The piece that has `position`, or the next one after it.
    fn at_or_after(&self, position: u64) -> Option<Piece> {
        self.by_last.range(position..).next().map(|(_, piece)| piece.clone())
    }

    /// What is past keeping: too old, or too much.
    fn past(&self, keep_from: Timestamp) -> Vec<Piece> {
        let mut over = self.bytes.saturating_sub(STREAM_BYTES_MAX);
        let is_past = |piece: &&Piece| {
            let is_over = over > 0;
            over = over.saturating_sub(piece.bytes);
            is_over || piece.at < keep_from
        };
        self.by_last.values().take_while(is_past).cloned().collect()
    }
}

/// Writes what waits for a file, if it is enough for one, and removes what is past keeping.
pub(super) fn keep(memory: &Memory, disk: &Arc<dyn Disk>, now: Timestamp) -> Result<(), Error> {
    let waiting = memory.read().moves.unwritten();
    if waiting >= MOVES_WRITTEN_FROM {
        write_until(memory, disk, memory.settled.moves())?;
    }
    let past = {
        let pieces = memory.pieces.read().unwrap_or_else(PoisonError::into_inner);
        pieces.past(now - memory.config.keep_stream)
    };
    for piece in past {
        // Forgotten before it is removed: who reads it just then finds the next one.
        memory.pieces.write().unwrap_or_else(PoisonError::into_inner).remove(&piece);
        let name = piece.name();
        disk.remove(&name).map_err(|source| failed(&FileError::io("remove", &name, source)))?;
    }
    Ok(())
}

/// Writes every move up to `until`, which must be durable, that is in no file yet.
pub(super) fn write_until(memory: &Memory, disk: &Arc<dyn Disk>, until: u64) -> Result<(), Error> {
    loop {
        let first = memory.read().moves.to_write(until, 1);
        let Some(first) = first.first().map(|first| first.position) else { return Ok(()) };
        let piece = write_piece(memory, disk, first, until)?;
        let last = piece.last;
        memory.pieces.write().unwrap_or_else(PoisonError::into_inner).add(piece);
        memory.write().moves.written_to(last);
    }
}

/// Writes one file, whose first move is at `first`. The lock is held for a chunk at a time.
fn write_piece(
    memory: &Memory,
    disk: &Arc<dyn Disk>,
    first: u64,
    until: u64,
) -> Result<Piece, Error> {
    // Its name tells its end, so that is settled before anything is written.
    let last = until.min(first + MOVES_PER_FILE as u64 - 1);
    let at = memory.read().moves.after(last - 1, last, 1).0;
    let at = at.first().map_or(Timestamp::EPOCH, |newest| newest.transition.at);
    let piece = Piece { first, last, at, bytes: 0 };
    let broken = |error: FileError| failed(&error);
    let mut writer = SnapshotWriter::create(disk.clone(), &piece.name(), first).map_err(broken)?;
    let (mut position, mut chunk) = (first - 1, Vec::new());
    while position < last {
        let (moves, has_gap) = memory.read().moves.after(position, last, MOVES_PER_CHUNK);
        let Some(newest) = moves.last().filter(|_| !has_gap) else {
            return Err(Error::Failed("moves were dropped before they could be written".into()));
        };
        position = newest.position;
        chunk.clear();
        encode_moves(&moves, &mut chunk);
        writer.chunk(&chunk).map_err(broken)?;
    }
    let bytes = writer.finish(last).map_err(broken)?;
    Ok(Piece { bytes, ..piece })
}

/// Durable moves after `position`: out of files as far as they have left RAM.
pub(super) fn moves_after(memory: &Memory, position: u64, limit: usize) -> MovesPage {
    let newest = memory.settled.moves();
    let mut moves: Vec<LoggedMove> = Vec::new();
    let (mut at, mut has_gap) = (position, false);
    while moves.len() < limit && at < newest && at + 1 < memory.read().moves.oldest() {
        let found = {
            let pieces = memory.pieces.read().unwrap_or_else(PoisonError::into_inner);
            pieces.at_or_after(at + 1)
        };
        let Some(piece) = found else { break };
        let from = piece.first.max(at + 1);
        if from > at + 1 && !moves.is_empty() {
            // What is missing is told at the beginning of a page.
            return MovesPage { moves, has_gap, newest };
        }
        has_gap |= from > at + 1;
        match read_piece(memory, &piece, from, limit - moves.len()) {
            Ok(read) if !read.is_empty() => {
                at = read.last().map_or(at, |last| last.position);
                moves.extend(read);
            }
            Ok(_) => break,
            Err(error) => {
                tracing::warn!(%error, "a file of the stream cannot be read; it is passed over");
                if !moves.is_empty() {
                    return MovesPage { moves, has_gap, newest };
                }
                (at, has_gap) = (piece.last, true);
            }
        }
    }
    let room = limit - moves.len().min(limit);
    let (rest, is_behind) = memory.read().moves.after(at, newest, room);
    if is_behind && !moves.is_empty() {
        return MovesPage { moves, has_gap, newest };
    }
    moves.extend(rest);
    MovesPage { moves, has_gap: has_gap || is_behind, newest }
}

/// The same without what is known of the jobs: out of RAM without a copy of that.
pub(super) fn steps_after(memory: &Memory, position: u64, limit: usize) -> StepsPage {
    let newest = memory.settled.moves();
    if let Some(steps) = memory.read().moves.steps(position, newest, limit) {
        return StepsPage { steps, has_gap: false, newest };
    }
    let MovesPage { moves, has_gap, newest } = moves_after(memory, position, limit);
    let step = |it: LoggedMove| (it.position, it.job, Some(it.transition));
    StepsPage { steps: moves.into_iter().map(step).collect(), has_gap, newest }
}

/// Moves of a file from a position on.
fn read_piece(
    memory: &Memory,
    piece: &Piece,
    from: u64,
    limit: usize,
) -> Result<Vec<LoggedMove>, FileError> {
    let Some(disk) = &memory.disk else { return Ok(Vec::new()) };
    let name = piece.name();
    let damaged = |bad: &dyn std::fmt::Display| FileError::damaged(&name, 0, bad.to_string());
    let mut reader = SnapshotReader::open(disk.as_ref(), &name)?;
    let mut found: Vec<LoggedMove> = Vec::new();
    while found.len() < limit {
        let Some(chunk) = reader.next_chunk()? else { break };
        let first = first_of_moves(chunk).map_err(|bad| damaged(&bad))?;
        if first + MOVES_PER_CHUNK as u64 <= from {
            continue;
        }
        let moves = decode_moves(chunk).map_err(|bad| damaged(&bad))?;
        found.extend(moves.into_iter().filter(|it| it.position >= from));
    }
    found.truncate(limit);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_stretch_and_strange_names_tell_nothing() {
        let piece = Piece { first: 7, last: 300, at: Timestamp(1_700_000_000_000_000), bytes: 9 };
        assert_eq!(Piece::named(&piece.name(), 9), Some(piece));
        for strange in ["stream-7.moves", "stream-9-7-0.moves", "stream-x-7-0.moves", "a.moves"] {
            assert_eq!(Piece::named(strange, 0), None, "{strange}");
        }
    }

    #[test]
    fn what_is_too_old_or_too_much_goes_the_oldest_first() {
        let mut pieces = Pieces::default();
        for n in 0..4u64 {
            let at = Timestamp(n.cast_signed());
            let (first, last) = (n * 10 + 1, n * 10 + 10);
            pieces.add(Piece { first, last, at, bytes: STREAM_BYTES_MAX / 3 });
        }
        let past =
            |at: i64| pieces.past(Timestamp(at)).iter().map(|it| it.first).collect::<Vec<_>>();
        assert_eq!(past(0), [1], "four thirds are too much");
        assert_eq!(past(3), [1, 11, 21]);
        assert_eq!(pieces.at_or_after(15).map(|it| it.first), Some(11));
        assert_eq!(pieces.at_or_after(41), None);
    }
}
