//! The parts of triggers: conditions, what is known of their leaves, what was decided.

use super::super::super::BadRecord;
use super::super::super::wire::{Fields, Pen, Reader};
use mainspring_kernel::entity::trigger::{
    Condition, Ended, Evaluation, Finding, LeafState, Outcome, Truth, Why,
};
use mainspring_kernel::limits::TRIGGER_DEPTH_MAX;
use mainspring_kernel::{JobId, Timestamp};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_condition(pen: &mut Pen<'_>, condition: &Condition) {
    let text = |pen: &mut Pen<'_>, number: u8, text: &str| {
        pen.array(2);
        pen.number(number); // 0
        pen.text(text); // 1
    };
    let parts = |pen: &mut Pen<'_>, number: u8, parts: &[Condition]| {
        pen.array(2);
        pen.number(number); // 0
        pen.array(parts.len() as u64); // 1
        parts.iter().for_each(|part| write_condition(pen, part));
    };
    match condition {
        Condition::FileChanged { path, fires_on_init } => {
            pen.array(3);
            pen.number(0u8); // 0
            pen.text(path); // 1
            pen.flag(*fires_on_init); // 2
        }
        Condition::FileExists { path } => text(pen, 1, path),
        Condition::TaskDone { task } => text(pen, 2, task),
        Condition::TaskFailed { task } => text(pen, 3, task),
        Condition::LlmEval { prompt } => text(pen, 4, prompt),
        Condition::And(all) => parts(pen, 5, all),
        Condition::Or(all) => parts(pen, 6, all),
    }
}

pub(super) fn read_condition(reader: &mut Reader<'_, '_>) -> Read<Condition> {
    read_part(reader, 1)
}

/// Bytes that nobody wrote must not make it go deeper than a condition can be.
fn read_part(reader: &mut Reader<'_, '_>, depth: usize) -> Read<Condition> {
    if depth > TRIGGER_DEPTH_MAX {
        return Err(reader.bad("a condition is too deep"));
    }
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let parts = |reader: &mut Reader<'_, '_>, at: &mut Fields| {
        reader.field(at, |reader| reader.list(|reader| read_part(reader, depth + 1)))
    };
    let condition = match kind {
        0 => Condition::FileChanged {
            path: reader.field(at, Reader::boxed)?,
            fires_on_init: reader.field(at, Reader::flag)?,
        },
        1 => Condition::FileExists { path: reader.field(at, Reader::boxed)? },
        2 => Condition::TaskDone { task: reader.field(at, Reader::boxed)? },
        3 => Condition::TaskFailed { task: reader.field(at, Reader::boxed)? },
        4 => Condition::LlmEval { prompt: reader.field(at, Reader::boxed)? },
        5 => Condition::And(parts(reader, at)?),
        6 => Condition::Or(parts(reader, at)?),
        _ => return Err(reader.bad("unknown kind of condition")),
    };
    reader.end(fields)?;
    Ok(condition)
}

pub(super) fn write_leaf(pen: &mut Pen<'_>, leaf: &LeafState, base: Timestamp) {
    match leaf {
        LeafState::Changed { is_initialized, taken, held } => {
            pen.array(4);
            pen.number(0u8); // 0
            pen.flag(*is_initialized); // 1
            pen.optional(*taken, |pen, at| pen.instant(at, base)); // 2
            pen.optional(*held, |pen, at| pen.instant(at, base)); // 3
        }
        LeafState::Exists { is_there } => {
            pen.array(2);
            pen.number(1u8); // 0
            pen.flag(*is_there); // 1
        }
        LeafState::Task { taken, held } => {
            pen.array(3);
            pen.number(2u8); // 0
            pen.optional(*taken, |pen, job| pen.bits(job.0)); // 1
            pen.optional(held.as_deref(), |pen, ended| {
                let Ended { job, is_done, trace, parent_task_id } = ended;
                pen.array(4);
                pen.bits(job.0); // 0
                pen.flag(*is_done); // 1
                pen.optional(trace.as_deref(), |pen, text| pen.text(text)); // 2
                pen.optional(parent_task_id.as_deref(), |pen, text| pen.text(text)); // 3
            }); // 2
        }
        LeafState::Llm { asked_at, answer } => {
            pen.array(3);
            pen.number(3u8); // 0
            pen.optional(*asked_at, |pen, at| pen.instant(at, base)); // 1
            pen.optional(*answer, Pen::flag); // 2
        }
    }
}

pub(super) fn read_leaf(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<LeafState> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let leaf = match kind {
        0 => LeafState::Changed {
            is_initialized: reader.field(at, Reader::flag)?,
            taken: reader.optional(at, |reader| reader.instant(base))?,
            held: reader.optional(at, |reader| reader.instant(base))?,
        },
        1 => LeafState::Exists { is_there: reader.field(at, Reader::flag)? },
        2 => LeafState::Task {
            taken: reader.optional(at, Reader::bits)?.map(JobId),
            held: reader.optional(at, |reader| read_ended(reader).map(Box::new))?,
        },
        3 => LeafState::Llm {
            asked_at: reader.optional(at, |reader| reader.instant(base))?,
            answer: reader.optional(at, Reader::flag)?,
        },
        _ => return Err(reader.bad("unknown kind of leaf")),
    };
    reader.end(fields)?;
    Ok(leaf)
}

fn read_ended(reader: &mut Reader<'_, '_>) -> Read<Ended> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let ended = Ended {
        job: JobId(reader.field(at, Reader::bits)?),
        is_done: reader.field(at, Reader::flag)?,
        trace: reader.optional(at, Reader::boxed)?,
        parent_task_id: reader.optional(at, Reader::boxed)?,
    };
    reader.end(fields)?;
    Ok(ended)
}

pub(super) fn write_evaluation(pen: &mut Pen<'_>, line: &Evaluation, base: Timestamp) {
    let Evaluation { at, outcome, findings, job, next_at } = line;
    pen.array(5);
    pen.instant(*at, base); // 0
    let number: u8 = match outcome {
        Outcome::Fired => 0,
        Outcome::Asked => 1,
        Outcome::Due => 2,
        Outcome::Cooling => 3,
        Outcome::Running => 4,
        Outcome::NotYet => 5,
        Outcome::Undecided => 6,
        Outcome::Refused(_) => 7,
        Outcome::Stuck => 8,
    };
    match outcome {
        Outcome::Refused(code) => {
            pen.array(2); // 1
            pen.number(number); // 0
            pen.text(code); // 1
        }
        Outcome::Fired
        | Outcome::Asked
        | Outcome::Due
        | Outcome::Cooling
        | Outcome::Running
        | Outcome::NotYet
        | Outcome::Undecided
        | Outcome::Stuck => pen.number(number), // 1
    }
    pen.array(findings.len() as u64); // 2
    findings.iter().for_each(|finding| write_finding(pen, *finding, base));
    pen.optional(*job, |pen, job| pen.bits(job.0)); // 3
    pen.optional(*next_at, |pen, at| pen.instant(at, base)); // 4
}

pub(super) fn read_evaluation(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Evaluation> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let line = Evaluation {
        at: reader.field(at, |reader| reader.instant(base))?,
        outcome: reader.field(at, read_outcome)?,
        findings: reader.field(at, |reader| reader.list(|reader| read_finding(reader, base)))?,
        job: reader.optional(at, Reader::bits)?.map(JobId),
        next_at: reader.optional(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(line)
}

fn read_outcome(reader: &mut Reader<'_, '_>) -> Read<Outcome> {
    let (kind, mut fields) = reader.kind()?;
    let outcome = match kind {
        0 => Outcome::Fired,
        1 => Outcome::Asked,
        2 => Outcome::Due,
        3 => Outcome::Cooling,
        4 => Outcome::Running,
        5 => Outcome::NotYet,
        6 => Outcome::Undecided,
        7 => Outcome::Refused(reader.field(&mut fields, Reader::boxed)?),
        8 => Outcome::Stuck,
        _ => return Err(reader.bad("unknown outcome of an evaluation")),
    };
    reader.end(fields)?;
    Ok(outcome)
}

fn write_finding(pen: &mut Pen<'_>, finding: Finding, base: Timestamp) {
    let (number, at, job): (u8, Option<Timestamp>, Option<JobId>) = match finding.why {
        Why::Unchanged => (0, None, None),
        Why::Changed(at) => (1, Some(at), None),
        Why::Unsettled(at) => (2, Some(at), None),
        Why::Exists => (3, None, None),
        Why::Missing => (4, None, None),
        Why::NoResult => (5, None, None),
        Why::Ended(job) => (6, None, Some(job)),
        Why::Unanswered => (7, None, None),
        Why::Yes => (8, None, None),
        Why::No => (9, None, None),
    };
    pen.array(2 + u64::from(at.is_some() || job.is_some()));
    pen.number(match finding.truth {
        Truth::True => 0u8,
        Truth::False => 1,
        Truth::Undecided => 2,
    }); // 0
    pen.number(number); // 1
    if let Some(at) = at {
        pen.instant(at, base); // 2
    }
    if let Some(job) = job {
        pen.bits(job.0); // 2
    }
}

fn read_finding(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Finding> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let truth = reader.field(at, |reader| match reader.number()? {
        0 => Ok(Truth::True),
        1 => Ok(Truth::False),
        2 => Ok(Truth::Undecided),
        _ => Err(reader.bad("unknown truth")),
    })?;
    let why = match reader.field(at, Reader::number)? {
        0 => Why::Unchanged,
        1 => Why::Changed(reader.field(at, |reader| reader.instant(base))?),
        2 => Why::Unsettled(reader.field(at, |reader| reader.instant(base))?),
        3 => Why::Exists,
        4 => Why::Missing,
        5 => Why::NoResult,
        6 => Why::Ended(JobId(reader.field(at, Reader::bits)?)),
        7 => Why::Unanswered,
        8 => Why::Yes,
        9 => Why::No,
        _ => return Err(reader.bad("unknown finding")),
    };
    reader.end(fields)?;
    Ok(Finding { truth, why })
}
