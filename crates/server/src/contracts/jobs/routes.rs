//! The table of routes of this contract.

use super::wire::{
    OrchestrationCron, OrchestrationInterval, OrchestrationJob, OrchestrationRecovery,
    OrchestrationRuntime, OrchestrationSchedule, OrchestrationSchedules, OrchestrationSubmit,
    OrchestrationTaskType, OrchestrationTemplates, OrchestrationTransition,
};
use super::{job, schedule, system};
use crate::config::Config;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{ANYONE, SUBMITTERS, get, post, roles};
use crate::route::{Route, Takes};

const TAG: &str = "orchestration";

/// Every route.
pub(super) fn table(_config: &Config) -> Vec<Route> {
    let mut routes = job_routes();
    routes.extend(system_routes());
    routes.extend(schedule_routes());
    routes
}

fn job_routes() -> Vec<Route> {
    let one = Gives::Answer(shape::<OrchestrationJob>);
    vec![
        post(
            "/jobs",
            roles!(SUBMITTERS, job::submit),
            Takes::Json,
            Doc::new(TAG, "submitTask", "Submit a task")
                .text("A repeat of the key answers the task that is there, with `idempotentHit`.")
                .takes(shape::<OrchestrationSubmit>)
                .gives(200, one),
        ),
        get(
            "/jobs",
            roles!(ANYONE, job::list),
            Doc::new(TAG, "listTasks", "List one's own tasks, oldest first")
                .text(
                    "A page has up to 1,000 tasks, or fewer large ones; if there are more, the \
                     header `x-next-cursor` says where they begin.",
                )
                .query(&job::LIST)
                .gives(200, Gives::Answers(shape::<OrchestrationJob>)),
        ),
        get(
            "/jobs/{taskId}",
            roles!(ANYONE, job::get),
            Doc::new(TAG, "getTask", "Read a task")
                .text("One that is not there and one of somebody else's are told alike: 403.")
                .gives(200, one),
        ),
        post(
            "/jobs/{taskId}/transition",
            roles!(ANYONE, job::transition),
            Takes::Json,
            Doc::new(TAG, "moveTask", "Move a task by hand")
                .text(
                    "`cancelled` is a cancel, `queued` a retry. `running`, `succeeded` and \
                     `failed` are for the roles `worker` and `internal`.",
                )
                .takes(shape::<OrchestrationTransition>)
                .gives(200, one),
        ),
        post(
            "/jobs/{taskId}/cancel",
            roles!(SUBMITTERS, job::cancel),
            Takes::Nothing,
            Doc::new(TAG, "cancelTask", "Cancel a task that has not ended").gives(200, one),
        ),
        post(
            "/jobs/{taskId}/retry",
            roles!(SUBMITTERS, job::retry),
            Takes::Nothing,
            Doc::new(TAG, "retryTask", "Do a failed task again, as a new one").gives(200, one),
        ),
    ]
}

fn system_routes() -> Vec<Route> {
    vec![
        get(
            "/jobs/task-types",
            roles!(ANYONE, system::types),
            Doc::new(TAG, "listTaskTypes", "List types")
                .gives(200, Gives::Answers(shape::<OrchestrationTaskType>)),
        ),
        get(
            "/jobs/runtime",
            roles!(ANYONE, system::runtime),
            Doc::new(TAG, "getOrchestrationRuntime", "Read how the server is; for admins")
                .gives(200, Gives::Answer(shape::<OrchestrationRuntime>)),
        ),
    ]
}

fn schedule_routes() -> Vec<Route> {
    let one = Gives::Answer(shape::<OrchestrationSchedule>);
    vec![
        post(
            "/jobs/schedules/interval",
            roles!(ANYONE, schedule::interval),
            Takes::Json,
            Doc::new(TAG, "scheduleByInterval", "Make tasks every so often")
                .takes(shape::<OrchestrationInterval>)
                .gives(200, one),
        ),
        post(
            "/jobs/schedules/cron",
            roles!(ANYONE, schedule::cron),
            Takes::Json,
            Doc::new(TAG, "scheduleByCron", "Make tasks by a cron expression, in UTC")
                .takes(shape::<OrchestrationCron>)
                .gives(200, one),
        ),
        get(
            "/jobs/schedules",
            roles!(ANYONE, schedule::list),
            Doc::new(TAG, "listTaskSchedules", "List one's own schedules, newest first")
                .query(&schedule::LIST)
                .gives(200, Gives::Answer(shape::<OrchestrationSchedules>)),
        ),
        get(
            "/jobs/schedules/{scheduleId}",
            roles!(ANYONE, schedule::get),
            Doc::new(TAG, "getTaskSchedule", "Read a schedule").gives(200, one),
        ),
        post(
            "/jobs/schedules/{scheduleId}/stop",
            roles!(ANYONE, schedule::stop),
            Takes::Nothing,
            Doc::new(TAG, "stopTaskSchedule", "Stop a schedule for good").gives(200, one),
        ),
        get(
            "/jobs/system-schedules/templates",
            roles!(ANYONE, schedule::templates),
            Doc::new(TAG, "listTemplates", "List templates and their schedules; for admins")
                .gives(200, Gives::Answer(shape::<OrchestrationTemplates>)),
        ),
        post(
            "/jobs/system-schedules/templates/recover",
            roles!(ANYONE, schedule::recover),
            Takes::Nothing,
            Doc::new(TAG, "recoverTemplates", "Make missing schedules of templates; for admins")
                .gives(200, Gives::Answer(shape::<OrchestrationRecovery>)),
        ),
    ]
}
