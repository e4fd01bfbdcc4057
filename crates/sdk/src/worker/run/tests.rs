//! What the loop knows of its leases, without a server and without waiting.

use super::*;
use crate::{Client, Worker};

fn job() -> PulledJob {
    let job = serde_json::json!({
        "job_id": "job-1", "job_type": "t", "payload": {}, "attempt": 1, "retry_count": 0,
        "lease_token": "lease-1", "lease_expires_at": "2026-01-01T00:01:00Z",
        "deadline_at": "2026-01-01T00:15:00Z", "execution_key": "k", "trace_id": "t", "labels": {}
    });
    serde_json::from_value(job).unwrap()
}

#[tokio::test]
async fn a_heartbeat_that_was_answered_renews_the_lease_from_when_it_was_sent() {
    let client = Client::new("http://127.0.0.1:1", None).unwrap();
    let lease = Duration::from_secs(60);
    let worker = Worker::builder(client).lease(lease).on("t", |ctx| async move {
        ctx.stopped().await;
        Ok(())
    });
    let mut run = Run::new(worker.build().setup);
    run.start(job());
    let ends_at = |run: &Run| run.held["lease-1"].ends_at;
    let first = ends_at(&run);
    assert!(first < Instant::now() + lease / 2, "the first lease is short");
    let sent_at = Instant::now();
    let tokens = ["lease-1".to_owned()];
    let answer = |item: serde_json::Value| {
        serde_json::from_value::<Beaten>(serde_json::json!({ "items": [item] })).unwrap()
    };
    let late = Error::Unreadable { call: "heartbeat".into(), status: 504, reason: "late".into() };
    run.beaten(Err(late), &tokens, sent_at);
    assert_eq!(ends_at(&run), first, "no answer, no lease");
    let renewed = answer(serde_json::json!({
        "job_id": "job-1", "lease_expires_at": "2026-01-01T00:02:00Z"
    }));
    run.beaten(Ok(renewed), &tokens, sent_at);
    assert_eq!(ends_at(&run), sent_at + lease);
    assert_eq!(run.held["lease-1"].ctx.stop_reason(), None);
    let lost = answer(serde_json::json!({ "job_id": "job-1", "lost": true }));
    run.beaten(Ok(lost), &tokens, sent_at);
    assert_eq!(run.held["lease-1"].ctx.stop_reason(), Some(StopReason::LeaseLost));
}
