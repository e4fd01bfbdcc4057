//! The table of routes of the task contract.

use super::{events, handle, wire};
use crate::config::Config;
use crate::openapi::{Doc, Gives, KeyRule, shape};
use crate::route::table::{ANYONE, SUBMITTERS, get, post, roles};
use crate::route::{Route, Rule, Takes};
use mainspring_api as api;

/// Every route; the one for moving tasks by hand only where it is wanted.
pub(super) fn table(config: &Config) -> Vec<Route> {
    let mut routes = task_routes();
    if config.has_internal_routes {
        routes.push(post(
            "/tasks/{task_id}/transition",
            Rule::Internal(|ask, who| Box::pin(handle::transition(ask, who))),
            Takes::Json,
            Doc::new("tasks", "moveNamedTask", "Move a task by hand")
                .text("By the contract's own table; any other move is a 409 that changes nothing.")
                .takes(shape::<wire::MoveTask>)
                .gives(200, Gives::Bare(shape::<wire::Task>)),
        ));
    }
    routes
}

fn task_routes() -> Vec<Route> {
    vec![
        post(
            "/tasks",
            roles!(SUBMITTERS, handle::create),
            Takes::Json,
            Doc::new("tasks", "createNamedTask", "Create a task")
                .text(
                    "201 for a new task. 200 for one that its id or its key already names, if it \
                     agrees in all schedule and limit fields that the request carries; the payload \
                     is not compared.",
                )
                .key(KeyRule::None)
                .takes(shape::<wire::CreateTask>)
                .gives(201, Gives::Bare(shape::<wire::CreatedTask>))
                .also(
                    200,
                    "The task that there is, or only where it stands if it may not be read",
                    Gives::EitherBare(shape::<wire::HitTask>, shape::<wire::HitUnseen>),
                ),
        ),
        get(
            "/tasks/events",
            roles!(ANYONE, events::follow),
            Doc::new(
                "tasks",
                "followNamedTasks",
                "Follow the moves of tasks as server-sent events",
            )
            .text("Goes on behind `Last-Event-ID`; a `reset` event says that moves are missing.")
            .header("Last-Event-ID", "The same as `after`, and before it.")
            .query(&[("after", "Start behind this position; at the newest if left out.")])
            .gives(
                200,
                Gives::Events([
                    ("task_state_changed", shape::<wire::TaskEvent>),
                    ("reset", shape::<api::event::Reset>),
                ]),
            ),
        ),
        get(
            "/tasks/{task_id}",
            roles!(ANYONE, handle::get),
            Doc::new("tasks", "getNamedTask", "Read a task")
                .text("By the name that its caller chose, or by the id of its job.")
                .gives(200, Gives::Bare(shape::<wire::Task>)),
        ),
        get(
            "/tasks/{task_id}/events",
            roles!(ANYONE, handle::history),
            Doc::new("tasks", "getNamedTaskEvents", "Read the moves of a task")
                .gives(200, Gives::Bare(shape::<wire::TaskEvents>)),
        ),
        post(
            "/tasks/{task_id}/cancel",
            roles!(SUBMITTERS, handle::cancel),
            Takes::Nothing,
            Doc::new("tasks", "cancelNamedTask", "Cancel a task that has not ended")
                .gives(200, Gives::Bare(shape::<wire::Task>)),
        ),
    ]
}
