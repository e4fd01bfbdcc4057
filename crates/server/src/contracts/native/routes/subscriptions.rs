//! The routes of subscriptions.

use super::super::subscriptions;
use crate::openapi::{Doc, Gives, shape};
use crate::route::table::{LOOKERS, OPERATORS, get, post, roles, route};
use crate::route::{Route, Takes};
use hyper::Method;
use mainspring_api as api;

fn doc(id: &'static str, summary: &'static str) -> Doc {
    Doc::new("subscriptions", id, summary)
}

pub(super) fn table() -> Vec<Route> {
    let one = Gives::One(shape::<api::subscription::Subscription>);
    vec![
        post(
            "/api/v1/subscriptions",
            roles!(OPERATORS, subscriptions::create),
            Takes::Json,
            doc("createSubscription", "Have events told to a webhook or to NATS")
                .text("The secret is shown by this call only.")
                .takes(shape::<api::subscription::CreateSubscription>)
                .gives(201, one),
        ),
        get(
            "/api/v1/subscriptions",
            roles!(LOOKERS, subscriptions::list),
            doc("listSubscriptions", "List subscriptions, newest first")
                .text(super::LIST_TEXT)
                .query(&subscriptions::FILTERS)
                .gives(200, Gives::Page(shape::<api::subscription::Subscription>)),
        ),
        get(
            "/api/v1/subscriptions/{subscription_id}",
            roles!(LOOKERS, subscriptions::get),
            doc("getSubscription", "Read a subscription").gives(200, one),
        ),
        route(
            Method::DELETE,
            "/api/v1/subscriptions/{subscription_id}",
            roles!(OPERATORS, subscriptions::remove),
            Takes::Nothing,
            doc("deleteSubscription", "Take a subscription away")
                .gives(200, Gives::One(shape::<api::subscription::RemovedSubscription>)),
        ),
        post(
            "/api/v1/subscriptions/{subscription_id}/pause",
            roles!(OPERATORS, subscriptions::pause),
            Takes::MaybeJson,
            doc("pauseSubscription", "Have a subscription rest until it is resumed")
                .text("Events wait meanwhile, for as long as the stream keeps them.")
                .takes(shape::<api::subscription::PauseSubscription>)
                .gives(200, one),
        ),
        post(
            "/api/v1/subscriptions/{subscription_id}/resume",
            roles!(OPERATORS, subscriptions::resume),
            Takes::Nothing,
            doc("resumeSubscription", "Have a subscription go on where it was, at once")
                .gives(200, one),
        ),
        post(
            "/api/v1/subscriptions/{subscription_id}/rotate-secret",
            roles!(OPERATORS, subscriptions::rotate),
            Takes::MaybeJson,
            doc("rotateSubscriptionSecret", "Sign with a new secret from now on")
                .text("The new one is shown by this call only; both sign during the overlap.")
                .takes(shape::<api::subscription::RotateSecret>)
                .gives(200, one),
        ),
    ]
}
