//! Jobs from outside.
use mainspring_testkit::blackbox::{Options, Server};
const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
#[test]
fn smoke() {
    let mut server = Server::start(Options::new(BINARY).arg("--internal-routes"));
    let bob = server.caller("t", "bob", &["submitter"]);
    let id = bob.submit_plain("greet");
    server.restart();
    assert_eq!(bob.job(&id)["status"], "queued");
    assert!(server.terminate().success());
}
