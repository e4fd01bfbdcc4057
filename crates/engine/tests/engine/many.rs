//! Many submissions of one caller: taken in parts, so that others come between.

use crate::bench::{Bench, pull, settle, wish};
use crate::scripted::Fate;
use mainspring_engine::Pull;
use mainspring_kernel::command::Submit;
use mainspring_kernel::{JobId, Receipt, Rejection, TenantId};
use std::sync::atomic::Ordering;

/// A store that takes two submissions of one caller at once, and a worker that waits for others.
async fn bench_of_parts() -> Bench {
    let bench = Bench::new().await;
    let engine = bench.engine.clone();
    let waiting = Pull { tenant: Some(TenantId::new("idle").unwrap()), ..pull(3_600_000) };
    tokio::spawn(async move { engine.pull(waiting).await });
    settle().await;
    bench.store.takes_at_once.store(2, Ordering::Relaxed);
    bench.store.commits.store(0, Ordering::Relaxed);
    bench
}

fn wishes(count: usize) -> Vec<Submit> {
    (0..count).map(|_| wish("acme")).collect()
}

fn ids(outcomes: Vec<Result<Receipt, Rejection>>) -> Vec<JobId> {
    let id = |outcome| match outcome {
        Ok(Receipt::Submitted { job }) => job,
        other => panic!("not submitted: {other:?}"),
    };
    outcomes.into_iter().map(id).collect()
}

#[tokio::test(start_paused = true)]
async fn others_come_between_the_parts() {
    let bench = bench_of_parts().await;
    bench.store.next(&[Fate::Later]);
    let engine = bench.engine.clone();
    let many = tokio::spawn(async move { engine.submit_many(wishes(5)).await });
    settle().await;
    let neighbour = bench.submit(wish("other")).await.unwrap();
    bench.store.keep_promises();
    let (outcomes, untaken) = many.await.unwrap().unwrap();
    let ids = ids(outcomes);
    assert!(untaken.is_none() && ids.len() == 5 && ids.is_sorted(), "{ids:?}");
    assert!(ids[1] < neighbour.job.id && neighbour.job.id < ids[2], "in the order of commits");
    assert_eq!(bench.store.commits.load(Ordering::Relaxed), 4, "three parts and a neighbour");
}

/// What came beside parts does not share their commits, and goes first.
#[tokio::test(start_paused = true)]
async fn parts_go_alone_after_what_came_beside_them() {
    let bench = bench_of_parts().await;
    let many = || {
        let engine = bench.engine.clone();
        tokio::spawn(async move { ids(engine.submit_many(wishes(2)).await.unwrap().0) })
    };
    let (one, another) = (many(), many());
    let neighbour = bench.submit(wish("other")).await.unwrap().job.id;
    let (one, another) = (one.await.unwrap(), another.await.unwrap());
    assert!(neighbour < one[0] && one[1] < another[0], "in the order of commits");
    assert_eq!(bench.store.commits.load(Ordering::Relaxed), 3, "each has one of its own");
}

/// Where the store does not care, or no worker waits.
#[tokio::test(start_paused = true)]
async fn without_a_reason_all_is_one_commit() {
    let of_one = bench_of_parts().await;
    of_one.store.takes_at_once.store(0, Ordering::Relaxed);
    let nobody_waits = Bench::new().await;
    nobody_waits.store.takes_at_once.store(2, Ordering::Relaxed);
    nobody_waits.store.commits.store(0, Ordering::Relaxed);
    for bench in [of_one, nobody_waits] {
        let (outcomes, untaken) = bench.engine.submit_many(wishes(5_000)).await.unwrap();
        assert!(untaken.is_none() && ids(outcomes).len() == 5_000);
        assert_eq!(bench.store.commits.load(Ordering::Relaxed), 1);
        assert!(bench.engine.submit_many(Vec::new()).await.unwrap().0.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_before_a_failure_is_told_and_the_rest_not_tried() {
    let bench = bench_of_parts().await;
    bench.store.next(&[Fate::Twice, Fate::Fails]);
    let (outcomes, untaken) = bench.engine.submit_many(wishes(6)).await.unwrap();
    let ids = ids(outcomes);
    assert_eq!(ids.len(), 2);
    assert_eq!(untaken.unwrap().to_string(), "it was cut off");
    assert!(bench.has_job(ids[0]).await && bench.has_job(ids[1]).await);
    assert_eq!(bench.store.commits.load(Ordering::Relaxed), 2, "the third part was not tried");
    bench.store.next(&[Fate::Fails]);
    let error = bench.engine.submit_many(wishes(6)).await.unwrap_err();
    assert_eq!(error.to_string(), "it was cut off", "nothing was taken");
    assert_eq!(bench.engine.counts().await.unwrap().submitted, 2);
}
