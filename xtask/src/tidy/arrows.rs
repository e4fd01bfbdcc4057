//! Which crate may see which: the walls of the house.
//!
//! Read from `cargo metadata`; normal and build dependencies count, dev-dependencies do not. A new
//! arrow is a decision and needs a note in `docs/decisions/`.

use serde_json::Value;

use super::{Problem, line_with};

/// Each crate of the workspace, without its `mainspring-`, and the crates it may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    ("kernel", &[]),
    ("store", &["kernel"]),
    ("store-memory", &["store", "kernel"]),
    ("store-postgres", &["store", "kernel"]),
    ("engine", &["store", "kernel", "worker"]),
    ("api", &[]),
    ("worker", &["api"]),
    ("executor", &["engine", "kernel", "store", "worker"]),
    ("server", &["engine", "kernel", "api"]),
    ("sdk", &["worker", "api"]),
    ("mainspring", &["engine", "kernel", "store", "store-memory", "store-postgres", "worker"]),
    ("http-client", &[]),
    ("bench", &["http-client", "store-postgres"]),
    (
        "cli",
        &[
            "server",
            "engine",
            "executor",
            "store",
            "store-memory",
            "store-postgres",
            "sdk",
            "api",
            "kernel",
            "bench",
        ],
    ),
    ("testkit", &["engine", "store", "store-memory", "kernel", "http-client"]),
    ("xtask", &[]),
];

/// The kernel is pure: this is all it may use from outside. Of jiff that is the compiled-in table
/// of time zones; `kernel/clippy.toml` keeps its clock out.
const KERNEL_DEPENDENCIES: [&str; 5] =
    ["jiff", "sha2", "unicode-normalization", "unicode-properties", "unicode-security"];

/// Crates that must not come in, however deep.
const BANNED: [&str; 3] = ["openssl-sys", "native-tls", "aws-lc-sys"];

pub(crate) fn check(metadata: &Value) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    let mut registries = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        match package["source"].as_str() {
            None => problems.extend(check_member(package, root)),
            Some(source) if source.starts_with("registry+") => registries.push(source),
            Some(_) => problems.push(locked(name, "does not come from the registry")),
        }
        if BANNED.contains(&name) {
            problems.push(locked(name, "is banned"));
        }
    }
    registries.sort_unstable();
    registries.dedup();
    if registries.len() > 1 {
        problems.push(Problem::new("Cargo.lock", 1, "dependencies come from several registries"));
    }
    problems
}

fn check_member(package: &Value, root: &str) -> Vec<Problem> {
    let name = short(package["name"].as_str().unwrap_or_default());
    let manifest = package["manifest_path"].as_str().unwrap_or_default();
    let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
    let Some((_, allowed)) = ARROWS.iter().find(|(member, _)| *member == name) else {
        let text = format!("`{name}` has no row in the table of arrows (xtask/src/tidy/arrows.rs)");
        return vec![Problem::new(manifest, 1, text)];
    };
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    dependencies
        .iter()
        .filter(|dependency| dependency["kind"].as_str() != Some("dev"))
        .filter_map(|dependency| {
            let full = dependency["name"].as_str().unwrap_or_default();
            let told = refusal(name, allowed, short(full), !dependency["path"].is_null())?;
            Some(Problem::new(manifest, line_with(manifest, full), told))
        })
        .collect()
}

/// Why the arrow from one crate to another is not allowed, if it is not.
fn refusal(from: &str, allowed: &[&str], to: &str, to_is_ours: bool) -> Option<String> {
    if to_is_ours && to == "testkit" {
        return Some(format!("`{from}` may use `testkit` only as a dev-dependency"));
    }
    if to_is_ours && !allowed.contains(&to) {
        return Some(format!("arrow {from} -> {to} is not allowed"));
    }
    if !to_is_ours && from == "kernel" && !KERNEL_DEPENDENCIES.contains(&to) {
        return Some(format!("the kernel is pure and may not depend on `{to}`"));
    }
    None
}

fn short(name: &str) -> &str {
    name.strip_prefix("mainspring-").unwrap_or(name)
}

fn locked(name: &str, text: &str) -> Problem {
    let line = line_with("Cargo.lock", &format!("name = \"{name}\""));
    Problem::new("Cargo.lock", line, format!("`{name}` {text}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(packages: &Value) -> Vec<String> {
        let metadata = json!({ "workspace_root": "/house", "packages": packages });
        check(&metadata).into_iter().map(|problem| problem.text).collect()
    }

    fn member(name: &str, dependencies: &Value) -> Value {
        let manifest_path = format!("/house/crates/{name}/Cargo.toml");
        json!({ "name": name, "manifest_path": manifest_path, "dependencies": dependencies })
    }

    #[test]
    fn an_arrow_must_stand_in_the_table() {
        let ours = |name: &str, kind: Value| json!({ "name": name, "path": "/x", "kind": kind });
        let normal = || Value::Null;
        let server = member(
            "mainspring-server",
            &json!([
                ours("mainspring-engine", normal()),
                ours("mainspring-store", normal()),
                ours("mainspring-testkit", json!("dev")),
            ]),
        );
        assert_eq!(texts(&json!([server])), ["arrow server -> store is not allowed"]);
        let cli = member("mainspring-cli", &json!([ours("mainspring-testkit", normal())]));
        assert_eq!(texts(&json!([cli])), ["`cli` may use `testkit` only as a dev-dependency"]);
        assert!(texts(&json!([member("mainspring-attic", &json!([]))]))[0].contains("no row"));
    }

    #[test]
    fn the_kernel_stays_pure() {
        let kernel = member(
            "mainspring-kernel",
            &json!([{ "name": "sha2" }, { "name": "tokio" }, { "name": "insta", "kind": "dev" }]),
        );
        let expected = ["the kernel is pure and may not depend on `tokio`"];
        assert_eq!(texts(&json!([kernel])), expected);
    }

    #[test]
    fn banned_crates_and_other_sources_are_refused() {
        let banned = json!({ "name": "native-tls", "source": "registry+here" });
        let git = json!({ "name": "fork", "source": "git+there" });
        assert_eq!(texts(&json!([banned, git])).len(), 2);
    }
}
