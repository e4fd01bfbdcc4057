//! `mainspring doctor`: is everything in order? Looks, changes nothing, and says what to do.

use crate::commands::postgres::Place;
use crate::exit;
use crate::output::{Output, plain, say, say_json, table};
use crate::session::{Session, TOKEN_FILE};
use mainspring_sdk::api::runtime::Runtime;
use mainspring_store_memory::disk::RealDisk;
use mainspring_store_memory::error::FileError;
use mainspring_store_postgres::doctor::{Severity, examine};
use serde::Serialize;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Clocks further apart than this are worth a warning.
const SKEW_SECS_MAX: i64 = 2;
/// Less room than this is worth a warning.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// What else to look at.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also look at this data directory
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Failure,
}

#[derive(Debug, Serialize)]
struct Check {
    check: &'static str,
    verdict: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

fn check(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Check {
    Check { check, verdict, detail: detail.into(), cure: None }
}

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    // With a database named, it is about the database: no server has to run.
    if args.place.database_url.is_some() || args.place.config.is_some() {
        let checks = database(&args.place).await?;
        return tell(&checks, exit::REFUSED, session.output);
    }
    let mut checks = Vec::new();
    let mut code = exit::OK;
    let health = session.client.health().await;
    match &health {
        Ok(health) if health.status == 200 => {
            checks.push(check("server", Verdict::Ok, session.client.url()));
            checks.push(clock(health.date.as_deref(), jiff::Timestamp::now()));
        }
        Ok(health) => {
            let detail = format!("{} answers {}", session.client.url(), health.status);
            checks.push(check("server", Verdict::Failure, detail));
        }
        Err(_) => {
            let detail = format!("{} cannot be reached", session.client.url());
            checks.push(check("server", Verdict::Failure, detail));
            code = exit::UNREACHABLE;
        }
    }
    if health.is_ok() {
        match session.client.runtime().await {
            Ok(runtime) => {
                let detail = format!("accepted, from {}", session.token_from);
                checks.push(check("token", Verdict::Ok, detail));
                checks.extend(server(&runtime));
            }
            Err(error) => {
                let detail = format!("from {}: {error}", session.token_from);
                checks.push(check("token", Verdict::Failure, detail));
                code = exit::DENIED;
            }
        }
    }
    if let Some(path) = &args.data_dir {
        checks.extend(directory(path));
    }
    tell(&checks, code, session.output)
}

/// Prints the checks; the exit code is `code` or worse if one failed.
fn tell(checks: &[Check], code: u8, output: Output) -> anyhow::Result<u8> {
    if output == Output::Json {
        say_json(&serde_json::to_value(checks)?);
    } else {
        let rows = checks.iter().map(|found| {
            let verdict = match found.verdict {
                Verdict::Ok => "ok",
                Verdict::Warning => "warning",
                Verdict::Failure => "FAILURE",
            };
            vec![found.check.to_owned(), verdict.to_owned(), found.detail.clone()]
        });
        say(&table(&["check", "verdict", "detail"], rows));
        for found in checks {
            if let Some(cure) = &found.cure {
                say(&format!("\n{}: {}\n  {}", found.check, plain(&found.detail), plain(cure)));
            }
        }
    }
    let has_failure = checks.iter().any(|found| found.verdict == Verdict::Failure);
    Ok(if has_failure { code.max(exit::REFUSED) } else { exit::OK })
}

/// What is to be said about a database.
async fn database(place: &Place) -> anyhow::Result<Vec<Check>> {
    let report = examine(&place.resolve()?).await?;
    let facts = report.facts.into_iter().map(|(topic, text)| check(topic, Verdict::Ok, text));
    let findings = report.findings.into_iter().map(|found| Check {
        check: found.code,
        verdict: match found.severity {
            Severity::Warning => Verdict::Warning,
            Severity::Failure => Verdict::Failure,
        },
        detail: found.text,
        cure: Some(found.cure),
    });
    let notes = report.notes.into_iter().map(|note| check("note", Verdict::Ok, note));
    Ok(facts.chain(findings).chain(notes).collect())
}

/// Compares our clock with the `Date` of an answer, which has whole seconds.
fn clock(date: Option<&str>, now: jiff::Timestamp) -> Check {
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let Some(theirs) = date.and_then(|date| parser.parse_timestamp(date).ok()) else {
        return check("clock", Verdict::Warning, "the server did not say what time it is");
    };
    let skew = now.as_second() - theirs.as_second();
    let verdict = if skew.abs() > SKEW_SECS_MAX { Verdict::Warning } else { Verdict::Ok };
    check("clock", verdict, format!("{skew} s ahead of the server"))
}

fn server(runtime: &Runtime) -> Vec<Check> {
    let own = env!("CARGO_PKG_VERSION");
    let same = runtime.version == own;
    let version = format!("server {}, command {own}", runtime.version);
    let version_verdict = if same { Verdict::Ok } else { Verdict::Warning };
    let store = &runtime.store;
    let (store_verdict, detail) = match (&store.broken, store.low_on_space) {
        (Some(why), _) => (Verdict::Failure, why.clone()),
        (None, _) if !store.healthy => (Verdict::Failure, "not serving".into()),
        (None, true) => (Verdict::Failure, "low on space: new work is refused".into()),
        (None, false) if store.damaged_blocks > 0 => {
            let text = "damaged blocks of finished jobs; look at them with --data-dir";
            (Verdict::Failure, format!("{} {text}", store.damaged_blocks))
        }
        (None, false) => (Verdict::Ok, store.kind.clone()),
    };
    let mut checks =
        vec![check("version", version_verdict, version), check("store", store_verdict, detail)];
    if let Some(counters) = &runtime.counters {
        let waiting =
            format!("{} due, {} in the dead letter queue", counters.due, counters.dlq_open);
        checks.push(check("jobs", Verdict::Ok, waiting));
    } else if let Some(tenant) = &runtime.tenant {
        let waiting = format!("{} of your tenant have not ended", tenant.jobs);
        checks.push(check("jobs", Verdict::Ok, waiting));
    }
    checks
}

fn directory(path: &Path) -> Vec<Check> {
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(error) => {
            let detail = format!("{}: {error}", path.display());
            return vec![check("data directory", Verdict::Failure, detail)];
        }
    };
    let mode = found.permissions().mode() & 0o777;
    let (verdict, advice) = match mode & 0o077 {
        0 => (Verdict::Ok, ""),
        _ => (Verdict::Warning, "; others can look into it: chmod 700"),
    };
    let mut checks =
        vec![check("data directory", verdict, format!("{} mode {mode:o}{advice}", path.display()))];
    if let Ok(token) = std::fs::metadata(path.join(TOKEN_FILE)) {
        let mode = token.permissions().mode() & 0o777;
        let (verdict, advice) = match mode & 0o077 {
            0 => (Verdict::Ok, ""),
            _ => (Verdict::Failure, "; others can read it: chmod 600, then issue a new token"),
        };
        checks.push(check("token file", verdict, format!("mode {mode:o}{advice}")));
    }
    checks.extend(files(path));
    match rustix::fs::statvfs(path) {
        Ok(space) => {
            let free = space.f_bavail.saturating_mul(space.f_frsize);
            let verdict = if free < FREE_BYTES_MIN { Verdict::Warning } else { Verdict::Ok };
            let gigabytes = free as f64 / f64::from(1 << 30);
            checks.push(check("free space", verdict, format!("{gigabytes:.1} GiB")));
        }
        Err(error) => checks.push(check("free space", Verdict::Warning, error.to_string())),
    }
    checks
}

/// Reads every block of every file but the journal's, which a server checks when it starts.
fn files(path: &Path) -> Vec<Check> {
    let disk = match RealDisk::open(path) {
        Ok(disk) => disk,
        Err(error) => return vec![check("files", Verdict::Failure, error.to_string())],
    };
    let report = match mainspring_store_memory::doctor::examine(&disk) {
        Ok(report) => report,
        Err(error) => return vec![damaged(&error)],
    };
    if report.damage.is_empty() {
        let detail = format!("{} blocks in {} files are whole", report.blocks, report.files);
        return vec![check("files", Verdict::Ok, detail)];
    }
    report.damage.iter().map(damaged).collect()
}

fn damaged(error: &FileError) -> Check {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    let cure = "stop the server and restore this file from a backup; what is in the damaged part \
                is refused meanwhile, everything else goes on";
    Check {
        check: "files",
        verdict: Verdict::Failure,
        detail: format!("{error}{}", cause.unwrap_or_default()),
        cure: Some(cure.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_skew_is_measured_against_the_date_header() {
        let now: jiff::Timestamp = "1994-11-06T08:49:38Z".parse().unwrap();
        assert_eq!(clock(Some("Sun, 06 Nov 1994 08:49:37 GMT"), now).verdict, Verdict::Ok);
        assert_eq!(clock(Some("Sun, 06 Nov 1994 08:40:37 GMT"), now).verdict, Verdict::Warning);
        assert_eq!(clock(Some("yesterday"), now).verdict, Verdict::Warning);
        assert_eq!(clock(None, now).verdict, Verdict::Warning);
    }

    #[test]
    fn a_directory_others_can_read_is_worth_a_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(path.join(TOKEN_FILE), "t").unwrap();
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(path.join(TOKEN_FILE), mode).unwrap();
        let verdicts: Vec<_> = directory(path).iter().map(|found| found.verdict).collect();
        assert_eq!(verdicts[..2], [Verdict::Warning, Verdict::Failure]);
        assert_eq!(directory(Path::new("/no/such/place"))[0].verdict, Verdict::Failure);
    }
}
