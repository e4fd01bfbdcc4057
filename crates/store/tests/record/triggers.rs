//! Fixed triggers: what their golden bytes are made of.

use crate::samples::NOW;
use mainspring_kernel::entity::schedule::Pause;
use mainspring_kernel::entity::trigger::{
    Condition, Ended, Evaluation, Finding, LastStatus, LeafState, Outcome, Outstanding, Pace,
    Status, Trigger, TriggerSpec, TriggerType, Truth, Why,
};
use mainspring_kernel::{JobId, Timestamp, UserId};

fn later(seconds: i64) -> Timestamp {
    Timestamp(NOW.0 + seconds * 1_000_000)
}

fn spec(kind: TriggerType) -> TriggerSpec {
    TriggerSpec {
        name: "trigger-001".into(),
        kind,
        interval_secs: Some(21_600),
        run_at: None,
        condition: None,
        cooldown_secs: 0,
        prompt: "look".into(),
        priority: 5,
        timeout_secs: None,
        trace: None,
        parent_task_id: None,
        pace: Pace { check_ms: 5_000, settle_ms: 500, stuck_ms: 7_200_000 },
        sees_tenant: false,
    }
}

/// One that has little.
pub(crate) fn plain() -> Trigger {
    Trigger {
        spec: spec(TriggerType::Recurring),
        status: Status::Active,
        leaves: Vec::new(),
        last_triggered_at: None,
        last_eval_at: None,
        outstanding: None,
        last_status: None,
        last_error: None,
        last_duration_ms: None,
        next_run_at: Some(later(21_600)),
        fired: 0,
        log: Vec::new(),
        made_elsewhere_at: None,
    }
}

fn condition() -> Condition {
    Condition::Or(vec![
        Condition::And(vec![
            Condition::FileChanged { path: "src/**/*.ts".into(), fires_on_init: true },
            Condition::FileExists { path: "/data/ready".into() },
        ]),
        Condition::TaskDone { task: "task-001".into() },
        Condition::TaskFailed { task: "task-002".into() },
        Condition::LlmEval { prompt: "is it time?".into() },
    ])
}

fn leaves(at: Timestamp) -> Vec<LeafState> {
    let ended = Ended {
        job: JobId(6),
        is_done: false,
        trace: Some("trace-001".into()),
        parent_task_id: Some("planner-001".into()),
    };
    vec![
        LeafState::Changed { is_initialized: true, taken: Some(later(-9)), held: Some(at) },
        LeafState::Exists { is_there: true },
        LeafState::Task { taken: Some(JobId(5)), held: None },
        LeafState::Task { taken: None, held: Some(Box::new(ended)) },
        LeafState::Llm { asked_at: Some(at), answer: Some(false) },
    ]
}

fn log(at: Timestamp) -> Vec<Evaluation> {
    let whys = [
        (Truth::False, Why::Unchanged),
        (Truth::True, Why::Changed(at)),
        (Truth::False, Why::Unsettled(later(1))),
        (Truth::True, Why::Exists),
        (Truth::False, Why::Missing),
        (Truth::False, Why::NoResult),
        (Truth::True, Why::Ended(JobId(5))),
        (Truth::Undecided, Why::Unanswered),
        (Truth::True, Why::Yes),
        (Truth::False, Why::No),
    ];
    let findings: Vec<Finding> =
        whys.into_iter().map(|(truth, why)| Finding { truth, why }).collect();
    let outcomes = [
        Outcome::Fired,
        Outcome::Asked,
        Outcome::Due,
        Outcome::Cooling,
        Outcome::Running,
        Outcome::NotYet,
        Outcome::Undecided,
        Outcome::Refused("BACKLOG_FULL".into()),
        Outcome::Stuck,
    ];
    let line = |outcome| Evaluation {
        at,
        outcome,
        findings: findings.clone(),
        job: Some(JobId(7)),
        next_at: Some(later(60)),
    };
    outcomes.into_iter().map(line).collect()
}

/// One that has everything, made of whatever there is.
pub(crate) fn full(small: u32, at: Option<Timestamp>) -> Trigger {
    let instant = at.unwrap_or(NOW);
    let by = Some(UserId::stored("ada".into()));
    let pause = Pause { by, at: instant, note: Some("for the night".into()) };
    Trigger {
        spec: TriggerSpec {
            run_at: at,
            condition: Some(condition()),
            cooldown_secs: u64::from(small),
            priority: 10,
            timeout_secs: Some(60),
            trace: Some("trace-001".into()),
            parent_task_id: Some("task-001".into()),
            sees_tenant: true,
            ..spec(TriggerType::Conditional)
        },
        status: Status::Paused(Box::new(pause)),
        leaves: leaves(instant),
        last_triggered_at: at,
        last_eval_at: at,
        outstanding: Some(Outstanding {
            job: JobId(8),
            at: instant,
            look_at: later(60),
            leaf: Some(4),
        }),
        last_status: Some(LastStatus::Skipped),
        last_error: Some("refused: BACKLOG_FULL".into()),
        last_duration_ms: Some(u64::from(small)),
        next_run_at: at,
        fired: small,
        log: log(instant),
        made_elsewhere_at: at,
    }
}
