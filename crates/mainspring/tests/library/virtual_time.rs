//! Days in milliseconds: the clock of these tests is tokio's, stopped while anybody works, so that
//! a span passes at once when everybody waits.

use crate::house::Work;
use mainspring::{Error, Failure, Schedule, StateName, testing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::sleep as pass; // paced: the clock is stopped, nobody waits

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test(start_paused = true)]
async fn a_delay_of_two_days_and_three_retries_take_no_time() {
    let spring = testing::mainspring().await.unwrap();
    let worker = spring.worker().on(|_: Work, ctx| async move {
        match ctx.job().attempt {
            4 => Ok(4),
            _ => Err(Failure::retryable("NOT_YET", "again")),
        }
    });
    let worker = worker.start();
    let job = spring.submit(&Work { n: 0 }).delay(DAY * 2).max_retries(3).await.unwrap();
    pass(DAY).await;
    assert_eq!(job.state().await.unwrap(), StateName::Queued);
    assert_eq!(job.wait().await.unwrap(), 4);
    let passed = spring.engine().now().since(testing::BEGINNING);
    assert!(passed >= DAY * 2 && passed < DAY * 3, "{passed:?}");
    worker.stop().await.unwrap();
    spring.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_schedule_makes_one_job_for_each_firing_and_saying_it_again_makes_no_other() {
    let spring = testing::mainspring().await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let worker = spring.worker().on(move |work: Work, _| {
        counted.fetch_add(work.n, Ordering::SeqCst);
        async move { Ok(work.n) }
    });
    let worker = worker.start();
    let nightly = || Schedule::cron("0 3 * * *");
    let id = spring.schedule("nightly", nightly(), &Work { n: 1 }).await.unwrap();
    assert_eq!(spring.schedule("nightly", nightly(), &Work { n: 1 }).await.unwrap(), id);
    pass(DAY * 3).await;
    assert_eq!(runs.load(Ordering::SeqCst), 3);
    // Other words change it: the same schedule, another payload.
    assert_eq!(spring.schedule("nightly", nightly(), &Work { n: 100 }).await.unwrap(), id);
    pass(DAY * 2).await;
    assert_eq!(runs.load(Ordering::SeqCst), 203);
    let hourly = Schedule::every(Duration::from_secs(3600));
    assert_ne!(spring.schedule("hourly", hourly, &Work { n: 1_000 }).await.unwrap(), id);
    pass(Duration::from_secs(2 * 3600 + 1)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2_203);
    worker.stop().await.unwrap();
    spring.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_firing_goes_by_while_the_last_job_runs_if_told_so() {
    let spring = testing::mainspring().await.unwrap();
    let runs = Arc::new(AtomicU32::new(0));
    let counted = runs.clone();
    let worker = spring.worker().on(move |_: Work, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            pass(Duration::from_secs(150)).await;
            Ok(0)
        }
    });
    let worker = worker.start();
    let every_minute = Schedule::every(Duration::from_secs(60)).without_overlap();
    spring.schedule("slow", every_minute, &Work { n: 0 }).await.unwrap();
    // Fires at 60, lasts until 210; at 120 and 180 it goes by; at 240 it fires again.
    pass(Duration::from_secs(250)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    worker.stop().await.unwrap();
    spring.close().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_no_pattern_zone_or_span_is_refused_in_words() {
    let spring = testing::mainspring().await.unwrap();
    for (schedule, words) in [
        (Schedule::cron("61 * * * *"), "no cron pattern"),
        (Schedule::cron_in("0 3 * * *", "Atlantis/Poseidonis"), "no time zone"),
        (Schedule::every(Duration::from_millis(999)), "at least a second"),
    ] {
        let refused = spring.schedule("bad", schedule, &Work { n: 0 }).await;
        let Err(Error::Invalid { what: "schedule", reason }) = refused else {
            panic!("{refused:?}")
        };
        assert!(reason.contains(words), "{reason}");
    }
    spring.close().await.unwrap();
}
