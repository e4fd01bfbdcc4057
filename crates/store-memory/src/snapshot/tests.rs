//! Facts about snapshot files: round trips, every kind of damage, and crashes while writing.

use std::sync::Arc;

use super::{SnapshotReader, SnapshotWriter};
use crate::disk::sim::Faults;
use crate::disk::{Disk, SimDisk};
use crate::error::FileError;

fn write(disk: &SimDisk, sizes: &[usize]) -> Result<u64, FileError> {
    let mut writer = SnapshotWriter::create(Arc::new(disk.clone()), "snap", 5)?;
    for (nth, size) in sizes.iter().enumerate() {
        writer.chunk(&vec![nth as u8 + 1; *size])?;
    }
    writer.finish(9)
}

fn read(disk: &SimDisk) -> Result<Vec<usize>, FileError> {
    let mut reader = SnapshotReader::open(disk, "snap")?;
    assert_eq!(reader.start_lsn(), 5);
    let mut sizes = Vec::new();
    while let Some(chunk) = reader.next_chunk()? {
        assert!(chunk.iter().all(|byte| usize::from(*byte) == sizes.len() + 1));
        sizes.push(chunk.len());
    }
    assert_eq!(reader.end_lsn(), Some(9));
    Ok(sizes)
}

#[test]
fn chunks_of_all_sizes_come_back() {
    for sizes in [vec![], vec![1], vec![100, 3_000_000, 7, 2_500_000, 1_048_576]] {
        let disk = SimDisk::new();
        let size = write(&disk, &sizes).unwrap();
        assert_eq!(size, disk.contents("snap").unwrap().len() as u64);
        assert_eq!(read(&disk).unwrap(), sizes);
        assert_eq!(disk.list().unwrap(), ["snap"]);
    }
}

#[test]
fn every_flipped_bit_and_every_other_length_is_damage() {
    let disk = SimDisk::new();
    write(&disk, &[40, 1, 90]).unwrap();
    let whole = disk.contents("snap").unwrap();
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.overwrite("snap", bytes);
        assert!(matches!(read(&disk), Err(FileError::Damaged { .. })), "bit {bit}");
    }
    for size in (0..whole.len()).chain([whole.len() + 1]) {
        let mut bytes = whole.clone();
        bytes.resize(size, 0);
        disk.overwrite("snap", bytes);
        assert!(matches!(read(&disk), Err(FileError::Damaged { .. })), "size {size}");
    }
}

#[test]
fn a_crash_leaves_the_whole_snapshot_or_none() {
    for changes in 0.. {
        let disk = SimDisk::new();
        disk.set_faults(Faults { power_off_after: Some(changes), ..Faults::default() });
        let is_finished = write(&disk, &[1000, 600_000]).is_ok();
        for choice in disk.crash_choices(20, changes) {
            let restarted = disk.crash(choice);
            if is_finished || restarted.contents("snap").is_some() {
                assert_eq!(read(&restarted).unwrap(), [1000, 600_000], "{changes} {choice:?}");
            }
        }
        if is_finished {
            break;
        }
    }
}
