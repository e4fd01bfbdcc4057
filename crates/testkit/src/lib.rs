//! Simulation, crash images and the history checker.
