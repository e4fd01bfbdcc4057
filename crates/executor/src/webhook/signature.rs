//! Signatures by Standard Webhooks: HMAC-SHA256 over id, time and body, one per secret.

use crate::limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use mainspring_kernel::entity::subscription::SigningSecret;
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;

/// What secrets begin with, so that a leaked one is known for what it is.
const PREFIX: &str = "whsec_";

/// A secret that receivers know, too.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// Text that is no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be whsec_ and the base64 of 24 to 64 random bytes")]
pub struct BadSecret;

impl FromStr for Secret {
    type Err = BadSecret;

    fn from_str(text: &str) -> Result<Self, BadSecret> {
        let text = text.strip_prefix(PREFIX).ok_or(BadSecret)?;
        let bytes = STANDARD.decode(text).map_err(|_| BadSecret)?;
        match (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len()) {
            true => Ok(Secret(bytes)),
            false => Err(BadSecret),
        }
    }
}

impl From<&SigningSecret> for Secret {
    fn from(kept: &SigningSecret) -> Self {
        Secret(kept.0.to_vec())
    }
}

/// A secret is not shown.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The value of `webhook-signature`.
pub(super) fn header(secrets: &[Secret], id: &str, at: i64, body: &[u8]) -> String {
    let signed = secrets.iter().map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key of any length");
        mac.update(format!("{id}.{at}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    signed.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard itself.
    #[test]
    fn the_example_of_the_standard_is_signed_as_it_says() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let (id, at) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330);
        let signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(
            header(std::slice::from_ref(&secret), id, at, b"{\"test\": 2432232314}"),
            signed
        );
        let both = header(&[secret.clone(), secret], id, at, b"{\"test\": 2432232314}");
        assert_eq!(both, format!("{signed} {signed}"));
    }

    #[test]
    fn what_is_no_secret_is_refused_and_none_is_shown() {
        let long = format!("whsec_{}", STANDARD.encode([7; 65]));
        for bad in ["", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &*long] {
            assert_eq!(bad.parse::<Secret>(), Err(BadSecret), "{bad}");
        }
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
