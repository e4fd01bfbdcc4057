//! Leases kept and lost, servers that do not answer, and how much is asked of them.

use super::*;

/// A handler that waits to be told to stop, and says why it was.
fn obedient(
    builder: WorkerBuilder,
) -> (WorkerBuilder, mpsc::UnboundedReceiver<Option<StopReason>>) {
    let (tell, told) = mpsc::unbounded_channel();
    let builder = builder.on("t", move |ctx| {
        let tell = tell.clone();
        async move {
            ctx.stopped().await;
            let _ = tell.send(ctx.stop_reason());
            Ok(())
        }
    });
    (builder, told)
}

/// A handler that never ends, however often it is told to stop: its job is held all the while.
fn deaf(builder: WorkerBuilder) -> WorkerBuilder {
    let builder = builder.stop_grace(Duration::from_secs(600));
    builder.on("t", |_| async { std::future::pending::<Result<(), Failure>>().await })
}

#[tokio::test]
async fn a_heartbeat_that_hangs_holds_up_no_other() {
    let mut is_first = true;
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        // Answered when the worker leaves, and not before.
        "heartbeat" if std::mem::take(&mut is_first) => Some(Value::Null),
        _ => base(route, body),
    })
    .await;
    let builder = deaf(quick(fake.client.clone()).lease(Duration::from_millis(900)));
    let running = tokio::spawn(builder.build().run(CancellationToken::new()));
    for _ in 0..3 {
        fake.next("heartbeat").await;
    }
    running.abort();
}

#[tokio::test]
async fn a_failure_of_a_handler_that_was_told_to_stop_uses_up_no_try() {
    let mut fake = Fake::start(accepting(1)).await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .drain_grace(Duration::ZERO)
        .on("t", |ctx| async move {
            ctx.stopped().await;
            Err::<(), _>(Failure::retryable("INTERRUPTED", "half done"))
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    fake.next("pull").await;
    fake.next("pull").await;
    stop.cancel();
    assert_eq!(fake.next("release").await["items"][0]["job_id"], "job-1");
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { released: 1, ..Summary::default() });
}

/// The next regular one is minutes away, and the first lease ends in seconds.
#[tokio::test]
async fn a_heartbeat_that_failed_is_repeated_soon() {
    let mut is_first = true;
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        "heartbeat" if std::mem::take(&mut is_first) => Some(json!({"refusal": "NOT_NOW"})),
        _ => base(route, body),
    })
    .await;
    let builder = deaf(quick(fake.client.clone()).lease(Duration::from_secs(600)));
    let running = tokio::spawn(builder.build().run(CancellationToken::new()));
    for _ in 0..2 {
        assert_eq!(fake.next("heartbeat").await["items"][0]["lease_token"], "lease-1");
    }
    running.abort();
}

#[tokio::test]
async fn a_handler_is_told_when_its_time_is_over() {
    let mut base = accepting(0);
    let fake = Fake::start(move |route, body| {
        let mut answer = base(route, body)?;
        if route == "pull" && !answer.is_null() {
            let mut short = job(1);
            // The first lease is five seconds long, so this was granted at 55.
            short["deadline_at"] = json!("2026-01-01T00:00:55.200Z");
            answer["jobs"] = json!([short]);
        }
        Some(answer)
    })
    .await;
    let stop = CancellationToken::new();
    let builder = quick(fake.client.clone()).lease(Duration::from_secs(60));
    let (builder, mut told) = obedient(builder);
    let running = tokio::spawn(builder.build().run(stop.clone()));
    let reason = tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap();
    assert_eq!(reason.unwrap(), Some(StopReason::TimedOut));
    stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_worker_that_stops_gives_up_on_a_server_that_is_gone() {
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        "complete" => None,
        _ => base(route, body),
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone())
        .lease(Duration::from_millis(100))
        .drain_grace(Duration::ZERO)
        .stop_grace(Duration::ZERO)
        .on("t", |_| async { Ok(1) })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    fake.next("complete").await;
    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(20), running).await;
    let summary = ended.expect("it ends").unwrap().unwrap();
    assert_eq!(summary, Summary { refused: 1, ..Summary::default() });
}

#[tokio::test]
async fn a_report_on_a_lost_lease_is_not_made_into_a_failure() {
    let mut base = accepting(1);
    let mut fake = Fake::start(move |route, body| match route {
        "complete" => {
            let error = json!({"code": "LEASE_LOST", "message": "gone"});
            Some(json!({"items": [{"job_id": "job-1", "error": error}]}))
        }
        _ => base(route, body),
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone()).on("t", |_| async { Ok(1) }).build();
    let running = tokio::spawn(worker.run(stop.clone()));
    fake.next("complete").await;
    stop.cancel();
    let summary = running.await.unwrap().unwrap();
    assert_eq!(summary, Summary { refused: 1, ..Summary::default() });
}

#[tokio::test]
async fn a_report_asks_for_no_more_jobs_than_there_is_room_for() {
    let mut fake = Fake::start(accepting(1)).await;
    let (go, gone) = (Arc::new(Notify::new()), CancellationToken::new());
    let wait = go.clone();
    let worker = quick(fake.client.clone())
        .concurrency(2)
        .on("t", move |_| {
            let wait = wait.clone();
            async move {
                wait.notified().await;
                Ok(1)
            }
        })
        .build();
    let running = tokio::spawn(worker.run(gone.clone()));
    assert_eq!(fake.next("pull").await["limit"], 2);
    assert_eq!(fake.next("pull").await["limit"], 1, "the other place is taken");
    go.notify_one();
    let report = fake.next("complete").await;
    assert_eq!(report["pull"]["limit"], 1, "the poll on its way may bring the other one");
    gone.cancel();
    assert_eq!(running.await.unwrap().unwrap().completed, 1);
}

#[tokio::test]
async fn large_results_are_reported_one_by_one() {
    let mut fake = Fake::start(accepting(3)).await;
    let stop = CancellationToken::new();
    let (go, both) = (Arc::new(tokio::sync::Barrier::new(3)), "x".repeat(400 * 1024));
    let worker = quick(fake.client.clone())
        .on("t", move |_| {
            let (go, both) = (go.clone(), both.clone());
            async move {
                go.wait().await;
                Ok(both)
            }
        })
        .build();
    let running = tokio::spawn(worker.run(stop.clone()));
    let mut reported = 0;
    while reported < 3 {
        let report = fake.next("complete").await;
        let items = report["items"].as_array().unwrap();
        assert_eq!(items.len(), 1, "two of them would be more than a request should hold");
        reported += 1;
    }
    stop.cancel();
    assert_eq!(running.await.unwrap().unwrap().completed, 3);
}

/// How long a wait must be at least can be told, whatever the machine.
#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_ever_less_often() {
    let mut fake = Fake::start(|route, _| match route {
        "leave" => Some(json!({"worker_id": "w"})),
        _ => None,
    })
    .await;
    let stop = CancellationToken::new();
    let worker = quick(fake.client.clone()).on("t", |_| async { Ok(1) }).build();
    let began = tokio::time::Instant::now();
    let running = tokio::spawn(worker.run(stop.clone()));
    for _ in 0..4 {
        fake.next("pull").await;
    }
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(50 + 100 + 200), "{waited:?}");
    stop.cancel();
    running.await.unwrap().unwrap();
}
