//! `mainspring move`: everything from one store to another, while no server uses either.

use crate::commands::postgres::{self, Place};
use crate::exit::{self, usage};
use crate::output::{Output, say, say_json};
use crate::progress::Progress;
use indicatif::HumanCount;
use mainspring_engine::{Clock, SystemClock};
use mainspring_store::record::Record;
use mainspring_store::transfer::Seal;
use mainspring_store_memory::transfer::{MemoryExport, MemoryImport};
use mainspring_store_postgres::transfer::{PostgresExport, PostgresImport};
use mainspring_store_postgres::{PostgresConfig, address};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// From where to where.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where everything is: memory:DIR or postgres://…
    #[arg(long, value_name = "STORE")]
    from: String,
    /// Where it shall be, empty so far: memory:DIR or postgres://…
    #[arg(long, value_name = "STORE")]
    to: String,
    /// Configuration file (TOML), for the schema in PostgreSQL
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

enum End {
    Memory(PathBuf),
    Postgres(Box<PostgresConfig>),
}

enum Source {
    Memory(MemoryExport),
    Postgres(Box<PostgresExport>),
}

enum Target {
    Memory(MemoryImport),
    Postgres(Box<PostgresImport>),
}

pub(crate) async fn run(args: Args, output: Output) -> anyhow::Result<u8> {
    let (from, to) = (end(&args.from, &args)?, end(&args.to, &args)?);
    let mut source = Source::open(&from).await?;
    let mut target = Target::open(&to).await?;
    let mut seal = Seal::default();
    let bar = Progress::of_things("moving", None, output);
    while let Some(records) = source.next().await? {
        records.iter().for_each(|record| seal.add(record));
        let count = records.len() as u64;
        target.put(records).await?;
        bar.add(count);
    }
    drop(bar);
    if output == Output::Table {
        say("reading it again to compare");
    }
    target.finish(&seal).await?;
    source.close().await?;
    if output == Output::Json {
        let counts = seal.counts().map(|(kind, count)| (kind.to_owned(), Value::from(count)));
        say_json(&Value::Object(counts.collect::<Map<_, _>>()));
    } else {
        let counts = seal.counts().filter(|(kind, _)| *kind != "totals");
        let counts: Vec<_> = counts.map(|(kind, n)| format!("{} {kind}", HumanCount(n))).collect();
        say(&format!("moved and compared: {}", counts.join(", ")));
        say(&format!("{} is as it was; use only one of the two from now on", shown(&args.from)));
    }
    Ok(exit::OK)
}

fn shown(place: &str) -> String {
    let is_directory = place.starts_with("memory:");
    if is_directory { place.to_owned() } else { address::shown(place) }
}

fn end(text: &str, args: &Args) -> anyhow::Result<End> {
    if let Some(directory) = text.strip_prefix("memory:").filter(|rest| !rest.is_empty()) {
        return Ok(End::Memory(directory.into()));
    }
    postgres::check_url(text, "move").map_err(|_| {
        usage(format!("{} is no store; write memory:DIR or postgres://…", shown(text)))
    })?;
    let place = Place { database_url: Some(text.to_owned()), config: args.config.clone() };
    Ok(End::Postgres(Box::new(place.resolve()?)))
}

impl Source {
    async fn open(end: &End) -> anyhow::Result<Self> {
        Ok(match end {
            End::Memory(path) => {
                Source::Memory(MemoryExport::open(path, SystemClock::new().now())?)
            }
            End::Postgres(config) => {
                Source::Postgres(Box::new(PostgresExport::open(config).await?))
            }
        })
    }

    async fn next(&mut self) -> anyhow::Result<Option<Vec<Record>>> {
        Ok(match self {
            Source::Memory(export) => export.next().await?,
            Source::Postgres(export) => export.next().await?,
        })
    }

    async fn close(self) -> anyhow::Result<()> {
        match self {
            Source::Memory(export) => Ok(export.close().await?),
            // Nothing was written: the end of the connection is the end of the transaction.
            Source::Postgres(_) => Ok(()),
        }
    }
}

impl Target {
    async fn open(end: &End) -> anyhow::Result<Self> {
        Ok(match end {
            End::Memory(path) => {
                Target::Memory(MemoryImport::open(path, SystemClock::new().now())?)
            }
            End::Postgres(config) => {
                Target::Postgres(Box::new(PostgresImport::open(config).await?))
            }
        })
    }

    async fn put(&mut self, records: Vec<Record>) -> anyhow::Result<()> {
        match self {
            Target::Memory(import) => Ok(import.put(records)?),
            Target::Postgres(import) => Ok(import.put(records).await?),
        }
    }

    async fn finish(self, seal: &Seal) -> anyhow::Result<()> {
        match self {
            Target::Memory(import) => Ok(import.finish(seal).await?),
            Target::Postgres(import) => Ok(import.finish(seal).await?),
        }
    }
}
