//! Everybody in a run: four tenants, each with submitters, workers and two people who interfere.

use super::api::text;
use super::client::Client;
use super::follower::Follower;
use super::intruder::Intruder;
use super::operator::Operator;
use super::record::Recorder;
use super::wire::Wire;
use super::worker::Worker;
use super::{Api, dump};
use crate::blackbox::Server;
use crate::history::{History, JobDump, TypeRules};
use crate::rng::Rng;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The tenants of a run.
pub const TENANTS: [&str; 4] = ["acme", "blue", "coral", "delta"];

/// The types of a run: name, retries, timeout in seconds, most at once.
pub const TYPES: [(&str, u16, u32, Option<u32>); 4] = [
    ("quick", 2, 30, None),
    ("brittle", 0, 30, None),
    ("brief", 3, 1, None),
    ("narrow", 1, 30, Some(3)),
];

/// Delay before the first retry and longest delay of every type, in milliseconds.
const BACKOFF_MS: (u64, u64) = (20, 150);

/// A configuration for a short run in which everything happens often: small files, short delays.
pub fn config() -> String {
    let mut text = String::from(
        "[scheduler]\nrestart_grace = \"600ms\"\n[store]\nsegment_bytes = 262144\n\
         snapshot_bytes_min = 400000\nfinished_bytes_max = 65536\n[types]\nstrict = true\n",
    );
    let (base, max) = BACKOFF_MS;
    for (name, retries, timeout, limit) in TYPES {
        text.push_str(&format!(
            "[types.{name}]\nmax_retries = {retries}\ntimeout_seconds = {timeout}\n\
             backoff_base_ms = {base}\nbackoff_max_ms = {max}\n"
        ));
        if let Some(limit) = limit {
            text.push_str(&format!(
                "concurrency_limit = {limit}\nconcurrency_scope = \"global\"\n"
            ));
        }
    }
    text
}

/// The rules of the types, for the checker.
pub fn rules() -> Vec<TypeRules> {
    let (base_ms, max_ms) = BACKOFF_MS;
    let rule = |(name, _, _, limit): (&str, u16, u32, Option<u32>)| TypeRules {
        name: name.to_owned(),
        base_ms,
        max_ms,
        limit,
        is_per_tenant: false,
        rate: None,
        key: None,
        circuit: None,
    };
    TYPES.into_iter().map(rule).collect()
}

/// A token and whose it is.
#[derive(Debug, Clone)]
pub struct Badge {
    /// The tenant.
    pub tenant: &'static str,
    /// For submitting, cancelling, running again and asking for discards.
    pub one: String,
    /// For agreeing to discards.
    pub two: String,
    /// For working.
    pub worker: String,
}

/// When everybody has to stop what.
#[derive(Debug, Default)]
pub struct Signals {
    is_winding_down: AtomicBool,
    is_over: AtomicBool,
    is_settled: AtomicBool,
}

impl Signals {
    pub(super) fn is_winding_down(&self) -> bool {
        self.is_winding_down.load(Ordering::Relaxed)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Nothing moves any more.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }
}

/// Jobs submitted lately, for those who interfere.
#[derive(Debug, Default)]
pub struct Yard(Mutex<Vec<String>>);

impl Yard {
    pub(super) fn add(&self, job: String) {
        let mut jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() >= 300 {
            jobs.remove(0);
        }
        jobs.push(job);
    }

    pub(super) fn some(&self, rng: &mut Rng) -> Option<String> {
        let jobs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (!jobs.is_empty()).then(|| rng.pick(&jobs).clone())
    }
}

/// How workers behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// They fail, stall, die and repeat themselves.
    Rough,
    /// They finish everything they get, with long leases, and nobody interferes: whatever goes
    /// wrong is the server's doing.
    Polite,
}

/// Everybody, at work.
#[derive(Debug)]
pub struct Fleet {
    /// The record they write.
    pub recorder: Arc<Recorder>,
    signals: Arc<Signals>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
    /// How long anybody waits for an answer, if not for the usual time.
    patience: Option<Duration>,
    admin: String,
    yards: Vec<Arc<Yard>>,
    /// Who follows all moves.
    follower: Option<JoinHandle<()>>,
}

impl Fleet {
    /// Makes the tokens and sends everybody to work.
    ///
    /// # Panics
    /// If a token cannot be made.
    pub fn start(server: &Server, seed: u64, temper: Temper) -> Self {
        Self::start_among(&[server], None, seed, temper)
    }

    /// The same with several servers that share a database: everybody talks to all of them in
    /// turn, and does not wait longer than `patience` for one.
    ///
    /// # Panics
    /// If a token cannot be made.
    pub fn start_among(
        servers: &[&Server],
        patience: Option<Duration>,
        seed: u64,
        temper: Temper,
    ) -> Self {
        let server = servers[0];
        let recorder = Arc::new(Recorder::default());
        let signals = Arc::new(Signals::default());
        let mut fleet = Fleet {
            recorder,
            signals,
            threads: Vec::new(),
            addresses: servers.iter().map(|server| server.address).collect(),
            patience,
            admin: server.admin.clone(),
            yards: Vec::new(),
            follower: None,
        };
        for (nth, tenant) in TENANTS.into_iter().enumerate() {
            let badge = Badge {
                tenant,
                one: server.caller(tenant, "one", &["submitter", "operator", "approver"]).token,
                two: server.caller(tenant, "two", &["operator", "approver"]).token,
                worker: server.caller(tenant, "robot", &["worker"]).token,
            };
            fleet.employ(&badge, seed * 100 + nth as u64 * 10, temper);
        }
        fleet
    }

    /// Somebody follows all moves from the first on, and somebody tries what is others'.
    ///
    /// # Panics
    /// If a token cannot be made.
    #[must_use]
    pub fn watched(mut self, server: &Server, seed: u64) -> Self {
        self.follow();
        self.intrude(server, seed);
        self
    }

    fn follow(&mut self) {
        let (recorder, signals) = (self.recorder.clone(), self.signals.clone());
        let (servers, token) = (self.addresses.clone(), self.admin.clone());
        self.follower = Some(std::thread::spawn(move || {
            let (recorder, signals) = (&recorder, &signals);
            let (position, is_reset) = (0, false);
            Follower { servers, token, recorder, signals, position, is_reset }.run();
        }));
    }

    fn intrude(&mut self, server: &Server, seed: u64) {
        let tenant = TENANTS[0];
        let wish = json!({ "tenant_id": tenant, "user_id": "spy", "roles": ["operator"] });
        let made = server.admin().post("/api/v1/tokens", &wish).data();
        let (token, token_id) = (text(&made, "token"), text(&made, "token_id"));
        let api = |token: &str, tenant: &str| {
            let wire = Wire::new(&self.addresses, self.patience);
            Api::among(wire, token, tenant, &self.recorder)
        };
        let (api, admin) = (api(&token, tenant), api(&self.admin, ""));
        let (yards, signals) = (self.yards.clone(), self.signals.clone());
        let rng = Rng::new(seed, 30);
        self.threads.push(std::thread::spawn(move || {
            Intruder { api, admin, token_id, rng, yards, signals: &signals }.run();
        }));
    }

    fn employ(&mut self, badge: &Badge, seed: u64, temper: Temper) {
        let yard = Arc::new(Yard::default());
        self.yards.push(yard.clone());
        let api = |token: &str| {
            let wire = Wire::new(&self.addresses, self.patience);
            Api::among(wire, token, badge.tenant, &self.recorder)
        };
        for nth in 0..2 {
            let (api, yard, signals) = (api(&badge.one), yard.clone(), self.signals.clone());
            let (rng, name) = (Rng::new(seed, nth), format!("{}{nth}", badge.tenant));
            self.threads.push(std::thread::spawn(move || {
                // Types by weight: most jobs are quick, few are narrow.
                let types: &[&str] = match temper {
                    Temper::Rough => &["quick", "quick", "quick", "brittle", "brief", "narrow"],
                    Temper::Polite => &["quick", "brittle"],
                };
                let (yard, signals) = (&yard, &signals);
                Client { api, rng, yard, signals, types, name }.run();
            }));
        }
        for nth in 0..2 {
            let (api, signals) = (api(&badge.worker), self.signals.clone());
            let (rng, name) = (Rng::new(seed, 10 + nth), format!("w-{}-{nth}", badge.tenant));
            self.threads.push(std::thread::spawn(move || {
                Worker { api, rng, signals: &signals, name, temper }.run();
            }));
        }
        if temper == Temper::Polite {
            return;
        }
        let (api, second) = (api(&badge.one), api(&badge.two));
        let (rng, signals) = (Rng::new(seed, 20), self.signals.clone());
        self.threads.push(std::thread::spawn(move || {
            Operator { api, second, rng, yard: &yard, signals: &signals }.run();
        }));
    }

    /// Nobody makes new work or trouble any more; workers finish what is there.
    pub fn wind_down(&self) {
        self.signals.is_winding_down.store(true, Ordering::Relaxed);
    }

    /// Waits until every job has ended, sends everybody home and reads the final state.
    ///
    /// # Panics
    /// If jobs do not end, or somebody panicked.
    pub fn finish(self) -> History {
        self.wind_down();
        let mut admin = Api::new(self.addresses[0], &self.admin, "", &self.recorder);
        dump::wait_until_settled(&mut admin);
        self.signals.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("nobody panics");
        }
        // A report that was on its way may have moved something.
        dump::wait_until_settled(&mut admin);
        let mut history = self.recorder.take();
        history.types = rules();
        dump::fill(&mut admin, &mut history);
        // Only now: a server tells of alerts by jobs of its own, at any time, and what is in the
        // final state has to be in the stream.
        self.signals.is_settled.store(true, Ordering::Relaxed);
        history.is_stream_whole = self.follower.is_some();
        if let Some(follower) = self.follower {
            follower.join().expect("the follower does not panic");
        }
        // What moved after the final state was read is no part of it.
        let read: BTreeSet<(&str, u32)> = history.dump.jobs.iter().flat_map(known_moves).collect();
        let told = self.recorder.take().stream.into_iter();
        let told: Vec<_> = told.filter(|moved| read.contains(&(&*moved.job, moved.seq))).collect();
        history.stream.extend(told);
        history
    }
}

fn known_moves(job: &JobDump) -> impl Iterator<Item = (&str, u32)> {
    job.events.iter().map(|event| (&*job.id, event.seq))
}
