//! Mode `process`: the command that a type asks for, run for one of its jobs.

use super::judge::{Codes, judge};
use super::{Inherited, Task, run};
use crate::failing::DISPATCH_FAILED;
use crate::limits::OUTPUT_BYTES_MAX;
use mainspring_kernel::executor::{Process, SHELL, Startable};
use mainspring_worker::{Context, Failure, Job, Outcome};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What commands of the server have in common.
#[derive(Debug, Clone)]
pub(crate) struct Commands {
    /// Who stands between the server and a command.
    pub(crate) supervisor: Option<PathBuf>,
    /// What may be started.
    pub(crate) startable: Startable,
    /// Where commands reach the server.
    pub(crate) url: Option<String>,
}

impl Commands {
    /// Runs the command for the job of `ctx`.
    pub(crate) async fn work(&self, ctx: &Context, process: &Process) -> Outcome {
        // Another server, or this one when it is set up better, may do it.
        let refused = |message: String| Err(Failure::retryable(DISPATCH_FAILED, message));
        if !self.startable.allows(process) {
            return refused(format!(
                "{} is not among the programs that this server may start",
                process.program()
            ));
        }
        let task = self.task(ctx.job(), process);
        if let Some(directory) = task.directory.as_ref().filter(|it| !it.is_dir()) {
            return refused(format!("{} is no directory here", directory.display()));
        }
        let finished = match run(task, ctx.stopped()).await {
            Ok(finished) => finished,
            Err(error) => return refused(format!("cannot run {}: {error}", process.program())),
        };
        judge(finished, OUTPUT_BYTES_MAX, Codes::Common)
    }

    fn task(&self, job: &Job, process: &Process) -> Task {
        let mut command: Vec<OsString> = Vec::new();
        if process.is_shell {
            // What comes after the script is its name, then its arguments.
            command.extend([SHELL.into(), "-c".into(), (&*process.command).into(), "sh".into()]);
        } else {
            command.push((&*process.command).into());
        }
        command.extend(process.args.iter().map(|arg| OsString::from(&**arg)));
        let mut variables = vec![
            ("MAINSPRING_JOB_ID", job.job_id.clone()),
            ("MAINSPRING_JOB_TYPE", job.job_type.clone()),
            ("MAINSPRING_ATTEMPT", job.attempt.to_string()),
            ("MAINSPRING_RETRY_COUNT", job.retry_count.to_string()),
            ("MAINSPRING_EXECUTION_KEY", job.execution_key.clone()),
            ("MAINSPRING_DISPATCH_ID", job.dispatch_id()),
            ("MAINSPRING_LEASE_TOKEN", job.lease_token.clone()),
            ("MAINSPRING_TRACE_ID", job.trace_id.clone()),
        ];
        // By the name that tools look for.
        variables.extend(job.traceparent.clone().map(|value| ("TRACEPARENT", value)));
        variables.extend(self.url.clone().map(|url| ("MAINSPRING_URL", url)));
        Task {
            command,
            supervisor: self.supervisor.clone(),
            inherited: Inherited::Only(environment(&process.env, |name| std::env::var_os(name))),
            variables,
            directory: process.cwd.as_deref().map(PathBuf::from),
            input: job.payload.get().as_bytes().to_vec(),
            output_bytes_max: OUTPUT_BYTES_MAX,
            grace: Duration::from_millis(u64::from(process.kill_grace_ms)),
        }
    }
}

/// The way to programs, and what was asked for: `NAME` as the server has it, or `NAME=value`.
fn environment(
    wanted: &[Box<str>],
    own: impl Fn(&str) -> Option<OsString>,
) -> Vec<(OsString, OsString)> {
    let mut all: Vec<(OsString, OsString)> = Vec::new();
    all.extend(own("PATH").map(|path| ("PATH".into(), path)));
    for variable in wanted {
        match variable.split_once('=') {
            Some((name, value)) => all.push((name.into(), value.into())),
            None => all.extend(own(variable).map(|value| ((&**variable).into(), value))),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_gets_the_variables_that_were_named_and_no_others() {
        let own = |name: &str| match name {
            "PATH" | "LANG" | "SECRET" => Some(OsString::from(format!("our {name}"))),
            _ => None,
        };
        let wanted: Vec<Box<str>> = vec!["LANG".into(), "ABSENT".into(), "A=b=c".into()];
        let expected = [("PATH", "our PATH"), ("LANG", "our LANG"), ("A", "b=c")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(environment(&wanted, own), expected);
    }
}
