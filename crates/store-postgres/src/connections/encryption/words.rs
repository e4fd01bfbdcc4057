//! What went wrong with encryption, in words that say what to do.

use rustls::{AlertDescription, CertificateError, Error};
use std::error::Error as Cause;
use std::io;

/// Why there is no encrypted connection.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum TlsFault {
    /// Our own files cannot be used.
    #[error("{0}")]
    Files(String),
    /// We and the server came to no agreement.
    #[error("{0}")]
    Handshake(String),
}

/// How the driver says that the server answered with no.
const REFUSED_BY_SERVER: &str = "server does not support TLS";

/// So much is told of the names in a certificate.
const SHOWN_NAMES: usize = 5;
const SHOWN_LETTERS: usize = 100;

/// What an error of the driver is about, if it is about encryption.
pub(crate) fn explain(error: &tokio_postgres::Error) -> Option<String> {
    let cause = error.source()?;
    if let Some(fault) = cause.downcast_ref::<TlsFault>() {
        return Some(fault.to_string());
    }
    if cause.to_string() == REFUSED_BY_SERVER {
        let told = "the server takes no encrypted connections, and the sslmode of the address \
                    asks for one; turn on ssl in its postgresql.conf (behind PgBouncer: \
                    client_tls_sslmode), or use sslmode=prefer";
        return Some(told.to_owned());
    }
    // A server that does not like our certificate says so after the handshake.
    rustls_error(cause.downcast_ref::<io::Error>()?).map(|error| words(error, "", ""))
}

/// Why a handshake with `host` failed, whose certificate was checked by what `trusted` holds.
pub(super) fn explain_handshake(error: &io::Error, host: &str, trusted: &str) -> String {
    match rustls_error(error) {
        Some(error) => words(error, host, trusted),
        None => format!("the connection ended during the TLS handshake: {error}"),
    }
}

fn rustls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn words(error: &Error, host: &str, trusted: &str) -> String {
    // Other crates' enums may grow: whatever is not named here is told in their words.
    #[expect(clippy::wildcard_enum_match_arm, reason = "somebody else's enums that may grow")]
    match error {
        Error::InvalidCertificate(why) => match why {
            CertificateError::UnknownIssuer => format!(
                "the server's certificate is not signed by a CA of {trusted}; name the file of \
                 the CA that signed it in sslrootcert, or make the server send the certificates \
                 in between"
            ),
            CertificateError::ExpiredContext { time, not_after } => format!(
                "the server's certificate, or one that it is signed by, expired {} ago; renew it",
                span(time.as_secs().saturating_sub(not_after.as_secs()))
            ),
            CertificateError::NotValidYetContext { time, not_before } => format!(
                "the server's certificate, or one that it is signed by, is valid only in {}; \
                 compare the clocks of the two machines",
                span(not_before.as_secs().saturating_sub(time.as_secs()))
            ),
            CertificateError::NotValidForNameContext { presented, .. } => {
                other_name(presented, host)
            }
            CertificateError::Other(why) if why.to_string().contains("CaUsedAsEndEntity") => {
                "the server shows the certificate of a CA as its own; make one that this CA signs, \
                 or use sslmode=require without sslrootcert"
                    .to_owned()
            }
            CertificateError::Other(why) if why.to_string().contains("CertVersion") => {
                "the server's certificate has an old form without extensions; make one of \
                 version 3, with a subjectAltName"
                    .to_owned()
            }
            why => format!("the server's certificate is refused: {why}"),
        },
        Error::AlertReceived(
            alert @ (AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateRevoked
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRequired),
        ) => format!(
            "the server does not take the certificate of this client ({alert:?}); look at sslcert \
             and at the server's ssl_ca_file"
        ),
        error => format!("the TLS handshake failed: {error}"),
    }
}

fn other_name(presented: &[String], host: &str) -> String {
    if presented.is_empty() {
        return format!(
            "the server's certificate is for no host at all: it has no subjectAltName, and its \
             common name is not looked at; make one for {host}, or use sslmode=verify-ca"
        );
    }
    // They come as DnsName("name") or IpAddress(...). Whoever answered wrote them: only what names
    // are made of is shown.
    let plain = |text: &String| {
        let inner = text.split_once('(').map_or(text.as_str(), |(_, rest)| rest);
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '*' | ':');
        inner.chars().filter(is_plain).take(SHOWN_LETTERS).collect::<String>()
    };
    let names: Vec<String> = presented.iter().take(SHOWN_NAMES).map(plain).collect();
    format!(
        "the server's certificate is for {}, not for {host}; connect by a name that it is for, \
         make one for {host}, or use sslmode=verify-ca",
        names.join(", ")
    )
}

/// A length of time in the largest unit that fits.
fn span(seconds: u64) -> String {
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes"), (1, "seconds")];
    let fits = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = fits.unwrap_or((1, "seconds"));
    format!("{} {name}", seconds / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_short() {
        let told = [0, 119, 120, 7_199, 7_200, 172_800].map(span);
        let expected =
            ["0 seconds", "119 seconds", "2 minutes", "119 minutes", "2 hours", "2 days"];
        assert_eq!(told, expected);
    }

    #[test]
    fn names_are_told_as_people_write_them() {
        let names = ["DnsName(\"db.example\")".to_owned(), "IpAddress(10.0.0.1)".to_owned()];
        let told = other_name(&names, "localhost");
        assert!(told.contains("is for db.example, 10.0.0.1, not for localhost"), "{told}");
        let odd = ["DnsName(\"a\u{1b}[31m\nb\")".to_owned()];
        assert!(other_name(&odd, "localhost").contains("is for a31mb, not"), "no escapes");
        assert!(other_name(&[], "localhost").contains("no subjectAltName"));
    }
}
