//! Alerts. What is new goes to the end of its array.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::alert::{Acknowledged, Alert, Milli, Rule};
use mainspring_kernel::{Timestamp, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_alert(pen: &mut Pen<'_>, alert: &Alert, base: Timestamp) {
    let Alert { rule, subject, message, value, threshold, raised_at, seen_at, .. } = alert;
    let Alert { count, quiet_ms, acknowledged, cleared_at, .. } = alert;
    pen.array(11);
    pen.number(rule.number()); // 0
    pen.text(subject); // 1
    pen.text(message); // 2
    pen.number(value.0); // 3
    pen.number(threshold.0); // 4
    pen.instant(*raised_at, base); // 5
    pen.instant(*seen_at, base); // 6
    pen.number(*count); // 7
    pen.number(*quiet_ms); // 8
    pen.optional(acknowledged.as_ref(), |pen, it| write_acknowledged(pen, it, base)); // 9
    pen.optional(*cleared_at, |pen, at| pen.instant(at, base)); // 10
}

pub(super) fn read_alert(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Alert> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let rule = Rule::of_number(reader.field(at, Reader::small)?)
        .ok_or_else(|| reader.bad("unknown rule of an alert"))?;
    let alert = Alert {
        rule,
        subject: reader.field(at, Reader::boxed)?,
        message: reader.field(at, Reader::boxed)?,
        value: Milli(reader.field(at, Reader::number)?),
        threshold: Milli(reader.field(at, Reader::number)?),
        raised_at: reader.field(at, |reader| reader.instant(base))?,
        seen_at: reader.field(at, |reader| reader.instant(base))?,
        count: reader.field(at, Reader::small)?,
        quiet_ms: reader.field(at, Reader::number)?,
        acknowledged: reader.optional(at, |reader| read_acknowledged(reader, base))?,
        cleared_at: reader.optional(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(alert)
}

fn write_acknowledged(pen: &mut Pen<'_>, acknowledged: &Acknowledged, base: Timestamp) {
    let Acknowledged { by, at, note } = acknowledged;
    pen.array(3);
    pen.text(by.as_str()); // 0
    pen.instant(*at, base); // 1
    pen.optional(note.as_deref(), Pen::text); // 2
}

fn read_acknowledged(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Acknowledged> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let acknowledged = Acknowledged {
        by: UserId::stored(reader.field(at, Reader::name)?),
        at: reader.field(at, |reader| reader.instant(base))?,
        note: reader.optional(at, Reader::boxed)?,
    };
    reader.end(fields)?;
    Ok(acknowledged)
}
