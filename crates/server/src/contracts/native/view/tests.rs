//! What is written by hand is what the shared types say.

use super::*;
use mainspring_kernel::event::TASK_TIMEOUT;
use mainspring_kernel::evolve::Reason;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::job::{Actor, Failure, LastFailure};
use mainspring_kernel::{
    DlqId, JobType, Lease, QueueName, State, TenantId, Timestamp, UserId, WorkerId,
};
use serde_json::Value;

fn plain() -> Job {
    Job {
        id: JobId(1 << 100),
        tenant: TenantId::new("t").unwrap(),
        user: UserId::new("u").unwrap(),
        job_type: JobType::new("send \"mail\"").unwrap(),
        queue: QueueName::new("default").unwrap(),
        payload: r#"{"to": "ann", "n": 1.50}"#.into(),
        priority: 50,
        max_retries: 3,
        retry_count: 0,
        timeout_ms: 900_000,
        seq: 1,
        fence: 0,
        created_at: Timestamp(1_000_000),
        updated_at: Timestamp(2_000_000),
        run_at: Timestamp(1_000_000),
        started_at: None,
        trace: None,
        idempotency: None,
        last_failure: None,
        last_report: None,
        extras: None,
        state: State::Queued,
    }
}

fn full(state: State) -> Job {
    let extras = Extras {
        parent: Some(JobId(9)),
        source_dlq: Some(DlqId(8)),
        subject: Some("about\nit".into()),
        labels: vec![("a".into(), "1".into()), ("b".into(), "\u{7}".into())],
        expires_at: Some(Timestamp(9_000_000)),
        effects: Vec::new(),
        effects_elsewhere: Default::default(),
        progress_pct: Some(40),
        alias: None,
        plan: None,
        traceparent: Some("00-a-b-01".into()),
        bounds: None,
        course: None,
        limit_keys: None,
    };
    let failure =
        Failure { code: TASK_TIMEOUT.into(), message: "slow \\ late".into(), retryable: true };
    let key = Idempotency {
        hash: digest(&[]),
        scope: "scope:mine".into(),
        key: "k".into(),
        fingerprint: None,
        window_secs: None,
    };
    Job {
        retry_count: 2,
        started_at: Some(Timestamp(3)),
        trace: Some("tr".into()),
        idempotency: Some(Box::new(key)),
        last_failure: Some(Box::new(LastFailure {
            failure,
            at: Timestamp(5),
            is_exhausted: true,
            result: None,
        })),
        extras: Some(Box::new(extras)),
        state,
        ..plain()
    }
}

fn running() -> State {
    State::Running(Box::new(Lease {
        fence: 3,
        secret: 0xfeed_beef,
        worker: WorkerId::new("w").unwrap(),
        granted_at: Timestamp(3),
        expires_at: Timestamp(60_000_000),
        deadline_at: Timestamp(70_000_000),
        settled_at: None,
        due_at: None,
        holder: None,
    }))
}

fn written(job: &Job) -> String {
    let mut out = Out::default();
    super::job(job, Some(true), &mut out);
    String::from_utf8(out.0).unwrap()
}

#[test]
fn a_job_reads_back_as_the_shared_type() {
    let at = Timestamp(8_000_000);
    let ended = [
        State::Succeeded { finished_at: at, result: Some("[1, 2]".into()) },
        State::Failed { finished_at: at },
        State::Cancelled { finished_at: at },
        State::Retrying { due_at: at },
        State::DlqPending,
        State::DlqRecorded,
        running(),
    ];
    for job in [plain()].into_iter().chain(ended.into_iter().map(full)) {
        let text = written(&job);
        let read: mainspring_api::job::Job = serde_json::from_str(&text).unwrap();
        // Both ways: nothing written that the type does not know, nothing it knows left out.
        let again: Value = serde_json::to_value(&read).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), again);
        assert_eq!(read.payload.get(), &*job.payload);
        assert_eq!(read.payload_json, &*job.payload);
        assert_eq!(read.trace_id, job.trace_id());
        assert!(!text.contains("feedbeef"), "a lease secret leaked: {text}");
    }
}

#[test]
fn codes_follow_the_state() {
    let read = |state| -> mainspring_api::job::Job {
        serde_json::from_str(&written(&full(state))).unwrap()
    };
    let at = Timestamp(8_000_000);
    let cancelled = read(State::Cancelled { finished_at: at });
    assert_eq!(cancelled.error_code.as_deref(), Some(JOB_CANCELLED));
    let late = State::Cancelled { finished_at: Timestamp(9_000_000) };
    let expired = written(&Job { started_at: None, ..full(late) });
    assert!(expired.contains("\"error_code\":\"TASK_EXPIRED\""));
    let failed = read(State::Failed { finished_at: at });
    assert_eq!(failed.error_code.as_deref(), Some(TASK_TIMEOUT));
    assert_eq!(failed.dlq_id, Some(plain().id.dlq().to_string()));
    let done = read(State::Succeeded { finished_at: at, result: None });
    assert_eq!((done.error_code, done.dlq_id), (None, None));
}

#[test]
fn a_grant_carries_its_token() {
    let job = full(running());
    let mut out = Out::default();
    grant(&job, &mut out);
    let read: mainspring_api::work::PulledJob = serde_json::from_slice(&out.0).unwrap();
    assert_eq!(read.lease_token, job.lease().unwrap().token().to_string());
    assert_eq!(read.execution_key, job.execution_key());
    let again = serde_json::to_value(&read).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&out.0).unwrap(), again);
}

#[test]
fn a_step_reads_back_as_the_shared_type() {
    let step = Transition {
        seq: 2,
        from: Some(StateName::Queued),
        to: StateName::Running,
        at: Timestamp(1),
        attempt: 1,
        reason: Some(Box::new(Reason { code: "A".into(), message: "b".into() })),
        actor: Actor::Reaper,
    };
    let mut out = Out::default();
    out.raw("{");
    transition(JobId(5), &step, "tr", &mut out);
    out.raw("}");
    let read: mainspring_api::job::JobEvent = serde_json::from_slice(&out.0).unwrap();
    assert_eq!(read.event_id, format!("evt_{}_2", &JobId(5).to_string()[4..]));
    let again = serde_json::to_value(&read).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&out.0).unwrap(), again);
}
