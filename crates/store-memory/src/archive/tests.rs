//! Facts about the archive, checked against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Archive, Key, Record, open_run, write_run};
use crate::disk::sim::Faults;
use crate::disk::{Disk, SimDisk};
use crate::error::FileError;

fn key(number: u64) -> Key {
    u128::from(number).to_be_bytes()
}

fn record(number: u64, stamp: i64, size: usize) -> Record {
    Record { key: key(number), stamp, value: vec![(number + stamp as u64) as u8; size] }
}

type Model = BTreeMap<Key, Record>;

/// Writes each list as a run, newest last, and keeps the map that should result.
fn build(disk: &SimDisk, runs: &[Vec<(u64, i64, usize)>]) -> (Archive, Model) {
    let mut archive = Archive::default();
    let mut model = Model::new();
    for (nth, list) in runs.iter().enumerate() {
        let sorted: Model =
            list.iter().map(|&(n, stamp, size)| (key(n), record(n, stamp, size))).collect();
        model.extend(sorted.clone());
        let records = sorted.into_values().map(Ok);
        if let Some(run) = write_run(disk, &format!("archive-{nth}.run"), records).unwrap() {
            archive.push(run);
        }
    }
    (archive, model)
}

fn check(archive: &Archive, model: &Model, probes: u64) {
    for number in 0..probes {
        assert_eq!(archive.get(&key(number)).unwrap().as_ref(), model.get(&key(number)));
    }
    for from in [key(0), key(probes / 2), [255; 16]] {
        let found: Vec<Record> = archive.descending(&from).map(Result::unwrap).collect();
        let wanted: Vec<Record> = model.range(..=from).rev().map(|(_, r)| r.clone()).collect();
        assert_eq!(found, wanted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn lookups_and_merges_agree_with_a_map(
        runs in prop::collection::vec(
            prop::collection::vec((0u64..120, 0i64..50, 0usize..3000), 0..60), 1..7),
        runs_max in 1usize..4,
        keep_from in 0i64..60,
    ) {
        let disk = SimDisk::new();
        let (mut archive, model) = build(&disk, &runs);
        check(&archive, &model, 121);
        let reopened = Archive::open(&disk, &archive.names()).unwrap();
        check(&reopened, &model, 121);
        // Merging without a cutoff changes nothing, however often.
        let mut merges = 0;
        while let Some(plan) = archive.plan_merge(runs_max) {
            let merged = plan.merge(&disk, &format!("merged-{merges}.run"), i64::MIN).unwrap();
            for name in archive.replace(&plan, merged) {
                disk.remove(&name).unwrap();
            }
            merges += 1;
            prop_assert!(merges < 20);
            check(&archive, &model, 121);
        }
        for name in archive.drop_older_than(keep_from) {
            disk.remove(&name).unwrap();
        }
        // What is left holds every record that is young enough; whole runs only are dropped.
        for (key, record) in &model {
            if record.stamp >= keep_from {
                prop_assert_eq!(archive.get(key).unwrap(), Some(record.clone()));
            }
        }
    }
}

#[test]
fn a_merge_leaves_out_what_is_too_old() {
    let disk = SimDisk::new();
    let (mut archive, _) = build(
        &disk,
        &[vec![(1, 10, 5), (2, 20, 5)], vec![(3, 10, 5), (4, 30, 5)], vec![(5, 9, 5)]],
    );
    let plan = archive.plan_merge(2).unwrap();
    let merged = plan.merge(&disk, "merged.run", 20).unwrap();
    assert_eq!(archive.replace(&plan, merged).len(), 3);
    let keys: Vec<Key> = archive.descending(&[255; 16]).map(|r| r.unwrap().key).collect();
    assert_eq!(keys, [key(4), key(2)]);
    assert_eq!(archive.drop_older_than(31), ["merged.run"]);
    assert!(archive.runs().is_empty() && archive.plan_merge(1).is_none());
}

#[test]
fn large_runs_are_not_merged_with_every_small_one() {
    let disk = SimDisk::new();
    let big: Vec<_> = (0..800).map(|n| (n, 1, 3000)).collect();
    let small = |n: u64| vec![(1000 + n, 1, 10)];
    let (archive, _) = build(&disk, &[big, small(1), small(2), small(3)]);
    let plan = archive.plan_merge(2).unwrap();
    assert!(plan.bytes() < 10_000);
    assert!(archive.plan_merge(3).is_some_and(|plan| plan.bytes() > 1_000_000));
    assert!(archive.plan_merge(4).is_none());
}

#[test]
fn every_flipped_bit_is_damage_or_unread() {
    let disk = SimDisk::new();
    let (_, model) = build(&disk, &[(0..30).map(|n| (n * 2, n as i64, 2000)).collect()]);
    let name = "archive-0.run";
    let whole = disk.contents(name).unwrap();
    let tail = whole.len() - 400;
    for bit in (0..whole.len() * 8).filter(|bit| bit / 8 >= tail || bit % 61 == 0) {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        disk.overwrite(name, bytes);
        let read = Archive::open(&disk, &[name.to_owned()])
            .and_then(|archive| archive.descending(&[255; 16]).collect::<Result<Vec<_>, _>>());
        assert!(matches!(read, Err(FileError::Damaged { .. })), "bit {bit}");
    }
    for size in (0..whole.len()).step_by(7) {
        disk.overwrite(name, whole[..size].to_vec());
        assert!(matches!(open_run(&disk, name), Err(FileError::Damaged { .. })), "size {size}");
    }
    assert_eq!(model.len(), 30);
}

#[test]
fn a_crash_leaves_a_whole_run_or_none() {
    for changes in 0.. {
        let disk = SimDisk::new();
        disk.set_faults(Faults { power_off_after: Some(changes), ..Faults::default() });
        let records = (0..40).map(|n| Ok(record(n, 1, 1500)));
        let is_finished = write_run(&disk, "a.run", records).is_ok();
        for choice in disk.crash_choices(30, changes) {
            let restarted = disk.crash(choice);
            if is_finished || restarted.contents("a.run").is_some() {
                let archive = Archive::open(&restarted, &["a.run".to_owned()]).unwrap();
                assert_eq!(archive.descending(&[255; 16]).filter(Result::is_ok).count(), 40);
            }
        }
        if is_finished {
            break;
        }
    }
}
