//! The routes of triggers.

use super::super::triggers;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{ANYONE, SUBMITTERS, get, post, roles, route};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;

fn doc(id: &'static str, summary: &'static str) -> Doc {
    Doc::new("triggers", id, summary)
}

pub(super) fn table() -> Vec<Route> {
    let trigger = Gives::One(shape::<api::trigger::Trigger>);
    let look = Gives::One(shape::<api::trigger::TriggerExplanation>);
    vec![
        post(
            "/api/v1/triggers",
            roles!(SUBMITTERS, triggers::create),
            Takes::Json,
            doc("createTrigger", "Make a trigger: a rule that makes agent runs")
                .takes(shape::<api::trigger::SetTrigger>)
                .gives(201, trigger),
        ),
        get(
            "/api/v1/triggers",
            roles!(ANYONE, triggers::list),
            doc("listTriggers", "List triggers")
                .text(super::LIST_TEXT)
                .query(&triggers::FILTERS)
                .gives(200, Gives::Page(shape::<api::trigger::Trigger>)),
        ),
        get(
            "/api/v1/triggers/{trigger_id}",
            roles!(ANYONE, triggers::get),
            doc("getTrigger", "Read a trigger").gives(200, trigger),
        ),
        route(
            Method::DELETE,
            "/api/v1/triggers/{trigger_id}",
            roles!(SUBMITTERS, triggers::remove),
            Takes::Nothing,
            doc("deleteTrigger", "Take a trigger away; a run that it made goes on")
                .gives(200, Gives::One(shape::<api::trigger::RemovedTrigger>)),
        ),
        post(
            "/api/v1/triggers/{trigger_id}/pause",
            roles!(SUBMITTERS, triggers::pause),
            Takes::MaybeJson,
            doc("pauseTrigger", "Have a trigger rest until it is resumed")
                .takes(shape::<api::trigger::PauseTrigger>)
                .gives(200, trigger),
        ),
        post(
            "/api/v1/triggers/{trigger_id}/resume",
            roles!(SUBMITTERS, triggers::resume),
            Takes::Nothing,
            doc("resumeTrigger", "Have a trigger go on with what happens from now on")
                .gives(200, trigger),
        ),
        get(
            "/api/v1/triggers/{trigger_id}/evaluations",
            roles!(ANYONE, triggers::evaluations),
            doc("getTriggerEvaluations", "Read what was decided about a trigger, latest first")
                .gives(200, Gives::One(shape::<api::trigger::TriggerEvaluations>)),
        ),
        get(
            "/api/v1/triggers/{trigger_id}/explain",
            roles!(ANYONE, triggers::explain),
            doc("explainTrigger", "Ask why a trigger has not fired").gives(200, look),
        ),
        post(
            "/api/v1/triggers/{trigger_id}/dry-run",
            roles!(ANYONE, triggers::explain),
            Takes::Nothing,
            doc("dryRunTrigger", "Look at a trigger as if it were its turn, and change nothing")
                .gives(200, look),
        ),
    ]
}
