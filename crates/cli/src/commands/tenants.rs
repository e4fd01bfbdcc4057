//! `mainspring tenants`.

use crate::exit;
use crate::output::{say, say_wire, table};
use crate::session::Session;
use mainspring_sdk::api::registry::{SetTenant, Tenant};

/// What to do with tenants.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Every tenant that somebody has set
    List,
    /// What a tenant gets, may have, and has
    Get {
        /// The tenant
        tenant: String,
    },
    /// Change what a tenant gets and may have; what is left out stays as it is
    Set(SetArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SetArgs {
    /// The tenant
    tenant: String,
    /// Its turns to one of another tenant, 1 to 100
    #[arg(long)]
    weight: Option<u16>,
    /// Most jobs of it that have not ended, or none
    #[arg(long, value_name = "JOBS|none", value_parser = limit)]
    backlog_max: Option<Limit>,
    /// What those may take up in bytes, or none
    #[arg(long, value_name = "BYTES|none", value_parser = limit)]
    backlog_bytes_max: Option<Limit>,
    /// Whether nothing of it is handed out
    #[arg(long, value_name = "true|false")]
    paused: Option<bool>,
}

/// A number, or no limit.
#[derive(Debug, Clone, Copy)]
struct Limit(Option<u64>);

fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit(None)),
        _ => text.parse().map(|number| Limit(Some(number))).map_err(|_| "a number or none".into()),
    }
}

pub(crate) async fn run(verb: Verb, session: Session) -> anyhow::Result<u8> {
    let tenants = match verb {
        Verb::List => session.client.tenants().await?,
        Verb::Get { tenant } => vec![session.client.tenant(&tenant).await?],
        Verb::Set(args) => {
            let known = session.client.tenant(&args.tenant).await?;
            let spec = SetTenant {
                weight: args.weight.or(Some(known.weight)),
                backlog_max: args.backlog_max.map_or(known.backlog_max, |limit| limit.0),
                backlog_bytes_max: args
                    .backlog_bytes_max
                    .map_or(known.backlog_bytes_max, |limit| limit.0),
                paused: args.paused.or(Some(known.paused)),
            };
            vec![session.client.set_tenant(&args.tenant, &spec).await?]
        }
    };
    if session.is_json() {
        say_wire(&tenants)?;
    } else {
        let columns = ["tenant", "weight", "jobs", "of", "bytes", "of", "paused"];
        say(&table(&columns, tenants.into_iter().map(row)));
    }
    Ok(exit::OK)
}

fn row(tenant: Tenant) -> Vec<String> {
    let most = |most: Option<u64>| most.map_or_else(|| "-".to_owned(), |most| most.to_string());
    vec![
        tenant.tenant_id,
        tenant.weight.to_string(),
        tenant.backlog.to_string(),
        most(tenant.backlog_max),
        tenant.backlog_bytes.to_string(),
        most(tenant.backlog_bytes_max),
        tenant.paused_by.map_or_else(|| "-".into(), |by| format!("by {by}")),
    ]
}
