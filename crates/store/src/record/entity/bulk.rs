//! Bulk operations, and what became of the things they are about. What is new goes to the end of
//! its array.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::alert::Milli;
use mainspring_kernel::entity::bulk::{
    Bulk, BulkAction, BulkFilter, BulkPage, BulkSpec, BulkStatus, Canary, Outcome, Signed, Stopped,
};
use mainspring_kernel::{JobId, JobType, QueueName, StateName, Timestamp, TokenId, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_bulk(pen: &mut Pen<'_>, bulk: &Bulk, base: Timestamp) {
    let Bulk { spec, asked_with, asked_at, matched, status, approved, stopped, .. } = bulk;
    let Bulk { cursor, done, failed, outcomes, pages, canaries, is_judged, ended_at, .. } = bulk;
    let BulkSpec { action, filter, reason, canary } = spec;
    pen.array(18);
    pen.number(action.number()); // 0
    write_filter(pen, filter, base); // 1
    pen.text(reason); // 2
    pen.optional(*canary, |pen, canary| {
        pen.array(2);
        pen.number(canary.first); // 0
        pen.number(canary.max_failure_ratio.0); // 1
    }); // 3
    pen.bits(asked_with.0); // 4
    pen.instant(*asked_at, base); // 5
    pen.number(*matched); // 6
    pen.number(status.number()); // 7
    pen.optional(approved.as_ref(), |pen, signed| {
        pen.array(2);
        pen.text(signed.by.as_str()); // 0
        pen.instant(signed.at, base); // 1
    }); // 8
    pen.optional(stopped.as_ref(), |pen, stopped| {
        pen.array(2);
        pen.text(&stopped.why); // 0
        pen.optional(stopped.by.as_ref(), |pen, by| pen.text(by.as_str())); // 1
    }); // 9
    pen.optional(*cursor, Pen::bits); // 10
    pen.number(*done); // 11
    pen.number(*failed); // 12
    write_outcomes(pen, outcomes); // 13
    pen.number(*pages); // 14
    pen.array(canaries.len() as u64); // 15
    canaries.iter().for_each(|job| pen.bits(job.0));
    pen.flag(*is_judged); // 16
    pen.optional(*ended_at, |pen, at| pen.instant(at, base)); // 17
}

pub(super) fn read_bulk(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Bulk> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let action = BulkAction::of_number(reader.field(at, Reader::small)?)
        .ok_or_else(|| reader.bad("unknown action of a bulk operation"))?;
    let spec = BulkSpec {
        action,
        filter: reader.field(at, |reader| read_filter(reader, base))?,
        reason: reader.field(at, Reader::boxed)?,
        canary: reader.optional(at, read_canary)?,
    };
    let asked_with = TokenId(reader.field(at, Reader::bits)?);
    let asked_at = reader.field(at, |reader| reader.instant(base))?;
    let matched = reader.field(at, Reader::number)?;
    let status = BulkStatus::of_number(reader.field(at, Reader::small)?)
        .ok_or_else(|| reader.bad("unknown status of a bulk operation"))?;
    let bulk = Bulk {
        spec,
        asked_with,
        asked_at,
        matched,
        status,
        approved: reader.optional(at, |reader| read_signed(reader, base))?,
        stopped: reader.optional(at, read_stopped)?,
        cursor: reader.optional(at, Reader::bits)?,
        done: reader.field(at, Reader::number)?,
        failed: reader.field(at, Reader::number)?,
        outcomes: reader.field(at, read_outcomes)?,
        pages: reader.field(at, Reader::small)?,
        canaries: reader.field(at, |reader| reader.list(|reader| reader.bits().map(JobId)))?,
        is_judged: reader.field(at, Reader::flag)?,
        ended_at: reader.optional(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(bulk)
}

fn read_canary(reader: &mut Reader<'_, '_>) -> Read<Canary> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let canary = Canary {
        first: reader.field(at, Reader::small)?,
        max_failure_ratio: Milli(reader.field(at, Reader::number)?),
    };
    reader.end(fields)?;
    Ok(canary)
}

fn read_signed(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Signed> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let signed = Signed {
        by: UserId::stored(reader.field(at, Reader::name)?),
        at: reader.field(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(signed)
}

fn read_stopped(reader: &mut Reader<'_, '_>) -> Read<Stopped> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let why = reader.field(at, Reader::boxed)?;
    let by = reader.optional(at, Reader::name)?.map(UserId::stored);
    reader.end(fields)?;
    Ok(Stopped { by, why })
}

fn write_filter(pen: &mut Pen<'_>, filter: &BulkFilter, base: Timestamp) {
    let BulkFilter { state, job_type, queue, trace_id, user, labels, .. } = filter;
    let BulkFilter { error_code, signature, since, until, .. } = filter;
    pen.array(10);
    pen.optional(state.map(StateName::as_str), Pen::text); // 0
    pen.optional(job_type.as_ref(), |pen, name| pen.text(name.as_str())); // 1
    pen.optional(queue.as_ref(), |pen, name| pen.text(name.as_str())); // 2
    pen.optional(trace_id.as_deref(), Pen::text); // 3
    pen.optional(user.as_ref(), |pen, name| pen.text(name.as_str())); // 4
    pen.array(labels.len() as u64 * 2); // 5: name, value, name, value...
    for (name, value) in labels {
        pen.text(name);
        pen.text(value);
    }
    pen.optional(error_code.as_deref(), Pen::text); // 6
    pen.optional(signature.as_deref(), Pen::text); // 7
    pen.optional(*since, |pen, at| pen.instant(at, base)); // 8
    pen.optional(*until, |pen, at| pen.instant(at, base)); // 9
}

fn read_filter(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<BulkFilter> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let filter = BulkFilter {
        state: reader.optional(at, read_state)?,
        job_type: reader.optional(at, Reader::name)?.map(JobType::stored),
        queue: reader.optional(at, Reader::name)?.map(QueueName::stored),
        trace_id: reader.optional(at, Reader::boxed)?,
        user: reader.optional(at, Reader::name)?.map(UserId::stored),
        labels: reader.field(at, read_labels)?,
        error_code: reader.optional(at, Reader::boxed)?,
        signature: reader.optional(at, Reader::boxed)?,
        since: reader.optional(at, |reader| reader.instant(base))?,
        until: reader.optional(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(filter)
}

fn read_state(reader: &mut Reader<'_, '_>) -> Read<StateName> {
    let text = reader.boxed()?;
    StateName::parse(&text).ok_or_else(|| reader.bad("unknown state of a job"))
}

fn read_labels(reader: &mut Reader<'_, '_>) -> Read<Vec<(Box<str>, Box<str>)>> {
    let mut texts = reader.list(Reader::boxed)?.into_iter();
    let mut labels = Vec::with_capacity(texts.len() / 2);
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        labels.push((name, value));
    }
    Ok(labels)
}

pub(super) fn write_page(pen: &mut Pen<'_>, page: &BulkPage, base: Timestamp) {
    let BulkPage { keep_until, outcomes } = page;
    pen.array(2);
    pen.instant(*keep_until, base); // 0
    write_outcomes(pen, outcomes); // 1
}

pub(super) fn read_page(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<BulkPage> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let page = BulkPage {
        keep_until: reader.field(at, |reader| reader.instant(base))?,
        outcomes: reader.field(at, read_outcomes)?,
    };
    reader.end(fields)?;
    Ok(page)
}

fn write_outcomes(pen: &mut Pen<'_>, outcomes: &[Outcome]) {
    pen.array(outcomes.len() as u64);
    for Outcome { target, made, code } in outcomes {
        pen.array(3);
        pen.bits(*target); // 0
        pen.optional(made.map(|job| job.0), Pen::bits); // 1
        pen.optional(code.as_deref(), Pen::text); // 2
    }
}

fn read_outcomes(reader: &mut Reader<'_, '_>) -> Read<Vec<Outcome>> {
    reader.list(|reader| {
        let mut fields = reader.fields()?;
        let at = &mut fields;
        let outcome = Outcome {
            target: reader.field(at, Reader::bits)?,
            made: reader.optional(at, Reader::bits)?.map(JobId),
            code: reader.optional(at, Reader::boxed)?,
        };
        reader.end(fields)?;
        Ok(outcome)
    })
}
