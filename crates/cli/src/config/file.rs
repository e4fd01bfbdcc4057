//! The configuration file: which keys exist and what they mean. Every key that is not read here is
//! refused with a suggestion.

use super::executor::{self, read_executing, read_type_executor};
use super::flow;
use super::reader::{Problem, Problems, Section};
use super::{CONTRACTS, Limits, Postgres, Settings, StoreChoice, Triggers, suggest};
use crate::span;
use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::entity::schedule::ScheduleSpec;
use mainspring_kernel::executor::check_url;
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::limits::{
    BULK_MAX, RETRIES_MAX, RETRY_DELAY_MS_MAX, SCHEDULE_INTERVAL_SECS_MAX, SLA_MS_MIN,
    TIMEOUT_MS_MAX,
};
use mainspring_kernel::registry::{ConcurrencyScope, Sla};
use mainspring_kernel::retry::Backoff;
use mainspring_kernel::{JobType, QueueName, TenantId, TypeSpec};
use mainspring_server::Bounds;
use mainspring_server::config::Shards;
use mainspring_server::limits::{BATCH_BYTES_MAX, TEMPLATES_MAX};
use mainspring_server::templates::Template;
use std::fmt::Write as _;
use std::time::Duration;
use toml::de::DeTable;

/// Most host names served besides this machine's own.
const HOSTS_MAX: usize = 100;
/// Longest of them.
const HOST_BYTES_MAX: usize = 255;

const SCOPES: [&str; 3] = ["global", "tenant", "user"];

/// Reads `text` over `settings`.
///
/// # Errors
/// Every problem, in the order of the file.
pub(crate) fn read(text: &str, mut settings: Settings) -> Result<Settings, Vec<Problem>> {
    let (table, unreadable) = DeTable::parse_recoverable(text);
    let problems = Problems::of(text);
    for error in &unreadable {
        let at = error.span().map_or(0, |span| span.start);
        problems.add(at, error.message().to_owned());
    }
    if unreadable.is_empty() {
        let table = table.into_inner();
        let root = Section::new(String::new(), &table, &problems);
        read_root(root, &mut settings);
    }
    let found = problems.into_list();
    if found.is_empty() { Ok(settings) } else { Err(found) }
}

fn read_root(root: Section<'_>, settings: &mut Settings) {
    read_server(&root, settings);
    read_store(&root, settings);
    read_limits(&root, &mut settings.limits);
    read_executing(&root, settings);
    if let Some(section) = root.section("scheduler") {
        set(&mut settings.allow_client_clock, section.flag("allow_client_clock"));
        let names = Shards::ALL.map(|(name, _)| name);
        let chosen = section.choice("shards", &names);
        let shards = Shards::ALL.into_iter().find(|(name, _)| chosen == Some(*name));
        set(&mut settings.shards, shards.map(|(_, shards)| shards));
        set(&mut settings.restart_grace, section.span("restart_grace"));
        section.finish();
    }
    if let Some(section) = root.section("strict") {
        set(&mut settings.strict.idempotency_key, section.flag("idempotency_key"));
        set(&mut settings.strict.trace_id, section.flag("trace_id"));
        section.finish();
    }
    if let Some(section) = root.section("idempotency") {
        read_key_window(&section, settings);
        section.finish();
    }
    if let Some(section) = root.section("retention") {
        set(&mut settings.retention.finished, section.span("finished"));
        set(&mut settings.retention.dlq, section.span("dlq"));
        set(&mut settings.retention.audit, section.span("audit"));
        set(&mut settings.retention.stream, section.span("stream"));
        section.finish();
    }
    read_types(&root, settings);
    read_templates(&root, settings);
    if let Some(section) = root.section("governance") {
        let budget = section.number("auto_verify_budget", 0, 1_000);
        set(&mut settings.governance.auto_verify_budget, budget);
        let tries = section.number("unknowable_tries_max", 0, 1_000);
        set(&mut settings.governance.unknowable_tries_max, tries);
        section.finish();
    }
    if let Some(section) = root.section("audit") {
        set(&mut settings.audit_anchor, section.text("anchor").map(|path| Some(path.into())));
        set(&mut settings.audit_history_every, section.span("history_every"));
        section.finish();
    }
    if let Some(section) = root.section("bulk") {
        let above = section.number("approval_above", 0, BULK_MAX);
        set(&mut settings.bulk_approval_above, above);
        section.finish();
    }
    read_alerts(&root, settings);
    if let Some(section) = root.section("agent") {
        let agent = &mut settings.agent;
        let attempts = section.number("max_attempts", 1, u64::from(RETRIES_MAX));
        set(&mut agent.max_attempts, narrow(attempts));
        set(&mut agent.backoff_ms, section.number("backoff_ms", 0, RETRY_DELAY_MS_MAX));
        let concurrency = section.number("concurrency", 0, u64::from(u32::MAX));
        set(&mut agent.concurrency, narrow(concurrency));
        section.finish();
    }
    if let Some(section) = root.section("triggers") {
        read_triggers(&section, &mut settings.triggers);
        section.finish();
    }
    root.finish();
}

fn read_alerts(root: &Section<'_>, settings: &mut Settings) {
    let Some(section) = root.section("alerts") else { return };
    let alerts = &mut settings.alerts;
    set(&mut alerts.retrying_ratio, section.fraction("retrying_ratio"));
    let growth = section.number("dlq_growth_per_minute", 0, u64::from(u32::MAX));
    set(&mut alerts.dlq_growth_per_minute, growth);
    let moves = section.number("invalid_transitions", 0, u64::from(u32::MAX));
    set(&mut alerts.invalid_transitions, moves);
    set(&mut alerts.lag, section.span("lag"));
    set(&mut alerts.no_worker, section.span("no_worker"));
    set(&mut alerts.schedule_skipped, section.flag("schedule_skipped"));
    set(&mut alerts.check, section.span("check"));
    set(&mut alerts.hold, section.span("hold"));
    if let Some(quiet) = section.span("quiet") {
        match quiet.is_zero() {
            true => section.refuse("quiet", "must be longer than nothing"),
            false => alerts.quiet = quiet,
        }
    }
    set(&mut alerts.webhook_url, section.text("webhook_url"));
    if !alerts.webhook_url.is_empty()
        && let Err(bad) = check_url("webhook_url", &alerts.webhook_url)
    {
        let text = bad.to_string();
        section.refuse("webhook_url", text.trim_start_matches("webhook_url "));
    }
    section.finish();
}

/// Most folders below which files are looked at.
const ROOTS_MAX: usize = 64;

fn read_triggers(section: &Section<'_>, triggers: &mut Triggers) {
    if let Some(roots) = section.texts("roots") {
        match roots.len() <= ROOTS_MAX && roots.iter().all(|root| !root.is_empty()) {
            true => triggers.roots = roots,
            false => section.refuse("roots", "must be up to 64 folders"),
        }
    }
    let pace = &mut triggers.pace;
    set(&mut pace.check_ms, section.number("check_ms", 100, 24 * 3_600_000));
    set(&mut pace.settle_ms, section.number("settle_ms", 0, 24 * 3_600_000));
    set(&mut pace.stuck_ms, section.number("stuck_ms", 1_000, 30 * 24 * 3_600_000));
}

/// `window = "24h"`, or `window = "forever"`.
fn read_key_window(section: &Section<'_>, settings: &mut Settings) {
    let Some(text) = section.text("window") else { return };
    if text == "forever" {
        settings.key_window = None;
        return;
    }
    match span::parse(&text) {
        Ok(window) if (1..=u64::from(u32::MAX)).contains(&window.as_secs()) => {
            settings.key_window = Some(Duration::from_secs(window.as_secs()));
        }
        Ok(_) | Err(_) => {
            section.refuse("window", "must be a span like \"24h\", at least 1s, or \"forever\"");
        }
    }
}

fn read_server(root: &Section<'_>, settings: &mut Settings) {
    let Some(section) = root.section("server") else { return };
    if let Some(text) = section.text("listen") {
        match text.parse() {
            Ok(listen) => settings.listen = listen,
            Err(_) => section.refuse("listen", "must be an address like 127.0.0.1:7070"),
        }
    }
    set(&mut settings.internal_routes, section.flag("internal_routes"));
    set(&mut settings.tls.cert, section.text("tls_cert").map(|path| Some(path.into())));
    set(&mut settings.tls.key, section.text("tls_key").map(|path| Some(path.into())));
    if let Some(hosts) = section.texts("hosts") {
        let is_host = |host: &String| {
            (1..=HOST_BYTES_MAX).contains(&host.len())
                && host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/')
        };
        match hosts.iter().all(is_host) && hosts.len() <= HOSTS_MAX {
            true => settings.hosts = hosts,
            false => section.refuse("hosts", "must be up to 100 names like jobs.example.org"),
        }
    }
    read_contracts(&section, settings);
    section.finish();
}

/// A name that no version knows is a mistake; one that a later version has is noted.
fn read_contracts(section: &Section<'_>, settings: &mut Settings) {
    let Some(names) = section.texts("contracts") else { return };
    let built = mainspring_server::contract_names();
    let mut are_known = true;
    settings.contracts.clear();
    for name in &names {
        match CONTRACTS.iter().find(|known| *known == name) {
            Some(known) if settings.contracts.contains(known) => {}
            Some(known) if built.contains(known) => settings.contracts.push(known),
            Some(known) => {
                settings.not_yet.push(format!("the contract {known:?} arrives later"));
            }
            None => {
                let hint = suggest::hint(name, &CONTRACTS);
                section.refuse("contracts", &format!("names no contract {name:?}{hint}"));
                are_known = false;
            }
        }
    }
    if settings.contracts.is_empty() && are_known {
        let built = built.join(", ");
        section.refuse("contracts", &format!("must name at least one of {built}"));
    }
}

fn read_postgres(section: &Section<'_>, postgres: &mut Postgres) {
    if let Some(schema) = section.text("schema") {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let is_name = schema.bytes().all(|byte| is_plain(byte) || byte.is_ascii_digit())
            && schema.bytes().next().is_some_and(is_plain)
            && schema.len() <= 40;
        match is_name {
            true => postgres.schema = schema,
            false => section.refuse(
                "schema",
                "must be lower-case letters, digits and underscores, at most 40 of them",
            ),
        }
    }
    if let Some(connections) = section.number("connections", 3, 100) {
        postgres.connections = usize::try_from(connections).unwrap_or(usize::MAX);
    }
    set(&mut postgres.is_notified, section.flag("notify"));
    set(&mut postgres.allows_unsafe, section.flag("allow_unsafe_postgres"));
    if let Some(millis) = section.number("poll_ms", 10, 60_000) {
        postgres.poll_every = std::time::Duration::from_millis(millis);
    }
}

fn read_store(root: &Section<'_>, settings: &mut Settings) {
    let Some(section) = root.section("store") else { return };
    let directory = section.text("data_dir");
    let url = section.text("database_url");
    let ephemeral = section.flag("ephemeral").unwrap_or(false);
    let chosen = [directory.is_some(), url.is_some(), ephemeral];
    if chosen.into_iter().filter(|is_chosen| *is_chosen).count() > 1 {
        let key = if url.is_some() { "database_url" } else { "ephemeral" };
        section.refuse(key, "cannot be combined: choose one of data_dir, database_url, ephemeral");
    }
    if let Some(url) = url {
        settings.store = StoreChoice::Postgres { url, from: "[store] database_url" };
    } else if ephemeral {
        settings.store = StoreChoice::Ephemeral;
    } else if let Some(directory) = directory {
        settings.store = StoreChoice::Directory(directory.into());
    }
    read_postgres(&section, &mut settings.postgres);
    let layout = &mut settings.layout;
    let sizes: [(&mut u64, &'static str, u64); 3] = [
        (&mut layout.segment_bytes, "segment_bytes", 64 << 10),
        (&mut layout.snapshot_bytes_min, "snapshot_bytes_min", 64 << 10),
        (&mut layout.finished_bytes_max, "finished_bytes_max", 16 << 10),
    ];
    for (place, key, least) in sizes {
        set(place, section.number(key, least, 64 << 30));
    }
    section.finish();
}

/// The largest body has to fit the share of one token.
const TOKEN_BODY_BYTES_MIN: u64 = BATCH_BYTES_MAX as u64;

fn read_limits(root: &Section<'_>, limits: &mut Limits) {
    let Some(section) = root.section("limits") else { return };
    let counted = 1 << 20;
    let bounds: [(&mut Bounds, [&'static str; 3], u64, u64); 4] = [
        (
            &mut limits.connections,
            ["connections", "connections_per_tenant", "connections_per_token"],
            1,
            counted,
        ),
        (&mut limits.streams, ["streams", "streams_per_tenant", "streams_per_token"], 1, counted),
        (&mut limits.waits, ["waits", "waits_per_tenant", "waits_per_token"], 1, counted),
        (
            &mut limits.body_bytes,
            ["body_bytes", "body_bytes_per_tenant", "body_bytes_per_token"],
            TOKEN_BODY_BYTES_MIN,
            64 << 30,
        ),
    ];
    for (bounds, [all, tenant, token], least, most) in bounds {
        let number = |key: &'static str| narrow::<usize>(section.number(key, least, most));
        if let Some(all) = number(all) {
            *bounds = Bounds::shared(all);
            bounds.token = bounds.token.max(narrow(Some(least)).unwrap_or(1)).min(all);
            bounds.tenant = bounds.tenant.max(bounds.token);
        }
        set(&mut bounds.tenant, number(tenant));
        set(&mut bounds.token, number(token));
    }
    let backlog = |key: &'static str| section.number(key, 1 << 20, 1 << 50);
    limits.backlog_bytes = backlog("backlog_bytes").or(limits.backlog_bytes);
    limits.backlog_bytes_per_tenant =
        backlog("backlog_bytes_per_tenant").or(limits.backlog_bytes_per_tenant);
    section.finish();
}

fn read_types(root: &Section<'_>, settings: &mut Settings) {
    let Some(section) = root.section("types") else { return };
    set(&mut settings.types_strict, section.flag("strict"));
    for (name, entry) in section.named_sections() {
        if let Some(spec) = read_type(&name, entry) {
            settings.types.retain(|known| known.name != spec.name);
            settings.types.push(spec);
        }
    }
    settings.types.sort_by(|a, b| a.name.cmp(&b.name));
}

fn read_type(name: &str, entry: Section<'_>) -> Option<TypeSpec> {
    let queue = entry.text("queue").and_then(|queue| {
        QueueName::new(&queue).map_err(|bad| entry.refuse("queue", bad.reason)).ok()
    });
    let executor = read_type_executor(&entry);
    let sla = entry.section("sla").map(|section| {
        let within =
            |key| narrow(section.number(key, u64::from(SLA_MS_MIN), u64::from(TIMEOUT_MS_MAX)));
        let (start_within_ms, finish_within_ms) =
            (within("start_within_ms"), within("finish_within_ms"));
        section.finish();
        Sla { start_within_ms, finish_within_ms }
    });
    let base = entry.number("backoff_base_ms", 1, u64::from(TIMEOUT_MS_MAX));
    let max = entry.number("backoff_max_ms", 1, u64::from(TIMEOUT_MS_MAX));
    let parsed = JobType::new(name).map_err(|bad| entry.refuse("domain", bad.reason)).ok();
    let domain = entry.text("domain");
    let schedulable = entry.flag("schedulable");
    let priority = entry.number("priority", 0, 255);
    let timeout = entry.number("timeout_seconds", 1, u64::from(TIMEOUT_MS_MAX / 1000));
    let retries = entry.number("max_retries", 0, u64::from(RETRIES_MAX));
    let limit = entry.number("concurrency_limit", 0, u64::from(u32::MAX));
    let scope = entry.choice("concurrency_scope", &SCOPES).and_then(ConcurrencyScope::parse);
    let flow = flow::read(&entry);
    entry.finish();
    let plain = TypeSpec::plain(parsed?);
    let mut spec = TypeSpec {
        domain: domain.map_or(plain.domain, String::into_boxed_str),
        is_schedulable: schedulable.unwrap_or(plain.is_schedulable),
        priority: narrow(priority).unwrap_or(plain.priority),
        timeout_ms: narrow(timeout.map(|seconds| seconds * 1000)).unwrap_or(plain.timeout_ms),
        max_retries: narrow(retries).unwrap_or(plain.max_retries),
        concurrency_limit: narrow(limit).or(plain.concurrency_limit),
        concurrency_scope: scope.unwrap_or(plain.concurrency_scope),
        queue: queue.unwrap_or(plain.queue),
        backoff: Backoff {
            base_ms: narrow(base).unwrap_or(plain.backoff.base_ms),
            max_ms: narrow(max).unwrap_or(plain.backoff.max_ms),
        },
        file_entry: None,
        executor: executor.map(Box::new),
        flow: Box::new(flow),
        // A table that says nothing promises nothing.
        sla: sla.filter(|sla| *sla != Sla::default()),
        name: plain.name,
    };
    spec.file_entry = Some(entry_digest(&spec));
    Some(spec)
}

/// What tells one entry of the file from another that says something else.
fn entry_digest(spec: &TypeSpec) -> Digest {
    let said = [
        spec.domain.to_string(),
        spec.is_schedulable.to_string(),
        spec.priority.to_string(),
        spec.timeout_ms.to_string(),
        spec.max_retries.to_string(),
        spec.concurrency_limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()),
        spec.concurrency_scope.as_str().to_owned(),
        spec.queue.to_string(),
        spec.backoff.base_ms.to_string(),
        spec.backoff.max_ms.to_string(),
    ];
    let mut parts: Vec<&[u8]> = said.iter().map(String::as_bytes).collect();
    // An entry that says nothing of it has the digest it had before there was such a thing.
    let mut line = String::new();
    if let Some(executor) = &spec.executor {
        executor::write_type(executor, &mut line).expect("writing to a string cannot fail");
        parts.push(line.as_bytes());
    }
    let mut lines = String::new();
    flow::write(&spec.flow, &mut lines).expect("writing to a string cannot fail");
    if !lines.is_empty() {
        parts.push(lines.as_bytes());
    }
    let mut promise = String::new();
    if let Some(sla) = spec.sla {
        write_sla(sla, &mut promise).expect("writing to a string cannot fail");
        parts.push(promise.as_bytes());
    }
    digest(&parts)
}

/// What is promised of a type, on one line.
pub(super) fn write_sla(sla: Sla, out: &mut String) -> std::fmt::Result {
    let Sla { start_within_ms, finish_within_ms } = sla;
    let start = start_within_ms.map(|within| format!("start_within_ms = {within}"));
    let finish = finish_within_ms.map(|within| format!("finish_within_ms = {within}"));
    let said: Vec<String> = start.into_iter().chain(finish).collect();
    writeln!(out, "sla = {{ {} }}", said.join(", "))
}

fn read_templates(root: &Section<'_>, settings: &mut Settings) {
    let Some(section) = root.section("templates") else { return };
    if let Some(tenant) = section.text("tenant") {
        match TenantId::new(&tenant) {
            Ok(tenant) => settings.template_tenant = tenant,
            Err(bad) => section.refuse("tenant", bad.reason),
        }
    }
    for (name, entry) in section.named_sections() {
        if let Some(template) = read_template(name, entry) {
            settings.templates.retain(|known| known.name != template.name);
            settings.templates.push(template);
        }
    }
    settings.templates.sort_by(|a, b| a.name.cmp(&b.name));
    if settings.templates.len() > TEMPLATES_MAX {
        section.refuse("tenant", &format!("has more than {TEMPLATES_MAX} templates below it"));
    }
}

fn read_template(name: String, entry: Section<'_>) -> Option<Template> {
    let job_type = match entry.text("job_type").as_deref().map(JobType::new) {
        Some(Ok(job_type)) => Some(job_type),
        Some(Err(bad)) => {
            entry.refuse("job_type", bad.reason);
            None
        }
        None => {
            entry.refuse("job_type", "must name a type");
            None
        }
    };
    let rhythm = read_rhythm(&entry);
    let spec = job_type.zip(rhythm).map(|(job_type, rhythm)| ScheduleSpec {
        name: Some(name.as_str().into()),
        ..ScheduleSpec::plain(job_type, rhythm)
    });
    if let Some(Err(bad)) = spec.as_ref().map(ScheduleSpec::check) {
        entry.refuse("job_type", &format!("makes no schedule: {bad}"));
    }
    entry.finish();
    let spec = spec?;
    let (kind, value, zone) = written(&spec.rhythm);
    let said = ["template", spec.job_type.as_str(), kind, &value, zone.unwrap_or_default()];
    let entry = digest(&said.map(str::as_bytes));
    Some(Template { name, spec, entry })
}

/// `interval_seconds`, or `cron` and perhaps `timezone`.
fn read_rhythm(entry: &Section<'_>) -> Option<Rhythm> {
    let every = entry.number("interval_seconds", 1, SCHEDULE_INTERVAL_SECS_MAX);
    let cron = entry.text("cron");
    let timezone = entry.text("timezone");
    match (every, cron) {
        (Some(every_secs), None) => {
            if timezone.is_some() {
                entry.refuse("timezone", "belongs to cron: an interval is the same everywhere");
            }
            Some(Rhythm::Interval { every_secs, phase_secs: 0 })
        }
        (None, Some(cron)) => {
            let zone = match timezone.as_deref() {
                None => Some(Zone::UTC),
                Some(name) => Zone::parse(name),
            };
            if zone.is_none() {
                let reason = "must be the name of an IANA time zone, such as Asia/Tokyo";
                entry.refuse("timezone", reason);
            }
            match Cron::parse(&cron) {
                Ok(cron) => {
                    let (gap, fold) = (Gap::default(), Fold::default());
                    zone.map(|zone| Rhythm::Cron { cron, zone, gap, fold })
                }
                Err(bad) => {
                    entry.refuse("cron", &format!("is refused: {bad}"));
                    None
                }
            }
        }
        (None, None) | (Some(_), Some(_)) => {
            entry.refuse("interval_seconds", "or cron must be set, one of the two");
            None
        }
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// A number that was read within bounds that fit the narrower type.
fn narrow<T: TryFrom<u64>>(number: Option<u64>) -> Option<T> {
    number.and_then(|number| T::try_from(number).ok())
}

/// The key and value of a rhythm as the file has them, and its zone, if that is not UTC.
pub(crate) fn written(rhythm: &Rhythm) -> (&'static str, String, Option<&str>) {
    match rhythm {
        Rhythm::Interval { every_secs, .. } => ("interval_seconds", every_secs.to_string(), None),
        Rhythm::Cron { cron, zone, .. } => {
            let zone = Some(zone).filter(|zone| **zone != Zone::UTC);
            ("cron", format!("{:?}", cron.as_str()), zone.map(Zone::name))
        }
        // No entry of the file asks for one.
        Rhythm::At(at) => ("at", at.0.to_string(), None),
    }
}
