//! Power cuts at every write and sync: nothing acknowledged is lost, nothing refuses to start.

use mainspring_testkit::crash::{Campaign, Summary, run};

#[test]
fn every_image_holds_what_was_acknowledged() {
    let wanted: u64 = if std::env::var("MAINSPRING_TEST").is_ok_and(|level| level == "full") {
        200_000
    } else {
        20_000
    };
    let mut total = Summary::default();
    let mut seed = 0;
    while total.images < wanted {
        seed += 1;
        match run(Campaign::new(seed)) {
            Ok(summary) => total.add(summary),
            Err(why) => panic!("{why}"),
        }
    }
    println!("{seed} campaigns: {total:?}");
    assert!(total.fuzzy_snapshots > 0 && total.second_cuts > 0 && total.continued > 0);
}
