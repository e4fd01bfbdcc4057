//! Types and queues.

use super::BadRecord;
use super::wire::{Pen, Reader, length};
use mainspring_kernel::executor::{Executor, Process, Webhook};
use mainspring_kernel::registry::{ConcurrencyScope, Sla};
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{JobType, QueueName, QueueOrder, QueueSpec, TypeSpec};

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
        sla,
    } = spec;
    let len = length(11, [file_entry.is_some(), executor.is_some(), false, sla.is_some()]);
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
    if let Some(sla) = sla {
        // 13 is kept for what else holds jobs back.
        pen.optional(None::<u8>, Pen::number);
        let Sla { start_within_ms, finish_within_ms } = *sla;
        pen.array(2); // 14
        pen.optional(start_within_ms, Pen::number); // 0
        pen.optional(finish_within_ms, Pen::number); // 1
    }
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
        sla: {
            reader.optional::<u64>(at, Reader::number)?;
            reader.optional(at, read_sla)?
        },
    };
    reader.end(fields)?;
    Ok(spec)
}

pub(super) fn write_queue(pen: &mut Pen<'_>, spec: &QueueSpec) {
    let QueueSpec { name, is_paused, order } = spec;
    pen.array(3);
    pen.text(name.as_str()); // 0
    pen.flag(*is_paused); // 1
    pen.number(match order {
        QueueOrder::Aged => 0u8,
        QueueOrder::Due => 1,
    }); // 2
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
    };
    reader.end(fields)?;
    Ok(spec)
}
