//! Becoming due, and becoming overdue.

use super::bench::{Bench, complete, fail, wish};
use super::lease::beat;
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, Receipt, StateName, Timestamp};

async fn next(bench: &Bench) -> Option<Timestamp> {
    bench.store.wake(bench.now).await.expect("reads work").next
}

async fn is_work_due(bench: &Bench) -> bool {
    bench.store.wake(bench.now).await.expect("reads work").is_work_due
}

fn delayed(millis: u64) -> Submit {
    Submit { delay_ms: Some(millis), ..wish() }
}

pub(super) async fn a_job_is_not_ready_before_it_is_due(bench: &mut Bench) {
    let id = bench.submit(delayed(1_000)).await;
    bench.pass(999);
    assert!(bench.pulled(5).await.is_empty());
    bench.pass(1);
    assert_eq!(bench.pulled(5).await, [id], "a pull does not depend on a look at the timers");
}

pub(super) async fn wake_tells_of_work_that_became_due(bench: &mut Bench) {
    is_work_due(bench).await;
    bench.submit(delayed(1_000)).await;
    bench.pass(500);
    assert!(!is_work_due(bench).await);
    bench.pass(500);
    assert!(is_work_due(bench).await);
    assert!(!is_work_due(bench).await, "told once");
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    assert!(is_work_due(bench).await, "a retry becomes due as well");
}

pub(super) async fn wake_names_the_next_instant(bench: &mut Bench) {
    assert_eq!(next(bench).await, None);
    let start = bench.now;
    bench.submit(delayed(9_000)).await;
    assert_eq!(next(bench).await, Some(start.plus_millis(9_000)));
    bench.submit(wish()).await;
    let job = bench.grant().await;
    assert_eq!(next(bench).await, Some(start.plus_millis(9_000)));
    bench.pass(9_000);
    assert_eq!(next(bench).await, Some(start.plus_millis(60_000)), "the end of the lease");
    bench.done(complete(&job)).await;
    bench.grant().await;
    assert_eq!(next(bench).await, Some(start.plus_millis(69_000)), "the end of the other lease");
}

pub(super) async fn an_expired_lease_is_overdue(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.pass(59_999);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    assert_eq!(bench.overdue().await, [job.id]);
    bench.done(Command::Reap { job: job.id }).await;
    assert_eq!(bench.state(job.id).await, StateName::Retrying);
    assert_eq!(bench.overdue().await, []);
    let history = bench.job(job.id).await.history;
    let reason = history[2].reason.as_ref().expect("the reaper says why");
    assert_eq!(
        (&*reason.code, &*history[2].actor.to_string()),
        ("TASK_LEASE_LOST", "system:reaper")
    );
}

pub(super) async fn a_deadline_is_overdue(bench: &mut Bench) {
    bench.submit(Submit { timeout_ms: Some(10_000), ..wish() }).await;
    let job = bench.grant().await;
    bench.pass(5_000);
    bench.done(beat(&job, 60_000, None)).await;
    bench.pass(4_999);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    assert_eq!(bench.overdue().await, [job.id], "a heartbeat does not move the deadline");
    bench.done(Command::Reap { job: job.id }).await;
    let last_failure = bench.job(job.id).await.job.last_failure.expect("it failed");
    assert_eq!(&*last_failure.failure.code, "TASK_TIMEOUT");
}

pub(super) async fn an_unstarted_job_expires(bench: &mut Bench) {
    let expires_at = Some(bench.now.plus_millis(1_000));
    let id = bench.submit(Submit { expires_at, ..wish() }).await;
    assert_eq!(next(bench).await, expires_at);
    bench.pass(1_000);
    assert_eq!(bench.overdue().await, [id]);
    bench.done(Command::Reap { job: id }).await;
    assert_eq!(bench.state(id).await, StateName::Cancelled);
    assert_eq!(bench.overdue().await, []);
    assert!(bench.pulled(1).await.is_empty());
}

pub(super) async fn a_started_job_does_not_expire(bench: &mut Bench) {
    let expires_at = Some(bench.now.plus_millis(1_000));
    bench.submit(Submit { expires_at, ..wish() }).await;
    let job = bench.grant().await;
    bench.pass(2_000);
    assert_eq!(bench.overdue().await, []);
    bench.done(fail(&job, true)).await;
    assert_eq!(bench.overdue().await, [], "nor while it waits for its retry");
}

pub(super) async fn a_heartbeat_postpones_the_reaper(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.pass(50_000);
    let receipt = bench.done(beat(&job, 60_000, None)).await;
    let Receipt::Renewed { expires_at } = receipt else { panic!("{receipt:?}") };
    bench.pass(59_999);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    assert_eq!((bench.now, bench.overdue().await), (expires_at, vec![job.id]));
}

pub(super) async fn overdue_respects_its_limit(bench: &mut Bench) {
    for _ in 0..5 {
        bench.submit(wish()).await;
    }
    bench.pulled(5).await;
    bench.pass(60_000);
    let some = bench.store.overdue(bench.now, 2).await.expect("reads work");
    assert_eq!(some.len(), 2);
    assert_eq!(bench.overdue().await.len(), 5, "asking does not take them away");
    let reaps: Vec<_> =
        bench.overdue().await.iter().map(|job| Command::Reap { job: *job }).collect();
    assert!(bench.run(&reaps).await.iter().all(Result::is_ok));
    assert_eq!(bench.overdue().await, []);
}

pub(super) async fn a_clock_that_stands_still_is_no_trouble(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.now = Timestamp(bench.now.0 - 1_000_000);
    bench.done(complete(&job)).await;
    let history = bench.job(id).await.history;
    assert!(history.windows(2).all(|pair| pair[0].at <= pair[1].at), "time never runs backwards");
}
