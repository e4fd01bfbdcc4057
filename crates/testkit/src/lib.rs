//! Simulation, crash images and the history checker.

pub mod blackbox;
