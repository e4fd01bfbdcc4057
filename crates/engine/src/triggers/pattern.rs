//! Paths of conditions: where they lead, and which files they mean. A path leads below a root or
//! nowhere. `*` stands for any letters of a name, `?` for one, `**` for any folders, and all other
//! letters for themselves.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why nobody can look at the files of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unseeable {
    /// There are no roots.
    NoRoots,
    /// It does not lead below one of them.
    Outside,
    /// There is too much to look at.
    TooWide,
}

impl Unseeable {
    /// In words that follow the name of the field.
    pub const fn reason(self) -> &'static str {
        match self {
            Unseeable::NoRoots => "asks for files, and the server has no [triggers] roots",
            Unseeable::Outside => "asks for files outside of the [triggers] roots",
            Unseeable::TooWide => "asks for files among more than a million: narrow the path",
        }
    }
}

/// A path below one root.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Pattern {
    pub(super) root: PathBuf,
    pub(super) parts: Vec<Part>,
}

/// One part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// A name.
    Name(OsString),
    /// Names that are like this.
    Wild(Vec<u8>),
    /// Any folders, none of them included.
    Folders,
}

/// What `path` means below each of the roots.
pub(super) fn patterns(roots: &[PathBuf], path: &str) -> Result<Vec<Pattern>, Unseeable> {
    if roots.is_empty() {
        return Err(Unseeable::NoRoots);
    }
    let of = |root: &PathBuf, rest: &str| Pattern { root: root.clone(), parts: parts(rest) };
    if !path.starts_with('/') {
        return Ok(roots.iter().map(|root| of(root, path)).collect());
    }
    let below = |root: &PathBuf| {
        let rest = Path::new(path).strip_prefix(root).ok()?.to_str()?;
        (!rest.is_empty()).then(|| of(root, rest))
    };
    let found: Vec<Pattern> = roots.iter().filter_map(below).collect();
    if found.is_empty() { Err(Unseeable::Outside) } else { Ok(found) }
}

fn parts(path: &str) -> Vec<Part> {
    let part = |part: &str| match part {
        "**" => Part::Folders,
        part if part.contains(['*', '?']) => Part::Wild(part.as_bytes().to_vec()),
        part => Part::Name(part.into()),
    };
    // The kernel has refused what goes up; a part that does is a name that no file has.
    path.split('/').filter(|part| !part.is_empty()).map(part).collect()
}

impl Pattern {
    /// Whether it means the file at `path`.
    pub(super) fn means(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.root) else { return false };
        let names: Vec<&OsStr> = rest.iter().collect();
        is_meant(&self.parts, &names)
    }

    /// Whether it means one file at most.
    pub(super) fn is_plain(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Name(_)))
    }

    /// The one file at `path`, which is below its root.
    pub(super) fn of_file(&self, path: &Path) -> Option<Pattern> {
        let rest = path.strip_prefix(&self.root).ok()?;
        let parts = rest.iter().map(|name| Part::Name(name.to_owned())).collect();
        Some(Pattern { root: self.root.clone(), parts })
    }
}

/// There are two `**` at most, so this tries no more than the square of the names.
fn is_meant(parts: &[Part], names: &[&OsStr]) -> bool {
    match (parts.split_first(), names.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((Part::Folders, [])), _) => !names.is_empty(),
        (Some((Part::Folders, rest)), _) => {
            (0..names.len()).any(|skipped| is_meant(rest, &names[skipped..]))
        }
        (Some(_), None) => false,
        (Some((part, rest)), Some((name, names))) => is_like(part, name) && is_meant(rest, names),
    }
}

/// Whether a name is what a part says.
pub(super) fn is_like(part: &Part, name: &OsStr) -> bool {
    match part {
        Part::Name(wanted) => wanted == name,
        Part::Wild(wild) => is_like_wild(wild, name.as_bytes()),
        Part::Folders => true,
    }
}

/// Goes back to the last `*` only, so that many of them cost no more than one after the other.
fn is_like_wild(wild: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < name.len() {
        match wild.get(at) {
            Some(b'*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(b'?') => {
                at += 1;
                place = next_letter(name, place);
            }
            Some(letter) if *letter == name[place] => {
                at += 1;
                place += 1;
            }
            Some(_) | None => match star {
                Some((starred, from)) => {
                    star = Some((starred, from + 1));
                    (at, place) = (starred + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    wild[at..].iter().all(|letter| *letter == b'*')
}

/// Where the next letter starts: one may be several bytes.
fn next_letter(name: &[u8], place: usize) -> usize {
    let rest = &name[place + 1..];
    place + 1 + rest.iter().take_while(|byte| **byte & 0xc0 == 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_names_are_as_people_expect() {
        let table = [
            ("*", "a", true),
            ("*.ts", "a.ts", true),
            ("*.ts", "a.tsx", false),
            ("?.ts", "é.ts", true),
            ("?.ts", "ab.ts", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("[ab]", "a", false),
            ("{a,b}*", "{a,b}c", true),
        ];
        for (wild, name, expected) in table {
            assert_eq!(is_like_wild(wild.as_bytes(), name.as_bytes()), expected, "{wild} {name}");
        }
        let (bomb, name) = ("*a".repeat(400) + "b", "a".repeat(255));
        assert!(!is_like_wild(bomb.as_bytes(), name.as_bytes()));
    }

    #[test]
    fn paths_lead_below_a_root_or_nowhere() {
        let roots = [PathBuf::from("/r/one"), PathBuf::from("/r/two")];
        assert_eq!(patterns(&[], "a"), Err(Unseeable::NoRoots));
        for outside in ["/etc/passwd", "/r", "/r/one", "/r/onex/a", "/r/*/a"] {
            assert_eq!(patterns(&roots, outside), Err(Unseeable::Outside), "{outside}");
        }
        let relative = patterns(&roots, "src/**/*.ts").unwrap();
        assert_eq!(relative.len(), 2);
        for (path, expected) in [
            ("/r/one/src/a.ts", true),
            ("/r/one/src/x/y/a.ts", true),
            ("/r/one/src/x/a.js", false),
            ("/r/one/a.ts", false),
            ("/r/two/src/a.ts", false),
        ] {
            assert_eq!(relative[0].means(Path::new(path)), expected, "{path}");
        }
        let below = patterns(&roots, "/r/two/**").unwrap();
        assert!(below[0].means(Path::new("/r/two/a/b")) && !below[0].means(Path::new("/r/two")));
    }
}
