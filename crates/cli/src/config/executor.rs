//! The keys of `[executor]`, `[webhooks]`, `[nats]` and of a type's own `executor`: how jobs are
//! executed, who is called, and what that takes. The rules are the kernel's.

use super::reader::Section;
use super::{EXECUTOR_MODES, Executing, Settings};
use mainspring_executor::bus::BadNats;
use mainspring_executor::limits::{CONCURRENCY_MAX, PROGRAMS_MAX, SECRETS_MAX};
use mainspring_kernel::Rejection;
use mainspring_kernel::executor::{Executor, ExecutorWish, Mode};
use mainspring_kernel::limits::{EXECUTOR_KILL_MS_MAX, TIMEOUT_MS_MAX};
use std::fmt::Write;

/// Reads `[executor]`, `[webhooks]` and `[nats]`.
pub(super) fn read_executing(root: &Section<'_>, settings: &mut Settings) {
    if let Some(section) = root.section("executor") {
        let executing = &mut settings.executing;
        executing.wish = read_wish(&section, executing.wish.mode);
        // Whatever the mode, what is said must be right for one of them.
        for mode in [Mode::Process, Mode::Webhook] {
            let wish = ExecutorWish { mode, ..executing.wish.clone() };
            let is_asked_for = match mode {
                Mode::Process => wish.command.is_some(),
                Mode::Webhook => wish.url.is_some(),
                Mode::Pull | Mode::InProcess => false,
            };
            if is_asked_for && let Err(bad) = wish.chosen().made() {
                refuse(&section, &bad);
            }
        }
        if let Some(programs) = section.texts("programs") {
            match programs.len() <= PROGRAMS_MAX {
                true => executing.programs = programs,
                false => section.refuse("programs", "must be at most 1000"),
            }
        }
        if let Some(jobs) = section.number("concurrency", 1, CONCURRENCY_MAX as u64) {
            executing.concurrency = usize::try_from(jobs).unwrap_or(CONCURRENCY_MAX);
        }
        if let Some(grace) = section.span("grace") {
            executing.grace = grace;
        }
        section.finish();
    }
    if let Some(section) = root.section("webhooks") {
        if let Some(allowed) = section.flag("allow_private") {
            settings.webhooks.allow_private = allowed;
        }
        if let Some(texts) = section.texts("secrets") {
            let read: Result<Vec<_>, _> = texts.iter().map(|text| text.parse()).collect();
            match read {
                Ok(secrets) if secrets.len() <= SECRETS_MAX => settings.webhooks.secrets = secrets,
                Ok(_) => section.refuse("secrets", "must be at most four"),
                Err(bad) => section.refuse("secrets", &format!("{bad}")),
            }
        }
        section.finish();
    }
    if let Some(section) = root.section("nats") {
        if let Some(text) = section.text("url") {
            match text.parse() {
                Ok(server) => settings.nats = Some(server),
                Err(BadNats) => section.refuse("url", &BadNats.to_string()),
            }
        }
        section.finish();
    }
}

/// A type's own `executor`: the name of a mode, or a table.
pub(super) fn read_type_executor(entry: &Section<'_>) -> Option<Executor> {
    if !entry.is_table("executor") {
        let mode = entry.choice("executor", &EXECUTOR_MODES).and_then(Mode::parse)?;
        let made = ExecutorWish::plain(mode).made();
        return made.map_err(|bad| entry.refuse("executor", &format!("{bad}"))).ok();
    }
    let section = entry.section("executor")?;
    let made = read_wish(&section, Mode::Pull).made();
    let executor = made.map_err(|bad| refuse(&section, &bad)).ok();
    section.finish();
    executor
}

fn read_wish(section: &Section<'_>, otherwise: Mode) -> ExecutorWish {
    let narrow = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    ExecutorWish {
        mode: section.choice("mode", &EXECUTOR_MODES).and_then(Mode::parse).unwrap_or(otherwise),
        command: section.text("command"),
        args: section.texts("args"),
        cwd: section.text("cwd"),
        env: section.texts("env"),
        shell: section.flag("shell"),
        kill_grace_ms: narrow(section.number("kill_grace_ms", 0, EXECUTOR_KILL_MS_MAX.into())),
        url: section.text("url"),
        timeout_ms: narrow(section.number("timeout_ms", 1, TIMEOUT_MS_MAX.into())),
    }
}

fn refuse(section: &Section<'_>, bad: &Rejection) {
    section.refuse("mode", &format!("cannot be used: {bad}"));
}

/// `[executor]` and `[webhooks]` as a file would have them. Secrets are not shown.
pub(super) fn write(settings: &Settings, out: &mut String) -> std::fmt::Result {
    let Executing { wish, programs, concurrency, grace } = &settings.executing;
    writeln!(out, "\n[executor]")?;
    write_wish(wish, out)?;
    writeln!(out, "programs = {programs:?}\nconcurrency = {concurrency}")?;
    writeln!(out, "grace = {:?}", crate::span::show(*grace))?;
    writeln!(out, "\n[webhooks]\nallow_private = {}", settings.webhooks.allow_private)?;
    match settings.webhooks.secrets.len() {
        0 => writeln!(out, "secrets = []"),
        count => writeln!(out, "# secrets = [ {count} that are not shown ]"),
    }?;
    match &settings.nats {
        Some(server) => writeln!(out, "\n[nats]\nurl = \"{server}\""),
        None => Ok(()),
    }
}

/// The executor of a type, on one line.
pub(super) fn write_type(executor: &Executor, out: &mut String) -> std::fmt::Result {
    write!(out, "executor = {{ ")?;
    let mut lines = String::new();
    write_wish(&wish_of(executor), &mut lines)?;
    let parts: Vec<&str> = lines.lines().collect();
    writeln!(out, "{} }}", parts.join(", "))
}

fn write_wish(wish: &ExecutorWish, out: &mut String) -> std::fmt::Result {
    let ExecutorWish { mode, command, args, cwd, env, shell, kill_grace_ms, url, timeout_ms } =
        wish;
    writeln!(out, "mode = {:?}", mode.as_str())?;
    // What JSON escapes is escaped the same way here.
    let text = |value: &str| serde_json::json!(value).to_string();
    let texts = |list: &[String]| serde_json::json!(list).to_string();
    let lines = [
        ("command", command.as_deref().map(text)),
        ("args", args.as_deref().map(texts)),
        ("cwd", cwd.as_deref().map(text)),
        ("env", env.as_deref().map(texts)),
        ("shell", shell.map(|shell| shell.to_string())),
        ("kill_grace_ms", kill_grace_ms.map(|millis| millis.to_string())),
        ("url", url.as_deref().map(text)),
        ("timeout_ms", timeout_ms.map(|millis| millis.to_string())),
    ];
    for (key, value) in lines {
        if let Some(value) = value {
            writeln!(out, "{key} = {value}")?;
        }
    }
    Ok(())
}

fn wish_of(executor: &Executor) -> ExecutorWish {
    let plain = ExecutorWish::plain(executor.mode());
    let texts = |texts: &[Box<str>]| Some(texts.iter().map(ToString::to_string).collect());
    match executor {
        Executor::Pull | Executor::InProcess => plain,
        Executor::Process(process) => ExecutorWish {
            command: Some(process.command.to_string()),
            args: texts(&process.args),
            cwd: process.cwd.as_ref().map(ToString::to_string),
            env: texts(&process.env),
            shell: Some(process.is_shell),
            kill_grace_ms: Some(process.kill_grace_ms),
            ..plain
        },
        Executor::Webhook(webhook) => ExecutorWish {
            url: Some(webhook.url.to_string()),
            timeout_ms: Some(webhook.timeout_ms),
            ..plain
        },
    }
}
