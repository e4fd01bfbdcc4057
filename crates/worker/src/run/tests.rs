//! What the loop knows of its leases, without an employer and without waiting.

use super::*;
use crate::employer::{Answer, Employer, Recorded, Reported, Wish};
use crate::{Json, Time, Worker};

/// Nobody: whatever is asked, nothing comes.
struct Nobody;

impl Employer for Nobody {
    fn pull(&self, _: Wish) -> Answer<'_, Vec<Job>> {
        Box::pin(std::future::pending())
    }

    fn heartbeat<'a>(&'a self, _: &'a Beat) -> Answer<'a, Vec<Renewal>> {
        Box::pin(std::future::pending())
    }

    fn report<'a>(&'a self, _: &'a [Report], _: Option<Wish>) -> Answer<'a, Reported> {
        Box::pin(std::future::pending())
    }

    fn effect<'a>(&'a self, _: &'a Job, _: &'a str) -> Answer<'a, Option<Json>> {
        Box::pin(std::future::pending())
    }

    fn record<'a>(&'a self, _: &'a Job, _: &'a str, _: Json) -> Answer<'a, Recorded> {
        Box::pin(std::future::pending())
    }

    fn leave<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        Box::pin(std::future::pending())
    }
}

fn job() -> Job {
    Job {
        job_id: "job-1".into(),
        job_type: "t".into(),
        payload: serde_json::value::to_raw_value(&1).unwrap(),
        attempt: 1,
        retry_count: 0,
        lease_token: "lease-1".into(),
        lease_expires_at: Time(0),
        deadline_at: Time(0),
        time_allowed: Duration::from_secs(900),
        execution_key: "k".into(),
        trace_id: "t".into(),
        traceparent: None,
        labels: std::collections::BTreeMap::new(),
        checkpoint: None,
    }
}

fn run(lease: Duration) -> Run {
    let worker = Worker::builder(Nobody).lease(lease).on("t", |ctx| async move {
        ctx.stopped().await;
        Ok(())
    });
    Run::new(worker.build().setup)
}

#[tokio::test]
async fn a_heartbeat_that_was_answered_renews_the_lease_from_when_it_was_sent() {
    let lease = Duration::from_secs(60);
    let mut run = run(lease);
    assert!(run.start(job(), true));
    let ends_at = |run: &Run| run.held["lease-1"].ends_at;
    let first = ends_at(&run);
    assert!(first < Instant::now() + lease / 2, "the first lease is short");
    let sent_at = Instant::now();
    let tokens = ["lease-1".to_owned()];
    run.beaten(Err(Error::Late { call: "heartbeat" }), &tokens, sent_at);
    assert_eq!(ends_at(&run), first, "no answer, no lease");
    for garbage in [vec![], vec![Renewal::Renewed, Renewal::Lost]] {
        run.beaten(Ok(garbage), &tokens, sent_at);
        assert_eq!(ends_at(&run), first, "nobody knows which lease is meant");
    }
    run.beaten(Ok(vec![Renewal::Unknown]), &tokens, sent_at);
    assert_eq!(ends_at(&run), first, "it was not renewed");
    run.beaten(Ok(vec![Renewal::Renewed]), &tokens, sent_at);
    assert_eq!(ends_at(&run), sent_at + lease);
    assert_eq!(run.held["lease-1"].ctx.stop_reason(), None);
    run.beaten(Ok(vec![Renewal::Lost]), &tokens, sent_at);
    assert_eq!(run.held["lease-1"].ctx.stop_reason(), Some(StopReason::LeaseLost));
}

#[tokio::test]
async fn the_first_reason_to_stop_stands_and_progress_is_in_bounds() {
    let ctx = Context::new(job(), Arc::new(Nobody), "w".into());
    assert_eq!((ctx.stop_reason(), ctx.last_progress()), (None, None));
    ctx.tell_to_stop(StopReason::Cancelled);
    ctx.tell_to_stop(StopReason::Draining);
    ctx.progress(250.0);
    assert_eq!(ctx.stop_reason(), Some(StopReason::Cancelled));
    assert_eq!(ctx.last_progress(), Some(100.0));
    ctx.progress(f64::NAN);
    assert_eq!(ctx.last_progress(), None);
}

#[tokio::test]
async fn batches_are_of_one_kind_and_within_the_size_of_a_call() {
    let mut run = run(Duration::from_secs(60));
    let report = |n: usize, said: Said| Report {
        job_id: format!("job-{n}"),
        lease_token: format!("lease-{n}"),
        said,
    };
    let long = crate::Failure::retryable("LONG", "x".repeat(4_000));
    for n in 0..10_000 {
        run.ready.push(match n % 2 {
            0 => report(n, Said::Complete(None)),
            _ => report(n, Said::of(Err(long.clone()), Duration::ZERO)),
        });
    }
    let (mut batches, mut reports) = (0, 0);
    while !run.ready.is_empty() {
        let batch = run.take_reports();
        assert!(batch.iter().all(|report| report.kind() == batch[0].kind()));
        assert!(batch.iter().map(Report::weight).sum::<usize>() <= REPORT_BYTES_MAX);
        batches += 1;
        reports += batch.len();
    }
    assert_eq!(reports, 10_000);
    assert!((40..60).contains(&batches), "{batches}");
}
