//! Measures the hot records: `cargo run --release -p mainspring-store --example codec_speed`.

use mainspring_kernel::Event;
use mainspring_store::record::{Names, decode_event, encode_event};
use std::hint::black_box;

#[path = "../tests/record/bulks.rs"]
mod bulks;
#[path = "../tests/record/governed.rs"]
mod governed;
#[path = "../tests/record/limits.rs"]
mod limits;
#[path = "../tests/record/samples.rs"]
#[expect(dead_code, reason = "shared with the golden tests")]
mod samples;
#[path = "../tests/record/schedules.rs"]
mod schedules;
#[path = "../tests/record/subscriptions.rs"]
#[expect(unused_imports, reason = "shared with the golden tests")]
mod subscriptions;
#[path = "../tests/record/triggers.rs"]
mod triggers;
#[path = "../tests/record/waits.rs"]
#[expect(dead_code, reason = "shared with the golden tests")]
mod waits;

const ROUNDS: u32 = 2_000_000;

#[expect(clippy::disallowed_methods, reason = "a measurement needs the machine's clock")]
fn measure(mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = std::time::Instant::now();
        for _ in 0..ROUNDS / 5 {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS / 5));
    }
    best
}

fn main() {
    let payload = format!("{{\"text\":\"{}\"}}", "x".repeat(189));
    let mut events = vec![(
        "submitted, 200-byte payload",
        Event::JobSubmitted(Box::new(samples::plain_job(&payload))),
    )];
    events.push(("claimed", samples::claim()));
    events.extend(samples::moves().into_iter().skip(2).take(1));
    for (name, event) in events {
        let mut out = Vec::with_capacity(4096);
        let encode = measure(|| {
            out.clear();
            encode_event(black_box(&event), samples::NOW, &mut out);
            black_box(&out);
        });
        let mut names = Names::shared();
        let decode = measure(|| {
            black_box(decode_event(black_box(&out), 0, samples::NOW, &mut names)).ok();
        });
        println!("{name}: {} bytes, encode {encode:.0} ns, decode {decode:.0} ns", out.len());
    }
}
