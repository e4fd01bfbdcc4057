//! A server for one run: on a free port, with an admin token and one more that has every role.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long a server may take to be ready, looked at this often.
const LOOKS_MAX: u32 = 600;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The admin token of the run; the server is reached from this machine only, and ends with it.
const ADMIN: &str = "ms_schemathesis_0123456789abcdef0123456789abcdef";

/// Jobs of any type are taken, so that most generated submissions are good ones. And the
/// throw-away PostgreSQL does not sync, which a server refuses unless it is told to go on.
const CONFIG: &str = r#"[types]
strict = false

[store]
allow_unsafe_postgres = true

[executor]
programs = ["/bin/true"]

[webhooks]
secrets = ["whsec_c2NoZW1hdGhlc2lzLW9mLW1haW5zcHJpbmc="]
"#;

const ROLES: [&str; 7] =
    ["submitter", "worker", "viewer", "operator", "approver", "internal", "admin"];

pub(crate) struct Server {
    child: Child,
    log: PathBuf,
    pub(crate) url: String,
    /// A token that may do everything.
    pub(crate) token: String,
    /// The ids of the tokens that must not be revoked.
    pub(crate) kept_tokens: Vec<String>,
}

impl Server {
    /// Starts one with its files in `place`; it keeps its state there, or in the database.
    pub(crate) fn start(target: &Path, place: &Path, database: Option<&str>) -> Result<Self> {
        let binary = target.join("debug").join("mainspring");
        let (config, log, said) =
            (place.join("config.toml"), place.join("server.log"), place.join("server.out"));
        fs::write(&config, CONFIG).context("cannot write the configuration")?;
        let mut command = Command::new(&binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--internal-routes", "--config"]);
        command.arg(&config);
        match database {
            Some(url) => command.args(["--database-url", url]),
            None => command.arg("--data-dir").arg(place.join("data")),
        };
        let child = command
            .env("MAINSPRING_ADMIN_TOKEN", ADMIN)
            .current_dir(place)
            .stdin(Stdio::null())
            .stdout(File::create(&said).context("cannot keep its output")?)
            .stderr(File::create(&log).context("cannot keep its log")?)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let (url, token, kept_tokens) = (String::new(), String::new(), Vec::new());
        let mut server = Server { child, log, url, token, kept_tokens };
        server.url = server.wait_for(|| {
            let said = fs::read_to_string(&said).ok()?;
            let address = said.lines().next()?.split_once(" on http://")?.1.trim().to_owned();
            Some(format!("http://{address}"))
        })?;
        let ready = format!("{}/readyz", server.url);
        server.wait_for(|| curl(&["--fail", &ready]).ok())?;
        let wish = json!({ "tenant_id": "default", "user_id": "schemathesis", "roles": ROLES });
        let tokens = format!("{}/api/v1/tokens", server.url);
        let made = call(&["--data", &wish.to_string(), &tokens])?;
        let token = made["data"]["token"].as_str().context("no token was made")?;
        server.token = token.to_owned();
        let listed = call(&[&tokens])?;
        let items = listed["data"]["items"].as_array().context("tokens are not listed")?;
        let ids = items.iter().filter_map(|item| item["token_id"].as_str());
        server.kept_tokens = ids.map(str::to_owned).collect();
        if server.kept_tokens.len() < 2 {
            bail!("two tokens are expected, not {listed}");
        }
        Ok(server)
    }

    /// The server must outlive whatever it is sent.
    pub(crate) fn expect_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("cannot look after the server")? {
            bail!("the server ended ({status}); see {}", self.log.display());
        }
        Ok(())
    }

    fn wait_for<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Result<T> {
        for _ in 0..LOOKS_MAX {
            self.expect_alive()?;
            if let Some(found) = look() {
                return Ok(found);
            }
            thread::sleep(LOOK_EVERY); // paced: another process is starting
        }
        bail!("the server is not ready; see {}", self.log.display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to finish: its state is thrown away.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request as the admin.
fn call(arguments: &[&str]) -> Result<Value> {
    let admin = format!("Authorization: Bearer {ADMIN}");
    let said = curl(
        &[&["--header", &admin, "--header", "Content-Type: application/json"], arguments].concat(),
    )?;
    serde_json::from_str(&said).with_context(|| format!("no JSON: {said}"))
}

fn curl(arguments: &[&str]) -> Result<String> {
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "20"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("cannot start curl")?;
    if !output.status.success() {
        bail!("curl failed ({})", output.status);
    }
    String::from_utf8(output.stdout).context("an answer that is not text")
}
