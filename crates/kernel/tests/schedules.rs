//! Schedules: which firing gets a job, which does not and why, and that no firing gets two.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/clockwork.rs"]
mod clockwork;
#[path = "schedules/missed.rs"]
mod missed;
#[path = "schedules/overlap.rs"]
mod overlap;
#[path = "schedules/people.rs"]
mod people;
#[path = "schedules/plans.rs"]
mod plans;
