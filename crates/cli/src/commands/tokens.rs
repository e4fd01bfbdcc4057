//! `mainspring tokens`: who may do what.

use crate::exit;
use crate::output::{record, say, say_wire, table};
use crate::session::Session;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::token::{IssueToken, Token};

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
            let token = session.client.issue_token(&wish).await?;
            if session.is_json() {
                say_wire(&token)?;
            } else {
                say(&record(&[
                    ("token", token.token.clone().unwrap_or_default()),
                    ("id", token.token_id.clone()),
                    ("tenant", token.tenant_id.clone()),
                    ("user", token.user_id.clone()),
                    ("roles", token.roles.join(", ")),
                ]));
                eprintln!("this is the only time the token is shown");
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

fn row(token: Token) -> Vec<String> {
    let state = match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {at}"),
        (None, Some(at)) => format!("until {at}"),
        (None, None) => "live".into(),
    };
    let issued = format!("{} by {}", token.issued_at, token.issued_by);
    vec![token.token_id, token.tenant_id, token.user_id, token.roles.join(", "), issued, state]
}
