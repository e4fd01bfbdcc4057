//! Copies of a memory store that is at work: between any two things that the copy does, the store
//! commits, ends a segment, takes a snapshot or throws files away. Every copy must open, and hold
//! everything that was acknowledged before it was begun.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_kernel::command::Complete;
use mainspring_kernel::{Command, JobId, Receipt};
use mainspring_store::Store;
use mainspring_store_memory::backup::{self, BackupError};
use mainspring_store_memory::disk::{DirLock, Disk, DiskFile, SimDisk};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_testkit::drive::{self, BEGINNING};
use mainspring_testkit::rng::Rng;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A store at work.
struct Shop {
    store: MemoryStore,
    rng: Rng,
    acknowledged: Vec<JobId>,
    /// What is being worked on.
    taken: Vec<Complete>,
    fresh: u128,
    steps: u64,
    /// What may still happen during this copy.
    left: u64,
}

impl Shop {
    fn open(disk: &SimDisk, seed: u64) -> Self {
        let store = MemoryStore::open(Arc::new(disk.clone()), config(seed), BEGINNING).unwrap();
        let rng = Rng::new(seed, 3);
        Shop {
            store,
            rng,
            acknowledged: Vec::new(),
            taken: Vec::new(),
            fresh: 0,
            steps: 0,
            left: 0,
        }
    }

    /// Does one thing that changes files.
    fn step(&mut self) {
        self.steps += 1;
        let now = BEGINNING + Duration::from_millis(self.steps);
        let payload = format!("\"{}\"", "x".repeat(self.rng.below(600) as usize));
        let wish = drive::wish("acme", "ada", "mill", &payload);
        let mut commands = vec![Command::Submit(Box::new(wish))];
        // Some of what was taken is completed, so that there is something to archive.
        if self.rng.below(3) > 0 {
            commands.extend(self.taken.drain(..).map(Command::Complete));
        }
        let done = drive::commit(&self.store, &commands, 1, now, &mut self.fresh).unwrap();
        self.store.flush().unwrap();
        for outcome in done.outcomes {
            if let Receipt::Submitted { job } = outcome.unwrap() {
                self.acknowledged.push(job);
            }
        }
        let grants = done.granted.iter().filter_map(|job| Some((job.id, job.lease()?.token())));
        self.taken.extend(grants.map(|(job, token)| Complete { job, token, result: None }));
        match self.rng.below(12) {
            0 => self.store.take_snapshot(now).unwrap(),
            1 => self.store.tidy(now).unwrap(),
            _ => {}
        }
    }
}

fn config(seed: u64) -> MemoryConfig {
    MemoryConfig {
        segment_bytes: 8 << 10,
        snapshot_bytes_min: 12 << 10,
        finished_bytes_max: 2_000,
        has_threads: false,
        ..MemoryConfig::standard(seed)
    }
}

/// A disk on which something happens whenever it is looked at.
#[derive(Clone)]
struct Stirred {
    inner: SimDisk,
    shop: Arc<Mutex<Shop>>,
    /// One look in so many.
    every: u64,
}

/// What happens at most while one copy is taken.
const STEPS_MAX: u64 = 150;

impl std::fmt::Debug for Stirred {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stirred")
    }
}

impl Stirred {
    fn stir(&self) {
        let mut shop = self.shop.lock().unwrap();
        if shop.left > 0 && shop.rng.below(self.every) == 0 {
            shop.left -= 1;
            shop.step();
        }
    }
}

#[derive(Debug)]
struct StirredFile {
    inner: Box<dyn DiskFile>,
    disk: Stirred,
}

impl DiskFile for StirredFile {
    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        panic!("nobody writes to what is copied")
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.disk.stir();
        self.inner.read_at(offset, buffer)
    }
    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
    fn set_len(&self, _: u64) -> io::Result<()> {
        panic!("nobody writes to what is copied")
    }
    fn sync_data(&self) -> io::Result<()> {
        panic!("nobody writes to what is copied")
    }
}

impl Disk for Stirred {
    fn list(&self) -> io::Result<Vec<String>> {
        self.stir();
        self.inner.list()
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        panic!("{name} is made where nothing is to be written")
    }
    fn open_write(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        panic!("{name} is opened to be written")
    }
    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.stir();
        let inner = self.inner.open_read(name)?;
        Ok(Box::new(StirredFile { inner, disk: self.clone() }))
    }
    fn rename(&self, from: &str, _: &str) -> io::Result<()> {
        panic!("{from} is renamed")
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        panic!("{name} is removed")
    }
    fn sync_dir(&self) -> io::Result<()> {
        panic!("nobody writes to what is copied")
    }
    fn try_lock(&self) -> io::Result<Option<DirLock>> {
        panic!("a copy locks nobody out")
    }
    fn free_bytes(&self) -> io::Result<u64> {
        self.inner.free_bytes()
    }
}

#[test]
fn a_copy_of_a_store_at_work_holds_what_was_acknowledged_before_it() {
    let (mut copies, mut jobs) = (0, 0);
    for seed in 0..21 {
        let disk = SimDisk::new();
        let mut shop = Shop::open(&disk, seed);
        (0..seed * 3).for_each(|_| shop.step());
        let shop = Arc::new(Mutex::new(shop));
        // From a storm in which a copy is overtaken by snapshots to a drizzle.
        let stirred = Stirred { inner: disk, shop: shop.clone(), every: 1 + seed % 7 };
        for _ in 0..3 {
            let before = shop.lock().unwrap().acknowledged.clone();
            shop.lock().unwrap().left = STEPS_MAX;
            let to = SimDisk::new();
            let taken = match backup::take(&stirred, &to, &[], &mut |_, _| {}) {
                Ok(taken) => taken,
                Err(BackupError::Restless) => continue,
                Err(error) => panic!("seed {seed}: {error}"),
            };
            assert!(taken.files > 0);
            judge(seed, &to, &before);
            (copies, jobs) = (copies + 1, jobs + before.len());
        }
    }
    assert!(copies > 40, "most copies succeed: {copies}");
    println!("{copies} copies with {jobs} jobs in them");
}

/// Restores a copy elsewhere and looks for the jobs.
fn judge(seed: u64, copy: &SimDisk, wanted: &[JobId]) {
    let files = backup::verify(copy).unwrap();
    let elsewhere = SimDisk::new();
    backup::restore(copy, &elsewhere, &files, &mut |_, _| {}).unwrap();
    let opened = MemoryStore::open(Arc::new(elsewhere), config(seed), BEGINNING);
    let store = opened.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    for id in wanted {
        let found = drive::ready(store.job(*id)).unwrap();
        assert!(found.is_some(), "seed {seed}: {id} is lost");
    }
}

#[test]
fn a_copy_that_is_not_as_it_was_written_is_refused() {
    let disk = SimDisk::new();
    let mut shop = Shop::open(&disk, 5);
    (0..40).for_each(|_| shop.step());
    let to = SimDisk::new();
    backup::take(&disk, &to, &[], &mut |_, _| {}).unwrap();
    let names = to.list().unwrap();
    assert!(names.contains(&"BACKUP".to_owned()) && names.len() > 2, "{names:?}");
    for name in &names {
        let whole = to.contents(name).unwrap();
        for bit in [0, whole.len() * 4, whole.len() * 8 - 1] {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            to.overwrite(name, bytes);
            assert!(backup::verify(&to).is_err(), "{name}, bit {bit}");
        }
        to.overwrite(name, whole[..whole.len() - 1].to_vec());
        assert!(backup::verify(&to).is_err(), "{name} is short");
        to.overwrite(name, whole);
    }
    assert!(backup::verify(&to).is_ok());
    assert!(matches!(backup::verify(&SimDisk::new()), Err(BackupError::NotWhole(_))));
    let nothing = backup::take(&SimDisk::new(), &SimDisk::new(), &[], &mut |_, _| {});
    assert!(matches!(nothing, Err(BackupError::NoStore)));
}

#[test]
fn damage_in_the_journal_is_told_and_not_taken_for_its_end() {
    let disk = SimDisk::new();
    let mut shop = Shop::open(&disk, 6);
    (0..3).for_each(|_| shop.step());
    let name = "journal-0000000000000001.log";
    let whole = disk.contents(name).unwrap();
    // A byte of the first block that has frames: more blocks follow it.
    let mut bytes = whole.clone();
    bytes[4096 + 32 + 40] ^= 1;
    disk.overwrite(name, bytes);
    let taken = backup::take(&disk, &SimDisk::new(), &[], &mut |_, _| {});
    assert!(matches!(taken, Err(BackupError::Journal(_))), "{taken:?}");
    // The same with the whole block gone.
    let mut bytes = whole;
    bytes[4096 + 32..4096 + 64].fill(0);
    disk.overwrite(name, bytes);
    let taken = backup::take(&disk, &SimDisk::new(), &[], &mut |_, _| {});
    assert!(matches!(taken, Err(BackupError::Journal(_))), "{taken:?}");
}
