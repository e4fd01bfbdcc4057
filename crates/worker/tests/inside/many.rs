//! Many jobs: a thousand with all kinds of endings, ten thousand at once, two workers for the same.

use crate::house::{code, on, result, run};
use mainspring_kernel::StateName;
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::both_stores;
use mainspring_worker::{Failure, Summary};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

both_stores![
    a_thousand_jobs_end_as_their_handler_says,
    thousands_of_jobs_at_once_are_held_and_ended,
    two_workers_run_every_job_once,
];

fn a_thousand_jobs_end_as_their_handler_says(store: Store) {
    const JOBS: usize = 1_000;
    on(store, async |house| {
        let ids = house.submit((0..JOBS).map(|n| n.to_string())).await;
        let steps = Arc::new(AtomicUsize::new(0));
        let count = steps.clone();
        let running = run(house.worker().concurrency(50).on("work", move |ctx| {
            let count = count.clone();
            async move {
                let n: usize = ctx.payload()?;
                let attempt = ctx.job().attempt;
                let first: u32 = ctx
                    .step("first", || async {
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok(attempt)
                    })
                    .await?;
                match n % 10 {
                    3 if attempt == 1 => {
                        Err(Failure::retryable("LATER", "once more").after(Duration::ZERO))
                    }
                    5 if attempt == 1 && n < 100 => panic!("a bug in the handler"),
                    7 => Err(Failure::permanent("NEVER", "it can never work")),
                    _ => Ok(json!({ "n": n, "first": first, "attempt": attempt })),
                }
            }
        }));
        let (mut succeeded, mut failed, mut retried) = (0, 0, 0);
        for (n, id) in ids.into_iter().enumerate() {
            let job = house.ended(id).await;
            retried += usize::from(job.retry_count > 0);
            if n % 10 == 7 {
                assert_eq!(code(&job), "NEVER");
                failed += 1;
                continue;
            }
            let attempt = u32::from(job.retry_count) + 1;
            assert_eq!(result(&job), json!({ "n": n, "first": 1, "attempt": attempt }));
            succeeded += 1;
        }
        let summary = running.stopped().await;
        println!("{JOBS} jobs: {succeeded} succeeded, {failed} failed, {retried} retried");
        // 100 said "later", 10 panicked, 100 failed for good.
        assert_eq!((succeeded, failed, retried), (900, 100, 110));
        assert_eq!(summary, Summary { completed: 900, failed: 210, ..Summary::default() });
        assert_eq!(steps.load(Ordering::SeqCst), JOBS, "no step was done twice");
    });
}

fn thousands_of_jobs_at_once_are_held_and_ended(store: Store) {
    // The memory store takes what one pull may ask for at most.
    let jobs = match store {
        Store::Memory => 10_000,
        Store::Postgres => 2_000,
    };
    on(store, async |house| {
        let ids = house.submit((0..jobs).map(|n| n.to_string())).await;
        let all = Arc::new(Barrier::new(jobs));
        let builder = house.worker().concurrency(jobs).lease(Duration::from_secs(30));
        let running = run(builder.on("work", move |ctx| {
            let all = all.clone();
            async move {
                // All of them run side by side, or none of them ends.
                all.wait().await;
                ctx.payload::<usize>()
            }
        }));
        for (n, id) in ids.into_iter().enumerate() {
            let job = house.ended(id).await;
            assert_eq!((result(&job), job.retry_count), (json!(n), 0));
        }
        let summary = running.stopped().await;
        assert_eq!(summary, Summary { completed: jobs as u64, ..Summary::default() });
        println!("{jobs} jobs side by side");
    });
}

fn two_workers_run_every_job_once(store: Store) {
    const JOBS: usize = 500;
    on(store, async |house| {
        let ids = house.submit((0..JOBS).map(|n| n.to_string())).await;
        let runs = Arc::new(Mutex::new(vec![0_u32; JOBS]));
        let start = |name: &str| {
            let runs = runs.clone();
            run(house.worker().id(name).concurrency(16).on("work", move |ctx| {
                let runs = runs.clone();
                async move {
                    let n: usize = ctx.payload()?;
                    runs.lock().unwrap()[n] += 1;
                    Ok(())
                }
            }))
        };
        let (one, two) = (start("one"), start("two"));
        for id in ids {
            assert_eq!(house.ended(id).await.state.name(), StateName::Succeeded);
        }
        let (one, two) = (one.stopped().await, two.stopped().await);
        assert_eq!(one.completed + two.completed, JOBS as u64);
        assert!(runs.lock().unwrap().iter().all(|count| *count == 1));
    });
}
