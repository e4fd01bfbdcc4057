//! `mainspring import agent` and `mainspring export agent`: a directory in the layout of the agent
//! system that this server takes the place of, one JSON document per file.
//!
//! Import never stops at a record: one that cannot be read, nor its `.bak`, is told and passed
//! over. What is there already stays as it is, so importing twice changes nothing.

use crate::exit::{self, usage};
use crate::output::{plain, say, say_json};
use crate::progress::Progress;
use crate::session::Session;
use anyhow::{Context, anyhow};
use mainspring_sdk::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What can be imported.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Import {
    /// Runs, results, plans and triggers of a directory
    Agent {
        /// The directory with worker/, planner/, triggers/ and task_status.json
        directory: PathBuf,
    },
}

/// Directories whose records the server takes as they are, what has ended first: what is left over
/// of it elsewhere must not start again.
const PLACES: [(&str, &str); 6] = [
    ("worker/results", "results"),
    ("worker/running", "running"),
    ("worker/queue", "queue"),
    ("planner/results", "planner_results"),
    ("planner/running", "planner_running"),
    ("planner/queue", "planner_queue"),
];
const TRIGGERS: &str = "triggers";
const STATUS: &str = "task_status.json";
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 2 << 20;
/// Records that an import sends at a time.
const SENT_MAX: usize = 200;
/// Bytes of records that an import sends at a time, and one record more.
const SENT_BYTES_MAX: usize = 4 << 20;

/// What became of a directory.
#[derive(Debug, Default)]
struct Tally {
    imported: u64,
    present: u64,
    /// Where, and why.
    skipped: Vec<(String, String)>,
}

/// A record and where it was found.
struct Found {
    place: String,
    record: Value,
}

pub(crate) async fn import(verb: Import, session: Session) -> anyhow::Result<u8> {
    let Import::Agent { directory } = verb;
    if !directory.is_dir() {
        return Err(usage(format!("{} is not a directory", directory.display())));
    }
    let mut tally = Tally::default();
    let bar = Progress::of_things("importing", None, session.output);
    for (folder, place) in PLACES {
        let found = records(&directory.join(folder), folder, &mut tally);
        send((&session.client, &bar), place, found, &mut tally).await?;
    }
    let found = statuses(&directory, &mut tally);
    send((&session.client, &bar), "task_status", found, &mut tally).await?;
    for found in records(&directory.join(TRIGGERS), TRIGGERS, &mut tally) {
        send_trigger(&session.client, found, &mut tally).await?;
        bar.add(1);
    }
    drop(bar);
    let skipped =
        tally.skipped.iter().map(|(place, reason)| json!({ "place": place, "reason": reason }));
    let told = json!({
        "imported": tally.imported, "present": tally.present,
        "skipped": skipped.collect::<Vec<_>>(),
    });
    if session.is_json() {
        say_json(&told);
        return Ok(exit::OK);
    }
    for (place, reason) in &tally.skipped {
        eprintln!("skipped {}: {}", plain(place), plain(reason));
    }
    say(&format!(
        "{} imported, {} there already, {} skipped",
        tally.imported,
        tally.present,
        tally.skipped.len()
    ));
    Ok(exit::OK)
}

/// Every record of a folder, by name. A file that cannot be read has a second chance in its `.bak`.
fn records(folder: &Path, told_as: &str, tally: &mut Tally) -> Vec<Found> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names = BTreeSet::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = name.strip_suffix(".bak").map_or(name.clone(), str::to_owned);
        if name.ends_with(".json") {
            names.insert(name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        let place = format!("{told_as}/{name}");
        match document(&folder.join(&name)) {
            Ok(record) => found.push(Found { place, record }),
            Err(reason) => tally.skipped.push((place, reason)),
        }
    }
    found
}

/// A document, or else the one that was kept beside it.
fn document(path: &Path) -> Result<Value, String> {
    let mut kept = path.as_os_str().to_owned();
    kept.push(".bak");
    read(path).or_else(|reason| read(Path::new(&kept)).map_err(|_| reason))
}

fn read(path: &Path) -> Result<Value, String> {
    let told = fs::metadata(path).map_err(|error| error.to_string())?;
    if !told.is_file() || told.len() > FILE_BYTES_MAX {
        return Err("is no file, or larger than 2 MiB".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| format!("is not JSON: {error}"))
}

/// The lines of the index of what has ended: a map by id, or a list.
fn statuses(directory: &Path, tally: &mut Tally) -> Vec<Found> {
    let path = directory.join(STATUS);
    let mut kept = path.as_os_str().to_owned();
    kept.push(".bak");
    if !path.exists() && !Path::new(&kept).exists() {
        return Vec::new();
    }
    let lines: Vec<(String, Value)> = match document(&path) {
        // The index of one thing alone is that thing.
        Ok(Value::Object(one)) if one.get("status").is_some_and(Value::is_string) => {
            vec![("0".to_owned(), Value::Object(one))]
        }
        Ok(Value::Object(map)) => {
            map.into_iter().map(|(id, line)| (id.clone(), named(line, &id))).collect()
        }
        Ok(Value::Array(list)) => {
            list.into_iter().enumerate().map(|(at, line)| (at.to_string(), line)).collect()
        }
        Ok(_) => {
            tally.skipped.push((STATUS.to_owned(), "is neither a map nor a list".to_owned()));
            Vec::new()
        }
        Err(reason) => {
            tally.skipped.push((STATUS.to_owned(), reason));
            Vec::new()
        }
    };
    let found = |(at, record)| Found { place: format!("{STATUS}[{at}]"), record };
    lines.into_iter().map(found).collect()
}

/// A line of the index that goes by its key, if it has no id itself.
fn named(mut line: Value, id: &str) -> Value {
    if let Value::Object(fields) = &mut line {
        fields.entry("id").or_insert_with(|| json!(id));
    }
    line
}

/// Sends records, so many at a time.
async fn send(
    (client, bar): (&Client, &Progress),
    place: &str,
    found: Vec<Found>,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let (mut places, mut items, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut found = found.into_iter().peekable();
    while let Some(next) = found.next() {
        bytes += next.record.to_string().len();
        places.push(next.place);
        items.push(next.record);
        if items.len() < SENT_MAX && bytes < SENT_BYTES_MAX && found.peek().is_some() {
            continue;
        }
        let body = json!({ "place": place, "items": std::mem::take(&mut items) });
        let answer = client.agent_post(&["import"], Some(&body)).await?;
        let outcomes = answer["items"].as_array().cloned().unwrap_or_default();
        for (place, outcome) in std::mem::take(&mut places).into_iter().zip(outcomes) {
            tally.note(place, &outcome);
            bar.add(1);
        }
        bytes = 0;
    }
    Ok(())
}

impl Tally {
    fn note(&mut self, place: String, outcome: &Value) {
        match outcome["outcome"].as_str() {
            Some("imported") => self.imported += 1,
            Some("present") => self.present += 1,
            _ => {
                let reason = outcome["reason"].as_str().unwrap_or("for no reason");
                self.skipped.push((place, reason.to_owned()));
            }
        }
    }
}

/// Triggers have an id, so sending one again finds it.
async fn send_trigger(client: &Client, found: Found, tally: &mut Tally) -> anyhow::Result<()> {
    let id = found.record["id"].as_str().unwrap_or("").to_owned();
    if !id.is_empty() && client.agent_get(&[TRIGGERS, &id], &[]).await.is_ok() {
        tally.present += 1;
        return Ok(());
    }
    match client.agent_post(&[TRIGGERS], Some(&found.record)).await {
        Ok(_) => tally.imported += 1,
        Err(error) if error.code().is_some() => {
            tally.skipped.push((found.place, error.to_string()));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

pub(crate) async fn export(directory: &Path, session: Session) -> anyhow::Result<u8> {
    if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
        let told = format!("{} is not empty: what is in it would be mixed up", directory.display());
        return Err(usage(told));
    }
    let client = &session.client;
    let mut counts = serde_json::Map::new();
    for (noun, folder) in [("runs", "worker"), ("plans", "planner")] {
        for (status, place) in
            [("queue", "queue"), ("running", "running"), ("done", "results"), ("failed", "results")]
        {
            let folder = format!("{folder}/{place}");
            for item in every(client, noun, Some(status)).await? {
                let (place, document) = exported(client, noun, &folder, item).await?;
                write(&directory.join(place), &document)?;
                add(&mut counts, place, 1);
            }
        }
    }
    for trigger in every(client, TRIGGERS, None).await? {
        write(&directory.join(TRIGGERS), &trigger)?;
        add(&mut counts, TRIGGERS, 1);
    }
    let mut index = serde_json::Map::new();
    for line in every(client, "task-status", None).await? {
        index.insert(line["id"].as_str().unwrap_or_default().to_owned(), line);
    }
    add(&mut counts, STATUS, index.len() as u64);
    write_file(directory, STATUS, &Value::Object(index))?;
    if session.is_json() {
        say_json(&Value::Object(counts));
    } else {
        for (place, count) in &counts {
            say(&format!("{count:>8} {place}"));
        }
    }
    Ok(exit::OK)
}

fn add(counts: &mut serde_json::Map<String, Value>, place: &str, count: u64) {
    let before = counts.get(place).and_then(Value::as_u64).unwrap_or(0);
    counts.insert(place.to_owned(), json!(before + count));
}

/// Fields of a plan's result.
const PLAN_FIELDS: [&str; 14] = [
    "schemaVersion",
    "id",
    "status",
    "tasks",
    "triggers",
    "question",
    "options",
    "default",
    "deadline",
    "error",
    "attempts",
    "completedAt",
    "traceId",
    "failureReason",
];

/// Fields of a run.
const RUN_FIELDS: [&str; 13] = [
    "schemaVersion",
    "id",
    "type",
    "traceId",
    "parentTaskId",
    "prompt",
    "priority",
    "createdAt",
    "attempts",
    "timeout",
    "deferUntil",
    "sourceTriggerId",
    "triggeredAt",
];
/// Those of them that a result keeps.
const SNAPSHOT_FIELDS: [&str; 8] = [
    "prompt",
    "priority",
    "createdAt",
    "timeout",
    "traceId",
    "parentTaskId",
    "sourceTriggerId",
    "triggeredAt",
];

/// A document as the layout has it, and the folder that it belongs in.
async fn exported<'a>(
    client: &Client,
    noun: &str,
    folder: &'a str,
    item: Value,
) -> anyhow::Result<(&'a str, Value)> {
    const RESULTS: &str = "planner/results";
    if noun == "plans" && (folder == RESULTS || item["status"] == "needs_input") {
        let mut result = only(&item, &PLAN_FIELDS);
        // What the planner was asked is kept beside its result, for whoever takes it over.
        result["task"] = only(&item, &SNAPSHOT_FIELDS);
        return Ok((RESULTS, result));
    }
    let id = item["id"].as_str().unwrap_or_default();
    if folder == "worker/results" {
        return Ok((folder, client.agent_get(&[noun, id, "result"], &[]).await?));
    }
    Ok((folder, only(&item, &RUN_FIELDS)))
}

fn only(item: &Value, fields: &[&str]) -> Value {
    let kept = fields.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone())));
    Value::Object(kept.collect())
}

/// Every entry of a list, page by page.
async fn every(client: &Client, noun: &str, status: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let query = [
            ("status", status.map(str::to_owned)),
            ("limit", Some("100".to_owned())),
            ("cursor", cursor.take()),
        ];
        let mut page = client.agent_get(&[noun], &query).await?;
        let Value::Array(items) = page["items"].take() else {
            return Err(anyhow!("/agent/{noun} answers no list"));
        };
        all.extend(items);
        match page["nextCursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => return Ok(all),
        }
    }
}

/// Writes a document under its id, whole or not at all.
fn write(folder: &Path, document: &Value) -> anyhow::Result<()> {
    let id = document["id"].as_str().unwrap_or_default();
    write_file(folder, &format!("{}.json", file_name(id)), document)
}

fn write_file(folder: &Path, name: &str, document: &Value) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let (path, unfinished) = (folder.join(name), folder.join(format!("{name}.tmp")));
    let written = fs::write(&unfinished, format!("{document:#}\n"));
    written
        .and_then(|()| fs::rename(&unfinished, &path))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// An id as the name of a file: no id can leave its folder, and no two share a name.
fn file_name(id: &str) -> String {
    let mut name = String::with_capacity(id.len());
    for byte in id.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            b'.' if !name.is_empty() => name.push('.'),
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_id_leaves_its_folder() {
        for (id, name) in
            [("task-001", "task-001"), ("../x", "%2E.%2Fx"), ("a/b", "a%2Fb"), ("任", "%E4%BB%BB")]
        {
            assert_eq!(file_name(id), name);
        }
    }
}
