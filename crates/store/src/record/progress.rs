//! What changes of a job after its submission, without what never does, and moves as a store of
//! several servers logs them. For stores that write the submission once and keep it elsewhere.

use super::BadRecord;
use super::attempt::{read_report, write_report};
use super::course::{Checkpoint, read_course, write_course};
use super::job::{read_effect, read_last_failure, read_state, write_last_failure, write_state};
use super::names::Names;
use super::transition::{read_history, read_transition, write_history, write_transition};
use super::wire::{Pen, Reader, length};
use mainspring_kernel::job::EffectTotals;
use mainspring_kernel::{Job, JobId, Timestamp, Transition};

/// Appends what has happened to `job` since its submission. `history` is whole; its first line can
/// be told from the submission and is not written. Nor are effects, which are kept elsewhere: only
/// how many there are.
pub fn encode_progress(job: &Job, history: &[Transition], out: &mut Vec<u8>) {
    let base = job.created_at;
    let progress_pct = job.extras.as_ref().and_then(|extras| extras.progress_pct);
    let effects = job.effect_totals();
    let rare = [
        job.started_at.is_some(),
        job.last_failure.is_some(),
        job.last_report.is_some(),
        false,
        progress_pct.is_some(),
        effects.count > 0,
        false,
        job.course().is_some(),
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
        pen.optional(job.last_failure.as_deref(), |pen, it| write_last_failure(pen, it, base)); // 7
    }
    if len > 8 {
        pen.optional(job.last_report.as_deref(), write_report); // 8
    }
    if len > 9 {
        pen.null(); // 9: effects themselves, in records of before they were kept elsewhere
    }
    if len > 10 {
        pen.optional(progress_pct, Pen::number); // 10
    }
    if len > 11 {
        pen.array(2); // 11
        pen.number(effects.count);
        pen.number(effects.bytes);
    }
    if let Some(course) = job.course() {
        pen.null(); // 12: given out
        write_course(pen, course, Checkpoint::Elsewhere); // 13
    }
}

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
    job.last_failure = reader.optional(at, |reader| read_last_failure(reader, base))?;
    job.last_report = reader.optional(at, read_report)?;
    let effects = reader.optional(at, |reader| reader.list(|reader| read_effect(reader, base)))?;
    let progress_pct = reader.optional(at, Reader::small)?;
    let elsewhere = reader.optional(at, read_totals)?;
    reader.optional(at, |reader| Err::<(), _>(reader.bad("of another version")))?;
    let course = reader.optional(at, read_course)?;
    reader.end(fields)?;
    if effects.is_some() || progress_pct.is_some() || elsewhere.is_some() || course.is_some() {
        let extras = job.extras_mut();
        extras.effects = effects.unwrap_or_default();
        extras.effects_elsewhere = elsewhere.unwrap_or_default();
        extras.progress_pct = progress_pct;
        extras.course = course;
    }
    Ok(history)
}

fn read_totals(reader: &mut Reader<'_, '_>) -> Result<EffectTotals, BadRecord> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let totals = EffectTotals {
        count: reader.field(at, Reader::small)?,
        bytes: reader.field(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(totals)
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

#[cfg(test)]
mod tests {
    use super::super::job::write_effect;
    use super::*;
    use mainspring_kernel::job::Effect;
    use mainspring_kernel::{JobType, QueueName, State, TenantId, UserId};

    fn job() -> Job {
        let at = Timestamp::from_millis(1_790_000_000_000);
        Job {
            id: JobId(7),
            tenant: TenantId::stored("acme".into()),
            user: UserId::stored("ada".into()),
            job_type: JobType::stored("mill".into()),
            queue: QueueName::stored("default".into()),
            payload: "1".into(),
            priority: 50,
            max_retries: 3,
            retry_count: 0,
            timeout_ms: 1_000,
            seq: 1,
            fence: 0,
            created_at: at,
            updated_at: at,
            run_at: at,
            started_at: None,
            trace: None,
            idempotency: None,
            last_failure: None,
            last_report: None,
            extras: None,
            state: State::Queued,
        }
    }

    fn effect(name: &str) -> Effect {
        Effect { name: name.into(), value: "17".into(), committed_at: job().created_at }
    }

    /// A record of the version that kept effects inside, written as that version wrote it.
    fn record_with_effects_inside(effects: &[Effect]) -> Vec<u8> {
        let (mut out, job) = (Vec::new(), job());
        let pen = &mut Pen::new(&mut out);
        pen.array(11);
        write_state(pen, &State::DlqPending, job.created_at);
        pen.instant(job.updated_at, job.created_at);
        pen.number(4_u32);
        pen.number(1_u16);
        pen.number(2_u32);
        write_history(pen, &[], job.created_at);
        pen.null();
        pen.null();
        pen.null();
        pen.array(effects.len() as u64);
        effects.iter().for_each(|effect| write_effect(pen, effect, job.created_at));
        pen.number(40_u8);
        out
    }

    #[test]
    fn a_record_with_effects_inside_still_opens() {
        let inside = [effect("charge"), effect("mail")];
        let mut read = job();
        apply_progress(&mut read, &record_with_effects_inside(&inside)).unwrap();
        let extras = read.extras.as_ref().unwrap();
        assert_eq!((extras.effects.as_slice(), extras.progress_pct), (&inside[..], Some(40)));
        assert_eq!(extras.effects_elsewhere, EffectTotals::default());
        assert_eq!((read.seq, read.state.name()), (4, mainspring_kernel::StateName::DlqPending));
    }

    #[test]
    fn a_record_says_how_many_effects_there_are_and_not_which() {
        let mut written = job();
        written.extras_mut().effects = vec![effect("charge"), effect("mail")];
        written.extras_mut().effects_elsewhere = EffectTotals { count: 3, bytes: 1_000 };
        let mut out = Vec::new();
        encode_progress(&written, &[Transition::submitted(&written)], &mut out);
        assert!(!out.windows(6).any(|part| part == b"charge"), "{out:?}");
        let mut read = job();
        apply_progress(&mut read, &out).unwrap();
        assert_eq!(read.effect_totals(), EffectTotals { count: 5, bytes: 1_000 + 8 + 6 });
        assert!(read.extras.unwrap().effects.is_empty());
    }
}
