//! `mainspring migrate`: where a database stands, what would be done to it, and doing it.

use crate::commands::postgres::Place;
use crate::exit;
use crate::output::{Output, record, say, say_json};
use crate::progress::Progress;
use mainspring_store_postgres::{
    MIGRATIONS, Migration, MigrationStatus, PostgresConfig, address, refuse_problems, status, up,
};
use serde_json::{Value, json};

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show which version the database has, and what is missing or wrong
    Status(Place),
    /// Print the SQL that `up` would run, and whether servers may go on meanwhile
    Plan(Place),
    /// Bring the database to this version
    Up(Place),
}

pub(crate) async fn run(verb: Verb, output: Output) -> anyhow::Result<u8> {
    match verb {
        Verb::Status(place) => show_status(&place.resolve()?, output).await,
        Verb::Plan(place) => plan(&place.resolve()?, output).await,
        Verb::Up(place) => bring_up(&place.resolve()?, output).await,
    }
}

async fn show_status(config: &PostgresConfig, output: Output) -> anyhow::Result<u8> {
    let found = status(config).await?;
    if output == Output::Json {
        say_json(&json!({
            "schema": config.schema, "version": found.version, "newest": newest(),
            "pending": found.pending, "newer": found.newer, "problems": found.problems,
        }));
    } else {
        let version = found.version.map_or("none: empty".to_owned(), |version| version.to_string());
        let mut fields = vec![
            ("database", address::shown(&config.url)),
            ("schema", config.schema.clone()),
            ("version", version),
            ("pending", listed(&found.pending)),
        ];
        if !found.newer.is_empty() {
            fields.push(("newer", format!("{}, compatible", listed(&found.newer))));
        }
        fields.extend(found.problems.iter().map(|problem| ("problem", problem.clone())));
        say(&record(&fields));
    }
    Ok(if found.problems.is_empty() { exit::OK } else { exit::REFUSED })
}

async fn plan(config: &PostgresConfig, output: Output) -> anyhow::Result<u8> {
    let found = status(config).await?;
    refuse_problems(&found)?;
    let steps: Vec<&Migration> = pending(&found).collect();
    if output == Output::Json {
        let steps: Vec<Value> = steps.iter().map(|step| as_json(step, &config.schema)).collect();
        say_json(&json!({ "version": found.version, "steps": steps }));
        return Ok(exit::OK);
    }
    if steps.is_empty() {
        say("-- nothing to do");
    }
    for step in steps {
        let how = match (found.version, step.is_compatible()) {
            (None, _) => "the database is empty",
            (Some(_), true) => "compatible: servers of the version before may go on",
            (Some(_), false) => "breaking: stop all servers first",
        };
        let manner = match step.is_transactional() {
            true => "in one transaction",
            false => "statement by statement, outside of a transaction",
        };
        say(&format!("-- step {} ({}), {how}; {manner}", step.version, step.name));
        say(step.sql(&config.schema).trim_end());
    }
    Ok(exit::OK)
}

async fn bring_up(config: &PostgresConfig, output: Output) -> anyhow::Result<u8> {
    let is_told = output == Output::Table;
    let pending = status(config).await?.pending.len() as u64;
    let bar = Progress::of_things("migrating", Some(pending), output);
    let mut begun = 0;
    let taken = up(config, &mut |step| {
        // It is told as it begins.
        bar.at(begun, pending.max(begun));
        begun += 1;
        if is_told {
            bar.say(&format!("step {} ({})", step.version, step.name));
        }
    })
    .await?;
    drop(bar);
    if output == Output::Json {
        say_json(&json!({ "taken": taken, "version": newest() }));
    } else if taken.is_empty() {
        say(&format!("nothing to do: the database has version {}", newest()));
    } else {
        say(&format!("done: the database has version {}", newest()));
    }
    Ok(exit::OK)
}

fn pending(found: &MigrationStatus) -> impl Iterator<Item = &'static Migration> {
    MIGRATIONS.iter().filter(|step| found.pending.contains(&step.version))
}

fn newest() -> i32 {
    MIGRATIONS.last().map_or(0, |step| step.version)
}

fn listed(versions: &[i32]) -> String {
    match versions {
        [] => "none".to_owned(),
        some => some.iter().map(i32::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn as_json(step: &Migration, schema: &str) -> Value {
    json!({
        "version": step.version, "name": step.name, "compatible": step.is_compatible(),
        "transactional": step.is_transactional(), "sql": step.sql(schema),
    })
}
