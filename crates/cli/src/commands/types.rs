//! `mainspring types`: the registry. Its JSON keeps the camelCase rows that callers of the older
//! job tools read.

use crate::exit;
use crate::output::{Output, say, say_json, table};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::registry::{
    SetType, Type, TypeCircuit, TypeExecutor, TypeRateLimit, TypeSla,
};
use serde_json::{Value, json};
use std::time::Duration;

/// `types` alone lists.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

/// What to do with types.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Every registered type
    List,
    /// One type
    Get {
        /// Its name
        name: String,
    },
    /// Register or replace a type; what is left out gets its default
    Set(Box<SetArgs>),
    /// Stop handing out its jobs
    Pause {
        /// Its name
        name: String,
    },
    /// Hand out its jobs again
    Resume {
        /// Its name
        name: String,
    },
    /// Close its circuit, with nothing in mind
    ResetCircuit {
        /// Its name
        name: String,
    },
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// Its name
    name: String,
    /// Business domain
    #[arg(long)]
    domain: Option<String>,
    /// Whether schedules may create jobs of it
    #[arg(long, value_name = "true|false")]
    schedulable: Option<bool>,
    /// Priority of jobs that do not say, 0 to 255; higher is sooner
    #[arg(long)]
    priority: Option<u8>,
    /// How long one attempt may run, such as 30m
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    timeout: Option<Duration>,
    /// Extra tries
    #[arg(long)]
    max_retries: Option<u16>,
    /// Most jobs that may run at a time
    #[arg(long)]
    concurrency_limit: Option<u32>,
    /// What the limit is counted over
    #[arg(long, value_parser = ["global", "tenant", "user"])]
    concurrency_scope: Option<String>,
    /// Queue of jobs that do not say
    #[arg(long)]
    queue: Option<String>,
    /// Raise an alert if a job starts so much later than due, such as 5m
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    start_within: Option<Duration>,
    /// Raise an alert if a job ends so much later than due
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    finish_within: Option<Duration>,
    #[command(flatten)]
    executor: ExecutorArgs,
    #[command(flatten)]
    flow: FlowArgs,
}

/// What else holds its jobs back.
#[derive(Debug, clap::Args)]
struct FlowArgs {
    /// Count the limit by key: the name of a label, or a JSON pointer into the payload
    #[arg(long, value_name = "KEY")]
    concurrency_key: Option<String>,
    /// Most jobs handed out a second
    #[arg(long, value_name = "PER_SECOND")]
    rate: Option<f64>,
    /// Most jobs handed out at once after a pause
    #[arg(long, requires = "rate")]
    rate_burst: Option<u32>,
    /// A rate for each key: the name of a label, or a JSON pointer into the payload
    #[arg(long, requires = "rate", value_name = "KEY")]
    rate_key: Option<String>,
    /// Share of failing attempts from which on nothing is handed out for a while
    #[arg(long, value_name = "RATIO")]
    circuit_failure_ratio: Option<f64>,
    /// Of so many attempts
    #[arg(long, requires = "circuit_failure_ratio", default_value_t = 20)]
    circuit_min_calls: u8,
    /// For how long
    #[arg(long, value_parser = span::parse, requires = "circuit_failure_ratio", value_name = "SPAN", default_value = "30s")]
    circuit_open: Duration,
}

impl FlowArgs {
    fn rate_limit(&self) -> Option<TypeRateLimit> {
        let (burst, key) = (self.rate_burst, self.rate_key.clone());
        self.rate.map(|per_second| TypeRateLimit { per_second, burst, key })
    }

    fn circuit(&self) -> Option<TypeCircuit> {
        Some(TypeCircuit {
            failure_ratio: self.circuit_failure_ratio?,
            min_calls: self.circuit_min_calls,
            open_seconds: u32::try_from(self.circuit_open.as_secs().max(1)).unwrap_or(u32::MAX),
        })
    }
}

/// How jobs of the type are executed; as the deployment says if left out.
#[derive(Debug, clap::Args)]
struct ExecutorArgs {
    /// How its jobs are executed
    #[arg(long, value_parser = ["pull", "inprocess", "process", "webhook"], value_name = "MODE")]
    executor: Option<String>,
    /// process: the program, one of those that the server may start
    #[arg(long, requires = "executor")]
    command: Option<String>,
    /// process: an argument; give several times
    #[arg(long = "arg", requires = "executor", allow_hyphen_values = true)]
    args: Option<Vec<String>>,
    /// process: the directory it runs in
    #[arg(long, requires = "executor")]
    cwd: Option<String>,
    /// process: a variable it gets, NAME or NAME=VALUE; give several times
    #[arg(long, requires = "executor")]
    env: Option<Vec<String>>,
    /// process: let /bin/sh read the command
    #[arg(long, requires = "executor")]
    shell: bool,
    /// process: what it has between SIGTERM and SIGKILL
    #[arg(long, value_parser = span::parse, requires = "executor", value_name = "SPAN")]
    kill_grace: Option<Duration>,
    /// webhook: where the request goes
    #[arg(long, requires = "executor")]
    webhook_url: Option<String>,
    /// webhook: how long the answer may take
    #[arg(long, value_parser = span::parse, requires = "executor", value_name = "SPAN")]
    webhook_timeout: Option<Duration>,
}

impl ExecutorArgs {
    fn asked_for(self) -> Option<TypeExecutor> {
        let millis = |span: Duration| u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
        Some(TypeExecutor {
            mode: self.executor?,
            command: self.command,
            args: self.args,
            cwd: self.cwd,
            env: self.env,
            shell: self.shell.then_some(true),
            kill_grace_ms: self.kill_grace.map(millis),
            url: self.webhook_url,
            timeout_ms: self.webhook_timeout.map(millis),
        })
    }
}

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    match args.verb.unwrap_or(Verb::List) {
        Verb::List => {
            let types = session.client.types().await?.items;
            print_types(&types, session.output, true);
        }
        Verb::Get { name } => {
            let found = session.client.job_type(&name).await?;
            print_types(&[found], session.output, false);
        }
        Verb::Set(args) => {
            let timeout = args.timeout.map(|span| span.as_secs().max(1));
            let spec = SetType {
                domain: args.domain,
                schedulable: args.schedulable,
                priority: args.priority,
                timeout_seconds: timeout.map(|secs| u32::try_from(secs).unwrap_or(u32::MAX)),
                max_retries: args.max_retries,
                concurrency_limit: args.concurrency_limit,
                concurrency_scope: args.concurrency_scope,
                queue: args.queue,
                rate_limit: args.flow.rate_limit(),
                circuit: args.flow.circuit(),
                concurrency_key: args.flow.concurrency_key,
                executor: args.executor.asked_for(),
                sla: sla(args.start_within, args.finish_within),
                ..SetType::default()
            };
            let stored = session.client.set_type(&args.name, &spec).await?;
            print_types(&[stored], session.output, false);
        }
        Verb::Pause { name } => {
            let found = session.client.pause_type(&name).await?;
            print_types(&[found], session.output, false);
        }
        Verb::Resume { name } => {
            let found = session.client.resume_type(&name).await?;
            print_types(&[found], session.output, false);
        }
        Verb::ResetCircuit { name } => {
            let found = session.client.reset_circuit(&name).await?;
            print_types(&[found], session.output, false);
        }
    }
    Ok(exit::OK)
}

fn sla(start: Option<Duration>, finish: Option<Duration>) -> Option<TypeSla> {
    let millis = |span: Duration| u32::try_from(span.as_millis()).unwrap_or(u32::MAX);
    let is_said = start.is_some() || finish.is_some();
    is_said.then(|| TypeSla {
        start_within_ms: start.map(millis),
        finish_within_ms: finish.map(millis),
    })
}

fn row(spec: &Type) -> Value {
    json!({
        "taskType": spec.job_type,
        "domain": spec.domain,
        "schedulable": spec.schedulable,
        "priority": spec.priority,
        "timeoutSeconds": spec.timeout_seconds,
        "maxRetries": spec.max_retries,
        "concurrencyLimit": spec.concurrency_limit,
    })
}

fn rate(limit: &TypeRateLimit) -> String {
    let by = limit.key.as_ref().map(|key| format!(" per {key}")).unwrap_or_default();
    format!("{}/s{by}", limit.per_second)
}

/// Why nothing of the type is handed out, if so.
fn held(spec: &Type) -> String {
    if let Some(by) = &spec.paused_by {
        return format!("paused by {by}");
    }
    match spec.circuit_state.as_ref().map(|circuit| circuit.state.as_str()) {
        None | Some("closed") => "-".into(),
        Some(state) => format!("circuit {state}"),
    }
}

fn print_types(types: &[Type], output: Output, is_list: bool) {
    if output == Output::Json {
        let rows: Vec<Value> = types.iter().map(row).collect();
        match rows.first() {
            Some(only) if !is_list => say_json(only),
            _ => say_json(&Value::Array(rows)),
        }
        return;
    }
    let columns = [
        "type",
        "queue",
        "priority",
        "timeout",
        "retries",
        "limit",
        "rate",
        "held",
        "executor",
        "domain",
        "schedulable",
    ];
    let rows = types.iter().map(|spec| {
        let limit = match spec.concurrency_limit {
            Some(limit) => match &spec.concurrency_key {
                Some(key) => format!("{limit} per {} and {key}", spec.concurrency_scope),
                None => format!("{limit} per {}", spec.concurrency_scope),
            },
            None => "-".into(),
        };
        vec![
            spec.job_type.clone(),
            spec.queue.clone(),
            spec.priority.to_string(),
            span::show(Duration::from_secs(u64::from(spec.timeout_seconds))),
            spec.max_retries.to_string(),
            limit,
            spec.rate_limit.as_ref().map_or_else(|| "-".into(), rate),
            held(spec),
            spec.executor.as_ref().map_or_else(|| "-".into(), |executor| executor.mode.clone()),
            spec.domain.clone(),
            spec.schedulable.to_string(),
        ]
    });
    say(&table(&columns, rows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_seven_fields_and_nothing_else() {
        let spec: Type = serde_json::from_value(json!({
            "job_type": "backtest_run", "domain": "backtest", "schedulable": true,
            "priority": 100, "timeout_seconds": 1800, "max_retries": 1, "concurrency_limit": 1,
            "concurrency_scope": "user", "queue": "default", "backoff_base_ms": 1000,
            "backoff_max_ms": 30000,
        }))
        .unwrap();
        let row = row(&spec);
        let keys: Vec<_> = row.as_object().unwrap().keys().cloned().collect();
        let mut wanted = [
            "taskType",
            "domain",
            "schedulable",
            "priority",
            "timeoutSeconds",
            "maxRetries",
            "concurrencyLimit",
        ];
        wanted.sort_unstable();
        assert_eq!(keys, wanted);
        assert_eq!(row["timeoutSeconds"], 1800);
    }
}
