//! The durable codec: how events and whole things look as bytes. Everything is CBOR, so any CBOR
//! tool can read a journal.
//!
//! Every record is an array whose positions are numbered for good. The rules of change:
//! - a position is never given another meaning, and a number of a kind is never used again;
//! - a new field goes to the end of its array and is optional; a reader that does not know it
//!   skips it, and one that misses it reads `None` (written as null, or not at all at the end);
//! - an unknown *kind* is an error: a reader cannot skip what it does not understand;
//! - a change that breaks these rules is a new format version, and the old one stays readable.
//!
//! Hot records write straight from the kernel's types; instants are written as the distance from
//! the record's base instant, which makes most of them one byte. Decoding never panics, whatever
//! the bytes, and never allocates more than a small multiple of what it was given.

mod access;
mod attempt;
mod course;
mod entity;
mod event;
mod frame;
mod item;
mod job;
mod meter;
mod names;
mod progress;
mod refusal;
mod registry;
mod stream;
mod transition;
mod whole;
mod wire;
mod worker;

pub use event::{decode_event, encode_event, instant_of};
pub use frame::{Events, FORMAT_VERSION, FrameWriter, events_of};
pub use names::Names;
pub use progress::{LoggedStep, apply_progress, decode_steps, encode_progress, encode_steps};
pub use refusal::{decode_refusals, encode_refusals};
pub use stream::{decode_moves, encode_moves, first_of_moves};
pub use whole::{
    Record, Records, decode_entity, decode_job, encode_counters, encode_entity, encode_item,
    encode_job, encode_key, encode_meter, encode_queue, encode_stretch, encode_token, encode_type,
    job_owner, records_of,
};
pub use worker::{decode_workers, encode_workers};

/// Bytes that are not the record they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("bad record at byte {offset}: {reason}")]
pub struct BadRecord {
    /// Where, counted from the start of the bytes handed in.
    pub offset: usize,
    /// What is wrong there.
    pub reason: &'static str,
}
