//! Flag over environment over file over default. The store is one question with three possible
//! answers, so the highest layer that answers it at all wins whole.

use super::reader::Problem;
use super::{ConfigError, EXECUTOR_MODES, Settings, StoreChoice, file, otel};
use mainspring_executor::NatsServer;
use mainspring_executor::webhook::Secret;
use mainspring_kernel::executor::{Executor, Mode};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Sets the secret that webhooks are signed with.
const WEBHOOK_SECRET: &str = "MAINSPRING_WEBHOOK_SECRET";
/// Names the NATS server that subscriptions publish to, perhaps with a password.
const NATS_URL: &str = "MAINSPRING_NATS_URL";

/// Reads one environment variable; empty counts as unset.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The flags of `serve`, as far as they are settings.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Flags {
    /// Address to listen on [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Keep state in this directory [default: ./mainspring-data]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ephemeral", "database_url"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep state in memory only and forget it at the end
    #[arg(long, conflicts_with = "database_url")]
    pub(crate) ephemeral: bool,
    /// Keep state in a PostgreSQL database, perhaps shared with other servers
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Take a PostgreSQL server whose fsync or full_page_writes is off
    #[arg(long)]
    pub(crate) allow_unsafe_postgres: bool,
    /// Speak https with this certificate, or chain of certificates (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of that certificate (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Configuration file (TOML)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Offer the internal replay routes to tokens with the `internal` role
    #[arg(long)]
    pub(crate) internal_routes: bool,
}

/// The process environment.
pub(crate) fn process_environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Puts the layers on top of each other, starting from `base`.
///
/// # Errors
/// All problems of the file, or all problems of the environment.
pub(crate) fn resolve(
    base: Settings,
    flags: &Flags,
    environment: Environment<'_>,
) -> Result<Settings, ConfigError> {
    let path = flags.config.clone().or(environment("MAINSPRING_CONFIG").map(PathBuf::from));
    let mut settings = match path {
        Some(path) => read_file(&path, base)?,
        None => base,
    };
    let problems = over_environment(&mut settings, environment);
    if !problems.is_empty() {
        return Err(ConfigError { place: "the environment".into(), problems });
    }
    if let Some(listen) = flags.listen {
        settings.listen = listen;
    }
    if let Some(directory) = &flags.data_dir {
        settings.store = StoreChoice::Directory(directory.clone());
    } else if flags.ephemeral {
        settings.store = StoreChoice::Ephemeral;
    } else if let Some(url) = &flags.database_url {
        settings.store = StoreChoice::Postgres { url: url.clone(), from: "--database-url" };
    }
    for (name, flag, setting) in [
        ("MAINSPRING_TLS_CERT", &flags.tls_cert, &mut settings.tls.cert),
        ("MAINSPRING_TLS_KEY", &flags.tls_key, &mut settings.tls.key),
    ] {
        if let Some(path) = flag.clone().or(environment(name).map(PathBuf::from)) {
            *setting = Some(path);
        }
    }
    settings.internal_routes |= flags.internal_routes;
    settings.postgres.allows_unsafe |= flags.allow_unsafe_postgres;
    check_whole(&settings)?;
    Ok(settings)
}

/// Refuses what cannot work as a whole. Ways of executing jobs, for one: jobs would fail one after
/// the other.
fn check_whole(settings: &Settings) -> Result<(), ConfigError> {
    let mut problems = Vec::new();
    let mut refuse = |text: String| problems.push(Problem { line: None, text });
    if let Err(bad) = settings.executor() {
        let mode = settings.executing.wish.mode.as_str();
        refuse(format!("[executor] mode {mode:?} cannot be used: {bad}"));
    }
    let is_sent = |executor: &Executor| executor.mode() == Mode::Webhook;
    let own = settings.executor();
    let types = settings.types.iter().filter_map(|spec| spec.executor.as_deref());
    if types.chain(own.as_ref().ok()).any(is_sent) && settings.webhooks.secrets.is_empty() {
        refuse(format!(
            "mode \"webhook\" needs a secret to sign with: set {WEBHOOK_SECRET}, or [webhooks] \
             secrets"
        ));
    }
    if settings.tls.cert.is_some() != settings.tls.key.is_some() {
        refuse("tls_cert and tls_key go together: a certificate, and the key of it".to_owned());
    }
    if !settings.alerts.webhook_url.is_empty() && settings.webhooks.secrets.is_empty() {
        refuse(format!(
            "[alerts] webhook_url needs a secret to sign with: set {WEBHOOK_SECRET}, or \
             [webhooks] secrets"
        ));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ConfigError { place: "the settings".into(), problems }),
    }
}

/// Reads a configuration file over `base`.
///
/// # Errors
/// If it cannot be read, or everything that is wrong in it.
pub(crate) fn read_file(path: &Path, base: Settings) -> Result<Settings, ConfigError> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError {
        place: place.clone(),
        problems: vec![Problem { line: None, text: format!("cannot be read: {error}") }],
    })?;
    file::read(&text, base).map_err(|problems| ConfigError { place, problems })
}

fn over_environment(settings: &mut Settings, environment: Environment<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut refuse = |text: String| problems.push(Problem { line: None, text });
    if let Some(text) = environment("MAINSPRING_LISTEN") {
        match text.parse() {
            Ok(listen) => settings.listen = listen,
            Err(_) => refuse(format!("MAINSPRING_LISTEN is {text:?}, not an address")),
        }
    }
    if let Some(text) = environment("MAINSPRING_EXECUTOR_MODE") {
        match Mode::parse(&text) {
            Some(mode) => settings.executing.wish.mode = mode,
            None => refuse(format!(
                "MAINSPRING_EXECUTOR_MODE is {text:?}, must be one of {}",
                EXECUTOR_MODES.join(", ")
            )),
        }
    }
    if let Some(text) = environment(WEBHOOK_SECRET) {
        match text.parse::<Secret>() {
            Ok(secret) => settings.webhooks.secrets = vec![secret],
            Err(bad) => refuse(format!("{WEBHOOK_SECRET} {bad}")),
        }
    }
    match otel::read(environment) {
        Ok(otlp) => settings.otlp = otlp,
        Err(bad) => refuse(bad),
    }
    if let Some(text) = environment(NATS_URL) {
        match text.parse::<NatsServer>() {
            Ok(server) => settings.nats = Some(server),
            Err(bad) => refuse(format!("{NATS_URL} {bad}")),
        }
    }
    let mut flag = |name: &str| -> Option<bool> {
        let text = environment(name)?;
        match text.as_str() {
            "1" | "true" | "yes" => Some(true),
            "0" | "false" | "no" => Some(false),
            _ => {
                refuse(format!("{name} is {text:?}, must be true or false"));
                None
            }
        }
    };
    let is_ephemeral = flag("MAINSPRING_EPHEMERAL").unwrap_or(false);
    if let Some(internal) = flag("MAINSPRING_INTERNAL_ROUTES") {
        settings.internal_routes = internal;
    }
    if let Some(allowed) = flag("MAINSPRING_ALLOW_UNSAFE_POSTGRES") {
        settings.postgres.allows_unsafe = allowed;
    }
    // Our own names are more deliberate than DATABASE_URL, which other programs read too.
    if let Some(url) = environment("MAINSPRING_DATABASE_URL") {
        settings.store = StoreChoice::Postgres { url, from: "MAINSPRING_DATABASE_URL" };
    } else if is_ephemeral {
        settings.store = StoreChoice::Ephemeral;
    } else if let Some(directory) = environment("MAINSPRING_DATA_DIR") {
        settings.store = StoreChoice::Directory(directory.into());
    } else if let Some(url) = environment("DATABASE_URL") {
        settings.store = StoreChoice::Postgres { url, from: "DATABASE_URL" };
    }
    problems
}
