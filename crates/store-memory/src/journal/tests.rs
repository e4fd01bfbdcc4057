//! Facts about a journal whose disk behaves, or is damaged while the process is down.
//!
//! Crashes are in `journal/crash_tests.rs`, threads in `journal/group_commit_tests.rs`.

use std::sync::Arc;

use super::{Config, JournalError, Log, Lsn, Preparation, RecoverySummary, Start};
use crate::disk::sim::Faults;
use crate::disk::{Disk, RealDisk, SimDisk};
use crate::error::FileError;

pub(super) type Frames = Vec<(Lsn, Vec<u8>)>;

pub(super) fn config() -> Config {
    Config { segment_bytes: 8192, segment_id_seed: 77, preparation: Preparation::Inline }
}

pub(super) fn open(disk: &SimDisk) -> Result<(Log, RecoverySummary, Frames), JournalError> {
    let mut frames = Vec::new();
    let (log, summary) =
        Log::open(Arc::new(disk.clone()), config(), Start::MayBeNew, &mut |lsn, body| {
            frames.push((lsn, body.to_vec()));
            Ok(())
        })?;
    Ok((log, summary, frames))
}

/// Frames of varied sizes, recognisable by their content; some hold long runs of zeros.
pub(super) fn body(lsn: Lsn) -> Vec<u8> {
    let size = [3, 40, 700, 0, 1600, 130][lsn as usize % 6];
    let mut body: Vec<u8> = (0..size).map(|at| (at as u64 * 31 + lsn * 7 + 1) as u8).collect();
    if lsn % 12 == 4 {
        body[..1500].fill(0);
    }
    body
}

pub(super) fn expected(count: u64) -> Frames {
    (1..=count).map(|lsn| (lsn, body(lsn))).collect()
}

fn append(log: &mut Log, lsns: std::ops::RangeInclusive<u64>) {
    for lsn in lsns {
        assert_eq!(log.stage(&body(lsn)).unwrap(), lsn);
    }
}

/// A journal of `flushes` flushes with three frames each.
fn written(flushes: u64) -> SimDisk {
    let disk = SimDisk::new();
    let (mut log, ..) = open(&disk).unwrap();
    for nth in 0..flushes {
        append(&mut log, nth * 3 + 1..=nth * 3 + 3);
        assert_eq!(log.flush().unwrap(), nth * 3 + 3);
    }
    disk
}

#[test]
fn what_was_flushed_is_replayed_across_segments() {
    let disk = written(20);
    let (log, summary, frames) = open(&disk).unwrap();
    assert_eq!(frames, expected(60));
    assert!(summary.segments > 3, "{summary:?}");
    assert_eq!((summary.frames, summary.last_lsn, summary.torn_bytes_cut), (60, 60, 0));
    assert_eq!(summary.bytes, frames.iter().map(|(_, body)| body.len() as u64).sum::<u64>());
    assert_eq!(log.next_lsn(), 61);
}

#[test]
fn an_empty_journal_starts_at_one() {
    let disk = SimDisk::new();
    let (_, summary, frames) = open(&disk).unwrap();
    assert!(frames.is_empty());
    assert_eq!(summary, RecoverySummary::default());
    assert_eq!(open(&disk).unwrap().1.last_lsn, 0);
}

#[test]
fn a_frame_larger_than_a_segment_gets_its_own() {
    let disk = SimDisk::new();
    let (mut log, ..) = open(&disk).unwrap();
    let bodies = [vec![1; 10], vec![2; 100_000], vec![3; 10], vec![0; 9_000]];
    for body in &bodies {
        log.stage(body).unwrap();
    }
    log.flush().unwrap();
    let (_, _, frames) = open(&disk).unwrap();
    assert_eq!(frames.into_iter().map(|(_, body)| body).collect::<Vec<_>>(), bodies);
}

#[test]
fn trimming_keeps_positions_even_when_the_new_start_is_empty() {
    let disk = written(20);
    let (log, ..) = open(&disk).unwrap();
    let current = log.current_segment();
    assert_eq!(log.trim(u64::MAX).unwrap().len() as u64, current - 1);
    let arc: Arc<dyn Disk> = Arc::new(disk.clone());
    let (log, _) =
        Log::open(Arc::clone(&arc), config(), Start::Segment(current), &mut |_, _| Ok(())).unwrap();
    assert_eq!(log.next_lsn(), 61);
    for start in [Start::MayBeNew, Start::Segment(current - 1), Start::Segment(current + 2)] {
        let result = Log::open(Arc::clone(&arc), config(), start, &mut |_, _| Ok(()));
        assert!(matches!(result, Err(JournalError::File(FileError::Damaged { .. }))), "{start:?}");
    }
}

#[test]
fn a_missing_segment_is_noticed_wherever_it_is() {
    let disk = written(20);
    let last = open(&disk).unwrap().0.current_segment();
    for seq in 1..=last {
        let copy = disk.crash(crate::disk::sim::CrashChoice::KeepAll);
        copy.remove(&super::segment::name(seq)).unwrap();
        // The prepared segment may be the only one missing after the last used one.
        let _ = copy.remove(&super::segment::name(last + 1));
        assert!(
            matches!(open(&copy), Err(JournalError::File(FileError::Damaged { .. }))),
            "segment {seq}"
        );
    }
}

#[test]
fn a_refused_frame_stops_the_replay() {
    let disk: Arc<dyn Disk> = Arc::new(written(2));
    let result = Log::open(disk, config(), Start::MayBeNew, &mut |lsn, _| {
        if lsn == 4 { Err("unknown event".to_owned()) } else { Ok(()) }
    });
    assert!(matches!(result, Err(JournalError::Replay { lsn: 4, .. })));
}

/// Every truncation is refused: the length of a segment was synced before its first frame.
#[test]
fn a_truncated_segment_is_refused() {
    let disk = written(1);
    let name = super::segment::name(1);
    let whole = disk.contents(&name).unwrap();
    for size in 0..whole.len() {
        disk.overwrite(&name, whole[..size].to_vec());
        assert!(
            matches!(open(&disk), Err(JournalError::File(FileError::Damaged { .. }))),
            "{size}"
        );
    }
}

/// The last frames are cut at every byte, the rest reads as zeros: an acknowledged frame may only
/// disappear where the missing part is whole sectors, which is what a tear looks like.
#[test]
fn zeroes_from_any_byte_give_a_prefix_or_a_refusal() {
    let disk = written(2);
    let name = super::segment::name(1);
    let whole = disk.contents(&name).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in 4096 + 32..used {
        let mut bytes = whole.clone();
        bytes[cut..].fill(0);
        disk.overwrite(&name, bytes);
        match open(&disk) {
            Ok((.., frames)) => {
                assert!([0, 3, 6].contains(&frames.len()), "cut {cut}");
                assert_eq!(frames, expected(frames.len() as u64), "cut {cut}");
            }
            Err(JournalError::File(FileError::Damaged { .. })) => {}
            Err(error) => panic!("cut {cut}: {error}"),
        }
    }
}

/// Flips every bit of a journal of several segments: nothing acknowledged is ever silently lost.
#[test]
fn a_flipped_bit_is_refused_or_harmless() {
    let disk = written(5);
    let names = disk.list().unwrap();
    let mut outcomes = [0u64; 2];
    for name in names {
        let whole = disk.contents(&name).unwrap();
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 65;
        for bit in 0..used.min(whole.len()) * 8 {
            // Unused header padding is all zeros; a sample of it is enough.
            if (64 * 8..4096 * 8).contains(&bit) && bit % 97 != 0 {
                continue;
            }
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let copy = disk.crash(crate::disk::sim::CrashChoice::KeepAll);
            copy.overwrite(&name, bytes);
            match open(&copy) {
                Ok((.., frames)) => {
                    assert_eq!(frames, expected(15), "{name} bit {bit}");
                    outcomes[0] += 1;
                }
                Err(JournalError::File(FileError::Damaged { .. })) => outcomes[1] += 1,
                Err(error) => panic!("{name} bit {bit}: {error}"),
            }
        }
    }
    println!("bit flips: {} harmless, {} refused", outcomes[0], outcomes[1]);
    assert!(outcomes[1] > 10_000);
}

/// A lost sector looks like a tear, but only the very last flush may be taken for one.
#[test]
fn a_zeroed_sector_before_the_last_flush_is_refused() {
    let disk = SimDisk::new();
    let (mut log, ..) = open(&disk).unwrap();
    // Several flushes share a segment, so a lost sector has valid blocks after it.
    for lsn in 1..=20 {
        append(&mut log, lsn..=lsn);
        log.flush().unwrap();
    }
    let mut refused = 0;
    for seq in 1..=log.current_segment() {
        let name = super::segment::name(seq);
        let whole = disk.contents(&name).unwrap();
        for sector in 8..whole.len() / 512 {
            let mut bytes = whole.clone();
            bytes[sector * 512..][..512].fill(0);
            let is_same = bytes == whole;
            let copy = disk.crash(crate::disk::sim::CrashChoice::KeepAll);
            copy.overwrite(&name, bytes);
            match open(&copy) {
                Ok((.., frames)) => {
                    let is_last = seq == log.current_segment() && frames.len() == 19;
                    assert!(is_same || is_last, "{name} sector {sector}: {}", frames.len());
                    assert_eq!(frames, expected(frames.len() as u64));
                }
                Err(JournalError::File(FileError::Damaged { .. })) => refused += 1,
                Err(error) => panic!("{name} sector {sector}: {error}"),
            }
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn any_failed_write_or_sync_poisons() {
    for nth in 1..200 {
        for is_sync in [false, true] {
            let disk = SimDisk::new();
            let (mut log, ..) = open(&disk).unwrap();
            let (fail_write, fail_sync) =
                if is_sync { (None, Some(nth)) } else { (Some(nth), None) };
            disk.set_faults(Faults { fail_write, fail_sync, ..Faults::default() });
            let mut acknowledged = 0;
            let failed = (1..=60).find(|lsn| {
                log.stage(&body(*lsn)).unwrap();
                let result = log.flush();
                acknowledged = result.as_ref().map_or(acknowledged, |lsn| *lsn);
                result.is_err()
            });
            if failed.is_some() {
                assert!(matches!(log.stage(b"x"), Err(JournalError::Poisoned)));
                assert!(matches!(log.flush(), Err(JournalError::Poisoned)));
                assert!(log.durable_lsn() >= acknowledged);
            }
            let restarted = disk.crash(crate::disk::sim::CrashChoice::DropAll);
            let frames = open(&restarted).unwrap().2;
            assert!(frames.len() as u64 >= acknowledged, "nth {nth} sync {is_sync}");
            assert_eq!(frames, expected(frames.len() as u64));
        }
    }
}

#[test]
fn a_full_disk_warns_then_holds_then_heals() {
    const MIB: u64 = 1 << 20;
    let disk = SimDisk::new();
    disk.set_faults(Faults { quota_bytes: Some(MIB + 3 * 8192), ..Faults::default() });
    let (mut log, ..) = open(&disk).unwrap();
    assert!(!log.is_low_on_space());
    let mut lsn = 0;
    let mut was_low = false;
    let refused = loop {
        lsn = log.stage(&[lsn as u8; 400]).unwrap();
        if let Err(error) = log.flush() {
            break error;
        }
        was_low |= log.is_low_on_space();
        assert!(lsn < 100);
    };
    assert!(matches!(refused, JournalError::NoSpace));
    assert!(was_low && log.is_low_on_space());
    assert_eq!(log.durable_lsn(), lsn - 1);
    assert!(log.headroom() < 500);
    disk.set_faults(Faults::default());
    assert_eq!(log.flush().unwrap(), lsn);
    assert!(!log.is_low_on_space());
    assert_eq!(open(&disk).unwrap().2.len() as u64, lsn);
}

#[test]
fn the_real_disk_keeps_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path()).unwrap());
    let config =
        Config { segment_bytes: 1 << 20, preparation: Preparation::HelperThread, ..config() };
    for round in 0..3u64 {
        let mut count = 0;
        let (mut log, _) =
            Log::open(Arc::clone(&disk), config.clone(), Start::MayBeNew, &mut |lsn, found| {
                count += 1;
                assert_eq!(found, body(lsn));
                Ok(())
            })
            .unwrap();
        assert_eq!(count, round * 2000);
        append(&mut log, round * 2000 + 1..=round * 2000 + 2000);
        log.flush().unwrap();
    }
}
