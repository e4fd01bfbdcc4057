//! The suite of the PostgreSQL store, P1 to P8: our server on a database, beside what PostgreSQL
//! itself can do and beside graphile-worker, all in one run on one throw-away cluster.
//!
//! `cluster.rs` is the database server, `session.rs` a connection to it, `raw.rs` the limits,
//! `stand.rs` what they share, `suite.rs` the rows with
//! a yardstick of their own, `endurance.rs` those that compare us with ourselves, and `load.rs`
//! what they do to a server.

pub(crate) mod cluster;
pub(crate) mod endurance;
pub(crate) mod load;
pub(crate) mod raw;
pub(crate) mod scale;
pub(crate) mod session;
pub(crate) mod stand;
pub(crate) mod suite;
