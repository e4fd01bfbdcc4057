//! The store for several servers: everything in a PostgreSQL database, decided by the kernel.
//!
//! A job is written once; what changes of it lives in narrow tables beside it: `ready` until it is
//! claimed, `waiting` until it is due, `live` while it is tried, `finished` at its end. A batch is
//! loaded, decided and written by a bounded number of statements over arrays, and every change
//! names what it was decided on. Read next: `commit.rs`, then `migrations/` for the tables.

pub mod address;
mod alarms;
mod columns;
mod commit;
mod config;
mod connect;
mod desk;
pub mod doctor;
mod effects;
mod encryption;
mod entities;
mod fault;
mod field;
mod heard;
mod held;
mod link;
mod list;
mod load;
mod migrate;
mod node;
mod outage;
mod pace;
mod queries;
mod read;
mod registry;
mod rows;
mod settings;
mod shared;
mod shared_time;
mod store;
mod stream;
mod suspicion;
mod tail;
mod tallies;
mod terms;
pub mod transactional;
pub mod transfer;
mod upkeep;
mod values;
mod writes;

pub use config::{OnTime, PostgresConfig, SCHEMA};
pub use connect::connect;
#[doc(hidden)]
pub use link::session_settings;
#[doc(hidden)]
pub use list::list_samples;
pub use migrate::{
    MIGRATIONS, MigrateError, Migration, MigrationStatus, POSTGRES_MIN, prepare, prepare_with,
    refuse_problems, status, up, up_with,
};
pub use queries::{Queries, Query};
pub use store::{OpenError, PostgresStore};
