//! The load generator behind `mainspring bench`.
