//! The keys of a type that say what holds its jobs back: `concurrency_key`, `rate_limit` and
//! `circuit`.

use super::reader::Section;
use mainspring_kernel::flow::{Circuit, Flow, KeySource, RateLimit};
use mainspring_kernel::limits::{CIRCUIT_CALLS_MAX, CIRCUIT_OPEN_SECS_MAX, RATE_BURST_MAX};
use std::fmt::Write as _;

/// Reads them.
pub(super) fn read(entry: &Section<'_>) -> Flow {
    let narrow = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
    let rate_limit = entry.section("rate_limit").map(|section| {
        let per_second = section.fraction("per_second").unwrap_or(0.0);
        let burst = narrow(section.number("burst", 1, RATE_BURST_MAX.into()));
        let limit = RateLimit::new(per_second, burst, section.text("key").map(KeySource::new));
        section.finish();
        limit
    });
    let circuit = entry.section("circuit").map(|section| {
        let permille = (section.fraction("failure_ratio").unwrap_or(0.0) * 1000.0).floor();
        let calls = narrow(section.number("min_calls", 1, CIRCUIT_CALLS_MAX.into()));
        let open_secs = narrow(section.number("open_seconds", 1, CIRCUIT_OPEN_SECS_MAX.into()));
        section.finish();
        Circuit {
            failure_permille: if permille <= 1000.0 { permille as u16 } else { 0 },
            min_calls: calls.and_then(|calls| u8::try_from(calls).ok()).unwrap_or(20),
            open_secs: open_secs.unwrap_or(30),
        }
    });
    let concurrency_key = entry.text("concurrency_key").map(KeySource::new);
    let flow = Flow { concurrency_key, rate_limit, circuit, ..Flow::default() };
    match flow.check() {
        Ok(()) => flow,
        Err(bad) => {
            let key = ["rate_limit", "circuit"].into_iter().find(|key| entry.is_table(key));
            entry.refuse(key.unwrap_or("concurrency_key"), &format!("cannot be used: {bad}"));
            Flow::default()
        }
    }
}

/// The same as a file would have them; nothing if there is nothing to say.
pub(super) fn write(flow: &Flow, out: &mut String) -> std::fmt::Result {
    // What JSON escapes is escaped the same way here.
    let text = |key: &KeySource| serde_json::json!(key.as_str()).to_string();
    if let Some(key) = &flow.concurrency_key {
        writeln!(out, "concurrency_key = {}", text(key))?;
    }
    if let Some(limit) = &flow.rate_limit {
        let key = limit.key.as_ref().map(|key| format!(", key = {}", text(key)));
        let (rate, burst) = (limit.per_second(), limit.burst);
        let key = key.unwrap_or_default();
        writeln!(out, "rate_limit = {{ per_second = {rate:?}, burst = {burst}{key} }}")?;
    }
    if let Some(Circuit { failure_permille, min_calls, open_secs }) = &flow.circuit {
        let ratio = f64::from(*failure_permille) / 1000.0;
        write!(out, "circuit = {{ failure_ratio = {ratio:?}, min_calls = {min_calls}, ")?;
        writeln!(out, "open_seconds = {open_secs} }}")?;
    }
    Ok(())
}
