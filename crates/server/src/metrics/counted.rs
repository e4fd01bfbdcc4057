//! What the engine has counted since the process started, on a page of metrics: counters and
//! histograms by tenant, queue and type, and those of schedules, commits and the store.

use super::{Detail, Page, label_of};
use mainspring_engine::store::{Held, Readout, Spent};
use mainspring_engine::{Happening, JobKind, Metered, Meterings};
use mainspring_kernel::TenantId;
use mainspring_kernel::entity::Kind;
use std::fmt::Write;

/// What each happening is called, and what for.
const COUNTERS: [(Happening, &str, &str); 8] = [
    (Happening::Submitted, "mainspring_work_submitted_total", "Jobs accepted."),
    (Happening::Started, "mainspring_work_started_total", "Attempts started."),
    (Happening::Succeeded, "mainspring_work_succeeded_total", "Jobs that ended well."),
    (Happening::Failed, "mainspring_work_failed_total", "Jobs that became dead letters."),
    (Happening::Cancelled, "mainspring_work_cancelled_total", "Jobs cancelled or expired."),
    (Happening::Retried, "mainspring_work_retries_total", "Retries scheduled."),
    (Happening::LeaseLost, "mainspring_work_leases_lost_total", "Leases that ran out."),
    (Happening::TimedOut, "mainspring_work_timeouts_total", "Attempts that ran for too long."),
];

/// Numbers of jobs, each with the labels it is shown under.
pub(super) struct OfJobs {
    series: Vec<(String, Metered)>,
    tenants: Vec<TenantId>,
}

/// What whoever asks may see of the numbers of jobs: all of them by name, their sum, or those of
/// one tenant by name.
pub(super) fn of_jobs(counted: Meterings, own: Option<&TenantId>, detail: Detail) -> OfJobs {
    let Meterings { kinds, others, .. } = counted;
    let mut series: Vec<(String, Metered)> = Vec::new();
    let mut tenants: Vec<TenantId> = Vec::new();
    match detail {
        Detail::Names => {
            for (kind, metered) in kinds {
                series.push((labels(&kind), metered));
                if tenants.last() != Some(&kind.tenant) {
                    tenants.push(kind.tenant);
                }
            }
            // No tenant has this name: names are not empty.
            series.push(("tenant=\"\",queue=\"\",type=\"\"".to_owned(), others));
        }
        Detail::Numbers => {
            let mut sum = others;
            kinds.iter().for_each(|(_, metered)| sum.add(metered));
            series.push((String::new(), sum));
        }
        Detail::Tenant => {
            let own = kinds.into_iter().filter(|(kind, _)| Some(&kind.tenant) == own);
            series.extend(own.map(|(kind, metered)| (labels(&kind), metered)));
        }
    }
    OfJobs { series, tenants }
}

fn labels(kind: &JobKind) -> String {
    let JobKind { tenant, queue, job_type } = kind;
    [
        label_of("tenant", tenant.as_str()),
        label_of("queue", queue.as_str()),
        label_of("type", job_type.as_str()),
    ]
    .join(",")
}

impl OfJobs {
    pub(super) fn show(&self, page: &mut Page) {
        for (what, name, help) in COUNTERS {
            page.family(name, "counter", &format!("{help} Since the process started."));
            for (labels, metered) in &self.series {
                page.under(name, labels, metered.count(what));
            }
        }
        let name = "mainspring_pickup_seconds";
        page.family(name, "histogram", "From due to picked up by a worker.");
        for (labels, metered) in &self.series {
            page.histogram(name, labels, &metered.pickup, Unit::Seconds);
        }
        let name = "mainspring_run_seconds";
        page.family(name, "histogram", "From the start of an attempt to its end.");
        for (labels, metered) in &self.series {
            page.histogram(name, labels, &metered.run, Unit::Seconds);
        }
    }

    /// The tenants that are named.
    pub(super) fn tenants(&self) -> Vec<TenantId> {
        self.tenants.clone()
    }
}

/// What tenants have that has not ended.
pub(super) fn of_tenants(page: &mut Page, tenants: &[(TenantId, Held)]) {
    let name = "mainspring_tenant_jobs";
    page.family(name, "gauge", "Jobs of a tenant that have not ended.");
    for (tenant, held) in tenants {
        page.labelled(name, "tenant", tenant.as_str(), held.jobs);
    }
    let name = "mainspring_tenant_backlog_bytes";
    page.family(name, "gauge", "What the jobs of a tenant that have not ended take up.");
    for (tenant, held) in tenants {
        page.labelled(name, "tenant", tenant.as_str(), held.bytes);
    }
}

/// What concerns the server as a whole.
pub(super) fn of_server(
    page: &mut Page,
    counted: &Meterings,
    spent: &Spent,
    census: &[(Kind, u64)],
) {
    let help = "Firings of schedules that were left out, since the process started.";
    page.one("mainspring_schedule_skips_total", "counter", help, counted.skips);
    let Meterings { lateness, batches, commits, .. } = counted;
    for (name, help, told, unit) in [
        (
            "mainspring_schedule_lateness_seconds",
            "From when a schedule should fire to when it did.",
            lateness,
            Unit::Seconds,
        ),
        ("mainspring_batch_commands", "Commands of a commit.", batches, Unit::Number),
        (
            "mainspring_commit_seconds",
            "From the first command of a commit until it was durable.",
            commits,
            Unit::Seconds,
        ),
        ("mainspring_journal_sync_seconds", "Syncs of the journal.", &spent.syncs, Unit::Seconds),
        (
            "mainspring_database_seconds",
            "Round trips to the database.",
            &spent.database,
            Unit::Seconds,
        ),
    ] {
        page.family(name, "histogram", help);
        page.histogram(name, "", told, unit);
    }
    let name = "mainspring_entities";
    page.family(name, "gauge", "Entities by kind, counted now and then, up to 100000.");
    for (kind, count) in census {
        page.labelled(name, "kind", kind.as_str(), *count);
    }
}

/// What a histogram counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// Microseconds, shown as seconds.
    Seconds,
    /// Things.
    Number,
}

impl Unit {
    fn shown(self, size: u64) -> f64 {
        match self {
            Unit::Seconds => size as f64 / 1e6,
            Unit::Number => size as f64,
        }
    }
}

impl Page {
    /// A value under labels, if there are any.
    pub(super) fn under(&mut self, name: &str, labels: &str, value: u64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            labels => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }

    fn histogram(&mut self, name: &str, labels: &str, told: &Readout, unit: Unit) {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut sum = 0;
        for (bound, count) in told.bounds.iter().zip(&told.counts) {
            sum += count;
            let bound = unit.shown(*bound);
            let _ = writeln!(self.0, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {sum}");
        }
        let all: u64 = told.counts.iter().sum();
        let _ = writeln!(self.0, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {all}");
        let total = unit.shown(told.sum);
        let _ = match labels {
            "" => writeln!(self.0, "{name}_sum {total}\n{name}_count {all}"),
            labels => {
                writeln!(self.0, "{name}_sum{{{labels}}} {total}\n{name}_count{{{labels}}} {all}")
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_engine::store::Histogram;
    use mainspring_kernel::{JobType, QueueName};
    use std::time::Duration;

    fn kind(tenant: &str) -> JobKind {
        JobKind {
            tenant: TenantId::new(tenant).unwrap(),
            queue: QueueName::new("q").unwrap(),
            job_type: JobType::new("t").unwrap(),
        }
    }

    fn counted() -> Meterings {
        let none = Readout::no_spans();
        let some = |n: u64| {
            let spans = Histogram::of_spans();
            spans.took(Duration::from_millis(2));
            let mut counts = [0; 8];
            counts[Happening::Started as usize] = n;
            Metered { counts, pickup: spans.readout(), run: Readout::no_spans() }
        };
        Meterings {
            kinds: vec![(kind("acme"), some(3)), (kind("other"), some(4))],
            others: some(5),
            lateness: none.clone(),
            skips: 0,
            batches: none.clone(),
            commits: none,
        }
    }

    fn shown(own: Option<&TenantId>, detail: Detail) -> String {
        let mut page = Page(String::new());
        of_jobs(counted(), own, detail).show(&mut page);
        page.0
    }

    #[test]
    fn who_may_not_see_names_sees_the_sum_and_a_tenant_sees_its_own() {
        let acme = TenantId::new("acme").unwrap();
        let names = shown(None, Detail::Names);
        let line = "mainspring_work_started_total{tenant=\"other\",queue=\"q\",type=\"t\"} 4";
        assert!(names.lines().any(|one| one == line), "{names}");
        let line = "mainspring_work_started_total{tenant=\"\",queue=\"\",type=\"\"} 5";
        assert!(names.lines().any(|one| one == line), "{names}");
        let sum = shown(Some(&acme), Detail::Numbers);
        assert!(sum.lines().any(|one| one == "mainspring_work_started_total 12"), "{sum}");
        assert!(!sum.contains("acme"), "{sum}");
        let own = shown(Some(&acme), Detail::Tenant);
        assert!(own.contains("tenant=\"acme\"") && !own.contains("other"), "{own}");
        assert!(shown(None, Detail::Tenant).lines().all(|line| line.starts_with('#')));
    }

    #[test]
    fn buckets_add_up() {
        let page = shown(None, Detail::Numbers);
        let value = |le: &str| {
            let start = format!("mainspring_pickup_seconds_bucket{{le=\"{le}\"}} ");
            page.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
        };
        let told = ["0.001", "0.005", "3600", "+Inf"].map(|le| value(le).unwrap());
        assert_eq!(told, ["0", "3", "3", "3"]);
        assert!(page.contains("mainspring_pickup_seconds_sum 0.006\n"), "{page}");
        assert!(page.contains("mainspring_pickup_seconds_count 3\n"), "{page}");
    }
}
