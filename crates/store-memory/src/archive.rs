//! The archive: finished records in immutable sorted files, so memory holds only live work.
//!
//! A run is written once, in key order, and never changed; keys are time ordered, so runs rarely
//! overlap and most lookups touch one. Only the sparse index stays in memory. Which runs exist, and
//! in which order, is the manifest's word (`manifest.rs`): nothing here deletes a file. Must never
//! know what a value means. Read next: `archive/run.rs`, `archive/lookup.rs`.

mod lookup;
mod run;
mod terms;

pub use lookup::{Archive, Descending, Found, MergePlan, Seek};
pub use run::{Examined, Run, RunDescending, open_run, write_run, write_run_with_terms};
pub use terms::Pair;

#[cfg(test)]
mod tests;

/// Sort key of a record; greater is newer.
pub type Key = [u8; 16];

/// One finished record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it sorts.
    pub key: Key,
    /// When it was finished, in microseconds; decides when it may be dropped.
    pub stamp: i64,
    /// The bytes kept for it.
    pub value: Vec<u8>,
}
