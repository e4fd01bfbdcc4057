//! What holders of leases report, and what is remembered of it.

use super::bench::{Bench, complete, fail, token, user, wish};
use super::lease::beat;
use mainspring_kernel::command::Complete;
use mainspring_kernel::job::LeaseToken;
use mainspring_kernel::{Command, Receipt, Rejection, State, StateName};

pub(super) async fn a_result_is_kept(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.pass(10);
    bench.done(complete(&job)).await;
    let state = bench.job(job.id).await.job.state;
    assert_eq!(state, State::Succeeded { finished_at: bench.now, result: Some("[1]".into()) });
}

pub(super) async fn the_repeat_of_a_report_is_answered(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let first = bench.done(complete(&job)).await;
    bench.pass(3_600_000);
    bench.store.maintain(bench.now).await.expect("upkeep works");
    let again = bench.done(complete(&job)).await;
    assert_eq!(first, again, "finished jobs go on answering their last report");
    assert_eq!(bench.job(job.id).await.history.len(), 3);
}

pub(super) async fn another_report_is_a_conflict(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    assert_eq!(bench.one(fail(&job, true)).await, Err(Rejection::ReportConflict));
}

pub(super) async fn a_stale_token_changes_nothing(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    let foreign = LeaseToken { secret: 1, ..token(&job) };
    let report = Command::Complete(Complete { job: job.id, token: foreign, result: None });
    assert_eq!(bench.one(report).await, Err(Rejection::LeaseLost));
    bench.pass(60_000);
    assert_eq!(bench.one(complete(&job)).await, Err(Rejection::LeaseLost));
    assert_eq!(bench.state(job.id).await, StateName::Running);
    bench.done(Command::Reap { job: job.id }).await;
    bench.pass(60_000);
    let second = bench.grant().await;
    assert_eq!(second.fence, 2);
    assert_eq!(bench.one(complete(&job)).await, Err(Rejection::LeaseLost));
    assert!(bench.one(complete(&second)).await.is_ok());
}

pub(super) async fn a_cancelled_holder_is_told(bench: &mut Bench) {
    bench.submit(wish()).await;
    let job = bench.grant().await;
    bench.done(Command::Cancel { job: job.id, by: user("ada"), reason: None }).await;
    let receipt = bench.done(beat(&job, 1_000, None)).await;
    assert_eq!(receipt, Receipt::CancelledMeanwhile);
}

pub(super) async fn history_has_no_gaps(bench: &mut Bench) {
    bench.submit(wish()).await;
    for _ in 0..2 {
        let job = bench.grant().await;
        bench.pass(5);
        bench.done(fail(&job, true)).await;
        bench.pass(5_000);
    }
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    let whole = bench.job(job.id).await;
    let seqs: Vec<u32> = whole.history.iter().map(|line| line.seq).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(whole.job.seq, 7);
    for pair in whole.history.windows(2) {
        assert_eq!(pair[1].from, Some(pair[0].to));
        assert!(pair[0].at <= pair[1].at);
    }
    let reason = whole.history[2].reason.as_ref().expect("a failure has a reason");
    assert_eq!((&*reason.code, &*reason.message), ("BROKEN", "it broke"));
    assert_eq!(whole.history[1].actor.to_string(), "worker:w1");
}
