//! Runs one command for one job: input on stdin, result from stdout, everything bounded. The
//! command gets a process group and a parent of its own (`supervise.rs`), and everything it started
//! ends with the attempt, so that nothing goes on working for a job that somebody else has by then:
//! neither when the attempt is over, nor when this process is killed.
//!
//! `mainspring worker` runs its commands with it, too. What an ended command means for its job is
//! in `judge.rs`; which command a type asks for, in `typed.rs`.

pub mod judge;
pub(crate) mod typed;

use crate::limits::COMPLAINT_BYTES_MAX;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// What to run and within which bounds.
#[derive(Debug, Clone)]
pub struct Task {
    /// Program and arguments; not empty.
    pub command: Vec<OsString>,
    /// Who stands between us and the command: this very program, except in its own unit tests.
    pub supervisor: Option<PathBuf>,
    /// What the command gets of our own environment.
    pub inherited: Inherited,
    /// Variables on top of the inherited ones.
    pub variables: Vec<(&'static str, String)>,
    /// Where it runs; where this process does if `None`.
    pub directory: Option<PathBuf>,
    /// What the command reads.
    pub input: Vec<u8>,
    /// Most bytes of output that are kept; a command that writes more is ended.
    pub output_bytes_max: usize,
    /// How long the group has between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// What a command gets of the environment of whoever starts it.
#[derive(Debug, Clone)]
pub enum Inherited {
    /// Everything but these.
    AllBut(Vec<OsString>),
    /// Only these, with these values.
    Only(Vec<(OsString, OsString)>),
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal nobody here sent.
    Signal(i32),
    /// Because it was told to stop.
    Stopped,
    /// Because it wrote more than may be kept.
    Flooded,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub ending: Ending,
    /// What it wrote, as far as that may be kept.
    pub output: Vec<u8>,
    /// The last words on stderr.
    pub complaint: String,
}

/// How long a finished command's pipes may stay open in the hands of its children.
const PIPES_LINGER: Duration = Duration::from_millis(200);
/// How long a supervisor that is told to end everything may take.
const SUPERVISOR_WAIT: Duration = Duration::from_secs(6);

/// Runs the task until it ends, or until `stop` is ready and the group has been ended.
///
/// # Errors
/// If the command cannot be started or waited for.
pub async fn run(task: Task, stop: impl Future<Output = ()>) -> io::Result<Finished> {
    let mut command = command(&task)?;
    match &task.inherited {
        Inherited::AllBut(withheld) => withheld.iter().for_each(|name| {
            command.env_remove(name);
        }),
        Inherited::Only(variables) => {
            let variables = variables.iter().map(|(name, value)| (name, value));
            command.env_clear().envs(variables);
        }
    }
    if let Some(directory) = &task.directory {
        command.current_dir(directory);
    }
    let mut child = command
        .envs(task.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        // A supervisor that is killed could not end what it watches.
        .kill_on_drop(task.supervisor.is_none())
        .spawn()?;
    let group = Group::of(&child, task.supervisor.is_some());
    let feeder = feed(&mut child, task.input);
    let flooded = Arc::new(Notify::new());
    let bell = flooded.clone();
    let max = task.output_bytes_max;
    let output = child.stdout.take().map(|pipe| tokio::spawn(head(pipe, max, bell)));
    let complaint = child.stderr.take().map(|pipe| tokio::spawn(tail(pipe, COMPLAINT_BYTES_MAX)));

    let (status, ended_by_us) = tokio::select! {
        status = child.wait() => (status?, None),
        () = stop => (end(&mut child, &group, task.grace).await?, Some(Ending::Stopped)),
        () = flooded.notified() => {
            (end(&mut child, &group, task.grace).await?, Some(Ending::Flooded))
        }
    };
    group.is_over.store(true, Ordering::Relaxed);
    // Children that were left behind end here too; then the pipes close and the readers finish.
    let output = gather(output, &group).await;
    let complaint = gather(complaint, &group).await;
    group.send(Signal::KILL);
    feeder.abort();
    let (output, is_flooded) = output.unwrap_or_default();
    let ended_by_us = ended_by_us.or(is_flooded.then_some(Ending::Flooded));
    let complaint = String::from_utf8_lossy(&complaint.unwrap_or_default()).into_owned();
    let (complaint, told) = match task.supervisor {
        Some(_) => last_word(&complaint)?,
        None => (complaint.as_str(), None),
    };
    let ending = told.unwrap_or_else(|| ending_of(status));
    Ok(Finished {
        ending: ended_by_us.unwrap_or(ending),
        output,
        complaint: complaint.trim().to_owned(),
    })
}

/// What a supervisor says after the command's own last words: that a signal ended it, or that it
/// could not be started. A zero byte keeps it apart from what programs print.
pub(crate) const SAID_SIGNAL: &str = "\0mainspring: signal ";
pub(crate) const SAID_UNSTARTED: &str = "\0mainspring: not started: ";

/// The command's own complaint, and how the supervisor says that it ended.
fn last_word(complaint: &str) -> io::Result<(&str, Option<Ending>)> {
    if let Some((_, why)) = complaint.rsplit_once(SAID_UNSTARTED) {
        return Err(io::Error::other(why.trim().to_owned()));
    }
    let Some((own, number)) = complaint.rsplit_once(SAID_SIGNAL) else {
        return Ok((complaint, None));
    };
    Ok((own, number.trim().parse().ok().map(Ending::Signal)))
}

fn command(task: &Task) -> io::Result<Command> {
    let (program, arguments) = task.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let Some(supervisor) = &task.supervisor else {
        let mut command = Command::new(program);
        command.args(arguments);
        return Ok(command);
    };
    let mut command = Command::new(supervisor);
    let own = std::process::id().to_string();
    command.arg0("mainspring").args(["supervise", "--parent", &own, "--"]);
    command.arg(program).args(arguments);
    Ok(command)
}

/// SIGTERM to everyone, the grace, then SIGKILL.
async fn end(child: &mut Child, group: &Group, grace: Duration) -> io::Result<ExitStatus> {
    group.send(Signal::TERM);
    if let Ok(status) = tokio::time::timeout(grace, child.wait()).await {
        return status;
    }
    if group.end_now()
        && let Ok(status) = tokio::time::timeout(SUPERVISOR_WAIT, child.wait()).await
    {
        return status;
    }
    group.send(Signal::KILL);
    child.wait().await
}

/// Waits for a reader, but not for pipes that only stragglers hold open.
async fn gather<T>(reader: Option<JoinHandle<T>>, group: &Group) -> Option<T> {
    let mut reader = reader?;
    if let Ok(read) = tokio::time::timeout(PIPES_LINGER, &mut reader).await {
        return read.ok();
    }
    group.send(Signal::KILL);
    if let Ok(read) = tokio::time::timeout(PIPES_LINGER * 5, &mut reader).await {
        return read.ok();
    }
    // Somebody left the group and kept the pipe; what it writes is not ours to wait for.
    reader.abort();
    None
}

fn feed(child: &mut Child, input: Vec<u8>) -> JoinHandle<()> {
    let pipe = child.stdin.take();
    tokio::spawn(async move {
        if let Some(mut pipe) = pipe {
            // A command that does not read its input is free not to.
            let _ = pipe.write_all(&input).await;
            let _ = pipe.shutdown().await;
        }
    })
}

/// The first `max` bytes and whether there were more, which is told at once. Reads to the end so
/// that nobody blocks.
async fn head(mut pipe: impl AsyncRead + Unpin, max: usize, more: Arc<Notify>) -> (Vec<u8>, bool) {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 16 * 1024];
    let mut has_more = false;
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        let room = max.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&chunk[..room]);
        if room < count && !has_more {
            has_more = true;
            more.notify_one();
        }
    }
    (kept, has_more)
}

/// The last `max` bytes.
async fn tail(mut pipe: impl AsyncRead + Unpin, max: usize) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = vec![0; 4 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..count]);
        let extra = kept.len().saturating_sub(max);
        kept.drain(..extra);
    }
    kept
}

fn ending_of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exit(code),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Exit(-1),
    }
}

/// The process group of the child. Dropping it ends the group, so a handler that is dropped leaves
/// nothing behind.
struct Group {
    leader: Option<Pid>,
    /// Whether its leader is a supervisor.
    is_supervised: bool,
    /// Whether its leader has been waited for: its number may be somebody else's by now.
    is_over: AtomicBool,
}

impl Group {
    fn of(child: &Child, is_supervised: bool) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Group { leader, is_supervised, is_over: AtomicBool::new(false) }
    }

    /// Has the supervisor end everything, also what left the group; false if there is none.
    fn end_now(&self) -> bool {
        let leader =
            self.leader.filter(|_| self.is_supervised && !self.is_over.load(Ordering::Relaxed));
        leader.is_some_and(|leader| kill_process(leader, Signal::USR2).is_ok())
    }

    fn send(&self, signal: Signal) {
        if let Some(group) = self.leader {
            // A group that is already gone is what we wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.end_now() {
            self.send(Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
