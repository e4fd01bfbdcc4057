//! `cargo xtask test`: everything CI runs, step by step, each with its time.
//!
//! A failed step does not hide the next one, except that nothing is tested when the build fails.
//! Clippy runs beside the tests, which wait for much; its step shows what it said.
//! The last line is the sum of all tests; the exit code tells whether every step passed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, PipeReader};
use std::mem;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::coverage::{Coverage, page};
use crate::echo::Echo;
use crate::failures::{Failure, Failures};
use crate::libtest::Log;
use crate::postgres::Postgres;
use crate::{
    binaries, cargo, debian, deny, dist, instructions, npm, older, packages, schemathesis, sdks,
    tidy,
};

/// How long output may stay silent after cargo's end. A server that a test left behind keeps the
/// pipe open for ever, and we must not wait for it.
const SILENCE_MAX: Duration = Duration::from_secs(2);

/// How often we look whether cargo has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Usual,
    Full,
}

pub(crate) fn run(arguments: &[String]) -> Result<ExitCode> {
    let depth = match arguments {
        [] => Depth::Usual,
        [flag] if flag == "--full" => Depth::Full,
        [other, ..] => bail!("unexpected argument `{other}`; test takes only --full"),
    };
    let mut steps = Steps::default();
    let mut log = Log::default();
    let mut failures = Failures::default();
    let mut unsteady = Vec::new();

    steps.take("packages", || packages::ensure("test"));
    steps.take("format", || if_installed("fmt", &["fmt", "--all", "--check"]));
    steps.take("tidy", tidy::run);
    let is_built =
        steps.take("build", || cargo::run(&["build", "--workspace", "--all-targets", "--locked"]));
    if is_built {
        let mut postgres = None;
        steps.take("postgres", || {
            postgres = Some(Postgres::start()?);
            Ok(())
        });
        let mut axe = None;
        steps.take("axe-core", || {
            axe = Some(npm::axe()?);
            Ok(())
        });
        let mut older = None;
        if depth == Depth::Full {
            steps.take("older", || {
                older = older::binary()?;
                Ok(())
            });
        }
        let mut clippy = None;
        steps.take("test", || {
            let prepare = |command: &mut Command| {
                prepare(command, depth);
                if let Some(axe) = &axe {
                    command.env(npm::AXE_PLACE, axe);
                }
                if let Some(older) = &older {
                    command.env(older::PLACE, older);
                }
                if let Some(postgres) = &postgres {
                    postgres.lend(command);
                }
            };
            let mut ear = Ear::default();
            let ran = binaries::list()
                .and_then(|binaries| {
                    // Tests wait for much: there is time for it beside them, and cargo is free.
                    clippy = Some(Beside::start(&cargo::CLIPPY));
                    binaries::run(binaries, &prepare, |line| ear.hear(line))
                })
                .map(|tests| unsteady = tests);
            let mut examples = cargo::command();
            examples.args(["test", "--workspace", "--doc", "--locked"]);
            prepare(&mut examples);
            let ran = ran.and(stream(&mut examples, |line| ear.hear(line)));
            failures = mem::take(&mut ear.failures);
            let (heard, result) = ear.close(ran);
            log = heard;
            log.passed_again(&unsteady);
            result
        });
        drop(postgres);
        steps.take("clippy", || clippy.map_or_else(|| bail!("not begun"), Beside::end));
        steps.take("instructions", instructions::check);
        steps.take("schemathesis", || match depth {
            Depth::Usual => schemathesis::quick(),
            Depth::Full => schemathesis::full(),
        });
        steps.take("sdks", || match depth {
            Depth::Usual => sdks::quick(),
            Depth::Full => sdks::full(),
        });
        steps.take("dist", dist::quick);
        if depth == Depth::Full {
            steps.take("debian", || debian::run(&[]));
            steps.take("deny", deny::run);
        }
        steps.take("coverage", || {
            let coverage = Coverage::of(&log);
            print!("{coverage}");
            coverage.verdict().and_then(|()| page::compare(&log))
        });
    }
    Ok(steps.finish(&log, failures.heard(), &unsteady))
}

/// Runs a test command, shows the lines as they come, and returns what they said.
pub(crate) fn listen(command: &mut Command) -> (Log, Result<()>) {
    let mut ear = Ear::default();
    let ran = stream(command, |line| ear.hear(line));
    ear.close(ran)
}

/// Shows lines as they come and takes in what they say.
#[derive(Default)]
struct Ear {
    log: Log,
    echo: Echo,
    failures: Failures,
}

impl Ear {
    fn hear(&mut self, line: &str) {
        if let Some(shown) = self.echo.shown(line) {
            println!("{shown}");
        }
        self.log.hear(line);
        self.failures.hear(line);
    }

    fn close(mut self, ran: Result<()>) -> (Log, Result<()>) {
        self.log.close();
        let result = ran.and_then(|()| match self.log.died.as_slice() {
            [] => Ok(()),
            died => bail!("test binaries died: {}", died.join(", ")),
        });
        (self.log, result)
    }
}

/// How tests of this depth are run. Many of them make handlers and tasks panic on purpose: their
/// backtraces would fill the log, and a failed assertion names its line without one.
fn prepare(command: &mut Command, depth: Depth) {
    command.env_remove("MAINSPRING_BLESS").env("INSTA_UPDATE", "no").env("RUST_BACKTRACE", "0");
    match depth {
        Depth::Usual => command.env_remove("MAINSPRING_TEST"),
        Depth::Full => command.env("MAINSPRING_TEST", "full"),
    };
}

fn if_installed(subcommand: &str, arguments: &[&str]) -> Result<()> {
    if cargo::has_subcommand(subcommand) {
        return cargo::run(arguments);
    }
    println!("SKIPPED: `cargo {subcommand}` is not installed in this toolchain");
    Ok(())
}

/// A cargo command that runs beside something else, behind everything that is in a hurry. What it
/// says is shown at its end.
enum Beside {
    Running(Child, PathBuf),
    NotInstalled(String),
}

impl Beside {
    fn start(arguments: &[&str]) -> Result<Beside> {
        let subcommand = arguments[0];
        if !cargo::has_subcommand(subcommand) {
            return Ok(Beside::NotInstalled(subcommand.to_owned()));
        }
        // Into a file: a pipe that nobody reads would hold it up.
        let said = cargo::target_directory()?.join(format!("{subcommand}-said"));
        let file = File::create(&said).context("cannot keep what cargo says")?;
        let mut command = cargo::nice();
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        let shown = cargo::shown(&command);
        println!("$ {shown}");
        let child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
        Ok(Beside::Running(child, said))
    }

    fn end(beside: Result<Beside>) -> Result<()> {
        match beside? {
            Beside::Running(mut child, said) => {
                let status = child.wait().context("cannot wait for cargo")?;
                print!("{}", fs::read_to_string(said).context("cannot read what cargo said")?);
                if !status.success() {
                    bail!("it found something ({status})");
                }
            }
            Beside::NotInstalled(subcommand) => {
                println!("SKIPPED: `cargo {subcommand}` is not installed in this toolchain");
            }
        }
        Ok(())
    }
}

/// Both output streams share one pipe: cargo names a binary on one and the binary answers on the
/// other, and only their order tells which test belongs to which binary.
fn stream(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let shown = cargo::shown(command);
    println!("$ {shown}");
    let (reader, writer) = io::pipe().context("cannot open a pipe")?;
    command.env("CARGO_TERM_COLOR", "never");
    command.stdout(writer.try_clone().context("cannot share the pipe")?).stderr(writer);
    let child = command.spawn().with_context(|| format!("cannot start `{shown}`"));
    // The command still holds our ends of the pipe; while they are open the reader sees no end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child?;

    let lines = read_lines(reader);
    let mut silence = Duration::ZERO;
    loop {
        match lines.recv_timeout(LOOK_EVERY) {
            Ok(line) => {
                silence = Duration::ZERO;
                on_line(&line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if child.try_wait().context("cannot wait for cargo")?.is_some() {
                    silence += LOOK_EVERY;
                }
                if silence >= SILENCE_MAX {
                    break;
                }
            }
        }
    }
    let status = child.wait().context("cannot wait for cargo")?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Lines as they come; text that is not UTF-8 is shown with replacement characters.
fn read_lines(reader: PipeReader) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|count| count > 0) {
            let line = String::from_utf8_lossy(&bytes);
            if sender.send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
            bytes.clear();
        }
    });
    receiver
}

/// The steps taken so far, and which of them failed.
#[derive(Default)]
struct Steps {
    taken: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    problem: Option<String>,
}

impl Steps {
    /// Takes one step and says whether it passed.
    fn take(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> bool {
        println!("\n== {} {name}", self.taken.len() + 1);
        let start = now();
        let problem = step().err().map(|error| format!("{error:#}"));
        let took = now() - start;
        match &problem {
            None => println!("== {name}: ok in {}", seconds(took)),
            Some(problem) => println!("== {name}: FAILED in {}: {problem}", seconds(took)),
        }
        let is_passed = problem.is_none();
        self.taken.push(Step { name, took, problem });
        is_passed
    }

    /// The exit code is the whole verdict: an error's text would follow the sum, which comes last.
    fn finish(&self, log: &Log, failures: &[Failure], unsteady: &[String]) -> ExitCode {
        for failure in failures {
            let how = if unsteady.contains(&failure.test) { "UNSTEADY" } else { "FAILED" };
            println!("\n{how} {}", failure.test);
            failure.words.iter().for_each(|line| println!("    {line}"));
        }
        println!("\nstep          time      result");
        for step in &self.taken {
            let result = step.problem.as_deref().map_or("ok", |_| "FAILED");
            println!("{:<12}  {:>8}  {result}", step.name, seconds(step.took));
        }
        println!();
        let failed: Vec<&Step> = self.taken.iter().filter(|step| step.problem.is_some()).collect();
        for step in &failed {
            println!("{} failed: {}", step.name, step.problem.as_deref().unwrap_or_default());
        }
        println!("{} passed, {} failed", log.passed, log.failed);
        if failed.is_empty() && log.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[expect(clippy::disallowed_methods, reason = "a task times itself; no product code runs on this")]
fn now() -> Instant {
    Instant::now()
}
