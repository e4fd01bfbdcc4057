//! The loop against an employer that answers as the test says: late, wrong, twice or not at all.
//! Time is tokio's, stopped: it goes on when everybody waits, so waiting costs nothing. Start with
//! `scripted/employer.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it is about and leaves the rest to others"
)]

#[path = "scripted/defects.rs"]
mod defects;
#[path = "scripted/draining.rs"]
mod draining;
#[path = "scripted/employer.rs"]
mod employer;
#[path = "scripted/handlers.rs"]
mod handlers;
#[path = "scripted/leases.rs"]
mod leases;
#[path = "scripted/reports.rs"]
mod reports;
