//! What becomes of a commit is told by the engine's own task, whoever learns of it: not before the
//! store has said so, and in order.

use crate::bench::{Bench, pull, settle, wish};
use crate::scripted::Fate;
use mainspring_store::Error;
use std::time::Duration;

/// Keeps what was promised as the journal does: all at once, on a thread of its own.
fn synced(bench: &Bench) {
    let store = bench.store.clone();
    std::thread::spawn(move || store.keep_promises()).join().unwrap();
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_one_sync_are_told_in_order() {
    let bench = Bench::new().await;
    bench.store.next(&[Fate::Later; 5]);
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    for nth in 0..5 {
        let (engine, tell) = (bench.engine.clone(), tell.clone());
        tokio::spawn(async move {
            engine.submit(wish("acme")).await.unwrap().unwrap();
            tell.send(nth).unwrap();
        });
        settle().await;
    }
    assert!(told.try_recv().is_err());
    synced(&bench);
    for nth in 0..5 {
        assert_eq!(told.recv().await, Some(nth));
    }
}

/// The planted bug of this path: an answer that does not wait for the store would come here.
#[tokio::test(start_paused = true)]
async fn nobody_is_answered_before_the_store_says_so() {
    let bench = Bench::new().await;
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.pull(pull(600_000)).await }
    });
    settle().await;
    bench.store.next(&[Fate::Later]);
    let submitted = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.submit(wish("acme")).await }
    });
    tokio::time::sleep(Duration::from_secs(60)).await; // paced: in virtual time
    assert!(!submitted.is_finished() && !waiting.is_finished(), "nothing is durable");
    assert_eq!(bench.engine.status().commands, 0, "and nothing is counted");
    assert_eq!(
        bench.store.later.lock().unwrap().len(),
        1,
        "one commit made and handed out the job"
    );
    synced(&bench);
    let job = submitted.await.unwrap().unwrap().unwrap().job;
    let grants = waiting.await.unwrap().unwrap();
    assert_eq!(grants.iter().map(|grant| grant.job.id).collect::<Vec<_>>(), [job.id]);
}

#[tokio::test(start_paused = true)]
async fn what_is_known_only_after_the_engine_stopped_is_told_all_the_same() {
    let bench = Bench::new().await;
    bench.store.next(&[Fate::Later, Fate::Later]);
    let submit = || {
        let engine = bench.engine.clone();
        tokio::spawn(async move { engine.submit(wish("acme")).await })
    };
    let kept = submit();
    settle().await;
    let broken = submit();
    settle().await;
    bench.engine.shutdown().await.unwrap();
    assert!(!kept.is_finished() && !broken.is_finished());
    let dropped = bench.store.later.lock().unwrap().pop();
    drop(dropped);
    synced(&bench);
    assert!(kept.await.unwrap().is_ok());
    assert!(matches!(broken.await.unwrap(), Err(Error::Stopped)));
}
