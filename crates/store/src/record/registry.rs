//! Types and queues.

use super::BadRecord;
use super::wire::{Pen, Reader, length};
use mainspring_kernel::executor::{Executor, Process, Webhook};
use mainspring_kernel::flow::{Circuit, Flow, KeySource, Pause, RateLimit};
use mainspring_kernel::registry::{ConcurrencyScope, Sla, TenantShare};
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{JobType, QueueName, QueueOrder, QueueSpec, Timestamp, TypeSpec, UserId};

type Read<T> = Result<T, BadRecord>;

pub(super) fn write_type(pen: &mut Pen<'_>, spec: &TypeSpec) {
    let TypeSpec {
        name,
        domain,
        is_schedulable,
        priority,
        timeout_ms,
        max_retries,
        concurrency_limit,
        concurrency_scope,
        queue,
        backoff: Backoff { base_ms, max_ms },
        file_entry,
        executor,
        flow,
        sla,
    } = spec;
    let flow = (**flow != Flow::default()).then_some(flow);
    let len = length(11, [file_entry.is_some(), executor.is_some(), flow.is_some(), sla.is_some()]);
    pen.array(len);
    pen.text(name.as_str()); // 0
    pen.text(domain); // 1
    pen.flag(*is_schedulable); // 2
    pen.number(*priority); // 3
    pen.number(*timeout_ms); // 4
    pen.number(*max_retries); // 5
    pen.optional(*concurrency_limit, Pen::number); // 6
    pen.number(match concurrency_scope {
        ConcurrencyScope::Global => 0u8,
        ConcurrencyScope::Tenant => 1,
        ConcurrencyScope::User => 2,
    }); // 7
    pen.text(queue.as_str()); // 8
    pen.number(*base_ms); // 9
    pen.number(*max_ms); // 10
    if len > 11 {
        pen.optional(file_entry.as_ref(), |pen, entry| pen.bytes(&entry.0)); // 11
    }
    if len > 12 {
        pen.optional(executor.as_ref(), |pen, executor| write_executor(pen, executor)); // 12
    }
    if len > 13 {
        pen.optional(flow, |pen, flow| write_flow(pen, flow)); // 13
    }
    if let Some(Sla { start_within_ms, finish_within_ms }) = sla {
        pen.array(2); // 14
        pen.optional(*start_within_ms, Pen::number); // 0
        pen.optional(*finish_within_ms, Pen::number); // 1
    }
}

pub(super) fn write_pause(pen: &mut Pen<'_>, pause: &Pause) {
    let Pause { by, at } = pause;
    pen.array(2);
    pen.text(by.as_str());
    pen.instant(*at, Timestamp::EPOCH);
}

fn write_flow(pen: &mut Pen<'_>, flow: &Flow) {
    let Flow { concurrency_key, rate_limit, circuit, circuit_turn, paused } = flow;
    pen.array(5);
    pen.optional(concurrency_key.as_ref(), |pen, key| pen.text(key.as_str())); // 0
    pen.optional(rate_limit.as_ref(), |pen, limit| {
        pen.array(3);
        pen.number(limit.nanos_per_second());
        pen.number(limit.burst);
        pen.optional(limit.key.as_ref(), |pen, key| pen.text(key.as_str()));
    }); // 1
    pen.optional(circuit.as_ref(), |pen, circuit| {
        let Circuit { failure_permille, min_calls, open_secs } = circuit;
        pen.array(3);
        pen.number(*failure_permille);
        pen.number(*min_calls);
        pen.number(*open_secs);
    }); // 2
    pen.number(*circuit_turn); // 3
    pen.optional(paused.as_ref(), write_pause); // 4
}

pub(super) fn read_pause(reader: &mut Reader<'_, '_>) -> Read<Pause> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let pause = Pause {
        by: UserId::stored(reader.field(at, Reader::name)?),
        at: reader.field(at, |reader| reader.instant(Timestamp::EPOCH))?,
    };
    reader.end(fields)?;
    Ok(pause)
}

fn read_flow(reader: &mut Reader<'_, '_>) -> Read<Box<Flow>> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let flow = Flow {
        concurrency_key: reader.optional(at, Reader::boxed)?.map(KeySource::new),
        rate_limit: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let at = &mut fields;
            let (nanos, burst) =
                (reader.field(at, Reader::number)?, reader.field(at, Reader::small)?);
            let key = reader.optional(at, Reader::boxed)?.map(KeySource::new);
            reader.end(fields)?;
            Ok(RateLimit::stored(nanos, burst, key))
        })?,
        circuit: reader.optional(at, |reader| {
            let mut fields = reader.fields()?;
            let at = &mut fields;
            let circuit = Circuit {
                failure_permille: reader.field(at, Reader::small)?,
                min_calls: reader.field(at, Reader::small)?,
                open_secs: reader.field(at, Reader::small)?,
            };
            reader.end(fields)?;
            Ok(circuit)
        })?,
        circuit_turn: reader.field(at, Reader::small)?,
        paused: reader.optional(at, read_pause)?,
    };
    reader.end(fields)?;
    Ok(Box::new(flow))
}

fn read_sla(reader: &mut Reader<'_, '_>) -> Read<Sla> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let sla = Sla {
        start_within_ms: reader.optional(at, Reader::small)?,
        finish_within_ms: reader.optional(at, Reader::small)?,
    };
    reader.end(fields)?;
    Ok(sla)
}

fn write_executor(pen: &mut Pen<'_>, executor: &Executor) {
    match executor {
        Executor::Pull => pen.number(0u8),
        Executor::InProcess => pen.number(1u8),
        Executor::Process(process) => {
            let Process { command, args, cwd, env, is_shell, kill_grace_ms } = process;
            pen.array(7);
            pen.number(2u8); // 0
            pen.text(command); // 1
            write_texts(pen, args); // 2
            pen.optional(cwd.as_ref(), |pen, cwd| pen.text(cwd)); // 3
            write_texts(pen, env); // 4
            pen.flag(*is_shell); // 5
            pen.number(*kill_grace_ms); // 6
        }
        Executor::Webhook(webhook) => {
            let Webhook { url, timeout_ms } = webhook;
            pen.array(3);
            pen.number(3u8); // 0
            pen.text(url); // 1
            pen.number(*timeout_ms); // 2
        }
    }
}

fn write_texts(pen: &mut Pen<'_>, texts: &[Box<str>]) {
    pen.array(texts.len() as u64);
    texts.iter().for_each(|text| pen.text(text));
}

fn read_executor(reader: &mut Reader<'_, '_>) -> Read<Box<Executor>> {
    let (kind, mut fields) = reader.kind()?;
    let at = &mut fields;
    let executor = match kind {
        0 => Executor::Pull,
        1 => Executor::InProcess,
        2 => Executor::Process(Process {
            command: reader.field(at, Reader::boxed)?,
            args: reader.field(at, |reader| reader.list(Reader::boxed))?,
            cwd: reader.optional(at, Reader::boxed)?,
            env: reader.field(at, |reader| reader.list(Reader::boxed))?,
            is_shell: reader.field(at, Reader::flag)?,
            kill_grace_ms: reader.field(at, Reader::small)?,
        }),
        3 => Executor::Webhook(Webhook {
            url: reader.field(at, Reader::boxed)?,
            timeout_ms: reader.field(at, Reader::small)?,
        }),
        _ => return Err(reader.bad("unknown executor")),
    };
    reader.end(fields)?;
    Ok(Box::new(executor))
}

pub(super) fn read_type(reader: &mut Reader<'_, '_>) -> Read<TypeSpec> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let spec = TypeSpec {
        name: JobType::stored(reader.field(at, Reader::name)?),
        domain: reader.field(at, Reader::boxed)?,
        is_schedulable: reader.field(at, Reader::flag)?,
        priority: reader.field(at, Reader::small)?,
        timeout_ms: reader.field(at, Reader::small)?,
        max_retries: reader.field(at, Reader::small)?,
        concurrency_limit: reader.optional(at, Reader::small)?,
        concurrency_scope: match reader.field(at, Reader::number)? {
            0 => ConcurrencyScope::Global,
            1 => ConcurrencyScope::Tenant,
            2 => ConcurrencyScope::User,
            _ => return Err(reader.bad("unknown scope of a limit")),
        },
        queue: QueueName::stored(reader.field(at, Reader::name)?),
        backoff: Backoff {
            base_ms: reader.field(at, Reader::small)?,
            max_ms: reader.field(at, Reader::small)?,
        },
        file_entry: reader.optional(at, Reader::digest)?,
        executor: reader.optional(at, read_executor)?,
        flow: reader.optional(at, read_flow)?.unwrap_or_default(),
        sla: reader.optional(at, read_sla)?,
    };
    reader.end(fields)?;
    Ok(spec)
}

pub(super) fn write_queue(pen: &mut Pen<'_>, spec: &QueueSpec) {
    let QueueSpec { name, is_paused, order, share } = spec;
    pen.array(length(3, [share.is_some()]));
    pen.text(name.as_str()); // 0
    pen.flag(*is_paused); // 1
    pen.number(match order {
        QueueOrder::Aged => 0u8,
        QueueOrder::Due => 1,
    }); // 2
    if let Some(share) = share {
        write_share(pen, share); // 3
    }
}

pub(super) fn write_share(pen: &mut Pen<'_>, share: &TenantShare) {
    let TenantShare { weight, backlog_max, backlog_bytes_max } = share;
    pen.array(3);
    pen.number(*weight);
    pen.optional(*backlog_max, Pen::number);
    pen.optional(*backlog_bytes_max, Pen::number);
}

pub(super) fn read_share(reader: &mut Reader<'_, '_>) -> Read<TenantShare> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let share = TenantShare {
        weight: reader.field(at, Reader::small)?,
        backlog_max: reader.optional(at, Reader::number)?,
        backlog_bytes_max: reader.optional(at, Reader::number)?,
    };
    reader.end(fields)?;
    Ok(share)
}

pub(super) fn read_queue(reader: &mut Reader<'_, '_>) -> Read<QueueSpec> {
    let mut fields = reader.fields()?;
    let at = &mut fields;
    let spec = QueueSpec {
        name: QueueName::stored(reader.field(at, Reader::name)?),
        is_paused: reader.field(at, Reader::flag)?,
        order: match reader.field(at, Reader::number)? {
            0 => QueueOrder::Aged,
            1 => QueueOrder::Due,
            _ => return Err(reader.bad("unknown order of a queue")),
        },
        share: reader.optional(at, read_share)?,
    };
    reader.end(fields)?;
    Ok(spec)
}
