//! Simulation, crash images, the history checker and the black box.
//!
//! `crash` cuts the power under the store, `sim` runs the whole engine in a simulated world, and
//! `checker` judges any history, whoever recorded it. `planted` has the bugs all three must find.
//! `blackbox` drives the real binary from outside, `browser` looks at its pages in a real Chromium,
//! `load` keeps it busy and writes it all down.
//! `postgres` starts a throw-away PostgreSQL.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a rule looks at the calls it is about, a planted bug at its own place"
)]

pub mod blackbox;
pub mod browser;
pub mod checker;
pub mod crash;
pub mod drive;
pub mod history;
pub mod load;
pub mod planted;
pub mod postgres;
pub mod rng;
pub mod sim;
