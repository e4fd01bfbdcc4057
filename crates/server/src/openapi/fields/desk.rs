//! Values of the fields of alerts.

use super::super::values::{Allowed, no_control};
use super::{governed_words, text};
use mainspring_kernel::entity::alert::{AlertState, Rule, Severity};
use mainspring_kernel::limits::MESSAGE_BYTES_MAX;

/// What lists of alerts can be asked for.
pub(super) fn alert_word(of: &str) -> Allowed {
    match of {
        "state" => governed_words(AlertState::ALL, AlertState::as_str),
        _ => governed_words(Rule::ALL, Rule::as_str),
    }
}

/// What a field may hold.
pub(super) fn field(of: &str, field: &str) -> Option<Allowed> {
    Some(match (of, field) {
        ("Alert", "state" | "rule") => alert_word(field),
        ("Alert", "severity") => governed_words(Severity::ALL, Severity::as_str),
        ("AcknowledgeAlert", "note") => text(0, MESSAGE_BYTES_MAX, no_control()),
        _ => return None,
    })
}
