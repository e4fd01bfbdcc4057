//! The benchmark behind `mainspring bench`. It starts the binary it is part of as the server under
//! test, and stays in a process of its own. It speaks HTTP over plain sockets with prebuilt
//! requests, because every cycle it takes is one the server does not get on a small machine.
//!
//! `command.rs` is what can be asked for, `http.rs` the client, `job.rs` the requests, `server.rs`
//! the server it starts, `workload.rs` what is done to it, `beanstalk.rs`, `echo.rs` and `turn.rs`
//! what it is compared with, `suite.rs` the whole table, `report.rs` how it is written down and
//! `chart.rs` how it is drawn. `postgres/` is the suite of the PostgreSQL store, `peers/` other
//! systems under the same loads, `neighbours.rs` what a tenant feels of a hostile one and
//! `schedules.rs` and `triggers.rs` what schedules and triggers cost, all on either store.

mod beanstalk;
mod chart;
mod command;
mod cpu_time;
mod echo;
mod http;
mod job;
mod latency;
mod limits;
mod neighbours;
mod peers;
mod postgres;
mod report;
mod schedules;
mod server;
mod stopwatch;
mod suite;
mod triggers;
mod turn;
mod workload;

pub use command::{Args, EchoArgs, Running, Show, TurnArgs, Usage, echo, run, turn};
pub use report::{COLUMNS, Row};
