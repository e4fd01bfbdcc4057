//! The commands of README.md, run as they are written: only the program's path and the port are
//! replaced. In between server and worker are killed, started again by the same commands, and
//! everything is still there. On PostgreSQL the environment names a database.

#[path = "blackbox_readme/blocks.rs"]
mod blocks;

use blocks::{Block, Role, adapted, quick_start, schedules, workers};
use mainspring_testkit::blackbox::{Request, Server, Store, eventually, run};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::Database;
use mainspring_testkit::postgres::place::free_port;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

both_stores![o01_o15_the_quick_start_works_as_written_and_survives_kill_9];

const README: &str = include_str!("../../../README.md");

/// A person with terminals in one directory.
struct Reader {
    place: tempfile::TempDir,
    port: u16,
    database: Option<Database>,
}

impl Reader {
    fn new(store: Store) -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let programs = place.path().join(".programs");
        std::fs::create_dir(&programs).expect("a directory");
        let binary = env!("CARGO_BIN_EXE_mainspring");
        std::os::unix::fs::symlink(binary, programs.join("mainspring")).expect("a link");
        Reader { place, port: free_port(), database: store.database() }
    }

    /// A shell as a terminal would start it, but with our program first and on our port. What
    /// earlier blocks exported is known in later ones.
    fn shell(&self, script: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command
            .args(["-e", "-c", script])
            .current_dir(self.place.path())
            .env_clear()
            .env("PATH", format!("{}:{path}", self.place.path().join(".programs").display()))
            .env("MAINSPRING_LISTEN", format!("127.0.0.1:{}", self.port))
            .env("MAINSPRING_URL", format!("http://127.0.0.1:{}", self.port))
            .stdin(Stdio::null());
        if let Some(database) = &self.database {
            command.env("MAINSPRING_DATABASE_URL", &database.url);
            // The shared cluster of the tests does without fsync.
            command.env("MAINSPRING_ALLOW_UNSAFE_POSTGRES", "true");
        }
        command
    }

    /// Leaves a block running in a terminal of its own.
    fn leave_running(&self, block: &Block) -> Terminal {
        let log = self.place.path().join(format!(".{:?}.log", block.role));
        let mut command = self.shell(&adapted(&block.text, self.port));
        let file = File::create(&log).expect("a file");
        command.stderr(file.try_clone().expect("a second hold on it")).stdout(file);
        Terminal { child: command.process_group(0).spawn().expect("a shell"), log }
    }

    /// Runs a block to its end, in the one terminal for such blocks.
    fn run(&self, text: &str) -> String {
        let script = format!(
            "[ -f .exports ] && . ./.exports\n{}\nexport -p > .exports",
            adapted(text, self.port)
        );
        let ran = self.shell(&script).output().expect("a shell");
        let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(ran.status.success(), "{text}\n{}{}", told(&ran.stdout), told(&ran.stderr));
        told(&ran.stdout)
    }

    fn jobs(&self) -> Vec<(String, String)> {
        let told = self.run("mainspring jobs list --output json");
        let jobs: Value = serde_json::from_str(&told).expect("JSON");
        let items = jobs["items"].as_array().or(jobs.as_array()).expect("a list").clone();
        let text = |job: &Value, field: &str| job[field].as_str().expect("text").to_owned();
        items.iter().map(|job| (text(job, "job_id"), text(job, "status"))).collect()
    }
}

/// A terminal with something running in it.
struct Terminal {
    child: Child,
    log: PathBuf,
}

impl Terminal {
    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Everything in it ends, as with a power cut.
    fn kill9(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.end();
    }
}

fn wait_until_up(terminal: &mut Terminal, reader: &Reader) {
    let token = reader.place.path().join("mainspring-data/admin.token");
    eventually("the server is up", || {
        let ended = terminal.child.try_wait().expect("our child");
        assert!(ended.is_none(), "the server ended: {}", terminal.said());
        let said = terminal.said();
        if reader.database.is_some() && !token.exists() {
            // Shown once, by the first start.
            let shown = said.lines().find_map(|line| line.strip_prefix("admin token "))?;
            std::fs::create_dir_all(token.parent()?).expect("a directory");
            std::fs::write(&token, shown).expect("writes");
        }
        (said.contains(" on http://") && token.exists()).then_some(())
    });
}

/// Literally what the README says, then the promise it makes about kill -9.
fn o01_o15_the_quick_start_works_as_written_and_survives_kill_9(store: Store) {
    let blocks = quick_start(README);
    let of = |role: Role| blocks.iter().find(|block| block.role == role).expect("such a block");
    assert!(blocks.len() >= 4, "{blocks:?}");
    let reader = Reader::new(store);
    let (mut server, mut worker) = (None, None);
    for block in &blocks {
        match block.role {
            Role::Serve => {
                let mut terminal = reader.leave_running(block);
                wait_until_up(&mut terminal, &reader);
                server = Some(terminal);
            }
            Role::Worker => worker = Some(reader.leave_running(block)),
            Role::Commands => {
                let told = reader.run(&block.text);
                assert!(!told.contains("\"success\":false"), "{told}");
            }
        }
    }
    let by_hand = workers(README);
    assert_eq!(by_hand.len(), 1, "{by_hand:?}");
    let told = reader.run(&by_hand[0].text);
    assert!(told.contains("\"status\":\"succeeded\""), "the report is taken: {told}");
    assert!(told.contains("\"jobs\":[]"), "and the pull answered: {told}");
    let done = reader.jobs();
    assert!(!done.is_empty() && done.iter().all(|(_, status)| status == "succeeded"), "{done:?}");

    worker.expect("a worker").kill9();
    reader.run("mainspring jobs submit hello '{\"name\": \"again\"}'");
    let before = reader.jobs();
    assert_eq!(before.len(), done.len() + 1, "{before:?}");
    server.expect("a server").kill9();
    // The system takes a moment to bury what was killed.
    eventually("its port is free", || TcpListener::bind(("127.0.0.1", reader.port)).ok());
    let mut server = reader.leave_running(of(Role::Serve));
    wait_until_up(&mut server, &reader);
    assert_eq!(reader.jobs(), before, "what was there is there, as it was");
    let worker = reader.leave_running(of(Role::Worker));
    let after = eventually("the waiting job is done", || {
        let jobs = reader.jobs();
        jobs.iter().all(|(_, status)| status == "succeeded").then_some(jobs)
    });
    assert_eq!(after.len(), before.len());
    let by_time = schedules(README);
    assert_eq!(by_time.len(), 1, "{by_time:?}");
    let told = reader.run(&by_time[0].text);
    assert!(told.contains("greet") && told.contains("sch_"), "a schedule is made: {told}");
    worker.kill9();
    server.kill9();
}

/// The extractor takes what it should and nothing else.
#[test]
fn the_extractor_takes_marked_blocks_of_the_quick_start_only() {
    let markdown = "# T\n<!-- test: quickstart -->\n```sh\noutside\n```\n## Quick start\n\
        <!-- test: quickstart serve -->\n\n```sh\ncargo run --release -p x -- serve --demo\n```\n\
        text\n```sh\nunmarked\n```\n<!-- test: quickstart -->\nwords between\n```sh\nlost mark\n```\n\
        ### Deeper\n<!-- test: quickstart -->\n```bash\n$ cargo build --release\ncurl -s \\\n  \
        http://localhost:7070/x\n```\n<!-- test: quickstart worker -->\n```sh\ncargo mainspring \
        worker --type a -- cat\n```\n## Next\n<!-- test: quickstart -->\n```sh\ntoo late\n```\n";
    let blocks = quick_start(markdown);
    let roles: Vec<Role> = blocks.iter().map(|block| block.role).collect();
    assert_eq!(roles, [Role::Serve, Role::Commands, Role::Worker], "{blocks:?}");
    let texts: Vec<String> = blocks.iter().map(|block| adapted(&block.text, 9)).collect();
    assert_eq!(texts[0], "mainspring serve --demo");
    assert_eq!(texts[1], "true\ncurl -s \\\n  http://127.0.0.1:9/x");
    assert_eq!(texts[2], "mainspring worker --type a -- cat");
}

/// What `/docs` shows beside a route is sent as it stands, in the order of the page. Ids are made
/// up, so much of it finds nothing; but none of it is refused for how it is written.
#[test]
fn every_example_of_the_docs_page_is_taken_as_it_is_written() {
    let server = Server::start(Store::Memory.options(env!("CARGO_BIN_EXE_mainspring")));
    let page = server.send(&Request::new("GET", "/docs")).text();
    let (mut sent, mut submitted) = (0, false);
    for section in page.split("<section>").skip(1) {
        let blocks: Vec<String> = section.split("<pre><code>").skip(1).map(unescaped).collect();
        let [curl, python, ..] = &*blocks else { continue };
        assert_eq!(blocks.len(), 4, "{section}");
        // A stream has no end.
        if curl.contains("curl -sN") {
            continue;
        }
        let script = curl.replacen("curl -s", "curl -s -w '\\n%{http_code}'", 1);
        let env = [("MAINSPRING_URL", &*server.url), ("MAINSPRING_TOKEN", &*server.admin)];
        let ran = run("sh", &["-c", &script], &env, server.directory()).expect(0);
        let (answer, status) = ran.stdout.rsplit_once('\n').expect("a status");
        let is_lost = answer.contains("\"REQ_NOT_FOUND\"") || answer.contains("at this path");
        assert!(!matches!(status, "400" | "405" | "415" | "422") && !is_lost, "{curl}\n{answer}");
        submitted |= curl.contains("/api/v1/jobs\"") && status == "201";
        sent += 1;
        // The other languages have the same request; that it is Python shows in one of them.
        if curl.contains("/api/v1/jobs\"") {
            let ran = run("python3", &["-c", python], &env, server.directory()).expect(0);
            assert!(ran.stdout.contains("\"success\""), "{python}\n{}", ran.stdout);
        }
    }
    assert!(sent > 100 && submitted, "{sent}");
}

fn unescaped(block: &str) -> String {
    let text = block.split("</code>").next().unwrap_or_default();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}
