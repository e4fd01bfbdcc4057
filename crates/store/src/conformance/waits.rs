//! Bounds on waiting, what a worker leaves for the next try, and jobs that wait for others.

use super::bench::{Bench, complete, fail, key, submit, tenant, token, user, wish};
use mainspring_kernel::command::{Fail, Follows, Heartbeat, Submit};
use mainspring_kernel::entity::Body;
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::job::{After, AfterCondition, Bounds, ProgressNote};
use mainspring_kernel::limits::{BATCH_MAX, SNOOZES_MAX, WAIT_LOOK_MS_FIRST};
use mainspring_kernel::{
    Command, Failure, Job, JobId, Receipt, Rejection, StateName, Timestamp, Transition,
};

fn bounded(bounds: Bounds) -> Submit {
    Submit { bounds, ..wish() }
}

fn deadline(at: Timestamp) -> Bounds {
    Bounds { deadline_at: Some(at), ..Bounds::default() }
}

fn patience(ms: u32) -> Bounds {
    Bounds { queue_timeout_ms: Some(ms), ..Bounds::default() }
}

pub(super) fn after(jobs: &[JobId], condition: AfterCondition) -> Submit {
    let after = Some(After { jobs: jobs.to_vec(), members: 0, condition });
    Submit { bounds: Bounds { after, ..Bounds::default() }, ..wish() }
}

pub(super) fn snooze(job: &Job, ms: u64) -> Command {
    Command::Fail(Fail {
        job: job.id,
        token: token(job),
        failure: Failure { code: "LATER".into(), message: "not yet".into(), retryable: true },
        retry_delay_ms: None,
        result: None,
        snooze_ms: Some(ms),
    })
}

pub(super) fn leave(job: &Job, message: &str, checkpoint: Option<&str>) -> Command {
    let note =
        ProgressNote { message: Some(message.into()), checkpoint: checkpoint.map(Into::into) };
    Command::Heartbeat(Heartbeat {
        job: job.id,
        token: token(job),
        lease_ms: 60_000,
        progress_pct: Some(40),
        note: Some(Box::new(note)),
    })
}

async fn last(bench: &Bench, id: JobId) -> Transition {
    bench.job(id).await.history.pop().expect("a history is never empty")
}

async fn reason(bench: &Bench, id: JobId) -> String {
    last(bench, id).await.reason.map(|reason| reason.code.to_string()).unwrap_or_default()
}

async fn wait_of(bench: &Bench, id: JobId) -> Option<Wait> {
    let found = bench.store.entity(Wait::id_of(id)).await.expect("reads work")?;
    let Body::Wait(wait) = found.body else { panic!("{found:?} is no wait") };
    Some(*wait)
}

/// Tells the wait of `waiter` of these jobs, as the engine does.
async fn settle(bench: &mut Bench, waiter: JobId, jobs: &[JobId]) -> Result<Receipt, Rejection> {
    bench.one(Command::Settle { entity: Wait::id_of(waiter), jobs: jobs.to_vec() }).await
}

/// Rings what stands, as the engine does; how many rang.
async fn ring(bench: &mut Bench) -> usize {
    let due = bench.store.alarms(bench.now, 100).await.expect("reads work");
    for (entity, at) in &due {
        let ring = |jobs| Command::Ring { entity: *entity, at: *at, jobs };
        if let Ok(Receipt::Wanting { jobs }) = bench.one(ring(Vec::new())).await {
            bench.done(ring(jobs)).await;
        }
    }
    due.len()
}

pub(super) async fn a_job_that_waits_too_long_is_given_up(bench: &mut Bench) {
    let id = bench.submit(Submit { delay_ms: Some(500), ..bounded(patience(2_000)) }).await;
    bench.pass(2_499);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    assert_eq!(bench.overdue().await, [id]);
    assert_eq!(bench.pulled(1).await, [], "it is the reaper's");
    bench.done(Command::Reap { job: id }).await;
    assert_eq!(bench.state(id).await, StateName::Cancelled);
    assert_eq!(reason(bench, id).await, "QUEUE_TIMEOUT");
    assert_eq!(bench.overdue().await, []);
    let ended = bench.job(id).await.job;
    assert_eq!(ended.course().and_then(|course| course.ended_by), Some("QUEUE_TIMEOUT"));
}

pub(super) async fn a_retry_that_waits_too_long_is_a_dead_letter(bench: &mut Bench) {
    let id = bench.submit(bounded(patience(2_000))).await;
    bench.pass(1_999);
    let job = bench.grant().await;
    bench.done(fail(&job, true)).await;
    let due_at = bench.job(id).await.job.due_at().expect("it waits for its retry");
    let until = due_at.plus_millis(2_000).since(bench.now);
    bench.pass(until.as_millis() as u64 - 1);
    assert_eq!(bench.overdue().await, [], "not yet");
    bench.pass(2);
    assert_eq!(bench.overdue().await, [id]);
    bench.done(Command::Reap { job: id }).await;
    assert_eq!(bench.state(id).await, StateName::Failed);
    let failure = bench.job(id).await.job.last_failure.expect("it says why").failure;
    assert_eq!((&*failure.code, failure.retryable), ("QUEUE_TIMEOUT", false));
    assert!(failure.message.contains("BROKEN"), "what happened before is told: {failure:?}");
}

pub(super) async fn a_deadline_ends_a_job_wherever_it_stands(bench: &mut Bench) {
    let at = bench.now.plus_millis(10_000);
    let queued = bench.submit(bounded(deadline(at))).await;
    let tried = bench.submit(Submit { priority: Some(90), ..bounded(deadline(at)) }).await;
    let job = bench.grant().await;
    assert_eq!(job.id, tried);
    let lease = job.lease().expect("it runs");
    assert_eq!(lease.deadline_at, at, "no attempt outlives the job");
    bench.done(super::lease::beat(&job, 60_000, None)).await;
    bench.pass(9_999);
    assert_eq!(bench.overdue().await, []);
    bench.pass(1);
    let mut overdue = bench.overdue().await;
    overdue.sort_unstable();
    assert_eq!(overdue, [queued, tried]);
    for id in overdue {
        bench.done(Command::Reap { job: id }).await;
    }
    assert_eq!(bench.state(queued).await, StateName::Cancelled);
    assert_eq!(reason(bench, queued).await, "TOTAL_TIMEOUT");
    assert_eq!(bench.state(tried).await, StateName::Failed, "no retry can help");
    let failure = bench.job(tried).await.job.last_failure.expect("it says why").failure;
    assert_eq!(&*failure.code, "TOTAL_TIMEOUT");

    let at = bench.now.plus_millis(5_000);
    let waits = bench.submit(bounded(deadline(at))).await;
    let job = bench.grant().await;
    bench.done(snooze(&job, 60_000)).await;
    bench.pass(5_000);
    assert_eq!(bench.overdue().await, [waits]);
    bench.done(Command::Reap { job: waits }).await;
    assert_eq!(bench.state(waits).await, StateName::Failed);
    assert_eq!(bench.overdue().await, []);
}

pub(super) async fn a_checkpoint_is_there_for_the_next_try(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let job = bench.grant().await;
    assert!(!job.has_checkpoint());
    bench.done(leave(&job, "a third", Some(r#"{"row":1}"#))).await;
    bench.done(leave(&job, "a half", Some(r#"{"row":2}"#))).await;
    bench.done(leave(&job, "more", None)).await;
    let left = bench.store.checkpoint(id).await.expect("reads work");
    assert_eq!(left.as_deref(), Some(r#"{"row":2}"#), "the last one, and none takes its place");
    let read = bench.job(id).await.job;
    assert_eq!(read.course().and_then(|it| it.message.as_deref()), Some("more"));
    bench.done(fail(&job, true)).await;
    bench.pass(5_000);
    let again = bench.grant().await;
    let left = bench.store.checkpoint(id).await.expect("reads work");
    assert_eq!(left.as_deref(), Some(r#"{"row":2}"#));
    let large = format!("{:?}", "x".repeat(64 * 1024));
    let refused = bench.one(leave(&again, "too much", Some(&large))).await;
    assert!(matches!(refused, Err(Rejection::FieldInvalid { field: "checkpoint", .. })));
    bench.done(complete(&again)).await;
    assert_eq!(bench.store.checkpoint(id).await.expect("reads work"), None, "there is no next");
    assert!(!bench.job(id).await.job.has_checkpoint());
}

pub(super) async fn a_snooze_uses_no_try_and_has_an_end(bench: &mut Bench) {
    let id = bench.submit(Submit { max_retries: Some(0), ..wish() }).await;
    let job = bench.grant().await;
    assert_eq!(
        bench.done(snooze(&job, 2_000)).await,
        Receipt::Moved { state: StateName::Retrying }
    );
    assert_eq!(
        bench.done(snooze(&job, 2_000)).await,
        Receipt::Moved { state: StateName::Retrying },
        "the repeat is answered again"
    );
    assert_eq!(reason(bench, id).await, "SNOOZED");
    assert_eq!(bench.job(id).await.job.retry_count, 0);
    bench.pass(1_999);
    assert_eq!(bench.pulled(1).await, []);
    bench.pass(1);
    for _ in 1..SNOOZES_MAX {
        let job = bench.grant().await;
        bench.done(snooze(&job, 0)).await;
    }
    let job = bench.grant().await;
    assert_eq!(
        bench.done(snooze(&job, 0)).await,
        Receipt::Moved { state: StateName::Failed },
        "not for ever"
    );
    let failure = bench.job(id).await.job.last_failure.expect("it says why").failure;
    assert_eq!(&*failure.code, "SNOOZES_EXHAUSTED");
}

pub(super) async fn a_job_waits_for_others(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    let second = bench.submit(wish()).await;
    let waiter = bench.submit(after(&[first, second], AfterCondition::Success)).await;
    assert!(bench.job(waiter).await.job.waits_for_jobs());
    let (one, two) = (bench.grant().await, bench.grant().await);
    assert_eq!(bench.pulled(5).await, [], "it is not due");
    bench.done(complete(&one)).await;
    let mut found = bench.store.waits_on(&[first, second], 10).await.expect("reads work");
    found.sort_unstable();
    assert_eq!(found, [(Wait::id_of(waiter), first), (Wait::id_of(waiter), second)]);
    settle(bench, waiter, &[first]).await.expect("one of them has ended");
    assert_eq!(settle(bench, waiter, &[first]).await, Err(Rejection::NotDue), "told already");
    assert_eq!(settle(bench, waiter, &[second]).await, Err(Rejection::NotDue), "it still runs");
    assert_eq!(bench.pulled(5).await, []);
    let found = bench.store.waits_on(&[first, second], 10).await.expect("reads work");
    assert_eq!(found, [(Wait::id_of(waiter), second)]);
    bench.pass(1_000);
    bench.done(complete(&two)).await;
    settle(bench, waiter, &[second]).await.expect("the last of them has ended");
    assert_eq!(reason(bench, waiter).await, "DEPENDENCIES_MET");
    assert_eq!(wait_of(bench, waiter).await, None, "nothing is left behind");
    let read = bench.job(waiter).await;
    assert_eq!(read.job.run_at, bench.now);
    assert_eq!(bench.list(&super::bench::everything(), 9).await.len(), 3);
    assert_eq!(bench.pulled(5).await, [waiter]);
    assert_eq!(bench.job(waiter).await.history[..2], read.history[..], "history goes on");
}

pub(super) async fn a_dependency_that_fails_cancels(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    let strict = bench.submit(after(&[first], AfterCondition::Success)).await;
    let lenient = bench.submit(after(&[first], AfterCondition::End)).await;
    let job = bench.grant().await;
    bench.done(fail(&job, false)).await;
    bench.pass(1);
    for waiter in [strict, lenient] {
        settle(bench, waiter, &[first]).await.expect("it has ended");
    }
    assert_eq!(bench.state(strict).await, StateName::Cancelled);
    let why = last(bench, strict).await.reason.expect("it says why");
    assert_eq!(why.code, "DEPENDENCY_FAILED");
    assert!(why.message.contains(&first.to_string()), "the culprit is named: {}", why.message);
    assert_eq!(wait_of(bench, strict).await, None);
    assert_eq!(bench.pulled(5).await, [lenient]);
    // What has ended before counts at once.
    let never = bench.submit(after(&[first], AfterCondition::Success)).await;
    assert_eq!(bench.state(never).await, StateName::Cancelled);
    assert_eq!(reason(bench, never).await, "DEPENDENCY_FAILED");
    let at_once = bench.submit(after(&[first, never], AfterCondition::End)).await;
    assert_eq!(bench.pulled(5).await, [at_once]);
}

pub(super) async fn a_lost_word_is_made_up_for(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    let waiter = bench.submit(after(&[first], AfterCondition::Success)).await;
    let job = bench.grant().await;
    bench.done(complete(&job)).await;
    bench.pass(WAIT_LOOK_MS_FIRST - 1);
    assert_eq!(ring(bench).await, 0);
    bench.pass(1);
    assert_eq!(ring(bench).await, 1);
    assert_eq!(bench.pulled(5).await, [waiter]);
    assert_eq!(ring(bench).await, 0);
}

pub(super) async fn a_wait_outlives_no_job(bench: &mut Bench) {
    let first = bench.submit(wish()).await;
    let waiter = bench.submit(after(&[first], AfterCondition::Success)).await;
    bench.pass(WAIT_LOOK_MS_FIRST);
    assert_eq!(ring(bench).await, 1);
    assert_eq!(wait_of(bench, waiter).await.map(|wait| wait.looks), Some(1), "it waits on");
    bench.done(Command::Cancel { job: waiter, by: wish().user, reason: None }).await;
    bench.pass(2 * WAIT_LOOK_MS_FIRST);
    assert_eq!(ring(bench).await, 1);
    assert_eq!(wait_of(bench, waiter).await, None);
    assert_eq!(bench.state(waiter).await, StateName::Cancelled);
}

pub(super) async fn foreign_jobs_cannot_be_waited_for(bench: &mut Bench) {
    let own = bench.submit(wish()).await;
    let bobs = bench.submit(Submit { user: user("bob"), ..wish() }).await;
    let foreign = bench.submit(Submit { tenant: tenant("other"), ..wish() }).await;
    let named = |jobs: &[JobId]| after(jobs, AfterCondition::Success);
    for jobs in [vec![JobId(1)], vec![own, foreign], vec![own, bobs]] {
        let refused = bench.one(submit(named(&jobs))).await;
        assert_eq!(refused, Err(Rejection::JobUnknown), "{jobs:?}");
    }
    let allowed = Submit { may_name_others: true, ..named(&[own, bobs]) };
    bench.submit(allowed).await;
    let refused = bench.one(submit(Submit { may_name_others: true, ..named(&[foreign]) })).await;
    assert_eq!(refused, Err(Rejection::JobUnknown));
}

fn follows(wish: Submit, follows: Follows) -> Submit {
    Submit { follows: Some(follows), ..wish }
}

async fn together(bench: &mut Bench, wishes: Vec<Submit>) -> Vec<JobId> {
    let parts = wishes.into_iter().map(submit).collect();
    let Receipt::Together(told) = bench.done(Command::Together(parts)).await else {
        panic!("told otherwise")
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "a submission has two receipts")]
    let job = |receipt: &Receipt| match receipt {
        Receipt::Submitted { job } | Receipt::Existing { job, .. } => *job,
        other => panic!("{other:?}"),
    };
    told.iter().map(job).collect()
}

pub(super) async fn a_batch_is_followed(bench: &mut Bench) {
    let plain = (0..20).map(|_| wish());
    let then = follows(wish(), Follows::All);
    let jobs = together(bench, plain.chain([then]).collect()).await;
    let (members, then) = (&jobs[..20], jobs[20]);
    assert!(bench.job(then).await.job.waits_for_jobs());
    assert_eq!(bench.job(then).await.job.after().map(|after| after.members), Some(20));
    let granted = bench.pull(super::bench::any(50)).await;
    assert_eq!(granted.len(), 20);
    for job in &granted[..19] {
        bench.done(complete(job)).await;
    }
    let found = bench.store.waits_on(&[members[3]], 10).await.expect("reads work");
    assert_eq!(found, [(Wait::id_of(then), members[3])], "its batch is known by its number");
    settle(bench, then, members).await.expect("most have ended");
    assert_eq!(wait_of(bench, then).await.map(|wait| wait.left()), Some(1));
    assert_eq!(settle(bench, then, members).await, Err(Rejection::NotDue));
    bench.done(complete(&granted[19])).await;
    bench.pass(1);
    settle(bench, then, &members[19..]).await.expect("the last one has ended");
    assert_eq!(bench.pulled(5).await, [then]);
    assert_eq!(wait_of(bench, then).await, None);
}

pub(super) async fn a_batch_is_taken_whole_or_not(bench: &mut Bench) {
    let bad = after(&[JobId(1)], AfterCondition::Success);
    let parts = [wish(), bad, follows(wish(), Follows::All)].map(submit);
    let refused = bench.one(Command::Together(parts.to_vec())).await;
    assert_eq!(refused, Err(Rejection::JobUnknown));
    let later = [follows(wish(), Follows::Some(vec![1])), wish()].map(submit);
    let refused = bench.one(Command::Together(later.to_vec())).await;
    assert!(matches!(refused, Err(Rejection::FieldInvalid { field: "after", .. })));
    let alone = bench.one(submit(follows(wish(), Follows::Some(vec![0])))).await;
    assert!(matches!(alone, Err(Rejection::FieldInvalid { field: "after", .. })));
    assert_eq!(bench.list(&super::bench::everything(), 9).await, []);
}

pub(super) async fn a_batch_may_name_its_own_and_those_before(bench: &mut Bench) {
    let keyed = || Submit { idempotency: key("k1", None), ..wish() };
    let known = bench.submit(keyed()).await;
    let chain = vec![
        keyed(),
        follows(wish(), Follows::Some(vec![0])),
        follows(wish(), Follows::Some(vec![0, 1])),
        follows(wish(), Follows::All),
    ];
    let jobs = together(bench, chain).await;
    assert_eq!(jobs[0], known);
    let waits = wait_of(bench, jobs[3]).await.expect("it waits");
    assert_eq!((waits.left(), waits.open.len()), (3, 1), "one was there before");
    for place in 0..4 {
        let job = bench.grant().await;
        assert_eq!(job.id, jobs[place]);
        assert_eq!(bench.pulled(5).await, []);
        bench.done(complete(&job)).await;
        bench.pass(1);
        for waiter in &jobs[place + 1..] {
            let _ = settle(bench, *waiter, &[job.id]).await;
        }
    }
}

pub(super) async fn a_large_batch_is_looked_through(bench: &mut Bench) {
    let count = 2_500;
    assert!(count < BATCH_MAX);
    let plain = (0..count).map(|_| Submit { payload: "1".into(), ..wish() });
    let then = follows(wish(), Follows::All);
    let jobs = together(bench, plain.chain([then]).collect()).await;
    let then = jobs[count];
    for job in bench.pull(super::bench::any(count)).await.chunks(500) {
        let commands: Vec<Command> = job.iter().map(complete).collect();
        bench.run(&commands).await;
    }
    bench.pass(WAIT_LOOK_MS_FIRST);
    let mut looks = 0;
    while wait_of(bench, then).await.is_some() {
        assert_eq!(ring(bench).await, 1);
        bench.pass(1);
        looks += 1;
        assert!(looks < 10, "it comes to an end");
    }
    assert_eq!(looks, 3, "a thousand at a time");
    assert_eq!(bench.pulled(1).await, [then]);
}
