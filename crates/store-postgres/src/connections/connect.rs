//! How a database is reached: every connection, whoever asks for it, is made here, so that what an
//! address says about encryption holds for all of them.

use crate::connections::address;
use crate::connections::encryption::{Encryption, Maker, Mode, PARAMETERS, Stream, TlsFault};
use crate::migrate::{self, MigrateError};
use futures_util::future::BoxFuture;
use std::error::Error as Cause;
use std::str::FromStr;
use tokio::task::JoinHandle;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Connection, Error, Socket};

/// An address that was read.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    /// What the driver has to know; whoever connects may add to it.
    pub(crate) settings: Config,
    pub(crate) encryption: Encryption,
}

/// Why a text is no address. Holds nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadAddress {
    /// It cannot be read at all.
    #[error("it is no PostgreSQL address")]
    Unreadable,
    /// What it says about encryption makes no sense.
    #[error("{0}")]
    Encryption(String),
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let (text, taken) = address::without(text, &PARAMETERS);
        let mut settings = Config::from_str(&text).map_err(|_| BadAddress::Unreadable)?;
        let encryption = Encryption::read(&taken).map_err(BadAddress::Encryption)?;
        if settings.get_hosts().is_empty() {
            // The driver wants a name for every encrypted connection; a certificate may be for an
            // address.
            for host in settings.get_hostaddrs().to_vec() {
                settings.host(host.to_string());
            }
        }
        settings.ssl_mode(encryption.driver_mode());
        // As in libpq: a socket of the same machine is never encrypted.
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        if !settings.get_hosts().is_empty() && settings.get_hosts().iter().all(is_socket) {
            settings.ssl_mode(tokio_postgres::config::SslMode::Disable);
        }
        Ok(Address { settings, encryption })
    }
}

impl Address {
    /// Connects. Whoever does so has to drive the connection.
    pub(crate) async fn connect(&self) -> Result<(Client, Connection<Socket, Stream>), Error> {
        let maker = Maker::load(&self.encryption).await;
        let outcome = self.settings.connect(maker.clone()).await;
        match outcome {
            Err(error) if self.encryption.mode() == Mode::Prefer && is_worth_plain(&error) => {
                let mut plain = self.settings.clone();
                plain.ssl_mode(tokio_postgres::config::SslMode::Disable);
                // If that is no better, the first answer says more.
                plain.connect(maker).await.map_err(|_| error)
            }
            outcome => outcome,
        }
    }

    /// Why no connection can be made whatever the server does: a file of certificates that cannot
    /// be used.
    pub(crate) async fn fault(&self) -> Option<String> {
        let maker = Maker::load(&self.encryption).await;
        maker.fault().map(ToString::to_string)
    }
}

/// Whether a server that failed to encrypt may take plain text: the handshake failed, or its
/// `pg_hba.conf` has no line for encrypted connections. A wrong password is not said again.
fn is_worth_plain(error: &Error) -> bool {
    let is_handshake =
        error.source().and_then(|cause| cause.downcast_ref()).is_some_and(|fault: &TlsFault| {
            match fault {
                TlsFault::Handshake(_) => true,
                TlsFault::Files(_) => false,
            }
        });
    is_handshake || error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
}

/// Connects to the database of an address, encrypted as it says. The second part is the connection
/// itself, to be driven until the client is dropped.
///
/// # Errors
/// If the address is none, or the database cannot be reached.
pub async fn connect(address: &str) -> Result<(Client, BoxFuture<'static, ()>), MigrateError> {
    let address: Address =
        address.parse().map_err(|error: BadAddress| MigrateError::Address(error.to_string()))?;
    let (client, connection) = address.connect().await.map_err(migrate::away)?;
    // The error reaches whoever uses the client.
    let driving = async move {
        let _ = connection.await;
    };
    Ok((client, Box::pin(driving)))
}

/// The pool's way in.
impl deadpool_postgres::Connect for Address {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        Box::pin(async move {
            let (client, connection) = Address::connect(self).await?;
            let driving = tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(%error, "a connection ended");
                }
            });
            Ok((client, driving))
        })
    }
}
