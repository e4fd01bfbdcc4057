//! Triggers. What is new goes to the end of its array. Conditions, what is known of leaves, and
//! what was decided are in `trigger/parts.rs`.

mod parts;

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::schedule::Pause;
use mainspring_kernel::entity::trigger::{
    LastStatus, Outstanding, Pace, Status, Trigger, TriggerSpec, TriggerType,
};
use mainspring_kernel::{JobId, Timestamp, UserId};
use parts::{
    read_condition, read_evaluation, read_leaf, write_condition, write_evaluation, write_leaf,
};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_trigger(pen: &mut Pen<'_>, trigger: &Trigger, base: Timestamp) {
    let Trigger {
        spec,
        status,
        leaves,
        last_triggered_at,
        last_eval_at,
        outstanding,
        last_status,
        last_error,
        last_duration_ms,
        next_run_at,
        fired,
        log,
        made_elsewhere_at,
    } = trigger;
    pen.array(13);
    write_spec(pen, spec, base); // 0
    match status {
        Status::Active => pen.number(0u8), // 1
        Status::Paused(pause) => {
            let Pause { by, at, note } = &**pause;
            pen.array(4); // 1
            pen.number(1u8); // 0
            pen.optional(by.as_ref(), |pen, by| pen.text(by.as_str())); // 1
            pen.instant(*at, base); // 2
            pen.optional(note.as_deref(), |pen, note| pen.text(note)); // 3
        }
    }
    pen.array(leaves.len() as u64); // 2
    leaves.iter().for_each(|leaf| write_leaf(pen, leaf, base));
    pen.optional(*last_triggered_at, |pen, at| pen.instant(at, base)); // 3
    pen.optional(*last_eval_at, |pen, at| pen.instant(at, base)); // 4
    pen.optional(*outstanding, |pen, Outstanding { job, at, look_at, leaf }| {
        pen.array(4);
        pen.bits(job.0); // 0
        pen.instant(at, base); // 1
        pen.instant(look_at, base); // 2
        pen.optional(leaf, Pen::number); // 3
    }); // 5
    pen.optional(*last_status, |pen, status| {
        pen.number(match status {
            LastStatus::Ok => 0u8,
            LastStatus::Error => 1,
            LastStatus::Skipped => 2,
        });
    }); // 6
    pen.optional(last_error.as_deref(), |pen, error| pen.text(error)); // 7
    pen.optional(*last_duration_ms, Pen::number); // 8
    pen.optional(*next_run_at, |pen, at| pen.instant(at, base)); // 9
    pen.number(*fired); // 10
    pen.array(log.len() as u64); // 11
    log.iter().for_each(|line| write_evaluation(pen, line, base));
    pen.optional(*made_elsewhere_at, |pen, at| pen.instant(at, base)); // 12
}

pub(super) fn read_trigger(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Trigger> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let trigger = Trigger {
        spec: reader.field(at, |reader| read_spec(reader, base))?,
        status: reader.field(at, |reader| read_status(reader, base))?,
        leaves: reader.field(at, |reader| reader.list(|reader| read_leaf(reader, base)))?,
        last_triggered_at: reader.optional(at, |reader| reader.instant(base))?,
        last_eval_at: reader.optional(at, |reader| reader.instant(base))?,
        outstanding: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let at = &mut fields;
            let outstanding = Outstanding {
                job: JobId(reader.field(at, Reader::bits)?),
                at: reader.field(at, |reader| reader.instant(base))?,
                look_at: reader.field(at, |reader| reader.instant(base))?,
                leaf: reader.optional(at, Reader::small)?,
            };
            reader.end(fields)?;
            Ok(outstanding)
        })?,
        last_status: reader.optional(at, |reader| match reader.number()? {
            0 => Ok(LastStatus::Ok),
            1 => Ok(LastStatus::Error),
            2 => Ok(LastStatus::Skipped),
            _ => Err(reader.bad("unknown end of a run")),
        })?,
        last_error: reader.optional(at, Reader::boxed)?,
        last_duration_ms: reader.optional(at, Reader::number)?,
        next_run_at: reader.optional(at, |reader| reader.instant(base))?,
        fired: reader.field(at, Reader::small)?,
        log: reader.field(at, |reader| reader.list(|reader| read_evaluation(reader, base)))?,
        made_elsewhere_at: reader.optional(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(trigger)
}

fn read_status(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Status> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let status = match kind {
        0 => Status::Active,
        1 => Status::Paused(Box::new(Pause {
            by: reader.optional(at, Reader::name)?.map(UserId::stored),
            at: reader.field(at, |reader| reader.instant(base))?,
            note: reader.optional(at, Reader::boxed)?,
        })),
        _ => return Err(reader.bad("unknown state of a trigger")),
    };
    reader.end(fields)?;
    Ok(status)
}

fn write_spec(pen: &mut Pen<'_>, spec: &TriggerSpec, base: Timestamp) {
    let TriggerSpec {
        name,
        kind,
        interval_secs,
        run_at,
        condition,
        cooldown_secs,
        prompt,
        priority,
        timeout_secs,
        trace,
        parent_task_id,
        pace,
        sees_tenant,
    } = spec;
    pen.array(15);
    pen.text(name); // 0
    pen.number(match kind {
        TriggerType::Recurring => 0u8,
        TriggerType::Scheduled => 1,
        TriggerType::Conditional => 2,
    }); // 1
    pen.optional(*interval_secs, Pen::number); // 2
    pen.optional(*run_at, |pen, at| pen.instant(at, base)); // 3
    pen.optional(condition.as_ref(), write_condition); // 4
    pen.number(*cooldown_secs); // 5
    pen.text(prompt); // 6
    pen.number(*priority); // 7
    pen.optional(*timeout_secs, Pen::number); // 8
    pen.optional(trace.as_deref(), |pen, text| pen.text(text)); // 9
    pen.optional(parent_task_id.as_deref(), |pen, text| pen.text(text)); // 10
    let Pace { check_ms, settle_ms, stuck_ms } = pace;
    pen.number(*check_ms); // 11
    pen.number(*settle_ms); // 12
    pen.number(*stuck_ms); // 13
    pen.flag(*sees_tenant); // 14
}

fn read_spec(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<TriggerSpec> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let spec = TriggerSpec {
        name: reader.field(at, Reader::boxed)?,
        kind: reader.field(at, |reader| match reader.number()? {
            0 => Ok(TriggerType::Recurring),
            1 => Ok(TriggerType::Scheduled),
            2 => Ok(TriggerType::Conditional),
            _ => Err(reader.bad("unknown type of a trigger")),
        })?,
        interval_secs: reader.optional(at, Reader::number)?,
        run_at: reader.optional(at, |reader| reader.instant(base))?,
        condition: reader.optional(at, read_condition)?,
        cooldown_secs: reader.field(at, Reader::number)?,
        prompt: reader.field(at, Reader::boxed)?,
        priority: reader.field(at, Reader::small)?,
        timeout_secs: reader.optional(at, Reader::small)?,
        trace: reader.optional(at, Reader::boxed)?,
        parent_task_id: reader.optional(at, Reader::boxed)?,
        pace: Pace {
            check_ms: reader.field(at, Reader::number)?,
            settle_ms: reader.field(at, Reader::number)?,
            stuck_ms: reader.field(at, Reader::number)?,
        },
        sees_tenant: reader.field(at, Reader::flag)?,
    };
    reader.end(fields)?;
    Ok(spec)
}
