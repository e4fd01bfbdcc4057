//! What the memory store keeps when records are large, files are damaged, or one of its threads
//! dies. Power cuts are in `crash_images.rs`.

#[path = "keeping/door.rs"]
mod door;
#[path = "keeping/engine.rs"]
mod engine;
#[path = "keeping/trap.rs"]
mod trap;
#[path = "keeping/upkeep.rs"]
mod upkeep;

use mainspring_kernel::command::{CommitEffect, Complete, Fail};
use mainspring_kernel::limits::{EFFECT_BYTES_MAX, EFFECTS_MAX, PAYLOAD_BYTES_MAX};
use mainspring_kernel::{Command, Event, Failure, Job, JobId, Receipt, Rejection, StateName};
use mainspring_store::record::{FrameWriter, encode_counters, encode_job};
use mainspring_store::{Error, Fatal, JobFilter, JobWithHistory, Scope, Store};
use mainspring_store_memory::archive::{Record, write_run_with_terms};
use mainspring_store_memory::disk::sim::{CrashChoice, Faults};
use mainspring_store_memory::disk::{Disk, RealDisk, SimDisk};
use mainspring_store_memory::error::FileError;
use mainspring_store_memory::journal::{self, Log, Preparation, Start};
use mainspring_store_memory::manifest::Manifest;
use mainspring_store_memory::snapshot::SnapshotWriter;
use mainspring_store_memory::transfer::MemoryExport;
use mainspring_store_memory::{MemoryConfig, MemoryStore, OpenError, doctor};
use mainspring_testkit::drive::{self, BEGINNING};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use trap::Trap;

/// Long enough for any machine; only a failure waits for it.
const LONG: Duration = Duration::from_secs(60);

fn config() -> MemoryConfig {
    MemoryConfig { segment_bytes: 8 << 10, has_threads: false, ..MemoryConfig::standard(7) }
}

fn open(disk: &SimDisk, config: MemoryConfig) -> MemoryStore {
    MemoryStore::open(Arc::new(disk.clone()), config, BEGINNING).expect("it opens")
}

fn submit(payload: &str) -> Command {
    Command::Submit(Box::new(drive::wish("acme", "ada", "plain", payload)))
}

fn keyed(name: &str) -> Command {
    let mut wish = drive::wish("acme", "ada", "plain", &"x".repeat(2_000));
    wish.idempotency = Some(drive::key("acme", name, "[1]", None));
    Command::Submit(Box::new(wish))
}

fn complete(job: &Job) -> Command {
    let token = job.lease().expect("a granted job has a lease").token();
    Command::Complete(Complete { job: job.id, token, result: None })
}

fn fail(job: &Job) -> Command {
    let token = job.lease().expect("a granted job has a lease").token();
    let failure = Failure { code: "E".into(), message: "it broke".into(), retryable: false };
    let (job, retry_delay_ms, result, snooze_ms) = (job.id, None, None, None);
    Command::Fail(Fail { job, token, failure, retry_delay_ms, result, snooze_ms })
}

fn submitted(outcome: &Result<Receipt, Rejection>) -> JobId {
    match outcome {
        Ok(Receipt::Submitted { job }) => *job,
        other => panic!("{other:?}"),
    }
}

/// Commits that are at once durable.
struct Hand<'a> {
    store: &'a MemoryStore,
    fresh: u128,
}

impl<'a> Hand<'a> {
    fn of(store: &'a MemoryStore) -> Self {
        Hand { store, fresh: 0 }
    }

    fn commit(&mut self, commands: &[Command], pull: usize) -> drive::Done {
        let done = drive::commit(self.store, commands, pull, BEGINNING, &mut self.fresh);
        let done = done.expect("it is taken");
        self.store.flush().expect("it is durable");
        done
    }
}

fn job(store: &MemoryStore, id: JobId) -> Option<JobWithHistory> {
    drive::ready(store.job(id)).expect("it can be read")
}

fn any() -> JobFilter {
    JobFilter::of(Scope::All)
}

/// Every job that a list tells of, page by page.
fn listed(store: &MemoryStore, filter: &JobFilter, page: usize) -> Vec<JobId> {
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = drive::ready(store.jobs(filter, before, page)).expect("lists go on");
        found.extend(page.items.iter().map(|job| job.id));
        assert!(found.len() < 100_000, "the list does not end");
        match page.next {
            Some(next) => before = Some(next),
            None => return found,
        }
    }
}

#[test]
fn a_snapshot_of_hundreds_of_large_payloads_is_written_and_read_back() {
    let place = tempfile::tempdir().expect("it works");
    let config = || MemoryConfig { has_threads: false, ..MemoryConfig::standard(7) };
    let open = || {
        let disk = Arc::new(RealDisk::open(place.path()).expect("it works"));
        MemoryStore::open(disk, config(), BEGINNING).expect("it works")
    };
    let store = open();
    let mut hand = Hand::of(&store);
    let payload = "x".repeat(PAYLOAD_BYTES_MAX);
    let mut jobs = Vec::new();
    for _ in 0..20 {
        let done = hand.commit(&vec![submit(&payload); 15], 0);
        jobs.extend(done.outcomes.iter().map(submitted));
    }
    // Dead-letter items carry their job's payload, too.
    let held = hand.commit(&[], 70).granted;
    let ended: Vec<Command> = held.iter().map(fail).collect();
    hand.commit(&ended, 0);
    store.take_snapshot(BEGINNING).expect("it works");
    drive::ready(store.close()).expect("it works");
    drop(store);
    let store = open();
    let recovery = store.health().recovery;
    assert_eq!(recovery.jobs, 230);
    assert!(recovery.frames < 5, "{recovery:?}: the rest is in the snapshot");
    for id in &jobs {
        assert_eq!(job(&store, *id).expect("it is there").job.payload.len(), PAYLOAD_BYTES_MAX);
    }
    let counts = drive::ready(store.counts(BEGINNING)).expect("it works");
    assert_eq!(counts.items_open, 70);
}

/// The largest job there can be: it fits a chunk of a snapshot and a block of the archive.
#[test]
fn a_job_with_all_the_effects_it_may_have_survives_snapshot_and_archive() {
    let place = tempfile::tempdir().expect("it works");
    let open = || {
        let disk = Arc::new(RealDisk::open(place.path()).expect("it works"));
        let config =
            MemoryConfig { has_threads: false, finished_bytes_max: 1, ..MemoryConfig::standard(7) };
        MemoryStore::open(disk, config, BEGINNING).expect("it works")
    };
    let store = open();
    let mut hand = Hand::of(&store);
    let held = hand.commit(&[submit("{}")], 1).granted.remove(0);
    let token = held.lease().expect("it works").token();
    let value: Arc<str> = "x".repeat(EFFECT_BYTES_MAX).into();
    for nth in 0..EFFECTS_MAX {
        let name = format!("effect-{nth}").into();
        let effect = CommitEffect { job: held.id, token, name, value: value.clone() };
        let done = hand.commit(&[Command::CommitEffect(effect)], 0);
        if done.outcomes[0].is_err() {
            assert!(nth > 0, "the first one is taken");
            break;
        }
    }
    store.take_snapshot(BEGINNING).expect("it works");
    drop(store);
    let store = open();
    let alive = job(&store, held.id).expect("it is there");
    Hand { store: &store, fresh: 99 }.commit(&[complete(&held)], 0);
    store.tidy(BEGINNING).expect("it works");
    let ended = job(&store, held.id).expect("it is archived");
    assert_eq!(ended.job.state.name(), StateName::Succeeded);
    assert_eq!(ended.job.payload, alive.job.payload);
}

/// One commit that decides more than a frame should hold becomes several frames; it is acknowledged
/// with the last of them, and a crash in between keeps whole decisions.
#[test]
fn a_commit_larger_than_a_frame_is_written_in_pieces_and_acknowledged_whole() {
    let wishes = || vec![submit(&"x".repeat(PAYLOAD_BYTES_MAX)); 40];
    let large = || MemoryConfig { segment_bytes: 64 << 20, ..config() };
    let disk = SimDisk::new();
    let store = open(&disk, large());
    let mut hand = Hand::of(&store);
    let jobs: Vec<JobId> = hand.commit(&wishes(), 0).outcomes.iter().map(submitted).collect();
    // Small reports with large consequences: every item has its job's payload.
    let held = hand.commit(&[], 40).granted;
    let reports: Vec<Command> = held.iter().map(fail).collect();
    hand.commit(&reports, 0);
    drop(store);
    let store = open(&disk.crash(CrashChoice::DropAll), large());
    let frames = store.health().recovery.frames;
    assert!((10..20).contains(&frames), "{frames} frames for 80 MiB");
    for id in &jobs {
        assert_eq!(job(&store, *id).expect("it is there").job.state.name(), StateName::Failed);
    }
    // The second block of such a commit fails: nobody is told that it worked.
    let disk = SimDisk::new();
    let store = open(&disk, large());
    disk.set_faults(Faults { fail_sync: Some(2), ..Faults::default() });
    let done = drive::commit(&store, &wishes(), 0, BEGINNING, &mut 0).expect("it works");
    let (tell, told) = channel();
    done.ticket.then(move |outcome| tell.send(outcome.is_ok()).expect("it works"));
    assert!(store.flush().is_err());
    assert_eq!(told.recv_timeout(LONG), Ok(false));
    assert!(drive::commit(&store, &[submit("{}")], 0, BEGINNING, &mut 99).is_err());
    drop(store);
    let store = open(&disk.crash(CrashChoice::DropAll), large());
    let found = listed(&store, &any(), 100).len();
    assert!(found > 0 && found < 40, "{found} jobs of the first frame");
}

/// Somebody who listens for the end.
fn listening() -> (Fatal, Receiver<String>) {
    let (tell, told) = channel();
    // The test may have heard enough.
    (Fatal::new(move |why| drop(tell.send(why.to_owned()))), told)
}

/// A store with threads on a disk that is trapped from now on.
fn trapped(prefix: &'static str, more: MemoryConfig) -> (MemoryStore, Trap, Receiver<String>) {
    let (fatal, told) = listening();
    let trap = Trap::new(SimDisk::new(), prefix);
    let config = MemoryConfig { has_threads: true, fatal, ..more };
    let store = MemoryStore::open(Arc::new(trap.clone()), config, BEGINNING).expect("it works");
    (store, trap, told)
}

fn is_broken_because(store: &MemoryStore, words: &str) {
    let broken = store.health().broken.expect("it says that it is broken");
    assert!(broken.contains(words), "{broken}");
    let refused = drive::commit(store, &[submit("{}")], 0, BEGINNING, &mut 500).err();
    assert!(matches!(refused, Some(Error::Stopped)), "{refused:?}");
}

#[test]
fn a_keeper_that_dies_is_told_and_the_store_says_so() {
    let config = MemoryConfig { snapshot_bytes_min: 1, ..config() };
    let (store, trap, told) = trapped("snapshot-", config);
    drive::commit(&store, &[submit("{}")], 0, BEGINNING, &mut 0).expect("it works");
    trap.set();
    drive::ready(store.maintain(BEGINNING)).expect("it works");
    assert_eq!(told.recv_timeout(LONG).expect("it works"), "the keeper died: a trap at snapshot-");
    is_broken_because(&store, "the keeper died: a trap at snapshot-");
}

#[test]
fn a_journal_thread_that_dies_is_told_and_nobody_waits_for_it() {
    let (store, trap, told) = trapped("journal-", config());
    trap.set();
    let done = drive::commit(&store, &[submit("{}")], 0, BEGINNING, &mut 0).expect("it works");
    let (tell, answer) = channel();
    done.ticket.then(move |outcome| tell.send(outcome.is_ok()).expect("it works"));
    assert_eq!(answer.recv_timeout(LONG), Ok(false));
    let why = told.recv_timeout(LONG).expect("it works");
    assert_eq!(why, "the journal failed (its thread died: a trap at journal-)");
    is_broken_because(&store, "its thread died");
}

/// The thread that prepares segments steps on the trap; the writer itself writes to files that are
/// open already and have their real names.
#[test]
fn a_thread_that_prepares_segments_and_dies_is_told() {
    let (store, trap, told) = trapped("journal-0000000000000003", config());
    trap.set();
    for nth in 0..8 {
        let payload = "x".repeat(3_000);
        let taken = drive::commit(&store, &[submit(&payload)], 0, BEGINNING, &mut (nth * 10));
        // Commit by commit: a writer in a hurry makes segments itself.
        if taken.is_err() || store.flush().is_err() {
            break;
        }
    }
    let why = told.recv_timeout(LONG).expect("it works");
    assert!(why.contains("the thread that prepares segments died: a trap"), "{why}");
    is_broken_because(&store, "prepares segments");
}

#[test]
fn a_directory_that_takes_no_writes_is_refused_at_once() {
    let disk = SimDisk::new();
    drop(open(&disk, config()));
    let before = disk.list().expect("it works");
    for faults in [
        Faults { fail_write: Some(1), ..Faults::default() },
        Faults { fail_sync: Some(1), ..Faults::default() },
    ] {
        disk.set_faults(faults);
        let refused = MemoryStore::open(Arc::new(disk.clone()), config(), BEGINNING).err();
        assert!(matches!(refused, Some(OpenError::Unwritable(_))), "{refused:?}");
        assert_eq!(disk.list().expect("it works"), before, "nothing is left behind");
    }
    // A full disk is none of that: what is there can be worked on.
    disk.set_faults(Faults { quota_bytes: Some(1), ..Faults::default() });
    assert!(MemoryStore::open(Arc::new(disk.clone()), config(), BEGINNING).is_ok());
}

/// Finished jobs under keys in one archive run of several blocks.
fn archived(disk: &SimDisk, count: usize) -> Vec<JobId> {
    let store = open(disk, MemoryConfig { finished_bytes_max: 1, ..config() });
    let mut hand = Hand::of(&store);
    let wishes: Vec<Command> = (0..count).map(|nth| keyed(&format!("key-{nth}"))).collect();
    let jobs = hand.commit(&wishes, 0).outcomes.iter().map(submitted).collect();
    let held = hand.commit(&[], count).granted;
    let reports: Vec<Command> = held.iter().map(complete).collect();
    hand.commit(&reports, 0);
    // Archives them, and cuts the journal, which has them, too.
    store.take_snapshot(BEGINNING).expect("it works");
    jobs
}

fn run_of(disk: &SimDisk) -> String {
    let names = disk.list().expect("it works");
    names.into_iter().find(|name| name.starts_with("run-")).expect("a run")
}

/// Flips a bit at `at` of the only run.
fn damage(disk: &SimDisk, at: usize) -> String {
    let name = run_of(disk);
    let mut bytes = disk.contents(&name).expect("it works");
    bytes[at] ^= 1;
    disk.overwrite(&name, bytes);
    name
}

#[test]
fn a_damaged_block_costs_its_own_jobs_and_nothing_else() {
    let disk = SimDisk::new();
    let jobs = archived(&disk, 60);
    let whole = doctor::examine(&disk).expect("it works");
    assert!(whole.damage.is_empty() && whole.blocks > 5, "{whole:?}");
    let file = damage(&disk, 40_000);
    // The doctor names the one block, and its place.
    let found = doctor::examine(&disk).expect("it works");
    let [FileError::Damaged { file: told, offset, .. }] = &found.damage[..] else {
        panic!("{found:?}")
    };
    assert!(*told == file && (16_000..=40_000).contains(offset), "{found:?}");
    let store = open(&disk, config());
    assert_eq!(store.health().damaged_blocks, 0, "nobody has come by yet");
    // Lists go on past it, whatever the page.
    let lost: Vec<JobId> =
        jobs.iter().copied().filter(|id| drive::ready(store.job(*id)).is_err()).collect();
    assert!((2..20).contains(&lost.len()), "{} jobs in the block", lost.len());
    let kept: Vec<JobId> = jobs.iter().rev().copied().filter(|id| !lost.contains(id)).collect();
    for page in [1, 7, 100] {
        assert_eq!(listed(&store, &any(), page), kept, "pages of {page}");
        // Found by their terms, which are whole: a page that loses all its jobs is not the last.
        let plain = JobFilter { job_type: Some(drive::kind("plain")), ..any() };
        assert_eq!(listed(&store, &plain, page), kept, "pages of {page} by type");
    }
    assert_eq!(store.health().damaged_blocks, 1);
    let read = drive::ready(store.job(lost[0]));
    assert!(matches!(&read, Err(Error::Unreadable(why)) if why.contains(&file)), "{read:?}");
    // Its keys are refused, one by one; their neighbours in the same batch are not.
    let wishes: Vec<Command> = (0..60).map(|nth| keyed(&format!("key-{nth}"))).collect();
    let mut hand = Hand { store: &store, fresh: 1_000 };
    let done = hand.commit(&[wishes, vec![keyed("new")]].concat(), 0);
    for (id, outcome) in jobs.iter().zip(&done.outcomes) {
        match outcome {
            Err(Rejection::JobUnreadable) => assert!(lost.contains(id)),
            Ok(Receipt::Existing { job, .. }) => assert!(job == id && !lost.contains(id)),
            other => panic!("{other:?}"),
        }
    }
    submitted(&done.outcomes[60]);
    let cancel = Command::Cancel { job: lost[0], by: drive::user("ada"), reason: None };
    assert!(matches!(hand.commit(&[cancel], 0).outcomes[..], [Err(Rejection::JobUnreadable)]));
    drop(store);
    // A copy must not leave anything out silently.
    let mut export = MemoryExport::over(Arc::new(disk.clone()), BEGINNING).expect("it works");
    let refusal = loop {
        match drive::ready(export.next()) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a damaged store was copied"),
            Err(refusal) => break refusal.to_string(),
        }
    };
    assert!(refusal.contains("damaged"), "{refusal}");
}

/// A merge that meets damage leaves that run alone, and does not fail for ever.
#[test]
fn a_damaged_run_is_not_merged_away_and_upkeep_goes_on() {
    let disk = SimDisk::new();
    let lost = archived(&disk, 30)[0];
    damage(&disk, 100);
    let store = open(&disk, MemoryConfig { finished_bytes_max: 1, ..config() });
    let mut hand = Hand { store: &store, fresh: 1_000 };
    let mut failures = 0;
    for nth in 0..25 {
        let held = hand.commit(&[submit("{}")], 1).granted.remove(0);
        hand.commit(&[complete(&held)], 0);
        failures += usize::from(store.tidy(BEGINNING.plus_millis(nth)).is_err());
    }
    assert_eq!(failures, 1, "the damage is met once");
    let runs =
        disk.list().expect("it works").iter().filter(|name| name.starts_with("run-")).count();
    assert!(runs < 15, "{runs} runs: the others are merged");
    assert!(matches!(drive::ready(store.job(lost)), Err(Error::Unreadable(_))));
}

/// The newest run is dropped by age and others are merged in the same turn: the merged run must not
/// take the name of the dropped one, whose file is removed afterwards. Stamps that are not in the
/// order of the names come from a move.
#[test]
fn a_merged_run_never_takes_the_name_of_one_just_dropped() {
    let source = SimDisk::new();
    let jobs = archived(&source, 10);
    let store = open(&source, config());
    let snapshots: Vec<JobWithHistory> =
        jobs.iter().map(|id| job(&store, *id).expect("it works")).collect();
    drop(store);
    let disk = SimDisk::new();
    drop(open(&disk, config()));
    let old = BEGINNING - Duration::from_secs(30 * 86_400);
    let mut runs = Vec::new();
    for (nth, snapshot) in snapshots.iter().enumerate() {
        let mut value = Vec::new();
        encode_job(&snapshot.job, &snapshot.history, &mut value);
        let stamp = if nth == 9 { old.0 } else { BEGINNING.0 };
        let record = Record { key: snapshot.job.id.0.to_be_bytes(), stamp, value };
        runs.push(format!("run-{:016x}.arc", nth + 1));
        write_run_with_terms(&disk, &runs[nth], [Ok(record)], std::iter::empty).expect("it works");
    }
    let manifest = Manifest { store_uuid: [1; 16], snapshot: None, first_segment: 1, runs };
    manifest.store(&disk).expect("it works");
    let store = open(&disk, config());
    store.tidy(BEGINNING).expect("it works");
    let names = disk.list().expect("it works");
    assert_eq!(names.iter().filter(|name| name.starts_with("run-")).count(), 1, "{names:?}");
    drop(store);
    let store = open(&disk, config());
    for id in &jobs[..9] {
        assert_eq!(job(&store, *id).expect("young enough to stay").job.id, *id);
    }
    assert_eq!(job(&store, jobs[9]).map(|found| found.job.id), None, "too old");
}

/// The journal is cut where the snapshot's walk began, not where it ended: what happens to a job
/// after the walk came by is in the journal only.
#[test]
fn a_snapshot_taken_while_segments_rotate_keeps_what_happened_meanwhile() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut hand = Hand::of(&store);
    let done = hand.commit(&[submit("{}"), submit("{}"), submit("{}")], 0);
    let jobs: Vec<JobId> = done.outcomes.iter().map(submitted).collect();
    let segments = || {
        let names = disk.list().expect("it works");
        names.into_iter().filter(|name| name.starts_with("journal-")).max()
    };
    let (first, mut calls, mut held) = (segments(), 0, Vec::new());
    store
        .take_snapshot_with(BEGINNING, &mut || {
            calls += 1;
            // The walk goes job by job: by now it has seen all three.
            if calls == 5 {
                held = hand.commit(&[], 1).granted;
                for _ in 0..8 {
                    hand.commit(&[submit(&"x".repeat(3_000))], 0);
                }
            }
        })
        .expect("it works");
    assert!(segments() > first, "segments rotated during the walk");
    assert_eq!(held.len(), 1);
    drop(store);
    let store = open(&disk.crash(CrashChoice::DropAll), config());
    let found = job(&store, held[0].id).expect("it is there").job;
    assert_eq!((found.state.name(), found.fence), (StateName::Running, held[0].fence));
    assert_eq!(listed(&store, &any(), 100).len(), 11);
    assert!(jobs.contains(&found.id));
}

/// A journal of these frames, behind a snapshot up to `snapshot_end` if that is not zero.
fn journal_of(frames: &[&[Event]], snapshot_end: u64) -> SimDisk {
    let disk = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let layout = journal::Config {
        segment_bytes: 64 << 10,
        segment_id_seed: 1,
        preparation: Preparation::Inline,
    };
    let (mut log, _) =
        Log::open(shared.clone(), layout, Start::MayBeNew, &mut |_, _| Ok(())).expect("it works");
    for events in frames {
        let mut body = Vec::new();
        let writer = FrameWriter::begin(&mut body, BEGINNING);
        events.iter().for_each(|event| writer.push(event, &mut body));
        log.stage(&body).expect("it works");
        log.flush().expect("it works");
    }
    if snapshot_end > 0 {
        let mut chunk = Vec::new();
        encode_counters(&[0; 8], &mut chunk);
        let mut writer = SnapshotWriter::create(shared, "snapshot-1.snap", 1).expect("it works");
        writer.chunk(&chunk).expect("it works");
        writer.finish(snapshot_end).expect("it works");
        let snapshot = Some("snapshot-1.snap".to_owned());
        let manifest =
            Manifest { store_uuid: [1; 16], snapshot, first_segment: 1, runs: Vec::new() };
        manifest.store(&disk).expect("it works");
    }
    disk
}

/// Events of a job that is not there: only a job that ended before the snapshot's walk came by may
/// be missing, and its end must show. Everything else is refused, never swallowed.
#[test]
fn events_of_a_missing_job_refuse_to_open() {
    let store = MemoryStore::ephemeral(config());
    let done = drive::commit(&store, &[submit("{}")], 1, BEGINNING, &mut 0).expect("it works");
    let claimed = done.events[1].clone();
    let end = drive::commit(&store, &[complete(&done.granted[0])], 0, BEGINNING, &mut 10)
        .expect("it works");
    let ended = end.events[0].clone();
    assert!(matches!((&claimed, &ended), (Event::JobMoved(_), Event::JobMoved(_))));
    let (claimed, ended) = (std::slice::from_ref(&claimed), std::slice::from_ref(&ended));
    let opening = |frames: &[&[Event]], snapshot_end| {
        let disk = journal_of(frames, snapshot_end);
        let opened = MemoryStore::open(Arc::new(disk), config(), BEGINNING);
        opened.map(drop).map_err(|error| error.to_string())
    };
    let refused = opening(&[claimed], 0).unwrap_err();
    assert!(refused.contains("has no job"), "{refused}");
    let refused = opening(&[claimed, ended], 0).unwrap_err();
    assert!(refused.contains("has no job"), "{refused}");
    // Within a snapshot's span: fine if the end shows, else it went missing.
    assert_eq!(opening(&[claimed, ended], 2), Ok(()));
    let refused = opening(&[claimed], 1).unwrap_err();
    assert!(refused.contains("is missing"), "{refused}");
    // Its end after the span proves that the walk should have met it.
    let refused = opening(&[claimed, ended], 1).unwrap_err();
    assert!(refused.contains("has no job"), "{refused}");
}

/// Live and archived jobs interleave by the thousand; a few are wanted. Whatever bounds a look has,
/// the pages together tell each of them once, newest first.
#[test]
fn lists_over_ram_and_archive_have_no_holes_and_no_repeats() {
    let disk = SimDisk::new();
    let large = MemoryConfig { segment_bytes: 4 << 20, finished_bytes_max: 1 << 20, ..config() };
    let store = open(&disk, large);
    let mut hand = Hand::of(&store);
    let (mut all, mut rare) = (Vec::new(), Vec::new());
    for batch in 0..26 {
        let wishes: Vec<Command> = (0..1_000)
            .map(|nth| {
                let kind = if nth % 333 == 7 { "rare" } else { "plain" };
                Command::Submit(Box::new(drive::wish("acme", "ada", kind, "{}")))
            })
            .collect();
        let done = hand.commit(&wishes, 0);
        let ids: Vec<JobId> = done.outcomes.iter().map(submitted).collect();
        rare.extend(ids.iter().enumerate().filter(|(nth, _)| nth % 333 == 7).map(|(_, id)| *id));
        // Whole batches end, every other job of the rest does.
        let ends = |nth: usize| batch % 3 == 0 || nth.is_multiple_of(2);
        let cancels: Vec<Command> = ids
            .iter()
            .enumerate()
            .filter(|(nth, _)| ends(*nth))
            .map(|(_, id)| Command::Cancel { job: *id, by: drive::user("ada"), reason: None })
            .collect();
        hand.commit(&cancels, 0);
        store.tidy(BEGINNING).expect("it works");
        all.extend(ids);
    }
    assert!(disk.list().expect("it works").iter().any(|name| name.starts_with("run-")));
    all.reverse();
    rare.reverse();
    let wanted = JobFilter { job_type: Some(drive::kind("rare")), ..any() };
    for page in [3, 50] {
        assert_eq!(listed(&store, &wanted, page), rare, "pages of {page}");
    }
    assert_eq!(listed(&store, &any(), 900), all);
}
