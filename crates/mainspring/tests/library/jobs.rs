//! Jobs from submission to their end, on both stores.

use crate::house::{House, Work, on, options};
use mainspring::{Error, Failure, StateName, StopReason};
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::both_stores;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

both_stores![
    a_job_is_worked_on_and_its_answer_comes_back,
    everything_that_is_said_of_a_job_is_kept,
    a_key_finds_the_job_again_and_refuses_another_payload,
    many_jobs_are_taken_in_order,
    a_failure_is_tried_again_and_a_permanent_one_is_not,
    a_step_happens_once_however_often_the_job_is_tried,
    a_cancelled_job_tells_its_handler_and_whoever_waits,
    a_worker_that_stops_gives_back_without_using_up_a_try,
    a_job_is_found_by_its_id_and_only_by_its_own,
    a_tenant_gets_its_own_jobs_only,
    what_is_no_name_or_pattern_is_refused_in_words,
    a_type_is_treated_as_it_was_defined,
    whoever_waits_is_told_when_all_is_closed,
];

fn a_job_is_worked_on_and_its_answer_comes_back(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let job = spring.submit(&Work { n: 20 }).label("origin", "test").await.unwrap();
        assert!(!job.was_there());
        assert_eq!(job.state().await.unwrap(), StateName::Queued);
        let worker = spring.worker().on(|work: Work, _| async move { Ok(work.n + 1) }).start();
        assert_eq!(job.wait().await.unwrap(), 21);
        assert_eq!(job.state().await.unwrap(), StateName::Succeeded);
        assert_eq!(worker.stop().await.unwrap().completed, 1);
        spring.close().await.unwrap();
        // What was done is still known to the next start.
        let spring = house.open().await;
        assert_eq!(spring.job::<Work>(job.id()).await.unwrap().wait().await.unwrap(), 21);
        spring.close().await.unwrap();
    });
}

fn everything_that_is_said_of_a_job_is_kept(store: Store) {
    on(store, async |house: &House| {
        let options = options().tenant("acme").user("ann").schema("apart");
        let spring = house.open_with(options).await.unwrap();
        let submission = spring
            .submit(&Work { n: 5 })
            .delay(Duration::from_secs(3600))
            .priority(77)
            .queue("slow")
            .max_retries(9)
            .timeout(Duration::from_millis(1_500))
            .label("colour", "blue")
            .label("size", "small");
        let id = submission.await.unwrap().id();
        let job = spring.engine().job(id).await.unwrap().unwrap().job;
        assert_eq!((job.tenant.as_str(), job.user.as_str()), ("acme", "ann"));
        assert_eq!((job.job_type.as_str(), job.queue.as_str()), ("work", "slow"));
        assert_eq!((job.priority, job.max_retries, job.timeout_ms), (77, 9, 1_500));
        assert_eq!(job.run_at.since(job.created_at), Duration::from_secs(3600));
        assert_eq!(&*job.payload, r#"{"n":5}"#);
        let labels = &job.extras.as_ref().unwrap().labels;
        let labels: Vec<(&str, &str)> =
            labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(labels, [("colour", "blue"), ("size", "small")]);
        spring.close().await.unwrap();
        if store == Store::Postgres {
            let usual = house.open().await;
            let apart = usual.engine().job(id).await.unwrap();
            assert!(apart.is_none(), "a schema is a world of its own");
            usual.close().await.unwrap();
        }
    });
}

fn a_key_finds_the_job_again_and_refuses_another_payload(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let first = spring.submit(&Work { n: 1 }).key("once").await.unwrap();
        let again = spring.submit(&Work { n: 1 }).key("once").await.unwrap();
        assert!(again.was_there() && again.id() == first.id());
        let other = spring.submit(&Work { n: 2 }).key("once").await;
        assert!(
            matches!(other, Err(Error::Refused { code: "IDEMPOTENCY_CONFLICT", .. })),
            "{other:?}"
        );
        spring.close().await.unwrap();
    });
}

fn many_jobs_are_taken_in_order(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let tasks: Vec<Work> = (0..300).map(|n| Work { n }).collect();
        let jobs = spring.submit_all(&tasks).await.unwrap();
        let worker = spring
            .worker()
            .concurrency(16)
            .on(|work: Work, _| async move { Ok(work.n * 2) })
            .start();
        for (n, job) in (0..).zip(&jobs) {
            assert_eq!(job.wait().await.unwrap(), n * 2);
        }
        assert_eq!(worker.stop().await.unwrap().completed, 300);
        spring.close().await.unwrap();
    });
}

fn a_failure_is_tried_again_and_a_permanent_one_is_not(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let worker = spring
            .worker()
            .on(|work: Work, ctx| async move {
                match (work.n, ctx.job().attempt) {
                    (1, 1) => {
                        Err(Failure::retryable("NOT_YET", "again").after(Duration::from_millis(10)))
                    }
                    (1, attempt) => Ok(attempt),
                    _ => Err(Failure::permanent("NEVER", "it cannot be done")),
                }
            })
            .start();
        let tried = spring.submit(&Work { n: 1 }).await.unwrap();
        assert_eq!(tried.wait().await.unwrap(), 2);
        let lost = spring.submit(&Work { n: 2 }).max_retries(5).await.unwrap().wait().await;
        let Err(Error::Failed { code, message }) = lost else { panic!("{lost:?}") };
        assert_eq!((&*code, &*message), ("NEVER", "it cannot be done"));
        let summary = worker.stop().await.unwrap();
        assert_eq!((summary.completed, summary.failed), (1, 2));
        spring.close().await.unwrap();
    });
}

fn a_step_happens_once_however_often_the_job_is_tried(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let done = Arc::new(AtomicU32::new(0));
        let counted = done.clone();
        let worker = spring.worker().on(move |_: Work, ctx| {
            let counted = counted.clone();
            async move {
                let step = || async { Ok(counted.fetch_add(1, Ordering::SeqCst) + 7) };
                let value: u32 = ctx.step("charge", step).await?;
                match ctx.job().attempt {
                    1 | 2 => {
                        let again = Failure::retryable("LATER", "after the charge");
                        Err(again.after(Duration::from_millis(1)))
                    }
                    _ => Ok(value),
                }
            }
        });
        let worker = worker.start();
        let job = spring.submit(&Work { n: 0 }).max_retries(3).await.unwrap();
        assert_eq!(job.wait().await.unwrap(), 7);
        assert_eq!(done.load(Ordering::SeqCst), 1);
        worker.stop().await.unwrap();
        spring.close().await.unwrap();
    });
}

fn a_cancelled_job_tells_its_handler_and_whoever_waits(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let (begun, stopped) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tell_begun, tell_stopped) = (begun.clone(), stopped.clone());
        let worker = spring.worker().lease(Duration::from_secs(1)).on(move |_: Work, ctx| {
            let (begun, stopped) = (tell_begun.clone(), tell_stopped.clone());
            async move {
                begun.notify_one();
                ctx.stopped().await;
                assert_eq!(ctx.stop_reason(), Some(StopReason::Cancelled));
                stopped.notify_one();
                Err(Failure::release("told to stop"))
            }
        });
        let worker = worker.start();
        let job = spring.submit(&Work { n: 0 }).await.unwrap();
        begun.notified().await;
        job.cancel("no longer wanted").await.unwrap();
        assert!(matches!(job.wait().await, Err(Error::Cancelled)));
        stopped.notified().await;
        let again = job.cancel("twice").await;
        assert!(matches!(again, Err(Error::Refused { .. })), "{again:?}");
        worker.stop().await.unwrap();
        spring.close().await.unwrap();
    });
}

fn a_worker_that_stops_gives_back_without_using_up_a_try(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let begun = Arc::new(Notify::new());
        let tell = begun.clone();
        let worker = spring
            .worker()
            .drain_grace(Duration::ZERO)
            .stop_grace(Duration::from_secs(5))
            .on(move |_: Work, ctx| {
                let begun = tell.clone();
                async move {
                    begun.notify_one();
                    ctx.stopped().await;
                    Err(Failure::release("the process goes down"))
                }
            })
            .start();
        let job = spring.submit(&Work { n: 0 }).max_retries(0).await.unwrap();
        begun.notified().await;
        // A pull that is on its way may bring it once more; then it is given back once more.
        assert!(worker.stop().await.unwrap().released >= 1);
        assert_eq!(job.state().await.unwrap(), StateName::Retrying);
        // Dropped, it is told to stop as well.
        drop(spring.worker().on(|_: Work, _| async { Ok(0) }).id("dropped").start());
        let worker =
            spring.worker().on(|_: Work, ctx| async move { Ok(ctx.job().retry_count.into()) });
        let worker = worker.start();
        assert_eq!(job.wait().await.unwrap(), 0);
        worker.stop().await.unwrap();
        spring.close().await.unwrap();
    });
}

fn a_job_is_found_by_its_id_and_only_by_its_own(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let job = spring.submit(&Work { n: 0 }).await.unwrap();
        assert_eq!(spring.job::<Work>(job.id()).await.unwrap().id(), job.id());
        assert!(matches!(spring.job::<Other>(job.id()).await, Err(Error::Unknown)));
        let why = job.explain().await.unwrap();
        assert_eq!(why.reasons[0].code, "NO_WORKER");
        spring.close().await.unwrap();
    });
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Other;

impl mainspring::Task for Other {
    const TYPE: &'static str = "other";
    type Output = ();
}

fn a_tenant_gets_its_own_jobs_only(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open_with(options().tenant("acme")).await.unwrap();
        let foreign = mainspring_kernel::TenantId::new("other").unwrap();
        let user = mainspring_kernel::UserId::new("ann").unwrap();
        let job_type = mainspring_kernel::JobType::new("work").unwrap();
        let wish = mainspring_kernel::command::Submit {
            payload: r#"{"n":1}"#.into(),
            ..mainspring_kernel::command::Submit::plain(foreign, user, job_type)
        };
        let foreign = spring.engine().submit(wish).await.unwrap().unwrap().job.id;
        assert!(matches!(spring.job::<Work>(foreign).await, Err(Error::Unknown)));
        let worker = spring.worker().on(|work: Work, _| async move { Ok(work.n) }).start();
        let own = spring.submit(&Work { n: 2 }).await.unwrap();
        assert_eq!(own.wait().await.unwrap(), 2);
        assert_eq!(worker.stop().await.unwrap().completed, 1);
        let foreign = spring.engine().job(foreign).await.unwrap().unwrap().job;
        assert_eq!(foreign.state.name(), StateName::Queued);
        spring.close().await.unwrap();
    });
}

fn what_is_no_name_or_pattern_is_refused_in_words(store: Store) {
    on(store, async |house: &House| {
        let bad = house.open_with(options().tenant("")).await;
        assert!(matches!(bad, Err(Error::Name(_))));
        let spring = house.open().await;
        let queue = spring.submit(&Work { n: 0 }).queue("").await;
        assert!(matches!(queue, Err(Error::Name(_))), "{queue:?}");
        let key = spring.submit(&Work { n: 0 }).key("a\0b").await;
        assert!(
            matches!(key, Err(Error::Refused { code: "REQ_VALIDATION_FAILED", .. })),
            "{key:?}"
        );
        spring.close().await.unwrap();
        let strict = house.open_with(options().strict_types(true)).await.unwrap();
        let unknown = strict.submit(&Work { n: 0 }).await;
        assert!(matches!(unknown, Err(Error::Refused { .. })), "{unknown:?}");
        strict.close().await.unwrap();
    });
}

fn a_type_is_treated_as_it_was_defined(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let define = |spec| mainspring::TypeSpec { max_retries: 0, ..spec };
        spring.define::<Work>(define).await.unwrap();
        let worker = spring
            .worker()
            .on(|_: Work, _| async { Err::<u32, _>(Failure::retryable("NOT_YET", "no")) })
            .start();
        let job = spring.submit(&Work { n: 0 }).await.unwrap();
        assert!(matches!(job.wait().await, Err(Error::Failed { .. })));
        assert_eq!(worker.stop().await.unwrap().failed, 1);
        spring.close().await.unwrap();
    });
}

fn whoever_waits_is_told_when_all_is_closed(store: Store) {
    on(store, async |house: &House| {
        let spring = house.open().await;
        let job = spring.submit(&Work { n: 0 }).await.unwrap();
        let waiting = tokio::spawn(async move { job.wait().await });
        spring.close().await.unwrap();
        let told = waiting.await.unwrap();
        assert!(matches!(told, Err(Error::Closed | Error::Store(_))), "{told:?}");
    });
}
