//! Real child processes: what they say, how they end, and that nobody is left behind.

use super::*;
use rustix::process::test_kill_process;

fn shell(script: &str) -> Task {
    Task {
        command: vec!["/bin/sh".into(), "-c".into(), script.into()],
        supervisor: None,
        inherited: Inherited::AllBut(Vec::new()),
        directory: None,
        variables: vec![("MAINSPRING_JOB_ID", "job-7".into())],
        input: br#"{"n":1}"#.to_vec(),
        output_bytes_max: 1_000,
        grace: Duration::from_millis(300),
    }
}

async fn run_to_end(script: &str) -> Finished {
    run(shell(script), std::future::pending()).await.unwrap()
}

fn is_alive(pid: i32) -> bool {
    let is_there = test_kill_process(Pid::from_raw(pid).unwrap()).is_ok();
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended; it only waits to be counted by its parent.
    is_there && !status.rsplit(") ").next().unwrap_or_default().starts_with('Z')
}

async fn gone(pid: i32) -> bool {
    for _ in 0..200 {
        if !is_alive(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // paced: another process
    }
    false
}

#[tokio::test]
async fn input_variables_and_output_pass_through() {
    let finished = run_to_end("cat; printf ' %s' \"$MAINSPRING_JOB_ID\"").await;
    assert_eq!(finished.ending, Ending::Exit(0));
    assert_eq!(finished.output, br#"{"n":1} job-7"#);
}

#[tokio::test]
async fn exit_codes_signals_and_last_words_are_told() {
    let finished = run_to_end("echo starting >&2; echo 'no such account' >&2; exit 65").await;
    assert_eq!(finished.ending, Ending::Exit(65));
    assert_eq!(finished.complaint, "starting\nno such account");
    assert_eq!(run_to_end("kill -SEGV $$").await.ending, Ending::Signal(11));
    let noisy = run_to_end("head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 3").await;
    assert!(noisy.complaint.ends_with("end") && noisy.complaint.len() <= COMPLAINT_BYTES_MAX);
}

#[tokio::test]
async fn a_command_that_writes_too_much_is_ended() {
    for script in ["head -c 1000000 /dev/zero", "yes", "trap '' TERM; yes"] {
        let finished = run_to_end(script).await;
        assert_eq!(finished.ending, Ending::Flooded, "{script}");
        assert_eq!(finished.output.len(), 1_000);
    }
    assert_eq!(run_to_end("head -c 1000 /dev/zero").await.ending, Ending::Exit(0));
}

#[tokio::test]
async fn the_environment_and_the_directory_are_those_that_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let only = vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b c".into())];
    let task = Task {
        inherited: Inherited::Only(only),
        directory: Some(path.clone()),
        ..shell("env | grep -v '^_=' | grep -v '^SHLVL=' | grep -v '^OLDPWD=' | sort")
    };
    let finished = run(task, std::future::pending()).await.unwrap();
    let seen = String::from_utf8(finished.output).unwrap();
    let pwd = path.display();
    assert_eq!(seen, format!("A=b c\nMAINSPRING_JOB_ID=job-7\nPATH=/usr/bin:/bin\nPWD={pwd}\n"));
}

#[tokio::test]
async fn a_command_that_ignores_its_input_is_no_error() {
    let task = Task { input: vec![b'x'; 1 << 20], ..shell("exit 0") };
    let finished = run(task, std::future::pending()).await.unwrap();
    assert_eq!(finished.ending, Ending::Exit(0));
}

#[tokio::test]
async fn stopping_ends_the_whole_group_even_if_it_ignores_the_first_signal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!(
        "trap '' TERM; (trap '' TERM; echo $$ >/dev/null; sleep 60) & echo $! > {}; sleep 60",
        file.display()
    );
    let stop = async {
        while std::fs::read_to_string(&file).unwrap_or_default().trim().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await; // paced: another process
        }
    };
    let finished = run(shell(&script), stop).await.unwrap();
    assert_eq!(finished.ending, Ending::Stopped);
    let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(gone(pid).await, "the grandchild lives on");
}

#[tokio::test]
async fn a_polite_command_may_tidy_up_within_the_grace() {
    let folder = tempfile::tempdir().unwrap();
    let (ready, tidy) = (folder.path().join("ready"), folder.path().join("tidy"));
    let script = format!(
        "trap 'echo ok > {}; exit 0' TERM; echo > {}; while :; do sleep 0.02; done",
        tidy.display(),
        ready.display()
    );
    let stop = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await; // paced: another process
        }
    };
    let task = Task { grace: Duration::from_secs(10), ..shell(&script) };
    let finished = run(task, stop).await.unwrap();
    assert_eq!(finished.ending, Ending::Stopped);
    assert!(tidy.exists());
}

#[tokio::test]
async fn stragglers_do_not_hold_up_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; echo done", file.display());
    let finished =
        tokio::time::timeout(Duration::from_secs(20), run_to_end(&script)).await.unwrap();
    assert_eq!((finished.ending, finished.output.as_slice()), (Ending::Exit(0), &b"done\n"[..]));
    let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(gone(pid).await, "the straggler lives on");
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; sleep 60", file.display());
    let running = tokio::spawn(run(shell(&script), std::future::pending()));
    let pid = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if let Ok(pid) = text.trim().parse() {
            break pid;
        }
        tokio::time::sleep(Duration::from_millis(10)).await; // paced: another process
    };
    running.abort();
    assert!(gone(pid).await, "the grandchild lives on");
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_an_error() {
    let task = Task { command: vec!["/no/such/command".into()], ..shell("") };
    assert!(run(task, std::future::pending()).await.is_err());
}
