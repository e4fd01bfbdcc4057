//! Nothing that was not committed is ever told to anyone, or counted.

use crate::bench::{Bench, hash, keyed, pull, settle, wish, worker};
use crate::scripted::Fate;
use mainspring_kernel::Command;
use mainspring_kernel::command::{Claim, Complete};
use mainspring_store::Error;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_job_that_was_refused_as_busy_is_granted_to_nobody() {
    let bench = Bench::new().await;
    let held = keyed("acme", "k");
    bench.store.held_keys.lock().unwrap().insert(hash(&held));
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.pull(pull(5_000)).await }
    });
    settle().await;
    assert!(matches!(bench.submit(held).await, Err(Error::Busy)));
    let grants = waiting.await.unwrap().unwrap();
    assert!(grants.is_empty(), "{grants:?} was never committed");
    assert!(bench.engine.workers()[0].granted == 0, "and nobody is said to have it");
}

#[tokio::test(start_paused = true)]
async fn a_commit_that_failed_after_it_was_decided_is_told_to_nobody() {
    for fate in [Fate::Fails, Fate::NeverDurable] {
        let bench = Bench::new().await;
        let waiting = tokio::spawn({
            let engine = bench.engine.clone();
            async move { engine.pull(pull(5_000)).await }
        });
        settle().await;
        bench.store.next(&[fate]);
        assert!(bench.submit(wish("acme")).await.is_err(), "{fate:?}");
        settle().await;
        assert!(!waiting.is_finished() || fate == Fate::NeverDurable, "{fate:?}");
        let second = bench.submit(wish("acme")).await.unwrap();
        match (fate, waiting.await.unwrap()) {
            (Fate::Fails, Ok(grants)) => {
                let granted: Vec<_> = grants.iter().map(|grant| grant.job.id).collect();
                assert_eq!(granted, [second.job.id]);
                assert!(bench.has_job(granted[0]).await);
            }
            // It had been served by a commit that is no more: it is told so, not what it got.
            (Fate::NeverDurable, Err(Error::Stopped)) => {}
            (fate, other) => panic!("{fate:?}: {other:?}"),
        }
        let granted: u64 = bench.engine.workers().iter().map(|seen| seen.granted).sum();
        assert_eq!(granted, u64::from(fate == Fate::Fails), "{fate:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_whose_answer_was_lost_leaves_a_lease_that_runs_out_and_no_grant() {
    let bench = Bench::new().await;
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move { engine.pull(pull(1_000)).await }
    });
    settle().await;
    bench.store.next(&[Fate::Lost]);
    assert!(matches!(bench.submit(wish("acme")).await, Err(Error::Failed(_))));
    assert!(waiting.await.unwrap().unwrap().is_empty());
    // Sixty seconds of lease, then the first retry is due.
    let again = bench.engine.pull(pull(80_000)).await.unwrap();
    assert_eq!(again.len(), 1, "the job is there and comes back");
    assert_eq!(again[0].job.attempt(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_counted_is_counted_once_for_a_commit_and_not_at_all_for_a_failed_one() {
    let bench = Bench::new().await;
    let done = bench.running(Duration::from_secs(60)).await;
    bench.complete(&done).await.unwrap();
    let held = bench.running(Duration::from_secs(60)).await;
    let mut token = held.job.lease().unwrap().token();
    token.fence += 1;
    bench.submit(keyed("acme", "k")).await.unwrap();
    let before = bench.engine.status();
    let batch = || {
        let repeat = Command::Submit(Box::new(keyed("acme", "k")));
        let worker = worker();
        let late = Command::Claim(Claim { job: done.job.id, worker, lease_ms: 1_000 });
        let stale = Command::Complete(Complete { job: held.job.id, token, result: None });
        vec![stale, repeat, late]
    };
    bench.store.next(&[Fate::Fails]);
    assert!(bench.engine.execute(batch()).await.is_err());
    assert_eq!(bench.engine.status(), before, "it failed");
    bench.store.next(&[Fate::NeverDurable]);
    assert!(bench.engine.execute(batch()).await.is_err());
    assert_eq!(bench.engine.status(), before, "it never became durable");
    bench.store.next(&[Fate::Twice]);
    let outcomes = bench.engine.execute(batch()).await.unwrap();
    assert_eq!(outcomes.len(), 3, "one each: {outcomes:?}");
    let after = bench.engine.status();
    assert_eq!(after.commits - before.commits, 1);
    assert_eq!(after.commands - before.commands, 3);
    assert_eq!(after.stale_leases - before.stale_leases, 1);
    assert_eq!(after.idempotent_hits - before.idempotent_hits, 1);
    assert_eq!(after.illegal_moves - before.illegal_moves, 1);
}
