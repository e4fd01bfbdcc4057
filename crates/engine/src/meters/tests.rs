//! Kinds beyond the bound are counted together, and nothing is counted twice.

use super::*;

fn kind(n: usize) -> JobKind {
    JobKind {
        tenant: TenantId::new(&format!("t{n}")).unwrap(),
        queue: QueueName::new("q").unwrap(),
        job_type: JobType::new("j").unwrap(),
    }
}

fn reading(n: usize) -> Reading {
    let mut tick = Tick { pickup: vec![Duration::from_secs(1)], ..Tick::default() };
    tick.happened(Happening::Started);
    Reading { kinds: vec![(kind(n), tick)], ..Reading::default() }
}

#[test]
fn however_many_tenants_come_so_many_have_numbers_of_their_own() {
    let meters = Meters::new();
    for n in 0..METERED_KINDS_MAX + 100 {
        meters.add(&reading(n), 1, Duration::ZERO);
    }
    // One that came early keeps its own.
    meters.add(&reading(0), 1, Duration::ZERO);
    let told = meters.read();
    assert_eq!(told.kinds.len(), METERED_KINDS_MAX);
    assert_eq!(told.others.count(Happening::Started), 100);
    assert_eq!(told.others.pickup.counts.iter().sum::<u64>(), 100);
    let first = told.kinds.iter().find(|(of, _)| *of == kind(0)).unwrap();
    assert_eq!(first.1.count(Happening::Started), 2);
    let all = METERED_KINDS_MAX as u64 + 101;
    assert_eq!(told.batches.counts.iter().sum::<u64>(), all);
}
