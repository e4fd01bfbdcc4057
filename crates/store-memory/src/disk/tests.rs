//! Facts about the two disks: they agree on behaviour, and the simulated one forgets correctly.
//!
//! Must not test the journal; that is `journal/tests.rs`.

use super::sim::{CrashChoice, Faults};
use super::{Disk, RealDisk, SimDisk};

fn exercise(disk: &dyn Disk) {
    let file = disk.create("a.tmp").unwrap();
    file.zero_fill(0, 2000).unwrap();
    file.write_at(1990, b"hello world!").unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.size().unwrap(), 2002);
    disk.rename("a.tmp", "a").unwrap();
    disk.sync_dir().unwrap();
    let mut buffer = [9; 20];
    assert_eq!(disk.open_read("a").unwrap().read_at(1990, &mut buffer).unwrap(), 12);
    assert_eq!(&buffer[..12], b"hello world!");
    file.set_len(10).unwrap();
    assert_eq!(disk.open_write("a").unwrap().size().unwrap(), 10);
    assert_eq!(disk.list().unwrap(), ["a"]);
    assert!(disk.free_bytes().unwrap() > 0);
    let lock = disk.try_lock().unwrap();
    assert!(lock.is_some());
    assert!(disk.try_lock().unwrap().is_none());
    drop(lock);
    assert!(disk.try_lock().unwrap().is_some());
    disk.remove("a").unwrap();
    assert!(disk.open_read("a").is_err());
}

#[test]
fn the_real_and_the_simulated_disk_behave_alike() {
    let dir = tempfile::tempdir().unwrap();
    exercise(&RealDisk::open(dir.path().join("deep/er")).unwrap());
    exercise(&SimDisk::new());
}

#[test]
fn only_synced_bytes_under_a_synced_name_must_survive() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    file.write_at(0, &[1; 1024]).unwrap();
    file.sync_data().unwrap();
    assert!(disk.crash(CrashChoice::DropAll).list().unwrap().is_empty());
    disk.sync_dir().unwrap();
    file.write_at(512, &[2; 1024]).unwrap();
    assert_eq!(disk.crash(CrashChoice::DropAll).contents("a").unwrap(), [1; 1024]);
    let torn = disk.crash(CrashChoice::Torn { changes: 0, sectors: 1 }).contents("a").unwrap();
    assert_eq!((torn.len(), torn[511], torn[512]), (1024, 1, 2));
    let swapped = disk.crash(CrashChoice::Mask(0b10)).contents("a").unwrap();
    assert_eq!((swapped.len(), swapped[512], swapped[1024]), (1536, 1, 2));
    assert_eq!(disk.crash_choices(5, 1).len(), 4);
}

#[test]
fn a_failed_sync_is_never_made_good_by_a_later_one() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    disk.sync_dir().unwrap();
    file.write_at(0, b"x").unwrap();
    disk.set_faults(Faults { fail_sync: Some(1), ..Faults::default() });
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    assert!(disk.crash(CrashChoice::DropAll).contents("a").unwrap().is_empty());
    assert_eq!(disk.crash(CrashChoice::KeepAll).contents("a").unwrap(), b"x");
}

#[test]
fn the_quota_counts_growth_only() {
    let disk = SimDisk::new();
    let file = disk.create("a").unwrap();
    disk.set_faults(Faults { quota_bytes: Some(100), ..Faults::default() });
    file.write_at(0, &[1; 100]).unwrap();
    file.write_at(0, &[2; 100]).unwrap();
    assert!(super::is_out_of_space(&file.write_at(100, b"x").unwrap_err()));
    assert_eq!(disk.free_bytes().unwrap(), 0);
}
