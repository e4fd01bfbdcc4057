//! The audit trail.

use crate::{Json, Time};
use serde::{Deserialize, Serialize};

/// One line of the audit trail.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// 1, 2, 3… without gaps.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// Who.
    pub actor: AuditActor,
    /// Did what, such as `gate.set`.
    pub action: String,
    /// `done`, or `denied` for an attempt that was refused.
    pub outcome: String,
    /// To what kind of thing.
    pub object_type: String,
    /// To which one.
    pub object_id: String,
    /// What it was.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub before: Option<Json>,
    /// What was asked for, or what it is.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub after: Option<Json>,
    /// Why.
    pub reason: Option<String>,
    /// What proves it.
    pub evidence_refs: Vec<String>,
    /// In which trace.
    pub trace_id: Option<String>,
    /// How much harm it could do.
    pub risk_tier: Option<String>,
    /// The decision behind it.
    pub decision_trace_id: Option<String>,
    /// The hash of the line before it.
    pub prev_hash: String,
    /// Its own.
    pub hash: String,
}

/// Who did something.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditActor {
    /// The person or service.
    pub user_id: String,
    /// Its token.
    pub token_id: Option<String>,
}

/// Whether the audit trail is whole.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditVerdict {
    /// `true`.
    pub valid: bool,
    /// How many lines were looked at.
    pub checked: u64,
    /// The first line that is wrong or missing.
    pub first_bad_seq: Option<u64>,
    /// What was compared of the history of jobs.
    #[serde(default)]
    pub history: Option<AuditHistory>,
}

/// Moves of jobs that were compared with their seals in the audit trail.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditHistory {
    /// How many moves were compared.
    pub checked: u64,
    /// With how many seals.
    pub seals: u64,
    /// The first of these moves.
    pub from: Option<u64>,
    /// The last of them.
    pub to: Option<u64>,
    /// Where an earlier stretch can be compared from: `before` of the next call.
    pub next: Option<u64>,
}
