//! Finds the commands of a quick start in Markdown: fenced `sh` blocks below the heading "Quick
//! start", each right after a comment `<!-- test: quickstart [serve|worker] -->`; and those for
//! workers in any language and for schedules, marked `<!-- test: workers -->` and
//! `<!-- test: schedules -->` below their own headings.

/// What a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A server that is left running.
    Serve,
    /// A worker that is left running.
    Worker,
    /// Commands that end, all in the same terminal.
    Commands,
}

/// One block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) role: Role,
    pub(crate) text: String,
}

/// All blocks of the quick start, in order.
pub(crate) fn quick_start(markdown: &str) -> Vec<Block> {
    marked(markdown, "quick start", "quickstart")
}

/// All blocks about workers in any language.
pub(crate) fn workers(markdown: &str) -> Vec<Block> {
    marked(markdown, "workers in any language", "workers")
}

/// All blocks about schedules.
pub(crate) fn schedules(markdown: &str) -> Vec<Block> {
    marked(markdown, "schedules", "schedules")
}

fn marked(markdown: &str, heading: &str, word: &str) -> Vec<Block> {
    let (mut blocks, mut depth, mut role) = (Vec::new(), None, None);
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if level > 0 && line[level..].starts_with(' ') {
            let title = line[level..].trim();
            if title.eq_ignore_ascii_case(heading) {
                depth = Some(level);
            } else if depth.is_some_and(|depth| level <= depth) {
                depth = None;
            }
        } else if let Some(mark) = mark(line, word) {
            role = Some(mark);
        } else if let Some(fence) = line.trim_start().strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
            let is_shell = matches!(fence.trim(), "sh" | "bash" | "shell" | "console");
            if let (Some(role), true, true) = (role.take(), is_shell, depth.is_some()) {
                blocks.push(Block { role, text: body.join("\n") });
            }
        } else if !line.trim().is_empty() {
            // A mark belongs to the fence that follows it, with nothing but blank lines between.
            role = None;
        }
    }
    blocks
}

fn mark(line: &str, word: &str) -> Option<Role> {
    let inside = line.trim().strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    match inside.strip_prefix("test: ")?.strip_prefix(word)?.trim() {
        "serve" => Some(Role::Serve),
        "worker" => Some(Role::Worker),
        _ => Some(Role::Commands),
    }
}

/// The same commands with the built binary as the program, and another port; nothing else changes.
pub(crate) fn adapted(text: &str, port: u16) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        // The binary is built already.
        let is_build = ["cargo build", "cargo install"].iter().any(|verb| line.starts_with(verb));
        let mut line = if is_build { "true".to_owned() } else { line.to_owned() };
        for program in ["./target/release/mainspring", "./target/debug/mainspring"] {
            line = line.replace(program, "mainspring");
        }
        line = line.replace("cargo mainspring", "mainspring");
        if let (Some(at), Some(end)) = (line.find("cargo run"), line.find(" -- "))
            && at < end
        {
            line.replace_range(at..end + 4, "mainspring ");
        }
        for host in ["127.0.0.1", "localhost"] {
            line = line.replace(&format!("{host}:7070"), &format!("127.0.0.1:{port}"));
        }
        out.push(line);
    }
    out.join("\n")
}
