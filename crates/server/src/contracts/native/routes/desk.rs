//! The routes of what people are told of and decide about, beside dead letters themselves: alerts.

use super::super::alerts;
use crate::governed::OPERATORS;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{LOOKERS, get, post, roles};
use crate::route::{Route, Takes};
use mainspring_api as api;

pub(super) fn table() -> Vec<Route> {
    let alert = Gives::One(shape::<api::alert::Alert>);
    vec![
        get(
            "/api/v1/alerts",
            roles!(LOOKERS, alerts::list),
            Doc::new("alerts", "listAlerts", "List the alerts of the tenant")
                .text(super::LIST_TEXT)
                .query(&alerts::FILTERS)
                .gives(200, Gives::Page(shape::<api::alert::Alert>)),
        ),
        get(
            "/api/v1/alerts/{alert_id}",
            roles!(LOOKERS, alerts::get),
            Doc::new("alerts", "getAlert", "Read an alert").gives(200, alert),
        ),
        post(
            "/api/v1/alerts/{alert_id}/acknowledge",
            roles!(OPERATORS, alerts::acknowledge),
            Takes::MaybeJson,
            Doc::new("alerts", "acknowledgeAlert", "Take notice of an alert")
                .text("One that is over cannot be acknowledged; one that is, is answered again.")
                .takes(shape::<api::alert::AcknowledgeAlert>)
                .gives(200, alert),
        ),
    ]
}
