//! Facts about the archive, checked against a plain map.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Archive, Key, MergePlan, Pair, Record, Seek, open_run, write_run, write_run_with_terms,
};
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

/// The terms of a record: some that many have, one that few have.
fn terms_of(record: &Record) -> Vec<u64> {
    let number = u128::from_be_bytes(record.key) as u64;
    vec![1, 2 + number % 2, u64::MAX - number / 7]
}

fn pairs(model: &Model) -> impl Iterator<Item = Result<Pair, FileError>> + use<> {
    let of = |record: &Record| {
        let key = u128::from_be_bytes(record.key);
        terms_of(record).into_iter().map(move |term| (term, key))
    };
    let mut pairs: Vec<Pair> = model.values().flat_map(of).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(Ok)
}

/// What a model and an archive have between two keys.
fn check_terms(archive: &Archive, model: &Model, probes: u64) {
    for terms in [vec![1], vec![3], vec![1, 2], vec![2, u64::MAX - 3], vec![2, 3], vec![9]] {
        for (from, to, limit) in [(probes, 0, 500), (probes / 2, 5, 500), (probes, 0, 3)] {
            let admits = |record: &Record| terms.iter().all(|it| terms_of(record).contains(it));
            let (from, to) = (key(from), key(to));
            let is_by_new_term = terms.contains(&3);
            let seek = Seek {
                terms: &terms,
                is_by_new_term,
                from,
                to,
                limit,
                is_any: false,
                admits: &admits,
            };
            let found = archive.seek(&seek).unwrap();
            let found: Vec<Key> = found.keys.into_iter().map(|(key, _)| key).collect();
            let between = model.range(to..=from).rev().filter(|(_, record)| admits(record));
            let wanted: Vec<Key> = between.map(|(key, _)| *key).take(limit).collect();
            assert_eq!(found, wanted, "{terms:?}");
        }
    }
}

/// Writes each list as a run, newest last, and keeps the map that should result.
fn build(disk: &SimDisk, runs: &[Vec<(u64, i64, usize)>]) -> (Archive, Model) {
    let mut archive = Archive::default();
    let mut model = Model::new();
    for (nth, list) in runs.iter().enumerate() {
        let sorted: Model =
            list.iter().map(|&(n, stamp, size)| (key(n), record(n, stamp, size))).collect();
        model.extend(sorted.clone());
        let (records, pairs) = (sorted.values().cloned().map(Ok), || pairs(&sorted));
        let name = format!("archive-{nth}.run");
        if let Some(run) = write_run_with_terms(disk, &name, records, pairs).unwrap() {
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
        check_terms(&reopened, &model, 121);
        // Merging without a cutoff changes nothing, however often.
        let mut merges = 0;
        while let Some(plan) = archive.plan_merge(runs_max) {
            let name = format!("merged-{merges}.run");
            let merged = plan.merge(&disk, &name, i64::MIN, &terms_of).unwrap();
            for name in archive.replace(&plan, merged) {
                disk.remove(&name).unwrap();
            }
            merges += 1;
            prop_assert!(merges < 20);
            check(&archive, &model, 121);
            check_terms(&archive, &model, 121);
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
    let merged = plan.merge(&disk, "merged.run", 20, &terms_of).unwrap();
    assert_eq!(archive.replace(&plan, merged).len(), 3);
    let keys: Vec<Key> = archive.descending(&[255; 16]).map(|r| r.unwrap().key).collect();
    assert_eq!(keys, [key(4), key(2)]);
    assert_eq!(archive.drop_older_than(31), ["merged.run"]);
    assert!(archive.runs().is_empty() && archive.plan_merge(1).is_none());
}

#[test]
fn what_a_merge_leaves_out_has_no_terms_either() {
    let disk = SimDisk::new();
    let (mut archive, mut model) =
        build(&disk, &[vec![(1, 10, 5), (2, 20, 5)], vec![(3, 10, 5), (4, 30, 5)]]);
    let plan = archive.plan_merge(1).unwrap();
    let merged = plan.merge(&disk, "merged.run", 20, &terms_of).unwrap();
    archive.replace(&plan, merged);
    model.retain(|_, record| record.stamp >= 20);
    check_terms(&archive, &model, 12);
}

#[test]
fn a_run_of_the_first_format_is_searched_and_then_gets_its_terms() {
    let disk = SimDisk::new();
    let (_, model) = build(&disk, &[(0..300).map(|n| (n, 1, 50)).collect()]);
    let old = write_run(&disk, "old.run", model.values().cloned().map(Ok)).unwrap().unwrap();
    let bytes = disk.contents("old.run").unwrap();
    assert_eq!(&bytes[bytes.len() - 8..], b"MSARUN\0\x01", "old bytes must still open");
    assert!(!old.has_all_terms());
    let mut archive = Archive::open(&disk, &["old.run".to_owned()]).unwrap();
    check_terms(&archive, &model, 300);
    let plan = archive.plan_merge(8).expect("an old run is written anew by itself");
    let merged = plan.merge(&disk, "new.run", i64::MIN, &terms_of).unwrap();
    assert_eq!(archive.replace(&plan, merged), ["old.run"]);
    assert!(archive.runs()[0].has_all_terms() && archive.plan_merge(8).is_none());
    check(&archive, &model, 300);
    check_terms(&archive, &model, 300);
}

#[test]
fn a_run_of_the_second_format_is_searched_for_new_terms_and_then_gets_them() {
    let disk = SimDisk::new();
    let (_, model) = build(&disk, &[(0..300).map(|n| (n, 1, 50)).collect()]);
    let records = model.values().cloned().map(Ok);
    // Of the terms of today it does not know all.
    let known = pairs(&model).filter(|pair| pair.as_ref().is_ok_and(|(term, _)| *term != 3));
    write_run_with_terms(&disk, "old.run", records, || known).unwrap();
    let end = disk.contents("old.run").unwrap().len() as u64;
    disk.open_write("old.run").unwrap().write_at(end - 1, &[2]).unwrap();
    let mut archive = Archive::open(&disk, &["old.run".to_owned()]).unwrap();
    assert!(!archive.runs()[0].has_all_terms());
    check_terms(&archive, &model, 300);
    let plan = archive.plan_merge(8).expect("an old run is written anew by itself");
    let merged = plan.merge(&disk, "new.run", i64::MIN, &terms_of).unwrap();
    assert_eq!(archive.replace(&plan, merged), ["old.run"]);
    assert!(archive.runs()[0].has_all_terms() && archive.plan_merge(8).is_none());
    check(&archive, &model, 300);
    check_terms(&archive, &model, 300);
}

#[test]
fn damaged_terms_cost_time_and_no_record() {
    let disk = SimDisk::new();
    let (archive, model) = build(&disk, &[(0..900).map(|n| (n, 1, 5)).collect()]);
    let mut bytes = disk.contents("archive-0.run").unwrap();
    // Behind the records and before the index.
    let records = archive.runs()[0].records_end() as usize;
    bytes[records + 20] ^= 1;
    disk.overwrite("archive-0.run", bytes);
    let mut archive = Archive::open(&disk, &["archive-0.run".to_owned()]).unwrap();
    check_terms(&archive, &model, 900);
    let plan = MergePlan { inputs: archive.runs().to_vec() };
    let merged = plan.merge(&disk, "new.run", i64::MIN, &terms_of).unwrap();
    archive.replace(&plan, merged);
    assert_eq!(archive.runs()[0].pairs().filter(Result::is_err).count(), 0);
    check_terms(&archive, &model, 900);
}

#[test]
fn a_few_of_many_records_are_found_by_a_few_blocks() {
    let disk = SimDisk::new();
    let (archive, _) = build(&disk, &[(0..60_000).map(|n| (n, 1, 40)).collect()]);
    let admits = |_: &Record| panic!("the records are not looked through");
    for terms in [vec![u64::MAX - 5_000], vec![2, u64::MAX - 5_000], vec![3]] {
        let (from, to) = ([255; 16], [0; 16]);
        let seek = Seek {
            terms: &terms,
            is_by_new_term: true,
            from,
            to,
            limit: 7,
            is_any: false,
            admits: &admits,
        };
        let found = archive.seek(&seek).unwrap();
        assert!(found.keys.len() >= 3, "{terms:?}");
        assert!(found.reads <= 4 * terms.len(), "{} blocks for {terms:?}", found.reads);
    }
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
        let read = Archive::open(&disk, &[name.to_owned()]).and_then(|archive| {
            archive.descending(&[255; 16]).collect::<Result<Vec<_>, _>>()?;
            archive.runs()[0].pairs().collect::<Result<Vec<_>, _>>()
        });
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
