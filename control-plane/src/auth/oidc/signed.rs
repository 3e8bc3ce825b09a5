//! Whether a token is signed by one of a provider's keys.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode};

use super::SignOnError;
use super::claims::Claims;

/// How a token may be signed: by keys of which we hold the public half only. Never `none`, never
/// HMAC, whose key would be the client's secret, or a public key taken for one.
pub(super) const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Why a token is not taken for one of the provider's.
pub(super) enum Unverified {
    /// None of the keys has signed it.
    Key(&'static str),
    /// What it says does not read.
    Claims,
}

impl From<Unverified> for SignOnError {
    fn from(why: Unverified) -> Self {
        Self::Token(match why {
            Unverified::Key(problem) => problem,
            Unverified::Claims => "a claim it needs is missing or wrong",
        })
    }
}

/// What a token says that one of these keys has signed.
pub(super) fn signed(token: &str, header: &Header, keys: &[Jwk]) -> Result<Claims, Unverified> {
    let mut validation = Validation::new(header.alg);
    // Who it is for and how long it is good is checked by `Claims::check`, by our own clock.
    validation.required_spec_claims.clear();
    (validation.validate_exp, validation.validate_aud) = (false, false);
    let mut problem = "it is signed by a key that is none of the provider's";
    for key in suitable(keys, header).filter_map(|key| DecodingKey::from_jwk(key).ok()) {
        match decode::<Claims>(token, &key, &validation) {
            Ok(decoded) => return Ok(decoded.claims),
            Err(error) if is_signature(&error) => problem = "its signature is wrong",
            Err(_) => return Err(Unverified::Claims),
        }
    }
    Err(Unverified::Key(problem))
}

/// Keys that a token with this header may be signed by.
fn suitable<'a>(keys: &'a [Jwk], header: &'a Header) -> impl Iterator<Item = &'a Jwk> {
    let curve = |it: &EllipticCurve, wanted: EllipticCurve| *it == wanted;
    keys.iter().filter(move |key| {
        let common = &key.common;
        let kind = match (&key.algorithm, header.alg) {
            (AlgorithmParameters::RSA(_), Algorithm::RS256) => true,
            (AlgorithmParameters::EllipticCurve(it), Algorithm::ES256) => {
                curve(&it.curve, EllipticCurve::P256)
            }
            (AlgorithmParameters::OctetKeyPair(it), Algorithm::EdDSA) => {
                curve(&it.curve, EllipticCurve::Ed25519)
            }
            _ => false,
        };
        let named = header.kid.is_none() || header.kid == common.key_id;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let for_this = common
            .key_algorithm
            .is_none_or(|it| it == KeyAlgorithm::from(header.alg));
        kind && named && signs && for_this
    })
}

fn is_signature(error: &jsonwebtoken::errors::Error) -> bool {
    use jsonwebtoken::errors::ErrorKind;
    !matches!(
        error.kind(),
        ErrorKind::Json(_) | ErrorKind::Utf8(_) | ErrorKind::Base64(_)
    )
}
