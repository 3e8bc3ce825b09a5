//! Tokens: what a session cookie, a login link and an API token are made of.
//!
//! A token is 256 bits of the system's entropy. The store keeps its SHA-256 only: a stolen store
//! signs nobody in. A plain hash is enough where the secret cannot be guessed; passwords can be, and
//! go through [`super::password`].

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRng as _;
use rand::rngs::SysRng;
use secrecy::{ExposeSecret, SecretString};

use crate::store::{sha256, sha256_hex};

/// Bytes of entropy in a token.
const TOKEN_BYTES: usize = 32;
/// Longest text that is looked at as a token; ours are 43 to 48 characters.
const TOKEN_LEN_MAX: usize = 256;
/// What an API token begins with, so that a scanner of published code finds one.
pub(crate) const API_TOKEN_PREFIX: &str = "hgr_";

/// A new token, with `prefix` before it.
pub(crate) fn generate(prefix: &str) -> SecretString {
    let mut bytes = [0u8; TOKEN_BYTES];
    SysRng
        .try_fill_bytes(&mut bytes)
        .expect("without the system's entropy nothing here is safe");
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)).into()
}

/// What the store knows a token by: lower-case hexadecimal. None: too long to be one of ours.
pub(crate) fn digest(token: &str) -> Option<String> {
    (!token.is_empty() && token.len() <= TOKEN_LEN_MAX)
        .then(|| sha256_hex(&sha256(token.as_bytes())))
}

/// [`digest`] of a token just made.
pub(crate) fn digest_of(token: &SecretString) -> String {
    sha256_hex(&sha256(token.expose_secret().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_differ_and_print_nothing() {
        let (a, b) = (generate("hgr_"), generate("hgr_"));
        assert_ne!(a.expose_secret(), b.expose_secret());
        assert_eq!(a.expose_secret().len(), 4 + 43);
        assert!(!format!("{a:?}").contains(&a.expose_secret()[4..]));
    }

    #[test]
    fn a_digest_is_sha_256_in_hexadecimal() {
        assert_eq!(
            digest("abc").unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest(""), None);
        assert_eq!(digest(&"x".repeat(257)), None);
    }
}
