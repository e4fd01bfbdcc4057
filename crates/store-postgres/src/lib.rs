//! The store for several servers: everything in a PostgreSQL database, decided by the kernel.
//!
//! A job's row in `job` is written once; what changes of it lives in narrow tables beside it.
//! `waiting` has it until it is due and `ready` until it is claimed, for the first time or again;
//! `live` from its first claim to its end, whether it runs, waits for another try or is on its way
//! to the dead letters; `finished` from its end on. A batch is loaded, decided and written by a
//! bounded number of statements over arrays, and every change names what it was decided on. Read
//! next: `commit.rs`, then `migrations/` for the tables.

// The way of a batch.
mod commit;
mod stock;

// What a server keeps in mind between batches, and what time and other servers do to it.
mod backlog;
mod clock;
mod due;
mod lanes;
mod neighbours;
mod outage;
mod registry;
mod stream;
mod this_server;
mod upkeep;

// Reading.
mod entities;
mod list;
mod read;
mod store;

// The way to the database.
mod config;
mod connections;
mod fault;
mod queries;
mod rows;
mod terms;
mod throttle;
mod values;

// Beside the running store.
pub mod doctor;
mod migrate;
pub mod transactional;
pub mod transfer;

pub use config::{OnTime, PostgresConfig, SCHEMA};
pub use connections::address;
pub use connections::connect::connect;
#[doc(hidden)]
pub use connections::session_settings;
#[doc(hidden)]
pub use list::list_samples;
pub use migrate::{
    MIGRATIONS, MigrateError, Migration, MigrationStatus, POSTGRES_MIN, prepare, prepare_with,
    refuse_problems, status, up, up_with,
};
pub use queries::{Queries, Query};
pub use store::{OpenError, PostgresStore};
