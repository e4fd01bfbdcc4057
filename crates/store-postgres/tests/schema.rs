//! `schema.sql` and `catalog.txt` are what the migrations make; `cargo xtask bless` writes them.

use mainspring_kernel::Timestamp;
use mainspring_store_postgres::{PostgresConfig, doctor, prepare};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;

fn config(database: &Database) -> PostgresConfig {
    PostgresConfig::standard(&database.url, Arc::new(|| Timestamp::EPOCH))
}

#[tokio::test]
async fn the_kept_schema_is_the_one_the_migrations_make() {
    let database = Database::create(shared());
    prepare(&config(&database)).await.expect("an empty database is filled");
    let catalog = doctor::catalog(&config(&database)).await.expect("it reads");
    compare("catalog.txt", &catalog);
    compare("schema.sql", &normal(&database.dump()));
}

fn compare(name: &str, made: &str) {
    let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("MAINSPRING_BLESS").is_some() {
        std::fs::write(&path, made).expect("it is written");
    }
    let kept = std::fs::read_to_string(&path).expect("it is kept");
    assert!(kept == made, "{path} differs; cargo xtask bless writes it anew");
}

/// The dump without data, versions, and whatever depends on the day.
fn normal(dump: &str) -> String {
    let mut text = String::from(
        "-- The schema as the migrations make it, without the partitions of days. For reading;\n\
         -- written by `cargo xtask bless`.\n",
    );
    for block in blocks(dump) {
        let is_kept =
            ["CREATE ", "ALTER TABLE ", "COMMENT "].iter().any(|word| block.starts_with(word))
                && !block.contains(" OWNER TO ");
        if is_kept && !has_day(&block) && !has_bound(&block) {
            text.push('\n');
            text.push_str(&block);
        }
    }
    text
}

/// Statements, without comments and what `psql` alone understands.
fn blocks(dump: &str) -> Vec<String> {
    let (mut found, mut block, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut is_data = false;
    for line in dump.lines() {
        if is_data {
            is_data = line != "\\.";
            continue;
        }
        if line.starts_with("COPY ") {
            is_data = true;
            continue;
        }
        if !is_quoted && (line.is_empty() || line.starts_with("--") || line.starts_with('\\')) {
            continue;
        }
        is_quoted ^= line.matches("$$").count() % 2 == 1;
        block.push_str(line.trim_end());
        block.push('\n');
        if !is_quoted && line.ends_with(';') {
            found.push(std::mem::take(&mut block));
        }
    }
    found
}

/// Whether it is about the partition of a day: a name that ends with eight digits.
fn has_day(block: &str) -> bool {
    let words = block.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words
        .filter_map(|word| {
            ["job_", "finished_", "stream_"].iter().find_map(|p| word.strip_prefix(p))
        })
        .any(|rest| rest.len() >= 8 && rest.bytes().take(8).all(|byte| byte.is_ascii_digit()))
}

/// Whether it attaches a partition whose bounds depend on the day.
fn has_bound(block: &str) -> bool {
    block.contains("FOR VALUES FROM")
}
