//! What an address says about encryption, in the words of libpq: `sslmode`, `sslrootcert`,
//! `sslcert`, `sslkey`. Nothing is read from the environment or the home directory. Read next:
//! `encryption/files.rs` for what is checked, `encryption/stream.rs` for the connection.

mod files;
mod stream;
mod words;

pub(crate) use stream::{Maker, Stream};
pub(crate) use words::{TlsFault, explain};

use std::path::PathBuf;
use tokio_postgres::config::SslMode;

/// Parameters of an address that are ours to read; the driver knows the others.
pub(crate) const PARAMETERS: [&str; 4] = ["sslmode", "sslrootcert", "sslcert", "sslkey"];

/// The file name that stands for the certificates the operating system trusts.
const SYSTEM: &str = "system";

/// What is wanted of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Plain text.
    Disable,
    /// Encrypted if the server can, else plain text; nothing is checked.
    Prefer,
    /// Encrypted; the certificate is checked only if there is something to check it by.
    Require,
    /// Encrypted, with a certificate signed by somebody who is trusted.
    VerifyCa,
    /// The same, and the certificate must be for the host that was asked for.
    VerifyFull,
}

/// What is looked at of a server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Nothing,
    Chain,
    ChainAndName,
}

/// By whom certificates have to be signed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Roots {
    File(PathBuf),
    System,
}

/// How we show who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    certificate: PathBuf,
    key: PathBuf,
}

/// What an address says about encryption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Encryption {
    mode: Mode,
    roots: Option<Roots>,
    identity: Option<Identity>,
}

impl Encryption {
    /// Reads the parameters named above; of a name that comes twice the last counts.
    ///
    /// # Errors
    /// What is wrong with them, in words that hold nothing of the address.
    pub(crate) fn read(given: &[(String, String)]) -> Result<Self, String> {
        let said = |name: &str| {
            let mut named = given.iter().rev().filter(|(key, _)| key == name);
            named.next().map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
        };
        let roots = said("sslrootcert").map(|path| match path {
            SYSTEM => Roots::System,
            path => Roots::File(path.into()),
        });
        let mode = match (said("sslmode"), &roots) {
            (Some(text), _) => read_mode(text)?,
            // Public authorities sign for anybody: the name is what tells servers apart.
            (None, Some(Roots::System)) => Mode::VerifyFull,
            (None, _) => Mode::Prefer,
        };
        let identity = match (said("sslcert"), said("sslkey")) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(Identity { certificate: certificate.into(), key: key.into() })
            }
            (Some(_), None) => return Err("sslcert needs sslkey, the file of its key".into()),
            (None, Some(_)) => return Err("sslkey needs sslcert, the certificate it is of".into()),
        };
        if roots == Some(Roots::System) && mode != Mode::VerifyFull {
            let why = "sslrootcert=system needs sslmode=verify-full: public authorities sign for \
                       anybody, so that only the name tells servers apart";
            return Err(why.into());
        }
        if roots.is_none() && matches!(mode, Mode::VerifyCa | Mode::VerifyFull) {
            return Err(format!(
                "sslmode={} needs sslrootcert: the file with the certificate of the CA that \
                 signed the server's, or `system` for those the operating system trusts",
                mode.name()
            ));
        }
        Ok(match mode {
            // Nothing of it is looked at, so nothing of it is read.
            Mode::Disable => Encryption { mode, roots: None, identity: None },
            Mode::Prefer | Mode::Require | Mode::VerifyCa | Mode::VerifyFull => {
                Encryption { mode, roots, identity }
            }
        })
    }

    /// What the driver has to know.
    pub(crate) fn driver_mode(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether an authority is named that nobody asks, because the mode checks nothing.
    pub(crate) fn has_idle_roots(&self) -> bool {
        self.roots.is_some() && self.check() == Check::Nothing
    }

    fn check(&self) -> Check {
        match (self.mode, &self.roots) {
            (Mode::VerifyFull, _) => Check::ChainAndName,
            (Mode::VerifyCa, _) | (Mode::Require, Some(_)) => Check::Chain,
            (Mode::Disable | Mode::Prefer, _) | (Mode::Require, None) => Check::Nothing,
        }
    }
}

impl Mode {
    /// As an address says it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Disable => "disable",
            Mode::Prefer => "prefer",
            Mode::Require => "require",
            Mode::VerifyCa => "verify-ca",
            Mode::VerifyFull => "verify-full",
        }
    }
}

fn read_mode(text: &str) -> Result<Mode, String> {
    let all = [Mode::Disable, Mode::Prefer, Mode::Require, Mode::VerifyCa, Mode::VerifyFull];
    match all.into_iter().find(|mode| mode.name() == text) {
        Some(mode) => Ok(mode),
        None if text == "allow" => {
            Err("sslmode=allow is not known here; sslmode=prefer takes what the server has".into())
        }
        None => {
            Err("sslmode must be disable, prefer, require, verify-ca or verify-full".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Encryption, String> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        let pairs: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Encryption::read(&pairs)
    }

    #[test]
    fn what_is_checked_is_what_libpq_checks() {
        for (text, driver, check) in [
            ("", SslMode::Prefer, Check::Nothing),
            ("sslmode=disable", SslMode::Disable, Check::Nothing),
            ("sslmode=prefer", SslMode::Prefer, Check::Nothing),
            ("sslmode=require", SslMode::Require, Check::Nothing),
            ("sslmode=require sslrootcert=/ca", SslMode::Require, Check::Chain),
            ("sslmode=verify-ca sslrootcert=/ca", SslMode::Require, Check::Chain),
            ("sslmode=verify-full sslrootcert=/ca", SslMode::Require, Check::ChainAndName),
            ("sslrootcert=system", SslMode::Require, Check::ChainAndName),
            ("sslmode=disable sslmode=require", SslMode::Require, Check::Nothing),
        ] {
            let encryption = read(text).expect(text);
            assert_eq!((encryption.driver_mode(), encryption.check()), (driver, check), "{text}");
        }
        assert!(read("sslrootcert=/ca").expect("prefer").has_idle_roots());
        assert!(!read("sslmode=require sslrootcert=/ca").expect("checked").has_idle_roots());
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_words_that_repeat_nothing() {
        for (text, word) in [
            ("sslmode=hush", "sslmode must be"),
            ("sslmode=VERIFY-FULL", "sslmode must be"),
            ("sslmode=allow", "sslmode=prefer"),
            ("sslmode=verify-ca", "needs sslrootcert"),
            ("sslmode=verify-full", "needs sslrootcert"),
            ("sslmode=require sslrootcert=system", "needs sslmode=verify-full"),
            ("sslcert=/hush", "needs sslkey"),
            ("sslkey=/hush", "needs sslcert"),
        ] {
            let told = read(text).expect_err(text);
            assert!(told.contains(word), "{text}: {told}");
            assert!(!told.contains("hush"), "{told}");
        }
    }
}
