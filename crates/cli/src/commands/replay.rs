//! `mainspring replay`: the five replays that gate a release, run against a live server through its
//! internal routes. Each submits a job of its own, drives it by hand, then compares the job's
//! recorded history with what the table below expects.

use crate::exit::{self, usage};
use crate::output::{Output, say, say_json, table};
use crate::progress::Progress;
use crate::session::Session;
use anyhow::Context;
use mainspring_sdk::api::registry::SetType;
use mainspring_sdk::api::token::IssueToken;
use mainspring_sdk::{Client, Error, Submit};
use serde::Serialize;
use std::time::Duration;

/// The type of the jobs that replays submit.
const JOB_TYPE: &str = "mainspring_replay";
/// What the lifecycle answers to a move it does not have.
const ILLEGAL_MOVE: &str = "WF_STATE_TRANSITION_INVALID";

/// Which replays to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these, such as RP-003
    #[arg(value_name = "REPLAY")]
    only: Vec<String>,
}

/// One thing done to the job by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Run an attempt that succeeds.
    Succeed,
    /// Run an attempt that fails in a way that may pass.
    FailTransiently,
    /// Write an end state again; the server must refuse.
    WriteAgain(&'static str),
}

/// One replay: what is done, and what the history must be after it.
struct Plan {
    id: &'static str,
    steps: &'static [Step],
    states: &'static [&'static str],
    retry_count: u16,
    has_item: bool,
}

use Step::{FailTransiently as Fail, Succeed, WriteAgain};

const PLANS: [Plan; 5] = [
    Plan {
        id: "RP-001",
        steps: &[Succeed],
        states: &["queued", "running", "succeeded"],
        retry_count: 0,
        has_item: false,
    },
    Plan {
        id: "RP-002",
        steps: &[Fail, Succeed],
        states: &["queued", "running", "retrying", "running", "succeeded"],
        retry_count: 1,
        has_item: false,
    },
    Plan {
        id: "RP-003",
        steps: &[Fail, Fail, Fail, Succeed],
        states: &[
            "queued",
            "running",
            "retrying",
            "running",
            "retrying",
            "running",
            "retrying",
            "running",
            "succeeded",
        ],
        retry_count: 3,
        has_item: false,
    },
    Plan {
        id: "RP-004",
        steps: &[Fail, Fail, Fail, Fail],
        states: &[
            "queued",
            "running",
            "retrying",
            "running",
            "retrying",
            "running",
            "retrying",
            "running",
            "dlq_pending",
            "dlq_recorded",
            "failed",
        ],
        retry_count: 3,
        has_item: true,
    },
    Plan {
        id: "RP-005",
        steps: &[Succeed, WriteAgain("succeeded"), WriteAgain("failed")],
        states: &["queued", "running", "succeeded"],
        retry_count: 0,
        has_item: false,
    },
];

/// What a replay left behind.
#[derive(Debug, Serialize)]
struct Record {
    replay_id: &'static str,
    trace_id: String,
    job_id: String,
    retry_count: u16,
    status_transition: Vec<String>,
    expected: Vec<String>,
    dlq_id: Option<String>,
    /// What the server said to forbidden moves.
    refusals: Vec<String>,
    passed: bool,
    /// What is wrong, if it did not pass.
    problems: Vec<String>,
}

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    for id in &args.only {
        if !PLANS.iter().any(|plan| plan.id.eq_ignore_ascii_case(id)) {
            let known = PLANS.map(|plan| plan.id).join(", ");
            return Err(usage(format!("there is no replay {id:?}; there are {known}")));
        }
    }
    let (client, token_id) = internal_client(&session).await?;
    let outcome = run_plans(&args, &client, session.output).await;
    if let Some(token_id) = token_id {
        let revoked = session.client.revoke_token(&token_id).await;
        revoked.context("revoking the token of the replay")?;
    }
    let records = outcome?;
    let has_passed = records.iter().all(|record| record.passed);
    if session.is_json() {
        say_json(&serde_json::json!({"passed": has_passed, "replays": records}));
    } else {
        let columns = ["replay", "passed", "job", "trace", "retries", "transitions", "problems"];
        say(&table(&columns, records.iter().map(row)));
    }
    Ok(if has_passed { exit::OK } else { exit::REFUSED })
}

async fn run_plans(args: &Args, client: &Client, output: Output) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    let all = if args.only.is_empty() { PLANS.len() } else { args.only.len() };
    let bar = Progress::of_things("replaying", Some(all as u64), output);
    for plan in &PLANS {
        let is_wanted = args.only.iter().any(|id| plan.id.eq_ignore_ascii_case(id));
        if args.only.is_empty() || is_wanted {
            let ran = run_plan(plan, client).await;
            records.push(ran.with_context(|| format!("running {}", plan.id))?);
            bar.add(1);
        }
    }
    Ok(records)
}

/// A client whose token has the internal role, which no admin has by itself. An admin issues one
/// for the occasion; anybody else has to bring a token that fits.
async fn internal_client(session: &Session) -> anyhow::Result<(Client, Option<String>)> {
    let spec =
        SetType { domain: Some("replay".into()), max_retries: Some(3), ..SetType::default() };
    match session.client.set_type(JOB_TYPE, &spec).await {
        Ok(_) => {}
        // Without the right to register types, the type must be there already.
        Err(error) if matches!(error.status(), Some(401 | 403)) => {
            return Ok((session.client.clone(), None));
        }
        Err(error) => return Err(error.into()),
    }
    let wish = IssueToken {
        tenant_id: "default".into(),
        user_id: "replay".into(),
        roles: ["internal", "submitter", "operator"].map(ToOwned::to_owned).to_vec(),
        expires_at: None,
    };
    match session.client.issue_token(&wish).await {
        Ok(token) => {
            // It goes on trusting whom it trusts.
            let client = session.client.with_token(token.token.as_deref().unwrap_or_default())?;
            Ok((client, Some(token.token_id)))
        }
        Err(error) if matches!(error.status(), Some(401 | 403)) => {
            Ok((session.client.clone(), None))
        }
        Err(error) => Err(error.into()),
    }
}

async fn run_plan(plan: &Plan, client: &Client) -> anyhow::Result<Record> {
    // A type and a queue of its own: no worker that happens to be around asks for it.
    let wish = Submit::job(JOB_TYPE, &serde_json::json!({"replay_id": plan.id}))?;
    let job = client.submit(&wish.queue("mainspring-replay").max_retries(3)).await?;
    let job = job.into_job().context("a job without a key is its submitter's own")?;
    let mut refusals = Vec::new();
    let mut problems = Vec::new();
    for step in plan.steps {
        match step {
            Succeed => drop(run_step(client, &job.job_id, None).await?),
            Fail => drop(run_step(client, &job.job_id, Some("transient_fail")).await?),
            WriteAgain(state) => match client.move_internally(&job.job_id, state).await {
                Ok(_) => problems.push(format!("a second {state} was accepted")),
                Err(Error::Refused(refusal)) => {
                    if refusal.code != ILLEGAL_MOVE {
                        problems.push(format!("a second {state} gave {}", refusal.code));
                    }
                    refusals.push(refusal.code.clone());
                }
                Err(error) => return Err(error.into()),
            },
        }
    }
    let after = client.job(&job.job_id).await?;
    let events = client.job_events(&job.job_id).await?.items;
    let states: Vec<String> = events.into_iter().map(|event| event.to_state).collect();
    problems.extend(compare(plan, &states, after.retry_count, after.dlq_id.as_deref()));
    Ok(Record {
        replay_id: plan.id,
        trace_id: after.trace_id,
        job_id: after.job_id,
        retry_count: after.retry_count,
        status_transition: states,
        expected: plan.states.iter().map(|state| (*state).to_owned()).collect(),
        dlq_id: after.dlq_id,
        refusals,
        passed: problems.is_empty(),
        problems,
    })
}

/// Runs one attempt by hand. A retry that is not due yet is waited for, if the server minds.
async fn run_step(
    client: &Client,
    id: &str,
    switch: Option<&str>,
) -> Result<mainspring_sdk::api::internal::Ran, Error> {
    let mut tries = 0;
    loop {
        match client.run_internally(id, switch).await {
            Err(Error::Refused(refusal)) if refusal.code == "NOT_DUE" && tries < 60 => {
                tries += 1;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            other => return other,
        }
    }
}

fn compare(plan: &Plan, states: &[String], retry_count: u16, item: Option<&str>) -> Vec<String> {
    let mut problems = Vec::new();
    if states != plan.states {
        problems.push("the history differs from the expected one".into());
    }
    if retry_count != plan.retry_count {
        problems.push(format!("retry_count is {retry_count}, not {}", plan.retry_count));
    }
    if item.is_some() != plan.has_item {
        let told = if plan.has_item { "there is no dlq_id" } else { "there is a dlq_id" };
        problems.push(told.into());
    }
    problems
}

fn row(record: &Record) -> Vec<String> {
    vec![
        record.replay_id.to_owned(),
        if record.passed { "yes".into() } else { "NO".into() },
        record.job_id.clone(),
        record.trace_id.clone(),
        record.retry_count.to_string(),
        record.status_transition.join(" > "),
        record.problems.join("; "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::StateName;

    #[test]
    fn plans_walk_the_lifecycle() {
        for plan in &PLANS {
            let states = plan.states.iter().map(|name| StateName::parse(name).unwrap());
            let states: Vec<StateName> = states.collect();
            for pair in states.windows(2) {
                assert!(pair[0].may_become(pair[1]), "{}: {pair:?}", plan.id);
            }
            let retries = states.iter().filter(|state| **state == StateName::Retrying).count();
            assert_eq!(retries, usize::from(plan.retry_count), "{}", plan.id);
            let is_failed = states.last() == Some(&StateName::Failed);
            assert_eq!(is_failed, plan.has_item, "{}", plan.id);
        }
        assert_eq!(PLANS.map(|plan| plan.id).join(" "), "RP-001 RP-002 RP-003 RP-004 RP-005");
    }

    #[test]
    fn every_difference_is_told() {
        let plan = &PLANS[3];
        let states: Vec<String> = plan.states.iter().map(|state| (*state).to_owned()).collect();
        assert!(compare(plan, &states, 3, Some("dlq")).is_empty());
        assert_eq!(compare(plan, &states[..4], 2, None).len(), 3);
    }
}
