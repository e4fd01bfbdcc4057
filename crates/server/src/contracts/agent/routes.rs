//! The table of routes of the agent contract.

use super::{files, find, plans, pull, runs, status, triggers, wire};
use crate::config::Config;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{ANYONE, OPERATORS, PULLERS, SUBMITTERS, get, post, roles, route};
use crate::route::{Route, Takes};
use hyper::Method;
use serde_json::json;

const TAG: &str = "agent";

/// Every route.
pub(super) fn table(_config: &Config) -> Vec<Route> {
    let mut routes = run_routes();
    routes.extend(plan_routes());
    routes.extend(status_routes());
    routes.extend(trigger_routes());
    routes
}

fn trigger_routes() -> Vec<Route> {
    vec![
        post(
            "/agent/triggers",
            roles!(SUBMITTERS, triggers::create),
            Takes::Json,
            Doc::new(TAG, "createAgentTrigger", "Create a trigger")
                .takes(shape::<triggers::CreateTrigger>)
                .gives(201, Gives::Bare(shape::<triggers::AgentTrigger>)),
        ),
        get(
            "/agent/triggers",
            roles!(ANYONE, triggers::list),
            Doc::new(TAG, "listAgentTriggers", "List triggers")
                .query(&triggers::LIST)
                .gives(200, Gives::Bare(shape::<triggers::AgentTriggers>)),
        ),
        get(
            "/agent/triggers/{id}",
            roles!(ANYONE, triggers::get),
            Doc::new(TAG, "getAgentTrigger", "Read a trigger")
                .gives(200, Gives::Bare(shape::<triggers::AgentTrigger>)),
        ),
        route(
            Method::DELETE,
            "/agent/triggers/{id}",
            roles!(SUBMITTERS, triggers::remove),
            Takes::Nothing,
            Doc::new(TAG, "deleteAgentTrigger", "Take a trigger away; a run that it made goes on")
                .gives(200, Gives::Bare(shape::<triggers::RemovedAgentTrigger>)),
        ),
    ]
}

fn run_routes() -> Vec<Route> {
    vec![
        post(
            "/agent/runs",
            roles!(SUBMITTERS, runs::create),
            Takes::Json,
            Doc::new(TAG, "createRun", "Create a run")
                .text(
                    "201 for a new run. 200 with `idempotentHit` for one that its id already \
                     names, if it is the same; 409 if it is another.",
                )
                .takes(shape::<wire::CreateRun>)
                .gives(201, Gives::Bare(shape::<wire::AgentRun>))
                .also(
                    200,
                    "The run that there is, or only where it stands if it may not be read",
                    Gives::EitherBare(shape::<wire::AgentRun>, shape::<wire::UnseenRun>),
                ),
        ),
        get(
            "/agent/runs",
            roles!(ANYONE, runs::list),
            Doc::new(TAG, "listRuns", "List runs, newest first")
                .query(&find::LIST)
                .gives(200, Gives::Bare(shape::<wire::AgentRuns>)),
        ),
        get(
            "/agent/runs/{id}",
            roles!(ANYONE, runs::get),
            Doc::new(TAG, "getRun", "Read a run")
                .text("By its name, or by the id of its job.")
                .gives(200, Gives::Bare(shape::<wire::AgentRun>)),
        ),
        get(
            "/agent/runs/{id}/result",
            roles!(ANYONE, runs::result),
            Doc::new(TAG, "getRunResult", "Read the result of a run that has ended")
                .gives(200, Gives::Bare(shape::<wire::AgentResult>)),
        ),
        post(
            "/agent/runs/{id}/result",
            roles!(ANYONE, runs::report),
            Takes::Json,
            Doc::new(TAG, "reportRun", "Report how an attempt at a run ended")
                .text("The lease token is the proof that it is the caller's to report.")
                .takes(shape::<wire::ReportRun>)
                .gives(200, Gives::Bare(shape::<wire::ReportedRun>)),
        ),
        post(
            "/agent/runs/{id}/cancel",
            roles!(SUBMITTERS, runs::cancel),
            Takes::Nothing,
            Doc::new(TAG, "cancelRun", "Cancel a run or plan that has not ended")
                .text("It ends as failed, with the reason `killed`.")
                .gives(200, Gives::Bare(shape::<wire::ReportedRun>)),
        ),
        post(
            "/agent/pull",
            roles!(PULLERS, pull::pull),
            Takes::Json,
            Doc::new(TAG, "pullRuns", "Take runs and plans to work on")
                .text("Native heartbeats renew the leases: `jobId` and `leaseToken` name them.")
                .takes(shape::<wire::PullRuns>)
                .gives(200, Gives::Bare(shape::<wire::PulledRuns>)),
        ),
    ]
}

fn plan_routes() -> Vec<Route> {
    let one = Gives::Bare(shape::<wire::AgentPlan>);
    vec![
        post(
            "/agent/plans",
            roles!(SUBMITTERS, plans::create),
            Takes::Json,
            Doc::new(TAG, "createPlan", "Create a plan")
                .text("As a run, but tried once; a planner turns it into runs and triggers.")
                .takes(shape::<wire::CreateRun>)
                .narrowed(json!({
                    "maxAttempts": { "type": ["integer", "null"], "minimum": 1, "maximum": 1 },
                    "backoffMs": { "type": "null" },
                }))
                .gives(201, Gives::Bare(shape::<wire::AgentRun>))
                .also(
                    200,
                    "The plan that there is, or only where it stands if it may not be read",
                    Gives::EitherBare(shape::<wire::AgentRun>, shape::<wire::UnseenRun>),
                ),
        ),
        get(
            "/agent/plans",
            roles!(ANYONE, plans::list),
            Doc::new(TAG, "listPlans", "List plans, newest first")
                .text(
                    "With `status=needs_input` those that wait for an answer; they are also \
                     among those of `status=queue`.",
                )
                .query(&find::LIST)
                .gives(200, Gives::Bare(shape::<wire::AgentPlans>)),
        ),
        get(
            "/agent/plans/{id}",
            roles!(ANYONE, plans::get),
            Doc::new(TAG, "getPlan", "Read a plan").gives(200, one),
        ),
        post(
            "/agent/plans/{id}/result",
            roles!(ANYONE, plans::report),
            Takes::Json,
            Doc::new(TAG, "reportPlan", "Report what came of a plan")
                .text(
                    "`done` makes its runs and triggers in the same commit, all or none. \
                     `needs_input` has it wait for an answer. `failed` is final. The lease token \
                     is needed once the plan was handed out.",
                )
                .takes(shape::<wire::ReportPlan>)
                .gives(200, one),
        ),
        post(
            "/agent/plans/{id}/answer",
            roles!(ANYONE, plans::answer),
            Takes::Json,
            Doc::new(TAG, "answerPlan", "Answer what a plan asks; it goes back to the queue")
                .takes(shape::<wire::AnswerPlan>)
                .gives(200, one),
        ),
    ]
}

fn status_routes() -> Vec<Route> {
    vec![
        get(
            "/agent/task-status",
            roles!(ANYONE, status::list),
            Doc::new(TAG, "listTaskStatus", "List runs and plans that have ended, newest first")
                .query(&find::LIST)
                .gives(200, Gives::Bare(shape::<wire::AgentStatuses>)),
        ),
        get(
            "/agent/task-status/{id}",
            roles!(ANYONE, status::get),
            Doc::new(TAG, "getTaskStatus", "Read how a run or plan ended")
                .gives(200, Gives::Bare(shape::<wire::AgentStatus>)),
        ),
        post(
            "/agent/import",
            roles!(OPERATORS, files::import),
            Takes::Batch,
            Doc::new(TAG, "importRecords", "Take over records of another system")
                .text(
                    "What is there already stays as it is. Records of runs that were running \
                     become failed runs: nobody goes on with them.",
                )
                .takes(shape::<wire::ImportRecords>)
                .gives(200, Gives::Bare(shape::<wire::ImportedRecords>)),
        ),
    ]
}
