//! The loop inside a real engine, on both stores: the same process, no HTTP. What is true here is
//! read back from the engine, not from the loop. Start with `inside/house.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a test says what it is about and leaves the rest to others"
)]

#[path = "inside/attempts.rs"]
mod attempts;
#[path = "inside/house.rs"]
mod house;
#[path = "inside/many.rs"]
mod many;
