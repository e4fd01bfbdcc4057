//! The `mainspring` command: server, client, worker and benchmark in one binary. This file reads
//! the command line and hands over; each verb has its file in `commands/`.

mod commands;
mod config;
mod exit;
mod logging;
mod memory;
mod output;
mod pages;
mod progress;
mod session;
mod signals;
mod span;

use clap::{CommandFactory, Parser, Subcommand};
use commands::{
    agent_files, alerts, audit, backup, bench, bulk, completions, config as config_command,
    conformance, dlq, doctor, errors, export, jobs, man, mcp, migrate, move_store, queues,
    reference, replay, runs, schedules, serve, subscriptions, supervise, templates, tenants,
    tokens, top, triggers, types, whoami, worker, workers,
};
use output::Output;
use session::Session;
use std::future::Future;
use std::process::ExitCode;

// Ten million waiting jobs are ten million small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A durable job scheduler
#[derive(Debug, Parser)]
#[command(name = "mainspring", version, after_help = exit::HELP, propagate_version = true)]
struct Cli {
    /// Form of the answer
    #[arg(long, short, global = true, value_enum, default_value_t, value_name = "FORM")]
    output: Output,
    #[command(flatten)]
    to: session::To,
    /// Show instants as they are, instead of how long ago they were
    #[arg(long, global = true)]
    exact: bool,
    /// Form of the log on stderr: text on a terminal, JSON elsewhere
    #[arg(long, global = true, value_enum, value_name = "FORM")]
    log_format: Option<logging::Format>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Args),
    /// Submit, follow and cancel jobs
    #[command(subcommand)]
    Jobs(jobs::Verb),
    /// The registry of job types
    Types(types::Args),
    /// The dead letter queue
    #[command(subcommand)]
    Dlq(dlq::Verb),
    /// Rules that make jobs at set times
    #[command(subcommand)]
    Schedules(schedules::Verb),
    /// Rules that make agent runs: every so often, once, or on a condition
    #[command(subcommand)]
    Triggers(triggers::Verb),
    /// Who outside is told of what happens to jobs: webhooks and NATS
    #[command(subcommand)]
    Subscriptions(subscriptions::Verb),
    /// Who changed what, and whether that record is whole
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Do the same thing to everything that a filter admits
    #[command(subcommand)]
    Bulk(bulk::Verb),
    /// What a person should look at
    #[command(subcommand)]
    Alerts(alerts::Verb),
    /// Queues and their numbers
    #[command(subcommand)]
    Queues(queues::Verb),
    /// What tenants get and may have
    #[command(subcommand)]
    Tenants(tenants::Verb),
    /// Workers heard of lately
    Workers,
    /// What the server does, drawn anew every so often
    Top(top::Args),
    /// Whose token this is
    Whoami,
    /// Access tokens
    #[command(subcommand)]
    Tokens(tokens::Verb),
    /// The schedules that the server's configuration asks for
    #[command(subcommand)]
    Templates(templates::Verb),
    /// What agents do
    #[command(subcommand)]
    Runs(runs::RunVerb),
    /// What planners turn into runs and triggers, and what they ask
    #[command(subcommand)]
    Plans(runs::PlanVerb),
    /// Take over what another system kept in files
    #[command(subcommand)]
    Import(agent_files::Import),
    /// Write what there is into files
    #[command(subcommand)]
    Export(export::Export),
    /// Run a command for every job of a type
    Worker(worker::Args),
    /// Run the replays RP-001 to RP-005 against a server with internal routes
    Replay(replay::Args),
    /// Put a worker of your own to the test
    Conformance(conformance::Args),
    /// Check that everything is in order
    Doctor(doctor::Args),
    /// What an error code means, and what to do about it
    Errors(errors::Args),
    /// Measure speed
    Bench(mainspring_bench::Args),
    /// The tables of a PostgreSQL database
    #[command(subcommand)]
    Migrate(migrate::Verb),
    /// Move everything from one store to another
    Move(move_store::Args),
    /// Copy the memory store's files, also while a server uses them
    Backup(backup::BackupArgs),
    /// Bring a backup back, into a directory of its own
    Restore(backup::RestoreArgs),
    /// Check or show the configuration
    #[command(subcommand)]
    Config(config_command::Verb),
    /// Print a completion script for a shell
    Completions(completions::Args),
    /// Speak the Model Context Protocol on stdin and stdout, for agents
    Mcp(mcp::Args),
    /// Write the manual's pages
    #[command(hide = true)]
    Man(man::Args),
    /// Print docs/reference.md
    #[command(hide = true)]
    Reference,
    /// The bare HTTP handler that `bench` compares with
    #[command(hide = true)]
    BenchEcho(mainspring_bench::EchoArgs),
    /// The limit program that `bench` compares with
    #[command(hide = true)]
    BenchTurn(mainspring_bench::TurnArgs),
    /// The parent of a worker's command
    #[command(hide = true)]
    Supervise(supervise::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {}", told(&error));
            if let Some(cure) = exit::cure_of(&error) {
                eprintln!("{cure}");
            }
            ExitCode::from(exit::code_of(&error))
        }
    }
}

/// The error with its causes on one line each, without repeating itself.
fn told(error: &anyhow::Error) -> String {
    let mut text = output::plain_lines(&error.to_string());
    for cause in error.chain().skip(1) {
        let cause = output::plain_lines(&cause.to_string());
        if !text.contains(&cause) {
            text.push_str("\n  because ");
            text.push_str(&cause);
        }
    }
    text
}

fn run(cli: Cli) -> anyhow::Result<u8> {
    let Cli { output, to, exact, log_format, command } = cli;
    if exact {
        output::be_exact();
    }
    let session = || Session::open(&to, output);
    let is_service = matches!(command, Command::Serve(_) | Command::Worker(_));
    let level = if is_service { logging::Level::Info } else { logging::Level::Warn };
    logging::start(log_format, level);
    match command {
        Command::Serve(args) => serving(serve::run(args)),
        Command::Jobs(verb) => simple(jobs::run(verb, session()?)),
        Command::Types(args) => simple(types::run(args, session()?)),
        Command::Dlq(verb) => simple(dlq::run(verb, session()?)),
        Command::Schedules(verb) => simple(schedules::run(verb, session()?)),
        Command::Triggers(verb) => simple(triggers::run(verb, session()?)),
        Command::Subscriptions(verb) => simple(subscriptions::run(verb, session()?)),
        Command::Audit(verb) => simple(audit::run(verb, session()?)),
        Command::Bulk(verb) => simple(bulk::run(verb, session()?)),
        Command::Alerts(verb) => simple(alerts::run(verb, session()?)),
        Command::Queues(verb) => simple(queues::run(verb, session()?)),
        Command::Tenants(verb) => simple(tenants::run(verb, session()?)),
        Command::Workers => simple(workers::run(session()?)),
        Command::Top(args) => simple(top::run(args, session()?)),
        Command::Whoami => simple(whoami::run(session()?)),
        Command::Tokens(verb) => simple(tokens::run(verb, session()?)),
        Command::Templates(verb) => simple(templates::run(verb, session()?)),
        Command::Runs(verb) => simple(runs::run(verb, session()?)),
        Command::Plans(verb) => simple(runs::run_plan(verb, session()?)),
        Command::Import(verb) => simple(agent_files::import(verb, session()?)),
        Command::Export(verb) => simple(export::run(verb, session()?)),
        Command::Worker(args) => threaded(worker::run(args, session()?)),
        Command::Replay(args) => simple(replay::run(args, session()?)),
        Command::Conformance(args) => simple(conformance::run(args, output)),
        Command::Doctor(args) => simple(doctor::run(args, session()?)),
        Command::Errors(args) => errors::run(&args, output),
        Command::Bench(args) if to.url.is_some() => simple(bench::run_running(&args, session()?)),
        Command::Bench(args) => bench::run(&args, output),
        Command::BenchEcho(args) => threaded(bench::echo(args)),
        Command::BenchTurn(args) => bench::turn(&args),
        Command::Supervise(args) => simple(supervise::run(args)),
        Command::Migrate(verb) => simple(migrate::run(verb, output)),
        Command::Move(args) => simple(move_store::run(args, output)),
        Command::Backup(args) => backup::take(args, output),
        Command::Restore(args) => simple(backup::restore(args, output)),
        Command::Config(verb) => config_command::run(&verb, output),
        Command::Mcp(args) => simple(mcp::run(args, session()?)),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::Reference => {
            output::say(reference::page(Cli::command()).trim_end());
            Ok(exit::OK)
        }
        Command::Completions(args) => completions::run(args, Cli::command()),
    }
}

/// Runs on one thread: a client has little to do at a time.
fn simple(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}

/// Runs on all cores but one, which the journal has to itself: handing a request from core to core
/// costs more than it brings when a third thread waits for the disk.
fn threaded(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    on_threads(work_threads(), work)
}

/// The same, with one in reserve (`commands/serve/relief.rs`).
fn serving(work: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    on_threads(work_threads() + 1, work)
}

fn work_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.saturating_sub(1).max(1)
}

fn on_threads(
    threads: usize,
    work: impl Future<Output = anyhow::Result<u8>>,
) -> anyhow::Result<u8> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).enable_all();
    runtime.build()?.block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a flat list")]
    fn documented_commands_parse() {
        for line in [
            "serve --listen 127.0.0.1:7070 --data-dir d --config c.toml --demo",
            "serve --ephemeral --internal-routes",
            "serve --tls-cert c.pem --tls-key k.pem",
            "jobs list --url https://h:7070 --ca-file ca.pem",
            "conformance --type t --scene drain --patience 5s -- ./worker --fast",
            "serve --database-url postgres://h/db",
            "jobs submit greet {} --key k --wait",
            "jobs submit --file jobs.ndjson",
            "jobs list --status queued -o json",
            "jobs get x",
            "jobs explain x",
            "jobs events x",
            "jobs cancel x",
            "jobs wait x --timeout 5s",
            "jobs tail",
            "jobs tail x --type t --to failed --after 0 --count 5",
            "jobs list --exact",
            "top --every 1s --once",
            "whoami",
            "errors",
            "errors LEASE_LOST",
            "types",
            "types list --output json",
            "types get t",
            "types set t --priority 5",
            "dlq list",
            "dlq get d",
            "dlq requeue d",
            "dlq discard d --reason r",
            "dlq approve d --version 2",
            "dlq break-glass d --reason r",
            "dlq reject d",
            "schedules create t {} --cron @daily --timezone Asia/Tokyo --exclude 2027-01-01",
            "schedules create t --every 15m --phase 30s --overlap skip --misfire all",
            "schedules create t --at 2999-01-01T00:00:00Z --label team=red",
            "schedules list --status paused --type t --owner u -o json",
            "schedules get s",
            "schedules update s t --every 1h",
            "schedules pause s --note n",
            "schedules resume s",
            "schedules stop s",
            "schedules delete s",
            "schedules trigger s",
            "schedules backfill s --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z --limit 5",
            "schedules preview s --count 5",
            "schedules preview --cron @daily --from 2027-01-01T00:00:00Z",
            "schedules history s",
            "triggers create p --every 15m --id t",
            "triggers create p --at 2999-01-01T00:00:00Z",
            "triggers create p --file-changed src/**/*.ts --cooldown 1h --priority 9",
            "triggers create p --condition {} --trace-id x --parent-task-id y --timeout 5m",
            "triggers list --status paused --type conditional -o json",
            "triggers get t",
            "triggers explain t",
            "triggers evaluations t",
            "triggers dry-run t",
            "triggers pause t --note n",
            "triggers resume t",
            "triggers delete t",
            "subscriptions create s --webhook https://a.example --event job.failed --type t",
            "subscriptions create s --webhook http://a.example --queue q",
            "subscriptions create s --nats-subject a.b --all-tenants --after 7",
            "subscriptions list --status failing --limit 5 -o json",
            "subscriptions get s",
            "subscriptions pause s --note n",
            "subscriptions resume s",
            "subscriptions rotate-secret s --overlap 1h",
            "subscriptions delete s",
            "templates list -o json",
            "templates recover",
            "runs create p --id i --priority 7 --timeout 60 --defer-until 2999-01-01T00:00:00Z",
            "runs list --status queue --limit 5 -o json",
            "runs get r",
            "runs result r",
            "runs cancel r",
            "plans create p",
            "plans list --status needs_input",
            "plans get p",
            "plans answer p yes",
            "import agent d",
            "export agent d",
            "export jobs --events",
            "export all --file f",
            "export audit",
            "audit list --limit 5",
            "audit verify",
            "tenants list",
            "tenants get t",
            "tenants set t --weight 3 --backlog-max 10 --backlog-bytes-max none --paused true",
            "types pause t",
            "types resume t",
            "types reset-circuit t",
            "queues list",
            "queues pause q",
            "queues resume q",
            "workers",
            "tokens create --tenant t --user u --role worker --role viewer",
            "tokens list",
            "tokens rotate t --overlap 1h",
            "tokens revoke t",
            "worker --type t --queue q --concurrency 2 --lease-ms 5000 --env PGPASSWORD -- cat -n",
            "replay RP-003 --output json",
            "replay",
            "doctor --data-dir d",
            "doctor --database-url postgres://h/db --config c.toml",
            "bench",
            "bench --suite",
            "bench --url http://h:7070 --quick",
            "bench ram",
            "migrate status --database-url postgres://h/db",
            "migrate plan --config c.toml",
            "migrate up -o json",
            "move --from memory:d --to postgres://h/db",
            "backup to --data-dir d",
            "restore from --data-dir d",
            "config check --config f",
            "config show",
            "completions bash",
            "mcp",
            "mcp --allow-writes",
        ] {
            let words = std::iter::once("mainspring").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_ok(), "{line}");
        }
        for line in
            ["serve --ephemeral --data-dir d", "worker --type t", "jobs submit", "types drop"]
        {
            let words = std::iter::once("mainspring").chain(line.split(' '));
            assert!(Cli::try_parse_from(words).is_err(), "{line}");
        }
    }
}
