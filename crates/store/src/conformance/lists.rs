//! Lists: every filter, full pages, totals, and jobs that move while somebody turns the page.

use super::bench::{Bench, complete, everything, fail, kind, queue, submit, tenant, user, wish};
use super::dlq::buried;
use crate::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::signature::Signature;
use mainspring_kernel::{Command, DlqItem, Job, JobId, StateName};

fn label(name: &str, value: &str) -> Vec<(Box<str>, Box<str>)> {
    vec![(name.into(), value.into())]
}

fn wanted_label(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(name.to_owned(), value.to_owned())]
}

/// Jobs of many kinds in many states.
async fn crowd(bench: &mut Bench) {
    for round in 0..6 {
        for (nth, name) in ["ada", "bob", "eve"].into_iter().enumerate() {
            let turn = round * 3 + nth;
            let wish = Submit {
                tenant: tenant(if turn % 2 == 0 { "acme" } else { "other" }),
                user: user(name),
                job_type: kind(if turn % 3 == 0 { "saw" } else { "mill" }),
                queue: (turn % 4 == 0).then(|| queue("slow")),
                trace: (turn % 5 == 0).then(|| "t1".into()),
                parent: (turn % 5 < 2).then(|| JobId(77 + turn as u128 % 2)),
                labels: match turn % 4 {
                    0 => label("team", "red"),
                    1 => [label("team", "red"), label("site", "é")].concat(),
                    2 => label("team", "blue"),
                    _ => Vec::new(),
                },
                max_retries: Some(u16::from(turn % 2 == 0)),
                ..wish()
            };
            bench.submit(wish).await;
        }
        bench.pass(1_000);
        let job = bench.grant().await;
        match round % 3 {
            0 => bench.done(complete(&job)).await,
            1 => bench.done(fail(&job, true)).await,
            _ => bench.done(fail(&job, false)).await,
        };
    }
    let oldest = *bench.list(&everything(), 50).await.last().expect("there are jobs");
    // It may have ended already.
    let _ = bench.one(Command::Cancel { job: oldest, by: user("ada"), reason: None }).await;
}

fn filters(some: &[Job]) -> Vec<JobFilter> {
    let all = everything;
    let mut filters = vec![all()];
    filters.extend(StateName::ALL.map(|state| JobFilter { state: Some(state), ..all() }));
    for scope in [
        Scope::Tenant(tenant("acme")),
        Scope::Tenant(tenant("nobody")),
        Scope::User(tenant("acme"), user("ada")),
        Scope::User(tenant("other"), user("bob")),
    ] {
        filters.push(JobFilter::of(scope.clone()));
        filters.push(JobFilter { job_type: Some(kind("saw")), ..JobFilter::of(scope.clone()) });
        filters.push(JobFilter { user: Some(user("ada")), ..JobFilter::of(scope.clone()) });
        let state = Some(StateName::Queued);
        filters.push(JobFilter { state, ..JobFilter::of(scope.clone()) });
        filters.push(JobFilter { trace_id: Some("t1".into()), ..JobFilter::of(scope.clone()) });
        filters.push(JobFilter { labels: wanted_label("team", "red"), ..JobFilter::of(scope) });
    }
    filters.push(JobFilter { user: Some(user("bob")), ..all() });
    filters.push(JobFilter { queue: Some(queue("slow")), job_type: Some(kind("saw")), ..all() });
    filters.push(JobFilter { queue: Some(queue("none")), ..all() });
    filters.push(JobFilter { error_code: Some("BROKEN".into()), ..all() });
    let state = Some(StateName::Failed);
    filters.push(JobFilter { error_code: Some("BROKEN".into()), state, ..all() });
    filters.push(JobFilter { error_code: Some("BROKE".into()), ..all() });
    filters.push(JobFilter { labels: wanted_label("team", "red"), ..all() });
    filters.push(JobFilter { labels: wanted_label("team", "re"), ..all() });
    let both = [wanted_label("team", "red"), wanted_label("site", "é")].concat();
    filters.push(JobFilter { labels: both, ..all() });
    filters.push(JobFilter { trace_id: Some("t1".into()), user: Some(user("eve")), ..all() });
    for parent in [77, 78, 79].map(|bits| Some(JobId(bits))) {
        filters.push(JobFilter { parent, ..all() });
        filters.push(JobFilter { parent, ..JobFilter::of(Scope::Tenant(tenant("other"))) });
        filters.push(JobFilter { parent, state: Some(StateName::Queued), ..all() });
        filters.push(JobFilter { parent, labels: wanted_label("team", "red"), ..all() });
    }
    for job in some {
        filters.push(JobFilter { trace_id: Some(job.trace_id()), ..all() });
        filters.push(JobFilter { since: Some(job.created_at), ..all() });
        filters.push(JobFilter { until: Some(job.created_at), ..all() });
        let (since, until) = (Some(job.created_at), Some(job.created_at.plus_millis(2_000)));
        filters.push(JobFilter { since, until, user: Some(user("ada")), ..all() });
    }
    filters
}

pub(super) async fn every_filter_finds_what_it_admits(bench: &mut Bench) {
    crowd(bench).await;
    let mut jobs = Vec::new();
    for id in bench.list(&everything(), 7).await {
        jobs.push(bench.job(id).await.job);
    }
    assert_eq!(jobs.len(), 18);
    for filter in filters(&jobs[5..9]) {
        let admitted = jobs.iter().filter(|job| filter.admits(job));
        let admitted: Vec<JobId> = admitted.map(|job| job.id).collect();
        for limit in [1, 4, 50] {
            assert_eq!(bench.list(&filter, limit).await, admitted, "{limit} {filter:?}");
        }
        for most in [0, 1, 3, 18, 10_000] {
            let told = bench.store.count_jobs(&filter, most).await.expect("reads work");
            assert_eq!(told, admitted.len().min(most), "up to {most} {filter:?}");
        }
    }
}

pub(super) async fn every_item_filter_finds_what_it_admits(bench: &mut Bench) {
    for (nth, name) in ["ada", "bob", "ada", "eve", "ada"].into_iter().enumerate() {
        let wish = Submit {
            tenant: tenant(if nth < 3 { "acme" } else { "other" }),
            user: user(name),
            job_type: kind(if nth % 2 == 0 { "saw" } else { "mill" }),
            queue: (nth == 2).then(|| queue("slow")),
            trace: (nth % 2 == 0).then(|| "t1".into()),
            labels: if nth > 2 { label("team", "red") } else { Vec::new() },
            ..wish()
        };
        let id = buried(bench, wish).await;
        bench.pass(1_000);
        if nth == 1 {
            bench.done(Command::RequeueItem { item: id, by: user("ada"), key: None }).await;
            let job = bench.grant().await;
            bench.done(complete(&job)).await;
        }
    }
    let all = || ItemFilter::of(Scope::All);
    let of = |job: JobFilter| ItemFilter { job, ..all() };
    let read = bench.store.items(&all(), None, 50).await.expect("reads work");
    let items: Vec<DlqItem> = read.items;
    assert_eq!(items.len(), 5);
    let mut filters = vec![
        of(JobFilter::of(Scope::Tenant(tenant("acme")))),
        of(JobFilter::of(Scope::User(tenant("acme"), user("ada")))),
        of(JobFilter { user: Some(user("ada")), ..everything() }),
        of(JobFilter { job_type: Some(kind("saw")), ..everything() }),
        of(JobFilter { queue: Some(queue("slow")), ..everything() }),
        of(JobFilter { trace_id: Some("t1".into()), ..everything() }),
        of(JobFilter { trace_id: Some(items[1].job.trace_id()), ..everything() }),
        of(JobFilter { labels: wanted_label("team", "red"), ..everything() }),
        of(JobFilter { error_code: Some("BROKEN".into()), ..everything() }),
        of(JobFilter { error_code: Some("OTHER".into()), ..everything() }),
        ItemFilter { signature: Some(signature(&items[1])), ..all() },
        ItemFilter { signature: Some("0123456789abcdef".into()), ..all() },
        ItemFilter { since: Some(items[2].created_at), ..all() },
        ItemFilter { until: Some(items[2].created_at), ..all() },
    ];
    for state in ["open", "requeued", "discarded"] {
        filters.push(ItemFilter { state: Some(state.to_owned()), ..all() });
        let job = JobFilter::of(Scope::Tenant(tenant("acme")));
        filters.push(ItemFilter { state: Some(state.to_owned()), job, ..all() });
    }
    for filter in filters {
        let admitted = items.iter().filter(|item| filter.admits(item));
        let admitted: Vec<_> = admitted.map(|item| item.id).collect();
        for limit in [1, 2, 50] {
            let listed = super::dlq::listed(bench, &filter, limit).await;
            assert_eq!(listed, admitted, "{limit} {filter:?}");
        }
        let told = bench.store.count_items(&filter, 2).await.expect("reads work");
        assert_eq!(told, admitted.len().min(2), "{filter:?}");
    }
}

fn signature(item: &DlqItem) -> String {
    Signature::of_item(item).to_string()
}

/// Strangers' jobs newer than one's own: more than a list once looked at.
const STRANGERS: usize = 11_000;

pub(super) async fn strangers_do_not_thin_out_a_page(bench: &mut Bench) {
    let own = Submit {
        tenant: tenant("acme"),
        user: user("ada"),
        job_type: kind("saw"),
        queue: Some(queue("slow")),
        trace: Some("t1".into()),
        labels: label("team", "red"),
        ..wish()
    };
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.insert(0, bench.submit(own.clone()).await);
    }
    let job = bench.grant().await;
    bench.done(fail(&job, false)).await;
    let strange = Submit { tenant: tenant("other"), user: user("bob"), ..wish() };
    for n in 0..STRANGERS / 500 {
        bench.pass(1);
        // Of two tenants: one may not have so many. A few at a time: a store that several servers
        // share may count what it takes twice for a moment, and there is room for two of these.
        let strange = Submit { tenant: tenant(["other", "another"][n % 2]), ..strange.clone() };
        let wishes: Vec<Command> = (0..500).map(|_| submit(strange.clone())).collect();
        let outcomes = bench.run(&wishes).await;
        assert_eq!(outcomes.iter().find(|outcome| outcome.is_err()), None);
    }
    let saw = kind("saw");
    for filter in [
        JobFilter::of(Scope::Tenant(tenant("acme"))),
        JobFilter::of(Scope::User(tenant("acme"), user("ada"))),
        JobFilter { job_type: Some(saw.clone()), ..everything() },
        JobFilter { queue: Some(queue("slow")), ..everything() },
        JobFilter { trace_id: Some("t1".into()), ..everything() },
        JobFilter { labels: wanted_label("team", "red"), ..everything() },
        JobFilter { user: Some(user("ada")), ..everything() },
        JobFilter { job_type: Some(saw), ..JobFilter::of(Scope::Tenant(tenant("acme"))) },
    ] {
        let page = bench.store.jobs(&filter, None, 3).await.expect("reads work");
        let found: Vec<JobId> = page.items.iter().map(|job| job.id).collect();
        assert_eq!(found, ids[..3], "{filter:?}");
        assert_eq!(page.next, Some(ids[2]), "the next page starts behind what was shown");
        let page = bench.store.jobs(&filter, page.next, 3).await.expect("reads work");
        assert_eq!((page.items.len(), page.next), (1, None), "{filter:?}");
        assert_eq!(bench.store.count_jobs(&filter, 10).await.expect("reads work"), 4);
    }
    for filter in [
        JobFilter { state: Some(StateName::Failed), ..everything() },
        JobFilter { error_code: Some("BROKEN".into()), ..everything() },
    ] {
        assert_eq!(bench.list(&filter, 3).await, [job.id], "{filter:?}");
    }
    let all = everything();
    assert_eq!(bench.store.count_jobs(&all, 10_001).await.expect("reads work"), 10_001);
    let waiting = JobFilter { state: Some(StateName::Queued), ..everything() };
    let told = bench.store.count_jobs(&waiting, usize::MAX).await.expect("reads work");
    assert_eq!(told, STRANGERS + 3);
}

pub(super) async fn what_ends_between_two_pages_is_neither_missed_nor_repeated(bench: &mut Bench) {
    let mut ids = Vec::new();
    for nth in 0..30 {
        let labels = if nth % 3 == 0 { label("team", "red") } else { Vec::new() };
        ids.insert(0, bench.submit(Submit { labels, ..wish() }).await);
    }
    for (filter, of) in [
        (everything(), ids.clone()),
        (
            JobFilter { labels: wanted_label("team", "red"), ..everything() },
            ids.iter().copied().rev().step_by(3).collect::<Vec<_>>().into_iter().rev().collect(),
        ),
    ] {
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = bench.store.jobs(&filter, before, 2).await.expect("reads work");
            seen.extend(page.items.iter().map(|job| job.id));
            before = page.next;
            if before.is_none() {
                break;
            }
            if let Some(job) = bench.pull(super::bench::any(1)).await.pop() {
                bench.done(complete(&job)).await;
            }
            bench.store.maintain(bench.now).await.expect("upkeep works");
            bench.submit(wish()).await;
        }
        seen.retain(|id| ids.contains(id));
        assert_eq!(seen, of, "{filter:?}");
    }
}
