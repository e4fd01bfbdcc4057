//! Blocks and frames as bytes: the unit a flush makes durable, and the records inside it.
//!
//! A block is `kind, length, first lsn, count, zero sectors, body checksum, header checksum`, then
//! `count` frames of `length, body`. The header checksum covers the segment id and the offset, so a
//! block is valid in exactly one place. Must never judge tears: that is `journal/recovery.rs`.

use super::Lsn;
use crate::bytes::{Fields, checksum};

/// Size of a block header and alignment of blocks: a header never crosses a sector.
pub(super) const HEADER: usize = 32;

/// Bytes in front of each frame's body.
pub(super) const FRAME_HEADER: usize = 4;

const SECTOR: u64 = 512;

/// What a block is for. The codes are letters, so a kind is never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// First in its segment; carries the lsn the next frame will have.
    Open,
    /// Frames.
    Frames,
    /// Last in its segment.
    Seal,
}

impl Kind {
    const fn code(self) -> [u8; 4] {
        match self {
            Self::Open => *b"OPEN",
            Self::Frames => *b"FRMS",
            Self::Seal => *b"SEAL",
        }
    }

    fn from_code(code: [u8; 4]) -> Option<Self> {
        [Self::Open, Self::Frames, Self::Seal].into_iter().find(|kind| kind.code() == code)
    }
}

/// The place a block belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) segment_id: u64,
    pub(super) offset: u64,
}

/// A block header that passed its own checksum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) length: u32,
    pub(super) first_lsn: Lsn,
    pub(super) count: u32,
    pub(super) zero_sectors: u32,
    pub(super) body_checksum: u32,
}

/// What 32 bytes turned out to be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen {
    Nothing,
    Header(Header),
    Garbage,
}

/// Bytes a block of this body length occupies.
pub(super) fn padded(length: usize) -> usize {
    (HEADER + length).next_multiple_of(HEADER)
}

/// Completes a block in place: `block` holds `HEADER` bytes to fill and then the frames. The
/// padding behind them is never written, the segment is zero there.
pub(super) fn finish(block: &mut [u8], kind: Kind, place: Place, first_lsn: Lsn, count: u32) {
    let body = block.len() - HEADER;
    let body_checksum = checksum(&[&block[HEADER..]]);
    let zero_sectors = zero_sectors(place.offset, block);
    block[0..4].copy_from_slice(&kind.code());
    block[4..8].copy_from_slice(&(body as u32).to_le_bytes());
    block[8..16].copy_from_slice(&first_lsn.to_le_bytes());
    block[16..20].copy_from_slice(&count.to_le_bytes());
    block[20..24].copy_from_slice(&zero_sectors.to_le_bytes());
    block[24..28].copy_from_slice(&body_checksum.to_le_bytes());
    let header_checksum = header_checksum(&block[..28], place);
    block[28..32].copy_from_slice(&header_checksum.to_le_bytes());
}

/// A block without frames.
pub(super) fn mark(kind: Kind, place: Place, next_lsn: Lsn) -> Vec<u8> {
    let mut block = vec![0; HEADER];
    finish(&mut block, kind, place, next_lsn, 0);
    block
}

/// Reads a header; the cheap zero test comes first because scans are mostly over zeros.
pub(super) fn read_header(bytes: &[u8; HEADER], place: Place) -> Seen {
    if *bytes == [0; HEADER] {
        return Seen::Nothing;
    }
    parse_header(bytes, place).map_or(Seen::Garbage, Seen::Header)
}

fn parse_header(bytes: &[u8; HEADER], place: Place) -> Option<Header> {
    let mut fields = Fields(bytes);
    let header = Header {
        kind: Kind::from_code(fields.array()?)?,
        length: fields.u32()?,
        first_lsn: fields.u64()?,
        count: fields.u32()?,
        zero_sectors: fields.u32()?,
        body_checksum: fields.u32()?,
    };
    (fields.u32()? == header_checksum(&bytes[..28], place)).then_some(header)
}

fn header_checksum(fields: &[u8], place: Place) -> u32 {
    checksum(&[&place.segment_id.to_le_bytes(), &place.offset.to_le_bytes(), fields])
}

/// How many sectors of a block, after the one that holds its header, are entirely zero. Padding
/// makes no difference: it never reaches into another sector.
pub(super) fn zero_sectors(offset: u64, block: &[u8]) -> u32 {
    let first = (SECTOR - offset % SECTOR) as usize;
    let rest = block.get(first..).unwrap_or_default();
    rest.chunks(SECTOR as usize).filter(|sector| is_zero(sector)).count() as u32
}

/// Whether all bytes are zero, eight at a time.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().all(|word| u64::from_le_bytes(*word) == 0) && rest.iter().all(|byte| *byte == 0)
}

/// Appends a frame to a block under construction.
pub(super) fn push_frame(block: &mut Vec<u8>, body: &[u8]) {
    block.extend_from_slice(&(body.len() as u32).to_le_bytes());
    block.extend_from_slice(body);
}

/// Takes the next frame's body off a verified block body; `None` when lengths do not add up.
pub(super) fn next_frame<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut fields = Fields(rest);
    let length = fields.u32()? as usize;
    let body = fields.take(length)?;
    *rest = fields.0;
    Some(body)
}
