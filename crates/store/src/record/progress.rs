//! What changes of a job after its submission, without what never does, and moves as a store of
//! several servers logs them. For stores that write the submission once and keep it elsewhere.

use super::BadRecord;
use super::attempt::{read_report, write_report};
use super::job::{read_effect, read_state, read_trouble, write_effect, write_state, write_trouble};
use super::names::Names;
use super::transition::{read_history, read_transition, write_history, write_transition};
use super::wire::{Pen, Reader, length};
use mainspring_kernel::job::Extras;
use mainspring_kernel::{Job, JobId, Timestamp, Transition};

/// Appends what has happened to `job` since its submission. `history` is whole; its first line can
/// be told from the submission and is not written.
pub fn encode_progress(job: &Job, history: &[Transition], out: &mut Vec<u8>) {
    let base = job.created_at;
    let Extras { effects, progress_pct, .. } = job.extras.as_deref().unwrap_or(&NO_EXTRAS);
    let rare = [
        job.started_at.is_some(),
        job.trouble.is_some(),
        job.last_report.is_some(),
        !effects.is_empty(),
        progress_pct.is_some(),
    ];
    let pen = &mut Pen::new(out);
    let len = length(6, rare);
    pen.array(len);
    write_state(pen, &job.state, base); // 0
    pen.instant(job.updated_at, base); // 1
    pen.number(job.seq); // 2
    pen.number(job.retry_count); // 3
    pen.number(job.fence); // 4
    write_history(pen, history.get(1..).unwrap_or_default(), base); // 5
    if len > 6 {
        pen.optional(job.started_at, |pen, at| pen.instant(at, base)); // 6
    }
    if len > 7 {
        pen.optional(job.trouble.as_deref(), |pen, it| write_trouble(pen, it, base)); // 7
    }
    if len > 8 {
        pen.optional(job.last_report.as_deref(), write_report); // 8
    }
    if len > 9 {
        pen.array(effects.len() as u64); // 9
        for effect in effects {
            write_effect(pen, effect, base);
        }
    }
    if len > 10 {
        pen.optional(*progress_pct, Pen::number); // 10
    }
}

static NO_EXTRAS: Extras = Extras {
    parent: None,
    source_dlq: None,
    subject: None,
    labels: Vec::new(),
    expires_at: None,
    effects: Vec::new(),
    progress_pct: None,
};

/// Brings `job`, as it was submitted, to where `bytes` say it stands; its whole history.
///
/// # Errors
/// If the bytes are no such record; the job is then half done and of no use.
pub fn apply_progress(job: &mut Job, bytes: &[u8]) -> Result<Vec<Transition>, BadRecord> {
    let mut names = Names::default();
    let reader = &mut Reader::new(bytes, 0, &mut names);
    let base = job.created_at;
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let mut history = vec![Transition::submitted(job)];
    job.state = reader.field(at, |reader| read_state(reader, base))?;
    job.updated_at = reader.field(at, |reader| reader.instant(base))?;
    job.seq = reader.field(at, Reader::small)?;
    job.retry_count = reader.field(at, Reader::small)?;
    job.fence = reader.field(at, Reader::small)?;
    history.extend(reader.field(at, |reader| read_history(reader, base))?);
    job.started_at = reader.optional(at, |reader| reader.instant(base))?;
    job.trouble = reader.optional(at, |reader| read_trouble(reader, base))?;
    job.last_report = reader.optional(at, read_report)?;
    let effects = reader.optional(at, |reader| reader.list(|reader| read_effect(reader, base)))?;
    let progress_pct = reader.optional(at, Reader::small)?;
    reader.end(fields)?;
    if effects.is_some() || progress_pct.is_some() {
        let extras = job.extras_mut();
        extras.effects = effects.unwrap_or_default();
        extras.progress_pct = progress_pct;
    }
    Ok(history)
}

/// A move as it is logged: which job, and how it moved; nothing for its submission, which the job
/// itself tells.
pub type LoggedStep = (JobId, Option<Transition>);

/// Appends moves, in order.
pub fn encode_steps(steps: &[LoggedStep], base: Timestamp, out: &mut Vec<u8>) {
    let pen = &mut Pen::new(out);
    pen.array(2);
    pen.instant(base, Timestamp::EPOCH); // 0
    pen.array(steps.len() as u64); // 1
    for (job, step) in steps {
        pen.array(length(1, [step.is_some()]));
        pen.bits(job.0); // 0
        if let Some(step) = step {
            write_transition(pen, step, base); // 1
        }
    }
}

/// The moves that fill `bytes`.
///
/// # Errors
/// If the bytes are no such record.
pub fn decode_steps(bytes: &[u8]) -> Result<Vec<LoggedStep>, BadRecord> {
    let mut names = Names::default();
    let reader = &mut Reader::new(bytes, 0, &mut names);
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let base = reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?;
    let steps = reader.field(at, |reader| {
        reader.list(|reader| {
            let mut fields = reader.fields()?;
            let job = JobId(reader.field(&mut fields, Reader::bits)?);
            let step = reader.optional(&mut fields, |reader| read_transition(reader, base))?;
            reader.end(fields)?;
            Ok((job, step))
        })
    })?;
    reader.end(fields)?;
    Ok(steps)
}
