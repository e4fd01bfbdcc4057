//! The workers of docs/workers.md, run as they are written, in both languages of the page: each
//! greets whom it is told to, and leaves with nothing in hand when it is asked to stop. The one in
//! Rust is an example of the SDK, which is compiled with the tests.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use mainspring_testkit::blackbox::command::Background;
use mainspring_testkit::blackbox::{Server, Store};
use mainspring_testkit::both_stores;
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

both_stores![o15_o16_the_workers_of_the_documentation_work_as_written];

const PAGES: [&str; 2] =
    [include_str!("../../../docs/workers.md"), include_str!("../../../docs/workers.zh-CN.md")];
const RUST: &str = include_str!("../../sdk/examples/greet.rs");
const SDKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdks");

/// The block of a page that is marked with a name.
fn block<'a>(page: &'a str, name: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<!-- test: {name} -->\n```")).expect(name);
    rest.split_once('\n').unwrap().1.split_once("```").unwrap().0
}

fn start(server: &Server, name: &str, place: &Path) -> Background {
    let text = block(PAGES[0], name);
    let mut command = match name {
        "shell" => {
            let mut shell = Command::new("sh");
            shell.args(["-u", "-c", text]);
            shell
        }
        "python" => {
            std::fs::write(place.join("greet.py"), text).unwrap();
            let mut python = Command::new("python3");
            python.arg("greet.py").env("PYTHONPATH", format!("{SDKS}/python/src"));
            python
        }
        _ => {
            std::fs::write(place.join("greet.mjs"), text).unwrap();
            std::fs::create_dir_all(place.join("node_modules")).unwrap();
            let package = std::fs::canonicalize(format!("{SDKS}/typescript")).unwrap();
            let link = place.join("node_modules/mainspring");
            std::os::unix::fs::symlink(package, link).unwrap();
            let mut node = Command::new("node");
            node.arg("greet.mjs");
            node
        }
    };
    let worker = server.caller("greeters", "w", &["worker"]);
    command
        .env("MAINSPRING_URL", &server.url)
        .env("MAINSPRING_TOKEN", &worker.token)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(place)
        .stdin(Stdio::null());
    Background(command.spawn().unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn o15_o16_the_workers_of_the_documentation_work_as_written(store: Store) {
    let server = Server::start(store.options(env!("CARGO_BIN_EXE_mainspring")));
    let ann = server.caller("greeters", "ann", &["submitter"]);
    for name in ["shell", "python", "typescript"] {
        assert_eq!(block(PAGES[0], name), block(PAGES[1], name), "both pages have the same worker");
        let place = server.directory().join(name);
        std::fs::create_dir_all(&place).unwrap();
        let worker = start(&server, name, &place);
        // Text that a careless shell would take apart.
        for who in ["Ann", "a \"b\" \\n $HOME `id`", "世界"] {
            let wish = json!({ "job_type": "greet", "payload": { "who": who } });
            let made = ann.post("/api/v1/jobs?wait_ms=30000", &wish).data();
            assert_eq!(made["status"], "succeeded", "{name}: {made}");
            assert_eq!(made["result"], json!(format!("hello, {who}")), "{name}");
            assert_eq!(made["retry_count"], json!(0), "{name}");
        }
        let pid = worker.0.id();
        let code = worker.terminate();
        assert!(code == Some(0), "{name} (process {pid}) ends by itself, not with {code:?}");
    }
    let code = RUST.split_once("\n\n").unwrap().1;
    for page in PAGES {
        assert_eq!(block(page, "rust"), code, "the page shows the example of the SDK");
    }
}
