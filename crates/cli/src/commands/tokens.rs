//! `mainspring tokens`: who may do what.

use crate::exit;
use crate::output::{record, say, say_wire, table, when};
use crate::session::Session;
use crate::span;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::token::{IssueToken, Token};
use std::time::Duration;

/// What to do with tokens.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Issue a token; its secret is printed once
    Create {
        /// The tenant it belongs to
        #[arg(long, default_value = "default")]
        tenant: String,
        /// The person or service it belongs to
        #[arg(long)]
        user: String,
        /// What it allows; give several times
        #[arg(long = "role", required = true, value_delimiter = ',', value_parser = ROLES)]
        roles: Vec<String>,
        /// When it stops working by itself (RFC 3339)
        #[arg(long, value_name = "INSTANT")]
        expires_at: Option<Time>,
    },
    /// Every token, without secrets
    List,
    /// Replace a token by one with a new secret, which is printed once
    Rotate {
        /// The token's public id
        id: String,
        /// For how long the old one goes on working
        #[arg(long, value_parser = span::parse, default_value = "0s", value_name = "SPAN")]
        overlap: Duration,
    },
    /// End a token at once
    Revoke {
        /// The token's public id
        id: String,
    },
}

const ROLES: [&str; 7] =
    ["submitter", "worker", "viewer", "operator", "approver", "internal", "admin"];

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    match verb {
        Verb::Create { tenant, user, roles, expires_at } => {
            let wish = IssueToken { tenant_id: tenant, user_id: user, roles, expires_at };
            print(&session.client.issue_token(&wish).await?, &session)?;
        }
        Verb::Rotate { id, overlap } => {
            print(&session.client.rotate_token(&id, overlap.as_secs()).await?, &session)?;
            if !session.is_json() {
                eprintln!(
                    "{}",
                    match overlap.as_secs() {
                        0 => format!("{id} has stopped working"),
                        _ => format!("{id} goes on working for {}", span::show(overlap)),
                    }
                );
            }
        }
        Verb::List => {
            let tokens = session.client.tokens().await?.items;
            if session.is_json() {
                say_wire(&tokens)?;
            } else {
                let columns = ["id", "tenant", "user", "roles", "issued", "state"];
                say(&table(&columns, tokens.into_iter().map(row)));
            }
        }
        Verb::Revoke { id } => {
            let token = session.client.revoke_token(&id).await?;
            if session.is_json() {
                say_wire(&token)?;
            } else {
                say(&format!("revoked {}", token.token_id));
            }
        }
    }
    Ok(exit::OK)
}

/// Shows a token whose secret is not told again.
fn print(token: &Token, session: &Session) -> anyhow::Result<()> {
    if session.is_json() {
        return say_wire(token);
    }
    say(&record(&[
        ("token", token.token.clone().unwrap_or_default()),
        ("id", token.token_id.clone()),
        ("tenant", token.tenant_id.clone()),
        ("user", token.user_id.clone()),
        ("roles", token.roles.join(", ")),
    ]));
    eprintln!("this is the only time the token is shown");
    Ok(())
}

fn row(token: Token) -> Vec<String> {
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", when(at)),
        (None, Some(at)) => format!("until {}", when(at)),
        (None, None) => "live".into(),
    };
    let issued = format!("{} by {}", when(token.issued_at), token.issued_by);
    vec![token.token_id, token.tenant_id, token.user_id, token.roles.join(", "), issued, state]
}
