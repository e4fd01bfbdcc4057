//! The test stand: one cluster, the peer, and fresh servers on fresh databases. Every figure is
//! taken on a database of its own, after a warm-up that is not counted.

use super::cluster::{Cluster, Database};
use super::session::Session;
use crate::peers::{GRAPHILE_WORKER, npm::Peer};
use crate::server::Server;
use crate::suite::Measure;
use crate::workload::{self, Target};
use indicatif::HumanCount;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Jobs that go through a server before it is measured; graphile-worker has as many.
const WARM_UP: usize = 2_000;

/// Where our servers keep their state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Store {
    /// RAM and a journal on disk
    Memory,
    /// A PostgreSQL cluster made for the run
    Postgres,
}

/// How much is done.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What our servers use; anything but PostgreSQL only tries the drivers.
    pub(crate) store: Store,
    /// Runs per workload.
    pub(crate) runs: usize,
    /// Jobs of the batch workloads; the single ones do a fifth.
    pub(crate) jobs: usize,
    /// Jobs that wait in P6.
    pub(crate) waiting: usize,
    /// Jobs that have ended in P6, if that is measured.
    pub(crate) finished: Option<usize>,
    /// How long latency is measured.
    pub(crate) span: Duration,
    /// How long the load of P8 lasts.
    pub(crate) sustained: Duration,
    /// How long statements are counted when idle.
    pub(crate) idle: Duration,
    /// Where clusters and servers keep their state.
    pub(crate) directory: PathBuf,
    /// Whether graphile-worker runs beside us.
    pub(crate) has_peer: bool,
    /// Where it stays installed.
    pub(crate) peer_folder: Option<PathBuf>,
}

/// All that runs share.
pub(crate) struct Stand {
    pub(crate) plan: Plan,
    cluster: Cluster,
    peer: OnceCell<Option<Peer>>,
}

/// A server, where it keeps its files, and how to reach it.
pub(crate) struct Node {
    pub(crate) target: Target,
    // In this order: the server ends before its folder goes.
    server: Server,
    _folder: TempDir,
}

impl Node {
    /// Processor time so far.
    pub(crate) fn processor_time(&self) -> anyhow::Result<Duration> {
        self.server.processor_time()
    }
}

impl Stand {
    pub(crate) fn new(plan: Plan) -> anyhow::Result<Self> {
        let cluster = Cluster::start(&plan.directory, &[])?;
        Ok(Stand { plan, cluster, peer: OnceCell::new() })
    }

    /// What ran, for the report.
    pub(crate) fn notes(&self) -> anyhow::Result<Vec<String>> {
        let Plan { runs, jobs, .. } = &self.plan;
        let jobs = HumanCount(*jobs as u64);
        let peer = self.peer.get().and_then(Option::as_ref).map(|peer| peer.name.as_str());
        let peer = peer.unwrap_or("no graphile-worker");
        let version = self.cluster.version()?;
        Ok(vec![format!(
            "PostgreSQL {version} with default settings, {peer}; medians of {runs}, \
             {jobs} jobs in batches, a fifth of that one by one."
        )])
    }

    /// Processor time of PostgreSQL so far.
    pub(crate) fn database_time(&self) -> anyhow::Result<Duration> {
        self.cluster.processor_time()
    }

    pub(crate) fn database(&self) -> anyhow::Result<Database<'_>> {
        self.cluster.database()
    }

    /// The peer, installed when it is first asked for.
    pub(crate) fn peer(&self) -> anyhow::Result<Option<&Peer>> {
        if self.peer.get().is_none() {
            let Plan { peer_folder, directory, has_peer, .. } = &self.plan;
            let peer = match has_peer {
                true => Peer::install(&GRAPHILE_WORKER, peer_folder.as_deref(), directory)?,
                false => None,
            };
            let _ = self.peer.set(peer);
        }
        Ok(self.peer.get().and_then(Option::as_ref))
    }

    /// Starts one of our servers on the database.
    pub(crate) fn node(&self, url: &str) -> anyhow::Result<Node> {
        self.node_on((self.plan.store == Store::Postgres).then_some(url))
    }

    fn node_on(&self, url: Option<&str>) -> anyhow::Result<Node> {
        let folder = tempfile::tempdir_in(&self.plan.directory)?;
        let server = Server::start_on(folder.path(), url)?;
        let target = Target { address: server.address(), requests: server.requests() };
        Ok(Node { target, server, _folder: folder })
    }

    /// A warm server on an empty database, both gone at the end, or on what the plan says.
    pub(crate) fn on_fresh_node<T>(
        &self,
        work: impl FnOnce(&Target, &str) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let database = self.database()?;
        let node = self.node(&database.url)?;
        warm_up(&node.target, &node.target)?;
        settle(&database.url)?;
        work(&node.target, &database.url)
    }

    /// A warm server that keeps nothing yet, on either store; with the address of its database if
    /// it has one.
    pub(crate) fn on_fresh_node_of<T>(
        &self,
        store: Store,
        work: impl FnOnce(&Target, Option<&str>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let database = match store {
            Store::Postgres => Some(self.database()?),
            Store::Memory => None,
        };
        let url = database.as_ref().map(|database| database.url.as_str());
        let node = self.node_on(url)?;
        warm_up(&node.target, &node.target)?;
        url.map_or(Ok(()), settle)?;
        work(&node.target, url)
    }

    /// A figure of ours.
    pub(crate) fn ours<'a>(
        &'a self,
        work: impl Fn(&Target, &str) -> anyhow::Result<f64> + 'a,
    ) -> Measure<'a> {
        Box::new(move || self.on_fresh_node(|target, url| work(target, url)))
    }

    /// A figure of PostgreSQL itself.
    pub(crate) fn raw<'a>(
        &'a self,
        work: impl Fn(&str) -> anyhow::Result<f64> + 'a,
    ) -> Measure<'a> {
        Box::new(move || work(&self.database()?.url))
    }

    /// A figure of graphile-worker; not a number where it cannot be had.
    pub(crate) fn theirs<'a>(&'a self, workload: &'static str, jobs: usize) -> Measure<'a> {
        Box::new(move || match self.peer()? {
            Some(peer) => Ok(peer.rate(&self.database()?.url, workload, jobs)?.unwrap_or(f64::NAN)),
            None => Ok(f64::NAN),
        })
    }
}

/// What the database would do by itself within a minute or two, in the middle of a figure. Every
/// drain comes after it, ours and that of graphile-worker.
pub(crate) fn settle(url: &str) -> anyhow::Result<()> {
    let mut session = Session::open(url)?;
    session.run("vacuum (analyze)")?;
    session.run("checkpoint")
}

/// Sends jobs through that nobody counts.
pub(crate) fn warm_up(here: &Target, there: &Target) -> anyhow::Result<()> {
    workload::submit_batches(here, WARM_UP, None)?;
    workload::drain_batches(there, WARM_UP)?;
    Ok(())
}
