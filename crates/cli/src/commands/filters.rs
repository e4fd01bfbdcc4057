//! What lists of jobs and of dead letters are narrowed by.

use mainspring_sdk::api::Time;
use mainspring_sdk::client::JobFilter;

/// The flags of a list.
#[derive(Debug, clap::Args)]
pub(crate) struct Filters {
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only those of this queue
    #[arg(long)]
    queue: Option<String>,
    /// Only those of this trace
    #[arg(long, value_name = "TRACE")]
    trace: Option<String>,
    /// Only those submitted by this user
    #[arg(long)]
    user: Option<String>,
    /// Only those with this label; up to four times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only those whose last failed attempt said this code
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only those created then or later, as 2026-01-31T08:00:00Z
    #[arg(long, value_name = "TIME")]
    since: Option<Time>,
    /// Only those created earlier
    #[arg(long, value_name = "TIME")]
    until: Option<Time>,
    /// At most this many, up to 100
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100))]
    limit: u32,
    /// Where the last page ended; with the same filters
    #[arg(long)]
    cursor: Option<String>,
}

impl Filters {
    /// The filter of these flags and a state.
    pub(crate) fn with(self, status: Option<String>) -> JobFilter {
        JobFilter {
            status,
            job_type: self.job_type,
            queue: self.queue,
            trace_id: self.trace,
            user_id: self.user,
            labels: self.labels,
            error_code: self.error_code,
            parent_id: None,
            signature: None,
            created_after: self.since,
            created_before: self.until,
            cursor: self.cursor,
            limit: Some(self.limit),
        }
    }
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not a label; write it like team=red")),
    }
}

/// How a list goes on, for people.
pub(crate) fn say_more(cursor: Option<String>, total: Option<u64>, at_least: Option<u64>) {
    let Some(cursor) = cursor else { return };
    match (total, at_least) {
        (Some(total), _) => eprintln!("{total} in all; more with --cursor {cursor}"),
        (None, Some(least)) => eprintln!("more than {least}; more with --cursor {cursor}"),
        (None, None) => eprintln!("more with --cursor {cursor}"),
    }
}
