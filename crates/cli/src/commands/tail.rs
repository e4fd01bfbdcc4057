//! `mainspring jobs tail`: the moves of jobs as they happen, one line each, which is one line of a
//! terminal, too. A stream that breaks off is taken up where it was.

use crate::commands::jobs::STATES;
use crate::exit;
use crate::output::{clock, fitted, painted, plain, say};
use crate::session::Session;
use mainspring_sdk::api::event::JobMoved;
use mainspring_sdk::client::{Follow, Told};
use std::time::Duration;

/// Which moves.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only those of this job
    id: Option<String>,
    /// Only those of jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    job_type: Option<String>,
    /// Only those into this state
    #[arg(long, value_parser = STATES, value_name = "STATE")]
    to: Option<String>,
    /// Begin behind this position instead of now; 0 is as far back as the stream is kept
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
    /// End after so many
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
}

/// How long to wait before a stream that broke off is taken up again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: Args, session: Session) -> anyhow::Result<u8> {
    let mut left = args.count;
    let mut stream = session.client.follow(args.after).await?;
    if !session.is_json() && args.count.is_none() {
        eprintln!("following the moves of jobs; Ctrl-C ends it");
    }
    while left != Some(0) {
        let told = match stream.next().await {
            Ok(Some(told)) => told,
            Ok(None) | Err(_) => {
                stream = again(&session, stream.position()).await?;
                continue;
            }
        };
        match told {
            Told::Moved(moved) if is_wanted(&moved, &args) => {
                match session.is_json() {
                    true => say(&serde_json::to_string(&moved)?),
                    false => say(&fitted(&line(&moved))),
                }
                left = left.map(|left| left - 1);
            }
            Told::Moved(_) => {}
            Told::Reset(reset) => {
                eprintln!("some moves are no longer kept; going on behind {}", reset.position);
            }
        }
    }
    Ok(exit::OK)
}

/// Takes a stream up again; whoever may not any more, or never could, is told so.
async fn again(session: &Session, position: Option<u64>) -> anyhow::Result<Follow> {
    loop {
        match session.client.follow(position).await {
            Err(error) if error.is_retryable() => tokio::time::sleep(AGAIN_AFTER).await,
            other => return Ok(other?),
        }
    }
}

fn is_wanted(moved: &JobMoved, args: &Args) -> bool {
    let is = |wish: &Option<String>, found: &str| wish.as_deref().is_none_or(|wish| wish == found);
    is(&args.id, &moved.job_id)
        && is(&args.job_type, &moved.job_type)
        && is(&args.to, &moved.to_state)
}

fn line(moved: &JobMoved) -> String {
    let from = moved.from_state.as_deref().unwrap_or("-");
    let why = match (&moved.reason_code, &moved.reason_message) {
        (Some(code), Some(message)) => format!("  {code}: {message}"),
        (Some(text), None) | (None, Some(text)) => format!("  {text}"),
        (None, None) => String::new(),
    };
    format!(
        "{}  {}  {}  {from} → {}{}",
        clock(moved.occurred_at),
        moved.job_id,
        plain(&moved.job_type),
        painted(&moved.to_state),
        plain(&why)
    )
}
