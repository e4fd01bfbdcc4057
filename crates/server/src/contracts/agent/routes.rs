//! The table of routes of the agent contract.

use super::{find, pull, runs, triggers, wire};
use crate::config::Config;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{ANYONE, PULLERS, SUBMITTERS, get, post, roles, route};
use crate::route::{Route, Takes};
use hyper::Method;

const TAG: &str = "agent";

/// Every route.
pub(super) fn table(_config: &Config) -> Vec<Route> {
    let mut routes = run_routes();
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
