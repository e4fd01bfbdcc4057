//! Whole things, for snapshot files and the archive: each a record of its own, the number of its
//! kind first, so that a file of them can be read from front to back without knowing what comes.

use super::BadRecord;
use super::access::{read_token, write_token};
use super::entity::{read_entity, write_entity};
use super::item::{read_item, write_item};
use super::job::{read_job, read_owner, write_job};
use super::meter::{read_meter, write_meter};
use super::names::Names;
use super::registry::{read_queue, read_type, write_queue, write_type};
use super::stream::{read_moves, write_moves};
use super::transition::{read_history, write_history};
use super::wire::{Pen, Reader, length};
use crate::read::{JobWithHistory, LoggedMove};
use mainspring_kernel::event::KeyHolder;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::flow::Meter;
use mainspring_kernel::{
    DlqItem, Entity, Job, JobId, QueueSpec, TenantId, Timestamp, Token, Transition, TypeSpec,
    UserId,
};

/// Records stand alone, so their instants are counted from the start of 1970.
const BASE: Timestamp = Timestamp::EPOCH;

/// Numbers of the kinds. Stored for good: append only.
mod kind {
    pub(super) const JOB: u8 = 1;
    pub(super) const ITEM: u8 = 2;
    pub(super) const TYPE: u8 = 3;
    pub(super) const QUEUE: u8 = 4;
    pub(super) const TOKEN: u8 = 5;
    pub(super) const KEY: u8 = 6;
    pub(super) const COUNTERS: u8 = 7;
    pub(super) const ENTITY: u8 = 8;
    pub(super) const MOVES: u8 = 9;
    pub(super) const METER: u8 = 10;
}

/// One whole thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A job and its history.
    Job(Box<JobWithHistory>),
    /// A dead-letter item.
    Item(Box<DlqItem>),
    /// A type.
    Type(Box<TypeSpec>),
    /// A queue.
    Queue(QueueSpec),
    /// A token.
    Token(Box<Token>),
    /// An idempotency key.
    Key {
        /// Its digest.
        hash: Digest,
        /// Who holds it.
        holder: KeyHolder,
    },
    /// An entity.
    Entity(Box<Entity>),
    /// Numbers a store counts, by position. A position that is missing reads as zero, so a store
    /// adds new ones at the end.
    Counters(Vec<u64>),
    /// A stretch of the stream; positions follow each other.
    Moves(Vec<LoggedMove>),
    /// A bucket or a circuit.
    Meter {
        /// What it is kept under.
        key: Digest,
        /// How it stands.
        meter: Meter,
    },
}

/// Appends a job and its history.
pub fn encode_job(job: &Job, history: &[Transition], out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(3);
    pen.number(kind::JOB);
    write_job(pen, job, BASE); // 1
    write_history(pen, history, job.created_at); // 2
}

/// Appends a dead-letter item.
pub fn encode_item(item: &DlqItem, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::ITEM);
    write_item(pen, item, BASE); // 1
}

/// Appends an entity.
pub fn encode_entity(entity: &Entity, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::ENTITY);
    write_entity(pen, entity, BASE); // 1
}

/// Appends a type.
pub fn encode_type(spec: &TypeSpec, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::TYPE);
    write_type(pen, spec); // 1
}

/// Appends a queue.
pub fn encode_queue(spec: &QueueSpec, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::QUEUE);
    write_queue(pen, spec); // 1
}

/// Appends a token.
pub fn encode_token(token: &Token, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::TOKEN);
    write_token(pen, token, BASE); // 1
}

/// Appends an idempotency key.
pub fn encode_key(hash: Digest, holder: &KeyHolder, out: &mut Vec<u8>) {
    let KeyHolder { job, fingerprint, free_at } = holder;
    let pen = &mut Pen::new(out);
    let len = length(3, [fingerprint.is_some(), free_at.is_some()]);
    pen.array(len);
    pen.number(kind::KEY);
    pen.bytes(&hash.0); // 1
    pen.bits(job.0); // 2
    if len > 3 {
        pen.optional(fingerprint.as_ref(), |pen, it| pen.bytes(&it.0)); // 3
    }
    if let Some(at) = free_at {
        pen.instant(*at, BASE); // 4
    }
}

/// Appends numbers a store counts, by position.
pub fn encode_counters(counters: &[u64], out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::COUNTERS);
    pen.array(counters.len() as u64); // 1
    for counter in counters {
        pen.number(*counter);
    }
}

/// Appends a bucket or a circuit.
pub fn encode_meter(key: Digest, meter: &Meter, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(3);
    pen.number(kind::METER);
    pen.bytes(&key.0); // 1
    write_meter(pen, meter); // 2
}

/// Appends a stretch of the stream as a record of its own.
pub fn encode_stretch(moves: &[LoggedMove], out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.number(kind::MOVES);
    write_moves(pen, moves); // 1
}

/// Decodes a job and its history that fill `bytes`.
///
/// # Errors
/// If the bytes are anything else.
pub fn decode_job(bytes: &[u8], names: &mut Names) -> Result<JobWithHistory, BadRecord> {
    let mut reader = Reader::new(bytes, 0, names);
    match read_record(&mut reader)? {
        Record::Job(snapshot) if reader.position() == bytes.len() => Ok(*snapshot),
        Record::Job(_) => Err(reader.bad("bytes after the record")),
        Record::Item(_)
        | Record::Type(_)
        | Record::Queue(_)
        | Record::Token(_)
        | Record::Key { .. }
        | Record::Entity(_)
        | Record::Counters(_)
        | Record::Meter { .. }
        | Record::Moves(_) => Err(reader.bad("expected a job")),
    }
}

/// Decodes an entity that fills `bytes`.
///
/// # Errors
/// If the bytes are anything else.
pub fn decode_entity(bytes: &[u8], names: &mut Names) -> Result<Entity, BadRecord> {
    let mut reader = Reader::new(bytes, 0, names);
    match read_record(&mut reader)? {
        Record::Entity(entity) if reader.position() == bytes.len() => Ok(*entity),
        Record::Entity(_) => Err(reader.bad("bytes after the record")),
        Record::Job(_)
        | Record::Item(_)
        | Record::Type(_)
        | Record::Queue(_)
        | Record::Token(_)
        | Record::Key { .. }
        | Record::Counters(_)
        | Record::Meter { .. }
        | Record::Moves(_) => Err(reader.bad("expected an entity")),
    }
}

/// Whose the job is whose record fills `bytes`; nothing behind the owner is read.
///
/// # Errors
/// If the bytes are anything else.
pub fn job_owner(bytes: &[u8], names: &mut Names) -> Result<(TenantId, UserId), BadRecord> {
    let mut reader = Reader::new(bytes, 0, names);
    let (number, mut fields) = reader.kind()?;
    if number != u64::from(kind::JOB) {
        return Err(reader.bad("expected a job"));
    }
    reader.field(&mut fields, read_owner)
}

/// The records of `bytes`, one after another. Ends after the first bad one.
#[derive(Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    offset: usize,
    names: &'a mut Names,
}

/// Reads the records that fill `bytes`.
pub fn records_of<'a>(bytes: &'a [u8], names: &'a mut Names) -> Records<'a> {
    Records { bytes, offset: 0, names }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, BadRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.bytes.len() {
            return None;
        }
        let mut reader = Reader::new(self.bytes, self.offset, self.names);
        let record = read_record(&mut reader);
        self.offset = if record.is_ok() { reader.position() } else { self.bytes.len() };
        Some(record)
    }
}

fn read_record(reader: &mut Reader<'_, '_>) -> Result<Record, BadRecord> {
    let (number, mut fields) = reader.kind()?;
    let at = &mut fields;
    let record = match u8::try_from(number).unwrap_or(0) {
        kind::JOB => {
            let job = *reader.field(at, |reader| read_job(reader, BASE))?;
            let history = reader.field(at, |reader| read_history(reader, job.created_at))?;
            Record::Job(Box::new(JobWithHistory { job, history }))
        }
        kind::ITEM => Record::Item(Box::new(reader.field(at, |reader| read_item(reader, BASE))?)),
        kind::TYPE => Record::Type(Box::new(reader.field(at, read_type)?)),
        kind::QUEUE => Record::Queue(reader.field(at, read_queue)?),
        kind::TOKEN => {
            Record::Token(Box::new(reader.field(at, |reader| read_token(reader, BASE))?))
        }
        kind::KEY => Record::Key {
            hash: reader.field(at, Reader::digest)?,
            holder: KeyHolder {
                job: JobId(reader.field(at, Reader::bits)?),
                fingerprint: reader.optional(at, Reader::digest)?,
                free_at: reader.optional(at, |reader| reader.instant(BASE))?,
            },
        },
        kind::COUNTERS => Record::Counters(reader.field(at, |reader| reader.list(Reader::number))?),
        kind::ENTITY => {
            Record::Entity(Box::new(reader.field(at, |reader| read_entity(reader, BASE))?))
        }
        kind::MOVES => Record::Moves(reader.field(at, read_moves)?),
        kind::METER => Record::Meter {
            key: reader.field(at, Reader::digest)?,
            meter: reader.field(at, read_meter)?,
        },
        _ => return Err(reader.bad("unknown kind of record")),
    };
    reader.end(fields)?;
    Ok(record)
}
