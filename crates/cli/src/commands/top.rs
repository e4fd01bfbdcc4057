//! `mainspring top`: what the server does, drawn anew every so often. It asks for numbers that the
//! server has at hand, and for nothing that grows with the number of jobs.

use crate::exit;
use crate::output::{fitted, height, painted, plain, say, table};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::registry::Queue;
use mainspring_sdk::api::runtime::{Counters, Runtime};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::time::Instant;

/// How often, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Between two looks
    #[arg(long, value_parser = span::parse, default_value = "2s", value_name = "SPAN")]
    every: Duration,
    /// Look once and end; so it is if the answer goes to no terminal
    #[arg(long)]
    once: bool,
}

/// Queues that are shown.
const QUEUES_MAX: usize = 15;
/// Moves the cursor home and clears what is below it: nothing flickers.
const HOME: &str = "\u{1b}[H\u{1b}[J";
/// Uses the other screen of the terminal, and gives the first one back.
const OTHER_SCREEN: &str = "\u{1b}[?1049h\u{1b}[?25l";
const FIRST_SCREEN: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// The other screen, until it is dropped.
struct Screen;

impl Screen {
    fn take() -> Self {
        print!("{OTHER_SCREEN}");
        Screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        print!("{FIRST_SCREEN}");
        let _ = std::io::Write::flush(&mut std::io::stdout());
    }
}

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    let client = &session.client;
    if args.once || session.is_json() || !std::io::stdout().is_terminal() {
        let (runtime, queues) = (client.runtime().await?, client.queues().await?.items);
        match session.is_json() {
            true => crate::output::say_json(&serde_json::json!({
                "runtime": runtime, "queues": queues,
            })),
            false => say(&page(&runtime, &queues, None)),
        }
        return Ok(exit::OK);
    }
    let _screen = Screen::take();
    let mut stopped = std::pin::pin!(tokio::signal::ctrl_c());
    let mut before: Option<(Instant, Counters)> = None;
    loop {
        let asked = Instant::now();
        let look = async { (client.runtime().await, client.queues().await) };
        let found = tokio::select! {
            found = look => found,
            ended = &mut stopped => return ended.map(|()| exit::OK).map_err(Into::into),
        };
        let text = match found {
            (Ok(runtime), Ok(queues)) => {
                let rates = runtime.counters.as_ref().zip(before.as_ref());
                let rates = rates.map(|(now, (then, before))| {
                    Rates::between(before, now, asked.saturating_duration_since(*then))
                });
                let text = page(&runtime, &queues.items, rates.as_ref());
                let text = format!("{text}\n\nevery {}; Ctrl-C ends it", span::show(args.every));
                before = runtime.counters.map(|counters| (asked, counters));
                text
            }
            (Err(error), _) | (_, Err(error)) if error.is_retryable() => {
                format!("{}: {}", client.url(), plain(&error.to_string()))
            }
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        say(&format!("{HOME}{}", cut(&text)));
        tokio::select! {
            () = tokio::time::sleep(args.every) => {}
            ended = &mut stopped => return ended.map(|()| exit::OK).map_err(Into::into),
        }
    }
}

/// No line wraps and nothing scrolls: what is drawn anew must stay where it is. The last line is
/// for the cursor.
fn cut(text: &str) -> String {
    let lines = text.lines().map(fitted).take(height().map_or(usize::MAX, |lines| lines - 1));
    lines.collect::<Vec<_>>().join("\n")
}

/// What happens in a second.
#[derive(Debug, PartialEq)]
struct Rates {
    submitted: f64,
    claims: f64,
    succeeded: f64,
    failed: f64,
    retries: f64,
}

impl Rates {
    fn between(before: &Counters, now: &Counters, apart: Duration) -> Self {
        let seconds = apart.as_secs_f64().max(0.001);
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let state = |jobs: &BTreeMap<String, u64>, name: &str| jobs.get(name).copied().unwrap_or(0);
        let ended = |name| rate(state(&before.jobs, name), state(&now.jobs, name));
        Rates {
            submitted: rate(before.submitted, now.submitted),
            claims: rate(before.claims, now.claims),
            succeeded: ended("succeeded"),
            failed: ended("failed"),
            retries: rate(before.retries, now.retries),
        }
    }
}

fn page(runtime: &Runtime, queues: &[Queue], rates: Option<&Rates>) -> String {
    let mut out = String::new();
    let health = if runtime.store.healthy { "healthy" } else { "failing" };
    let _ = writeln!(
        out,
        "mainspring {}  {} store {}{}",
        plain(&runtime.version),
        plain(&runtime.store.kind),
        painted(health),
        if runtime.store.low_on_space { ", low on space" } else { "" }
    );
    if let Some(counters) = &runtime.counters {
        let live = ["queued", "running", "retrying", "dlq_pending"];
        let states = live.iter().map(|name| {
            let count = counters.jobs.get(*name).copied().unwrap_or(0);
            format!("{} {count}", painted(name))
        });
        let states: Vec<_> = states.collect();
        let (due, dlq) = (counters.due, counters.dlq_open);
        let _ = writeln!(out, "{}  due {due}  dead letters {dlq}", states.join("  "));
        let _ = writeln!(out, "pulls waiting {}", counters.parked_pulls);
    }
    if let Some(rates) = rates {
        let _ = writeln!(
            out,
            "per second: submitted {:.1}  started {:.1}  succeeded {:.1}  failed {:.1}  retried {:.1}",
            rates.submitted, rates.claims, rates.succeeded, rates.failed, rates.retries
        );
    }
    let mut queues: Vec<&Queue> = queues.iter().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.ready + queue.running));
    let more = queues.len().saturating_sub(QUEUES_MAX);
    let rows = queues.iter().take(QUEUES_MAX).map(|queue| {
        let state = if queue.paused { "paused" } else { "-" };
        let numbers = [queue.ready, queue.pending, queue.running].map(|n| n.to_string());
        let mut row = vec![queue.name.clone(), state.to_owned()];
        row.extend(numbers);
        row
    });
    let _ = write!(out, "\n{}", table(&["queue", "state", "ready", "pending", "running"], rows));
    if more > 0 {
        let _ = write!(out, "\n… and {more} more");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_sdk::api::Time;

    #[test]
    fn rates_are_what_changed_over_the_time_it_took() {
        let at = |n: u64| Counters {
            started_at: Time(0),
            commits: 0,
            commands: 0,
            illegal_moves: 0,
            stale_leases: 0,
            idempotent_hits: 0,
            parked_pulls: 0,
            jobs: BTreeMap::from([("succeeded".to_owned(), 3 * n), ("failed".to_owned(), n)]),
            due: 0,
            submitted: 10 * n,
            claims: 4 * n,
            retries: 0,
            dlq_open: 0,
        };
        let rates = Rates::between(&at(10), &at(20), Duration::from_secs(2));
        assert_eq!((rates.submitted, rates.claims), (50.0, 20.0));
        assert_eq!((rates.succeeded, rates.failed, rates.retries), (15.0, 5.0, 0.0));
        // A server that was started anew counts from zero.
        assert_eq!(Rates::between(&at(20), &at(1), Duration::from_secs(1)).submitted, 0.0);
    }
}
