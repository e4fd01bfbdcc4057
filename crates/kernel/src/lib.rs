//! The rules of Mainspring. Pure: no I/O, no clock, no randomness, no serde, no logging, no async.
//!
//! [`decide()`] looks at facts and a command and answers with events or a rejection; [`evolve()`]
//! turns a job and an event into the next job. Live operation, journal recovery and every test
//! use the same two functions. Read the modules in the order they stand here.

pub mod calendar;
pub mod id;
pub mod limits;
pub mod name;
pub mod paged;
pub mod shared_time;
pub mod text;
pub mod time;

pub mod access;
pub mod agent;
pub mod dlq;
pub mod entity;
pub mod executor;
pub mod job;
pub mod person;
pub mod registry;

pub mod backlog;
pub mod command;
pub mod event;
pub mod facts;
pub mod rejection;

pub mod canonical;
pub mod idempotency;

pub mod decide;
pub mod dispatch;
pub mod error_class;
pub mod evolve;
pub mod fingerprint;
pub mod firing;
pub mod flow;
pub mod governance;
pub mod retry;
pub mod sealing;
pub mod signature;
pub mod together;
pub mod totals;
pub mod traceparent;

pub mod view;

pub use access::{Principal, Role, Roles, Token};
pub use backlog::Backlog;
pub use command::Command;
pub use decide::{Decision, Receipt, decide};
pub use dlq::{DlqItem, DlqState};
pub use entity::{Entity, EntityId};
pub use event::{Event, JobEvent};
pub use evolve::{Transition, evolve};
pub use facts::Facts;
pub use id::{DlqId, JobId, TokenId};
pub use job::{Failure, Job, Lease, Payload, State, StateName};
pub use name::{JobType, QueueName, TenantId, UserId, WorkerId};
pub use registry::{QueueOrder, QueueSpec, TypeSpec};
pub use rejection::Rejection;
pub use time::Timestamp;
pub use totals::Totals;
