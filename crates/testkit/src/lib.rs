//! Simulation, crash images and the history checker.
//!
//! `crash` cuts the power under the store, `sim` runs the whole engine in a simulated world,
//! `blackbox` drives the real binary, and `checker` judges any history, whoever recorded it.
//! `planted` has the bugs they must find.

pub mod blackbox;
pub mod checker;
pub mod crash;
pub mod drive;
pub mod history;
pub mod planted;
pub mod rng;
pub mod sim;
