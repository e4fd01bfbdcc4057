//! The load generator behind `mainspring bench`. It runs in a process of its own and speaks HTTP
//! over plain sockets with prebuilt requests, because every cycle it takes is one the server under
//! test does not get on a small machine.
//!
//! `http.rs` is the client, `job.rs` the requests, `server.rs` the server it starts, `workload.rs`
//! what is done to it, `beanstalk.rs` and `echo.rs` what it is compared with, `suite.rs` the whole
//! table and `report.rs` how it is written down. `postgres/` is the suite of the PostgreSQL store,
//! `neighbours.rs` what a tenant feels of a hostile one, on either store.

pub(crate) mod beanstalk;
pub(crate) mod echo;
pub(crate) mod http;
pub(crate) mod job;
pub(crate) mod latency;
pub(crate) mod neighbours;
pub(crate) mod postgres;
pub(crate) mod report;
pub(crate) mod server;
pub(crate) mod stopwatch;
pub(crate) mod suite;
pub(crate) mod workload;
