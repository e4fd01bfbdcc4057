//! A worker that stops, whatever its employer and its handlers do about it.

use crate::employer::{Asked, Reply, agreeing, deaf, employer, job, quick, run, taken};
use mainspring_worker::{Failure, Kind, Said, Summary};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

#[tokio::test(start_paused = true)]
async fn draining_releases_what_did_not_finish_in_time() {
    let (employer, mut heard) = employer(agreeing(1));
    let grace = Duration::from_millis(50);
    let running = run(deaf(quick(&employer).drain_grace(grace).stop_grace(grace)));
    heard.pull().await;
    heard.pull().await;
    let summary = running.stopped_within(Duration::from_millis(200)).await.unwrap();
    assert_eq!(summary, Summary { released: 1, ..Summary::default() });
    let (reports, wish) = heard.report().await;
    assert_eq!((&*reports[0].job_id, reports[0].kind()), ("job-1", Kind::Release));
    assert!(wish.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_a_handler_that_was_told_to_stop_uses_up_no_try() {
    let (employer, mut heard) = employer(agreeing(1));
    let running = run(quick(&employer).drain_grace(Duration::ZERO).on("t", |ctx| async move {
        ctx.stopped().await;
        Err::<(), _>(Failure::retryable("INTERRUPTED", "half done"))
    }));
    heard.pull().await;
    heard.pull().await;
    assert_eq!(running.stopped().await, Summary { released: 1, ..Summary::default() });
}

/// Somebody else is at it: a stop does not take it back.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_handed_over_is_not_given_back() {
    let (employer, mut heard) = employer(agreeing(2));
    let running = run(quick(&employer).drain_grace(Duration::ZERO).on("t", |ctx| async move {
        if ctx.job().job_id == "job-2" {
            ctx.stopped().await;
        }
        Err::<(), _>(Failure::handed_over())
    }));
    heard.pull().await;
    let (first, _) = heard.report().await;
    let allowed = job(1).time_allowed;
    assert!(matches!(first[0].said, Said::HandOver(lease) if lease == allowed), "{first:?}");
    heard.pull().await;
    let summary = running.stopped().await;
    assert_eq!((summary.handed_over, summary.released), (2, 0), "{summary:?}");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_arrives_while_the_worker_stops_is_given_back() {
    let mut base = agreeing(0);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Pull(_) => Reply::UntilLeft(vec![job(9)]),
        other => base(other),
    });
    let (tell, mut told) = mpsc::unbounded_channel();
    let running = run(quick(&employer).on("t", move |ctx| {
        let _ = tell.send(ctx.job().job_id.clone());
        std::future::pending::<Result<(), Failure>>()
    }));
    heard.pull().await;
    assert_eq!(running.stopped().await, Summary { released: 1, ..Summary::default() });
    let (reports, wish) = heard.report().await;
    assert_eq!((&*reports[0].lease_token, reports[0].kind()), ("lease-9", Kind::Release));
    assert!(wish.is_none(), "a worker that stops asks for nothing");
    assert_eq!(told.recv().await, None, "it was not begun");
}

/// The stop comes while a report is on its way, and another attempt ends even later.
#[tokio::test(start_paused = true)]
async fn a_stop_in_the_middle_of_a_report_loses_neither_it_nor_what_ends_later() {
    let mut base = agreeing(2);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(reports, _) => Reply::After(Duration::from_secs(2), Box::new(taken(reports))),
        other => base(other),
    });
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let running = run(quick(&employer).on("t", move |ctx| {
        let wait = wait.clone();
        async move {
            if ctx.job().job_id == "job-2" {
                wait.notified().await;
            }
            Ok(1)
        }
    }));
    assert_eq!(heard.report().await.0[0].job_id, "job-1");
    running.stop.cancel();
    go.notify_one();
    let (reports, wish) = heard.report().await;
    assert_eq!((&*reports[0].job_id, wish), ("job-2", None));
    assert_eq!(running.stopped().await, Summary { completed: 2, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_stops_gives_up_on_an_employer_that_does_not_listen() {
    for answer in [|| Reply::NotNow, || Reply::Hang] {
        let mut base = agreeing(1);
        let (employer, mut heard) = employer(move |asked| match asked {
            Asked::Report(..) | Asked::Leave => answer(),
            other => base(other),
        });
        let builder = quick(&employer).lease(Duration::from_secs(15));
        let running = run(builder.on("t", |_| async { Ok(1) }));
        heard.report().await;
        // The drain, the stop and one lease: by then the job is somebody else's.
        let bound = Duration::from_millis(5_000 + 1_000 + 15_000 + 100);
        let summary = running.stopped_within(bound).await.unwrap();
        assert_eq!(summary, Summary { refused: 1, ..Summary::default() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_whose_employer_says_nothing_at_all_stops_all_the_same() {
    let (employer, mut heard) = employer(|_| Reply::Hang);
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    heard.pull().await;
    let summary = running.stopped_within(Duration::from_millis(5_100)).await.unwrap();
    assert_eq!(summary, Summary::default());
}

/// Pulls hang, too: the loop has to wait for its reports, and must not spin meanwhile. In stopped
/// time a loop that spins would never get to its end.
#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_a_report_does_not_spin_because_of_its_last_poll() {
    let mut base = agreeing(1);
    let mut is_first = true;
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Pull(_) if std::mem::take(&mut is_first) => base(asked),
        Asked::Beat(_) => base(asked),
        _ => Reply::Hang,
    });
    let running = run(quick(&employer).on("t", |ctx| async move {
        tokio::time::sleep(Duration::from_secs(3)).await; // paced: it ends while the poll hangs
        Ok(ctx.job().attempt)
    }));
    heard.pull().await;
    heard.pull().await;
    let summary = running.stopped_within(Duration::from_secs(22)).await.unwrap();
    assert_eq!(summary, Summary { refused: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn graces_without_end_are_only_very_long() {
    let (employer, mut heard) = employer(agreeing(1));
    let builder = quick(&employer).drain_grace(Duration::MAX).stop_grace(Duration::MAX);
    let builder = builder.lease(Duration::MAX).wait(Duration::MAX).concurrency(usize::MAX);
    let running = run(builder.on("t", |_| async {
        tokio::time::sleep(Duration::from_secs(60)).await; // paced: it takes its time
        Ok(1)
    }));
    assert_eq!(heard.pull().await.limit, 10_000);
    assert_eq!(heard.pull().await.limit, 9_999);
    let summary = running.stopped_within(Duration::from_secs(61)).await.unwrap();
    assert_eq!(summary.completed, 1);
}
