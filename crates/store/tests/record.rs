//! The durable codec: what is written is read back, old bytes stay readable, newer fields are
//! skipped, and no bytes at all make the reader panic.

#[path = "record/bulks.rs"]
mod bulks;
#[path = "record/golden.rs"]
mod golden;
#[path = "record/governed.rs"]
mod governed;
#[path = "record/limits.rs"]
mod limits;
#[path = "record/samples.rs"]
mod samples;
#[path = "record/schedules.rs"]
mod schedules;
#[path = "record/subscriptions.rs"]
mod subscriptions;
#[path = "record/triggers.rs"]
mod triggers;
#[path = "record/values.rs"]
mod values;
#[path = "record/waits.rs"]
mod waits;

use golden::{encoded, frame};
use mainspring_kernel::{Event, Timestamp};
use mainspring_store::record::{
    FrameWriter, Names, decode_event, decode_job, encode_event, events_of, records_of,
};
use proptest::prelude::*;

/// Every record of the samples, records and frames.
fn all_bytes() -> Vec<Vec<u8>> {
    let frames = samples::events().into_iter().map(|(_, event)| frame(&event));
    let records = samples::records().into_iter().map(|(_, record)| encoded(&record));
    frames.chain(records).collect()
}

/// Reads `bytes` in every way there is; the point is to come back.
fn read_all(bytes: &[u8]) {
    let mut names = Names::shared();
    events_of(bytes, &mut names).for_each(drop);
    records_of(bytes, &mut names).for_each(drop);
    let _ = decode_event(bytes, 0, Timestamp::EPOCH, &mut names);
    let _ = decode_event(bytes, bytes.len() / 2, Timestamp::MAX, &mut names);
    let _ = decode_event(bytes, bytes.len() + 7, Timestamp::MAX, &mut names);
    let _ = decode_job(bytes, &mut names);
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn events_round_trip(
        now in values::instant(),
        events in proptest::collection::vec(values::event(), 0..4),
    ) {
        let mut bytes = Vec::new();
        let writer = FrameWriter::begin(&mut bytes, now);
        for event in &events {
            writer.push(event, &mut bytes);
        }
        for mut names in [Names::shared(), Names::fresh()] {
            let read: Result<Vec<Event>, _> = events_of(&bytes, &mut names).collect();
            prop_assert_eq!(read.as_ref(), Ok(&events));
        }
    }

    #[test]
    fn records_round_trip(record in values::record()) {
        let bytes = encoded(&record);
        let mut names = Names::shared();
        let read: Result<Vec<_>, _> = records_of(&bytes, &mut names).collect();
        prop_assert_eq!(read, Ok(vec![record]));
    }

    #[test]
    fn a_cut_record_is_refused(
        record in values::record(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let bytes = encoded(&record);
        let cut = cut.index(bytes.len());
        let mut names = Names::fresh();
        let read: Vec<_> = records_of(&bytes[..cut], &mut names).collect();
        prop_assert!(cut == 0 || (read.len() == 1 && read[0].is_err()), "{:?}", read);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_all(&bytes);
        let mut framed = vec![1, 0x81, 0];
        framed.extend_from_slice(&bytes);
        read_all(&framed);
    }

    #[test]
    fn damaged_records_never_panic(
        which in any::<proptest::sample::Index>(),
        hits in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let all = all_bytes();
        let mut bytes = which.get(&all).clone();
        for (place, value) in hits {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        read_all(&bytes);
    }
}

/// Every single byte of every sample, replaced by the values that mean most in CBOR.
#[test]
fn every_single_damage_is_survived() {
    for bytes in all_bytes() {
        for place in 0..bytes.len() {
            for value in [0x00, 0x1b, 0x3b, 0x5b, 0x7b, 0x80, 0x9b, 0x9f, 0xbf, 0xf6, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = value;
                read_all(&damaged);
            }
        }
    }
}

/// A list that claims to be huge is refused before anything is allocated for it.
#[test]
fn claimed_lengths_are_not_believed() {
    let counters = [0x82, 0x07, 0x9b, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff];
    let mut names = Names::fresh();
    let read = records_of(&counters, &mut names).next();
    assert!(matches!(read, Some(Err(bad)) if bad.reason.contains("longer")));
}

/// A newer writer adds a field at the end of an event and of the job inside it; this reader skips
/// both, whatever they hold.
#[test]
fn newer_fields_are_skipped() {
    let event = Event::JobSubmitted(Box::new(samples::full_job(mainspring_kernel::State::Queued)));
    let mut bytes = Vec::new();
    encode_event(&event, Timestamp::EPOCH, &mut bytes);
    assert_eq!((bytes[0], bytes[1], bytes[2]), (0x82, 0x01, 0x96), "array(2), kind 1, array(22)");
    bytes[0] = 0x83;
    bytes[2] = 0x97;
    // At the end of the job: a map of an array of a text of unknown length; of the event: a float.
    bytes.extend_from_slice(&[0xa1, 0x01, 0x82, 0x7f, 0x61, b'a', 0xff, 0xf6]);
    bytes.extend_from_slice(&[0xf9, 0x3c, 0x00]);
    let read = decode_event(&bytes, 0, Timestamp::EPOCH, &mut Names::fresh());
    assert_eq!(read, Ok((event, bytes.len())));
}

/// Recovered jobs share their names.
#[test]
fn equal_names_are_shared() {
    let event = Event::JobSubmitted(Box::new(samples::plain_job("{}")));
    let mut bytes = frame(&event);
    encode_event(&event, samples::NOW, &mut bytes);
    let mut names = Names::shared();
    let jobs: Vec<_> = events_of(&bytes, &mut names)
        .map(|event| match event {
            Ok(Event::JobSubmitted(job)) => job,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(std::sync::Arc::ptr_eq(jobs[0].tenant.shared(), jobs[1].tenant.shared()));
    assert!(std::sync::Arc::ptr_eq(jobs[0].queue.shared(), jobs[1].queue.shared()));
    assert_eq!(names.len(), 4);
}
