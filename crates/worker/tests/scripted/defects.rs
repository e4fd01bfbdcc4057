//! Employers that answer what nobody asked, panic, or are gone.

use crate::employer::{Asked, Reply, agreeing, employer, job, quick, run, taken};
use mainspring_worker::{About, Error, Job, Reported, Summary};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_report_whose_answer_does_not_fit_is_not_believed() {
    for count in [0, 3, 9] {
        let mut base = agreeing(4);
        let (employer, mut heard) = employer(move |asked| match asked {
            Asked::Report(reports, _) if reports.len() != count => {
                let items = (0..count).map(|_| Ok(())).collect();
                Reply::Reported(Reported { items, jobs: Vec::new() })
            }
            other => base(other),
        });
        let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
        heard.report().await;
        assert_eq!(running.stopped().await, Summary { refused: 4, ..Summary::default() });
        // Each call is halved until there is nothing left to halve.
        assert!(heard.count(|asked| matches!(asked, Asked::Report(..))) <= 2 * 4, "{count}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_once_costs_nothing() {
    let mut is_first = true;
    let mut base = agreeing(4);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Report(..) if std::mem::take(&mut is_first) => Reply::Reported(Reported::default()),
        other => base(other),
    });
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    heard.report().await;
    assert_eq!(running.stopped().await, Summary { completed: 4, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn jobs_that_were_not_asked_for_are_given_back_and_not_begun() {
    let mut is_first = true;
    let mut base = agreeing(0);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Pull(_) if std::mem::take(&mut is_first) => {
            let stranger = Job { job_type: "other".into(), ..job(1) };
            // One of another type, one with room, the same once more, and two too many.
            Reply::Jobs(vec![stranger, job(2), job(2), job(3), job(4)])
        }
        other => base(other),
    });
    let begun = Arc::new(AtomicUsize::new(0));
    let count = begun.clone();
    let running = run(quick(&employer).concurrency(2).on("t", move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(1) }
    }));
    heard.report().await;
    let summary = running.stopped().await;
    assert_eq!(summary, Summary { completed: 1, released: 3, ..Summary::default() });
    assert_eq!(begun.load(Ordering::Relaxed), 1);
}

/// Calls in the first ten seconds with an employer that does this to every pull.
async fn calls_in_ten_seconds(answer: impl Fn() -> Reply + Send + 'static) -> usize {
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Pull(_) => answer(),
        Asked::Report(reports, _) => {
            let Reply::Reported(mut reported) = taken(reports) else { unreachable!() };
            reported.jobs = if let Reply::Jobs(jobs) = answer() { jobs } else { Vec::new() };
            Reply::Reported(reported)
        }
        Asked::Leave => Reply::Left,
        other => agreeing(0)(other),
    });
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    tokio::time::sleep(Duration::from_secs(10)).await; // paced: counted over a span
    running.stopped().await;
    heard.count(|asked| matches!(asked, Asked::Pull(_) | Asked::Report(..)))
}

#[tokio::test(start_paused = true)]
async fn an_employer_that_has_nothing_of_use_is_asked_ever_less_often() {
    let empty = calls_in_ten_seconds(|| Reply::Jobs(Vec::new())).await;
    assert!((5..30).contains(&empty), "{empty} empty answers at once");
    let stranger = || Job { job_type: "other".into(), ..job(1) };
    let useless = calls_in_ten_seconds(move || Reply::Jobs(vec![stranger()])).await;
    assert!((5..60).contains(&useless), "{useless} answers of no use");
    let failed = calls_in_ten_seconds(|| Reply::NotNow).await;
    assert!((5..15).contains(&failed), "{failed} answers that failed");
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_hangs_is_given_up_and_asked_anew() {
    let mut hangs = 1;
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Pull(_) if std::mem::take(&mut hangs) > 0 => Reply::Hang,
        other => base(other),
    });
    let began = tokio::time::Instant::now();
    let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
    heard.report().await;
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert_eq!(running.stopped().await.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn an_employer_that_refuses_or_is_gone_ends_the_worker_with_its_reason() {
    for answer in [|| Reply::Refused(About::Else), || Reply::Gone, || Reply::Panic] {
        let mut pulls = 0;
        let mut base = agreeing(2);
        let (employer, _heard) = employer(move |asked| match asked {
            Asked::Pull(_) if pulls > 0 => answer(),
            Asked::Pull(_) => {
                pulls += 1;
                base(asked)
            }
            other => base(other),
        });
        let running = run(quick(&employer).concurrency(3).on("t", |ctx| async move {
            tokio::time::sleep(Duration::from_secs(1)).await; // paced: still running by then
            Ok(ctx.job().attempt)
        }));
        let ended = running.ended().await;
        let is_right = match ended.as_ref().unwrap_err() {
            Error::Refused { .. } | Error::Gone { .. } | Error::Panicked { .. } => true,
            Error::NotNow { .. } | Error::Late { .. } | Error::Garbled { .. } => false,
        };
        assert!(is_right, "{ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_report_at_which_the_employer_panics_or_is_gone_is_given_up() {
    for answer in [|| Reply::Panic, || Reply::Gone] {
        let mut base = agreeing(2);
        let (employer, mut heard) = employer(move |asked| match asked {
            Asked::Report(..) => answer(),
            other => base(other),
        });
        let running = run(quick(&employer).on("t", |_| async { Ok(1) }));
        heard.report().await;
        let summary = running.stopped_within(Duration::from_secs(1)).await.unwrap();
        assert_eq!(summary, Summary { refused: 2, ..Summary::default() });
    }
}
