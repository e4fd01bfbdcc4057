//! Values of the fields of the internal routes.

use super::super::values::{Allowed, no_control, padded};
use super::{name, text, whole};
use crate::limits::PAGE_MAX;
use mainspring_kernel::entity::question::Question;
use mainspring_kernel::limits::{LEASE_MS_MAX, NAME_BYTES_MAX, QUESTION_OPTIONS_MAX};

/// What a field may hold.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("Dequeue", "worker_id") => name(),
        ("Dequeue", "max_messages") => whole(1, PAGE_MAX as u64),
        ("Dequeue", "visibility_ms") => whole(1, LEASE_MS_MAX.into()),
        // A text that is no name of a delivery proves nothing: it is answered so.
        ("AckMessage" | "NackMessage", "message_id") => Allowed::Any,
        ("NackMessage", "requeue") => Allowed::Any,
        ("NackMessage", "delay_ms") => whole(0, u64::MAX),
        ("OutboxEvent", "status") => Allowed::Words(vec!["pending", "published"]),
        ("Interrupt", "question") | ("Resume", "answer") => Allowed::Said,
        ("Interrupt", "options") => Allowed::Said.each(0, QUESTION_OPTIONS_MAX),
        ("Interrupt", "lease_token") => Allowed::Any,
        ("Interrupted", "status") => Allowed::Words(Question::STATES.to_vec()),
        ("Resume", "resume_token") => Allowed::Any,
        ("Resume", "reviewer_id") => text(1, NAME_BYTES_MAX, padded()),
        _ => return None,
    })
}

/// What a part of a path may be.
pub(super) fn path_value(part: &str) -> Option<Allowed> {
    Some(match part {
        "event_id" => {
            text(1, NAME_BYTES_MAX, Some("^evt_[0-7][0-9a-hjkmnp-tv-z]{25}_1$".to_owned()))
        }
        "thread_id" => text(1, NAME_BYTES_MAX, no_control()),
        _ => return None,
    })
}

/// What a parameter may be.
pub(super) fn query_value(path: &str, parameter: &str) -> Option<Allowed> {
    Some(match parameter {
        "status" if path.contains("/outbox/") => Allowed::Words(vec!["pending", "published"]),
        "consumer_name" | "queue_name" => name(),
        "max_messages" => whole(1, PAGE_MAX as u64),
        _ => return None,
    })
}
