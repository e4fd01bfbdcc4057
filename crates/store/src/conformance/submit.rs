//! Accepting jobs, and what a batch is.

use super::bench::{Bench, any, everything, queue, submit, wish};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{Command, JobId, Receipt, Rejection, StateName};

pub(super) async fn a_submitted_job_can_be_read(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let whole = bench.job(id).await;
    assert_eq!(whole.job.id, id);
    assert_eq!(whole.job.state.name(), StateName::Queued);
    assert_eq!(&*whole.job.payload, r#"{"n":1}"#);
    assert_eq!(whole.history.len(), 1);
    assert_eq!((whole.history[0].seq, whole.history[0].from), (1, None));
}

pub(super) async fn a_batch_is_visible_to_the_next_batch(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    assert_eq!(bench.pulled(5).await, [id]);
    assert_eq!(bench.pulled(5).await, []);
}

pub(super) async fn commands_of_a_batch_see_each_other(bench: &mut Bench) {
    let (outcomes, granted) = bench.batch(&[submit(wish())], Some(any(1))).await;
    let Ok(Receipt::Submitted { job }) = outcomes[0] else { panic!("{outcomes:?}") };
    assert_eq!(granted.iter().map(|job| job.id).collect::<Vec<_>>(), [job]);
    assert_eq!(bench.state(job).await, StateName::Running);
    assert_eq!(bench.job(job).await.history.len(), 2);
}

pub(super) async fn an_empty_batch_changes_nothing(bench: &mut Bench) {
    let id = bench.submit(wish()).await;
    let before = bench.store.moves_after(0, 10).await.expect("reads work");
    bench.run(&[]).await;
    let after = bench.store.moves_after(0, 10).await.expect("reads work");
    assert_eq!((before.newest, before.moves), (after.newest, after.moves));
    assert_eq!(bench.list(&everything(), 10).await, [id]);
}

pub(super) async fn a_refused_command_leaves_the_others(bench: &mut Bench) {
    let bad = Command::Cancel { job: JobId(1), by: wish().user, reason: None };
    let outcomes = bench.run(&[submit(wish()), bad, submit(wish())]).await;
    assert!(matches!(outcomes[1], Err(Rejection::JobUnknown)), "{outcomes:?}");
    assert!(outcomes[0].is_ok() && outcomes[2].is_ok());
    assert_eq!(bench.list(&everything(), 10).await.len(), 2);
}

pub(super) async fn every_field_of_a_job_is_kept(bench: &mut Bench) {
    let run_at = bench.now.plus_millis(1_000);
    let id = bench
        .submit(Submit {
            run_at: Some(run_at),
            priority: Some(255),
            queue: Some(queue("slow")),
            timeout_ms: Some(1_234),
            max_retries: Some(9),
            idempotency: super::bench::key("k", Some(60)),
            trace: Some("trace-1".into()),
            parent: Some(JobId(77)),
            subject: Some("about".into()),
            labels: vec![("b".into(), "2".into()), ("a".into(), "1".into())],
            expires_at: Some(run_at.plus_millis(1)),
            payload: "{\"big\":1.000000000000000000001, \"text\":\"\u{e4}\u{1f525}\"}".into(),
            ..wish()
        })
        .await;
    let job = bench.job(id).await.job;
    assert_eq!(
        (job.run_at, job.priority, job.timeout_ms, job.max_retries),
        (run_at, 255, 1_234, 9)
    );
    assert_eq!(job.queue, queue("slow"));
    assert_eq!(job.trace.as_deref(), Some("trace-1"));
    assert_eq!(job.idempotency, super::bench::key("k", Some(60)));
    assert!(job.payload.starts_with("{\"big\":1.000000000000000000001, "), "byte for byte");
    let extras = job.extras.expect("rare fields are kept");
    assert_eq!((extras.parent, extras.subject.as_deref()), (Some(JobId(77)), Some("about")));
    assert_eq!(&*extras.labels[0].0, "b", "labels stay in order");
    assert_eq!(extras.expires_at, Some(run_at.plus_millis(1)));
}
