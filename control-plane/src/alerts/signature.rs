//! Signatures after the Standard Webhooks convention: HMAC-SHA-256 over `id.timestamp.body`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// How long a secret may be, in bytes, by the convention.
const LEN_RANGE: std::ops::RangeInclusive<usize> = 24..=64;

/// Why a signing secret was refused. It does not repeat the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected `whsec_` and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)"
)]
pub struct SecretError;

/// What a receiver recognises the controller by. Prints nothing.
#[derive(Debug, Clone)]
pub struct SigningSecret(SecretSlice<u8>);

impl SigningSecret {
    /// Reads `whsec_...`.
    pub fn parse(text: &SecretString) -> Result<Self, SecretError> {
        let text = text
            .expose_secret()
            .trim()
            .strip_prefix(PREFIX)
            .ok_or(SecretError)?;
        let key = STANDARD.decode(text).map_err(|_| SecretError)?;
        if LEN_RANGE.contains(&key.len()) {
            Ok(Self(key.into()))
        } else {
            Err(SecretError)
        }
    }

    /// The value of the header `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret())
            .expect("HMAC takes a key of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conventions_own_example_comes_out() {
        let secret =
            SigningSecret::parse(&"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()).unwrap();
        assert_eq!(
            secret.sign(
                "msg_p5jXN8AQM9LWM0D4loKWxJek",
                1_614_265_330,
                br#"{"test": 2432232314}"#
            ),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn s09_a_secret_that_cannot_be_used_is_not_repeated() {
        for text in ["canary-secret", "whsec_canary!", "whsec_Y2FuYXJ5"] {
            let error = SigningSecret::parse(&text.into()).unwrap_err().to_string();
            assert!(
                !error.contains("canary") && !error.contains("Y2Fu"),
                "{error}"
            );
        }
    }
}
