//! Power failures at every step of a workload, of a recovery, and of the appends after it.
//!
//! The oracle: a restart sees a prefix of what was staged, at least as long as what was
//! acknowledged. It must never be refused, because no crash is damage.

use super::tests::{body, expected, open};
use super::{JournalError, Log};
use crate::disk::SimDisk;
use crate::disk::sim::{CrashChoice, Faults};
use crate::error::FileError;

struct Run {
    disk: SimDisk,
    acknowledged: u64,
    staged: u64,
    is_finished: bool,
}

/// Runs a workload that rotates several times until the power fails.
fn run_until(changes: u64) -> Run {
    let disk = SimDisk::new();
    disk.set_faults(Faults { power_off_after: Some(changes), ..Faults::default() });
    let mut run = Run { disk: disk.clone(), acknowledged: 0, staged: 0, is_finished: false };
    let Ok((mut log, ..)) = open(&disk) else { return run };
    for flush in 0..24 {
        for _ in 0..=flush % 4 {
            run.staged += 1;
            log.stage(&body(run.staged)).unwrap();
        }
        match log.flush() {
            Ok(lsn) => run.acknowledged = lsn,
            Err(_) => return run,
        }
    }
    run.is_finished = true;
    run
}

fn check(disk: &SimDisk, acknowledged: u64, staged: u64, what: &dyn Fn() -> String) -> (Log, u64) {
    let (log, summary, frames) = match open(disk) {
        Ok(opened) => opened,
        Err(error) => panic!("refused after {}: {error}", what()),
    };
    let count = frames.len() as u64;
    assert!(count >= acknowledged, "lost {count} < {acknowledged} after {}", what());
    assert!(count <= staged, "invented {count} > {staged} after {}", what());
    assert_eq!(frames, expected(count), "{}", what());
    assert_eq!(summary.last_lsn, count);
    (log, count)
}

#[test]
fn no_power_failure_loses_what_was_acknowledged() {
    let mut images = 0u64;
    for changes in 0.. {
        let run = run_until(changes);
        for choice in run.disk.crash_choices(1200, changes) {
            let disk = run.disk.crash(choice);
            let what = || format!("change {changes}, {choice:?}");
            let (mut log, count) = check(&disk, run.acknowledged, run.staged, &what);
            images += 1;
            // The first append after recovery must be reachable after the next crash.
            log.stage(&body(count + 1)).unwrap();
            assert_eq!(log.flush().unwrap(), count + 1);
            check(&disk.crash(CrashChoice::DropAll), count + 1, count + 1, &what);
            images += 1;
        }
        if run.is_finished {
            break;
        }
    }
    println!("crash images: {images}");
    assert!(images >= 20_000, "only {images}");
}

/// A crash, then a crash at every step of the recovery and of two appends after it.
#[test]
fn a_crash_during_recovery_is_as_safe_as_the_first() {
    let mut images = 0u64;
    for changes in 0.. {
        let run = run_until(changes);
        let choices = run.disk.crash_choices(6, changes);
        let sampled = choices.len().div_ceil(5).max(1);
        for choice in choices.into_iter().step_by(sampled) {
            for second in 0.. {
                let disk = run.disk.crash(choice);
                let power = Faults { power_off_after: Some(second), ..Faults::default() };
                disk.set_faults(power);
                let (acknowledged, staged, is_finished) = append_two(&disk, &run);
                let all = disk.crash_choices(2, second);
                for again in all.iter().step_by(all.len().div_ceil(6)).copied() {
                    let what = || format!("change {changes}, {choice:?}, then {second}, {again:?}");
                    check(&disk.crash(again), acknowledged, staged, &what);
                    images += 1;
                }
                if is_finished {
                    break;
                }
            }
        }
        if run.is_finished {
            break;
        }
    }
    println!("second-crash images: {images}");
    assert!(images >= 5_000, "only {images}");
}

/// Debris of a torn block must be gone for good before a new block covers it: every tear of one
/// block, then a crash at every step of the recovery and of a block of the same size.
#[test]
fn debris_of_a_tear_never_mixes_with_the_next_block() {
    let disk = SimDisk::new();
    let (mut log, ..) = open(&disk).unwrap();
    log.stage(&body(1)).unwrap();
    log.flush().unwrap();
    disk.set_faults(Faults { power_off_after: Some(1), ..Faults::default() });
    // Unlike any later frame, so that a leftover sector cannot pass for the new one.
    log.stage(&[0xee; 2400]).unwrap();
    assert!(log.flush().is_err());
    let run = Run { disk, acknowledged: 1, staged: 1, is_finished: true };
    let mut images = 0u64;
    for choice in run.disk.crash_choices(0, 0) {
        if open(&run.disk.crash(choice)).unwrap().2.len() > 1 {
            continue;
        }
        for second in 0.. {
            let disk = run.disk.crash(choice);
            disk.set_faults(Faults { power_off_after: Some(second), ..Faults::default() });
            let (acknowledged, staged, is_finished) = append_two(&disk, &run);
            for _ in 0..24 {
                let again = CrashChoice::Random(images);
                let what = || format!("{choice:?}, then {second}, {again:?}");
                check(&disk.crash(again), acknowledged, staged, &what);
                images += 1;
            }
            if is_finished {
                break;
            }
        }
    }
    println!("debris images: {images}");
    assert!(images >= 5_000, "only {images}");
}

fn append_two(disk: &SimDisk, run: &Run) -> (u64, u64, bool) {
    let (mut acknowledged, mut staged) = (run.acknowledged, run.staged);
    let mut log = match open(disk) {
        Ok((log, ..)) => log,
        Err(JournalError::File(FileError::Damaged { reason, .. })) => panic!("refused: {reason}"),
        Err(_) => return (acknowledged, staged, false),
    };
    for _ in 0..2 {
        let lsn = log.next_lsn();
        log.stage(&body(lsn)).unwrap();
        // Frames of the first life that were not recovered are replaced by this one.
        staged = staged.max(lsn);
        match log.flush() {
            Ok(lsn) => acknowledged = lsn,
            Err(_) => return (acknowledged, staged, false),
        }
    }
    (acknowledged, staged, true)
}
