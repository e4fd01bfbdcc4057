//! The memory store and its journal: state in maps, every change in an append-only log.
//!
//! Read in the order below. The modules up to `archive` are the byte layer: they move and protect
//! bytes and must never learn what a job is. `state` knows jobs and no files; `memory` joins them.

pub mod disk;
pub mod error;

pub mod journal;

pub mod snapshot;

pub mod manifest;

pub mod archive;

pub mod memory;

pub mod transfer;

pub mod doctor;

pub mod backup;

mod bytes;
mod limits;
mod state;

pub use memory::{MemoryConfig, MemoryStore, OpenError};
