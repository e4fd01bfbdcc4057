//! Values of the fields of subscriptions.

use super::super::values::{Allowed, no_control};
use super::{name, text, whole};
use crate::limits::POSITION_MAX;
use mainspring_kernel::entity::subscription::{EventName, Subscription};
use mainspring_kernel::limits::{
    EXECUTOR_URL_BYTES_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX, SUBJECT_BYTES_MAX,
    SUBSCRIPTION_NAMES_MAX, SUBSCRIPTION_OVERLAP_MS_MAX,
};
use serde_json::{Value, json};

pub(super) fn states() -> Allowed {
    Allowed::Words(Subscription::STATES.into())
}

fn events() -> Allowed {
    Allowed::Words(EventName::ALL.iter().map(|event| event.as_str()).collect())
}

/// What a field of a subscription may hold.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    let subject = "^[A-Za-z0-9][A-Za-z0-9_-]*(\\.[A-Za-z0-9][A-Za-z0-9_-]*)*$";
    Some(match (of, field) {
        ("CreateSubscription", "name") => text(1, NAME_BYTES_MAX, no_control()),
        ("CreateSubscription", "url") => text(1, EXECUTOR_URL_BYTES_MAX, "^https?://".to_owned()),
        ("CreateSubscription", "nats_subject") => text(1, SUBJECT_BYTES_MAX, subject.to_owned()),
        ("CreateSubscription", "events") => events().each(0, SUBSCRIPTION_NAMES_MAX),
        ("CreateSubscription", "filter") => Allowed::Any,
        ("CreateSubscription", "after") => whole(0, POSITION_MAX),
        ("SubscriptionFilter", "types" | "queues") => name().each(0, SUBSCRIPTION_NAMES_MAX),
        ("SubscriptionFilter", "all_tenants") => Allowed::Any,
        ("PauseSubscription", "note") => text(0, MESSAGE_BYTES_MAX, no_control()),
        ("RotateSecret", "overlap_seconds") => whole(0, SUBSCRIPTION_OVERLAP_MS_MAX / 1_000),
        ("Subscription", "status") => states(),
        ("Subscription", "target") => Allowed::Words(vec!["webhook", "nats", "consumer"]),
        ("Subscription", "events") => events().each(0, None),
        _ => return None,
    })
}

/// One of two places, and not both.
pub(super) fn together() -> Value {
    let one = |is: &str, is_not: &str| {
        json!({
            "properties": { is: { "type": "string" }, is_not: { "type": "null" } },
            "required": [is],
        })
    };
    json!({ "anyOf": [one("url", "nats_subject"), one("nats_subject", "url")] })
}
