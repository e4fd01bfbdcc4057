//! How a session of ours is set: what plans it may make, how long it waits, and that a commit it
//! acknowledges is durable. Directly it is set when it is opened; behind a pooler nobody knows
//! whose session it is, and every transaction sets it itself.

use crate::config::PostgresConfig;
use crate::connections::connect::Address;
use crate::fault::Fault;
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts,
};
use std::time::Duration;

/// PLANS: they must not depend on how empty a table was when its statement was planned. For a table
/// that is thought empty, PostgreSQL would rather read all of an index and compare than probe it
/// for each value. So reads probe in a `LATERAL` with a limit. A change cannot, and joins the first
/// column of its index by `= ANY (ARRAY[value])`: only a plain `=` makes the whole index, in its
/// order, something to consider. `tests/plans.rs` watches over it.
///
/// Nobody waits long for a lock, and a server that is stopped in the middle of a transaction does
/// not hold the others up for long.
const SETTINGS: [(&str, &str); 8] = [
    ("jit", "off"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_bitmapscan", "off"),
    ("lock_timeout", "250"),
    ("statement_timeout", "30000"),
    ("idle_in_transaction_session_timeout", "2000"),
];

/// How long a statement waits for a lock that somebody else has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As the connection is set: readers and upkeep, who hold up nobody.
    Usual,
    /// The one writer: longer than the commit of another server takes, and no longer.
    Short,
    /// Hardly: what is needed was held a moment ago, and others wait for the writer.
    Hardly,
}

/// What the writer lists itself.
macro_rules! listed {
    () => {
        "; SET LOCAL mainspring.labels = 'listed'; SET LOCAL mainspring.parents = 'listed'"
    };
}

impl Wait {
    /// What a transaction sets for it. The writer lists the labels and parents of its jobs by the
    /// batch (`commit/write.rs`): the triggers `list_labels` and `list_parent` leave them alone.
    pub(super) fn setting(self) -> &'static str {
        match self {
            Wait::Usual => "",
            Wait::Short => concat!("; SET LOCAL lock_timeout = 50", listed!()),
            Wait::Hardly => concat!("; SET LOCAL lock_timeout = 5", listed!()),
        }
    }
}

/// An acknowledged commit is durable, whatever the server, the database or the role is set to: off
/// becomes on; whatever waits for more than that stays. Said even where it changes nothing, so that
/// a reload of the server's configuration does not reach the session. The third word is whether it
/// is for the transaction alone.
macro_rules! durably {
    ($is_local:literal) => {
        concat!(
            "SELECT pg_catalog.set_config('synchronous_commit', CASE \
             pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN 'on' \
             ELSE pg_catalog.current_setting('synchronous_commit') END, ",
            $is_local,
            ")"
        )
    };
}

/// What a connection of the store sets, for whoever wants to see its plans.
pub fn session_settings() -> &'static [(&'static str, &'static str)] {
    &SETTINGS
}

/// How a transaction begins behind a pooler.
pub(super) fn begin_pooled() -> String {
    let sets = SETTINGS.map(|(name, value)| format!("SET LOCAL {name} = {value}"));
    format!("BEGIN; {}; {}", sets.join("; "), durably!("true"))
}

/// Whether a session is set as it was asked to be. A pooler refuses that, or ignores it.
pub(super) async fn keeps_settings(pool: &Pool) -> Result<bool, Fault> {
    let client = pool.get().await?;
    let rows = client.query_typed("SELECT current_setting('enable_hashjoin')", &[]).await?;
    Ok(rows.first().map_or(Ok(false), |row| row.try_get(0).map(|set: &str| set == "off"))?)
}

/// Prepares to connect, directly or through a pooler.
pub(super) fn pool(config: &PostgresConfig, is_direct: bool) -> Result<Pool, Fault> {
    let mut address: Address = config
        .url
        .parse()
        .map_err(|error| Fault::Broken(format!("the address is not valid: {error}")))?;
    let settings = &mut address.settings;
    settings.application_name("mainspring").connect_timeout(config.patience);
    settings.keepalives_idle(Duration::from_secs(10)).tcp_user_timeout(config.patience * 2);
    if is_direct {
        let given = settings.get_options().map(|own| format!("{own} ")).unwrap_or_default();
        let ours = SETTINGS.map(|(name, value)| format!("-c {name}={value}"));
        settings.options(format!("{given}{}", ours.join(" ")));
    }
    let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = Manager::from_connect(address.settings.clone(), address, recycling);
    let waits = Timeouts {
        wait: Some(config.patience),
        create: Some(config.patience),
        recycle: Some(config.patience),
    };
    let mut builder = Pool::builder(manager).max_size(config.connections_max).timeouts(waits);
    if is_direct {
        // Behind a pooler nobody knows whose session it is: every transaction says it itself.
        builder = builder.post_create(Hook::async_fn(|client, _| {
            Box::pin(async move {
                client.batch_execute(durably!("false")).await.map_err(HookError::Backend)
            })
        }));
    }
    builder.runtime(Runtime::Tokio1).build().map_err(|error| Fault::Broken(error.to_string()))
}
