//! The connections. Statements are prepared once per connection and sent without waiting for one
//! another; behind a transaction pooler, which cannot keep either promise, they are sent unnamed
//! and every transaction sets what it needs.

pub mod address;
pub(crate) mod connect;
pub(crate) mod encryption;

use crate::config::PostgresConfig;
use crate::connections::connect::Address;
use crate::fault::Fault;
use crate::queries::{Queries, Query};
use deadpool_postgres::{
    Hook, HookError, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use futures_util::future::join_all;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

/// A parameter.
pub(crate) type Value = Box<dyn ToSql + Sync + Send>;

/// A statement with its parameters.
pub(crate) struct Call {
    pub(crate) query: Query,
    pub(crate) values: Vec<Value>,
}

impl Call {
    pub(crate) fn new(query: Query, values: Vec<Value>) -> Self {
        debug_assert_eq!(values.len(), query.types().len(), "{query:?}");
        Call { query, values }
    }
}

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

impl Wait {
    /// What a transaction sets for it.
    fn setting(self) -> &'static str {
        match self {
            Wait::Usual => "",
            Wait::Short => "; SET LOCAL lock_timeout = 50",
            Wait::Hardly => "; SET LOCAL lock_timeout = 5",
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

/// The connections of one store.
pub(crate) struct Connections {
    pool: Pool,
    pub(crate) queries: Queries,
    patience: Duration,
    /// Whether a pooler stands between us and the database.
    is_pooled: bool,
    begin_pooled: String,
}

/// One connection, for one transaction or a few reads.
pub(crate) struct Connection<'a> {
    client: Option<Object>,
    connections: &'a Connections,
    /// Whether the last transaction certainly failed: the database answered a statement with no.
    pub(crate) is_refused: bool,
    /// Whether a transaction may be open.
    is_open: bool,
    /// How long its transactions wait for locks.
    pub(crate) wait: Wait,
}

impl Connections {
    /// Prepares to connect; finds out whether a pooler is in the way.
    pub(crate) async fn open(config: &PostgresConfig) -> Result<Self, Fault> {
        let queries = Queries::new(&config.schema);
        let sets = SETTINGS.map(|(name, value)| format!("SET LOCAL {name} = {value}"));
        let begin_pooled = format!("BEGIN; {}; {}", sets.join("; "), durably!("true"));
        let direct = pool(config, true)?;
        let is_pooled = match keeps_settings(&direct).await {
            Ok(keeps) => !keeps,
            Err(Fault::Away(why)) if why.contains("startup parameter") => true,
            Err(fault) => return Err(fault),
        };
        let pool = if is_pooled { pool(config, false)? } else { direct };
        Ok(Connections { pool, queries, patience: config.patience, is_pooled, begin_pooled })
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.is_pooled
    }

    /// A connection, waiting for one within the patience of callers.
    pub(crate) async fn get(&self) -> Result<Connection<'_>, Fault> {
        match self.pool.get().await {
            Ok(client) => Ok(Connection {
                client: Some(client),
                connections: self,
                is_refused: false,
                is_open: false,
                wait: Wait::Usual,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// One read on any connection.
    pub(crate) async fn read(&self, query: Query, values: Vec<Value>) -> Result<Vec<Row>, Fault> {
        let mut connection = self.get().await?;
        connection.one(Call::new(query, values)).await
    }

    /// One statement that waits no longer than that for locks.
    pub(crate) async fn write(
        &self,
        wait: Wait,
        query: Query,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, Fault> {
        let mut connection = self.get().await?;
        connection.wait = wait;
        let mut rows = connection.run(true, vec![Call::new(query, values)], true).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Lets go of every connection.
    pub(crate) fn close(&self) {
        self.pool.close();
    }

    /// Lets go of idle connections: after a fault they are as dead as the one that failed.
    pub(crate) fn shed(&self) {
        self.pool.retain(|_, _| false);
    }
}

/// Whether a session is set as it was asked to be. A pooler refuses that, or ignores it.
async fn keeps_settings(pool: &Pool) -> Result<bool, Fault> {
    let client = pool.get().await?;
    let rows = client.query_typed("SELECT current_setting('enable_hashjoin')", &[]).await?;
    Ok(rows.first().map_or(Ok(false), |row| row.try_get(0).map(|set: &str| set == "off"))?)
}

fn pool(config: &PostgresConfig, is_direct: bool) -> Result<Pool, Fault> {
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

impl Connection<'_> {
    /// Runs one statement outside of a transaction.
    pub(crate) async fn one(&mut self, call: Call) -> Result<Vec<Row>, Fault> {
        if self.connections.is_pooled() {
            let mut rows = self.run(true, vec![call], true).await?;
            return Ok(rows.pop().unwrap_or_default());
        }
        let mut rows = self.run(false, vec![call], false).await?;
        Ok(rows.pop().unwrap_or_default())
    }

    /// Sends statements in one go, perhaps with the beginning and the end of their transaction.
    /// Answers the rows of each. After an error the transaction is gone.
    pub(crate) async fn run(
        &mut self,
        begins: bool,
        calls: Vec<Call>,
        ends: bool,
    ) -> Result<Vec<Vec<Row>>, Fault> {
        let patience = self.connections.patience;
        self.run_within(patience, begins, calls, ends).await
    }

    /// The same for statements that may take their time.
    pub(crate) async fn run_within(
        &mut self,
        patience: Duration,
        begins: bool,
        calls: Vec<Call>,
        ends: bool,
    ) -> Result<Vec<Vec<Row>>, Fault> {
        self.is_open |= begins;
        let outcome = tokio::time::timeout(patience, self.send(begins, &calls, ends)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Fault::Away("no answer in time".into())));
        match &outcome {
            Ok(_) => self.is_open &= !ends,
            Err(fault) => self.clear(fault, ends).await,
        }
        outcome
    }

    async fn send(
        &mut self,
        begins: bool,
        calls: &[Call],
        ends: bool,
    ) -> Result<Vec<Vec<Row>>, Fault> {
        let connections = self.connections;
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        let is_pooled = connections.is_pooled();
        let mut prepared: Vec<Option<Statement>> = Vec::with_capacity(calls.len());
        for call in calls {
            prepared.push(match is_pooled {
                true => None,
                false => {
                    let text = connections.queries.text(call.query);
                    Some(client.prepare_typed_cached(text, call.query.types()).await?)
                }
            });
        }
        // The first poll sends, and they are polled in this order.
        let begin = async {
            let begin = if is_pooled { connections.begin_pooled.as_str() } else { "BEGIN" };
            match begins {
                true => client.batch_execute(&format!("{begin}{}", self.wait.setting())).await,
                false => Ok(()),
            }
        };
        let work = join_all(calls.iter().zip(&prepared).map(|(call, prepared)| async move {
            match prepared {
                Some(statement) => {
                    let values: Vec<&(dyn ToSql + Sync)> =
                        call.values.iter().map(|value| &**value as _).collect();
                    client.query(statement, &values).await
                }
                None => {
                    let types = call.query.types().iter().cloned();
                    let values: Vec<(&(dyn ToSql + Sync), _)> =
                        call.values.iter().map(|value| &**value as _).zip(types).collect();
                    client.query_typed(connections.queries.text(call.query), &values).await
                }
            }
        }));
        let end = async {
            match ends {
                true => client.batch_execute("COMMIT").await,
                false => Ok(()),
            }
        };
        let (begin, work, end) = tokio::join!(biased; begin, work, end);
        let rows: Result<Vec<_>, _> = work.into_iter().collect();
        let rows = begin.and(rows);
        self.is_refused = rows.as_ref().is_err_and(|error| error.as_db_error().is_some());
        let rows = rows?;
        end?;
        Ok(rows)
    }

    /// Makes the connection usable again, or lets go of it.
    async fn clear(&mut self, fault: &Fault, has_ended: bool) {
        let Some(client) = &self.client else { return };
        let is_lost = matches!(fault, Fault::Away(_)) || client.is_closed();
        match (is_lost, has_ended) {
            (true, _) => self.discard(),
            (false, true) => self.is_open = false,
            (false, false) => self.undo().await,
        }
    }

    /// Undoes a transaction that was begun.
    pub(crate) async fn undo(&mut self) {
        let Some(client) = &self.client else { return };
        let patience = self.connections.patience;
        let undone = tokio::time::timeout(patience, client.batch_execute("ROLLBACK")).await;
        match undone {
            Ok(Ok(())) => self.is_open = false,
            _ => self.discard(),
        }
    }

    fn discard(&mut self) {
        if let Some(client) = self.client.take() {
            // Taken out of the pool, and closed with it.
            drop(Object::take(client));
            self.connections.shed();
        }
    }

    /// Text without parameters, outside of what is prepared: upkeep and migrations.
    pub(crate) async fn script(&mut self, sql: &str) -> Result<(), Fault> {
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        match client.batch_execute(sql).await {
            Ok(()) => Ok(()),
            Err(error) => {
                let fault = Fault::from(error);
                self.clear(&fault, false).await;
                Err(fault)
            }
        }
    }

    /// One statement that was composed at run time.
    pub(crate) async fn composed(
        &mut self,
        sql: &str,
        values: &[(Value, tokio_postgres::types::Type)],
    ) -> Result<Vec<Row>, Fault> {
        let Some(client) = &self.client else { return Err(Fault::Away("gone".into())) };
        let values: Vec<(&(dyn ToSql + Sync), _)> =
            values.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
        let patience = self.connections.patience;
        let outcome = tokio::time::timeout(patience, client.query_typed(sql, &values)).await;
        let outcome = match outcome {
            Ok(answer) => answer.map_err(Fault::from),
            Err(_) => Err(Fault::Away("no answer in time".into())),
        };
        if let Err(fault) = &outcome {
            self.clear(fault, true).await;
        }
        outcome
    }
}

impl Drop for Connection<'_> {
    /// Whoever gave up in the middle leaves a transaction open: that connection is closed, which
    /// undoes it, and not used again.
    fn drop(&mut self) {
        if self.is_open
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
