//! The Rust client and worker.
