//! The hostile clients. Each does one unkind thing, at a bounded rate, until it is told to go home;
//! none of them cares what it is answered.

use super::Stage;
use crate::http::Connection;
use crate::job::{JOB_TYPE, Requests, leased};
use crate::postgres::session::Session;
use crate::stopwatch::Stopwatch;
use crate::workload::together;
use anyhow::Context;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One kind of hostile client.
pub(crate) struct Hostile {
    pub(crate) id: &'static str,
    pub(crate) what: &'static str,
    /// How many tokens it has beside its first.
    pub(crate) friends: usize,
    /// Whether it is one of the PostgreSQL store only.
    pub(crate) needs_database: bool,
    /// What the server is configured with, besides.
    pub(crate) config: &'static str,
    /// How much slower than alone a neighbour may be.
    pub(crate) ratio_max: f64,
    pub(crate) attack: fn(&Stage) -> anyhow::Result<()>,
}

impl Hostile {
    const fn new(
        id: &'static str,
        what: &'static str,
        attack: fn(&Stage) -> anyhow::Result<()>,
    ) -> Self {
        let (config, ratio_max) = ("", P99_RATIO_MAX);
        Hostile { id, what, friends: 0, needs_database: false, config, ratio_max, attack }
    }
}

/// All of them, in the order of the table.
pub(crate) const ALL: &[Hostile] = &[
    Hostile::new("N1", "4 clients that send NUL in trace_id", control_characters),
    Hostile {
        needs_database: true,
        ..Hostile::new("N2", "a key held by an open transaction, 4 clients that want it", held_key)
    },
    Hostile::new("N3", "a worker that commits 64 KB effects", effects),
    Hostile { friends: 32, ..Hostile::new("N4", "1,000 submissions that wait", waiters) },
    Hostile::new("N5", "batches of 1,000 jobs of the year 1", backdated),
    Hostile::new("N6", "512 streams of one token", streams),
    Hostile::new("N7", "4,096 connections that never read", never_reading),
    Hostile::new("N8", "60 anonymous bodies of 16 MiB, sent slowly", anonymous_bodies),
    Hostile::new("N9", "payloads of 1 MB", big_payloads),
    Hostile::new("N10", "ever new names of workers and queues", names),
    Hostile::new("N11", "lists with filters beside 50,000 jobs", lists),
    Hostile {
        friends: STALLED_TOKENS - 1,
        // All of them are let in.
        config: "[limits]\nstreams = 1000\nstreams_per_tenant = 600\nstreams_per_token = 100\n",
        ratio_max: 2.0,
        ..Hostile::new("N12", "500 streams that nobody reads", stalled)
    },
];

/// Tokens that share the streams that nobody reads.
const STALLED_TOKENS: usize = 10;
/// How much slower than alone a neighbour may be, unless said otherwise.
const P99_RATIO_MAX: f64 = 3.0;

/// Calls `work` with a growing number, so often a second, until the stage is over.
fn paced(
    stage: &Stage,
    a_second: u32,
    mut work: impl FnMut(u64) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (clock, step) = (Stopwatch::start(), Duration::from_secs(1) / a_second);
    for n in 0_u32.. {
        if stage.is_over() {
            break;
        }
        let (due, now) = (step * n, clock.elapsed());
        if due > now {
            std::thread::sleep(due - now);
        }
        work(u64::from(n))?;
    }
    Ok(())
}

/// Sends requests at a rate over one connection, whatever the answers; opens another where the
/// server hangs up.
fn nag(
    stage: &Stage,
    a_second: u32,
    mut request: impl FnMut(u64) -> Vec<u8>,
) -> anyhow::Result<()> {
    let mut connection = None;
    paced(stage, a_second, |n| {
        let mut open = match connection.take() {
            Some(open) => open,
            None => Connection::open(stage.address)?,
        };
        if open.ask(&request(n)).is_ok() {
            connection = Some(open);
        }
        Ok(())
    })
}

/// Holds things open until the stage is over.
fn hold<T>(stage: &Stage, held: T) {
    while !stage.is_over() {
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(held);
}

fn submission(more: &str) -> String {
    format!("{{\"job_type\":\"{JOB_TYPE}\",\"payload\":{{}}{more}}}")
}

fn control_characters(stage: &Stage) -> anyhow::Result<()> {
    stage.in_position();
    let bad = stage.requests.post("/api/v1/jobs", submission(",\"trace_id\":\"a\\u0000b\""));
    together(4, |_| nag(stage, 200, |_| bad.clone()))
}

fn held_key(stage: &Stage) -> anyhow::Result<()> {
    let url = stage.database.as_deref().context("no database")?;
    let mut session = Session::open(url)?;
    session.run(&format!(
        "begin; select mainspring.submit(tenant => 'hostile', user_id => 'first', \
         job_type => '{JOB_TYPE}', payload => '{{}}', idempotency_key => 'held')"
    ))?;
    let same = stage.requests.post("/api/v1/jobs", submission(",\"idempotency_key\":\"held\""));
    stage.in_position();
    together(4, |_| nag(stage, 50, |_| same.clone()))?;
    session.run("rollback")
}

fn effects(stage: &Stage) -> anyhow::Result<()> {
    let mut connection = Connection::open(stage.address)?;
    connection.ask_ok(&stage.requests.submit_batch(100, None))?;
    let jobs = leased(connection.ask_ok(&stage.requests.pull(0, 100, 0))?);
    let value = "x".repeat(64 * 1024);
    stage.in_position();
    nag(stage, 50, |n| {
        let job = &jobs[n as usize / 50 % jobs.len()];
        let body = format!("{{\"lease_token\":\"{}\",\"value\":\"{value}\"}}", job.token);
        stage.requests.put(&format!("/api/v1/work/effects/{}/e{n}", job.id), body)
    })
}

fn waiters(stage: &Stage) -> anyhow::Result<()> {
    let body = submission(",\"delay_ms\":3600000");
    let mut waiting = Vec::new();
    for n in 0..1_000 {
        let friend = &stage.friends[n % stage.friends.len()];
        let mut stream = TcpStream::connect(stage.address)?;
        stream.write_all(&friend.post("/api/v1/jobs?wait_ms=30000", body.as_str()))?;
        waiting.push(stream);
    }
    stage.in_position();
    nag(stage, 200, |n| stage.requests.submit(n))?;
    hold(stage, waiting);
    Ok(())
}

fn backdated(stage: &Stage) -> anyhow::Result<()> {
    let one = submission(",\"run_at\":\"0001-01-01T00:00:00Z\"");
    let batch = format!("{{\"jobs\":[{}]}}", vec![one; 1_000].join(","));
    let batch = stage.requests.post("/api/v1/jobs/batch", batch);
    let mut connection = Connection::open(stage.address)?;
    connection.ask(&batch)?;
    stage.in_position();
    nag(stage, 5, |_| batch.clone())
}

fn streams(stage: &Stage) -> anyhow::Result<()> {
    let request = stage.requests.get("/api/v1/events");
    let mut open = Vec::new();
    for _ in 0..512 {
        let mut stream = TcpStream::connect(stage.address)?;
        stream.write_all(&request)?;
        open.push(stream);
    }
    stage.in_position();
    nag(stage, 200, |n| stage.requests.submit(n))?;
    hold(stage, open);
    Ok(())
}

/// Readers that were let in and have stopped reading, while there is ever more to read.
fn stalled(stage: &Stage) -> anyhow::Result<()> {
    let mut open = Vec::new();
    for requests in stage.friends.iter().chain([&stage.requests]) {
        for _ in 0..500 / STALLED_TOKENS {
            let mut stream = TcpStream::connect(stage.address)?;
            stream.write_all(&requests.get("/api/v1/events?after=0"))?;
            // One that is refused stalls nobody.
            let mut head = [0; 12];
            stream.read_exact(&mut head)?;
            anyhow::ensure!(&head == b"HTTP/1.1 200", "a stream was refused");
            open.push(stream);
        }
    }
    stage.in_position();
    nag(stage, 200, |n| stage.requests.submit(n))?;
    hold(stage, open);
    Ok(())
}

fn never_reading(stage: &Stage) -> anyhow::Result<()> {
    let request = stage.anonymous.get("/openapi.json").repeat(20);
    let mut open = Vec::new();
    for _ in 0..4_096 {
        // Whom the server does not let in has reached nothing.
        let Ok(mut stream) = TcpStream::connect(stage.address) else { continue };
        stream.set_write_timeout(Some(Duration::from_millis(10)))?;
        let _ = stream.write(&request);
        open.push(stream);
    }
    stage.in_position();
    hold(stage, open);
    Ok(())
}

fn anonymous_bodies(stage: &Stage) -> anyhow::Result<()> {
    const BYTES: usize = 16 << 20;
    let head = format!(
        "POST /api/v1/work/complete HTTP/1.1\r\nhost: {}\r\n\
         content-type: application/json\r\ncontent-length: {BYTES}\r\n\r\n",
        stage.address
    );
    let mut open: Vec<Option<TcpStream>> = (0..60).map(|_| None).collect();
    let piece = vec![b' '; 64 * 1024];
    stage.in_position();
    paced(stage, 200, |n| {
        let slot = &mut open[n as usize % 60];
        if slot.is_none() {
            let mut stream = TcpStream::connect(stage.address)?;
            stream.set_write_timeout(Some(Duration::from_millis(10)))?;
            let _ = stream.write_all(head.as_bytes());
            *slot = Some(stream);
        }
        if slot.as_mut().is_some_and(|stream| stream.write(&piece).is_err()) {
            *slot = None;
        }
        Ok(())
    })
}

fn big_payloads(stage: &Stage) -> anyhow::Result<()> {
    let body = format!(
        "{{\"job_type\":\"{JOB_TYPE}\",\"payload\":{{\"text\":\"{}\"}},\"delay_ms\":3600000}}",
        "x".repeat(1_000_000)
    );
    let request = stage.requests.post("/api/v1/jobs", body);
    stage.in_position();
    nag(stage, 10, |_| request.clone())
}

fn names(stage: &Stage) -> anyhow::Result<()> {
    let types: Vec<String> = (0..100).map(|n| format!("\"{}{n:03}\"", "t".repeat(60))).collect();
    let types = types.join(",");
    let look = |requests: &Requests, n: u64| match n % 2 {
        0 => requests.get("/metrics"),
        _ => requests.get("/api/v1/workers"),
    };
    stage.in_position();
    together(3, |thread| match thread {
        0 => nag(stage, 200, |n| {
            let body = format!(
                "{{\"worker_id\":\"w{n}\",\"types\":[{types}],\"limit\":1,\"wait_ms\":0,\
                 \"lease_ms\":1000}}"
            );
            stage.requests.post("/api/v1/work/pull", body)
        }),
        1 => nag(stage, 200, |n| {
            let more = format!(",\"queue\":\"q{n}\",\"delay_ms\":3600000");
            stage.requests.post("/api/v1/jobs", submission(&more))
        }),
        _ => nag(stage, 5, |n| look(&stage.requests, n)),
    })
}

fn lists(stage: &Stage) -> anyhow::Result<()> {
    let mut connection = Connection::open(stage.address)?;
    for _ in 0..50 {
        connection.ask_ok(&stage.requests.submit_batch(1_000, Some(3_600_000)))?;
    }
    stage.in_position();
    let filters = ["type=absent", "trace_id=absent", "queue=absent", "status=running"];
    nag(stage, 50, |n| {
        stage.requests.get(&format!("/api/v1/jobs?{}&limit=100", filters[n as usize % 4]))
    })
}
