//! Alerts: what a person should look at.

use crate::Time;
use serde::{Deserialize, Serialize};

/// Something that a person should look at. A rule and a subject have one alert: when it comes again
/// it is the same one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alert {
    /// Its name.
    pub alert_id: String,
    /// Which rule saw it.
    pub rule: String,
    /// `P1` now, `P2` today, `P3` when there is time.
    pub severity: String,
    /// `open`, `acknowledged` or `cleared`.
    pub state: String,
    /// Whose jobs it is about.
    pub tenant_id: String,
    /// What it is about, if not about all jobs of the tenant: a job, a type or a schedule.
    pub subject: Option<String>,
    /// What was seen, for people.
    pub message: String,
    /// The number that was seen last.
    pub value: f64,
    /// The number at which it is raised.
    pub threshold: f64,
    /// Since when it stands.
    pub raised_at: Time,
    /// When it was last seen.
    pub seen_at: Time,
    /// How often it was raised.
    pub count: u32,
    /// When somebody took notice.
    pub acknowledged_at: Option<Time>,
    /// Who.
    pub acknowledged_by: Option<String>,
    /// What they say about it.
    pub note: Option<String>,
    /// Since when it is over.
    pub cleared_at: Option<Time>,
}

/// Somebody takes notice of an alert.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AcknowledgeAlert {
    /// What they say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
