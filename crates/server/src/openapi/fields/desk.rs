//! Values of the fields of alerts and bulk operations.

use super::super::values::{Allowed, label, no_control, padded};
use super::{governed_words, name, text, whole};
use mainspring_kernel::entity::alert::{AlertState, Rule, Severity};
use mainspring_kernel::entity::bulk::{BulkAction, BulkStatus};
use mainspring_kernel::limits::{
    CANARY_MAX, ERROR_CODE_BYTES_MAX, LABELS_WANTED_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX,
};
use serde_json::{Value, json};

/// What lists of alerts can be asked for.
pub(super) fn alert_word(of: &str) -> Allowed {
    match of {
        "state" => governed_words(AlertState::ALL, AlertState::as_str),
        _ => governed_words(Rule::ALL, Rule::as_str),
    }
}

pub(super) fn bulk_states() -> Allowed {
    governed_words(BulkStatus::ALL, BulkStatus::as_str)
}

/// What a field may hold.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("Alert", "state" | "rule") => alert_word(field),
        ("Alert", "severity") => governed_words(Severity::ALL, Severity::as_str),
        ("AcknowledgeAlert", "note") => text(0, MESSAGE_BYTES_MAX, no_control()),
        ("CreateBulk" | "Bulk" | "BulkPreview", "action") => {
            governed_words(BulkAction::ALL, BulkAction::as_str)
        }
        ("CreateBulk", "reason") => text(1, MESSAGE_BYTES_MAX, padded()),
        ("CreateBulk", "filter" | "dry_run" | "canary") => Allowed::Any,
        ("BulkCanary", "first") => whole(1, CANARY_MAX.into()),
        ("BulkCanary", "max_failure_ratio") => Allowed::Any,
        ("BulkFilter", "status") => Allowed::Words(vec!["open", "queued", "running", "retrying"]),
        ("BulkFilter", "type" | "queue" | "user_id") => name(),
        ("BulkFilter", "trace_id") => text(1, NAME_BYTES_MAX, no_control()),
        ("BulkFilter", "label") => {
            text(2, 2 * NAME_BYTES_MAX + 1, label()).each(0, LABELS_WANTED_MAX)
        }
        ("BulkFilter", "error_code") => {
            text(1, ERROR_CODE_BYTES_MAX, Some("^[0-9A-Za-z_.:-]+$".to_owned()))
        }
        ("BulkFilter", "signature") => text(16, 16, Some("^[0-9a-f]{16}$".to_owned())),
        ("BulkFilter", "created_after" | "created_before") => Allowed::Any,
        ("Bulk", "status") => bulk_states(),
        ("BulkOutcome", "outcome") => Allowed::Words(vec!["done", "failed"]),
        ("ApproveBulk", "version") => whole(0, u32::MAX.into()),
        ("StopBulk", "reason") => text(0, MESSAGE_BYTES_MAX, no_control()),
        _ => return None,
    })
}

/// Which filters go with which actions: something besides the state is always there.
pub(super) fn bulks_together() -> Value {
    let something = json!({ "not": { "type": "null" } });
    let is_there = |field: &str| json!({ "properties": { field: something }, "required": [field] });
    let fields = ["type", "queue", "trace_id", "user_id", "error_code"];
    let narrow = |more: &[&str]| {
        let mut all: Vec<Value> = fields.iter().chain(more).map(|it| is_there(it)).collect();
        all.push(json!({
            "properties": { "label": { "type": "array", "minItems": 1 } }, "required": ["label"],
        }));
        all
    };
    let times = ["created_after", "created_before"];
    let items = json!({
        "properties": { "status": { "enum": ["open", null] } },
        "anyOf": narrow(&[&times[..], &["signature"]].concat()),
    });
    let jobs = |states: &[&str]| {
        json!({
            "properties": { "status": { "enum": states }, "signature": { "type": "null" } },
            "required": ["status"],
            "anyOf": narrow(&times),
        })
    };
    let nothing = json!({ "type": "null" });
    json!({ "anyOf": [
        { "properties": { "action": { "const": "requeue" }, "filter": items } },
        { "properties": { "action": { "const": "discard" }, "filter": items, "canary": nothing } },
        { "properties": {
            "action": { "const": "cancel" }, "canary": nothing,
            "filter": jobs(&["queued", "running", "retrying"]),
        } },
        { "properties": {
            "action": { "const": "pause" }, "canary": nothing,
            "filter": jobs(&["queued", "retrying"]),
        } },
        { "properties": {
            "action": { "const": "resume" }, "canary": nothing, "filter": jobs(&["retrying"]),
        } },
    ] })
}
