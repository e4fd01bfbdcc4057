//! What a store must do, and how records look on disk. Behaviour is defined by the conformance
//! suite, not by any one store. Read `store.rs` first.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod desk;
pub mod fatal;
pub mod filter;
pub mod histogram;
pub mod read;
pub mod record;
pub mod store;
pub mod ticket;
pub mod transfer;

pub use desk::{Circumstances, decide_on, needs_of};
pub use fatal::Fatal;
pub use filter::{
    EntityFilter, EntityTerm, ItemFilter, JobFilter, Scope, Term, entity_terms, wait_terms,
};
pub use histogram::{Histogram, Readout, Spent};
pub use read::{
    Counts, HOLDERS_MAX, Health, Held, JobWithHistory, LoggedMove, MovesPage, Page, PlacedStep,
    QueueCount, Recovery, RefusalNote, Standing, StepsPage, TypeCount, WorkerNote,
};
pub use store::{Desk, Error, Needs, News, PullNeeds, Store, Wake, Work};
pub use ticket::{Promise, Ticket};
