//! Pulls that wait, and callers that do not.

use crate::bench::{Bench, pull, settle, wish};
use crate::scripted::Fate;
use futures_util::FutureExt;
use mainspring_engine::Pull;
use mainspring_kernel::JobType;
use mainspring_kernel::limits::{LEASE_MS_MAX, LEASE_MS_MIN};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn the_deadline_of_a_pull_that_waits_is_not_moved_by_commits_of_others() {
    let bench = Bench::new().await;
    let began = Instant::now();
    let only = Some(Arc::from([JobType::new("nobody-submits-this").unwrap()]));
    let waiting = tokio::spawn({
        let engine = bench.engine.clone();
        async move {
            let grants = engine.pull(Pull { types: only, ..pull(1_000) }).await.unwrap();
            (grants.len(), began.elapsed())
        }
    });
    for _ in 0..30 {
        bench.submit(wish("acme")).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await; // paced: others commit meanwhile
    }
    let (count, took) = waiting.await.unwrap();
    assert_eq!(count, 0);
    assert!(took >= Duration::from_millis(1_000), "{took:?}");
    assert!(took < Duration::from_millis(1_100), "{took:?}: each commit made it wait anew");
}

/// The caller goes away while its grant becomes durable, or after it was sent and before it was
/// looked at. Either way nobody has the job, and it must not wait for its lease to run out.
#[tokio::test(start_paused = true)]
async fn a_grant_that_nobody_received_is_given_back_at_once() {
    for goes_late in [false, true] {
        let bench = Bench::new().await;
        let mut gone = Box::pin(bench.engine.pull(pull(60_000)));
        assert!(gone.as_mut().now_or_never().is_none(), "nothing is ready");
        settle().await;
        bench.store.next(&[Fate::Later]);
        let submitting = tokio::spawn({
            let engine = bench.engine.clone();
            async move { engine.submit(wish("acme")).await.unwrap().unwrap() }
        });
        settle().await;
        if goes_late {
            bench.store.keep_promises();
            settle().await;
            drop(gone);
        } else {
            drop(gone);
            settle().await;
            bench.store.keep_promises();
        }
        let job = submitting.await.unwrap().job.id;
        let began = Instant::now();
        let again = bench.engine.pull(pull(30_000)).await.unwrap();
        assert_eq!(again.first().map(|grant| grant.job.id), Some(job), "late: {goes_late}");
        assert!(began.elapsed() < Duration::from_secs(1), "late: {goes_late}");
        assert_eq!(again[0].job.attempt(), 1, "giving back is no failed attempt");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_has_gone_is_granted_nothing() {
    let bench = Bench::new().await;
    let mut gone = Box::pin(bench.engine.pull(pull(60_000)));
    assert!(gone.as_mut().now_or_never().is_none(), "nothing is ready");
    settle().await;
    drop(gone);
    let job = bench.submit(wish("acme")).await.unwrap().job.id;
    let found = bench.engine.job(job).await.unwrap().unwrap();
    assert_eq!(found.history.len(), 1, "never claimed: {:?}", found.history);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_never_shorter_or_longer_than_the_bounds() {
    let bench = Bench::new().await;
    for (asked, got) in [(0, LEASE_MS_MIN), (1, LEASE_MS_MIN), (u32::MAX, LEASE_MS_MAX)] {
        bench.submit(wish("acme")).await.unwrap();
        let grants = bench.engine.pull(Pull { lease_ms: asked, ..pull(0) }).await.unwrap();
        let lease = grants[0].job.lease().unwrap();
        let length = lease.expires_at.since(lease.granted_at);
        assert_eq!(length, Duration::from_millis(u64::from(got)), "{asked} ms were asked for");
        bench.complete(&grants[0]).await.unwrap();
    }
}
