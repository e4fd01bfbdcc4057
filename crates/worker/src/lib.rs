//! One worker loop: pull jobs, run handlers side by side, renew leases, report, go quietly.
//!
//! Who hands out the work is an [`Employer`]: a server reached over HTTP (`mainspring-sdk`), or the
//! engine in the same process (`mainspring_engine::employer`). The loop knows neither HTTP nor the
//! kernel. It believes no employer blindly: every call has an end, and every answer is compared
//! with what was asked.
//!
//! Read `employer.rs` first, then `run.rs`, the loop that owns all state; `report.rs` is what is
//! said about finished attempts, `attend.rs` one attempt from start to end.

pub mod context;
pub mod employer;
pub mod error;
pub mod failure;
pub mod limits;
pub mod roster;
pub mod worker;

mod ask;
mod attend;
mod report;
mod run;

pub use context::{BoxHandler, Context, Outcome, StopReason};
pub use employer::{
    Answer, Beat, Employer, Job, Kind, Recorded, Refusal, Renewal, Report, Reported, Said, Sign,
    Wish,
};
pub use error::{About, Error};
pub use failure::Failure;
pub use mainspring_api::{Json, Time};
pub use roster::{Roster, handler};
pub use worker::{Summary, Worker, WorkerBuilder};
