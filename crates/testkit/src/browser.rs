//! A real Chromium, steered as a person would: opened, looked at, clicked, typed into. It speaks
//! WebDriver, which is JSON over HTTP, with the client that the black box has; a crate for it would
//! bring another licence and a second client.
//!
//! Every browser has a fresh profile and a driver of its own, and both end with it.

pub mod walk;

use crate::blackbox::eventually;
use crate::blackbox::http::Request;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// What WebDriver calls the field with an element's name.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    driver: Child,
    guard: Child,
    address: SocketAddr,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Opens a window of 1440 by 900 that prefers English and light colours.
    ///
    /// # Panics
    /// If Chromium or its driver is missing or does not start.
    pub fn open() -> Self {
        let profile = tempfile::Builder::new().prefix("mainspring-chromium-").tempdir();
        let profile = profile.expect("a directory for the profile");
        let said = profile.path().join("driver.log");
        let mut driver = Command::new("chromedriver")
            .args(["--port=0", "--log-level=WARNING"])
            .env("HOME", profile.path())
            .env("TMPDIR", profile.path())
            .current_dir(profile.path())
            .stdin(Stdio::null())
            .stdout(File::create(&said).expect("a file"))
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("chromedriver starts; on Debian it is in the package chromium-driver");
        let guard = guard(driver.id());
        let port = eventually("chromedriver says where it listens", || {
            if let Ok(Some(status)) = driver.try_wait() {
                panic!("chromedriver ended by itself: {status}");
            }
            let mut text = String::new();
            File::open(&said).ok()?.read_to_string(&mut text).ok()?;
            let (_, rest) = text.split_once("successfully on port ")?;
            rest.split_once(|letter: char| !letter.is_ascii_digit())?.0.parse::<u16>().ok()
        });
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let wish = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            "goog:loggingPrefs": { "performance": "ALL", "browser": "ALL" },
            "goog:chromeOptions": { "args": arguments(profile.path()) },
        } } });
        let made = call(address, "POST", "/session", Some(&wish)).expect("a window");
        let session = made["sessionId"].as_str().expect("a session").to_owned();
        let browser = Browser { driver, guard, address, session, _profile: profile };
        browser.resize(1440, 900);
        browser
    }

    /// Opens an address, and waits until it has loaded.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn go(&self, url: &str) {
        self.must("POST", "/url", &json!({ "url": url }));
    }

    /// Where the window is.
    pub fn url(&self) -> String {
        self.told("GET", "/url").as_str().unwrap_or_default().to_owned()
    }

    /// Runs a script in the page: the body of a function with `arguments`.
    ///
    /// # Panics
    /// If it fails.
    pub fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.must("POST", "/execute/sync", &json!({ "script": script, "args": arguments }))
    }

    /// Runs a script in the page that tells what it came to later: the body of a function whose
    /// argument is whom to tell.
    ///
    /// # Panics
    /// If it fails, or tells nothing within half a minute.
    pub fn run_until_told(&self, script: &str) -> Value {
        self.must("POST", "/execute/async", &json!({ "script": script, "args": [] }))
    }

    /// Signs in to the dashboard of a server with a token.
    ///
    /// # Panics
    /// If that is refused.
    pub fn sign_in(&self, url: &str, token: &str) {
        self.go(&format!("{url}/sign-in"));
        self.fill("#token", token);
        self.click("button[type=submit]");
        self.wait_for("h1", |title| title == "Overview" || title == "概览");
    }

    /// The text that is seen of the first element of a selector, if there is one.
    pub fn text(&self, css: &str) -> Option<String> {
        let script = "const it = document.querySelector(arguments[0]); return it && it.innerText";
        self.run(script, &[json!(css)]).as_str().map(|text| text.trim().to_owned())
    }

    /// How many elements a selector has.
    pub fn count(&self, css: &str) -> u64 {
        let script = "return document.querySelectorAll(arguments[0]).length";
        self.run(script, &[json!(css)]).as_u64().unwrap_or(0)
    }

    /// Waits until the text of an element is as wanted.
    ///
    /// # Panics
    /// If it never is; the page's text is part of the message.
    #[track_caller]
    pub fn wait_for(&self, css: &str, is_it: impl Fn(&str) -> bool) -> String {
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(css, || self.text(css).filter(|text| is_it(text)))
        }));
        found.unwrap_or_else(|_| {
            panic!("{css} at {} never was as wanted:\n{:?}", self.url(), self.text("body"))
        })
    }

    /// Clicks the first element of a selector, as a person would: it has to be there to be seen.
    ///
    /// # Panics
    /// If it is not there or cannot be clicked.
    #[track_caller]
    pub fn click(&self, css: &str) {
        // A live page may put another element in its place between the look and the click.
        eventually(css, || {
            let element = self.element(css);
            match self.call("POST", &format!("/element/{element}/click"), Some(&json!({}))) {
                Ok(_) => Some(()),
                Err(error) if error.contains("stale element") => None,
                Err(error) => panic!("a click on {css}: {error}"),
            }
        });
    }

    /// Types into the first element of a selector.
    ///
    /// # Panics
    /// If it is not there.
    #[track_caller]
    pub fn fill(&self, css: &str, text: &str) {
        let element = self.element(css);
        self.must("POST", &format!("/element/{element}/clear"), &json!({}));
        self.must("POST", &format!("/element/{element}/value"), &json!({ "text": text }));
    }

    /// Presses keys where the focus is; special ones are WebDriver's letters, such as `\u{e004}`
    /// for Tab.
    pub fn press(&self, keys: &str) {
        let steps: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": steps }] });
        self.must("POST", "/actions", &actions);
    }

    #[track_caller]
    fn element(&self, css: &str) -> String {
        let wish = json!({ "using": "css selector", "value": css });
        match self.call("POST", "/element", Some(&wish)) {
            Ok(found) => found[ELEMENT].as_str().expect("an element").to_owned(),
            Err(error) => panic!("{css} at {}: {error}\n{:?}", self.url(), self.text("body")),
        }
    }

    /// Makes what is seen of a page this large, to the pixel.
    pub fn resize(&self, width: u32, height: u32) {
        let wish = json!({ "width": width, "height": height, "deviceScaleFactor": 1,
            "mobile": width < 600 });
        self.devtools("Emulation.setDeviceMetricsOverride", wish);
    }

    /// Prefers dark colours, or light ones.
    pub fn prefer(&self, scheme: &str) {
        let wish = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", wish);
    }

    /// Says that it wants this language from now on.
    pub fn speak(&self, language: &str) {
        self.devtools("Network.enable", json!({}));
        let headers = json!({ "headers": { "Accept-Language": language } });
        self.devtools("Network.setExtraHTTPHeaders", headers);
    }

    /// A command of the browser itself.
    ///
    /// # Panics
    /// If it is refused.
    pub fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.must("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// A picture of the whole page, as a PNG file.
    ///
    /// # Panics
    /// If it cannot be taken or written.
    pub fn picture(&self, path: &Path) {
        let size = self.devtools("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"],
            "scale": 1 });
        let wish = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let taken = self.devtools("Page.captureScreenshot", wish);
        let text = taken["data"].as_str().expect("a picture");
        std::fs::write(path, base64(text)).expect("a place for pictures");
    }

    /// The addresses that pages have asked for since this was last asked. What the browser asks of
    /// itself, such as its page for new windows, is not among them.
    pub fn asked_for(&self) -> Vec<String> {
        let log = self.must("POST", "/se/log", &json!({ "type": "performance" }));
        let messages = log.as_array().into_iter().flatten();
        let messages = messages.filter_map(|line| {
            let text = line["message"].as_str()?;
            let read: Value = serde_json::from_str(text).ok()?;
            (read["message"]["method"] == "Network.requestWillBeSent")
                .then(|| read["message"]["params"]["request"]["url"].as_str().map(str::to_owned))?
        });
        let is_within = |url: &String| {
            ["chrome:", "data:", "about:", "blob:"].iter().any(|scheme| url.starts_with(scheme))
        };
        messages.filter(|url| !is_within(url)).collect()
    }

    /// What the browser complained about since this was last asked: scripts that failed, and what
    /// a page's policy refused.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.must("POST", "/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().into_iter().flatten();
        lines.filter_map(|line| line["message"].as_str().map(str::to_owned)).collect()
    }

    fn told(&self, method: &str, path: &str) -> Value {
        self.call(method, path, None).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    #[track_caller]
    fn must(&self, method: &str, path: &str, wish: &Value) -> Value {
        match self.call(method, path, Some(wish)) {
            Ok(answer) => answer,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    fn call(&self, method: &str, path: &str, wish: Option<&Value>) -> Result<Value, String> {
        call(self.address, method, &format!("/session/{}{path}", self.session), wish)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.call("DELETE", "", None);
        let _ = self.guard.kill();
        let _ = self.guard.wait();
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn arguments(profile: &Path) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-default-apps",
        "--disable-extensions",
        "--force-color-profile=srgb",
        "--hide-scrollbars",
        "--lang=en-US",
        // Only loopback can be reached at all, whatever a page asks for.
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ]
    .map(str::to_owned)
    .into();
    arguments.push(format!("--user-data-dir={}", profile.join("profile").display()));
    arguments
}

fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    wish: Option<&Value>,
) -> Result<Value, String> {
    let request = Request::new(method, path);
    let request = match wish {
        Some(wish) => request.json(wish),
        None => request,
    };
    let answer = request.try_send(address).map_err(|error| error.to_string())?;
    let mut read: Value =
        serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
    match answer.status {
        200 => Ok(read["value"].take()),
        status => Err(format!("{status} {}", read["value"]["message"])),
    }
}

/// A process that ends the driver and its browser when the test does, however it ends.
fn guard(driver: u32) -> Child {
    Command::new("sh")
        .args(["-c", "read -r _; kill -9 -- -\"$0\" 2>/dev/null", &driver.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // In a group of its own: what ends the test's group must not end the guard first.
        .process_group(0)
        .spawn()
        .expect("a shell")
}

fn base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => Some(letter - b'A'),
        b'a'..=b'z' => Some(letter - b'a' + 26),
        b'0'..=b'9' => Some(letter - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for six in text.bytes().filter_map(value) {
        held = held << 6 | u32::from(six);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
        }
    }
    bytes
}
