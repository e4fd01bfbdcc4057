//! What it costs to ask for what one may not see: as much as for what is not there, counted in what
//! is read from disk.

use super::{Hand, complete, config, open, submitted};
use mainspring_kernel::{Command, JobId};
use mainspring_store::{Scope, Store};
use mainspring_store_memory::MemoryConfig;
use mainspring_store_memory::disk::SimDisk;
use mainspring_testkit::drive::{self, BEGINNING};

#[test]
fn a_strangers_large_job_of_the_archive_costs_what_an_unknown_one_does() {
    let disk = SimDisk::new();
    let store = open(&disk, MemoryConfig { finished_bytes_max: 1, ..config() });
    let mut hand = Hand::of(&store);
    let large = format!("\"{}\"", "x".repeat(1_000_000));
    let of = |user: &str, payload: &str| {
        Command::Submit(Box::new(drive::wish("acme", user, "plain", payload)))
    };
    let wishes = [of("ada", "1"), of("ada", &large), of("bob", "2"), of("ada", "3")];
    let jobs: Vec<JobId> = wishes
        .iter()
        .map(|wish| {
            hand.fresh += 10;
            submitted(&hand.commit(std::slice::from_ref(wish), 0).outcomes[0])
        })
        .collect();
    let held = hand.commit(&[], wishes.len()).granted;
    let reports: Vec<Command> = held.iter().map(complete).collect();
    hand.commit(&reports, 0);
    store.take_snapshot(BEGINNING).expect("it works");
    let cost = |id: JobId, scope: &Scope| {
        let before = disk.bytes_read();
        let found = drive::ready(store.job_within(id, scope)).expect("it can be read");
        (found.is_some(), disk.bytes_read() - before)
    };
    let scope = |tenant: &str, user: &str| Scope::User(drive::tenant(tenant), drive::user(user));
    let (is_seen, whole) = cost(jobs[1], &scope("acme", "ada"));
    assert!(is_seen && whole > 1_000_000, "the meter counts: {whole}");
    // Between the others, so that it is looked for among them.
    let unknown = JobId(jobs[1].0 + 1);
    assert!(unknown < jobs[2]);
    for stranger in
        [scope("acme", "bob"), scope("other", "ada"), Scope::Tenant(drive::tenant("other"))]
    {
        let (foreign, unknown) = (cost(jobs[1], &stranger), cost(unknown, &stranger));
        println!(
            "a stranger's job of 1 MB: {} bytes read, an unknown one: {}",
            foreign.1, unknown.1
        );
        assert_eq!(foreign, unknown, "{stranger:?}");
        assert!(!foreign.0 && foreign.1 < 100_000, "{foreign:?}");
    }
}
