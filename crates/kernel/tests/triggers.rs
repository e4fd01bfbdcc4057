//! Triggers by their rules: when they fire, what they keep in mind, what they never do twice.

#[path = "triggers/conditions.rs"]
mod conditions;
#[path = "triggers/edges.rs"]
mod edges;
#[path = "triggers/questions.rs"]
mod questions;
#[path = "support/sentry.rs"]
mod sentry;
#[path = "triggers/time.rs"]
mod time;
