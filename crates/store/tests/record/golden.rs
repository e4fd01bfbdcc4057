//! Bytes of format version 1, decoded for ever. A changed file is a broken journal somewhere, so
//! `MAINSPRING_BLESS=1` writes the files of new kinds only and never touches one that exists.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::samples::{self, NOW};
use mainspring_kernel::Event;
use mainspring_store::record::{
    FrameWriter, Names, Record, encode_counters, encode_entity, encode_item, encode_job,
    encode_key, encode_meter, encode_queue, encode_stretch, encode_token, encode_type, events_of,
    records_of,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v1")
}

pub(crate) fn frame(event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    FrameWriter::begin(&mut out, NOW).push(event, &mut out);
    out
}

pub(crate) fn encoded(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    match record {
        Record::Job(whole) => encode_job(&whole.job, &whole.history, &mut out),
        Record::Item(item) => encode_item(item, &mut out),
        Record::Entity(entity) => encode_entity(entity, &mut out),
        Record::Type(spec) => encode_type(spec, &mut out),
        Record::Queue(spec) => encode_queue(spec, &mut out),
        Record::Token(token) => encode_token(token, &mut out),
        Record::Key { hash, holder } => encode_key(*hash, holder, &mut out),
        Record::Counters(numbers) => encode_counters(numbers, &mut out),
        Record::Meter { key, meter } => encode_meter(*key, meter, &mut out),
        Record::Moves(moves) => encode_stretch(moves, &mut out),
    }
    out
}

/// The kept bytes of `name`; written first if they are new and blessing was asked for.
fn kept(name: &str, now_written: &[u8]) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    let is_blessing = std::env::var_os("MAINSPRING_BLESS").is_some();
    if is_blessing && !path.exists() {
        std::fs::create_dir_all(folder()).unwrap();
        let lines: Vec<String> = now_written
            .chunks(32)
            .map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect())
            .collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    }
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{name}: {error}; new kinds need MAINSPRING_BLESS=1"));
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[test]
fn old_frames_still_read() {
    for (name, event) in samples::events() {
        let bytes = kept(name, &frame(&event));
        let mut names = Names::shared();
        let mut read = events_of(&bytes, &mut names);
        assert_eq!(read.now(), Some(NOW), "{name}");
        assert_eq!(read.next(), Some(Ok(event.clone())), "{name}");
        assert_eq!(read.next(), None, "{name}");
        assert_eq!(bytes, frame(&event), "{name} is written differently now");
    }
}

#[test]
fn old_records_still_read() {
    for (name, record) in samples::records() {
        let bytes = kept(name, &encoded(&record));
        let mut names = Names::fresh();
        let read: Result<Vec<_>, _> = records_of(&bytes, &mut names).collect();
        assert_eq!(read, Ok(vec![record.clone()]), "{name}");
        assert_eq!(bytes, encoded(&record), "{name} is written differently now");
    }
}

#[test]
fn every_golden_file_is_decoded() {
    let events = samples::events().into_iter().map(|(name, _)| name);
    let records = samples::records().into_iter().map(|(name, _)| name);
    let known: BTreeSet<String> = events.chain(records).map(|n| format!("{n}.hex")).collect();
    if !folder().exists() {
        return;
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(known.contains(&name), "{name} has no test");
    }
}

fn frame_header() -> usize {
    let mut out = Vec::new();
    FrameWriter::begin(&mut out, NOW);
    out.len()
}

#[test]
fn a_claim_is_small() {
    let size = frame(&samples::claim()).len() - frame_header();
    assert!(size <= 65, "a claim takes {size} bytes");
}
