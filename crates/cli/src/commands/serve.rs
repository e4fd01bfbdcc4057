//! `mainspring serve`: the composition root. It settles the configuration, opens the store, starts
//! the engine, lets the server speak, and takes all of it down again in order.

mod announce;
mod encryption;
pub(crate) mod executing;
mod notify;
mod relief;

use crate::commands::{demo, postgres};
use crate::config::layers::{self, Flags};
use crate::config::{Settings, StoreChoice, file};
use crate::exit::{self, usage};
use crate::output::say;
use crate::session::{DATA_DIR_DEFAULT, DEMO_DIR, TOKEN_FILE, read_secret, read_token};
use crate::signals::StopSignals;
use anyhow::{Context, anyhow, bail};
use mainspring_engine::{
    AlertConfig, Clock, Engine, Entropy, SharedClock, SystemClock, SystemEntropy, TriggerConfig,
};
use mainspring_kernel::agent::Purpose;
use mainspring_kernel::entity::alert::Milli;
use mainspring_kernel::executor::{Executor, Mode, Webhook};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::governance::Governance;
use mainspring_kernel::{Command, TypeSpec};
use mainspring_server::Once;
use mainspring_server::config::AgentSettings;
use mainspring_server::templates::{self, Templates};
use mainspring_store::{Fatal, Store};
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresStore, address};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The flags of `serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    flags: Flags,
    /// Register the quantitative trading types, and run sample jobs with a worker of their own
    #[arg(long)]
    demo: bool,
    /// Offer the internal replay routes even on an address that other machines can reach
    #[arg(long)]
    i_know_internal_routes_are_public: bool,
}

/// Sets the admin token from outside.
const ADMIN_TOKEN: &str = "MAINSPRING_ADMIN_TOKEN";
/// Names a file with it, where secrets are files.
const ADMIN_TOKEN_FILE: &str = "MAINSPRING_ADMIN_TOKEN_FILE";

/// Opens the store the settings ask for.
///
/// # Errors
/// If it cannot be opened; the message names the file and the place of any damage.
async fn open_store(
    settings: &Settings,
    fatal: &Fatal,
) -> anyhow::Result<(Arc<dyn Store>, Arc<dyn Clock>)> {
    let seed = SystemEntropy::default().bits();
    let layout = &settings.layout;
    let config = MemoryConfig {
        segment_bytes: layout.segment_bytes,
        snapshot_bytes_min: layout.snapshot_bytes_min,
        finished_bytes_max: usize::try_from(layout.finished_bytes_max).unwrap_or(usize::MAX),
        keep_finished: settings.retention.finished,
        keep_items: settings.retention.dlq,
        keep_stream: settings.retention.stream,
        fatal: fatal.clone(),
        ..MemoryConfig::standard(seed as u64)
    };
    let clock = Arc::new(SystemClock::new());
    match &settings.store {
        StoreChoice::Directory(path) => {
            let disk = RealDisk::open(path);
            let disk = Arc::new(disk.with_context(|| format!("cannot use {}", path.display()))?);
            let started = clock.now();
            let store = MemoryStore::open(disk, config, started)?;
            store.note_opening(clock.now().since(started));
            Ok((Arc::new(store), clock))
        }
        StoreChoice::Ephemeral => Ok((Arc::new(MemoryStore::ephemeral(config)), clock)),
        StoreChoice::Postgres { url, .. } => {
            // Servers that share a database share its time.
            let clock = Arc::new(SharedClock::new());
            let config = postgres::config(settings, url, &clock, fatal.clone());
            let store = PostgresStore::open(config, seed).await?;
            Ok((Arc::new(store), clock))
        }
    }
}

/// After a failed write or sync nothing on disk can be trusted until it is read again, and without
/// one of its parts a server does half of its work: no further answer may go out, so the process
/// ends here and now.
fn stop_at_once(why: &str) {
    tracing::error!(why, "the process stops; restart it to recover");
    if let Some(path) = DIED.get() {
        // A disk that takes nothing takes no reason either.
        let _ = std::fs::write(path, why);
    }
    say(&format!("{why}; restart to recover"));
    std::process::exit(i32::from(exit::BROKEN));
}

pub(crate) async fn run(args: Args) -> anyhow::Result<u8> {
    // Huge pages cost 100 bytes more for a waiting job and are cleared 2 MiB at a time; where the
    // system does not know the switch, nothing is lost but that.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let base = match args.demo {
        true => file::read(demo::CONFIG, Settings::standard()).map_err(|problems| {
            anyhow!("the built-in demo configuration is wrong: {problems:?}")
        })?,
        false => Settings::standard(),
    };
    // What is only to be looked at must not end up among what somebody works with.
    let base = match args.demo {
        true => Settings { store: StoreChoice::Directory(DEMO_DIR.into()), ..base },
        false => base,
    };
    let settings = layers::resolve(base, &args.flags, &layers::process_environment)?;
    let given = given_token()?;
    check(&settings, given.is_some(), args.i_know_internal_routes_are_public)?;

    let tls = encryption::open(&settings, args.demo)?;
    let listener = TcpListener::bind(settings.listen)
        .await
        .with_context(|| format!("cannot listen on {}", settings.listen))?;
    let address = listener.local_addr()?;
    let fatal = Fatal::new(stop_at_once);
    let opened = open_store(&settings, &fatal).await;
    let (store, clock) = opened.with_context(|| opening(&settings.store))?;
    let engine = start_engine(store, clock, &settings, fatal.clone()).await?;
    relief::start(engine.clone());
    let token = match admin_token(&engine, &settings, given).await {
        Ok(token) => token,
        Err(error) => {
            engine.shutdown().await?;
            return Err(error);
        }
    };
    register_types(&engine, &settings).await?;
    tell_of_death(&engine, &settings);
    let templates = match register_templates(&engine, &settings).await {
        Ok(templates) => templates,
        Err(error) => {
            engine.shutdown().await?;
            return Err(error);
        }
    };
    // Whoever reads that it has started may stop it.
    let signals = StopSignals::listen()?;
    let (once, link) = sign_in_link(&engine, &settings, address, &token).unzip();
    announce::announce(&settings, address, (&token, link.as_deref()), &engine.health().recovery);

    // Jobs that are executed here are ended or given back before the engine is told to stop.
    let (draining, shutdown) = (CancellationToken::new(), CancellationToken::new());
    let bus = executing::start_bus(&engine, &settings, fatal.clone());
    let executors = executing::start(&engine, &settings, address, args.demo, fatal).await?;
    let demo = args.demo.then(|| {
        let has_worker = settings.executing.wish.mode == Mode::Pull;
        let url = executing::own_url(&settings, address);
        demo::start(url, token.secret(&settings), has_worker, draining.clone())
    });
    let _watch = encryption::watch(tls.clone(), engine.clone())?;
    let config = server_config(&settings, address, templates);
    let config = mainspring_server::Config { tls, once, ..config };
    let served = mainspring_server::serve(listener, engine.clone(), config, shutdown.clone());
    notify::ready();
    let served = async {
        let ended = served.await;
        draining.cancel();
        ended
    };
    let drained = async {
        tokio::join!(executors.until(draining.clone()), bus.until(draining.clone()));
        shutdown.cancel();
    };
    let both = async { tokio::join!(served, drained).0 };
    let ended = until_stopped(both, &draining, signals).await;
    if let Some(demo) = demo {
        demo.abort();
    }
    let health = engine.health();
    engine.shutdown().await.context("closing the store")?;
    ended?;
    if let Some(why) = health.broken {
        bail!("the store stopped: {why}");
    }
    say("stopped");
    Ok(exit::OK)
}

/// The admin token as it is set from outside, by a variable or by a file that one names.
fn given_token() -> anyhow::Result<Option<String>> {
    if let Some(token) = layers::process_environment(ADMIN_TOKEN) {
        return Ok(Some(token));
    }
    let path = layers::process_environment(ADMIN_TOKEN_FILE);
    path.map(|path| read_secret(ADMIN_TOKEN_FILE, Path::new(&path))).transpose()
}

/// Refuses what must not be started, before anything is touched.
fn check(settings: &Settings, has_token: bool, may_expose: bool) -> anyhow::Result<()> {
    if let StoreChoice::Postgres { url, from } = &settings.store {
        postgres::check_url(url, from)?;
    }
    if is_loopback(settings.listen.ip()) {
        return Ok(());
    }
    let listen = settings.listen;
    if settings.internal_routes && !may_expose {
        return Err(usage(format!(
            "internal routes on {listen} would let other machines move jobs by hand; \
             listen on 127.0.0.1, or add --i-know-internal-routes-are-public"
        )));
    }
    let may_have_state = match &settings.store {
        StoreChoice::Directory(path) => path.exists(),
        StoreChoice::Ephemeral => false,
        // Told when it is open.
        StoreChoice::Postgres { .. } => true,
    };
    if !has_token && !may_have_state {
        return Err(no_tokens(listen));
    }
    Ok(())
}

fn no_tokens(listen: SocketAddr) -> anyhow::Error {
    usage(format!(
        "{listen} can be reached from other machines and there is no token yet; set \
         {ADMIN_TOKEN} or {ADMIN_TOKEN_FILE}, or start once on 127.0.0.1 to create one"
    ))
}

fn is_loopback(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_loopback(),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(v6.is_loopback(), |v4| v4.is_loopback()),
    }
}

fn opening(store: &StoreChoice) -> String {
    match store {
        StoreChoice::Directory(path) => format!("cannot open the store in {}", path.display()),
        StoreChoice::Ephemeral => "cannot open the store".into(),
        StoreChoice::Postgres { url, .. } => {
            format!("cannot open the store in {}", address::shown(url))
        }
    }
}

/// Makes a directory nobody else can look into. One that exists is left as it is.
fn make_private(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the directory {}", path.display()))
}

async fn start_engine(
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    settings: &Settings,
    fatal: Fatal,
) -> anyhow::Result<Engine> {
    let (backlog_bytes_max, backlog_bytes_per_tenant) = settings.backlog();
    let config = mainspring_engine::Config {
        fatal,
        are_types_strict: settings.types_strict,
        backlog_bytes_max,
        backlog_bytes_per_tenant,
        restart_grace: settings.restart_grace,
        triggers: trigger_config(settings)?,
        governance: Governance {
            auto_verify_budget: settings.governance.auto_verify_budget as u32,
            unknowable_tries_max: settings.governance.unknowable_tries_max as u32,
        },
        alerts: alert_config(settings),
        settled_here_max: relief::SETTLED_HERE_MAX,
        ..mainspring_engine::Config::standard()
    };
    let entropy = Arc::new(SystemEntropy::default());
    Engine::start(store, clock, entropy, config).await.context("cannot start the engine")
}

fn alert_config(settings: &Settings) -> AlertConfig {
    let alerts = &settings.alerts;
    AlertConfig {
        // A share is never more than all.
        retrying_ratio: Milli((alerts.retrying_ratio.min(1.0) * 1_000.0).round() as u64),
        dlq_growth_per_minute: alerts.dlq_growth_per_minute,
        invalid_transitions: alerts.invalid_transitions,
        lag: alerts.lag,
        no_worker: alerts.no_worker,
        tells_skips: alerts.schedule_skipped,
        check_every: alerts.check,
        hold: alerts.hold,
        quiet: alerts.quiet,
    }
}

/// How often triggers are looked for that other servers of the same database made.
const TRIGGERS_ELSEWHERE: Duration = Duration::from_secs(5);

fn trigger_config(settings: &Settings) -> anyhow::Result<TriggerConfig> {
    let absolute = |root: &String| {
        std::path::absolute(root).with_context(|| format!("[triggers] roots: {root:?}"))
    };
    let is_shared = matches!(settings.store, StoreChoice::Postgres { .. });
    Ok(TriggerConfig {
        roots: settings.triggers.roots.iter().map(absolute).collect::<Result<_, _>>()?,
        pace: settings.triggers.pace,
        look_elsewhere_every: is_shared.then_some(TRIGGERS_ELSEWHERE),
    })
}

fn server_config(
    settings: &Settings,
    address: SocketAddr,
    templates: Templates,
) -> mainspring_server::Config {
    mainspring_server::Config {
        templates,
        agent: AgentSettings {
            max_attempts: settings.agent.max_attempts,
            backoff_ms: settings.agent.backoff_ms,
        },
        is_public: !is_loopback(address.ip()),
        contracts: settings.contracts.clone(),
        has_internal_routes: settings.internal_routes,
        executing: executing::told(settings),
        connections: settings.limits.connections,
        streams: settings.limits.streams,
        waits: settings.limits.waits,
        bodies: settings.limits.body_bytes,
        hosts: settings.hosts.clone(),
        allow_client_clock: settings.allow_client_clock,
        shards: settings.shards,
        bulk_approval_above: settings.bulk_approval_above,
        audit_keep: settings.retention.audit,
        audit_anchor: audit_anchor(settings),
        audit_history_every: settings.audit_history_every,
        audit_history_keep: settings.retention.stream.min(settings.retention.finished),
        is_key_required: settings.strict.idempotency_key,
        is_trace_required: settings.strict.trace_id,
        key_window_secs: settings.key_window_secs(),
        name_window_secs: Some(settings.name_window_secs()),
        ..mainspring_server::Config::standard()
    }
}

/// A link by which whoever started the server signs in to the dashboard, once. Only where nobody
/// but this machine can use it: what a public server prints is often read by others, too.
fn sign_in_link(
    engine: &Engine,
    settings: &Settings,
    address: SocketAddr,
    token: &AdminToken,
) -> Option<(Once, String)> {
    let secret = token.secret(settings).filter(|_| is_loopback(address.ip()))?;
    let (once, path) = mainspring_server::sign_in_once(engine, &secret);
    Some((once, format!("{}{path}", executing::own_url(settings, address))))
}

/// Where the last line of each audit trail is noted outside of the store.
fn audit_anchor(settings: &Settings) -> Option<PathBuf> {
    match (&settings.audit_anchor, &settings.store) {
        (Some(path), _) => Some(path.clone()),
        (None, StoreChoice::Directory(path)) => Some(path.join("audit.anchor")),
        (None, StoreChoice::Ephemeral | StoreChoice::Postgres { .. }) => None,
    }
}

/// Where the admin token stands after the start.
enum AdminToken {
    /// Made just now, to be shown once.
    Fresh(String),
    /// Made just now, and there is no file to keep it in.
    Unkept(String),
    /// Given by the environment; the operator knows it.
    Given(String),
    /// There were tokens already.
    Known,
}

impl AdminToken {
    /// The secret, where it can be had.
    fn secret(&self, settings: &Settings) -> Option<String> {
        match (self, &settings.store) {
            (AdminToken::Fresh(text) | AdminToken::Unkept(text) | AdminToken::Given(text), _) => {
                Some(text.clone())
            }
            (AdminToken::Known, store) => read_token(token_directory(store)?),
        }
    }
}

async fn admin_token(
    engine: &Engine,
    settings: &Settings,
    given: Option<String>,
) -> anyhow::Result<AdminToken> {
    let is_public = !is_loopback(settings.listen.ip());
    if is_public && given.is_none() && engine.tokens().await?.is_empty() {
        return Err(no_tokens(settings.listen));
    }
    let stored = mainspring_server::bootstrap_admin(engine, given.clone()).await;
    let stored = stored.map_err(|error| usage(format!("{ADMIN_TOKEN}: {error}")))?;
    match (given, stored) {
        (Some(given), _) => Ok(AdminToken::Given(given)),
        (None, Some(fresh)) => {
            match &settings.store {
                StoreChoice::Directory(path) => write_token(path, &fresh)?,
                StoreChoice::Ephemeral => {}
                // A server of a database may have no place to write to; the token is shown, too.
                StoreChoice::Postgres { .. } => {
                    let directory = Path::new(DATA_DIR_DEFAULT);
                    let kept =
                        make_private(directory).and_then(|()| write_token(directory, &fresh));
                    if let Err(error) = kept {
                        tracing::warn!(%error, "the admin token could not be kept in a file");
                        return Ok(AdminToken::Unkept(fresh));
                    }
                }
            }
            Ok(AdminToken::Fresh(fresh))
        }
        (None, None) => Ok(AdminToken::Known),
    }
}

/// Where the first admin token of a store is kept: with its data, or where a client that is
/// started in the same directory looks.
fn token_directory(store: &StoreChoice) -> Option<&Path> {
    match store {
        StoreChoice::Directory(path) => Some(path),
        StoreChoice::Ephemeral => None,
        StoreChoice::Postgres { .. } => Some(Path::new(DATA_DIR_DEFAULT)),
    }
}

/// Writes the token where only the owner can read it.
fn write_token(directory: &Path, token: &str) -> anyhow::Result<()> {
    let path = directory.join(TOKEN_FILE);
    // An older file may be readable by others; a new one is not.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot replace {}", path.display()));
        }
        Ok(()) | Err(_) => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| writeln!(file, "{token}"))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Applies the types of the file whose entries are new or changed since they were last applied. A
/// type that was changed through the API keeps that change as long as its entry stays the same,
/// however often and on however many nodes a server starts.
async fn register_types(engine: &Engine, settings: &Settings) -> anyhow::Result<()> {
    let known = engine.types().await?;
    let mut commands = Vec::new();
    let runs = run_type(settings);
    let alerts = alert_type(settings, &known);
    for spec in settings.types.iter().chain([&runs]).chain(&alerts) {
        let stored = known.iter().find(|stored| stored.name == spec.name);
        match stored {
            Some(stored) if stored.file_entry == spec.file_entry => {
                if stored != spec {
                    let name = spec.name.as_str();
                    tracing::info!(
                        name,
                        "a type was changed through the API; it stays so until its entry in the \
                         configuration file changes"
                    );
                }
                continue;
            }
            Some(_) => tracing::info!(name = spec.name.as_str(), "a type's entry has changed"),
            None => {}
        }
        commands.push(Command::SetType(Box::new(spec.clone())));
    }
    let count = commands.len();
    for outcome in engine.execute(commands).await? {
        outcome.map_err(|rejection| anyhow!("cannot register a type: {rejection}"))?;
    }
    if count > 0 {
        tracing::info!(count, "types of the configuration file applied");
    }
    Ok(())
}

/// The type of agent runs as `[agent]` has it. It counts as an entry of the file like any other.
fn run_type(settings: &Settings) -> TypeSpec {
    let limit = settings.agent.concurrency;
    TypeSpec {
        concurrency_limit: Some(limit),
        file_entry: Some(digest(&[b"agent", &limit.to_be_bytes()])),
        ..TypeSpec::agent(Purpose::Run)
    }
}

/// The type of jobs that tell of alerts, if they are sent, or were: whoever takes the receiver out
/// of the file wants nothing sent.
fn alert_type(settings: &Settings, known: &[TypeSpec]) -> Option<TypeSpec> {
    let url = settings.alerts.webhook_url.as_str();
    let plain = TypeSpec::alert();
    if url.is_empty() && !known.iter().any(|spec| spec.name == plain.name) {
        return None;
    }
    let timeout_ms = plain.timeout_ms / 2;
    let webhook = || Executor::Webhook(Webhook { url: url.into(), timeout_ms });
    Some(TypeSpec {
        executor: Some(Box::new(if url.is_empty() { Executor::Pull } else { webhook() })),
        file_entry: Some(digest(&[b"alerts", url.as_bytes()])),
        ..plain
    })
}

/// What a server that died left behind: why it did. It is told as an alert when it starts again.
const DIED_FILE: &str = "died";
/// Longest reason that is read.
const DIED_BYTES_MAX: u64 = 4_096;

/// Where that is written, once it is known.
static DIED: OnceLock<PathBuf> = OnceLock::new();

/// Has an alert raised if the server died when it last ran.
fn tell_of_death(engine: &Engine, settings: &Settings) {
    let Some(directory) = token_directory(&settings.store).filter(|path| path.is_dir()) else {
        return;
    };
    let path = directory.join(DIED_FILE);
    let mut why = String::new();
    let read =
        File::open(&path).and_then(|file| file.take(DIED_BYTES_MAX).read_to_string(&mut why));
    if read.is_ok() {
        tracing::warn!(why, "the server died when it last ran");
        engine.part_died(&why);
        // It is raised once: what cannot be removed is told of again.
        let _ = std::fs::remove_file(&path);
    }
    let _ = DIED.set(path);
}

/// Makes the schedules of the file's templates that are not there yet, and changes those whose
/// entries have changed. Which were there is remembered.
async fn register_templates(engine: &Engine, settings: &Settings) -> anyhow::Result<Templates> {
    let (tenant, list) = (settings.template_tenant.clone(), settings.templates.clone());
    let templates = Templates { tenant, list, recovered: 0 };
    let ensured = templates::ensure(engine, &templates).await?;
    let ensured =
        ensured.map_err(|(name, why)| usage(format!("template {name:?} is refused: {why}")))?;
    let recovered = ensured.iter().filter(|it| !it.is_new).count();
    if !ensured.is_empty() {
        let made = ensured.len() - recovered;
        tracing::info!(made, recovered, "schedules of the templates");
    }
    Ok(Templates { recovered: recovered as u64, ..templates })
}

/// Serves until a signal; the second signal does not wait for requests under way.
async fn until_stopped(
    served: impl Future<Output = std::io::Result<()>>,
    shutdown: &CancellationToken,
    mut signals: StopSignals,
) -> anyhow::Result<()> {
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = &mut served => return ended.context("the server stopped"),
        () = signals.first() => {}
    }
    notify::stopping();
    tracing::info!("stopping: requests under way may finish; once more to stop at once");
    shutdown.cancel();
    tokio::select! {
        ended = &mut served => ended.context("the server stopped"),
        () = signals.second() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::{USAGE, code_of};
    use std::os::unix::fs::PermissionsExt;

    fn on(listen: &str) -> Settings {
        Settings {
            listen: listen.parse().unwrap(),
            store: StoreChoice::Ephemeral,
            ..Settings::standard()
        }
    }

    #[test]
    fn a_public_address_needs_a_token_and_hides_internal_routes() {
        for loopback in ["127.0.0.1:1", "[::1]:1", "127.8.9.10:1", "[::ffff:127.0.0.1]:1"] {
            let settings = Settings { internal_routes: true, ..on(loopback) };
            assert!(check(&settings, false, false).is_ok(), "{loopback}");
        }
        for public in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            let refused = check(&on(public), false, false).unwrap_err();
            assert_eq!(code_of(&refused), USAGE);
            assert!(check(&on(public), true, false).is_ok());
            let settings = Settings { internal_routes: true, ..on(public) };
            assert!(check(&settings, true, false).is_err());
            assert!(check(&settings, true, true).is_ok());
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_showing_the_password() {
        let store = StoreChoice::Postgres { url: "mysql://u:pw@h/d".into(), from: "DATABASE_URL" };
        let refused = check(&Settings { store, ..Settings::standard() }, true, true).unwrap_err();
        assert_eq!(code_of(&refused), USAGE);
        let told = refused.to_string();
        assert!(told.contains("is no PostgreSQL address"), "{told}");
        assert!(told.contains("DATABASE_URL") && !told.contains("pw"), "{told}");
    }

    /// Set in the process that is to end.
    const DIES: &str = "MAINSPRING_TEST_DIES";

    /// Starts this very test once more, as a process of its own in which a part dies.
    #[test]
    fn a_part_that_dies_ends_the_process_with_its_reason() {
        if std::env::var_os(DIES).is_some() {
            let fatal = Fatal::new(stop_at_once);
            let part = fatal.clone();
            std::thread::spawn(move || part.guard("the keeper", || panic!("of old age")));
            // The end comes from the other thread.
            std::thread::park_timeout(std::time::Duration::from_secs(60));
            return;
        }
        let name = "commands::serve::tests::a_part_that_dies_ends_the_process_with_its_reason";
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(DIES, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ended.stdout).into_owned()
            + &String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(i32::from(exit::BROKEN)), "{said}");
        assert!(said.contains("the keeper died: of old age; restart to recover"), "{said}");
    }

    #[test]
    fn the_token_file_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(TOKEN_FILE);
        std::fs::write(&path, "old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write_token(folder.path(), "secret").unwrap();
        assert_eq!(read_token(folder.path()).as_deref(), Some("secret"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
