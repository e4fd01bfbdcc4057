//! One file per verb of the command line.

pub(crate) mod agent_files;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod dlq;
pub(crate) mod doctor;
pub(crate) mod filters;
pub(crate) mod jobs;
pub(crate) mod migrate;
pub(crate) mod move_store;
pub(crate) mod postgres;
pub(crate) mod queues;
pub(crate) mod replay;
pub(crate) mod runs;
pub(crate) mod schedules;
pub(crate) mod serve;
pub(crate) mod submit;
pub(crate) mod supervise;
pub(crate) mod templates;
pub(crate) mod tokens;
pub(crate) mod triggers;
pub(crate) mod types;
pub(crate) mod worker;
pub(crate) mod workers;
