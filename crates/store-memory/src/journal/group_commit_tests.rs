//! Facts about many callers sharing one log.
//!
//! Must not sleep: every wait is for a callback.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::tests::config;
use super::{
    Config, Done, FRAME_BYTES_MAX, GroupCommit, JournalError, Log, Preparation, Start, Syncs,
};
use crate::disk::sim::Faults;
use crate::disk::{Disk, RealDisk, SimDisk};

fn log(disk: &Arc<dyn Disk>, config: Config) -> (Log, u64) {
    let (log, summary) =
        Log::open(Arc::clone(disk), config, Start::MayBeNew, &mut |_, _| Ok(())).unwrap();
    (log, summary.frames)
}

#[test]
fn many_threads_append_and_all_is_durable_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path()).unwrap());
    let config =
        Config { segment_bytes: 1 << 20, preparation: Preparation::HelperThread, ..config() };
    let (log_, _) = log(&disk, config.clone());
    let journal =
        GroupCommit::start(log_, Arc::clone(&disk), 64 << 10, Box::new(|_| panic!())).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let (journal, seen) = (&journal, &seen);
            scope.spawn(move || {
                for _ in 0..2000 {
                    let seen = Arc::clone(seen);
                    let done: Done = Box::new(move |lsn| seen.lock().unwrap().push(lsn.unwrap()));
                    journal.append(vec![thread; 300], done).unwrap();
                }
            });
        }
    });
    assert_eq!(journal.flush().unwrap(), 16_000);
    assert_eq!(journal.queued_bytes(), 0);
    assert_eq!(*seen.lock().unwrap(), (1..=16_000).collect::<Vec<u64>>());
    assert_eq!(journal.shutdown().unwrap(), 16_000);
    let (sender, receiver) = channel();
    assert_eq!(journal.append(vec![1], Box::new(move |r| sender.send(r).unwrap())), None);
    assert!(matches!(*receiver.recv().unwrap().unwrap_err(), JournalError::ShutDown));
    drop(journal);
    assert_eq!(log(&disk, config).1, 16_000);
}

/// Half of the callers sync for themselves, beside the thread: each has its frame durable when it
/// is called back, and the order of the log is that of the calls.
#[test]
fn callers_that_sync_and_the_thread_keep_one_order() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(dir.path()).unwrap());
    let config =
        Config { segment_bytes: 1 << 20, preparation: Preparation::HelperThread, ..config() };
    let (log_, _) = log(&disk, config.clone());
    let journal =
        GroupCommit::start(log_, Arc::clone(&disk), 8 << 10, Box::new(|_| panic!())).unwrap();
    let journal = Arc::new(journal);
    let seen = Arc::new(Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for thread in 0..6u8 {
            let (journal, seen) = (&journal, &seen);
            scope.spawn(move || {
                let syncs = if thread % 2 == 0 { Syncs::Caller } else { Syncs::Thread };
                for _ in 0..500 {
                    let (seen, at) = (Arc::clone(seen), Arc::downgrade(journal));
                    let done: Done = Box::new(move |lsn| {
                        let lsn = lsn.unwrap();
                        assert!(at.upgrade().unwrap().durable_lsn() >= lsn, "told too early");
                        seen.lock().unwrap().push(lsn);
                    });
                    journal.append_for(syncs, vec![thread; 300], done).unwrap();
                    if syncs == Syncs::Caller {
                        journal.flush_here();
                    }
                }
            });
        }
    });
    assert_eq!(journal.flush().unwrap(), 3_000);
    assert_eq!(*seen.lock().unwrap(), (1..=3_000).collect::<Vec<u64>>());
    drop(journal);
    assert_eq!(log(&disk, config).1, 3_000);
}

/// Nobody was woken for these frames, and who promised to sync them never did.
#[test]
fn a_caller_that_does_not_sync_loses_nothing() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let start = |log| GroupCommit::start(log, Arc::clone(&disk), 1_000, Box::new(|_| panic!()));
    let journal = start(log(&disk, config()).0).unwrap();
    let (sender, outcomes) = channel();
    let done = || -> Done {
        let sender = sender.clone();
        Box::new(move |lsn| sender.send(lsn.unwrap()).unwrap())
    };
    // The third has to wait for room, which the thread makes.
    for nth in 1..=3 {
        assert_eq!(journal.append_for(Syncs::Caller, vec![1; 400], done()), Some(nth));
    }
    journal.append_for(Syncs::Caller, vec![1; 400], done());
    assert_eq!(journal.flush().unwrap(), 4, "whoever waits for all has it done");
    journal.append_for(Syncs::Caller, vec![1; 400], done());
    assert_eq!(journal.shutdown().unwrap(), 5, "so has whoever ends it");
    drop(sender);
    drop(journal);
    assert_eq!(outcomes.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

/// A sync that fails on a caller's thread is everybody's: it is told once, and nothing follows it.
#[test]
fn a_failure_on_a_callers_thread_ends_the_journal() {
    let sim = SimDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    let fatal = Arc::new(AtomicU64::new(0));
    let hook = Arc::clone(&fatal);
    let on_fatal = Box::new(move |_| {
        hook.fetch_add(1, Ordering::SeqCst);
    });
    let journal =
        GroupCommit::start(log(&disk, config()).0, Arc::clone(&disk), 1 << 20, on_fatal).unwrap();
    sim.set_faults(Faults { fail_sync: Some(5), ..Faults::default() });
    let (sender, outcomes) = channel();
    for _ in 0..20 {
        let sender = sender.clone();
        let done = Box::new(move |outcome: Result<_, _>| sender.send(outcome.is_ok()).unwrap());
        journal.append_for(Syncs::Caller, vec![7; 100], done);
        journal.flush_here();
    }
    drop(sender);
    let outcomes: Vec<bool> = outcomes.iter().collect();
    assert_eq!(outcomes.len(), 20);
    assert!(!outcomes[19] && outcomes.is_sorted_by_key(|is_ok| !is_ok));
    assert_eq!(outcomes.iter().filter(|is_ok| **is_ok).count() as u64, journal.durable_lsn());
    assert_eq!(fatal.load(Ordering::SeqCst), 1);
    assert!(journal.shutdown().is_err());
}

/// A callback that panics on a caller's thread ends the journal as well: its frame may count, but
/// nobody was told, so nobody else is told anything either.
#[test]
fn a_panic_on_a_callers_thread_ends_the_journal() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let (tell, told) = channel();
    let on_fatal = Box::new(move |error: Arc<JournalError>| tell.send(error.to_string()).unwrap());
    let journal =
        GroupCommit::start(log(&disk, config()).0, Arc::clone(&disk), 1 << 20, on_fatal).unwrap();
    journal.append_for(Syncs::Caller, vec![1; 100], Box::new(|_| panic!("out of ideas")));
    journal.flush_here();
    assert!(told.recv().unwrap().contains("out of ideas"));
    let (sender, outcome) = channel();
    let done = Box::new(move |outcome: Result<_, _>| sender.send(outcome.is_ok()).unwrap());
    assert_eq!(journal.append_for(Syncs::Caller, vec![1; 100], done), None);
    assert!(!outcome.recv().unwrap());
}

#[test]
fn a_failure_reaches_every_caller_and_the_hook_once() {
    let sim = SimDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    let fatal = Arc::new(AtomicU64::new(0));
    let hook = Arc::clone(&fatal);
    let on_fatal = Box::new(move |_| {
        hook.fetch_add(1, Ordering::SeqCst);
    });
    let journal =
        GroupCommit::start(log(&disk, config()).0, Arc::clone(&disk), 1 << 20, on_fatal).unwrap();
    sim.set_faults(Faults { fail_sync: Some(5), ..Faults::default() });
    let (sender, receiver) = channel();
    for _ in 0..50 {
        let sender = sender.clone();
        journal.append(vec![7; 100], Box::new(move |result| sender.send(result.is_ok()).unwrap()));
        // One flush per frame until the failure.
        let _ = journal.flush();
    }
    drop(sender);
    let outcomes: Vec<bool> = receiver.iter().collect();
    assert_eq!(outcomes.len(), 50);
    assert_eq!(outcomes.iter().filter(|is_ok| **is_ok).count() as u64, journal.durable_lsn());
    assert!(!outcomes[49] && outcomes.is_sorted_by_key(|is_ok| !is_ok));
    assert_eq!(fatal.load(Ordering::SeqCst), 1);
    assert!(journal.shutdown().is_err());
}

#[test]
fn a_full_disk_delays_callbacks_until_it_heals() {
    let sim = SimDisk::new();
    let disk: Arc<dyn Disk> = Arc::new(sim.clone());
    let journal = GroupCommit::start(
        log(&disk, config()).0,
        Arc::clone(&disk),
        1 << 20,
        Box::new(|error| panic!("{error}")),
    )
    .unwrap();
    sim.set_faults(Faults { quota_bytes: Some(1 << 20), ..Faults::default() });
    let (sender, receiver) = channel();
    for _ in 0..100 {
        let sender = sender.clone();
        journal.append(vec![7; 400], Box::new(move |result| sender.send(result).unwrap())).unwrap();
    }
    for lsn in 1..=5 {
        assert_eq!(receiver.recv().unwrap().unwrap(), lsn);
    }
    sim.set_faults(Faults::default());
    for lsn in 6..=100 {
        assert_eq!(receiver.recv().unwrap().unwrap(), lsn);
    }
    assert_eq!(journal.shutdown().unwrap(), 100);
}

#[test]
fn inline_mode_settles_only_on_flush() {
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
    let journal =
        GroupCommit::inline(log(&disk, config()).0, Arc::clone(&disk), Box::new(|_| panic!()));
    let count = Arc::new(AtomicU64::new(0));
    for nth in 1..=30 {
        let count = Arc::clone(&count);
        let done: Done = Box::new(move |lsn| count.store(lsn.unwrap(), Ordering::SeqCst));
        assert_eq!(journal.append(vec![1; 1000], done), Some(nth));
    }
    assert_eq!((count.load(Ordering::SeqCst), journal.durable_lsn()), (0, 0));
    assert_eq!(journal.flush().unwrap(), 30);
    assert_eq!(count.load(Ordering::SeqCst), 30);
    assert!(journal.current_segment() > 1);
    assert!(!journal.trim(journal.current_segment()).unwrap().is_empty());
    assert_eq!(journal.shutdown().unwrap(), 30);
}

/// Whoever appends has acted on the frame already: what came before it is still written, and then
/// nothing more.
#[test]
fn a_frame_that_is_too_large_stops_the_journal() {
    let (tell, told) = channel();
    let on_fatal = || {
        let tell = tell.clone();
        Box::new(move |error: Arc<JournalError>| tell.send(error.to_string()).unwrap())
    };
    let disks: [Arc<dyn Disk>; 2] = [Arc::new(SimDisk::new()), Arc::new(SimDisk::new())];
    let [one, two] = disks.each_ref().map(|disk| (log(disk, config()).0, Arc::clone(disk)));
    let journals = [
        GroupCommit::start(one.0, one.1, 1 << 20, on_fatal()).unwrap(),
        GroupCommit::inline(two.0, two.1, on_fatal()),
    ];
    for journal in journals {
        let (sender, outcomes) = channel();
        let done = || -> Done {
            let sender = sender.clone();
            Box::new(move |outcome| sender.send(outcome.is_ok()).unwrap())
        };
        let before = journal.append(vec![1; 100], done());
        assert!(before.is_some());
        // Never touched, so it costs no memory.
        assert_eq!(journal.append(vec![0; FRAME_BYTES_MAX + 1], done()), None);
        assert_eq!(journal.append(vec![1; 100], done()), None);
        let _ = journal.flush();
        let why = told.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        assert!(why.contains("is too large for the journal"), "{why}");
        assert!(journal.shutdown().is_ok(), "the first frame is durable");
        drop(sender);
        let mut outcomes: Vec<bool> = outcomes.iter().collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, [false, false, true]);
    }
}
