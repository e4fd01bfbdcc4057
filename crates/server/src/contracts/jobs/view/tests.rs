//! What is written is what the types say, in every state.

use super::super::wire::OrchestrationJob;
use super::*;
use mainspring_kernel::event::TASK_EXECUTION_FAILED;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::{Extras, Failure, Idempotency, LastFailure, Lease, State};
use mainspring_kernel::{DlqId, JobType, QueueName, TenantId, Timestamp, UserId, WorkerId};

fn job(state: State) -> Job {
    let at = Timestamp::from_millis(1_790_000_000_000);
    let code = TASK_EXECUTION_FAILED.into();
    let failure = Failure { code, message: "no \"paper\"".into(), retryable: true };
    let result = Some("[3]".into());
    Job {
        id: JobId(7),
        tenant: TenantId::stored("acme".into()),
        user: UserId::stored("a\"da".into()),
        job_type: JobType::stored("mill".into()),
        queue: QueueName::stored("default".into()),
        payload: r#"{ "n": 1.0 }"#.into(),
        priority: 50,
        max_retries: 3,
        retry_count: 2,
        timeout_ms: 1_000,
        seq: 9,
        fence: 3,
        created_at: at,
        updated_at: at,
        run_at: at,
        started_at: Some(at),
        trace: None,
        idempotency: Some(Box::new(Idempotency {
            hash: digest(&[b"k"]),
            scope: "user:ada".into(),
            key: "k\n".into(),
            fingerprint: None,
            window_secs: None,
        })),
        last_failure: Some(Box::new(LastFailure { failure, at, is_exhausted: true, result })),
        last_report: None,
        extras: Some(Box::new(Extras { source_dlq: Some(DlqId(9)), ..Extras::default() })),
        state,
    }
}

fn written(job: &Job, beside: Beside) -> OrchestrationJob {
    let mut out = Out::default();
    super::job(job, beside, &mut out);
    serde_json::from_slice(&out.0).unwrap()
}

#[test]
fn every_state_is_written_as_the_type_says() {
    let at = Timestamp::from_millis(1_790_000_000_500);
    let lease = Lease {
        fence: 3,
        secret: 1,
        worker: WorkerId::stored("w".into()),
        granted_at: at,
        expires_at: at,
        deadline_at: at,
        settled_at: None,
        due_at: None,
        holder: None,
    };
    let beside = Beside { mode: "pull", is_hit: Some(true), ..Beside::default() };
    for (state, name, code, result) in [
        (State::Queued, "queued", None, None),
        (State::Running(Box::new(lease)), "running", None, None),
        (State::Retrying { due_at: at }, "running", None, None),
        (State::DlqPending, "failed", Some("EXECUTION_FAILED"), None),
        (State::DlqRecorded, "failed", Some("EXECUTION_FAILED"), None),
        (State::Failed { finished_at: at }, "failed", Some("EXECUTION_FAILED"), Some("[3]")),
        (
            State::Succeeded { finished_at: at, result: Some("1".into()) },
            "succeeded",
            None,
            Some("1"),
        ),
        (State::Cancelled { finished_at: at }, "cancelled", None, None),
    ] {
        let shown = written(&job(state), beside);
        assert_eq!(shown.status, name);
        assert_eq!(shown.error.map(|error| error.code).as_deref(), code, "{name}");
        assert_eq!(shown.result.as_ref().map(|result| result.get()), result, "{name}");
        assert_eq!((shown.id.as_str(), shown.user_id.as_str()), (&*shown.task_id, "a\"da"));
        assert_eq!(shown.payload.get(), r#"{ "n": 1.0 }"#);
        assert_eq!(shown.idempotency_key.as_deref(), Some("k\n"));
        assert_eq!(shown.retry_of, Some(JobId(9).to_string()));
        assert_eq!((shown.retried_as, shown.idempotent_hit), (None, Some(true)));
        assert_eq!(shown.executor.map(|executor| executor.name).as_deref(), Some("pull"));
    }
}

#[test]
fn a_dispatch_is_the_last_one() {
    let at = Timestamp::from_millis(1_790_000_000_000);
    let id = |state| job(state).dispatch_id();
    // The failure of the attempt has been counted; that of a burial is not.
    assert_eq!(id(State::Retrying { due_at: at }), Some(format!("{}:1:3", JobId(7))));
    assert_eq!(id(State::Failed { finished_at: at }), Some(format!("{}:2:3", JobId(7))));
    let fresh = Job { fence: 0, started_at: None, ..job(State::Queued) };
    assert_eq!(fresh.dispatch_id(), None);
}

#[test]
fn a_job_that_waits_for_others_says_so() {
    let fresh = Job { last_failure: None, ..job(State::Queued) };
    let held = Beside { limit: Some(2), retried_as: Some(JobId(8)), ..Beside::default() };
    let shown = written(&fresh, held);
    assert_eq!(shown.error.unwrap().code, CONCURRENCY_LIMIT_EXCEEDED);
    assert_eq!(shown.retried_as, Some(JobId(8).to_string()));
    assert_eq!(shown.idempotent_hit, None);
}
