//! What is said about attempts, and what becomes of it on the way.

use crate::employer::{Asked, Reply, agreeing, employer, job, quick, run, taken};
use mainspring_worker::{About, Failure, Kind, Refusal, Report, Reported, Said, Summary};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a report says, in short.
fn words(report: &Report) -> (Kind, String) {
    let text = match &report.said {
        Said::Complete(result) => result.as_ref().map_or("", |result| result.get()).to_owned(),
        Said::Fail(failure) => failure.code.clone(),
        Said::Release(reason) => reason.clone(),
        Said::HandOver(lease) => format!("{lease:?}"),
    };
    (report.kind(), text)
}

#[tokio::test(start_paused = true)]
async fn a_report_fetches_the_next_job() {
    let mut fetched = 1;
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match (base(asked), asked) {
        (Reply::Reported(mut reported), Asked::Report(_, Some(_))) if fetched < 3 => {
            fetched += 1;
            reported.jobs = vec![job(fetched)];
            Reply::Reported(reported)
        }
        (other, _) => other,
    });
    let builder = quick(&employer).concurrency(1).queues(["q"]);
    let running = run(builder.on("t", |ctx| async move { ctx.payload::<Value>() }));
    let wish = heard.pull().await;
    assert_eq!((wish.limit, &wish.types[..]), (1, &["t".to_owned()][..]));
    assert_eq!(wish.queues.as_deref(), Some(&["q".to_owned()][..]));
    for n in 1..=3 {
        let (reports, wish) = heard.report().await;
        assert_eq!(words(&reports[0]), (Kind::Complete, json!({ "n": n }).to_string()));
        let wish = wish.unwrap();
        assert_eq!((wish.limit, wish.wait), (1, Duration::ZERO));
    }
    assert_eq!(running.stopped().await, Summary { completed: 3, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_lose_the_completion() {
    let mut losses = 2;
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(..) if losses > 0 => {
            losses -= 1;
            Reply::NotNow
        }
        other => base(other),
    });
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    assert!(heard.report().await.1.is_some());
    for _ in 0..2 {
        let (reports, wish) = heard.report().await;
        assert_eq!(reports[0].lease_token, "lease-1");
        assert!(wish.is_none(), "a repeat must not fetch again");
    }
    assert_eq!(running.stopped().await.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn failures_and_releases_are_told_apart() {
    let (employer, mut heard) = employer(agreeing(2));
    let running = run(quick(&employer).on("t", |ctx| async move {
        match ctx.job().job_id.as_str() {
            "job-1" => Err::<(), _>(Failure::permanent("B".repeat(300), "ä".repeat(9_000))),
            _ => Err(Failure::release("not mine")),
        }
    }));
    let mut said = [heard.report().await.0.remove(0), heard.report().await.0.remove(0)];
    said.sort_by_key(|report| report.job_id.clone());
    let Said::Fail(failure) = &said[0].said else { panic!("{:?}", said[0]) };
    assert_eq!((failure.code.len(), failure.retryable), (100, false));
    assert!((4_000..=4_096).contains(&failure.message.len()), "{}", failure.message.len());
    assert_eq!(words(&said[1]), (Kind::Release, "not mine".into()));
    assert_eq!(running.stopped().await, Summary { failed: 1, released: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_refused_fails_its_job_and_no_neighbour() {
    for is_told_apart in [false, true] {
        let mut base = agreeing(4);
        let is_bad = |report: &Report| words(report).1 == r#"{"n":3}"#;
        let (employer, mut heard) = employer(move |asked| match asked {
            Asked::Report(reports, _) if reports.iter().any(is_bad) && is_told_apart => {
                let no = || Refusal { code: "JSON_TOO_DEEP".into(), message: "no".into() };
                let taken = |report| if is_bad(report) { Err(no()) } else { Ok(()) };
                let items = reports.iter().map(taken).collect();
                Reply::Reported(Reported { items, jobs: Vec::new() })
            }
            Asked::Report(reports, _) if reports.iter().any(is_bad) => {
                Reply::Refused(About::Content)
            }
            other => base(other),
        });
        let running = run(quick(&employer).on("t", |ctx| async move { ctx.payload::<Value>() }));
        let failed = loop {
            let (reports, _) = heard.report().await;
            if reports[0].kind() == Kind::Fail {
                break reports;
            }
        };
        assert_eq!((failed.len(), &*failed[0].lease_token), (1, "lease-3"));
        let Said::Fail(failure) = &failed[0].said else { panic!("{failed:?}") };
        assert_eq!((&*failure.code, failure.retryable), ("RESULT_REFUSED", false));
        assert_eq!(
            running.stopped().await,
            Summary { completed: 3, failed: 1, ..Summary::default() }
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_on_a_lost_lease_is_not_made_into_a_failure() {
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(..) => {
            let lost = Refusal { code: "LEASE_LOST".into(), message: "gone".into() };
            Reply::Reported(Reported { items: vec![Err(lost)], jobs: Vec::new() })
        }
        other => base(other),
    });
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    heard.report().await;
    assert_eq!(running.stopped().await, Summary { refused: 1, ..Summary::default() });
    assert_eq!(heard.count(|asked| matches!(asked, Asked::Report(..))), 0);
}

#[tokio::test(start_paused = true)]
async fn a_report_asks_for_no_more_jobs_than_there_is_room_for() {
    let (employer, mut heard) = employer(agreeing(1));
    let go = Arc::new(Notify::new());
    let wait = go.clone();
    let running = run(quick(&employer).concurrency(2).on("t", move |_| {
        let wait = wait.clone();
        async move {
            wait.notified().await;
            Ok(1)
        }
    }));
    assert_eq!(heard.pull().await.limit, 2);
    assert_eq!(heard.pull().await.limit, 1, "the other place is taken");
    go.notify_one();
    let limit = heard.report().await.1.unwrap().limit;
    assert_eq!(limit, 1, "the poll on its way may bring the other one");
    assert_eq!(running.stopped().await.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn large_results_are_reported_one_by_one() {
    let (employer, mut heard) = employer(agreeing(3));
    let (go, large) = (Arc::new(tokio::sync::Barrier::new(3)), "x".repeat(400 * 1024));
    let running = run(quick(&employer).on("t", move |_| {
        let (go, large) = (go.clone(), large.clone());
        async move {
            go.wait().await;
            Ok(large)
        }
    }));
    for _ in 0..3 {
        let (reports, _) = heard.report().await;
        assert_eq!(reports.len(), 1, "two of them would be more than a call should hold");
    }
    assert_eq!(running.stopped().await.completed, 3);
}

#[tokio::test(start_paused = true)]
async fn a_result_over_the_bound_fails_its_attempt_and_is_not_sent() {
    let (employer, mut heard) = employer(agreeing(1));
    let running = run(quick(&employer).on("t", |_| async { Ok("x".repeat(1 << 20)) }));
    let (reports, _) = heard.report().await;
    assert_eq!(words(&reports[0]), (Kind::Fail, "RESULT_TOO_LARGE".into()));
    assert_eq!(running.stopped().await.failed, 1);
}

/// An employer with ten thousand jobs, and a worker with room for all of them.
#[tokio::test(start_paused = true)]
async fn ten_thousand_jobs_at_once_are_held_renewed_and_reported() {
    const JOBS: usize = 10_000;
    let (employer, mut heard) = employer(agreeing(JOBS));
    let (go, ready) = (Arc::new(tokio::sync::Barrier::new(JOBS)), CancellationToken::new());
    let (all, told) = (go.clone(), ready.clone());
    let running = run(quick(&employer).concurrency(JOBS).on("t", move |ctx| {
        let (all, told) = (all.clone(), told.clone());
        async move {
            // All of them run side by side, or none of them ends.
            all.wait().await;
            told.cancelled().await;
            ctx.payload::<Value>()
        }
    }));
    assert_eq!(heard.pull().await.limit, JOBS);
    let mut renewed = 0;
    while renewed < JOBS {
        let beat = heard.beat().await;
        assert!(beat.signs.len() <= 2_000, "{}", beat.signs.len());
        renewed += beat.signs.len();
    }
    ready.cancel();
    let (mut reported, mut calls) = (0, 0);
    while reported < JOBS {
        reported += heard.report().await.0.len();
        calls += 1;
    }
    println!("{JOBS} jobs at once: {calls} calls to report them");
    assert!(calls < 200, "{calls}");
    assert_eq!(running.stopped().await.completed, JOBS as u64);
}

/// The employer takes what it is told while the answer to it never comes: nothing is lost, and the
/// neighbours in later calls get through meanwhile.
#[tokio::test(start_paused = true)]
async fn a_report_that_hangs_is_repeated_and_others_go_out_beside_it() {
    let mut hangs = 1;
    let mut base = agreeing(2);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(..) if std::mem::take(&mut hangs) > 0 => Reply::Hang,
        Asked::Report(reports, _) => taken(reports),
        other => base(other),
    });
    let running = run(quick(&employer).on("t", |ctx| async move {
        if ctx.job().job_id == "job-2" {
            tokio::time::sleep(Duration::from_secs(1)).await; // paced: the second one to end
        }
        Ok(1)
    }));
    let order = [heard.report().await, heard.report().await, heard.report().await];
    let ids = order.map(|(reports, _)| reports[0].job_id.clone());
    assert_eq!(ids, ["job-1", "job-2", "job-1"], "the first one comes again");
    assert_eq!(running.stopped().await.completed, 2);
}

/// A row that somebody holds, say: the report on one job gets nowhere, for a long time.
#[tokio::test(start_paused = true)]
async fn a_report_that_gets_nowhere_keeps_nobody_else_waiting() {
    let mut next = 1;
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(reports, _) if reports.iter().any(|it| it.job_id == "job-1") => Reply::NotNow,
        Asked::Pull(_) if next < 20 => {
            next += 1;
            Reply::Jobs(vec![job(next - 1)])
        }
        other => base(other),
    });
    let running = run(quick(&employer).concurrency(1).on("t", |_| async { Ok(1) }));
    let began = tokio::time::Instant::now();
    while heard.report().await.0[0].job_id != "job-19" {}
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(
        running.stopped().await,
        Summary { completed: 18, refused: 1, ..Summary::default() }
    );
}
