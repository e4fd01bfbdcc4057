//! One attempt after the other: leases, cancels, drains, effects.

use crate::house::{code, on, result, run, wish};
use mainspring_engine::Inside;
use mainspring_kernel::{StateName, TenantId};
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::both_stores;
use mainspring_worker::{Error, Failure, StopReason, Summary, Worker};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

both_stores![
    heartbeats_keep_a_lease_beyond_its_length,
    a_cancel_reaches_the_handler,
    a_drain_gives_jobs_back_without_using_up_a_try,
    a_step_gives_the_first_value_on_the_second_try,
    an_attempt_that_takes_too_long_is_stopped_and_tried_again,
    a_payload_that_is_not_json_fails_its_job_for_good,
    an_effect_over_the_bound_fails_its_job_for_good,
    one_tenants_employer_hands_out_no_other_tenants_jobs,
    a_worker_is_given_work_the_moment_it_comes,
    a_bad_name_ends_the_worker_with_its_reason,
    an_engine_that_stops_ends_its_workers,
];

fn heartbeats_keep_a_lease_beyond_its_length(store: Store) {
    on(store, async |house| {
        let id = house.submit_one("1").await;
        let go = Arc::new(Notify::new());
        let wait = go.clone();
        let lease = Duration::from_secs(3);
        let running = run(house.worker().lease(lease).on("work", move |ctx| {
            let wait = wait.clone();
            async move {
                ctx.progress(40.0);
                wait.notified().await;
                Ok(ctx.job().attempt)
            }
        }));
        let job = house
            .once(id, |job| {
                job.lease().is_some_and(|held| held.expires_at > held.granted_at + lease * 2)
            })
            .await;
        assert_eq!(job.extras.as_ref().and_then(|extras| extras.progress_pct), Some(40));
        assert!(house.engine.workers().iter().any(|seen| seen.id.as_str() == "inside"));
        go.notify_one();
        let job = house.ended(id).await;
        assert_eq!((result(&job), job.retry_count, job.fence), (json!(1), 0, 1));
        assert_eq!(running.stopped().await, Summary { completed: 1, ..Summary::default() });
    });
}

fn a_cancel_reaches_the_handler(store: Store) {
    on(store, async |house| {
        let ids = house.submit(["1".to_owned(), "2".to_owned()]).await;
        let (tell, mut told) = mpsc::unbounded_channel();
        let builder = house.worker().lease(Duration::from_secs(3));
        let running = run(builder.drain_grace(Duration::from_millis(100)).on("work", move |ctx| {
            let tell = tell.clone();
            async move {
                let _ = tell.send((ctx.job().job_id.clone(), None));
                ctx.stopped().await;
                let _ = tell.send((ctx.job().job_id.clone(), ctx.stop_reason()));
                Err::<(), _>(Failure::retryable("STOPPED", "stopped"))
            }
        }));
        for _ in 0..2 {
            assert_eq!(told.recv().await.unwrap().1, None);
        }
        house.cancel(ids[0]).await;
        let stopped = told.recv().await.unwrap();
        assert_eq!(stopped, (ids[0].to_string(), Some(StopReason::Cancelled)));
        assert_eq!(house.job(ids[1]).await.state.name(), StateName::Running);
        let summary = running.stopped().await;
        assert_eq!(summary, Summary { lost: 1, released: 1, ..Summary::default() });
        assert_eq!(house.job(ids[0]).await.state.name(), StateName::Cancelled);
    });
}

fn a_drain_gives_jobs_back_without_using_up_a_try(store: Store) {
    on(store, async |house| {
        let ids = house.submit((0..8).map(|n| n.to_string())).await;
        let (tell, mut told) = mpsc::unbounded_channel();
        let grace = Duration::from_millis(100);
        let builder = house.worker().concurrency(8).drain_grace(grace).stop_grace(grace);
        let first = run(builder.on("work", move |_| {
            let _ = tell.send(());
            std::future::pending::<Result<(), Failure>>()
        }));
        for _ in 0..8 {
            told.recv().await.unwrap();
        }
        assert_eq!(first.stopped().await, Summary { released: 8, ..Summary::default() });
        for id in &ids {
            let job = house.job(*id).await;
            assert_eq!((job.state.name(), job.retry_count), (StateName::Retrying, 0));
        }
        let second = run(house.worker().on("work", |ctx| async move { Ok(ctx.job().attempt) }));
        for id in ids {
            let job = house.ended(id).await;
            assert_eq!((result(&job), job.retry_count), (json!(1), 0), "the first try still");
        }
        assert_eq!(second.stopped().await.completed, 8);
    });
}

fn a_step_gives_the_first_value_on_the_second_try(store: Store) {
    on(store, async |house| {
        let id = house.submit_one("1").await;
        let charges = Arc::new(AtomicUsize::new(0));
        let count = charges.clone();
        let running = run(house.worker().on("work", move |ctx| {
            let count = count.clone();
            async move {
                let attempt = ctx.job().attempt;
                let charge = ctx.step("charge", || async {
                    count.fetch_add(1, Ordering::SeqCst);
                    Ok(json!({ "receipt": attempt, "text": "\u{0}ä" }))
                });
                let receipt: Value = charge.await?;
                match attempt {
                    1 | 2 => Err(Failure::retryable("LATER", "once more").after(Duration::ZERO)),
                    _ => Ok(receipt),
                }
            }
        }));
        let job = house.ended(id).await;
        assert_eq!(result(&job), json!({ "receipt": 1, "text": "\u{0}ä" }));
        assert_eq!((job.retry_count, charges.load(Ordering::SeqCst)), (2, 1));
        let summary = running.stopped().await;
        assert_eq!(summary, Summary { completed: 1, failed: 2, ..Summary::default() });
    });
}

fn an_attempt_that_takes_too_long_is_stopped_and_tried_again(store: Store) {
    on(store, async |house| {
        let mut slow = wish("acme", "1");
        slow.timeout_ms = Some(500);
        let id = house.engine.submit(slow).await.unwrap().unwrap().job.id;
        let (tell, mut told) = mpsc::unbounded_channel();
        let running = run(house.worker().on("work", move |ctx| {
            let tell = tell.clone();
            async move {
                if ctx.job().attempt == 1 {
                    ctx.stopped().await;
                    let _ = tell.send(ctx.stop_reason());
                }
                Ok(ctx.job().attempt)
            }
        }));
        let job = house.ended(id).await;
        // The engine enforces the time; the handler is told about it by whoever notices first.
        assert_eq!((result(&job), job.retry_count), (json!(2), 1));
        let reason = told.recv().await.unwrap();
        assert!(matches!(reason, Some(StopReason::TimedOut | StopReason::LeaseLost)), "{reason:?}");
        assert_eq!(running.stopped().await.completed, 1);
    });
}

fn a_payload_that_is_not_json_fails_its_job_for_good(store: Store) {
    on(store, async |house| {
        let ids = house.submit(["1", "{broken", "", "[2]"].map(ToOwned::to_owned)).await;
        let running = run(house.worker().on("work", |ctx| async move { ctx.payload::<Value>() }));
        assert_eq!(result(&house.ended(ids[0]).await), json!(1));
        assert_eq!(code(&house.ended(ids[1]).await), "PAYLOAD_INVALID");
        assert_eq!(code(&house.ended(ids[2]).await), "PAYLOAD_INVALID");
        assert_eq!(result(&house.ended(ids[3]).await), json!([2]));
        assert_eq!(running.stopped().await, Summary { completed: 2, ..Summary::default() });
    });
}

fn an_effect_over_the_bound_fails_its_job_for_good(store: Store) {
    on(store, async |house| {
        let id = house.submit_one("1").await;
        let running = run(house.worker().on("work", |ctx| async move {
            ctx.step("large", || async { Ok("x".repeat(65 * 1024)) }).await
        }));
        assert_eq!(code(&house.ended(id).await), "EFFECT_REFUSED");
        assert_eq!(running.stopped().await.failed, 1);
    });
}

fn one_tenants_employer_hands_out_no_other_tenants_jobs(store: Store) {
    on(store, async |house| {
        let submit =
            async |tenant| house.engine.submit(wish(tenant, "1")).await.unwrap().unwrap().job.id;
        let (foreign, own) = (submit("globex").await, submit("acme").await);
        let employer = Inside::new(house.engine.clone());
        let employer = employer.of_tenant(TenantId::new("acme").unwrap());
        let running = run(Worker::builder(employer).on("work", |_| async { Ok(1) }));
        house.ended(own).await;
        assert_eq!(running.stopped().await.completed, 1, "it was handed nothing else");
        assert_eq!(house.job(foreign).await.state.name(), StateName::Queued);
    });
}

fn a_worker_is_given_work_the_moment_it_comes(store: Store) {
    on(store, async |house| {
        let running =
            run(house.worker().wait(Duration::from_secs(60)).on("work", |_| async { Ok(1) }));
        let end = tokio::time::Instant::now() + Duration::from_secs(60);
        while house.engine.status().parked_pulls == 0 {
            assert!(tokio::time::Instant::now() < end, "it never pulled");
            tokio::time::sleep(Duration::from_millis(5)).await; // paced: looked at again
        }
        let began = tokio::time::Instant::now();
        let id = house.submit_one("1").await;
        house.ended(id).await;
        assert!(began.elapsed() < Duration::from_secs(30), "not by the next poll");
        assert_eq!(running.stopped().await.completed, 1);
    });
}

fn a_bad_name_ends_the_worker_with_its_reason(store: Store) {
    on(store, async |house| {
        let running = run(house.worker().id(" spaced ").on("work", |_| async { Ok(1) }));
        let error = running.ended().await.unwrap_err();
        assert_eq!(error.code(), Some("REQ_VALIDATION_FAILED"), "{error}");
    });
}

fn an_engine_that_stops_ends_its_workers(store: Store) {
    on(store, async |house| {
        let id = house.submit_one("1").await;
        let (tell, mut told) = mpsc::unbounded_channel();
        let grace = Duration::from_millis(100);
        let builder = house.worker().drain_grace(grace).stop_grace(grace);
        let running = run(builder.on("work", move |_| {
            let _ = tell.send(());
            std::future::pending::<Result<(), Failure>>()
        }));
        told.recv().await.unwrap();
        house.engine.shutdown().await.unwrap();
        let began = tokio::time::Instant::now();
        let ended = running.ended().await;
        assert!(matches!(ended, Err(Error::Gone { .. })), "{id}: {ended:?}");
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    });
}
