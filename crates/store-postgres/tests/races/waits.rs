//! The classic of jobs that wait for jobs: two ends at once, of which each sees the other as still
//! open; and an end while somebody begins to wait for it.

use crate::hand::{self, Hand};
use mainspring_kernel::command::{Heartbeat, Submit};
use mainspring_kernel::entity::wait::Wait;
use mainspring_kernel::job::{After, AfterCondition, Bounds, ProgressNote};
use mainspring_kernel::{Command, JobId, StateName};
use mainspring_store::Store;
use mainspring_store::conformance::{complete, submit, token, wish};
use std::sync::atomic::Ordering;

fn after(jobs: &[JobId]) -> Submit {
    let condition = AfterCondition::Success;
    let after = Some(After { jobs: jobs.to_vec(), members: 0, condition });
    Submit { bounds: Bounds { after, ..Bounds::default() }, ..wish() }
}

fn settle(waiter: JobId, job: JobId) -> Command {
    Command::Settle { entity: Wait::id_of(waiter), jobs: vec![job] }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_ends_that_are_told_at_once_release_a_job_once() {
    let (mut here, mut there) = Hand::pair().await;
    let (first, second) = (here.submit(wish()).await, here.submit(wish()).await);
    let waiter = here.submit(after(&[first, second])).await;
    for job in here.pull(2).await {
        assert!(here.run(&[complete(&job)]).await[0].is_ok());
    }
    let (outcomes, decisions) = here
        .run_and(&[settle(waiter, first)], |nth| {
            if nth == 1 {
                let told = hand::meanwhile(there.run(&[settle(waiter, second)]));
                assert!(told[0].is_ok(), "{told:?}");
            }
        })
        .await;
    assert_eq!(decisions, 2, "that the second one was open did not count");
    assert!(outcomes[0].is_ok(), "{outcomes:?}");
    assert_eq!(here.path(waiter).await, [StateName::Queued, StateName::Queued]);
    // It was released a moment after the present, because its clock stands still.
    here.clock.fetch_add(1, Ordering::Relaxed);
    let granted = here.pull(5).await;
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [waiter]);
    let left = "SELECT (SELECT count(*) FROM mainspring.entity), (SELECT count(*) FROM \
                mainspring.entity_term)";
    assert_eq!(here.database.sql(left), "0|0");
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_comes_before_the_wait_is_seen_by_whoever_waits() {
    let (mut here, mut there) = Hand::pair().await;
    let first = here.submit(wish()).await;
    let job = there.pull(1).await.remove(0);
    let (outcomes, decisions) = here
        .run_and(&[submit(after(&[first]))], |nth| {
            if nth == 1 {
                assert!(hand::meanwhile(there.run(&[complete(&job)]))[0].is_ok());
                // Whoever commits the end asks now, and finds nobody.
                let found = hand::meanwhile(there.store.waits_on(&[first], 10));
                assert_eq!(found.expect("reads work"), []);
            }
        })
        .await;
    assert_eq!(decisions, 1, "nothing that it changes was changed");
    let Ok(mainspring_kernel::Receipt::Submitted { job: waiter }) = outcomes[0] else {
        panic!("{outcomes:?}")
    };
    assert!(here.job(waiter).await.waits_for_jobs(), "it was decided on what was so before");
    // So whoever begins to wait asks in turn.
    let ended = here.store.ended(&[first]).await.expect("reads work");
    assert_eq!(ended, [first]);
    assert!(here.run(&[settle(waiter, first)]).await[0].is_ok());
    here.clock.fetch_add(1, Ordering::Relaxed);
    assert_eq!(here.pull(5).await.len(), 1);
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_gets_ahead_of_a_release() {
    let (mut here, mut there) = Hand::pair().await;
    let first = here.submit(wish()).await;
    let waiter = here.submit(after(&[first])).await;
    let job = here.pull(1).await.remove(0);
    assert!(here.run(&[complete(&job)]).await[0].is_ok());
    let (outcomes, decisions) = here
        .run_and(&[settle(waiter, first)], |nth| {
            if nth == 1 {
                assert!(hand::meanwhile(there.run(&[super::cancel(waiter)]))[0].is_ok());
            }
        })
        .await;
    assert_eq!(decisions, 2);
    assert!(outcomes[0].is_ok(), "the wait goes: {outcomes:?}");
    assert_eq!(here.path(waiter).await, [StateName::Queued, StateName::Cancelled]);
    here.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_do_not_write_a_checkpoint_again() {
    let mut hand = Hand::new().await;
    hand.submit(wish()).await;
    let job = hand.pull(1).await.remove(0);
    let beat = |checkpoint: Option<&str>| {
        let note =
            ProgressNote { message: Some("on it".into()), checkpoint: checkpoint.map(Into::into) };
        Command::Heartbeat(Heartbeat {
            job: job.id,
            token: token(&job),
            lease_ms: 60_000,
            progress_pct: Some(7),
            note: Some(Box::new(note)),
        })
    };
    assert!(hand.run(&[beat(Some(&format!("{:?}", "x".repeat(60_000))))]).await[0].is_ok());
    let row = "SELECT xmin, length(value) FROM mainspring.checkpoint";
    let written = hand.database.sql(row);
    for _ in 0..5 {
        assert!(hand.run(&[beat(None)]).await[0].is_ok());
    }
    assert_eq!(hand.database.sql(row), written, "the row stands as it was written");
    let record = "SELECT max(length(record)) < 1000 FROM mainspring.live";
    assert_eq!(hand.database.sql(record), "t", "and is nowhere else");
    assert!(hand.run(&[complete(&job)]).await[0].is_ok());
    assert_eq!(hand.database.sql("SELECT count(*) FROM mainspring.checkpoint"), "0");
    hand.assert_sound().await;
}
