//! What upkeep forgets and when, what a restart counts on, and who is told of what is not durable.

use super::*;
use mainspring_kernel::command::Heartbeat;
use mainspring_store::Page;

fn later(secs: u64) -> mainspring_kernel::Timestamp {
    BEGINNING.plus_millis(secs * 1000)
}

fn keyed_for(name: &str, window_secs: u32) -> Command {
    let mut wish = drive::wish("acme", "ada", "plain", "[1]");
    wish.idempotency = Some(drive::key("acme", name, "[1]", Some(window_secs)));
    Command::Submit(Box::new(wish))
}

/// Commits at an instant.
fn commit_at(
    store: &MemoryStore,
    secs: u64,
    commands: &[Command],
    fresh: &mut u128,
) -> drive::Done {
    let done = drive::commit(store, commands, 0, later(secs), fresh).expect("it is taken");
    store.flush().expect("it is durable");
    done
}

#[test]
fn a_key_is_remembered_through_upkeep_until_its_window_is_over() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut hand = Hand::of(&store);
    let job = submitted(&hand.commit(&[keyed_for("k", 60)], 0).outcomes[0]);
    let held = hand.commit(&[], 1).granted.remove(0);
    hand.commit(&[complete(&held)], 0);
    let mut fresh = 1_000;
    for secs in [1, 59] {
        store.tidy(later(secs)).expect("it works");
        let again = commit_at(&store, secs, &[keyed_for("k", 60)], &mut fresh);
        let is_hit =
            matches!(again.outcomes[0], Ok(Receipt::Existing { job: found, .. }) if found == job);
        assert!(is_hit, "after {secs} s: {:?}", again.outcomes);
    }
    store.tidy(later(60)).expect("it works");
    assert_ne!(
        submitted(&commit_at(&store, 60, &[keyed_for("k", 60)], &mut fresh).outcomes[0]),
        job
    );
}

#[test]
fn an_item_is_kept_as_long_as_the_store_was_told() {
    let disk = SimDisk::new();
    let store = open(&disk, MemoryConfig { keep_items: Duration::from_secs(100), ..config() });
    let mut hand = Hand::of(&store);
    let held = hand.commit(&[submit("{}")], 1).granted.remove(0);
    hand.commit(&[fail(&held)], 0);
    let kept = || drive::ready(store.item(held.id.dlq())).expect("it reads").is_some();
    for (secs, is_kept) in [(1, true), (99, true), (101, false)] {
        store.take_snapshot(later(secs)).expect("it works");
        assert_eq!(kept(), is_kept, "after {secs} s");
        let filter = mainspring_store::ItemFilter::of(any().scope);
        let Page { items, .. } = drive::ready(store.items(&filter, None, 10)).expect("it lists");
        assert_eq!(items.len(), usize::from(is_kept), "after {secs} s");
    }
}

/// A run goes when its last job is too old, not its first.
#[test]
fn an_ended_job_is_kept_as_long_as_the_store_was_told() {
    let disk = SimDisk::new();
    let keep_finished = Duration::from_secs(100);
    let store = open(&disk, MemoryConfig { finished_bytes_max: 1_500, keep_finished, ..config() });
    let mut fresh = 0;
    let mut jobs = Vec::new();
    for secs in [0, 50] {
        let done = drive::commit(&store, &[submit("{}")], 1, later(secs), &mut fresh);
        let held = done.expect("it is taken").granted.remove(0);
        commit_at(&store, secs, &[complete(&held)], &mut fresh);
        jobs.push(held.id);
    }
    store.take_snapshot(later(50)).expect("it works");
    store.tidy(later(140)).expect("it works");
    assert!(job(&store, jobs[1]).is_some(), "it ended 90 s ago");
    assert_eq!(listed(&store, &any(), 10).first(), jobs.get(1));
    store.tidy(later(151)).expect("it works");
    assert!(job(&store, jobs[1]).is_none() && job(&store, jobs[0]).is_none());
    assert_eq!(listed(&store, &any(), 10), []);
    let runs = disk.list().expect("it works").into_iter().filter(|name| name.starts_with("run-"));
    assert_eq!(runs.count(), 0, "with its file");
}

/// Otherwise a server that restarts often would replay an ever longer journal.
#[test]
fn the_journal_of_before_a_restart_counts_for_the_next_snapshot() {
    let disk = SimDisk::new();
    let settings = || MemoryConfig { snapshot_bytes_min: 30_000, ..config() };
    for nth in 0..4 {
        let store = open(&disk, settings());
        let mut hand = Hand { store: &store, fresh: nth * 100 };
        hand.commit(&[submit(&"x".repeat(10_000))], 0);
        store.tidy(BEGINNING).expect("it works");
        drop(store);
        let manifest = Manifest::load(&disk).expect("it reads");
        let has_one = manifest.is_some_and(|manifest| manifest.snapshot.is_some());
        assert_eq!(has_one, nth >= 2, "after {} starts", nth + 1);
    }
}

#[test]
fn what_a_crash_left_of_snapshots_and_runs_is_swept_away() {
    let disk = SimDisk::new();
    let jobs = archived(&disk, 5);
    let named = disk.list().expect("it works");
    let left = [
        "snapshot-00000000000000aa.snap",
        "run-00000000000000aa.arc",
        "snapshot-00000000000000ab.snap.tmp",
        "run-00000000000000ab.arc.tmp",
        "MANIFEST.tmp",
    ];
    for name in left {
        disk.create(name).expect("it works").write_at(0, b"half").expect("it works");
    }
    // Not ours: stays.
    disk.create("notes.tmp").expect("it works");
    let store = open(&disk, config());
    let after = disk.list().expect("it works");
    assert!(left.iter().all(|name| !after.iter().any(|it| it == name)), "{after:?}");
    assert!(after.iter().any(|name| name == "notes.tmp"));
    assert!(named.iter().all(|name| after.contains(name)), "{after:?}");
    assert_eq!(listed(&store, &any(), 10).len(), jobs.len());
}

/// A refusal is an answer, too: it rests on what it has seen.
#[test]
fn a_commit_that_wrote_nothing_is_told_when_what_it_saw_is_durable() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut fresh = 0;
    drive::commit(&store, &[keyed("k")], 0, BEGINNING, &mut fresh).expect("it is taken");
    let again = drive::commit(&store, &[keyed("k")], 0, BEGINNING, &mut fresh).expect("taken");
    assert!(matches!(again.outcomes[0], Ok(Receipt::Existing { .. })), "{:?}", again.outcomes);
    let (tell, told) = channel();
    again.ticket.then(move |outcome| tell.send(outcome.is_ok()).expect("it works"));
    assert!(told.try_recv().is_err(), "the job it tells of may still be lost");
    store.flush().expect("it is durable");
    assert_eq!(told.try_recv(), Ok(true));
    // Once it is durable there is nothing to wait for.
    let last = drive::commit(&store, &[keyed("k")], 0, BEGINNING, &mut fresh).expect("taken");
    let (tell, told) = channel();
    last.ticket.then(move |outcome| tell.send(outcome.is_ok()).expect("it works"));
    assert_eq!(told.try_recv(), Ok(true));
}

#[test]
fn moves_and_reads_are_told_when_they_are_durable() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let done = drive::commit(&store, &[submit("{}")], 0, BEGINNING, &mut 0).expect("it is taken");
    let id = submitted(&done.outcomes[0]);
    let page = drive::ready(store.moves_after(0, 10)).expect("it reads");
    assert_eq!((page.moves.len(), page.newest), (0, 0), "a stream tells of nothing it may lose");
    let mut read = store.job(id);
    let is_waiting = futures_util::FutureExt::now_or_never(&mut read).is_none();
    assert!(is_waiting, "and so does a read");
    store.flush().expect("it is durable");
    assert!(drive::ready(read).expect("it reads").is_some());
    let page = drive::ready(store.moves_after(0, 10)).expect("it reads");
    assert_eq!((page.moves.len(), page.newest), (1, 1));
}

/// Half of a commit is durable: its moves are not told, for the other half may never be.
#[test]
fn moves_of_a_commit_in_pieces_are_told_with_the_last_piece() {
    let disk = SimDisk::new();
    let store = open(&disk, MemoryConfig { segment_bytes: 64 << 20, ..config() });
    disk.set_faults(Faults { fail_sync: Some(2), ..Faults::default() });
    let wishes = vec![submit(&"x".repeat(PAYLOAD_BYTES_MAX)); 40];
    drive::commit(&store, &wishes, 0, BEGINNING, &mut 0).expect("it is taken");
    assert!(store.flush().is_err(), "the second block fails");
    let page = drive::ready(store.moves_after(0, 100)).expect("it reads");
    assert_eq!((page.moves.len(), page.newest), (0, 0));
}

/// Whoever waits for a sync that fails is woken and told.
#[tokio::test]
async fn a_reader_does_not_wait_for_a_journal_that_has_failed() {
    let disk = SimDisk::new();
    let store = Arc::new(open(&disk, config()));
    let done = drive::commit(&*store, &[submit("{}")], 0, BEGINNING, &mut 0).expect("taken");
    let id = submitted(&done.outcomes[0]);
    let reader = store.clone();
    let reading = tokio::spawn(async move { reader.job(id).await });
    tokio::task::yield_now().await;
    disk.set_faults(Faults { fail_sync: Some(1), ..Faults::default() });
    assert!(store.flush().is_err());
    let read = tokio::time::timeout(LONG, reading).await.expect("it is woken").expect("it runs");
    assert!(matches!(read, Err(Error::Stopped)), "{read:?}");
}

#[test]
fn what_happens_during_a_snapshot_is_counted_once() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut fresh = 0;
    let mut commit = |pull: usize| {
        let wishes = [submit("{}"), submit("{}")];
        let done = drive::commit(&store, &wishes, pull, BEGINNING, &mut fresh).expect("taken");
        let ended: Vec<Command> = done.granted.iter().map(complete).collect();
        drive::commit(&store, &ended, 1, BEGINNING, &mut fresh).expect("it is taken");
    };
    commit(1);
    let mut left = 5;
    let mut between = || {
        if left > 0 {
            left -= 1;
            commit(1);
        }
    };
    store.take_snapshot_with(BEGINNING, &mut between).expect("it works");
    commit(1);
    store.flush().expect("it is durable");
    let counts = |store: &MemoryStore| {
        let counts = drive::ready(store.counts(BEGINNING)).expect("it counts");
        let newest = drive::ready(store.moves_after(0, 1)).expect("it reads").newest;
        (counts.submitted, counts.claims, counts.by_state, newest)
    };
    let before = counts(&store);
    assert_eq!(before.0, 14);
    drop(store);
    assert_eq!(counts(&open(&disk.crash(CrashChoice::DropAll), config())), before);
}

#[test]
fn a_renewed_lease_is_as_long_after_a_restart() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut hand = Hand::of(&store);
    let held = hand.commit(&[submit("{}")], 1).granted.remove(0);
    let token = held.lease().expect("it has one").token();
    let (lease_ms, progress_pct, note) = (500_000, Some(40), None);
    let beat = Heartbeat { job: held.id, token, lease_ms, progress_pct, note };
    hand.commit(&[Command::Heartbeat(beat)], 0);
    let renewed = job(&store, held.id).expect("it is there").job;
    let ends_at = |job: &Job| job.lease().expect("it has one").expires_at;
    assert!(ends_at(&renewed) > ends_at(&held), "it was renewed");
    drop(store);
    let store = open(&disk.crash(CrashChoice::DropAll), config());
    assert_eq!(job(&store, held.id).expect("it is there").job, renewed);
}

/// The snapshot knows of more than the journal that is there: something is missing.
#[test]
fn a_journal_that_ends_before_its_snapshot_is_refused() {
    let disk = SimDisk::new();
    let store = open(&disk, config());
    let mut hand = Hand::of(&store);
    hand.commit(&[submit("{}")], 0);
    let first = "journal-0000000000000001.log";
    let earlier = disk.contents(first).expect("it is there");
    hand.commit(&[submit("{}")], 0);
    store.take_snapshot(BEGINNING).expect("it works");
    drop(store);
    disk.overwrite(first, earlier);
    let refused = MemoryStore::open(Arc::new(disk.clone()), config(), BEGINNING).err();
    assert!(matches!(refused, Some(OpenError::Mismatch(_))), "{refused:?}");
}

/// Neither a snapshot nor an archive may know of what a power cut could still undo.
#[test]
fn upkeep_makes_durable_what_it_has_seen() {
    let disk = SimDisk::new();
    let settings = || MemoryConfig { finished_bytes_max: 1, ..config() };
    let store = open(&disk, settings());
    let held = Hand::of(&store).commit(&[submit("{}")], 1).granted.remove(0);
    let mut fresh = 100;
    drive::commit(&store, &[complete(&held)], 0, BEGINNING, &mut fresh).expect("it is taken");
    store.tidy(BEGINNING).expect("it is archived");
    let cut = open(&disk.crash(CrashChoice::DropAll), settings());
    let found = job(&cut, held.id).expect("it is there").job;
    assert_eq!(found.state.name(), StateName::Succeeded, "it is in the archive as ended");
    drop(cut);
    let done = drive::commit(&store, &[submit("{}")], 0, BEGINNING, &mut fresh).expect("taken");
    store.take_snapshot(BEGINNING).expect("it works");
    let cut = open(&disk.crash(CrashChoice::DropAll), settings());
    assert!(job(&cut, submitted(&done.outcomes[0])).is_some(), "it is in the snapshot");
}

#[test]
fn a_stranger_reads_no_job_from_the_archive() {
    let disk = SimDisk::new();
    let jobs = archived(&disk, 3);
    let store = open(&disk, config());
    let within = |scope: Scope| drive::ready(store.job_within(jobs[0], &scope)).expect("it reads");
    let (acme, other) = (drive::tenant("acme"), drive::tenant("other"));
    assert!(within(Scope::All).is_some() && within(Scope::Tenant(acme.clone())).is_some());
    assert!(within(Scope::User(acme.clone(), drive::user("ada"))).is_some());
    assert!(within(Scope::Tenant(other.clone())).is_none());
    assert!(within(Scope::User(acme, drive::user("eve"))).is_none());
    assert!(within(Scope::User(other, drive::user("ada"))).is_none());
}
