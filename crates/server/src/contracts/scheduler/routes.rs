//! The table of routes of this contract.

use super::wire::{
    SchedulerAck, SchedulerAcked, SchedulerAudits, SchedulerEnqueue, SchedulerEnqueued,
    SchedulerFail, SchedulerFailed, SchedulerJob, SchedulerPull, SchedulerPulled, SchedulerRenew,
    SchedulerRenewed, SchedulerStats,
};
use super::{jobs, objects, work};
use crate::config::Config;
use crate::governed::{
    GovernedGate, GovernedGates, GovernedObject, OPERATORS, PutGovernedObject, SetGovernedGate,
};
use crate::openapi::{Doc, Gives, KeyRule, shape};
use crate::route::table::{ANYONE, LOOKERS, SUBMITTERS, get, post, put, roles};
use crate::route::{Route, Takes};
use mainspring_kernel::Role;

const TAG: &str = "scheduler";
const WORKERS: &[Role] = &[Role::Worker];

/// Every route.
pub(super) fn table(_config: &Config) -> Vec<Route> {
    let mut routes = job_routes();
    routes.extend(work_routes());
    routes.extend(object_routes());
    routes
}

fn job_routes() -> Vec<Route> {
    vec![
        post(
            "/scheduler/jobs",
            roles!(SUBMITTERS, jobs::enqueue),
            Takes::Json,
            Doc::new(TAG, "enqueueDueJob", "Enqueue a job on an object")
                .text(
                    "201 for a new job, 200 for one that its key already names: nothing else is \
                     compared, and a key is never free again.",
                )
                .key(KeyRule::None)
                .takes(shape::<SchedulerEnqueue>)
                .gives(201, Gives::Bare(shape::<SchedulerEnqueued>))
                .also(200, "The job that there is", Gives::Bare(shape::<SchedulerEnqueued>)),
        ),
        get(
            "/scheduler/jobs/{job_id}",
            roles!(ANYONE, jobs::get),
            Doc::new(TAG, "getDueJob", "Read a job").gives(200, Gives::Bare(shape::<SchedulerJob>)),
        ),
        get(
            "/scheduler/stats",
            roles!(LOOKERS, jobs::stats),
            Doc::new(TAG, "getDueStats", "How the jobs of the tenant stand")
                .gives(200, Gives::Bare(shape::<SchedulerStats>)),
        ),
        get(
            "/scheduler/audits",
            roles!(LOOKERS, jobs::audits),
            Doc::new(TAG, "listDueAudits", "What happened to jobs, the latest first")
                .query(&jobs::AUDITS)
                .gives(200, Gives::Bare(shape::<SchedulerAudits>)),
        ),
    ]
}

fn work_routes() -> Vec<Route> {
    vec![
        post(
            "/scheduler/jobs/pull",
            roles!(WORKERS, work::pull),
            Takes::Json,
            Doc::new(TAG, "pullDueJobs", "Take jobs that are due")
                .text("In the order of `run_at`, and of priority where that is the same.")
                .takes(shape::<SchedulerPull>)
                .gives(200, Gives::Bare(shape::<SchedulerPulled>)),
        ),
        post(
            "/scheduler/jobs/{job_id}/ack",
            roles!(WORKERS, work::ack),
            Takes::Json,
            Doc::new(TAG, "ackDueJob", "Report that a job was done")
                .text(
                    "The same report again is answered again; another one is a 409. A gate that \
                     was closed meanwhile takes the job back: 409 `GATE_CLOSED`.",
                )
                .takes(shape::<SchedulerAck>)
                .gives(200, Gives::Bare(shape::<SchedulerAcked>)),
        ),
        post(
            "/scheduler/jobs/{job_id}/fail",
            roles!(WORKERS, work::fail),
            Takes::Json,
            Doc::new(TAG, "failDueJob", "Report that a job could not be done")
                .takes(shape::<SchedulerFail>)
                .gives(200, Gives::Bare(shape::<SchedulerFailed>)),
        ),
        post(
            "/scheduler/jobs/{job_id}/renew",
            roles!(WORKERS, work::renew),
            Takes::MaybeJson,
            Doc::new(TAG, "renewDueJob", "Keep a job for longer")
                .takes(shape::<SchedulerRenew>)
                .gives(200, Gives::Bare(shape::<SchedulerRenewed>)),
        ),
    ]
}

fn object_routes() -> Vec<Route> {
    vec![
        put(
            "/scheduler/objects/{object_type}/{object_id}",
            roles!(OPERATORS, objects::put),
            Doc::new(TAG, "putDueObject", "Say what is to be known of an object")
                .text("What is left out stays as it is.")
                .takes(shape::<PutGovernedObject>)
                .gives(200, Gives::Bare(shape::<GovernedObject>)),
        ),
        get(
            "/scheduler/objects/{object_type}/{object_id}",
            roles!(ANYONE, objects::get),
            Doc::new(TAG, "getDueObject", "Read an object")
                .gives(200, Gives::Bare(shape::<GovernedObject>)),
        ),
        get(
            "/scheduler/gates",
            roles!(ANYONE, objects::gates),
            Doc::new(TAG, "listDueGates", "Read all gates of the tenant")
                .gives(200, Gives::Bare(shape::<GovernedGates>)),
        ),
        put(
            "/scheduler/gates/{gate}",
            roles!(OPERATORS, objects::set_gate),
            Doc::new(TAG, "setDueGate", "Open or close a gate")
                .text("From the answer on, no server hands out a job that the gate holds.")
                .takes(shape::<SetGovernedGate>)
                .gives(200, Gives::Bare(shape::<GovernedGate>)),
        ),
        get(
            "/scheduler/gates/{gate}",
            roles!(ANYONE, objects::get_gate),
            Doc::new(TAG, "getDueGate", "Read a gate")
                .gives(200, Gives::Bare(shape::<GovernedGate>)),
        ),
    ]
}
