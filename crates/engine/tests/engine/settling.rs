//! Commits that the engine makes durable itself, on the runtime's thread: nobody is answered before,
//! all that is ready shares one sync, and whoever waits in reserve learns that a disk is slow.

use crate::bench::{Bench, pull, settle, wish};
use crate::scripted::{Fate, Scripted};
use mainspring_engine::{Config, Reserve};
use mainspring_store::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

async fn bench(settled_here_max: usize) -> Bench {
    let store = Scripted::default();
    store.can_settle.store(true, Ordering::Relaxed);
    Bench::with(Arc::new(store), Config { settled_here_max, ..Config::standard() }).await
}

#[tokio::test(start_paused = true)]
async fn all_that_is_ready_shares_a_sync() {
    let bench = bench(64).await;
    let submit = || {
        let engine = bench.engine.clone();
        tokio::spawn(async move { engine.submit(wish("acme")).await.is_ok() })
    };
    for round in 1..=3 {
        let all: Vec<_> = (0..20).map(|_| submit()).collect();
        for one in all {
            assert!(one.await.unwrap());
        }
        assert_eq!(*bench.store.settled.lock().unwrap(), vec![1; round], "one commit, one sync");
    }
}

/// The planted bug of this path: an answer that does not wait for the store would come here.
#[tokio::test(start_paused = true)]
async fn nobody_is_answered_before_the_store_says_so() {
    let bench = bench(64).await;
    bench.store.is_disk_slow.store(true, Ordering::Relaxed);
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.pull(pull(600_000)).await }
    });
    settle().await;
    let submitted = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.submit(wish("acme")).await }
    });
    tokio::time::sleep(Duration::from_secs(60)).await; // paced: in virtual time
    assert!(!submitted.is_finished() && !waiting.is_finished(), "nothing is durable");
    assert_eq!(bench.engine.status().commands, 0, "and nothing is counted");
    let unsettled = std::mem::take(&mut *bench.store.unsettled.lock().unwrap());
    assert_eq!(unsettled.len(), 1, "the pull was served by the commit that made the job ready");
    unsettled.into_iter().for_each(|promise| promise.keep(Ok(())));
    let job = submitted.await.unwrap().unwrap().unwrap().job;
    let grants = waiting.await.unwrap().unwrap();
    assert_eq!(grants.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), [job.id]);
}

#[tokio::test(start_paused = true)]
async fn a_large_commit_is_left_to_the_store() {
    let bench = bench(4).await;
    let submit = || {
        let engine = bench.engine.clone();
        tokio::spawn(async move { engine.submit(wish("acme")).await.is_ok() })
    };
    for one in (0..5).map(|_| submit()).collect::<Vec<_>>() {
        assert!(one.await.unwrap());
    }
    assert!(bench.store.settled.lock().unwrap().is_empty());
    for one in (0..4).map(|_| submit()).collect::<Vec<_>>() {
        assert!(one.await.unwrap());
    }
    assert_eq!(*bench.store.settled.lock().unwrap(), [1]);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_settled_at_the_end_is_settled_then_or_fails() {
    let bench = bench(64).await;
    bench.store.is_disk_slow.store(true, Ordering::Relaxed);
    let submitted = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.submit(wish("acme")).await }
    });
    settle().await;
    let engine = bench.engine.clone();
    engine.shutdown().await.unwrap();
    // The store's end decides: here it never became durable.
    bench.store.unsettled.lock().unwrap().clear();
    assert!(matches!(submitted.await.unwrap(), Err(Error::Stopped)));
}

/// An outcome that another thread learns of is told by the engine's own task, in the same order.
#[tokio::test(start_paused = true)]
async fn outcomes_of_one_sync_are_told_in_order() {
    let bench = bench(0).await;
    bench.store.next(&[Fate::Later, Fate::Later, Fate::Later]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    for nth in 0..3 {
        let (engine, tell) = (bench.engine.clone(), tell.clone());
        tokio::spawn(async move {
            engine.submit(wish("acme")).await.unwrap().unwrap();
            tell.send(nth).unwrap();
        });
        settle().await;
    }
    let store = bench.store.clone();
    std::thread::spawn(move || store.keep_promises()).join().unwrap();
    for nth in 0..3 {
        assert_eq!(told.recv().await, Some(nth));
    }
}

/// A disk that stalls holds up one thread of the runtime. The one in reserve learns of it, and
/// everything else goes on there.
#[test]
fn a_stalled_disk_calls_the_thread_in_reserve() {
    const PATIENCE: Duration = Duration::from_millis(20);
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = threads.unwrap();
    let (bench, alive) = runtime.block_on(async {
        let bench = bench(64).await;
        let (engine, reserve) = (bench.engine.clone(), bench.engine.clone());
        tokio::spawn(async move {
            loop {
                match reserve.wait_until_held_up(PATIENCE) {
                    Reserve::Over => return,
                    Reserve::Quiet => {}
                    Reserve::HeldUp => {
                        while reserve.is_held_up() {
                            tokio::time::sleep(PATIENCE).await; // paced: until the disk is back
                        }
                    }
                }
                tokio::task::yield_now().await;
            }
        });
        let alive = tokio::spawn(async move { engine.status().started_at });
        (bench, alive)
    });
    runtime.block_on(alive).unwrap();
    for _ in 0..3 {
        let stalled = bench.store.disk.lock().unwrap();
        let engine = bench.engine.clone();
        let submitted = runtime.spawn(async move { engine.submit(wish("acme")).await });
        // Tasks that need a thread of the runtime get one, one after the other.
        for _ in 0..5 {
            let step = async { tokio::time::sleep(Duration::from_millis(5)).await }; // paced: a step
            let step = runtime.spawn(step);
            runtime.block_on(step).unwrap();
        }
        assert!(!submitted.is_finished());
        drop(stalled);
        assert!(runtime.block_on(submitted).unwrap().is_ok());
    }
    runtime.block_on(bench.engine.shutdown()).unwrap();
}
