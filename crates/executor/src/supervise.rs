//! The parent of one command, in a process of its own: `mainspring supervise`, never started by
//! hand.
//!
//! A worker or server that is killed cannot end its commands any more. This process can: the system
//! tells it when the one above it dies, and as their reaper it becomes the parent of whatever the
//! command leaves behind, also of what forked twice or began a session of its own. So when the
//! command ends, when it is told so, or when the one above is gone, everything goes. Only safe
//! calls are used: the alternative, a hook between `fork` and `exec`, is not one.

use crate::process::{SAID_SIGNAL, SAID_UNSTARTED};
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use std::ffi::OsString;
use std::io::{self, Write};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Exit code of a supervisor that says on stderr how it ended.
const EXIT_TOLD: u8 = 126;
/// How long what was killed may take to go.
const KILL_WAIT: Duration = Duration::from_secs(5);
/// How often is looked for what a dying process forked meanwhile.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// Runs `command` as the child of this process, for the process `parent` that started this one.
/// Answers the exit code.
///
/// # Errors
/// If the system does not let this process do what it is for.
pub async fn run(parent: i32, command: &[OsString]) -> io::Result<u8> {
    // Listen first: unheard, these signals would end this process and spare the command.
    let mut end_now = signal(SignalKind::user_defined2())?;
    let mut children = signal(SignalKind::child())?;
    let mut ignored = [
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    ];
    set_child_subreaper(Some(getpid()))?;
    set_parent_process_death_signal(Some(Signal::USR2))?;
    if getppid().map(Pid::as_raw_pid) != Some(parent) {
        // The worker died before it could be waited for.
        return Ok(EXIT_TOLD);
    }
    let Some((program, arguments)) = command.split_first() else { return Ok(EXIT_TOLD) };
    let child = match std::process::Command::new(program).args(arguments).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(say(SAID_UNSTARTED, &error.to_string())),
    };
    let command = Pid::from_child(&child);
    let status = loop {
        if let Some(status) = reap(command) {
            break Some(status);
        }
        let [terminate, interrupt, hangup] = &mut ignored;
        tokio::select! {
            _ = children.recv() => {}
            _ = end_now.recv() => break None,
            // The command has them, too: it is in the same group, and may tidy up.
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    };
    end_everybody().await;
    Ok(match status {
        Some(status) => match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => u8::try_from(code).unwrap_or(EXIT_TOLD),
            (None, Some(number)) => say(SAID_SIGNAL, &number.to_string()),
            (None, None) => EXIT_TOLD,
        },
        None => EXIT_TOLD,
    })
}

/// Counts whoever has ended; the status of `command` if it is among them.
fn reap(command: Pid) -> Option<WaitStatus> {
    let mut found = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == command && (status.exited() || status.signaled()) {
            found = Some(status);
        }
    }
    found
}

/// Kills until nobody is left: the children of a killed process become ours.
async fn end_everybody() {
    let end = tokio::time::Instant::now() + KILL_WAIT;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            Ok(None) => {}
            // No children.
            Err(_) => return,
        }
        children().into_iter().for_each(|pid| {
            // One that is already gone is what we want.
            let _ = kill_process(pid, Signal::KILL);
        });
        if tokio::time::Instant::now() >= end {
            return;
        }
        tokio::time::sleep(KILL_EVERY).await;
    }
}

/// The processes whose parent is this one.
fn children() -> Vec<Pid> {
    let own = getpid().as_raw_pid();
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|pid| parent_of(*pid) == Some(own)).filter_map(Pid::from_raw).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, also brackets and spaces.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Says on stderr, after all that the command said, how it ended.
fn say(what: &str, more: &str) -> u8 {
    // If nobody listens any more there is nobody to be told.
    let _ = writeln!(std::io::stderr(), "{what}{more}");
    EXIT_TOLD
}
