//! Failing and trying again.

use super::bench::{Bench, fail, token, wish};
use mainspring_kernel::command::Release;
use mainspring_kernel::{Command, StateName};

pub(super) async fn a_failed_job_waits_for_its_retry(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    assert_eq!(bench.state(id).await, StateName::Retrying);
    bench.pass(4_999);
    assert!(bench.pulled(1).await.is_empty());
    bench.pass(1);
    assert_eq!(bench.pulled(1).await, [id]);
}

pub(super) async fn a_retry_keeps_the_id_and_counts(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let again = bench.grant().await;
    assert_eq!((again.id, again.retry_count, again.fence), (id, 1, 2));
    let counts = bench.store.counts(bench.now).await.expect("reads work");
    assert_eq!((counts.submitted, counts.claims, counts.retries), (1, 2, 1));
    assert_eq!(counts.jobs_retried, 1);
    bench.done(fail(&again, true)).await;
    let counts = bench.store.counts(bench.now).await.expect("reads work");
    assert_eq!((counts.retries, counts.jobs_retried), (2, 1), "a job is counted once");
}

pub(super) async fn a_released_job_is_ready_at_once(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(Command::Release(Release { job: id, token: token(&job), reason: None })).await;
    let again = bench.grant().await;
    assert_eq!((again.id, again.retry_count), (id, 0), "no try is used up");
}

pub(super) async fn the_last_failure_is_kept(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    let last_failure = bench.job(id).await.job.last_failure.expect("the failure is kept");
    assert_eq!((&*last_failure.failure.code, last_failure.is_exhausted), ("BROKEN", false));
    assert_eq!(last_failure.at, bench.now);
}
