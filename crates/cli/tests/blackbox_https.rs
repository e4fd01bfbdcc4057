//! The server on https, from outside: who is believed, how a certificate is replaced while it is in
//! use, what becomes of one that cannot be used, and clients that shake hands for ever.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_https/client.rs"]
mod client;

use client::{Client, der};
use mainspring_testkit::blackbox::command::{Background, prepare, signal};
use mainspring_testkit::blackbox::{Options, Ran, Request, Server, Store, eventually, run};
use mainspring_testkit::both_stores;
use mainspring_testkit::postgres::{Authority, Signed};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];
const SDKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sdks");

both_stores![
    who_trusts_the_authority_is_served_and_nobody_else_believes_it,
    trouble_with_a_certificate_is_an_alert_until_it_is_renewed,
];

/// A server with a certificate of an authority of its own.
struct House {
    server: Server,
    authority: Authority,
    files: TempDir,
}

impl House {
    fn start(options: Options, first: impl FnOnce(&Authority) -> Signed) -> Self {
        let authority = Authority::new("ours");
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("ca.pem"), &authority.certificate).unwrap();
        install(files.path(), &first(&authority));
        let server = Server::start(options.encrypted(files.path()));
        House { server, authority, files }
    }

    fn client(&self) -> Client {
        Client::trusting_anybody(self.server.address, &self.authority.certificate)
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn env<'a>(&'a self, authority: &'a str) -> Vec<(&'a str, &'a str)> {
        vec![
            ("MAINSPRING_URL", &self.server.url),
            ("MAINSPRING_TOKEN", &self.server.admin),
            ("MAINSPRING_CA_FILE", authority),
        ]
    }

    /// Runs a command that trusts an authority.
    fn cli(&self, authority: &str, args: &[&str]) -> Ran {
        run(BINARY, args, &self.env(authority), self.files.path())
    }

    fn hang_up(&self) {
        signal(self.server.pid().unwrap(), Signal::HUP);
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.client().connect().unwrap().get(path, &self.server.admin).unwrap()
    }
}

/// Puts a certificate where the server looks, each file in one step.
fn install(files: &Path, signed: &Signed) {
    for (name, text) in [("key.pem", &signed.key), ("cert.pem", &signed.certificate)] {
        let new = files.join(format!("{name}.new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, files.join(name)).unwrap();
    }
}

fn who_trusts_the_authority_is_served_and_nobody_else_believes_it(store: Store) {
    let options = store.options(BINARY).arg("--internal-routes");
    let house = House::start(options, |ours| ours.server(&HOSTS));
    let ca = house.file("ca.pem");
    // With a token that it has issued for itself, too.
    house.cli(&ca, &["replay", "RP-001"]).expect(0);
    let submitted = house.cli(&ca, &["jobs", "submit", "greet", "{}", "-o", "json"]).expect(0);
    let id = submitted.json()["job_id"].as_str().unwrap().to_owned();
    let worker = prepare(
        BINARY,
        &["worker", "--type", "greet", "--", "cat"],
        &house.env(&ca),
        house.files.path(),
    );
    let worker = Background({ worker }.spawn().unwrap());
    house.cli(&ca, &["jobs", "wait", &id]).expect(0);
    assert_eq!(worker.terminate(), Some(0));

    // Somebody else's authority, the system's authorities, and another name.
    let theirs = Authority::new("theirs");
    std::fs::write(house.files.path().join("theirs.pem"), &theirs.certificate).unwrap();
    let refused = house.cli(&house.file("theirs.pem"), &["jobs", "list"]).expect(3);
    assert!(refused.stderr.contains("certificate"), "{}", refused.stderr);
    house.cli(&house.file("nothing.pem"), &["jobs", "list"]).expect(2);
    let token = ("MAINSPRING_TOKEN", &*house.server.admin);
    let env = [("MAINSPRING_URL", &*house.server.url), token];
    let refused = run(BINARY, &["jobs", "list"], &env, house.files.path());
    assert_ne!(refused.code, Some(0), "{refused:?}");

    // Whoever speaks plain HTTP is told in plain HTTP.
    let plain = Request::new("GET", "/healthz").try_send(house.server.address).unwrap();
    assert_eq!(plain.refusal(), (400, "TLS_REQUIRED".to_owned()));
    let url = format!("http://{}", house.server.address);
    let told = run(BINARY, &["jobs", "list", "--url", &url], &[token], house.files.path());
    assert!(told.stderr.contains("TLS_REQUIRED"), "{}", told.stderr);

    sdks_trust_whom_they_are_told_to(&house, &ca);
}

fn sdks_trust_whom_they_are_told_to(house: &House, ca: &str) {
    let python = format!("{SDKS}/python/src");
    let ask = "import mainspring, asyncio\n\
        print(mainspring.Client().submit('greet', {})['status'])\n\
        async def ask():\n\
        \x20   async with mainspring.AsyncClient() as client:\n\
        \x20       print((await client.submit('greet', {}))['status'])\n\
        asyncio.run(ask())\n";
    let node = format!(
        "import {{ Client }} from '{SDKS}/typescript/src/index.js';\n\
         console.log((await new Client().submit('greet', {{}})).status);"
    );
    let token_file = house.file("token");
    std::fs::write(&token_file, format!("{}\n", house.server.admin)).unwrap();
    let theirs = house.file("theirs.pem");
    for (program, args, said) in [
        ("python3", ["-c", ask].as_slice(), "queued\nqueued\n"),
        ("node", &["--input-type=module", "-e", &node], "queued\n"),
    ] {
        let env = |authority| {
            [
                ("PYTHONPATH", python.as_str()),
                ("PYTHONDONTWRITEBYTECODE", "1"),
                ("MAINSPRING_URL", house.server.url.as_str()),
                ("MAINSPRING_TOKEN_FILE", token_file.as_str()),
                ("MAINSPRING_CA_FILE", authority),
            ]
        };
        let ran = run(program, args, &env(ca), house.files.path()).expect(0);
        assert_eq!(ran.stdout, said);
        let ran = run(program, args, &env(&theirs), house.files.path());
        assert_ne!(ran.code, Some(0), "{ran:?}");
    }
}

#[test]
fn a_hang_up_without_a_certificate_ends_nothing() {
    let mut server = Server::start(Options::new(BINARY).ephemeral());
    let id = server.admin().submit_plain("mail");
    signal(server.pid().unwrap(), Signal::HUP);
    eventually("it is heard", || server.log().contains("SIGHUP").then_some(()));
    assert!(server.is_alive());
    assert_eq!(server.admin().job(&id)["status"], "queued");
}

#[test]
fn an_expired_certificate_is_replaced_under_load_without_a_failed_request() {
    let house = House::start(Options::new(BINARY), |ours| ours.expired_server(&HOSTS));
    house.cli(&house.file("ca.pem"), &["jobs", "list"]).expect(3);
    let new = house.authority.server(&HOSTS);
    let is_over = Arc::new(AtomicBool::new(false));
    let (asked, anew) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let askers: Vec<_> = (0..4)
        .map(|nth| {
            let (client, token) = (house.client(), house.server.admin.clone());
            let (is_over, asked, anew) = (is_over.clone(), asked.clone(), anew.clone());
            let new = der(&new.certificate);
            std::thread::spawn(move || {
                let mut line = client.connect().unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    // Two of them keep their connection; it must not be cut.
                    if nth % 2 == 0 {
                        line = client.connect().unwrap();
                        anew.fetch_add(u64::from(line.shown() == new), Ordering::Relaxed);
                    }
                    let (status, _) = line.get("/api/v1/jobs", &token).unwrap();
                    assert_eq!(status, 200);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    eventually("requests under way", || (asked.load(Ordering::Relaxed) > 50).then_some(()));
    // Nobody tells the server: it looks by itself.
    install(house.files.path(), &new);
    eventually("the new one is shown", || (anew.load(Ordering::Relaxed) > 20).then_some(()));
    is_over.store(true, Ordering::Relaxed);
    askers.into_iter().for_each(|asker| asker.join().unwrap());
    house.cli(&house.file("ca.pem"), &["jobs", "list"]).expect(0);
    assert!(house.server.log().contains("the certificate is out of date"));
    println!("{} requests, none failed", asked.load(Ordering::Relaxed));
}

#[test]
fn a_certificate_that_cannot_be_used_changes_nothing_and_is_told() {
    let house = House::start(Options::new(BINARY), |ours| ours.server(&HOSTS));
    let first = house.client().connect().unwrap().shown();
    let stale = "mainspring_tls_certificate_stale";
    assert_eq!(house.get("/readyz"), (200, "ready\n".to_owned()));
    assert!(house.get("/metrics").1.contains(&format!("{stale} 0\n")));
    let other = house.authority.server(&HOSTS);
    let expired = house.authority.expired_server(&HOSTS);
    let half = other.certificate[..other.certificate.len() / 2].to_owned();
    for (case, cert, key) in [
        ("it is no certificate", "rubbish", &*other.key),
        ("half of it is missing", &*half, &*other.key),
        ("the key is another one's", &*other.certificate, &*expired.key),
        ("there is no key", &*other.certificate, ""),
        ("it is out of date", &*expired.certificate, &*expired.key),
    ] {
        let before = house.server.log().matches("the old one is kept").count();
        let (certificate, key) = (cert.to_owned(), key.to_owned());
        install(house.files.path(), &Signed { certificate, key });
        house.hang_up();
        eventually(case, || {
            (house.server.log().matches("the old one is kept").count() > before).then_some(())
        });
        assert_eq!(house.client().connect().unwrap().shown(), first, "{case}");
        let (status, told) = house.get("/readyz");
        assert!(status == 200 && told.contains("tls: "), "{case}: {told}");
        assert!(!told.contains("pem"), "probes are not told where files are: {told}");
        assert!(house.get("/metrics").1.contains(&format!("{stale} 1\n")), "{case}");
    }
    std::fs::remove_file(house.files.path().join("cert.pem")).unwrap();
    house.hang_up();
    assert_eq!(house.client().connect().unwrap().shown(), first);
    install(house.files.path(), &other);
    house.hang_up();
    eventually("the good one is shown", || {
        (house.client().connect().unwrap().shown() == der(&other.certificate)).then_some(())
    });
    assert_eq!(house.get("/readyz"), (200, "ready\n".to_owned()));
    assert!(!house.server.log().contains("PRIVATE KEY"));
}

fn trouble_with_a_certificate_is_an_alert_until_it_is_renewed(store: Store) {
    let quick = "[alerts]\ncheck = \"50ms\"\nquiet = \"200ms\"\n";
    let house = House::start(store.options(BINARY).config(quick), |ours| ours.server(&HOSTS));
    // What stands of the rule, in the words of its alerts.
    let standing = || {
        let told = house.get("/api/v1/alerts?rule=certificate").1;
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let alerts = told["data"]["items"].as_array().unwrap().clone();
        let stands = alerts.into_iter().filter(|alert| alert["state"] != "cleared");
        stands.map(|alert| alert["message"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let becomes = |what: &str, words: &[&str]| {
        eventually(what, || {
            let now = standing();
            let is_it = now.len() == words.len()
                && now.iter().zip(words).all(|(now, words)| now.contains(words));
            is_it.then_some(())
        });
    };
    becomes("nothing is wrong at first", &[]);
    let (certificate, key) = ("rubbish".to_owned(), String::new());
    install(house.files.path(), &Signed { certificate, key });
    becomes("one that cannot be used is told of", &["cannot be used; the log says why"]);
    assert!(!standing()[0].contains("pem"), "not where files are");
    install(house.files.path(), &house.authority.server(&HOSTS));
    becomes("a good one puts an end to it", &[]);
    install(house.files.path(), &house.authority.ending_server(&HOSTS));
    becomes("one that ends soon is told of", &["it is valid until "]);
    install(house.files.path(), &house.authority.server(&HOSTS));
    becomes("it was renewed", &[]);
}

#[test]
fn slow_handshakes_starve_nobody() {
    let config = "[limits]\nconnections = 16\n[types]\nstrict = false\n";
    let options = Options::new(BINARY).config(config).ephemeral();
    let house = House::start(options, |ours| ours.server(&HOSTS));
    // Some say nothing, some begin a handshake, and some begin one that is very long.
    let mut slow = Vec::new();
    for nth in 0..120 {
        let mut line = TcpStream::connect(house.server.address).unwrap();
        let bytes: &[u8] = match nth % 3 {
            0 => b"",
            1 => &[0x16],
            _ => &[0x16, 3, 1, 0x3f, 0xff, 1, 0, 0xff, 0xff],
        };
        let _ = line.write_all(bytes);
        slow.push(line);
        if nth % 10 == 0 {
            let mut line = eventually("a seat", || house.client().connect().ok());
            assert_eq!(line.get("/healthz", "").unwrap().0, 200);
        }
    }
    for mut line in slow {
        line.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        // The server ends them all; how is not the point.
        let mut rest = Vec::new();
        let ended = line.read_to_end(&mut rest);
        let is_timeout = ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(!is_timeout, "a handshake went on for ever");
    }
    assert_eq!(house.get("/readyz").0, 200);
}

#[test]
fn a_certificate_without_its_key_does_not_start_a_server() {
    let files = tempfile::tempdir().unwrap();
    let ours = Authority::new("ours");
    install(files.path(), &ours.server(&HOSTS));
    let path = |name: &str| files.path().join(name).display().to_string();
    let serve = |more: &[&str]| {
        let args = [&["serve", "--ephemeral", "--listen", "127.0.0.1:0"], more].concat();
        run(BINARY, &args, &[], files.path()).expect(2).stderr
    };
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    assert!(serve(&["--tls-cert", &cert]).contains("tls_cert and tls_key go together"));
    assert!(serve(&["--tls-cert", &key, "--tls-key", &key]).contains("no certificate"));
    assert!(serve(&["--tls-cert", &cert, "--tls-key", &cert]).contains("no private key"));
    assert!(serve(&["--tls-cert", &path("x"), "--tls-key", &key]).contains("cannot be used"));
    let told = serve(&["--tls-cert", &cert, "--tls-key", &key, "--demo"]);
    assert!(told.contains("--demo"), "{told}");
}
