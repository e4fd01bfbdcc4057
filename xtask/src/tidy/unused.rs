//! Dependencies that nobody uses: they cost build time, and licences, for nothing.
//!
//! The check is simple and errs on the side of silence: a dependency counts as used when its name
//! begins a path (`name::`) or is brought in (`use name`) in a source of its crate, outside of
//! comments. A normal dependency has to stand in `src/` or `build.rs`, one for tests anywhere in the
//! crate.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Problem, line_with};

/// Dependencies that are needed though no source names them: crate, dependency, reason.
const NEEDED_UNNAMED: &[(&str, &str, &str)] = &[];

/// Where the versions of all dependencies stand.
const ROOT: &str = "Cargo.toml";

/// `sources` are all files of ours, by path from the workspace root.
pub(crate) fn check(metadata: &Value, sources: &[(String, String)]) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let root = metadata["workspace_root"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for package in packages.iter().filter(|package| package["source"].is_null()) {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        let folder = manifest.trim_end_matches("Cargo.toml");
        let member = package["name"].as_str().unwrap_or_default();
        let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
        for dependency in dependencies {
            let name = dependency["name"].as_str().unwrap_or_default();
            named.insert(name);
            let word = dependency["rename"].as_str().unwrap_or(name).replace('-', "_");
            let is_for_tests = dependency["kind"].as_str() == Some("dev");
            let counts = |path: &str| {
                let inside = path.strip_prefix(folder).filter(|inside| inside.ends_with(".rs"));
                inside.is_some_and(|inside| {
                    is_for_tests || inside.starts_with("src/") || inside == "build.rs"
                })
            };
            let mut counted = sources.iter().filter(|(path, _)| counts(path));
            let is_needed = |row: &&(&str, &str, &str)| row.0 == member && row.1 == name;
            if !counted.any(|(_, text)| uses(text, &word))
                && NEEDED_UNNAMED.iter().find(is_needed).is_none()
            {
                let told = format!("`{name}` is not used by `{member}`");
                problems.push(Problem::new(manifest, line_with(manifest, name), told));
            }
        }
    }
    let manifest = sources.iter().find(|(path, _)| path == ROOT);
    for (number, name) in manifest.into_iter().flat_map(|(_, text)| shared(text)) {
        if !named.contains(name) {
            let told = format!("`{name}` has a version here, and no crate depends on it");
            problems.push(Problem::new(ROOT, number, told));
        }
    }
    problems
}

/// Whether the word begins a path, or is brought in, in a line of code. A variable of that name
/// is no use of it: many things are called `bytes`.
fn uses(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.any(|line| {
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            let begins = !before.ends_with(|c| is_part(c) || c == ':');
            let is_brought_in = before.trim_start().trim_start_matches("pub ") == "use ";
            begins && (after.starts_with("::") || (is_brought_in && !after.starts_with(is_part)))
        })
    })
}

/// The names under `[workspace.dependencies]`, with their lines.
fn shared(manifest: &str) -> impl Iterator<Item = (usize, &str)> {
    super::numbered(manifest)
        .skip_while(|(_, line)| *line != "[workspace.dependencies]")
        .skip(1)
        .take_while(|(_, line)| !line.starts_with('['))
        .filter_map(|(number, line)| Some((number, line.split_once('=')?.0.trim())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(dependencies: &Value, files: &[(&str, &str)]) -> Vec<String> {
        let member = json!({
            "name": "attic", "manifest_path": "/house/crates/attic/Cargo.toml", "source": null,
            "dependencies": dependencies,
        });
        let metadata = json!({ "workspace_root": "/house", "packages": [member] });
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        let files: Vec<_> = files.iter().map(owned).collect();
        check(&metadata, &files).into_iter().map(|problem| problem.text).collect()
    }

    #[test]
    fn a_dependency_must_stand_in_a_source_of_its_crate() {
        let wanted = json!([{ "name": "tokio-util" }]);
        let unused = ["`tokio-util` is not used by `attic`"];
        for (path, text, expected) in [
            ("crates/attic/src/lib.rs", "use tokio_util::sync;", &[][..]),
            ("crates/attic/src/deep/er.rs", "    tokio_util::spawn();", &[]),
            ("crates/attic/build.rs", "tokio_util::x()", &[]),
            ("crates/attic/src/lib.rs", "/// See tokio_util::sync.", &unused),
            ("crates/attic/src/lib.rs", "pub use tokio_util as u;", &[]),
            ("crates/attic/src/lib.rs", "fn f(tokio_util: u8) -> crate::tokio_util::T {}", &unused),
            ("crates/attic/src/lib.rs", "use my_tokio_util::sync;", &unused),
            ("crates/attic/src/lib.rs", "use tokio_utils::sync;", &unused),
            ("crates/attic/tests/all.rs", "use tokio_util::sync;", &unused),
            ("crates/attics/src/lib.rs", "use tokio_util::sync;", &unused),
            ("crates/attic/src/page.md", "tokio_util", &unused),
        ] {
            assert_eq!(texts(&wanted, &[(path, text)]), expected, "{path}: {text}");
        }
    }

    #[test]
    fn what_is_for_tests_may_stand_anywhere_and_a_new_name_counts() {
        let wanted = json!([{ "name": "insta", "kind": "dev" }]);
        assert!(texts(&wanted, &[("crates/attic/tests/all.rs", "insta::x!()")]).is_empty());
        assert_eq!(texts(&wanted, &[("crates/attic/tests/all.rs", "")]).len(), 1);
        let wanted = json!([{ "name": "rand", "rename": "dice" }]);
        assert!(texts(&wanted, &[("crates/attic/src/lib.rs", "dice::roll()")]).is_empty());
        assert_eq!(texts(&wanted, &[("crates/attic/src/lib.rs", "rand::roll()")]).len(), 1);
    }

    #[test]
    fn a_version_that_nobody_asks_for_is_told() {
        let root =
            "[workspace.dependencies]\nrand = \"1\"\nslab = { version = \"1\" }\n[lints]\na = 1\n";
        let files = [("Cargo.toml", root), ("crates/attic/src/lib.rs", "rand::roll()")];
        let expected = ["`slab` has a version here, and no crate depends on it"];
        assert_eq!(texts(&json!([{ "name": "rand" }]), &files), expected);
    }
}
