//! Power cuts at every write and sync: nothing acknowledged is lost, nothing refuses to start.

use mainspring_testkit::crash::{Campaign, Crowd, Summary, cut_a_crowd, run};

fn is_full() -> bool {
    std::env::var("MAINSPRING_TEST").is_ok_and(|level| level == "full")
}

/// Two hundred scripts: a few of them cut everywhere, all others here and there.
#[test]
fn every_image_holds_what_was_acknowledged() {
    let (dense, sparse) = if is_full() { (200, 2_000) } else { (4, 196) };
    let mut total = Summary::default();
    let campaigns =
        (1..=dense).map(Campaign::new).chain((1_000..1_000 + sparse).map(Campaign::sparse));
    for campaign in campaigns {
        match run(campaign) {
            Ok(summary) => total.add(summary),
            Err(why) => panic!("{why}"),
        }
    }
    println!("{dense} dense and {sparse} sparse campaigns: {total:?}");
    assert!(total.images > 10_000 && total.fuzzy_snapshots > 200);
    assert!(total.rotated_snapshots > 50 && total.second_cuts > 0 && total.continued > 0);
    assert!(total.rung > 100 && total.alarmed > 1_000, "entities with alarms are among it");
}

/// The same with the threads of the real thing, which no seed can repeat.
#[test]
fn a_power_cut_under_real_threads_keeps_a_prefix_with_all_that_was_acknowledged() {
    let mut total = Crowd::default();
    for seed in 0..if is_full() { 2_000 } else { 120 } {
        match cut_a_crowd(seed) {
            Ok(crowd) => {
                total.commits += crowd.commits;
                total.acknowledged += crowd.acknowledged;
                total.images += crowd.images;
                total.snapshots += crowd.snapshots;
            }
            Err(why) => panic!("{why}"),
        }
    }
    println!("{total:?}");
    assert!(total.acknowledged > 1_000 && total.images > 300 && total.snapshots > 20);
}
