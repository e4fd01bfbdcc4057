//! Access tokens.

use crate::Time;
use serde::{Deserialize, Serialize};

/// A request for a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IssueToken {
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// The person or service it belongs to.
    pub user_id: String,
    /// What it allows: `submitter`, `worker`, `viewer`, `operator`, `approver`, `internal`,
    /// `admin`.
    pub roles: Vec<String>,
    /// When it stops working by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A wish for another secret.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateToken {
    /// For how long the old token goes on working, up to 30 days; at once it is over if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u64>,
}

/// Whose token a request came with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Caller {
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// The person or service it belongs to.
    pub user_id: String,
    /// What it allows.
    pub roles: Vec<String>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Token {
    /// Its public name.
    pub token_id: String,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// The person or service it belongs to.
    pub user_id: String,
    /// What it allows.
    pub roles: Vec<String>,
    /// When it was issued.
    pub issued_at: Time,
    /// Who issued it.
    pub issued_by: String,
    /// With which token, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_with: Option<String>,
    /// When it stops working by itself.
    pub expires_at: Option<Time>,
    /// When it was revoked.
    pub revoked_at: Option<Time>,
    /// What to send as `Authorization: Bearer`; shown once, when the token is issued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}
