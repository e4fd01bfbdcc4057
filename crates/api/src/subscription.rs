//! Subscriptions: who outside is told of what happens to jobs.

use crate::Time;
use serde::{Deserialize, Serialize};

/// The wish for a subscription: with one of `url` and `nats_subject`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreateSubscription {
    /// For people.
    pub name: String,
    /// Each event is a signed request to this URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Each event is a JetStream message whose subject begins with this and ends with the name of
    /// the event. Only for those who may act in every tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nats_subject: Option<String>,
    /// Only events of these names; all of them if left out or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Only events of these jobs; of all if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<SubscriptionFilter>,
    /// Events after this position; those from now on if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

/// Of which jobs a subscription tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubscriptionFilter {
    /// Of these types; of all if empty.
    #[serde(default)]
    pub types: Vec<String>,
    /// In these queues; in all if empty.
    #[serde(default)]
    pub queues: Vec<String>,
    /// Of every tenant. Only for those who may act in every tenant.
    #[serde(default)]
    pub all_tenants: bool,
}

/// Why a subscription is to rest.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseSubscription {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a new secret takes over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RotateSecret {
    /// Seconds for which requests are signed with the secret before, too; a day if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap_seconds: Option<u64>,
}

/// Events that were no longer kept when their turn came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SubscriptionGap {
    /// The position of the first that is missing.
    pub from: u64,
    /// Of the last.
    pub to: u64,
    /// When that was found.
    pub at: Time,
}

/// A subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Subscription {
    /// Its id.
    pub subscription_id: String,
    /// For people.
    pub name: String,
    /// `webhook`, `nats`, or `consumer`, for which nothing is sent.
    pub target: String,
    /// Where requests go.
    pub url: Option<String>,
    /// What the subjects of messages begin with.
    pub nats_subject: Option<String>,
    /// The names of the events it tells of; all if empty.
    pub events: Vec<String>,
    /// The jobs it tells of.
    pub filter: SubscriptionFilter,
    /// `active`, `failing` or `paused`.
    pub status: String,
    /// Whose it is.
    pub tenant_id: String,
    /// Who made it.
    pub user_id: String,
    /// Everything up to this position is settled.
    pub position: u64,
    /// Events of all jobs that came since.
    pub lag: u64,
    /// Events that the receiver has taken.
    pub delivered_count: u64,
    /// Tries that failed.
    pub failed_count: u64,
    /// Tries that failed since the last that did not.
    pub consecutive_failures: u32,
    /// When the receiver last took something.
    pub last_delivered_at: Option<Time>,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<Time>,
    /// Events that were missed because they were no longer kept.
    pub missed_count: u64,
    /// The latest gaps, the newest last.
    pub gaps: Vec<SubscriptionGap>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Why.
    pub pause_note: Option<String>,
    /// Until when requests are signed with the secret before, too.
    pub former_secret_until: Option<Time>,
    /// When it was made.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
    /// Grows with every change.
    pub version: u32,
    /// What requests are signed with; shown once, by the call that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A subscription that was taken away.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovedSubscription {
    /// Its id.
    pub subscription_id: String,
    /// `deleted`.
    pub status: String,
}
