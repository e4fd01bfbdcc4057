//! Leases kept and lost.

use crate::employer::{Asked, Reply, agreeing, deaf, employer, job, quick, run};
use mainspring_worker::{About, Failure, Renewal, StopReason, Summary, WorkerBuilder};
use std::time::Duration;
use tokio::sync::mpsc;

type Told = mpsc::UnboundedReceiver<(String, Option<StopReason>)>;

/// A handler that waits to be told to stop, and says why it was.
fn obedient(builder: WorkerBuilder) -> (WorkerBuilder, Told) {
    let (tell, told) = mpsc::unbounded_channel();
    let builder = builder.on("t", move |ctx| {
        let tell = tell.clone();
        async move {
            ctx.stopped().await;
            let _ = tell.send((ctx.job().job_id.clone(), ctx.stop_reason()));
            Err::<(), _>(Failure::retryable("STOPPED", "stopped"))
        }
    });
    (builder, told)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_job_stops_its_handler_and_is_not_reported() {
    let mut base = agreeing(1);
    let (employer, _heard) = employer(move |asked| match asked {
        Asked::Beat(_) => Reply::Renewals(vec![Renewal::Cancelled]),
        other => base(other),
    });
    let (builder, mut told) = obedient(quick(&employer));
    let running = run(builder);
    assert_eq!(told.recv().await.unwrap().1, Some(StopReason::Cancelled));
    assert_eq!(running.stopped().await, Summary { lost: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_or_cancelled_stops_and_its_neighbours_go_on() {
    let mut base = agreeing(4);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Beat(beat) => Reply::Renewals(
            beat.signs
                .iter()
                .map(|sign| match sign.job_id.as_str() {
                    "job-1" => Renewal::Lost,
                    "job-2" => Renewal::Cancelled,
                    _ => Renewal::Renewed,
                })
                .collect(),
        ),
        other => base(other),
    });
    let (builder, mut told) = obedient(quick(&employer).drain_grace(Duration::ZERO));
    let running = run(builder);
    let mut stopped = vec![told.recv().await.unwrap(), told.recv().await.unwrap()];
    stopped.sort_by_key(|(id, _)| id.clone());
    let expected = [
        ("job-1".to_owned(), Some(StopReason::LeaseLost)),
        ("job-2".to_owned(), Some(StopReason::Cancelled)),
    ];
    assert_eq!(stopped, expected);
    // The others are renewed again and again, long after their first lease.
    for _ in 0..10 {
        heard.beat().await;
    }
    assert!(told.try_recv().is_err(), "nobody else was told to stop");
    let summary = running.stopped().await;
    assert_eq!(summary, Summary { lost: 2, released: 2, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_in_one_call_while_handlers_run() {
    let (employer, mut heard) = employer(agreeing(3));
    let builder = quick(&employer).lease(Duration::from_millis(300)).drain_grace(Duration::ZERO);
    let running = run(builder.on("t", |ctx| async move {
        ctx.progress(40.0);
        ctx.stopped().await;
        Ok(())
    }));
    for _ in 0..3 {
        let beat = heard.beat().await;
        assert_eq!((beat.signs.len(), beat.lease), (3, Duration::from_millis(300)));
        assert_eq!(beat.signs[0].progress, Some(40.0));
    }
    assert_eq!(running.stopped().await.completed, 3);
}

#[tokio::test(start_paused = true)]
async fn the_first_lease_is_short_and_the_first_heartbeat_makes_it_whole() {
    let (employer, mut heard) = employer(agreeing(1));
    let builder = quick(&employer).lease(Duration::from_secs(600)).drain_grace(Duration::ZERO);
    let running = run(builder.on("t", |ctx| async move {
        ctx.stopped().await;
        Ok(())
    }));
    assert_eq!(heard.pull().await.lease, Duration::from_secs(5));
    let began = tokio::time::Instant::now();
    assert_eq!(heard.beat().await.lease, Duration::from_secs(600));
    assert!(began.elapsed() < Duration::from_secs(5), "within the first lease");
    assert_eq!(running.stopped().await.completed, 1);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_hangs_holds_up_no_other() {
    let mut is_first = true;
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Beat(_) if std::mem::take(&mut is_first) => Reply::Hang,
        other => base(other),
    });
    let (builder, mut told) = obedient(quick(&employer).lease(Duration::from_millis(900)));
    let running = run(builder);
    for _ in 0..9 {
        heard.beat().await;
    }
    assert!(told.try_recv().is_err(), "the lease was kept");
    assert_eq!(running.stopped().await.released, 1);
}

/// The next regular one is minutes away, and the first lease ends in seconds.
#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_failed_is_repeated_soon() {
    for failure in [Reply::Refused(About::Else), Reply::NotNow, Reply::Renewals(Vec::new())] {
        let mut failure = Some(failure);
        let mut base = agreeing(1);
        let (employer, mut heard) = employer(move |asked| match asked {
            Asked::Beat(_) if failure.is_some() => failure.take().unwrap(),
            other => base(other),
        });
        let (builder, mut told) = obedient(quick(&employer).lease(Duration::from_secs(600)));
        let running = run(builder);
        let began = tokio::time::Instant::now();
        for _ in 0..2 {
            assert_eq!(heard.beat().await.signs[0].lease_token, "lease-1");
        }
        assert!(began.elapsed() < Duration::from_secs(5), "within the first lease");
        assert!(told.try_recv().is_err(), "the lease was kept");
        assert_eq!(running.stopped().await.released, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_when_its_lease_has_run_out() {
    for answer in [|| Reply::NotNow, || Reply::Hang, || Reply::Panic, || Reply::Renewals(vec![])] {
        let mut base = agreeing(1);
        let (employer, _heard) = employer(move |asked| match asked {
            Asked::Beat(_) => answer(),
            other => base(other),
        });
        let (builder, mut told) = obedient(quick(&employer).lease(Duration::from_millis(400)));
        let began = tokio::time::Instant::now();
        let running = run(builder);
        assert_eq!(told.recv().await.unwrap().1, Some(StopReason::LeaseLost));
        assert!(began.elapsed() >= Duration::from_millis(400), "not before");
        assert!(began.elapsed() < Duration::from_millis(500), "{:?}", began.elapsed());
        assert_eq!(running.stopped().await, Summary { lost: 1, ..Summary::default() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_when_its_time_is_over() {
    let mut base = agreeing(0);
    let mut is_first = true;
    let (employer, _heard) = employer(move |asked| match asked {
        Asked::Pull(_) if std::mem::take(&mut is_first) => {
            let mut short = job(1);
            short.time_allowed = Duration::from_millis(200);
            Reply::Jobs(vec![short])
        }
        other => base(other),
    });
    let (builder, mut told) = obedient(quick(&employer));
    let began = tokio::time::Instant::now();
    let running = run(builder);
    assert_eq!(told.recv().await.unwrap().1, Some(StopReason::TimedOut));
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert_eq!(running.stopped().await, Summary { lost: 1, ..Summary::default() });
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_everything_is_dropped_after_its_grace() {
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Beat(_) => Reply::Renewals(vec![Renewal::Lost]),
        other => base(other),
    });
    let running = run(deaf(quick(&employer).concurrency(1)));
    heard.pull().await;
    let began = tokio::time::Instant::now();
    assert_eq!(heard.pull().await.limit, 1, "its place is free again");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(running.stopped().await, Summary { lost: 1, ..Summary::default() });
}

/// One lease of many cannot be renewed at present, and an employer answers a call as a whole.
#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_costs_its_neighbours_little() {
    const JOBS: usize = 64;
    let mut base = agreeing(JOBS);
    let (employer, mut heard) = employer(move |asked| match asked {
        Asked::Beat(beat) if beat.signs.iter().any(|sign| sign.job_id == "job-1") => Reply::NotNow,
        other => base(other),
    });
    let (builder, mut told) = obedient(quick(&employer).concurrency(JOBS));
    let began = tokio::time::Instant::now();
    let running = run(builder);
    while began.elapsed() < Duration::from_secs(60) {
        heard.beat().await;
    }
    let mut lost = 0;
    while let Ok((_, reason)) = told.try_recv() {
        assert_eq!(reason, Some(StopReason::LeaseLost));
        lost += 1;
    }
    assert!((1..=JOBS / 16).contains(&lost), "{lost} of {JOBS} leases were lost");
    assert_eq!(running.stopped().await.released, (JOBS - lost) as u64);
}
