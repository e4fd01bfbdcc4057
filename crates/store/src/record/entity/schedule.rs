//! Schedules. What is new goes to the end of its array.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader, length};
use mainspring_kernel::calendar::{Cron, Date, Exclusions, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::{
    Account, Misfire, Outcome, OutcomeKind, Overlap, Pause, Schedule, ScheduleSpec, Status,
    TaskPlan, Template, Waiting,
};
use mainspring_kernel::{JobId, JobType, QueueName, Timestamp, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_schedule(pen: &mut Pen<'_>, schedule: &Schedule, base: Timestamp) {
    let Schedule {
        spec,
        namespace,
        template,
        task,
        status,
        next_at,
        catch_up_at,
        waiting,
        outstanding,
        last_fire_at,
        runs,
        by_hand,
        skipped,
        failures_in_a_row,
        history,
        fired,
        gone_at,
    } = schedule;
    let stretches = fired.stretches();
    let tail = [!stretches.is_empty(), task.is_some(), gone_at.is_some()];
    pen.array(length(14, tail));
    write_spec(pen, spec, base); // 0
    pen.text(namespace); // 1
    pen.optional(template.as_ref(), |pen, Template { name, entry }| {
        pen.array(2);
        pen.text(name); // 0
        pen.bytes(&entry.0); // 1
    }); // 2
    write_status(pen, status, base); // 3
    pen.optional(*next_at, |pen, at| pen.instant(at, base)); // 4
    pen.optional(*catch_up_at, |pen, at| pen.instant(at, base)); // 5
    pen.optional(*waiting, |pen, Waiting { at, look_at }| {
        pen.array(2);
        pen.instant(at, base); // 0
        pen.instant(look_at, base); // 1
    }); // 6
    pen.array(outstanding.len() as u64); // 7
    outstanding.iter().for_each(|job| pen.bits(job.0));
    pen.optional(*last_fire_at, |pen, at| pen.instant(at, base)); // 8
    pen.number(*runs); // 9
    pen.number(*by_hand); // 10
    pen.number(*skipped); // 11
    pen.number(*failures_in_a_row); // 12
    pen.array(history.len() as u64); // 13
    history.iter().for_each(|outcome| write_outcome(pen, outcome, base));
    if tail != [false; 3] {
        let stretches = (!stretches.is_empty()).then_some(stretches);
        pen.optional(stretches, |pen, stretches| {
            pen.array(2 * stretches.len() as u64); // 14
            for (first, last) in stretches {
                pen.instant(*first, base);
                pen.instant(*last, base);
            }
        });
    }
    if tail[1..] != [false; 2] {
        pen.optional(task.as_ref(), |pen, TaskPlan { job, task_id, window_secs, gone_at }| {
            pen.array(4); // 15
            pen.bits(job.0); // 0
            pen.text(task_id); // 1
            pen.optional(*window_secs, Pen::number); // 2
            pen.optional(*gone_at, |pen, at| pen.instant(at, base)); // 3
        });
    }
    if let Some(gone_at) = gone_at {
        pen.instant(*gone_at, base); // 16
    }
}

pub(super) fn read_schedule(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Schedule> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let mut schedule = Schedule {
        task: None,
        gone_at: None,
        spec: reader.field(at, |reader| read_spec(reader, base))?,
        namespace: reader.field(at, Reader::boxed)?,
        template: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let at = &mut fields;
            let template = Template {
                name: reader.field(at, Reader::boxed)?,
                entry: reader.field(at, Reader::digest)?,
            };
            reader.end(fields)?;
            Ok(template)
        })?,
        status: reader.field(at, |reader| read_status(reader, base))?,
        next_at: reader.optional(at, |reader| reader.instant(base))?,
        catch_up_at: reader.optional(at, |reader| reader.instant(base))?,
        waiting: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let at = &mut fields;
            let waiting = Waiting {
                at: reader.field(at, |reader| reader.instant(base))?,
                look_at: reader.field(at, |reader| reader.instant(base))?,
            };
            reader.end(fields)?;
            Ok(waiting)
        })?,
        outstanding: reader.field(at, |reader| reader.list(|reader| reader.bits().map(JobId)))?,
        last_fire_at: reader.optional(at, |reader| reader.instant(base))?,
        runs: reader.field(at, Reader::small)?,
        by_hand: reader.field(at, Reader::small)?,
        skipped: reader.field(at, Reader::number)?,
        failures_in_a_row: reader.field(at, Reader::small)?,
        history: reader.field(at, |reader| reader.list(|reader| read_outcome(reader, base)))?,
        fired: reader
            .optional(at, |reader| {
                let stretches = pairs(reader, |reader| reader.instant(base))?;
                let account = Account::stored(stretches);
                account.ok_or_else(|| reader.bad("an account of firings breaks the rules"))
            })?
            .unwrap_or_default(),
    };
    schedule.task = reader.optional(at, |reader| {
        let mut fields = reader.fields()?;
        let at = &mut fields;
        let task = TaskPlan {
            job: JobId(reader.field(at, Reader::bits)?),
            task_id: reader.field(at, Reader::boxed)?,
            window_secs: reader.optional(at, Reader::small)?,
            gone_at: reader.optional(at, |reader| reader.instant(base))?,
        };
        reader.end(fields)?;
        Ok(task)
    })?;
    schedule.gone_at = reader.optional(at, |reader| reader.instant(base))?;
    reader.end(fields)?;
    Ok(schedule)
}

fn write_spec(pen: &mut Pen<'_>, spec: &ScheduleSpec, base: Timestamp) {
    let ScheduleSpec {
        name,
        job_type,
        payload,
        rhythm,
        misfire,
        misfire_limit,
        overlap,
        jitter_secs,
        start_at,
        end_at,
        max_runs,
        exclude,
        zone,
        pause_after_failures,
        queue,
        priority,
        timeout_ms,
        max_retries,
        labels,
    } = spec;
    pen.array(19);
    pen.optional(name.as_deref(), |pen, name| pen.text(name)); // 0
    pen.text(job_type.as_str()); // 1
    pen.text(payload); // 2
    write_rhythm(pen, rhythm, base); // 3
    pen.number(match misfire {
        Misfire::Coalesce => 0u8,
        Misfire::Skip => 1,
        Misfire::All => 2,
    }); // 4
    pen.number(*misfire_limit); // 5
    pen.number(match overlap {
        Overlap::Allow => 0u8,
        Overlap::Skip => 1,
        Overlap::QueueOne => 2,
        Overlap::CancelRunning => 3,
    }); // 6
    pen.number(*jitter_secs); // 7
    pen.optional(*start_at, |pen, at| pen.instant(at, base)); // 8
    pen.optional(*end_at, |pen, at| pen.instant(at, base)); // 9
    pen.optional(*max_runs, Pen::number); // 10
    pen.array(2 * exclude.ranges().len() as u64); // 11
    for (first, last) in exclude.ranges() {
        pen.number(days_of(*first));
        pen.number(days_of(*last));
    }
    pen.text(zone.name()); // 12
    pen.optional(*pause_after_failures, Pen::number); // 13
    pen.optional(queue.as_ref(), |pen, queue| pen.text(queue.as_str())); // 14
    pen.optional(*priority, Pen::number); // 15
    pen.optional(*timeout_ms, Pen::number); // 16
    pen.optional(*max_retries, Pen::number); // 17
    pen.array(2 * labels.len() as u64); // 18
    for (name, value) in labels {
        pen.text(name);
        pen.text(value);
    }
}

fn read_spec(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<ScheduleSpec> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let spec = ScheduleSpec {
        name: reader.optional(at, Reader::boxed)?,
        job_type: JobType::stored(reader.field(at, Reader::name)?),
        payload: reader.field(at, Reader::payload)?,
        rhythm: reader.field(at, |reader| read_rhythm(reader, base))?,
        misfire: reader.field(at, |reader| match reader.number()? {
            0 => Ok(Misfire::Coalesce),
            1 => Ok(Misfire::Skip),
            2 => Ok(Misfire::All),
            _ => Err(reader.bad("unknown misfire policy")),
        })?,
        misfire_limit: reader.field(at, Reader::small)?,
        overlap: reader.field(at, |reader| match reader.number()? {
            0 => Ok(Overlap::Allow),
            1 => Ok(Overlap::Skip),
            2 => Ok(Overlap::QueueOne),
            3 => Ok(Overlap::CancelRunning),
            _ => Err(reader.bad("unknown overlap policy")),
        })?,
        jitter_secs: reader.field(at, Reader::small)?,
        start_at: reader.optional(at, |reader| reader.instant(base))?,
        end_at: reader.optional(at, |reader| reader.instant(base))?,
        max_runs: reader.optional(at, Reader::small)?,
        exclude: reader.field(at, read_exclusions)?,
        zone: reader.field(at, read_zone)?,
        pause_after_failures: reader.optional(at, Reader::small)?,
        queue: reader.optional(at, Reader::name)?.map(QueueName::stored),
        priority: reader.optional(at, Reader::small)?,
        timeout_ms: reader.optional(at, Reader::small)?,
        max_retries: reader.optional(at, Reader::small)?,
        labels: reader.field(at, |reader| pairs(reader, Reader::boxed))?,
    };
    reader.end(fields)?;
    Ok(spec)
}

fn write_rhythm(pen: &mut Pen<'_>, rhythm: &Rhythm, base: Timestamp) {
    match rhythm {
        Rhythm::At(at) => {
            pen.array(2);
            pen.number(0u8); // 0
            pen.instant(*at, base); // 1
        }
        Rhythm::Interval { every_secs, phase_secs } => {
            pen.array(3);
            pen.number(1u8); // 0
            pen.number(*every_secs); // 1
            pen.number(*phase_secs); // 2
        }
        Rhythm::Cron { cron, zone, gap, fold } => {
            pen.array(5);
            pen.number(2u8); // 0
            pen.text(cron.as_str()); // 1
            pen.text(zone.name()); // 2
            pen.flag(*gap == Gap::Skip); // 3
            pen.flag(*fold == Fold::Twice); // 4
        }
    }
}

fn read_rhythm(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Rhythm> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let rhythm = match kind {
        0 => Rhythm::At(reader.field(at, |reader| reader.instant(base))?),
        1 => Rhythm::Interval {
            every_secs: reader.field(at, Reader::number)?,
            phase_secs: reader.field(at, Reader::number)?,
        },
        2 => Rhythm::Cron {
            cron: reader.field(at, |reader| {
                let text = reader.text()?;
                Cron::parse(text).map_err(|_| reader.bad("a cron pattern breaks the rules"))
            })?,
            zone: reader.field(at, read_zone)?,
            gap: if reader.field(at, Reader::flag)? { Gap::Skip } else { Gap::Shift },
            fold: if reader.field(at, Reader::flag)? { Fold::Twice } else { Fold::Once },
        },
        _ => return Err(reader.bad("unknown rhythm")),
    };
    reader.end(fields)?;
    Ok(rhythm)
}

fn write_status(pen: &mut Pen<'_>, status: &Status, base: Timestamp) {
    match status {
        Status::Active => pen.number(0u8),
        Status::Paused(pause) => {
            let Pause { by, at, note } = &**pause;
            pen.array(4);
            pen.number(1u8); // 0
            pen.optional(by.as_ref(), |pen, by| pen.text(by.as_str())); // 1
            pen.instant(*at, base); // 2
            pen.optional(note.as_deref(), |pen, note| pen.text(note)); // 3
        }
        Status::Stopped => pen.number(2u8),
        Status::Ended => pen.number(3u8),
    }
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
        2 => Status::Stopped,
        3 => Status::Ended,
        _ => return Err(reader.bad("unknown status of a schedule")),
    };
    reader.end(fields)?;
    Ok(status)
}

fn write_outcome(pen: &mut Pen<'_>, outcome: &Outcome, base: Timestamp) {
    let Outcome { at, until, count, kind, reason, job, late_ms } = outcome;
    pen.array(7);
    pen.instant(*at, base); // 0
    pen.instant(*until, *at); // 1
    pen.number(*count); // 2
    pen.number(match kind {
        OutcomeKind::Fired => 0u8,
        OutcomeKind::Late => 1,
        OutcomeKind::Skipped => 2,
        OutcomeKind::Coalesced => 3,
        OutcomeKind::Backfilled => 4,
    }); // 3
    pen.optional(reason.as_deref(), |pen, reason| pen.text(reason)); // 4
    pen.optional(*job, |pen, job| pen.bits(job.0)); // 5
    pen.number(*late_ms); // 6
}

fn read_outcome(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Outcome> {
    let mut fields = reader.fields()?;
    let next = &mut fields;
    let at = reader.field(next, |reader| reader.instant(base))?;
    let outcome = Outcome {
        at,
        until: reader.field(next, |reader| reader.instant(at))?,
        count: reader.field(next, Reader::number)?,
        kind: reader.field(next, |reader| match reader.number()? {
            0 => Ok(OutcomeKind::Fired),
            1 => Ok(OutcomeKind::Late),
            2 => Ok(OutcomeKind::Skipped),
            3 => Ok(OutcomeKind::Coalesced),
            4 => Ok(OutcomeKind::Backfilled),
            _ => Err(reader.bad("unknown outcome of a firing")),
        })?,
        reason: reader.optional(next, Reader::boxed)?,
        job: reader.optional(next, Reader::bits)?.map(JobId),
        late_ms: reader.field(next, Reader::number)?,
    };
    reader.end(fields)?;
    Ok(outcome)
}

/// Days since the first of the calendar.
fn days_of(date: Date) -> u32 {
    date.days().abs_diff(Date::FIRST.days())
}

fn read_date(reader: &mut Reader<'_, '_>) -> Read<Date> {
    let days: i32 = reader.small()?;
    let date = days.checked_add(Date::FIRST.days()).and_then(Date::from_days);
    date.ok_or_else(|| reader.bad("a date outside of the calendar"))
}

fn read_exclusions(reader: &mut Reader<'_, '_>) -> Read<Exclusions> {
    let ranges = pairs(reader, read_date)?;
    Exclusions::new(ranges).map_err(|_| reader.bad("dates left out break the rules"))
}

fn read_zone(reader: &mut Reader<'_, '_>) -> Read<Zone> {
    let name = reader.text()?;
    Zone::parse(name).ok_or_else(|| reader.bad("unknown time zone"))
}

/// A list of twos.
fn pairs<'b, 'n, T>(
    reader: &mut Reader<'b, 'n>,
    read: impl FnMut(&mut Reader<'b, 'n>) -> Read<T>,
) -> Read<Vec<(T, T)>> {
    let mut flat = reader.list(read)?.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let Some(first) = flat.next() {
        let second = flat.next().ok_or_else(|| reader.bad("a list of pairs has an odd length"))?;
        pairs.push((first, second));
    }
    Ok(pairs)
}
