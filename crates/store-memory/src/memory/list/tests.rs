//! What a list costs, counted rather than timed: a few of very many jobs are found by looking at a
//! few, wherever they lie. And lists stay whole while jobs go from RAM to the archive.

use super::*;
use crate::disk::SimDisk;
use crate::memory::MemoryConfig;
use futures_util::FutureExt;
use mainspring_kernel::job::{Extras, LastFailure};
use mainspring_kernel::{
    Failure, JobType, QueueName, State, StateName, TenantId, Timestamp, UserId,
};
use mainspring_store::record::Record;
use mainspring_store::{JobWithHistory, Scope, Store};

const START: i64 = 1_790_000_000_000;

/// The n-th job. Every thousandth is somebody else's in every respect.
fn job(n: u32) -> Job {
    let is_rare = n % 1_000 == 7;
    let pick = |rare: &'static str, usual: &'static str| if is_rare { rare } else { usual };
    let at = Timestamp::from_millis(START + i64::from(n));
    let last_failure = || LastFailure {
        failure: Failure { code: "NO_PAPER".into(), message: "".into(), retryable: true },
        at,
        is_exhausted: false,
        result: None,
    };
    let labels = vec![("team".into(), "red".into())];
    let extras = Extras { labels, parent: Some(JobId(77)), ..Extras::default() };
    Job {
        id: JobId(JobId::first_at(at).0 | u128::from(n % 3) << 64 | u128::from(n)),
        tenant: TenantId::new(pick("rare", "usual")).unwrap(),
        user: UserId::new(pick("ada", "bob")).unwrap(),
        job_type: JobType::new(pick("saw", "mill")).unwrap(),
        queue: QueueName::new(pick("slow", "default")).unwrap(),
        payload: "{}".into(),
        priority: 50,
        max_retries: 3,
        retry_count: 0,
        timeout_ms: 1_000,
        seq: 1,
        fence: 0,
        created_at: at,
        updated_at: at,
        run_at: at,
        started_at: None,
        trace: is_rare.then(|| "t1".into()),
        idempotency: None,
        last_failure: is_rare.then(|| Box::new(last_failure())),
        last_report: None,
        extras: is_rare.then(|| Box::new(extras)),
        state: match n % 2 {
            0 => State::Queued,
            _ if is_rare => State::Failed { finished_at: at },
            _ => State::Succeeded { finished_at: at, result: None },
        },
    }
}

/// A store with half of the jobs in RAM and most of the others in the archive.
fn filled(count: u32) -> (MemoryStore, Vec<Job>) {
    let config = MemoryConfig {
        finished_bytes_max: 4 << 20,
        has_threads: false,
        ..MemoryConfig::standard(1)
    };
    let now = Timestamp::from_millis(START);
    let store = MemoryStore::open(Arc::new(SimDisk::new()), config, now).unwrap();
    let jobs: Vec<Job> = (0..count).map(job).collect();
    for some in jobs.chunks(5_000) {
        let whole = |job: &Job| {
            let whole = JobWithHistory { job: job.clone(), history: Vec::new() };
            Record::Job(Box::new(whole))
        };
        store.restore(some.iter().map(whole).collect()).unwrap();
        store.tidy(now).unwrap();
    }
    (store, jobs)
}

fn rare() -> Vec<JobFilter> {
    let all = || JobFilter::of(Scope::All);
    let tenant = || TenantId::new("rare").unwrap();
    vec![
        JobFilter::of(Scope::Tenant(tenant())),
        JobFilter::of(Scope::User(tenant(), UserId::new("ada").unwrap())),
        JobFilter { job_type: Some(JobType::new("saw").unwrap()), ..all() },
        JobFilter { queue: Some(QueueName::new("slow").unwrap()), ..all() },
        JobFilter { user: Some(UserId::new("ada").unwrap()), ..all() },
        JobFilter { trace_id: Some("t1".to_owned()), ..all() },
        JobFilter { labels: vec![("team".to_owned(), "red".to_owned())], ..all() },
        JobFilter { error_code: Some("NO_PAPER".to_owned()), ..all() },
        JobFilter { parent: Some(JobId(77)), ..all() },
        JobFilter { state: Some(StateName::Failed), ..all() },
    ]
}

fn page(store: &MemoryStore, filter: &JobFilter, limit: usize) -> Page<Job> {
    store.jobs(filter, None, limit).now_or_never().unwrap().unwrap()
}

#[test]
fn a_page_costs_what_it_shows_and_not_what_there_is() {
    const LIMIT: usize = 20;
    let (store, jobs) = filled(60_000);
    let runs = store.memory.archive().runs().len();
    assert!(
        runs > 1
            && store.memory.archive().runs().iter().map(|run| run.records()).sum::<u64>() > 20_000
    );
    let (listed, held) = store.memory.read().listed_and_held();
    assert_eq!(listed, held, "what went to the archive leaves no postings behind");
    let mut filters = rare();
    filters.push(JobFilter::of(Scope::All));
    filters.push(JobFilter { state: Some(StateName::Queued), ..JobFilter::of(Scope::All) });
    filters.push(JobFilter { state: Some(StateName::Succeeded), ..JobFilter::of(Scope::All) });
    filters.push(JobFilter::of(Scope::Tenant(TenantId::new("usual").unwrap())));
    for filter in filters {
        let before = store.looked_at();
        let page = page(&store, &filter, LIMIT);
        let cost = store.looked_at() - before;
        let expected = jobs.iter().rev().filter(|job| filter.admits(job)).take(LIMIT);
        let expected: Vec<JobId> = expected.map(|job| job.id).collect();
        assert_eq!(expected.len(), LIMIT);
        assert_eq!(page.items.iter().map(|job| job.id).collect::<Vec<_>>(), expected, "{filter:?}");
        let bound = (4 * (LIMIT + 1) + 8 * runs) as u64;
        assert!(cost <= bound, "{cost} postings and blocks, not {bound}: {filter:?}");
        let count = store.count_jobs(&filter, 10_001).now_or_never().unwrap().unwrap();
        let all = jobs.iter().filter(|job| filter.admits(job)).count();
        assert_eq!(count, all.min(10_001), "{filter:?}");
    }
}

#[test]
fn a_list_without_matches_in_common_looks_at_the_shorter_side() {
    let (store, _) = filled(40_000);
    let filter = JobFilter {
        job_type: Some(JobType::new("saw").unwrap()),
        ..JobFilter::of(Scope::Tenant(TenantId::new("usual").unwrap()))
    };
    let before = store.looked_at();
    assert!(page(&store, &filter, 20).items.is_empty());
    let cost = store.looked_at() - before;
    assert!(cost < 400, "{cost} postings and blocks for 40 jobs that might be");
}

#[test]
fn jobs_are_listed_once_wherever_they_lie() {
    let (store, jobs) = filled(20_000);
    assert!(!store.memory.archive().runs().is_empty());
    for filter in rare().into_iter().chain([JobFilter::of(Scope::All)]) {
        let admitted = jobs.iter().rev().filter(|job| filter.admits(job));
        let admitted: Vec<JobId> = admitted.map(|job| job.id).collect();
        let (mut seen, mut before) = (Vec::new(), None);
        loop {
            let page = store.jobs(&filter, before, 7).now_or_never().unwrap().unwrap();
            seen.extend(page.items.iter().map(|job| job.id));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(seen, admitted, "{filter:?}");
    }
}

#[test]
fn two_long_lists_with_one_job_in_common_are_walked_in_rounds() {
    let config = MemoryConfig { has_threads: false, ..MemoryConfig::standard(1) };
    let store = MemoryStore::ephemeral(config);
    let crossed = |n: u32| {
        let mut job = job(2 * n);
        job.job_type = JobType::new(if n.is_multiple_of(2) { "even" } else { "odd" }).unwrap();
        job.queue = QueueName::new(if n % 2 == 1 || n == 0 { "one" } else { "two" }).unwrap();
        Record::Job(Box::new(JobWithHistory { job, history: Vec::new() }))
    };
    store.restore((0..45_000).map(crossed).collect()).unwrap();
    let filter = JobFilter {
        job_type: Some(JobType::new("even").unwrap()),
        queue: Some(QueueName::new("one").unwrap()),
        ..JobFilter::of(Scope::All)
    };
    let found = page(&store, &filter, 20);
    assert_eq!(found.items.iter().map(|it| it.id).collect::<Vec<_>>(), [job(0).id]);
    assert_eq!(store.count_jobs(&filter, 9).now_or_never().unwrap().unwrap(), 1);
    let round = store.memory.read().walk(&filter, None, 20, |_| ());
    assert!(round.found.is_empty() && round.stopped_at.is_some(), "one hold of the lock is short");
}

#[test]
fn a_damaged_block_costs_its_own_jobs_and_no_page() {
    let (store, jobs) = filled(20_000);
    let disk = store.memory.disk.as_ref().unwrap();
    let name = store.memory.archive().names()[0].clone();
    // A byte of the first block of records.
    let file = disk.open_write(&name).unwrap();
    file.write_at(100, &[0xff, 0x00, 0xff]).unwrap();
    let filter = JobFilter { state: Some(StateName::Succeeded), ..JobFilter::of(Scope::All) };
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = store.jobs(&filter, before, 20).now_or_never().unwrap().unwrap();
        assert!(page.next.is_none() || page.items.len() == 20, "a page is full");
        seen.extend(page.items.iter().map(|job| job.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    let all = jobs.iter().rev().filter(|job| filter.admits(job)).map(|job| job.id);
    let all: Vec<JobId> = all.collect();
    let missing = all.iter().filter(|id| !seen.contains(id)).count();
    assert!((1..200).contains(&missing), "{missing} of {} are missing", all.len());
    assert!(seen.is_sorted_by(|a, b| a > b));
}

/// Whoever may not see a job must not learn from the time it takes that there is one: nothing of it
/// is copied, as nothing of an unknown one is.
#[test]
fn a_stranger_makes_no_copy_of_a_job_in_ram() {
    let (store, jobs) = filled(2_000);
    let copies = |id: JobId, scope: &Scope| {
        let before = crate::state::COPIES.get();
        let found = store.job_within(id, scope).now_or_never().unwrap().unwrap();
        (found.is_some(), crate::state::COPIES.get() - before)
    };
    let waiting = jobs.iter().find(|job| job.state.name() == StateName::Queued).unwrap();
    let own = Scope::User(waiting.tenant.clone(), waiting.user.clone());
    assert_eq!(copies(waiting.id, &own), (true, 1), "the meter counts");
    let other = TenantId::new("other").unwrap();
    let stranger = UserId::new("eve").unwrap();
    for scope in [
        Scope::Tenant(other.clone()),
        Scope::User(other, waiting.user.clone()),
        Scope::User(waiting.tenant.clone(), stranger),
    ] {
        assert_eq!(copies(waiting.id, &scope), (false, 0), "{scope:?}");
        assert_eq!(copies(JobId(7), &scope), (false, 0), "{scope:?}");
    }
}
