//! The library as its users have it: on both stores, through its public words alone, with a real
//! process that is killed. `library/house.rs` opens what a test works with.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "library/house.rs"]
mod house;
#[path = "library/jobs.rs"]
mod jobs;
#[path = "library/processes.rs"]
mod processes;
#[path = "library/virtual_time.rs"]
mod virtual_time;
