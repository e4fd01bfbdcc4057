//! The test binaries of the workspace, two at a time: many of their tests wait for leases, restarts
//! and databases, so one binary after the other leaves half of the machine idle. What a binary
//! prints is shown in one piece when it has ended. A few tests that failed are tried once more when
//! nothing runs beside them: one that passes then is unsteady, which is a bug and told as one.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::cargo;
use crate::failures::Failures;

/// How many run at a time.
const LANES: usize = 2;

/// How many tests may pass only at the second try: with more of them something is broken.
const UNSTEADY_MAX: usize = 3;

/// Those that take longest, started first, so that nothing waits for them in the end.
const LONG: [&str; 8] = [
    "blackbox_chaos",
    "doctor",
    "crash_images",
    "simulation",
    "blackbox_outage",
    "blackbox_nodes",
    "conformance",
    "planted",
];

/// One test binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binary {
    /// The source it is made of, within its package.
    source: String,
    file: PathBuf,
    /// The folder of its package, where it runs.
    folder: PathBuf,
}

/// What a binary printed, and whether it said that all is well.
struct Report {
    binary: Binary,
    text: String,
    is_well: bool,
}

/// Every test binary; builds what is not built.
pub(crate) fn list() -> Result<Vec<Binary>> {
    let output = cargo::command()
        .args(["test", "--workspace", "--locked", "--no-run", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start `cargo test --no-run`")?;
    if !output.status.success() {
        bail!("`cargo test --no-run` failed ({})", output.status);
    }
    let mut binaries = read(&String::from_utf8_lossy(&output.stdout))?;
    binaries.sort_by_key(|binary| rank(&binary.file));
    Ok(binaries)
}

/// The binaries that cargo's messages tell of.
fn read(messages: &str) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cannot read cargo's messages")?;
        let Some(file) = message["executable"].as_str() else { continue };
        if message["profile"]["test"] != true {
            continue;
        }
        let manifest = message["manifest_path"].as_str().context("no manifest")?;
        let folder = Path::new(manifest).parent().context("a manifest lies in a folder")?;
        let source = Path::new(message["target"]["src_path"].as_str().context("no source")?);
        binaries.push(Binary {
            source: source.strip_prefix(folder).unwrap_or(source).display().to_string(),
            file: PathBuf::from(file),
            folder: folder.to_owned(),
        });
    }
    Ok(binaries)
}

/// Where a binary stands in the order of starting.
fn rank(file: &Path) -> usize {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
    LONG.iter().position(|long| *long == name).unwrap_or(LONG.len())
}

/// Runs binaries with what `prepare` gives them and shows `on_line` what they print, each after a
/// line that names it as cargo would. Answers the tests that are unsteady.
///
/// # Errors
/// If one of them could not be run, or did not end well.
pub(crate) fn run(
    binaries: Vec<Binary>,
    prepare: &(impl Fn(&mut Command) + Sync),
    mut on_line: impl FnMut(&str),
) -> Result<Vec<String>> {
    let place = cargo::target_directory()?.join("test-output");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    let waiting = Mutex::new(VecDeque::from(binaries));
    let mut bad = Vec::new();
    thread::scope(|scope| {
        let (sender, reports) = channel();
        for lane in 0..LANES {
            let (sender, output, waiting) =
                (sender.clone(), place.join(lane.to_string()), &waiting);
            scope.spawn(move || work(waiting, &output, prepare, &sender));
        }
        drop(sender);
        for report in reports {
            let Report { binary, text, is_well } = report?;
            on_line(&format!("     Running {} ({})", binary.source, binary.file.display()));
            text.lines().for_each(&mut on_line);
            if !is_well {
                bad.push((binary, failed_tests(&text)));
            }
        }
        Ok::<(), anyhow::Error>(())
    })?;
    let unsteady = try_again(&mut bad, |binary, failed| {
        let alone = |command: &mut Command| {
            command.args(["--exact", "--test-threads=1"]).args(failed);
            prepare(command);
        };
        run_one(binary, &place.join("again"), &alone)
    })?;
    if !bad.is_empty() {
        let sources: Vec<&str> = bad.iter().map(|(binary, _)| &*binary.source).collect();
        bail!("not all is well in {}", sources.join(", "));
    }
    Ok(unsteady)
}

/// The tests that a binary calls failed; none if it died before it could.
fn failed_tests(text: &str) -> Vec<String> {
    let mut failures = Failures::default();
    text.lines().for_each(|line| failures.hear(line));
    failures.heard().iter().map(|failure| failure.test.clone()).collect()
}

/// Tries failed tests once more, if they are few; leaves in `bad` what fails again, and answers the
/// others.
fn try_again(
    bad: &mut Vec<(Binary, Vec<String>)>,
    mut run_alone: impl FnMut(Binary, &[String]) -> Result<Report>,
) -> Result<Vec<String>> {
    let is_one_dead = bad.iter().any(|(_, failed)| failed.is_empty());
    let failed = bad.iter().map(|(_, failed)| failed.len()).sum::<usize>();
    let mut unsteady = Vec::new();
    if is_one_dead || failed > UNSTEADY_MAX {
        return Ok(unsteady);
    }
    for (binary, failed) in std::mem::take(bad) {
        println!("     Running again, alone: {}", failed.join(", "));
        let report = run_alone(binary, &failed)?;
        println!("{}", report.text);
        match report.is_well {
            true => unsteady.extend(failed),
            false => bad.push((report.binary, failed)),
        }
    }
    Ok(unsteady)
}

fn work(
    waiting: &Mutex<VecDeque<Binary>>,
    output: &Path,
    prepare: &(impl Fn(&mut Command) + Sync),
    sender: &Sender<Result<Report>>,
) {
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(binary) = next() {
        let report = run_one(binary, output, prepare);
        if sender.send(report).is_err() {
            return;
        }
    }
}

/// Into a file and not a pipe: a server that a test left behind would hold a pipe open for ever.
fn run_one(
    binary: Binary,
    output: &Path,
    prepare: &(impl Fn(&mut Command) + Sync),
) -> Result<Report> {
    let shown = binary.file.display();
    let file = File::create(output).context("cannot keep what tests print")?;
    let mut command = Command::new(&binary.file);
    command.current_dir(&binary.folder).arg("--show-output").stdin(Stdio::null());
    command.env("CARGO_MANIFEST_DIR", &binary.folder);
    command.stdout(file.try_clone().context("cannot share a file")?).stderr(file);
    prepare(&mut command);
    let status = command.status().with_context(|| format!("cannot start {shown}"))?;
    let text = fs::read(output).context("cannot read what tests printed")?;
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok(Report { binary, text, is_well: status.success() })
}

#[cfg(test)]
mod tests {
    use super::{Binary, Report, rank, read, try_again};
    use std::path::{Path, PathBuf};

    #[test]
    fn test_binaries_are_told_from_everything_else() {
        let messages = r#"{"reason":"compiler-artifact","executable":null,"profile":{"test":false}}
{"reason":"compiler-artifact","executable":"/t/mainspring","profile":{"test":false}}
{"reason":"compiler-artifact","executable":"/t/deps/door-1","profile":{"test":true},"manifest_path":"/w/crates/kernel/Cargo.toml","target":{"src_path":"/w/crates/kernel/tests/door.rs"}}
{"reason":"build-finished","success":true}"#;
        let door = Binary {
            source: "tests/door.rs".to_owned(),
            file: "/t/deps/door-1".into(),
            folder: "/w/crates/kernel".into(),
        };
        assert_eq!(read(messages).ok(), Some(vec![door]));
        assert!(read("not JSON").is_err());
    }

    /// How many of two binaries stay bad, and which tests are called unsteady, if the second try of
    /// the first one ends like this.
    fn tried_again(passes: bool, failed: [&[&str]; 2]) -> (Vec<String>, usize) {
        let mut bad: Vec<(Binary, Vec<String>)> = failed
            .iter()
            .zip(["a", "b"])
            .map(|(failed, name)| {
                let binary = Binary {
                    source: name.to_owned(),
                    file: PathBuf::new(),
                    folder: PathBuf::new(),
                };
                (binary, failed.iter().map(|test| (*test).to_owned()).collect())
            })
            .collect();
        let unsteady = try_again(&mut bad, |binary, _| {
            let is_well = passes || binary.source == "b";
            Ok(Report { binary, text: String::new(), is_well })
        });
        (unsteady.unwrap_or_default(), bad.len())
    }

    #[test]
    fn only_a_few_tests_that_pass_alone_are_unsteady() {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(tried_again(true, [&["x", "y"], &["z"]]), (named(&["x", "y", "z"]), 0));
        assert_eq!(tried_again(false, [&["x"], &["z"]]), (named(&["z"]), 1), "x failed again");
        assert_eq!(tried_again(true, [&["x"], &[]]), (Vec::new(), 2), "the second one died");
        assert_eq!(tried_again(true, [&["w", "x"], &["y", "z"]]), (Vec::new(), 2), "too many");
    }

    #[test]
    fn long_ones_go_first() {
        assert!(rank(Path::new("/t/blackbox_chaos-0a1b")) < rank(Path::new("/t/planted-0a1b")));
        assert!(rank(Path::new("/t/planted-0a1b")) < rank(Path::new("/t/door-0a1b")));
    }
}
