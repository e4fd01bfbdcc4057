//! The link that `serve` prints: whoever has it signs in, once, within a few minutes. It stands for
//! a token that the server knows, and holds nothing of it.

use crate::auth;
use crate::limits::ONCE_MINUTES_MAX;
use mainspring_engine::Engine;
use mainspring_kernel::{Timestamp, TokenId};
use sha2::{Digest, Sha256};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;

/// A link that holds once.
#[derive(Debug, Clone)]
pub struct Once {
    token: TokenId,
    digest: [u8; 32],
    until: Timestamp,
}

/// A link for whoever holds the token `text`: what is to be kept of it in the configuration of the
/// server, and the path with its secret, to be shown once.
pub fn sign_in_once(engine: &Engine, text: &str) -> (Once, String) {
    let secret = format!("{:032x}", engine.fresh_bits());
    let once = Once {
        token: auth::token_of(text),
        digest: Sha256::digest(secret.as_bytes()).into(),
        until: engine.now() + Duration::from_secs(ONCE_MINUTES_MAX * 60),
    };
    (once, format!("/sign-in?once={secret}"))
}

/// The link that still holds, if one does.
#[derive(Debug, Default)]
pub(crate) struct OnceLinks(Mutex<Option<Once>>);

impl OnceLinks {
    pub(crate) fn new(once: Option<Once>) -> Self {
        OnceLinks(Mutex::new(once))
    }

    /// The token that a link stands for; from now on it holds no more.
    pub(crate) fn take(&self, secret: &str, now: Timestamp) -> Option<TokenId> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let given: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
        let is_it = |once: &mut Once| bool::from(once.digest.ct_eq(&given));
        held.take_if(is_it).filter(|once| now < once.until).map(|once| once.token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> OnceLinks {
        let digest = Sha256::digest(b"secret").into();
        OnceLinks::new(Some(Once { token: TokenId(5), digest, until: Timestamp(100) }))
    }

    #[test]
    fn a_link_holds_once_and_not_for_long() {
        let links = link();
        assert_eq!(links.take("wrong", Timestamp(1)), None);
        assert_eq!(links.take("secret", Timestamp(99)), Some(TokenId(5)));
        assert_eq!(links.take("secret", Timestamp(99)), None, "it was used");
        let links = link();
        assert_eq!(links.take("secret", Timestamp(100)), None, "it is too late");
        assert_eq!(links.take("secret", Timestamp(1)), None, "and stays so");
        assert_eq!(OnceLinks::default().take("", Timestamp(1)), None);
    }
}
