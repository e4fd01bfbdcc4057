//! `mainspring bench`: hands over to the benchmark and shows what it measured. With `--url` it is a
//! server that runs already: `bench/running.rs`.

mod running;

use crate::exit;
use crate::output::{Output, say, say_json, table};
use crate::session::Session;
use mainspring_bench::{Args, COLUMNS, EchoArgs, Row, TurnArgs};
use serde_json::{Value, json};

pub(crate) fn run(args: &Args, output: Output) -> anyhow::Result<u8> {
    mainspring_bench::run(args, &|rows| show(rows, output))?;
    Ok(exit::OK)
}

/// Measures the server that was named, and none that only the environment names: it is put under
/// load.
pub(crate) async fn run_running(args: &Args, session: Session) -> anyhow::Result<u8> {
    running::run(args.running()?, session).await
}

pub(crate) async fn echo(args: EchoArgs) -> anyhow::Result<u8> {
    mainspring_bench::echo(args).await?;
    Ok(exit::OK)
}

pub(crate) fn turn(args: &TurnArgs) -> anyhow::Result<u8> {
    mainspring_bench::turn(args)?;
    Ok(exit::OK)
}

fn show(rows: &[Row], output: Output) {
    if output == Output::Json {
        let told =
            rows.iter().map(|row| json!({"row": row, "ratio": row.ratio(), "met": row.is_met()}));
        say_json(&Value::Array(told.collect()));
    } else {
        say(&table(&COLUMNS, rows.iter().map(Row::cells)));
    }
}
