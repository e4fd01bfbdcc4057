//! `docs/reference.md`, made from the code: every setting with its default, every variable, every
//! command with its flags, and every exit code. What a setting means stands here; tests compare the
//! list with what the file reader really reads, the variables with the sources, and the page with
//! the one that is kept.

use crate::config::{Settings, show};
use crate::exit;
use std::fmt::Write;

/// Section, key, and what it means.
const SETTINGS: &[(&str, &str, &str)] = &[
    ("server", "listen", "address to listen on"),
    (
        "server",
        "internal_routes",
        "offer the routes for moving jobs by hand, to tokens with the role `internal`",
    ),
    ("server", "tls_cert", "speak https with this certificate, or chain of certificates (PEM)"),
    ("server", "tls_key", "the private key of that certificate (PEM)"),
    ("server", "hosts", "host names served on a loopback address besides this machine's own"),
    ("server", "contracts", "the contracts that are spoken"),
    ("store", "data_dir", "keep state in this directory"),
    ("store", "ephemeral", "keep state in memory only and forget it at the end"),
    (
        "store",
        "database_url",
        "keep state in a PostgreSQL database, perhaps shared with other servers",
    ),
    ("store", "schema", "the schema in that database"),
    ("store", "connections", "connections to it, 3 to 100"),
    ("store", "notify", "tell other servers at once by NOTIFY"),
    ("store", "poll_ms", "how often is looked for what others did"),
    ("store", "allow_unsafe_postgres", "take a PostgreSQL whose fsync or full_page_writes is off"),
    ("store", "segment_bytes", "size of a journal file"),
    ("store", "snapshot_bytes_min", "growth of the journal before a snapshot"),
    ("store", "finished_bytes_max", "memory for finished jobs before they go to the archive"),
    ("limits", "connections", "connections at a time"),
    ("limits", "connections_per_tenant", "of those, a tenant's"),
    ("limits", "connections_per_token", "of those, a token's"),
    ("limits", "streams", "event streams at a time"),
    ("limits", "streams_per_tenant", "of those, a tenant's"),
    ("limits", "streams_per_token", "of those, a token's"),
    ("limits", "waits", "calls that wait at a time"),
    ("limits", "waits_per_tenant", "of those, a tenant's"),
    ("limits", "waits_per_token", "of those, a token's"),
    ("limits", "body_bytes", "bytes of request bodies at a time"),
    ("limits", "body_bytes_per_tenant", "of those, a tenant's"),
    ("limits", "body_bytes_per_token", "of those, a token's"),
    (
        "limits",
        "backlog_bytes",
        "room for jobs that have not ended; half of the memory, or 64 GiB with PostgreSQL, if left out",
    ),
    ("limits", "backlog_bytes_per_tenant", "of that, a tenant's; half of it if left out"),
    (
        "executor",
        "mode",
        "how jobs are executed whose type does not say: `pull`, `inprocess`, `process` or `webhook`",
    ),
    ("executor", "command", "mode `process`: the program"),
    ("executor", "args", "mode `process`: its arguments"),
    ("executor", "cwd", "mode `process`: where it runs"),
    ("executor", "env", "mode `process`: the variables of the server that it sees"),
    ("executor", "shell", "mode `process`: whether the command is a line for `sh`"),
    ("executor", "kill_grace_ms", "mode `process`: between SIGTERM and SIGKILL"),
    ("executor", "url", "mode `webhook`: where jobs are sent"),
    ("executor", "timeout_ms", "mode `webhook`: how long an answer may take"),
    ("executor", "programs", "the programs that types set through the API may start"),
    ("executor", "concurrency", "jobs that one mode runs side by side"),
    ("executor", "grace", "how long they may go on when the server stops"),
    ("webhooks", "allow_private", "send also to addresses of private networks"),
    (
        "webhooks",
        "secrets",
        "what requests are signed with, `whsec_…`; the first one signs, all are valid",
    ),
    ("nats", "url", "the NATS server that subscriptions publish to"),
    (
        "scheduler",
        "allow_client_clock",
        "workers of `/scheduler` may say what time it is; for tests and replays",
    ),
    (
        "scheduler",
        "shards",
        "spread the jobs of `/scheduler` over queues: `none`, `object_type` or `risk_tier`",
    ),
    ("scheduler", "restart_grace", "how long workers have to come back after a restart"),
    ("strict", "idempotency_key", "public writes need a key"),
    ("strict", "trace_id", "requests need `x-trace-id`"),
    ("idempotency", "window", "how long a key stays taken after its job ended, or `forever`"),
    ("retention", "finished", "how long finished jobs are kept"),
    ("retention", "dlq", "how long dead letters are kept"),
    ("retention", "audit", "how long lines of the audit trail are kept"),
    ("retention", "stream", "how long the event stream can be read back"),
    ("governance", "auto_verify_budget", "verifications that an uncertain object gets by itself"),
    ("governance", "unknowable_tries_max", "tries before an object counts as unknowable"),
    (
        "audit",
        "anchor",
        "where the last line of each audit trail is noted; `audit.anchor` in the data directory if left out",
    ),
    (
        "audit",
        "history_every",
        "how often the digest of all moves of jobs becomes a line of the audit trail; `0s` is never",
    ),
    ("bulk", "approval_above", "a bulk operation on more things than this takes a second person"),
    ("alerts", "retrying_ratio", "alert when more than this share of jobs is retried"),
    ("alerts", "dlq_growth_per_minute", "alert when more dead letters than this come in a minute"),
    ("alerts", "invalid_transitions", "alert after so many refused moves in a row"),
    ("alerts", "lag", "alert when a job starts so much later than due"),
    ("alerts", "no_worker", "alert when jobs wait so long for a type that no worker asks for"),
    ("alerts", "schedule_skipped", "alert when a firing is left out"),
    ("alerts", "check", "how often is looked"),
    ("alerts", "hold", "for how long too many jobs must be retried"),
    ("alerts", "quiet", "for how long nothing must be seen before an alert clears"),
    ("alerts", "webhook_url", "read, but not acted on by this version"),
    ("agent", "max_attempts", "attempts of a run that does not say"),
    ("agent", "backoff_ms", "the wait before each but the first"),
    ("agent", "concurrency", "runs of a tenant at a time; 0 is no limit"),
    ("triggers", "roots", "conditions about files look below these folders only"),
    ("triggers", "check_ms", "how often conditions are looked at"),
    ("triggers", "settle_ms", "for how long a file must rest"),
    ("triggers", "stuck_ms", "after which a run holds its trigger up no longer"),
    ("types", "strict", "whether jobs of types that are not registered are refused"),
    ("types.NAME", "domain", "what it belongs to, for people"),
    ("types.NAME", "schedulable", "whether schedules may make jobs of it"),
    ("types.NAME", "priority", "0 to 255; higher is sooner"),
    ("types.NAME", "timeout_seconds", "how long an attempt may run"),
    ("types.NAME", "max_retries", "tries after the first"),
    ("types.NAME", "concurrency_limit", "jobs at a time"),
    ("types.NAME", "concurrency_scope", "counted over all (`global`), per `tenant` or per `user`"),
    ("types.NAME", "concurrency_key", "a label or JSON pointer: each key has a count of its own"),
    ("types.NAME", "sla", "`{ start_within_ms, finish_within_ms }`: later jobs raise an alert"),
    ("types.NAME", "rate_limit", "`{ per_second, burst, key }`: jobs handed out in a time"),
    (
        "types.NAME",
        "circuit",
        "`{ failure_ratio, min_calls, open_seconds }`: when nothing is handed out for a while",
    ),
    ("types.NAME", "queue", "the queue of its jobs"),
    ("types.NAME", "backoff_base_ms", "the wait before the first retry; it doubles"),
    ("types.NAME", "backoff_max_ms", "no wait is longer"),
    ("types.NAME", "executor", "a section as `[executor]`, for this type"),
    ("types.NAME.executor", "mode", "as in `[executor]`, like the others here"),
    ("types.NAME.executor", "command", "the program"),
    ("types.NAME.executor", "args", "its arguments"),
    ("types.NAME.executor", "cwd", "where it runs"),
    ("types.NAME.executor", "env", "the variables of the server that it sees"),
    ("types.NAME.executor", "shell", "whether the command is a line for `sh`"),
    ("types.NAME.executor", "kill_grace_ms", "between SIGTERM and SIGKILL"),
    ("types.NAME.executor", "url", "where jobs are sent"),
    ("types.NAME.executor", "timeout_ms", "how long an answer may take"),
    ("templates", "tenant", "the tenant that the schedules of templates belong to"),
    ("templates.NAME", "job_type", "the type of its jobs"),
    ("templates.NAME", "interval_seconds", "from one firing to the next"),
    ("templates.NAME", "cron", "a pattern of five or six fields"),
    ("templates.NAME", "timezone", "the IANA time zone of the pattern"),
];

/// Variable, who reads it, and what it says.
const VARIABLES: &[(&str, &str, &str)] = &[
    ("MAINSPRING_URL", "clients", "address of the server"),
    ("MAINSPRING_TOKEN", "clients", "access token"),
    ("MAINSPRING_TOKEN_FILE", "clients", "file that holds it, where secrets are files"),
    ("MAINSPRING_CA_FILE", "clients", "certificates to trust on https, instead of the system's"),
    ("MAINSPRING_TRACE_ID", "clients", "trace of every call"),
    ("MAINSPRING_LISTEN", "serve", "`[server] listen`"),
    ("MAINSPRING_TLS_CERT", "serve", "`[server] tls_cert`"),
    ("MAINSPRING_TLS_KEY", "serve", "`[server] tls_key`"),
    ("MAINSPRING_INTERNAL_ROUTES", "serve", "`[server] internal_routes`"),
    ("MAINSPRING_CONFIG", "serve", "configuration file, as `--config`"),
    (
        "MAINSPRING_DATA_DIR",
        "serve, clients, backup",
        "`[store] data_dir`; clients look there for `admin.token`",
    ),
    ("MAINSPRING_EPHEMERAL", "serve", "`[store] ephemeral`"),
    (
        "MAINSPRING_DATABASE_URL",
        "serve, migrate, doctor",
        "`[store] database_url`; counts more than `DATABASE_URL`",
    ),
    ("DATABASE_URL", "serve, migrate, doctor", "the same, where other programs read it too"),
    ("MAINSPRING_ALLOW_UNSAFE_POSTGRES", "serve", "`[store] allow_unsafe_postgres`"),
    ("MAINSPRING_EXECUTOR_MODE", "serve", "`[executor] mode`"),
    ("MAINSPRING_WEBHOOK_SECRET", "serve", "`[webhooks] secrets`, one"),
    ("MAINSPRING_NATS_URL", "serve", "`[nats] url`"),
    ("MAINSPRING_ADMIN_TOKEN", "serve", "an admin token from now on"),
    ("MAINSPRING_ADMIN_TOKEN_FILE", "serve", "file that holds it"),
    ("MAINSPRING_LOG", "all", "what is logged: `warn`, `mainspring_engine=debug`"),
    ("MAINSPRING_LOG_FORMAT", "all", "`text` or `json`, as `--log-format`"),
    ("NO_COLOR", "clients", "set to anything: no colours"),
    ("NOTIFY_SOCKET", "serve", "set by systemd: told when the server takes work and when it stops"),
    ("MAINSPRING_JOB_ID", "commands that are run for a job", "the job"),
    ("MAINSPRING_JOB_TYPE", "commands that are run for a job", "its type"),
    ("MAINSPRING_ATTEMPT", "commands that are run for a job", "which attempt, from 1"),
    ("MAINSPRING_RETRY_COUNT", "commands that are run for a job", "retries so far"),
    (
        "MAINSPRING_LEASE_TOKEN",
        "commands that are run for a job",
        "the lease, for effects and progress",
    ),
    (
        "MAINSPRING_EXECUTION_KEY",
        "commands that are run for a job",
        "names the execution for idempotent calls elsewhere",
    ),
    (
        "MAINSPRING_DISPATCH_ID",
        "commands that are run for a job",
        "names the dispatch, with `[executor] mode = \"process\"`",
    ),
];

/// The page.
pub(crate) fn page(command: clap::Command) -> String {
    let mut out = String::from(
        "# Reference\n\nMade from the code by `mainspring reference`; a test compares. Flags win \
         over variables, which win over the file, which wins over the defaults; `mainspring config \
         show` prints what is in force.\n\n## Settings\n",
    );
    let defaults = defaults();
    let mut section = "";
    for (of, key, meaning) in SETTINGS {
        if *of != section {
            section = of;
            let _ = write!(out, "\n### `[{of}]`\n\n| key | default | meaning |\n|---|---|---|\n");
        }
        let default = defaults.iter().find(|(name, _)| *name == format!("{of}.{key}"));
        let default = default.map_or_else(String::new, |(_, value)| format!("`{value}`"));
        let _ = writeln!(out, "| `{key}` | {default} | {meaning} |");
    }
    out.push_str("\n## Environment\n\n| variable | read by | says |\n|---|---|---|\n");
    for (name, reader, meaning) in VARIABLES {
        let _ = writeln!(out, "| `{name}` | {reader} | {meaning} |");
    }
    out.push_str("\n## Exit codes\n\n| code | means |\n|---|---|\n");
    for line in exit::HELP.lines().take_while(|line| !line.is_empty()).skip(1) {
        let line = line.trim();
        let (code, meaning) = line.split_once("  ").or(line.split_once(' ')).unwrap_or((line, ""));
        let _ = writeln!(out, "| {code} | {} |", meaning.trim());
    }
    out.push_str("\n## Commands\n");
    let mut command = command.disable_help_subcommand(true);
    command.build();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        describe(below, "mainspring", &mut out);
    }
    out.push_str("\n### Flags of every command\n\n| flag | meaning |\n|---|---|\n");
    for argument in command.get_arguments().filter(|argument| argument.is_global_set()) {
        row(argument, &mut out);
    }
    out
}

/// Every default, by `section.key`.
fn defaults() -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in show::toml(&Settings::standard()).lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once(" = ").filter(|_| !line.starts_with('#'))
        {
            found.push((format!("{section}.{key}"), value.to_owned()));
        }
    }
    found
}

fn describe(command: &clap::Command, above: &str, out: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let below: Vec<&clap::Command> =
        command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    let own: Vec<&clap::Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_global_set() && !argument.is_hide_set())
        .filter(|argument| !matches!(argument.get_id().as_str(), "help" | "version"))
        .collect();
    let _ = write!(out, "\n### `{name}`\n\n{about}\n");
    if !own.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
        own.into_iter().for_each(|argument| row(argument, out));
    }
    for below in below {
        describe(below, &name, out);
    }
}

fn row(argument: &clap::Arg, out: &mut String) {
    let value = argument.get_value_names().unwrap_or_default().join(" ");
    let takes = argument.get_action().takes_values();
    let name = match (argument.get_long(), argument.get_short()) {
        (Some(long), Some(short)) => format!("-{short}, --{long}"),
        (Some(long), None) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let shown = match (name.is_empty(), takes) {
        (true, _) => value,
        (false, true) => format!("{name} {value}"),
        (false, false) => name,
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    let help = help.replace('|', "\\|").replace('\n', " ");
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|it| it.to_string_lossy().into_owned()).collect();
    let default = match defaults.is_empty() || !takes {
        true => String::new(),
        false => format!(" [default: {}]", defaults.join(", ")),
    };
    let _ = writeln!(out, "| `{shown}` | {help}{default} |");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{file, reader};
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_setting_that_is_read_is_in_the_reference_and_no_other() {
        let sections: BTreeSet<&str> = SETTINGS.iter().map(|(section, ..)| *section).collect();
        let text: String = sections.iter().map(|section| format!("[{section}]\n")).collect();
        reader::asked_for();
        // Most of it is refused, for much is missing; what is asked for is what counts.
        let _ = file::read(&text, Settings::standard());
        let asked: BTreeSet<(String, String)> = reader::asked_for().into_iter().collect();
        let told = SETTINGS.iter().map(|(of, key, _)| ((*of).to_owned(), (*key).to_owned()));
        let told: BTreeSet<(String, String)> = told.collect();
        let not_told: Vec<_> = asked.difference(&told).filter(|(of, _)| !of.is_empty()).collect();
        assert!(not_told.is_empty(), "read, but not in the reference: {not_told:?}");
        let not_read: Vec<_> = told.difference(&asked).collect();
        assert!(not_read.is_empty(), "in the reference, but not read: {not_read:?}");
        let roots = asked.iter().filter(|(of, _)| of.is_empty()).map(|(_, key)| key.as_str());
        let roots: BTreeSet<&str> = roots.collect();
        assert!(roots.iter().all(|root| sections.contains(root)), "{roots:?}");
    }

    /// Variables of tests and measurements, which nobody else sets.
    const INNER: [&str; 9] = [
        "MAINSPRING_AXE",
        "MAINSPRING_BENCH_SERVER",
        "MAINSPRING_BLESS",
        "MAINSPRING_PICTURES",
        "MAINSPRING_SHIM_EIO",
        "MAINSPRING_SHIM_NOTE",
        "MAINSPRING_TEST_DIES",
        "MAINSPRING_TEST_POSTGRES",
        "MAINSPRING_BINARY",
    ];

    #[test]
    fn every_variable_in_the_sources_is_in_the_reference() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (mut files, mut found) = (Vec::new(), BTreeSet::new());
        for folder in std::fs::read_dir(root.join("crates")).unwrap() {
            gather(&folder.unwrap().path().join("src"), &mut files);
        }
        gather(&root.join("sdks/python/src"), &mut files);
        gather(&root.join("sdks/typescript/src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for (at, _) in text.match_indices("MAINSPRING_") {
                let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
                let name: String = text[at..].chars().take_while(|c| is_part(*c)).collect();
                if name != "MAINSPRING_" && !name.ends_with('_') {
                    found.insert(name);
                }
            }
        }
        assert!(found.len() > 20, "{found:?}");
        let told = |name: &String| VARIABLES.iter().any(|(known, ..)| known == name);
        let untold: Vec<_> =
            found.iter().filter(|name| !told(name) && !INNER.contains(&name.as_str())).collect();
        assert!(untold.is_empty(), "not in the reference: {untold:?}");
    }

    fn gather(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else { return };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => gather(&path, files),
                false => files.push(path),
            }
        }
    }

    /// `MAINSPRING_BLESS=1` writes it anew.
    #[test]
    fn the_reference_that_is_kept_is_the_one_that_is_made() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference.md");
        let made = page(<crate::Cli as clap::CommandFactory>::command());
        if std::env::var_os("MAINSPRING_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
            return;
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == made, "docs/reference.md is stale: MAINSPRING_BLESS=1 writes it anew");
    }
}
