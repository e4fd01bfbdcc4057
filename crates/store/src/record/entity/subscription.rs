//! Subscriptions.

use super::super::BadRecord;
use super::super::wire::{Pen, Reader};
use mainspring_kernel::entity::subscription::{
    EventName, Filter, FormerSecret, Gap, Hold, Pause, SigningSecret, Subscription,
    SubscriptionSpec, Target, Trouble,
};
use mainspring_kernel::{JobId, JobType, QueueName, Timestamp, UserId};

type Read<T> = Result<T, BadRecord>;

/// Numbers of the kinds of targets. Stored for good: append only.
const WEBHOOK: u8 = 1;
const NATS: u8 = 2;
const CONSUMER: u8 = 3;

pub(super) fn write_subscription(pen: &mut Pen<'_>, it: &Subscription, base: Timestamp) {
    let Subscription { spec, secret, former, pause, position, hold, .. } = it;
    let Subscription { delivered, failed, failures, delivered_at, trouble, .. } = it;
    let Subscription { missed, gaps, ahead, .. } = it;
    pen.array(if ahead.is_empty() { 13 } else { 14 });
    write_spec(pen, spec); // 0
    pen.optional(secret.as_ref(), |pen, secret| pen.bytes(&secret.0)); // 1
    pen.optional(former.as_ref(), |pen, FormerSecret { secret, until }| {
        pen.array(2); // 2
        pen.bytes(&secret.0);
        pen.instant(*until, base);
    });
    pen.optional(pause.as_ref(), |pen, Pause { by, note }| {
        pen.array(2); // 3
        pen.optional(by.as_ref(), |pen, by| pen.text(by.as_str()));
        pen.optional(note.as_deref(), Pen::text);
    });
    pen.number(*position); // 4
    pen.optional(*hold, |pen, Hold { holder, until }| {
        pen.array(2); // 5
        pen.bits(holder);
        pen.instant(until, base);
    });
    pen.number(*delivered); // 6
    pen.number(*failed); // 7
    pen.number(*failures); // 8
    pen.optional(*delivered_at, |pen, at| pen.instant(at, base)); // 9
    pen.optional(trouble.as_ref(), |pen, Trouble { at, message }| {
        pen.array(2); // 10
        pen.instant(*at, base);
        pen.text(message);
    });
    pen.number(*missed); // 11
    pen.array(gaps.len() as u64); // 12
    for Gap { from, to, at } in gaps {
        pen.array(3);
        pen.number(*from);
        pen.number(*to);
        pen.instant(*at, base);
    }
    if !ahead.is_empty() {
        pen.array(ahead.len() as u64); // 13
        ahead.iter().for_each(|job| pen.bits(job.0));
    }
}

fn write_spec(pen: &mut Pen<'_>, spec: &SubscriptionSpec) {
    let SubscriptionSpec { name, target, filter } = spec;
    let Filter { events, types, queues, is_for_all } = filter;
    pen.array(7);
    pen.text(name); // 0
    let (kind, place) = match target {
        Target::Webhook { url } => (WEBHOOK, url),
        Target::Nats { subject } => (NATS, subject),
        Target::Consumer { name } => (CONSUMER, name),
    };
    pen.number(kind); // 1
    pen.text(place); // 2
    pen.array(events.len() as u64); // 3
    events.iter().for_each(|event| pen.number(event.number()));
    pen.array(types.len() as u64); // 4
    types.iter().for_each(|name| pen.text(name.as_str()));
    pen.array(queues.len() as u64); // 5
    queues.iter().for_each(|name| pen.text(name.as_str()));
    pen.flag(*is_for_all); // 6
}

pub(super) fn read_subscription(
    reader: &mut Reader<'_, '_>,
    base: Timestamp,
) -> Read<Subscription> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let subscription = Subscription {
        spec: reader.field(at, read_spec)?,
        secret: reader.optional(at, Reader::exactly)?.map(SigningSecret),
        former: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let former = FormerSecret {
                secret: SigningSecret(reader.field(&mut fields, Reader::exactly)?),
                until: reader.field(&mut fields, |reader| reader.instant(base))?,
            };
            reader.end(fields)?;
            Ok(former)
        })?,
        pause: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let pause = Pause {
                by: reader.optional(&mut fields, Reader::name)?.map(UserId::stored),
                note: reader.optional(&mut fields, Reader::boxed)?,
            };
            reader.end(fields)?;
            Ok(pause)
        })?,
        position: reader.field(at, Reader::number)?,
        hold: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let hold = Hold {
                holder: reader.field(&mut fields, Reader::bits)?,
                until: reader.field(&mut fields, |reader| reader.instant(base))?,
            };
            reader.end(fields)?;
            Ok(hold)
        })?,
        delivered: reader.field(at, Reader::number)?,
        failed: reader.field(at, Reader::number)?,
        failures: reader.field(at, Reader::small)?,
        delivered_at: reader.optional(at, |reader| reader.instant(base))?,
        trouble: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let trouble = Trouble {
                at: reader.field(&mut fields, |reader| reader.instant(base))?,
                message: reader.field(&mut fields, Reader::boxed)?,
            };
            reader.end(fields)?;
            Ok(trouble)
        })?,
        missed: reader.field(at, Reader::number)?,
        gaps: reader.field(at, |reader| reader.list(|reader| read_gap(reader, base)))?,
        ahead: reader
            .optional(at, |reader| reader.list(|reader| Ok(JobId(reader.bits()?))))?
            .unwrap_or_default(),
    };
    reader.end(fields)?;
    Ok(subscription)
}

fn read_gap(reader: &mut Reader<'_, '_>, base: Timestamp) -> Read<Gap> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let gap = Gap {
        from: reader.field(at, Reader::number)?,
        to: reader.field(at, Reader::number)?,
        at: reader.field(at, |reader| reader.instant(base))?,
    };
    reader.end(fields)?;
    Ok(gap)
}

fn read_spec(reader: &mut Reader<'_, '_>) -> Read<SubscriptionSpec> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let name = reader.field(at, Reader::boxed)?;
    let kind: u8 = reader.field(at, Reader::small)?;
    let place = reader.field(at, Reader::boxed)?;
    let target = match kind {
        WEBHOOK => Target::Webhook { url: place },
        NATS => Target::Nats { subject: place },
        CONSUMER => Target::Consumer { name: place },
        _ => return Err(reader.bad("unknown kind of target")),
    };
    let event = |reader: &mut Reader<'_, '_>| {
        let number = reader.small()?;
        EventName::of_number(number).ok_or_else(|| reader.bad("unknown event"))
    };
    let filter = Filter {
        events: reader.field(at, |reader| reader.list(event))?,
        types: reader
            .field(at, |reader| reader.list(|reader| Ok(JobType::stored(reader.name()?))))?,
        queues: reader
            .field(at, |reader| reader.list(|reader| Ok(QueueName::stored(reader.name()?))))?,
        is_for_all: reader.field(at, Reader::flag)?,
    };
    reader.end(fields)?;
    Ok(SubscriptionSpec { name, target, filter })
}
