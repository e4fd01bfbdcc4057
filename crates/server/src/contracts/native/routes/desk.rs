//! The routes of what people are told of and decide about, beside dead letters themselves: alerts
//! and bulk operations.

use super::super::filters::PAGE;
use super::super::{alerts, bulk};
use super::APPROVERS;
use crate::governed::OPERATORS;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{LOOKERS, get, post, roles};
use crate::route::{Route, Takes};
use mainspring_api as api;

pub(super) fn table() -> Vec<Route> {
    let mut routes = alert_routes();
    routes.extend(bulk_routes());
    routes
}

fn bulk_routes() -> Vec<Route> {
    let one = Gives::One(shape::<api::bulk::Bulk>);
    vec![
        post(
            "/api/v1/bulk",
            roles!(OPERATORS, bulk::create),
            Takes::Json,
            Doc::new("bulk", "createBulk", "Do the same thing to everything that a filter admits")
                .text(
                    "With `dry_run` nothing is done: 200 tells how many things it would be about. \
                     More than `[bulk] approval_above` of them take a second person.",
                )
                .takes(shape::<api::bulk::CreateBulk>)
                .gives(201, one)
                .also(200, "What it would be about", Gives::One(shape::<api::bulk::BulkPreview>)),
        ),
        get(
            "/api/v1/bulk",
            roles!(LOOKERS, bulk::list),
            Doc::new("bulk", "listBulk", "List the bulk operations of the tenant, newest first")
                .text(super::LIST_TEXT)
                .query(&bulk::FILTERS)
                .gives(200, Gives::Page(shape::<api::bulk::Bulk>)),
        ),
        get(
            "/api/v1/bulk/{bulk_id}",
            roles!(LOOKERS, bulk::get),
            Doc::new("bulk", "getBulk", "Read how far a bulk operation is").gives(200, one),
        ),
        get(
            "/api/v1/bulk/{bulk_id}/items",
            roles!(LOOKERS, bulk::items),
            Doc::new("bulk", "listBulkOutcomes", "List what became of each thing")
                .query(&PAGE)
                .gives(200, Gives::Page(shape::<api::bulk::BulkOutcome>)),
        ),
        post(
            "/api/v1/bulk/{bulk_id}/approve",
            roles!(APPROVERS, bulk::approve),
            Takes::Json,
            Doc::new("bulk", "approveBulk", "Agree to a bulk operation, as another person")
                .text("The same people who may approve a discard may approve this.")
                .takes(shape::<api::bulk::ApproveBulk>)
                .gives(200, one),
        ),
        post(
            "/api/v1/bulk/{bulk_id}/stop",
            roles!(OPERATORS, bulk::stop),
            Takes::MaybeJson,
            Doc::new("bulk", "stopBulk", "End a bulk operation; what is done stays done")
                .takes(shape::<api::bulk::StopBulk>)
                .gives(200, one),
        ),
    ]
}

fn alert_routes() -> Vec<Route> {
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
            "/api/v1/alerts/{alert_id}/ack",
            roles!(OPERATORS, alerts::acknowledge),
            Takes::MaybeJson,
            Doc::new("alerts", "acknowledgeAlert", "Take notice of an alert")
                .text("One that is over cannot be acknowledged; one that is, is answered again.")
                .takes(shape::<api::alert::AcknowledgeAlert>)
                .gives(200, alert),
        ),
    ]
}
