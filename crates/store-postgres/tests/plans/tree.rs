//! A plan as PostgreSQL prints it, read as a tree: made the same whatever the day, and judged.

/// A node, with the lines that tell more about it and the nodes below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) title: String,
    pub(crate) details: Vec<String>,
    pub(crate) children: Vec<Node>,
}

/// Tables that grow with the number of jobs.
const GROWING: [&str; 11] = [
    "job", "finished", "ready", "waiting", "live", "held_key", "item", "outbox", "stream",
    "expiry", "lane",
];

/// What hands rows on one by one, so that a limit above stops a scan below.
const PASSING: [&str; 5] = ["Limit", "LockRows", "Append", "Merge Append", "Subquery Scan"];

/// What a plan that was run tells about the run.
const COUNTS: [&str; 4] = ["Heap Fetches: ", "Rows Removed by ", "Storage: ", "Buffers: "];

impl Node {
    /// Reads the lines of `EXPLAIN (COSTS OFF)`; the first is the top.
    pub(crate) fn read(lines: &[String]) -> Self {
        let lines = lines.iter().map(|line| {
            let text = line.trim_start();
            let plan = text.split(" (actual ").next().unwrap_or(text);
            (line.len() - text.len(), plan.to_owned())
        });
        let mut lines = lines.filter(|(_, text)| !COUNTS.iter().any(|c| text.starts_with(c)));
        let (_, title) = lines.next().expect("a plan has a top");
        let mut open = vec![(0, Node::new(&title))];
        for (indent, text) in lines {
            let arrow = text.strip_prefix("->  ");
            let is_part = ["InitPlan ", "SubPlan ", "CTE "].iter().any(|p| text.starts_with(p));
            let Some(title) = arrow.or(is_part.then_some(text.as_str())) else {
                // Details stand deeper than the title of their node.
                while open.len() > 1 && open.last().is_some_and(|(at, _)| *at >= indent) {
                    close(&mut open);
                }
                open.last_mut().expect("the top").1.details.push(text);
                continue;
            };
            while open.len() > 1 && open.last().is_some_and(|(at, _)| *at >= indent) {
                close(&mut open);
            }
            open.push((indent, Node::new(title)));
        }
        while open.len() > 1 {
            close(&mut open);
        }
        let (_, mut top) = open.pop().expect("the top");
        top.collapse();
        top
    }

    fn new(title: &str) -> Self {
        Node { title: normal(title), details: Vec::new(), children: Vec::new() }
    }

    /// Keeps one of the children that differ only by the day.
    fn collapse(&mut self) {
        self.details = self.details.iter().map(|detail| normal(detail)).collect();
        self.children.iter_mut().for_each(Node::collapse);
        if self.title.ends_with("Append") {
            self.children.dedup();
        }
    }

    /// The tree as text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(0, &mut text);
        text
    }

    fn write(&self, depth: usize, text: &mut String) {
        let pad = "  ".repeat(depth);
        text.push_str(&format!("{pad}{}\n", self.title));
        for detail in &self.details {
            text.push_str(&format!("{pad}    {detail}\n"));
        }
        for child in &self.children {
            child.write(depth + 1, text);
        }
    }

    /// Scans of all rows of a table that grows: in the order of the table, or in that of an index
    /// with neither a condition nor a limit that stops it.
    pub(crate) fn long_scans(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.judge(false, &mut found);
        found
    }

    fn judge(&self, is_limited: bool, found: &mut Vec<String>) {
        if let Some(table) = self.scanned()
            && GROWING.contains(&table)
        {
            let is_narrow = self.details.iter().any(|detail| detail.starts_with("Index Cond: "));
            let is_index = self.title.starts_with("Index ");
            // A limit does not stop a scan that passes over most of what it reads.
            let is_filtered = self.details.iter().any(|detail| detail.starts_with("Filter: "));
            if !is_index || !(is_narrow || is_limited && !is_filtered) {
                found.push(self.title.clone());
            }
        }
        let is_passing = PASSING.iter().any(|kind| self.title.starts_with(kind));
        let is_limited = is_passing && (is_limited || self.title.starts_with("Limit"));
        self.children.iter().for_each(|child| child.judge(is_limited, found));
    }

    /// The table a scan reads, without the name of the partition.
    fn scanned(&self) -> Option<&str> {
        let (kind, rest) = self.title.split_once(" on ")?;
        if !kind.contains("Scan") || kind.contains("Function") || kind.contains("CTE") {
            return None;
        }
        let name = rest.split(' ').next()?;
        let parts = ["_DAY", "_old", "_later"];
        Some(parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name))
    }
}

fn close(open: &mut Vec<(usize, Node)>) {
    if let Some((_, node)) = open.pop() {
        open.last_mut().expect("the top").1.children.push(node);
    }
}

/// The text with `DAY` for days, and without the numbers that tell partitions apart.
fn normal(text: &str) -> String {
    let mut made = String::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        let (name, end) = match word.char_indices().next_back() {
            Some((at, c)) if !c.is_ascii_alphanumeric() && c != '_' => word.split_at(at),
            _ => (word, ""),
        };
        let parts: Vec<&str> = name.split('_').collect();
        let is_day = |part: &&str| part.len() == 8 && part.bytes().all(|b| b.is_ascii_digit());
        let is_number = |part: &str| part.len() < 4 && part.bytes().all(|b| b.is_ascii_digit());
        let kept: Vec<&str> = parts
            .iter()
            .enumerate()
            .filter(|(at, part)| *at == 0 || part.is_empty() || !is_number(part))
            .map(|(_, part)| if is_day(part) { "DAY" } else { part })
            .collect();
        made.push_str(&kept.join("_"));
        made.push_str(end);
    }
    match made.strip_prefix("Subplans Removed: ") {
        Some(_) => "Subplans Removed: the other days".to_owned(),
        None => made,
    }
}
