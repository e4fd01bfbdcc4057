//! Prints settings as a configuration file that would give them again.

use super::{Settings, StoreChoice, executor, file, flow};
use crate::span;
use mainspring_server::config::Shards;
use mainspring_store_postgres::address;
use std::fmt::Write;

/// The effective settings as TOML. The password of a database address is not shown.
pub(crate) fn toml(settings: &Settings) -> String {
    let mut out = String::new();
    write(settings, &mut out).expect("writing to a string cannot fail");
    out
}

fn write(settings: &Settings, out: &mut String) -> std::fmt::Result {
    write_server(settings, out)?;
    writeln!(out, "\n[store]")?;
    match &settings.store {
        StoreChoice::Directory(path) => {
            writeln!(out, "data_dir = {:?}", path.display().to_string())
        }
        StoreChoice::Ephemeral => writeln!(out, "ephemeral = true"),
        StoreChoice::Postgres { url, .. } => {
            writeln!(out, "database_url = {:?}", address::shown(url))
        }
    }?;
    let postgres = &settings.postgres;
    writeln!(out, "schema = {:?}\nconnections = {}", postgres.schema, postgres.connections)?;
    writeln!(out, "notify = {}", postgres.is_notified)?;
    writeln!(out, "poll_ms = {}", postgres.poll_every.as_millis())?;
    writeln!(out, "allow_unsafe_postgres = {}", postgres.allows_unsafe)?;
    let layout = &settings.layout;
    writeln!(out, "segment_bytes = {}", layout.segment_bytes)?;
    writeln!(out, "snapshot_bytes_min = {}", layout.snapshot_bytes_min)?;
    writeln!(out, "finished_bytes_max = {}", layout.finished_bytes_max)?;
    write_limits(settings, out)?;
    executor::write(settings, out)?;
    writeln!(out, "\n[scheduler]\nallow_client_clock = {}", settings.allow_client_clock)?;
    let shards = Shards::ALL.into_iter().find(|(_, shards)| *shards == settings.shards);
    writeln!(out, "shards = {:?}", shards.map_or("none", |(name, _)| name))?;
    writeln!(out, "restart_grace = {:?}", span::show(settings.restart_grace))?;
    let strict = &settings.strict;
    writeln!(out, "\n[strict]\nidempotency_key = {}", strict.idempotency_key)?;
    writeln!(out, "trace_id = {}", strict.trace_id)?;
    let window = settings.key_window.map_or_else(|| "forever".to_owned(), span::show);
    writeln!(out, "\n[idempotency]\nwindow = {window:?}")?;
    let keep = &settings.retention;
    writeln!(out, "\n[retention]\nfinished = {:?}", span::show(keep.finished))?;
    writeln!(out, "dlq = {:?}\naudit = {:?}", span::show(keep.dlq), span::show(keep.audit))?;
    writeln!(out, "stream = {:?}", span::show(keep.stream))?;
    writeln!(out, "\n[audit]")?;
    if let Some(anchor) = &settings.audit_anchor {
        writeln!(out, "anchor = {anchor:?}")?;
    }
    writeln!(out, "history_every = {:?}", span::show(settings.audit_history_every))?;
    let governance = &settings.governance;
    writeln!(out, "\n[governance]\nauto_verify_budget = {}", governance.auto_verify_budget)?;
    writeln!(out, "unknowable_tries_max = {}", governance.unknowable_tries_max)?;
    writeln!(out, "\n[bulk]\napproval_above = {}", settings.bulk_approval_above)?;
    write_alerts(settings, out)?;
    let agent = &settings.agent;
    writeln!(out, "\n[agent]\nmax_attempts = {}", agent.max_attempts)?;
    writeln!(out, "backoff_ms = {}\nconcurrency = {}", agent.backoff_ms, agent.concurrency)?;
    writeln!(out, "\n[triggers]\nroots = {:?}", settings.triggers.roots)?;
    let pace = settings.triggers.pace;
    writeln!(out, "check_ms = {}\nsettle_ms = {}", pace.check_ms, pace.settle_ms)?;
    writeln!(out, "stuck_ms = {}", pace.stuck_ms)?;
    writeln!(out, "\n[types]\nstrict = {}", settings.types_strict)?;
    for spec in &settings.types {
        writeln!(out, "\n[types.{:?}]", spec.name.as_str())?;
        writeln!(out, "domain = {:?}\nschedulable = {}", spec.domain, spec.is_schedulable)?;
        writeln!(
            out,
            "priority = {}\ntimeout_seconds = {}",
            spec.priority,
            spec.timeout_ms / 1000
        )?;
        writeln!(out, "max_retries = {}", spec.max_retries)?;
        if let Some(limit) = spec.concurrency_limit {
            writeln!(out, "concurrency_limit = {limit}")?;
        }
        writeln!(out, "concurrency_scope = {:?}", spec.concurrency_scope.as_str())?;
        writeln!(out, "queue = {:?}", spec.queue.as_str())?;
        writeln!(out, "backoff_base_ms = {}", spec.backoff.base_ms)?;
        writeln!(out, "backoff_max_ms = {}", spec.backoff.max_ms)?;
        if let Some(executor) = &spec.executor {
            executor::write_type(executor, out)?;
        }
        flow::write(&spec.flow, out)?;
        if let Some(sla) = spec.sla {
            file::write_sla(sla, out)?;
        }
    }
    writeln!(out, "\n[templates]\ntenant = {:?}", settings.template_tenant.as_str())?;
    for template in &settings.templates {
        let (key, value, timezone) = file::written(&template.spec.rhythm);
        writeln!(out, "\n[templates.{:?}]", template.name)?;
        writeln!(out, "job_type = {:?}\n{key} = {value}", template.spec.job_type.as_str())?;
        if let Some(timezone) = timezone {
            writeln!(out, "timezone = {timezone:?}")?;
        }
    }
    Ok(())
}

fn write_server(settings: &Settings, out: &mut String) -> std::fmt::Result {
    writeln!(out, "[server]")?;
    writeln!(out, "listen = \"{}\"", settings.listen)?;
    writeln!(out, "internal_routes = {}", settings.internal_routes)?;
    for (name, path) in [("tls_cert", &settings.tls.cert), ("tls_key", &settings.tls.key)] {
        if let Some(path) = path {
            writeln!(out, "{name} = {:?}", path.display().to_string())?;
        }
    }
    writeln!(out, "hosts = {:?}", settings.hosts)?;
    writeln!(out, "contracts = {:?}", settings.contracts)
}

fn write_alerts(settings: &Settings, out: &mut String) -> std::fmt::Result {
    let alerts = &settings.alerts;
    writeln!(out, "\n[alerts]\nretrying_ratio = {:?}", alerts.retrying_ratio)?;
    writeln!(out, "dlq_growth_per_minute = {}", alerts.dlq_growth_per_minute)?;
    writeln!(out, "invalid_transitions = {}", alerts.invalid_transitions)?;
    writeln!(out, "lag = {:?}", span::show(alerts.lag))?;
    writeln!(out, "no_worker = {:?}", span::show(alerts.no_worker))?;
    writeln!(out, "schedule_skipped = {}", alerts.schedule_skipped)?;
    writeln!(out, "check = {:?}", span::show(alerts.check))?;
    writeln!(out, "hold = {:?}\nquiet = {:?}", span::show(alerts.hold), span::show(alerts.quiet))?;
    writeln!(out, "webhook_url = {:?}", alerts.webhook_url)
}

fn write_limits(settings: &Settings, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n[limits]")?;
    let limits = &settings.limits;
    for (name, bounds) in [
        ("connections", limits.connections),
        ("streams", limits.streams),
        ("waits", limits.waits),
        ("body_bytes", limits.body_bytes),
    ] {
        writeln!(out, "{name} = {}", bounds.all)?;
        writeln!(out, "{name}_per_tenant = {}", bounds.tenant)?;
        writeln!(out, "{name}_per_token = {}", bounds.token)?;
    }
    // What was not said follows the machine, also on another one.
    match limits.backlog_bytes {
        Some(bytes) => writeln!(out, "backlog_bytes = {bytes}"),
        None => match settings.store {
            StoreChoice::Postgres { .. } => {
                writeln!(out, "# backlog_bytes = {}", settings.backlog().0)
            }
            StoreChoice::Directory(_) | StoreChoice::Ephemeral => {
                writeln!(out, "# backlog_bytes = half of the memory")
            }
        },
    }?;
    match limits.backlog_bytes_per_tenant {
        Some(bytes) => writeln!(out, "backlog_bytes_per_tenant = {bytes}"),
        None => writeln!(out, "# backlog_bytes_per_tenant = half of backlog_bytes"),
    }?;
    Ok(())
}
