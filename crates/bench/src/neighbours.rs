//! What a neighbour feels of a hostile client. A tenant of good manners submits two hundred jobs a
//! second and has them handled; its p99 from submit to handler is taken alone and then beside one
//! hostile client after the other (`hostile.rs`), on one server. Any refusal of the neighbour fails
//! the row: `Connection::ask_ok` demands success.

pub(crate) mod hostile;

use super::job::text_after;
use super::latency;
use super::postgres::cluster::Cluster;
use super::postgres::stand::{Store, warm_up};
use super::report::{Row, Target as Goal};
use super::server::Server;
use super::workload::Target;
use super::{http::Connection, job::Requests};
use anyhow::{Context, bail};
use hostile::Hostile;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The tenants of the hostile clients.
const HOSTILE: &str = "hostile";
/// The tenant whose latency counts.
const NEIGHBOUR: &str = "neighbour";
/// Longest time a hostile client may take to get into position.
const POSITION_MAX: Duration = Duration::from_secs(60);

/// How much is done.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What the server keeps its jobs in.
    pub(crate) store: Store,
    /// How often each row is taken; the one with the median ratio counts.
    pub(crate) runs: usize,
    /// How long each latency is measured.
    pub(crate) span: Duration,
    /// Where server and cluster keep their files.
    pub(crate) directory: PathBuf,
}

/// What hostile clients know of the server.
pub(crate) struct Stage {
    pub(crate) address: SocketAddr,
    /// Without a token.
    pub(crate) anonymous: Requests,
    /// One of a tenant of their own.
    pub(crate) requests: Requests,
    /// More of the same tenant, for those who bring friends.
    pub(crate) friends: Vec<Requests>,
    /// The database, where there is one.
    pub(crate) database: Option<String>,
    is_over: AtomicBool,
    is_in_position: AtomicBool,
}

impl Stage {
    /// Whether hostile clients have to go home.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Says that the neighbour may be measured from now on.
    pub(crate) fn in_position(&self) {
        self.is_in_position.store(true, Ordering::Relaxed);
    }
}

/// The rows by name, in order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    hostile::ALL.iter().map(|hostile| hostile.id)
}

/// Measures the neighbour beside one hostile client. A p99 is made by the worst few of a thousand,
/// which any other program on the machine can make worse: so several times.
pub(crate) fn run(name: &str, plan: &Plan) -> anyhow::Result<Option<Row>> {
    let hostile = hostile::ALL.iter().find(|hostile| hostile.id == name);
    let hostile = hostile.with_context(|| format!("there is no workload {name:?}"))?;
    if hostile.needs_database && plan.store != Store::Postgres {
        return Ok(None);
    }
    let rows = (0..plan.runs.max(1)).map(|_| once(hostile, plan));
    let mut rows = rows.collect::<anyhow::Result<Vec<Row>>>()?;
    rows.sort_by(|a, b| a.ratio().partial_cmp(&b.ratio()).unwrap_or(std::cmp::Ordering::Equal));
    Ok(Some(rows.swap_remove(rows.len() / 2)))
}

/// One run, on a server of its own.
fn once(hostile: &Hostile, plan: &Plan) -> anyhow::Result<Row> {
    let folder = tempfile::tempdir_in(&plan.directory)?;
    let cluster = match plan.store {
        Store::Memory => None,
        Store::Postgres => Some(Cluster::start(&plan.directory, &[])?),
    };
    let database = cluster.as_ref().map(Cluster::database).transpose()?;
    let url = database.as_ref().map(|database| database.url.clone());
    let server = Server::start_with(folder.path(), url.as_deref(), hostile.config)?;
    beside(hostile, &server, url, plan.span)
        .with_context(|| format!("{}: {}", hostile.id, hostile.what))
}

fn beside(
    hostile: &Hostile,
    server: &Server,
    database: Option<String>,
    span: Duration,
) -> anyhow::Result<Row> {
    let address = server.address();
    let admin = server.requests();
    let neighbour = Target { address, requests: token(&admin, address, NEIGHBOUR, "good")? };
    warm_up(&neighbour, &neighbour)?;
    let alone = latency::measure(&neighbour, span)?;
    let friends = (0..hostile.friends).map(|n| token(&admin, address, HOSTILE, &format!("f{n}")));
    let stage = Stage {
        address,
        anonymous: Requests::new(address, ""),
        requests: token(&admin, address, HOSTILE, "first")?,
        friends: friends.collect::<Result<_, _>>()?,
        database,
        is_over: AtomicBool::new(false),
        is_in_position: AtomicBool::new(false),
    };
    let beside = std::thread::scope(|scope| {
        let attack = scope.spawn(|| (hostile.attack)(&stage));
        let measured = wait_for(&stage, &attack).and_then(|()| latency::measure(&neighbour, span));
        stage.is_over.store(true, Ordering::Relaxed);
        match attack.join() {
            Ok(ended) => ended.context("the hostile client failed")?,
            Err(_) => bail!("the hostile client panicked"),
        }
        measured
    })?;
    let health = Connection::open(address)?.ask(&admin.get("/healthz"))?.status;
    if health != 200 {
        bail!("/healthz answers {health} afterwards");
    }
    Ok(Row {
        id: hostile.id,
        what: format!("submit to handler, p99, beside {}", hostile.what),
        figure: beside.p99_ms,
        spread: None,
        unit: "ms",
        beside: Some(("alone".to_owned(), alone.p99_ms)),
        target: Goal::AtMost(hostile.ratio_max),
    })
}

fn wait_for<T>(stage: &Stage, attack: &std::thread::ScopedJoinHandle<'_, T>) -> anyhow::Result<()> {
    let patience = super::stopwatch::Stopwatch::start();
    while !stage.is_in_position.load(Ordering::Relaxed) {
        if attack.is_finished() || patience.elapsed() > POSITION_MAX {
            bail!("the hostile client did not get into position");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Makes a token that may submit and work in a tenant.
pub(crate) fn token(
    admin: &Requests,
    address: SocketAddr,
    tenant: &str,
    user: &str,
) -> anyhow::Result<Requests> {
    let body = format!(
        "{{\"tenant_id\":\"{tenant}\",\"user_id\":\"{user}\",\
         \"roles\":[\"submitter\",\"worker\",\"operator\"]}}"
    );
    let mut connection = Connection::open(address)?;
    let answer = connection.ask_ok(&admin.post("/api/v1/tokens", body))?;
    let (token, _) = text_after(answer, b"\"token\":\"").context("the answer has no token")?;
    Ok(Requests::new(address, token))
}
