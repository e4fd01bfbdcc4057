//! Somebody who can write to the files of the memory store and knows their format: what a journal
//! says is changed, and every checksum made to fit.

use std::path::Path;

/// Where the first block of a segment is, and what comes before the frames of a block.
const DATA_START: usize = 4096;
const HEADER: usize = 32;
/// Where a segment's header has its id.
const SEGMENT_ID: std::ops::Range<usize> = 24..32;

/// Puts `to` wherever a journal in `directory` says `from`; both are of one length. Answers with
/// how many blocks it has changed.
pub(crate) fn forge(directory: &Path, from: &str, to: &str) -> usize {
    assert_eq!(from.len(), to.len());
    let mut forged = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "log") {
            continue;
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let segment: [u8; 8] = bytes[SEGMENT_ID].try_into().unwrap();
        let mut offset = DATA_START;
        while offset + HEADER <= bytes.len() {
            let length = number(&bytes[offset + 4..offset + 8]) as usize;
            let is_block = [&b"OPEN"[..], b"FRMS", b"SEAL"].contains(&&bytes[offset..offset + 4]);
            if !is_block {
                break;
            }
            let block = &mut bytes[offset..offset + HEADER + length];
            if replaced(&mut block[HEADER..], from.as_bytes(), to.as_bytes()) {
                let body = checksum(&[&block[HEADER..]]).to_le_bytes();
                block[24..28].copy_from_slice(&body);
                let place = (offset as u64).to_le_bytes();
                let header = checksum(&[&segment, &place, &block[..28]]).to_le_bytes();
                block[28..32].copy_from_slice(&header);
                forged += 1;
            }
            offset += (HEADER + length).next_multiple_of(HEADER);
        }
        std::fs::write(&path, &bytes).unwrap();
    }
    forged
}

fn replaced(bytes: &mut [u8], from: &[u8], to: &[u8]) -> bool {
    let found: Vec<usize> = (0..bytes.len().saturating_sub(from.len() - 1))
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    for at in &found {
        bytes[*at..*at + to.len()].copy_from_slice(to);
    }
    !found.is_empty()
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

/// CRC-32 as everybody has it, a bit at a time.
fn checksum(pieces: &[&[u8]]) -> u32 {
    let mut sum = !0_u32;
    for byte in pieces.iter().flat_map(|piece| piece.iter()) {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}
