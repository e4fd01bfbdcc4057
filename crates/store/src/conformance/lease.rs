//! Grants, heartbeats and the leases behind them.

use super::bench::{Bench, any, submit, token, wish};
use mainspring_kernel::command::{Heartbeat, Submit};
use mainspring_kernel::{Command, Job, Receipt, StateName};

pub(super) fn beat(job: &Job, lease_ms: u32, progress_pct: Option<u8>) -> Command {
    let (token, note) = (token(job), None);
    Command::Heartbeat(Heartbeat { job: job.id, token, lease_ms, progress_pct, note })
}

pub(super) async fn a_claim_is_visible(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let granted = bench.grant().await;
    let job = bench.job(id).await.job;
    assert_eq!(job, granted);
    let lease = job.lease().expect("it runs");
    assert_eq!((lease.fence, lease.expires_at), (1, bench.now.plus_millis(60_000)));
    assert_eq!(job.started_at, Some(bench.now));
}

pub(super) async fn a_job_is_granted_once(bench: &mut Bench) {
    let wishes: Vec<_> = (0..5).map(|_| submit(wish())).collect();
    bench.run(&wishes).await;
    let mut seen = bench.pulled(3).await;
    seen.extend(bench.pulled(3).await);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 5);
    assert!(bench.pulled(3).await.is_empty());
}

pub(super) async fn a_heartbeat_moves_the_end_of_a_lease(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.pass(30_000);
    let until = bench.now.plus_millis(90_000);
    let receipt = bench.done(beat(&job, 90_000, Some(40))).await;
    assert_eq!(receipt, Receipt::Renewed { expires_at: until });
    let after = bench.job(job.id).await.job;
    assert_eq!(after.lease().map(|lease| lease.expires_at), Some(until));
    assert_eq!(after.extras.and_then(|extras| extras.progress_pct), Some(40));
    bench.done(beat(&job, 90_000, None)).await;
    let after = bench.job(job.id).await.job;
    assert_eq!(after.extras.and_then(|extras| extras.progress_pct), Some(40), "is not forgotten");
}

pub(super) async fn a_heartbeat_is_not_a_move(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.pass(1_000);
    bench.done(beat(&job, 60_000, None)).await;
    let whole = bench.job(job.id).await;
    assert_eq!((whole.job.seq, whole.history.len()), (2, 2));
    assert_eq!(whole.job.updated_at, job.updated_at);
    assert_eq!(bench.store.moves_after(0, 10).await.expect("reads work").newest, 2);
}

pub(super) async fn leases_can_be_extended(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let until = bench.now.plus_millis(120_000);
    bench.done(Command::ExtendLease { job: job.id, until }).await;
    bench.pass(60_000);
    assert_eq!(bench.overdue().await, []);
    bench.pass(60_000);
    assert_eq!(bench.overdue().await, [job.id]);
}

pub(super) async fn running_lists_every_lease(bench: &mut Bench) {
    for _ in 0..3 {
        bench.submit(wish()).await;
    }
    bench.submit(Submit { delay_ms: Some(1_000), ..wish() }).await;
    let mut held = bench.pulled(2).await;
    let mut running = bench.store.running().await.expect("reads work");
    held.sort_unstable();
    running.sort_unstable();
    assert_eq!(running, held);
    let job = bench.job(held[0]).await.job;
    bench.done(super::bench::complete(&job)).await;
    assert_eq!(bench.store.running().await.expect("reads work"), [held[1]]);
}

pub(super) async fn a_claimed_job_in_the_same_batch_is_gone(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let cancel = Command::Cancel { job: id, by: wish().user, reason: None };
    let (outcomes, granted) = bench.batch(&[cancel], Some(any(5))).await;
    assert!(outcomes[0].is_ok());
    assert!(granted.is_empty(), "a job cancelled earlier in the batch is not handed out");
    assert_eq!(bench.state(id).await, StateName::Cancelled);
}
