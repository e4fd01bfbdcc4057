//! Metrics in the text format of Prometheus. Five gauges have the names their contract gives them;
//! everything else starts with `mainspring_`.
//!
//! Who sees what: the names of queues are an admin's to see. Whoever may ask without a token, and
//! anybody on this machine, sees the numbers of the whole server without names. From elsewhere, a
//! token that is not an admin's sees the numbers of its own tenant and how the server is. However
//! many queues, tenants and types there are, the page stays short.

mod counted;

use crate::limits::{METRICS_QUEUES_MAX, METRICS_TYPES_MAX};
use crate::refusal::Refusal;
use crate::tls::Tls;
use mainspring_engine::store::{Counts, Health, Held, QueueCount, TypeCount};
use mainspring_engine::{Engine, RuntimeStatus};
use mainspring_kernel::{Principal, StateName, Timestamp};
use std::cmp::Reverse;
use std::fmt::{Display, Write};

/// Whose numbers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Everything, with names.
    Names,
    /// Everything, without names.
    Numbers,
    /// One tenant's.
    Tenant,
}

pub(crate) async fn text(
    engine: &Engine,
    who: Option<&Principal>,
    is_public: bool,
) -> Result<String, Refusal> {
    let detail = match who {
        Some(who) if who.is_admin() => Detail::Names,
        Some(_) if is_public => Detail::Tenant,
        Some(_) | None => Detail::Numbers,
    };
    let mut page = Page(String::with_capacity(4 << 10));
    if detail != Detail::Tenant {
        let counts = engine.counts().await?;
        let workers = engine.workers().len();
        whole(&mut page, &counts, &engine.status(), detail, engine.now());
        page.one("mainspring_workers", "gauge", "Workers heard of lately.", workers);
        counted::of_server(&mut page, &engine.meterings(), &engine.spent(), &engine.census());
    }
    let counted = counted::of_jobs(engine.meterings(), who.map(|who| &who.tenant), detail);
    counted.show(&mut page);
    if detail == Detail::Names {
        let mut tenants = Vec::new();
        for tenant in counted.tenants() {
            let held = engine.held_by(&tenant).await?;
            tenants.push((tenant, held));
        }
        counted::of_tenants(&mut page, &tenants);
    }
    if let Some(who) = who.filter(|who| !who.is_admin()) {
        own(&mut page, engine.held_by(&who.tenant).await?, engine.backlog_max().0);
    }
    condition(&mut page, &engine.status(), &engine.health());
    Ok(page.0)
}

/// What is to be known of the certificate that is shown.
pub(crate) fn certificate(tls: &Tls) -> String {
    let mut page = Page(String::new());
    for (name, kind, help, value) in [
        (
            "mainspring_tls_certificate_expires_seconds",
            "gauge",
            "When the certificate that is shown ends, in seconds since 1970.",
            tls.until().0 / 1_000_000,
        ),
        (
            "mainspring_tls_certificate_stale",
            "gauge",
            "Whether the files hold a certificate that cannot be used.",
            i64::from(tls.trouble().is_some()),
        ),
        (
            "mainspring_tls_certificate_reloads_total",
            "counter",
            "Times another certificate took the place of one.",
            i64::try_from(tls.reloads()).unwrap_or(i64::MAX),
        ),
    ] {
        page.one(name, kind, help, value);
    }
    page.0
}

/// A text in the making. Writing to a string cannot fail.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        let _ = writeln!(self.0, "{name} {value}");
    }

    fn labelled(&mut self, name: &str, label: &str, text: &str, value: u64) {
        let _ = writeln!(self.0, "{name}{{{}}} {value}", label_of(label, text));
    }
}

/// A label with its value.
fn label_of(label: &str, text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{label}=\"{text}\"")
}

/// The numbers of the whole server.
fn whole(page: &mut Page, counts: &Counts, status: &RuntimeStatus, detail: Detail, now: Timestamp) {
    contract_gauges(page, counts, now);
    let states = "mainspring_jobs";
    page.family(states, "gauge", "Jobs by state: live ones now, ended ones since the beginning.");
    for (state, count) in StateName::ALL.iter().zip(counts.by_state) {
        page.labelled(states, "state", state.as_str(), count);
    }
    queue_gauges(page, &counts.queues, detail, now);
    type_gauge(page, &counts.types, detail);
    for (name, help, value) in [
        ("mainspring_jobs_submitted_total", "Jobs accepted since the beginning.", counts.submitted),
        ("mainspring_attempts_total", "Attempts started since the beginning.", counts.claims),
        ("mainspring_retries_total", "Retries scheduled since the beginning.", counts.retries),
        ("mainspring_commits_total", "Commits since the process started.", status.commits),
        ("mainspring_commands_total", "Commands since the process started.", status.commands),
        ("mainspring_illegal_moves_total", "Illegal moves refused.", status.illegal_moves),
        (
            "mainspring_clock_set_forward_total",
            "Times the clock was set forward.",
            status.clock.forward,
        ),
        ("mainspring_clock_set_back_total", "Times the clock was set back.", status.clock.back),
        ("mainspring_stale_leases_total", "Stale leases refused.", status.stale_leases),
        ("mainspring_idempotent_hits_total", "Repeats recognised.", status.idempotent_hits),
    ] {
        page.one(name, "counter", help, value);
    }
    let ahead = status.clock.ahead.as_secs_f64();
    page.one(
        "mainspring_clock_ahead_seconds",
        "gauge",
        "How far time is ahead of the wall.",
        ahead,
    );
    page.one("mainspring_pulls_waiting", "gauge", "Pulls that wait.", status.parked_pulls);
}

/// The fullest queues by name, and all others added up.
fn queue_gauges(page: &mut Page, queues: &[QueueCount], detail: Detail, now: Timestamp) {
    type OfQueue = fn(&QueueCount) -> u64;
    let gauges: [(&str, &str, OfQueue); 3] = [
        ("mainspring_queue_ready", "Jobs of a queue that are due.", |queue| queue.ready),
        ("mainspring_queue_pending", "Jobs of a queue that are not due yet.", |queue| {
            queue.pending
        }),
        ("mainspring_queue_running", "Jobs of a queue that workers hold.", |queue| queue.running),
    ];
    let mut fullest: Vec<&QueueCount> = queues.iter().collect();
    fullest.sort_by_key(|queue| Reverse(queue.ready + queue.pending + queue.running));
    let named = if detail == Detail::Names { METRICS_QUEUES_MAX } else { 0 };
    let (named, others) = fullest.split_at(named.min(fullest.len()));
    for (name, help, value) in gauges {
        page.family(name, "gauge", help);
        for queue in named {
            page.labelled(name, "queue", queue.name.as_str(), value(queue));
        }
        if !others.is_empty() {
            // No queue has this name: names are not empty.
            page.labelled(name, "queue", "", others.iter().map(|queue| value(queue)).sum());
        }
    }
    let name = "mainspring_queue_oldest_ready_seconds";
    page.family(name, "gauge", "How long the longest due job of a queue has waited.");
    let age = |queue: &&QueueCount| queue.oldest_due.map_or(0, |due| now.since(due).as_secs());
    for queue in named {
        page.labelled(name, "queue", queue.name.as_str(), age(queue));
    }
    if !others.is_empty() {
        page.labelled(name, "queue", "", others.iter().map(age).max().unwrap_or(0));
    }
    page.one("mainspring_queues", "gauge", "Queues that have jobs or settings.", queues.len());
}

/// The types with the most jobs by name, and all others added up.
fn type_gauge(page: &mut Page, types: &[TypeCount], detail: Detail) {
    let depth = |of: &TypeCount| [of.queued, of.running, of.retrying];
    let mut fullest: Vec<&TypeCount> = types.iter().collect();
    fullest.sort_by_key(|of| Reverse(depth(of).iter().sum::<u64>()));
    let named = if detail == Detail::Names { METRICS_TYPES_MAX } else { 0 };
    let (named, others) = fullest.split_at(named.min(fullest.len()));
    let name = "mainspring_type_jobs";
    page.family(name, "gauge", "Jobs of a type that have not ended, by state.");
    let mut show = |job_type: &str, depth: [u64; 3]| {
        for (state, count) in ["queued", "running", "retrying"].iter().zip(depth) {
            let labels = [label_of("type", job_type), label_of("state", state)].join(",");
            page.under(name, &labels, count);
        }
    };
    for of in named {
        show(of.name.as_str(), depth(of));
    }
    if !others.is_empty() {
        // No type has this name: names are not empty.
        let sum = |at: usize| others.iter().map(|of| depth(of)[at]).sum();
        show("", [sum(0), sum(1), sum(2)]);
    }
    page.one("mainspring_types", "gauge", "Types that have jobs that have not ended.", types.len());
}

/// The numbers of the caller's tenant.
fn own(page: &mut Page, held: Held, bytes_max: u64) {
    let help = "Jobs of your tenant that have not ended.";
    page.one("mainspring_tenant_jobs", "gauge", help, held.jobs);
    let help = "What the jobs of your tenant that have not ended take up.";
    page.one("mainspring_tenant_backlog_bytes", "gauge", help, held.bytes);
    let help = "What the jobs of a tenant that have not ended may take up.";
    page.one("mainspring_tenant_backlog_bytes_max", "gauge", help, bytes_max);
}

/// How the server is.
fn condition(page: &mut Page, status: &RuntimeStatus, health: &Health) {
    let is_up = u8::from(health.broken.is_none());
    let is_low = u8::from(health.is_low_on_space);
    page.one("mainspring_store_up", "gauge", "Whether the store serves.", is_up);
    page.one("mainspring_store_low_on_space", "gauge", "Whether new work is refused.", is_low);
    let help = "Blocks of finished jobs found damaged since the process started.";
    page.one("mainspring_store_damaged_blocks", "gauge", help, health.damaged_blocks);
    let started = status.started_at.0 as f64 / 1e6;
    page.one("mainspring_start_time_seconds", "gauge", "When the process started.", started);
}

fn contract_gauges(page: &mut Page, counts: &Counts, now: Timestamp) {
    let of = |wanted: StateName| {
        let states = StateName::ALL.iter().zip(counts.by_state);
        states.filter(|(state, _)| **state == wanted).map(|(_, count)| count).sum::<u64>()
    };
    let (succeeded, failed) = (of(StateName::Succeeded), of(StateName::Failed));
    let lag = counts.oldest_due.map_or(0.0, |due| now.since(due).as_secs_f64());
    page.one("jobs_due_count", "gauge", "Jobs that are due and wait.", counts.due);
    page.one("jobs_lag_seconds", "gauge", "How long the longest due job has waited.", lag);
    let help = "Share of ended jobs that succeeded; cancelled ones do not count.";
    page.one("job_success_rate", "gauge", help, share(succeeded, succeeded + failed, 1.0));
    let help = "Share of jobs that were retried.";
    let retried = share(counts.jobs_retried, counts.submitted, 0.0);
    page.one("job_retry_rate", "gauge", help, retried);
    let help = "Dead letter items that wait for a decision.";
    page.one("dead_letter_count", "gauge", help, counts.items_open);
}

fn share(part: u64, whole: u64, of_nothing: f64) -> f64 {
    if whole == 0 { of_nothing } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
