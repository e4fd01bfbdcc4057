//! What triggers on files cost, on either store. S3: ten thousand of them watch a file each; what
//! an idle server does for them, and how soon one fires after its file was touched and left alone.

use super::http::Connection;
use super::job::{Requests, number};
use super::neighbours::token;
use super::report::{Row, Target as Goal};
use super::schedules::{self, Plan, idle_ms_per_second, on_fresh_server_with};
use super::server::Server;
use super::stopwatch::Stopwatch;
use anyhow::bail;
use indicatif::HumanCount;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The workload by name.
pub(crate) const NAME: &str = "S3";

/// A touched file has its run this long after it was left alone for [`SETTLE_MS`].
const LATE_MS_MAX: f64 = 1_000.0;
/// A server that only watches takes this much processor time: two of a hundred.
const IDLE_MS_MAX: f64 = 20.0;
/// How long a file must be left alone, as the server is told.
const SETTLE_MS: u64 = 500;
/// Triggers of one tenant.
const PER_TENANT: usize = 1_000;
/// Files that are touched, one after another.
const TOUCHED: usize = 100;
/// How often is looked whether a trigger has fired.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a trigger may take before the row is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures S3.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let files = tempfile::tempdir_in(&plan.directory)?;
    for nth in 0..plan.due {
        std::fs::write(file(files.path(), nth), "begun")?;
    }
    let config = format!("[triggers]\nroots = [{:?}]\nsettle_ms = {SETTLE_MS}\n", files.path());
    let (idle, late) = on_fresh_server_with(plan, &config, |server| {
        let tenants = make(server, plan.due)?;
        // The first look at each file is over when one that came last has been seen to fire.
        let last = plan.due - 1;
        fires(server.address(), (&tenants, files.path()), last)?;
        let idle = idle_ms_per_second(server, plan.idle)?;
        let step = plan.due.div_ceil(TOUCHED).max(1);
        let touched = (0..last).step_by(step);
        let late = touched.map(|nth| fires(server.address(), (&tenants, files.path()), nth));
        Ok((idle, late.collect::<anyhow::Result<Vec<f64>>>()?))
    })?;
    let count = HumanCount(plan.due as u64);
    let row = |what: String, figure, unit, goal: f64| Row {
        id: NAME,
        what,
        figure,
        spread: None,
        unit,
        beside: Some(("goal".to_owned(), goal)),
        target: Goal::AtMost(1.0),
    };
    let worst = late.into_iter().fold(0.0, f64::max);
    let fired = format!("a file of {count} is touched and settles, until its run is there, worst");
    let watched = format!("processor time of an idle server that watches {count} files");
    Ok(vec![row(fired, worst, "ms", LATE_MS_MAX), row(watched, idle, "ms/s", IDLE_MS_MAX)])
}

fn name(nth: usize) -> String {
    format!("file-{nth}")
}

fn file(folder: &Path, nth: usize) -> std::path::PathBuf {
    folder.join(name(nth))
}

/// Makes a trigger for each file; tokens of the tenants they belong to.
fn make(server: &Server, count: usize) -> anyhow::Result<Vec<Requests>> {
    let tenants = (0..count.div_ceil(PER_TENANT))
        .map(|nth| token(&server.requests(), server.address(), &format!("watcher-{nth}"), "ann"))
        .collect::<anyhow::Result<Vec<Requests>>>()?;
    schedules::each(server.address(), count, |connection, nth| {
        let name = name(nth);
        let wish = format!(
            "{{\"id\":\"{name}\",\"type\":\"conditional\",\"prompt\":\"look\",\"condition\":\
             {{\"type\":\"file_changed\",\"params\":{{\"path\":\"{name}\"}}}}}}"
        );
        let requests = &tenants[nth / PER_TENANT];
        connection.ask_ok(&requests.post("/api/v1/triggers", wish.as_str()))?;
        Ok(())
    })?;
    Ok(tenants)
}

/// Touches a file and waits for its trigger to fire; how many milliseconds after it had settled.
fn fires(
    address: SocketAddr,
    (tenants, folder): (&[Requests], &Path),
    nth: usize,
) -> anyhow::Result<f64> {
    let request = tenants[nth / PER_TENANT].get(&format!("/api/v1/triggers/{}", name(nth)));
    let mut connection = Connection::open(address)?;
    std::fs::write(file(folder, nth), format!("touched {nth}"))?;
    let stopwatch = Stopwatch::start();
    while number(connection.ask_ok(&request)?, "fired_count") != Some(1) {
        if stopwatch.elapsed() > PATIENCE {
            bail!("a trigger has not fired {PATIENCE:?} after its file was touched");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    let settled = Duration::from_millis(SETTLE_MS);
    Ok(stopwatch.elapsed().saturating_sub(settled).as_secs_f64() * 1e3)
}
