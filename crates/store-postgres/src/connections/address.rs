//! Addresses of databases, as they may be shown. Nothing of an address reaches a screen, a log or
//! an error but what is put together here from its harmless parts: a password can stand in the user
//! part, in `?password=`, in `password=` of a key=value text, or anywhere in an address that is
//! mistyped.

mod parameters;

use crate::connections::connect::Address;
pub use crate::connections::connect::BadAddress;
use crate::connections::encryption::Mode;
pub(crate) use parameters::without;
use std::str::FromStr;
use tokio_postgres::config::Host;

/// What is shown of an address that cannot be read, or whose parts are too odd to be sure of.
pub const UNREADABLE: &str = "(an address that cannot be read, so it is not shown)";

/// Not shown: every address that names no port has it.
const PORT: u16 = 5432;

/// Whether text is an address of a database, as a URL or as `key=value` pairs.
///
/// # Errors
/// Why it is none, in words that hold nothing of it.
pub fn check(address: &str) -> Result<(), BadAddress> {
    Address::from_str(address).map(|_| ())
}

/// The address without its secrets: user, hosts, ports, database, and the `sslmode` it names.
pub fn shown(address: &str) -> String {
    parts(address).unwrap_or_else(|| UNREADABLE.to_owned())
}

fn parts(address: &str) -> Option<String> {
    let Address { settings: config, encryption } = Address::from_str(address).ok()?;
    let mut text = String::from("postgres://");
    if let Some(user) = config.get_user() {
        text.push_str(plain(user)?);
    }
    if config.get_password().is_some() {
        text.push_str(":***");
    }
    if !text.ends_with("//") {
        text.push('@');
    }
    for (nth, host) in config.get_hosts().iter().enumerate() {
        let host = match host {
            Host::Tcp(host) => host.as_str(),
            Host::Unix(path) => path.to_str()?,
        };
        if nth > 0 {
            text.push(',');
        }
        let is_bare_v6 = host.contains(':');
        text.push_str(if is_bare_v6 { "[" } else { "" });
        text.push_str(&host_name(host)?.replace('/', "%2F"));
        text.push_str(if is_bare_v6 { "]" } else { "" });
        let ports = config.get_ports();
        let port = ports.get(nth).or_else(|| ports.first());
        if let Some(port) = port.filter(|port| **port != PORT) {
            text.push_str(&format!(":{port}"));
        }
    }
    if let Some(name) = config.get_dbname() {
        text.push('/');
        text.push_str(plain(name)?);
    }
    if encryption.mode() != Mode::Prefer {
        text.push_str(&format!("?sslmode={}", encryption.mode().name()));
    }
    Some(text)
}

/// Names that cannot hide a mistyped password.
fn plain(text: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    text.chars().all(is_plain).then_some(text)
}

/// The same for hosts.
pub(crate) fn host_name(text: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/');
    text.chars().all(is_plain).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown_wherever_it_stands() {
        for (address, expected) in [
            ("postgres://u:hush@h/db", "postgres://u:***@h/db"),
            ("postgres://u:hu%40sh@h:5433/db", "postgres://u:***@h:5433/db"),
            ("postgres://u@h/db?password=hush", "postgres://u:***@h/db"),
            ("postgres://u@h/db?application_name=hush", "postgres://u@h/db"),
            ("host=h port=5433 user=u password=hush dbname=db", "postgres://u:***@h:5433/db"),
            ("host=h user=u password='hu sh' dbname=db", "postgres://u:***@h/db"),
            ("postgres://h/db", "postgres://h/db"),
            ("postgres://h/db?sslmode=require", "postgres://h/db?sslmode=require"),
            (
                "postgres://u@h/db?sslmode=require&password=hush",
                "postgres://u:***@h/db?sslmode=require",
            ),
            ("postgres://u@h/db?sslmode=hush", UNREADABLE),
            (
                "postgres://u@h/db?sslmode=verify-ca&sslrootcert=/hush",
                "postgres://u@h/db?sslmode=verify-ca",
            ),
            ("postgres://a,b/db", "postgres://a,b/db"),
            ("postgres://u:hush@h@hush/db", UNREADABLE),
            ("postgres://u:hush/db", UNREADABLE),
            ("postgres://u:hu@sh:x@h/db", UNREADABLE),
            ("mysql://u:hush@h/db", UNREADABLE),
            ("host=h password=hu sh", UNREADABLE),
            ("u:hush@h/db", UNREADABLE),
            ("hush", UNREADABLE),
        ] {
            let told = shown(address);
            assert_eq!(told, expected, "{address}");
            assert!(!told.contains("hush") && !told.contains("hu ") && !told.contains("sh@"));
        }
    }
}
