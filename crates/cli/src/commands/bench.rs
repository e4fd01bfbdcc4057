//! `mainspring bench`: measures this binary against a server it starts itself, and the peers beside
//! it in the same run.

use crate::bench::report::{self, COLUMNS, Row};
use crate::bench::{echo as bare, suite};
use crate::exit::{self, usage};
use crate::output::{Output, say, say_json, table};
use crate::span;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Workloads:
  E1   submit in batches of 1000           E5   latency from submit to handler
  E2   submit one per request              E6   submit and drain beside a million waiting jobs
  E3   drain 1000 per request              E7   submit while draining
  E4   drain one per request               E8   start after kill -9
  ram  memory per waiting job

Every figure is the median of some runs. Compare ratios within one run, never figures of two days.")]
pub(crate) struct Args {
    /// Workloads, such as E1 or ram
    #[arg(value_name = "WORKLOAD")]
    only: Vec<String>,
    /// All of E1 to E8
    #[arg(long)]
    suite: bool,
    /// Put the table into this file, between its markers
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "docs/benchmarks.md")]
    write: Option<PathBuf>,
    /// Runs per workload
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Jobs of the batch workloads; the single ones do a fifth
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(10_000..))]
    jobs: u32,
    /// Jobs that wait in E6, E8 and ram
    #[arg(long, default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1_000..))]
    waiting: u32,
    /// How long latency is measured
    #[arg(long, value_parser = span::parse, default_value = "10s", value_name = "SPAN")]
    span: Duration,
    /// Where servers keep their state; put it on the disk you mean [default: the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Where the bare handler listens.
#[derive(Debug, clap::Args)]
pub(crate) struct EchoArgs {
    address: SocketAddr,
}

pub(crate) async fn echo(args: EchoArgs) -> anyhow::Result<u8> {
    bare::serve(args.address).await?;
    Ok(exit::OK)
}

pub(crate) fn run(args: Args, output: Output) -> anyhow::Result<u8> {
    let names = names(&args)?;
    let plan = suite::Plan {
        runs: usize::from(args.runs),
        jobs: args.jobs as usize,
        waiting: args.waiting as usize,
        span: args.span,
        directory: suite::directory(args.dir.as_deref()),
    };
    let mut rows: Vec<Row> = Vec::new();
    for name in names {
        eprintln!("measuring {name} in {}", plan.directory.display());
        match name.as_str() {
            "RAM" => rows.push(suite::ram(&plan)?),
            _ => rows.extend(suite::run(&name, &plan)?),
        }
    }
    if output == Output::Json {
        let told = rows
            .iter()
            .map(|row| serde_json::json!({"row": row, "ratio": row.ratio(), "met": row.is_met()}));
        say_json(&serde_json::Value::Array(told.collect()));
    } else {
        say(&table(&COLUMNS, rows.iter().map(Row::cells)));
    }
    if let Some(path) = &args.write {
        report::write(path, &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(exit::OK)
}

fn names(args: &Args) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = args.only.iter().map(|name| name.to_uppercase()).collect();
    if args.suite {
        names.extend(suite::NAMES.map(ToOwned::to_owned));
    }
    if names.is_empty() {
        return Err(usage("name a workload, or say --suite; see --help for the list"));
    }
    for name in &names {
        if name != "RAM" && !suite::NAMES.contains(&name.as_str()) {
            return Err(usage(format!("there is no workload {name:?}; see --help for the list")));
        }
    }
    Ok(names)
}
