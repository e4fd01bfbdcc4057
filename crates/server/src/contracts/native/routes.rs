//! The table of routes: where, who may, what comes in and what goes out. The OpenAPI document is
//! made from it, so that the two cannot disagree.

mod desk;
mod internal;
mod subscriptions;
mod triggers;

use super::filters::{GROUP_FILTERS, ITEM_FILTERS, JOB_FILTERS, PAGE};
use super::{
    audit, dlq, events, jobs, objects, queues, runtime, schedules, tenants, tokens, types, work,
    workers,
};
use crate::config::Config;
use crate::governed::{
    GovernedGate, GovernedObject, OPERATORS, PutGovernedObject, SetGovernedGate,
};
use crate::openapi::{Doc, Gives, KeyRule, shape};
use crate::route::table::{
    ADMINS, ANYONE, LOOKERS, PULLERS, SUBMITTERS, get, open, post, put, roles, route,
};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;
use mainspring_kernel::Role;

const APPROVERS: &[Role] = &[Role::Approver];
const DISCARDERS: &[Role] = &[Role::Operator, Role::Internal];

/// Every route; those for moving jobs by hand only where they are wanted.
pub(super) fn table(config: &Config) -> Vec<Route> {
    let mut routes = job_routes();
    routes.extend(work_routes());
    routes.extend(registry_routes());
    routes.extend(tenant_routes());
    routes.extend(dlq_routes());
    routes.extend(desk::table());
    routes.extend(governed_routes());
    routes.extend(audit_routes());
    routes.extend(schedule_routes());
    routes.extend(schedule_steering_routes());
    routes.extend(triggers::table());
    routes.extend(subscriptions::table());
    routes.extend(admin_routes());
    if config.has_internal_routes {
        routes.extend(internal::table());
    }
    routes
}

const LIST_TEXT: &str = "What is asked for by several parameters is all of it. `total` counts up \
    to 10,000 matches; of more it is null and `total_at_least` is 10000. A cursor holds for the \
    same caller and the same filters.";

const WAIT: (&str, &str) = ("wait_ms", "Wait this long for the job to end, at most 60000.");

fn job_routes() -> Vec<Route> {
    let job = Gives::One(shape::<api::job::Job>);
    vec![
        post(
            "/api/v1/jobs",
            roles!(SUBMITTERS, jobs::submit),
            Takes::Json,
            Doc::new("jobs", "submitJob", "Submit a job")
                .text("201 for a new job, 200 for one that its idempotency key already names.")
                .query(&[WAIT])
                .key(KeyRule::HeaderOrBody)
                .takes(shape::<api::job::Submit>)
                .gives(201, job)
                .also(
                    200,
                    "The job that the key names, or only where it stands if it may not be read",
                    Gives::Either(shape::<api::job::Job>, shape::<api::job::SubmittedItem>),
                ),
        ),
        post(
            "/api/v1/jobs/batch",
            roles!(SUBMITTERS, jobs::submit_batch),
            Takes::Batch,
            Doc::new("jobs", "submitJobs", "Submit up to 10,000 jobs")
                .text("Each job is accepted or refused on its own; the answer keeps the order.")
                .key(KeyRule::Items)
                .takes(shape::<api::job::SubmitBatch>)
                .gives(200, Gives::One(shape::<api::job::SubmittedBatch>)),
        ),
        get(
            "/api/v1/jobs",
            roles!(ANYONE, jobs::list),
            Doc::new("jobs", "listJobs", "List jobs, newest first")
                .text(LIST_TEXT)
                .query(&JOB_FILTERS)
                .gives(200, Gives::Page(shape::<api::job::Job>)),
        ),
        get(
            "/api/v1/jobs/{job_id}",
            roles!(ANYONE, jobs::get),
            Doc::new("jobs", "getJob", "Read a job").query(&[WAIT]).gives(200, job),
        ),
        get(
            "/api/v1/jobs/{job_id}/events",
            roles!(ANYONE, jobs::history),
            Doc::new("jobs", "getJobEvents", "Read a job's history")
                .gives(200, Gives::One(shape::<api::job::History>)),
        ),
        get(
            "/api/v1/jobs/{job_id}/explain",
            roles!(ANYONE, jobs::explain),
            Doc::new("jobs", "explainJob", "Ask why a job is not running yet")
                .gives(200, Gives::One(shape::<api::job::Explanation>)),
        ),
        post(
            "/api/v1/jobs/{job_id}/cancel",
            roles!(SUBMITTERS, jobs::cancel),
            Takes::MaybeJson,
            Doc::new("jobs", "cancelJob", "Cancel a job that has not ended")
                .key(KeyRule::Header)
                .takes(shape::<api::job::Cancel>)
                .gives(202, job),
        ),
    ]
}

fn work_routes() -> Vec<Route> {
    let reported = Gives::One(shape::<api::work::Reported>);
    let effect = Gives::One(shape::<api::work::Effect>);
    vec![
        post(
            "/api/v1/work/pull",
            roles!(PULLERS, work::pull),
            Takes::Json,
            Doc::new("work", "pull", "Get jobs to work on")
                .text("A worker gets jobs of its own tenant, an admin those of every tenant.")
                .takes(shape::<api::work::Pull>)
                .gives(200, Gives::One(shape::<api::work::Pulled>)),
        ),
        post(
            "/api/v1/work/leave",
            roles!(PULLERS, work::leave),
            Takes::Json,
            Doc::new("work", "leave", "Say that a worker is about to stop")
                .text("Its waiting pulls are answered at once, so that no job is on its way to it.")
                .takes(shape::<api::work::Leave>)
                .gives(200, Gives::One(shape::<api::work::Left>)),
        ),
        post(
            "/api/v1/work/complete",
            open!(Lease, work::complete),
            Takes::Batch,
            Doc::new("work", "complete", "Report that attempts succeeded")
                .text("The lease token is proof enough; a pull that comes along needs a worker.")
                .takes(shape::<api::work::Complete>)
                .gives(200, reported),
        ),
        post(
            "/api/v1/work/fail",
            open!(Lease, work::fail),
            Takes::Batch,
            Doc::new("work", "fail", "Report that attempts failed")
                .takes(shape::<api::work::Fail>)
                .gives(200, reported),
        ),
        post(
            "/api/v1/work/release",
            open!(Lease, work::release),
            Takes::Batch,
            Doc::new("work", "release", "Give attempts back unused")
                .takes(shape::<api::work::Release>)
                .gives(200, reported),
        ),
        post(
            "/api/v1/work/heartbeat",
            open!(Lease, work::heartbeat),
            Takes::Batch,
            Doc::new("work", "heartbeat", "Renew leases")
                .takes(shape::<api::work::Heartbeat>)
                .gives(200, Gives::One(shape::<api::work::Beaten>)),
        ),
        put(
            "/api/v1/work/effects/{job_id}/{name}",
            open!(Lease, work::put_effect),
            Doc::new("work", "commitEffect", "Commit a side effect once")
                .text("A second commit under the same name gets the first one's value back.")
                .header(api::LEASE_HEADER, "The lease token, unless the body has it.")
                .takes(shape::<api::work::CommitEffect>)
                .gives(200, effect),
        ),
        get(
            "/api/v1/work/effects/{job_id}/{name}",
            open!(Lease, work::get_effect),
            Doc::new("work", "getEffect", "Read a committed side effect")
                .text("With the lease token in `x-lease-token`, or as one who may see the job.")
                .header(api::LEASE_HEADER, "The lease token.")
                .gives(200, effect),
        ),
    ]
}

fn audit_routes() -> Vec<Route> {
    vec![
        get(
            "/api/v1/audit",
            roles!(LOOKERS, audit::list),
            Doc::new("audit", "listAudit", "List the audit trail, the latest line first")
                .text("Of one of `action`, `actor`, and object only; without a filter, of all.")
                .query(&audit::FILTERS)
                .gives(200, Gives::Page(shape::<api::audit::AuditLine>)),
        ),
        get(
            "/api/v1/audit/verify",
            roles!(LOOKERS, audit::verify),
            Doc::new("audit", "verifyAudit", "See whether the audit trail is whole")
                .text("And whether the moves of jobs are what was sealed: 409 `AUDIT_INTEGRITY_BROKEN` if a line, or a move, was changed, put elsewhere or taken away.")
                .query(&audit::VERIFY)
                .gives(200, Gives::One(shape::<api::audit::AuditVerdict>)),
        ),
    ]
}

fn governed_routes() -> Vec<Route> {
    let object = Gives::One(shape::<GovernedObject>);
    let gate = Gives::One(shape::<GovernedGate>);
    vec![
        put(
            "/api/v1/objects/{object_type}/{object_id}",
            roles!(OPERATORS, objects::put),
            Doc::new("governance", "putObject", "Say what is to be known of an object")
                .text("What is left out stays as it is.")
                .takes(shape::<PutGovernedObject>)
                .gives(200, object),
        ),
        get(
            "/api/v1/objects",
            roles!(ANYONE, objects::list),
            Doc::new("governance", "listObjects", "List the objects of the tenant")
                .query(&PAGE)
                .gives(200, Gives::Page(shape::<GovernedObject>)),
        ),
        get(
            "/api/v1/objects/{object_type}/{object_id}",
            roles!(ANYONE, objects::get),
            Doc::new("governance", "getObject", "Read an object").gives(200, object),
        ),
        get(
            "/api/v1/gates",
            roles!(ANYONE, objects::gates),
            Doc::new("governance", "listGates", "Read all gates of the tenant")
                .gives(200, Gives::Page(shape::<GovernedGate>)),
        ),
        put(
            "/api/v1/gates/{gate}",
            roles!(OPERATORS, objects::set_gate),
            Doc::new("governance", "setGate", "Open or close a gate")
                .text("From the answer on, no server hands out a job that the gate holds.")
                .takes(shape::<SetGovernedGate>)
                .gives(200, gate),
        ),
        get(
            "/api/v1/gates/{gate}",
            roles!(ANYONE, objects::get_gate),
            Doc::new("governance", "getGate", "Read a gate").gives(200, gate),
        ),
    ]
}

/// What tenants get and may have.
fn tenant_routes() -> Vec<Route> {
    vec![
        get(
            "/api/v1/tenants",
            roles!(ADMINS, tenants::list),
            Doc::new("registry", "listTenants", "List tenants that somebody has set")
                .query(&PAGE)
                .gives(200, Gives::Page(shape::<api::registry::Tenant>)),
        ),
        get(
            "/api/v1/tenants/{tenant_id}",
            roles!(ADMINS, tenants::get),
            Doc::new("registry", "getTenant", "What a tenant gets, may have, and has")
                .gives(200, Gives::One(shape::<api::registry::Tenant>)),
        ),
        put(
            "/api/v1/tenants/{tenant_id}",
            roles!(ADMINS, tenants::set),
            Doc::new("registry", "setTenant", "Say what a tenant gets and may have; pause it")
                .takes(shape::<api::registry::SetTenant>)
                .gives(200, Gives::One(shape::<api::registry::Tenant>)),
        ),
    ]
}

fn registry_routes() -> Vec<Route> {
    let job_type = Gives::One(shape::<api::registry::Type>);
    let queue = Gives::One(shape::<api::registry::Queue>);
    vec![
        get(
            "/api/v1/types",
            roles!(ANYONE, types::list),
            Doc::new("registry", "listTypes", "List types")
                .gives(200, Gives::Page(shape::<api::registry::Type>)),
        ),
        get(
            "/api/v1/types/{name}",
            roles!(ANYONE, types::get),
            Doc::new("registry", "getType", "Read a type").gives(200, job_type),
        ),
        put(
            "/api/v1/types/{name}",
            roles!(ADMINS, types::set),
            Doc::new("registry", "setType", "Register or replace a type")
                .takes(shape::<api::registry::SetType>)
                .gives(200, job_type),
        ),
        post(
            "/api/v1/types/{name}/pause",
            roles!(ADMINS, types::pause),
            Takes::Nothing,
            Doc::new("registry", "pauseType", "Stop handing out a type's jobs")
                .gives(200, job_type),
        ),
        post(
            "/api/v1/types/{name}/resume",
            roles!(ADMINS, types::resume),
            Takes::Nothing,
            Doc::new("registry", "resumeType", "Hand out a type's jobs again").gives(200, job_type),
        ),
        post(
            "/api/v1/types/{name}/circuit/reset",
            roles!(ADMINS, types::reset_circuit),
            Takes::Nothing,
            Doc::new("registry", "resetCircuit", "Close a type's circuit").gives(200, job_type),
        ),
        get(
            "/api/v1/queues",
            roles!(ADMINS, queues::list),
            Doc::new("registry", "listQueues", "List queues with their numbers")
                .gives(200, Gives::Page(shape::<api::registry::Queue>)),
        ),
        put(
            "/api/v1/queues/{name}",
            roles!(ADMINS, queues::set),
            Doc::new("registry", "setQueue", "Choose the order of a queue")
                .takes(shape::<api::registry::SetQueue>)
                .gives(200, queue),
        ),
        post(
            "/api/v1/queues/{name}/pause",
            roles!(ADMINS, queues::pause),
            Takes::Nothing,
            Doc::new("registry", "pauseQueue", "Stop handing out a queue's jobs").gives(200, queue),
        ),
        post(
            "/api/v1/queues/{name}/resume",
            roles!(ADMINS, queues::resume),
            Takes::Nothing,
            Doc::new("registry", "resumeQueue", "Hand out a queue's jobs again").gives(200, queue),
        ),
        get(
            "/api/v1/workers",
            roles!(LOOKERS, workers::list),
            Doc::new("registry", "listWorkers", "List workers heard of lately")
                .query(&PAGE)
                .gives(200, Gives::Page(shape::<api::registry::Worker>)),
        ),
    ]
}

fn dlq_routes() -> Vec<Route> {
    let standing = Gives::One(shape::<api::dlq::DlqStanding>);
    vec![
        get(
            "/api/v1/dlq/items",
            roles!(ANYONE, dlq::list),
            Doc::new("dlq", "listDlqItems", "List dead letter items, newest first")
                .text(LIST_TEXT)
                .query(&ITEM_FILTERS)
                .gives(200, Gives::Page(shape::<api::dlq::DlqItem>)),
        ),
        get(
            "/api/v1/dlq/groups",
            roles!(ANYONE, dlq::groups),
            Doc::new("dlq", "listDlqGroups", "List failures: dead letter items that have the same")
                .text(
                    "Those with most items first; of open items unless `status` says otherwise. \
                     The latest 10,000 items are looked at; `complete` says whether those are all.",
                )
                .query(&GROUP_FILTERS)
                .gives(200, Gives::One(shape::<api::dlq::DlqGroups>)),
        ),
        get(
            "/api/v1/dlq/items/{dlq_id}",
            roles!(ANYONE, dlq::get),
            Doc::new("dlq", "getDlqItem", "Read a dead letter item with its snapshots")
                .gives(200, Gives::One(shape::<api::dlq::DlqItem>)),
        ),
        post(
            "/api/v1/dlq/items/{dlq_id}/requeue",
            roles!(SUBMITTERS, dlq::requeue),
            Takes::Nothing,
            Doc::new("dlq", "requeueDlqItem", "Run it again as a new job")
                .text("With an `Idempotency-Key`, a repeat gets the same job back.")
                .key(KeyRule::Header)
                .gives(202, Gives::One(shape::<api::dlq::Requeued>)),
        ),
        post(
            "/api/v1/dlq/items/{dlq_id}/discard",
            roles!(DISCARDERS, dlq::discard),
            Takes::Json,
            Doc::new("dlq", "discardDlqItem", "Ask for an item to be dropped")
                .key(KeyRule::Header)
                .takes(shape::<api::dlq::Discard>)
                .gives(200, standing),
        ),
        post(
            "/api/v1/dlq/items/{dlq_id}/approve",
            roles!(APPROVERS, dlq::approve),
            Takes::Json,
            Doc::new("dlq", "approveDiscard", "Agree to a discard, as another person")
                .text(
                    "Names the version that was read: an item that has changed since is not \
                     approved. The approver's token must be older than the first request, and \
                     neither person may have issued the other's token, directly or through others.",
                )
                .takes(shape::<api::dlq::Approve>)
                .gives(200, standing),
        ),
        post(
            "/api/v1/dlq/items/{dlq_id}/break-glass",
            roles!(ADMINS, dlq::break_glass),
            Takes::Json,
            Doc::new("dlq", "breakGlass", "Drop an item alone, in an emergency")
                .text("The item shows for ever who did it, why and when; it is logged, too.")
                .takes(shape::<api::dlq::BreakGlass>)
                .gives(200, standing),
        ),
        post(
            "/api/v1/dlq/items/{dlq_id}/reject",
            roles!(APPROVERS, dlq::reject),
            Takes::Nothing,
            Doc::new("dlq", "rejectDiscard", "Refuse a discard; the item is open again")
                .gives(200, standing),
        ),
    ]
}

const LANGUAGE: (&str, &str) =
    ("Accept-Language", "Descriptions are in Chinese if this starts with `zh`, else in English.");

/// The documentation of an answer with a description in it.
fn described(id: &'static str, summary: &'static str) -> Doc {
    Doc::new("schedules", id, summary).header(LANGUAGE.0, LANGUAGE.1)
}

fn schedule_routes() -> Vec<Route> {
    let schedule = Gives::One(shape::<api::schedule::Schedule>);
    let preview = Gives::One(shape::<api::schedule::Preview>);
    vec![
        post(
            "/api/v1/schedules",
            roles!(SUBMITTERS, schedules::create),
            Takes::Json,
            described("createSchedule", "Make a schedule: a rule that makes jobs at set times")
                .takes(shape::<api::schedule::SetSchedule>)
                .gives(201, schedule),
        ),
        get(
            "/api/v1/schedules",
            roles!(ANYONE, schedules::list),
            described("listSchedules", "List schedules, newest first")
                .text(LIST_TEXT)
                .query(&schedules::FILTERS)
                .gives(200, Gives::Page(shape::<api::schedule::Schedule>)),
        ),
        post(
            "/api/v1/schedules/preview",
            roles!(ANYONE, schedules::preview_unsaved),
            Takes::Json,
            described(
                "previewUnsavedSchedule",
                "Ask when a schedule would fire, without making it",
            )
            .query(&schedules::PREVIEW)
            .takes(shape::<api::schedule::SetSchedule>)
            .gives(200, preview),
        ),
        get(
            "/api/v1/schedules/{schedule_id}",
            roles!(ANYONE, schedules::get),
            described("getSchedule", "Read a schedule").gives(200, schedule),
        ),
        put(
            "/api/v1/schedules/{schedule_id}",
            roles!(SUBMITTERS, schedules::update),
            described("updateSchedule", "Have a schedule do something else from now on")
                .text("All of what it is to do is replaced; what is left out gets its default.")
                .takes(shape::<api::schedule::SetSchedule>)
                .gives(200, schedule),
        ),
        route(
            Method::DELETE,
            "/api/v1/schedules/{schedule_id}",
            roles!(SUBMITTERS, schedules::remove),
            Takes::Nothing,
            Doc::new("schedules", "deleteSchedule", "Take a schedule away")
                .text("Its jobs stay. One that a template would bring back is stopped instead.")
                .gives(200, Gives::One(shape::<api::schedule::RemovedSchedule>)),
        ),
    ]
}

/// What is done with a schedule that is there.
fn schedule_steering_routes() -> Vec<Route> {
    let schedule = Gives::One(shape::<api::schedule::Schedule>);
    let preview = Gives::One(shape::<api::schedule::Preview>);
    vec![
        post(
            "/api/v1/schedules/{schedule_id}/pause",
            roles!(SUBMITTERS, schedules::pause),
            Takes::MaybeJson,
            described("pauseSchedule", "Have a schedule rest until it is resumed")
                .takes(shape::<api::schedule::PauseSchedule>)
                .gives(200, schedule),
        ),
        post(
            "/api/v1/schedules/{schedule_id}/resume",
            roles!(SUBMITTERS, schedules::resume),
            Takes::Nothing,
            described("resumeSchedule", "Have a schedule go on with what is due from now on")
                .gives(200, schedule),
        ),
        post(
            "/api/v1/schedules/{schedule_id}/stop",
            roles!(SUBMITTERS, schedules::stop),
            Takes::Nothing,
            described("stopSchedule", "End a schedule for good; it can still be read")
                .gives(200, schedule),
        ),
        post(
            "/api/v1/schedules/{schedule_id}/trigger",
            roles!(SUBMITTERS, schedules::trigger),
            Takes::Nothing,
            Doc::new("schedules", "triggerSchedule", "Make a job of a schedule now")
                .gives(202, Gives::One(shape::<api::schedule::Triggered>)),
        ),
        post(
            "/api/v1/schedules/{schedule_id}/backfill",
            roles!(SUBMITTERS, schedules::backfill),
            Takes::Json,
            Doc::new("schedules", "backfillSchedule", "Make jobs that firings of the past lack")
                .text("No firing ever has two jobs, so it can be asked again.")
                .takes(shape::<api::schedule::Backfill>)
                .gives(200, Gives::One(shape::<api::schedule::Backfilled>)),
        ),
        get(
            "/api/v1/schedules/{schedule_id}/preview",
            roles!(ANYONE, schedules::preview),
            described("previewSchedule", "Ask when a schedule will fire")
                .query(&schedules::PREVIEW)
                .gives(200, preview),
        ),
        get(
            "/api/v1/schedules/{schedule_id}/history",
            roles!(ANYONE, schedules::history),
            Doc::new("schedules", "getScheduleHistory", "Read what became of the latest firings")
                .gives(200, Gives::One(shape::<api::schedule::ScheduleHistory>)),
        ),
    ]
}

fn admin_routes() -> Vec<Route> {
    let token = Gives::One(shape::<api::token::Token>);
    vec![
        post(
            "/api/v1/tokens",
            roles!(ADMINS, tokens::issue),
            Takes::Json,
            Doc::new("admin", "issueToken", "Make an access token; its secret is shown once")
                .takes(shape::<api::token::IssueToken>)
                .gives(201, token),
        ),
        get(
            "/api/v1/tokens",
            roles!(ADMINS, tokens::list),
            Doc::new("admin", "listTokens", "List access tokens, without secrets")
                .query(&PAGE)
                .gives(200, Gives::Page(shape::<api::token::Token>)),
        ),
        get(
            "/api/v1/whoami",
            roles!(ANYONE, tokens::whoami),
            Doc::new("admin", "whoAmI", "Ask whose access token this is")
                .gives(200, Gives::One(shape::<api::token::Caller>)),
        ),
        route(
            Method::DELETE,
            "/api/v1/tokens/{token_id}",
            roles!(ADMINS, tokens::revoke),
            Takes::Nothing,
            Doc::new("admin", "revokeToken", "Revoke an access token at once").gives(200, token),
        ),
        post(
            "/api/v1/tokens/{token_id}/rotate",
            roles!(ADMINS, tokens::rotate),
            Takes::MaybeJson,
            Doc::new("admin", "rotateToken", "Replace an access token by one with a new secret")
                .text("The old one ends at once, or after the overlap; the secret is shown once.")
                .takes(shape::<api::token::RotateToken>)
                .gives(201, token),
        ),
        get(
            "/api/v1/events",
            roles!(ANYONE, events::follow),
            Doc::new("admin", "followEvents", "Follow the moves of jobs as server-sent events")
                .text(
                    "Goes on behind `Last-Event-ID`; a `reset` event says that moves are missing.",
                )
                .header("Last-Event-ID", "The same as `after`, and before it.")
                .query(&[("after", "Start behind this position; at the newest if left out.")])
                .gives(
                    200,
                    Gives::Events([
                        ("job_moved", shape::<api::event::JobMoved>),
                        ("reset", shape::<api::event::Reset>),
                    ]),
                ),
        ),
        get(
            "/api/v1/runtime",
            roles!(LOOKERS, runtime::get),
            Doc::new("admin", "getRuntime", "Read how the server is")
                .gives(200, Gives::One(shape::<api::runtime::Runtime>)),
        ),
    ]
}
