//! Metrics in the text format of Prometheus. Five gauges have the names their contract gives them;
//! everything else starts with `mainspring_`.

use crate::contracts::native::errors::Fault;
use mainspring_engine::store::{Counts, Health};
use mainspring_engine::{Engine, RuntimeStatus};
use mainspring_kernel::{StateName, Timestamp};
use std::fmt::{Display, Write};

pub(crate) async fn text(engine: &Engine) -> Result<String, Fault> {
    let counts = engine.counts().await?;
    let workers = engine.workers().len();
    Ok(render(&counts, &engine.status(), &engine.health(), workers, engine.now()))
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
        let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = writeln!(self.0, "{name}{{{label}=\"{text}\"}} {value}");
    }
}

fn render(
    counts: &Counts,
    status: &RuntimeStatus,
    health: &Health,
    workers: usize,
    now: Timestamp,
) -> String {
    let mut page = Page(String::with_capacity(4 << 10));
    contract_gauges(&mut page, counts, now);
    let states = "mainspring_jobs";
    page.family(states, "gauge", "Jobs by state: live ones now, ended ones since the beginning.");
    for (state, count) in StateName::ALL.iter().zip(counts.by_state) {
        page.labelled(states, "state", state.as_str(), count);
    }
    type OfQueue = fn(&mainspring_engine::store::QueueCount) -> u64;
    let queues: [(&str, &str, OfQueue); 3] = [
        ("mainspring_queue_ready", "Jobs of a queue that are due.", |queue| queue.ready),
        ("mainspring_queue_pending", "Jobs of a queue that are not due yet.", |queue| {
            queue.pending
        }),
        ("mainspring_queue_running", "Jobs of a queue that workers hold.", |queue| queue.running),
    ];
    for (name, help, value) in queues {
        page.family(name, "gauge", help);
        for queue in &counts.queues {
            page.labelled(name, "queue", queue.name.as_str(), value(queue));
        }
    }
    for (name, help, value) in [
        ("mainspring_jobs_submitted_total", "Jobs accepted since the beginning.", counts.submitted),
        ("mainspring_attempts_total", "Attempts started since the beginning.", counts.claims),
        ("mainspring_retries_total", "Retries scheduled since the beginning.", counts.retries),
        ("mainspring_commits_total", "Commits since the process started.", status.commits),
        ("mainspring_commands_total", "Commands since the process started.", status.commands),
        ("mainspring_illegal_moves_total", "Illegal moves refused.", status.illegal_moves),
        ("mainspring_stale_leases_total", "Stale leases refused.", status.stale_leases),
        ("mainspring_idempotent_hits_total", "Repeats recognised.", status.idempotent_hits),
    ] {
        page.one(name, "counter", help, value);
    }
    let is_up = u8::from(health.broken.is_none());
    let is_low = u8::from(health.is_low_on_space);
    page.one("mainspring_pulls_waiting", "gauge", "Pulls that wait.", status.parked_pulls);
    page.one("mainspring_workers", "gauge", "Workers heard of lately.", workers);
    page.one("mainspring_store_up", "gauge", "Whether the store serves.", is_up);
    page.one("mainspring_store_low_on_space", "gauge", "Whether new work is refused.", is_low);
    let help = "Blocks of finished jobs found damaged since the process started.";
    page.one("mainspring_store_damaged_blocks", "gauge", help, health.damaged_blocks);
    let started = status.started_at.0 as f64 / 1e6;
    page.one("mainspring_start_time_seconds", "gauge", "When the process started.", started);
    page.0
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
mod tests {
    use super::*;
    use mainspring_engine::store::{QueueCount, Recovery};
    use mainspring_kernel::QueueName;

    #[test]
    fn the_five_gauges_have_their_names() {
        let queue =
            QueueCount { name: QueueName::new("a\"b").unwrap(), ready: 1, pending: 2, running: 3 };
        let counts = Counts {
            by_state: [1, 0, 0, 0, 0, 3, 1, 5],
            due: 7,
            oldest_due: Some(Timestamp(1_000_000)),
            submitted: 10,
            jobs_retried: 5,
            items_open: 1,
            queues: vec![queue],
            ..Counts::default()
        };
        let status = RuntimeStatus {
            started_at: Timestamp(0),
            commits: 0,
            commands: 0,
            illegal_moves: 0,
            stale_leases: 0,
            idempotent_hits: 0,
            parked_pulls: 0,
        };
        let health = Health {
            kind: "memory",
            broken: None,
            is_low_on_space: false,
            damaged_blocks: 3,
            recovery: Recovery::default(),
        };
        let text = render(&counts, &status, &health, 2, Timestamp(3_500_000));
        for line in [
            "jobs_due_count 7",
            "jobs_lag_seconds 2.5",
            "job_success_rate 0.75",
            "job_retry_rate 0.5",
            "dead_letter_count 1",
            "mainspring_jobs{state=\"cancelled\"} 5",
            "mainspring_store_damaged_blocks 3",
            "mainspring_queue_ready{queue=\"a\\\"b\"} 1",
        ] {
            assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
        }
    }
}
