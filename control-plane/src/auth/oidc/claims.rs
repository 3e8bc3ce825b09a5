//! What an ID token says, and whether it says it to us, now. The signature is checked before.

use hedgerow_core::moment::Moment;
use hedgerow_dashboard::backend::Role;
use serde::Deserialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use super::{Oidc, Person, SignOnError};

/// How far the provider's clock may differ from ours, in seconds.
const LEEWAY_S: f64 = 60.0;
/// Longest subject, by the standard.
const SUBJECT_LEN_MAX: usize = 255;

/// The claims of an ID token.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claims {
    iss: String,
    sub: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    nbf: Option<f64>,
    iat: Option<f64>,
    nonce: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

/// What a token has to say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client_id: &'a str,
    pub(super) nonce: &'a str,
    pub(super) now: Moment,
}

impl Claims {
    /// Whether it is for us, of this sign-in, and in time; what is wrong with it.
    pub(super) fn check(&self, expected: &Expected<'_>) -> Result<(), &'static str> {
        if self.iss != expected.issuer {
            return Err("it is another issuer's");
        }
        let audience = match &self.aud {
            Audience::One(it) => std::slice::from_ref(it),
            Audience::Many(them) => them,
        };
        if !audience.iter().any(|it| it == expected.client_id) {
            return Err("it is for another audience");
        }
        match &self.azp {
            Some(party) if party != expected.client_id => {
                return Err("it was given to another party (azp)");
            }
            None if audience.len() > 1 => {
                return Err("it is for several and does not say to whom it was given (azp)");
            }
            _ => {}
        }
        let now = expected.now.as_millis() as f64 / 1e3;
        if self.exp <= now - LEEWAY_S {
            return Err("it has expired");
        }
        if [self.nbf, self.iat]
            .into_iter()
            .flatten()
            .any(|from| from >= now + LEEWAY_S)
        {
            return Err("it is of the future: the clocks differ by more than a minute");
        }
        let nonce = self.nonce.as_deref().unwrap_or_default();
        if !bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes())) {
            return Err("it is of another sign-in (nonce)");
        }
        if !(1..=SUBJECT_LEN_MAX).contains(&self.sub.len()) {
            return Err("it names nobody (sub)");
        }
        Ok(())
    }

    /// Who they are here, and what they may do.
    pub(super) fn person(&self, settings: &Oidc) -> Result<Person, SignOnError> {
        let name = self.name(settings)?;
        let identity = format!("{} {}", self.iss, self.sub);
        match self.role(settings) {
            Some(role) => Ok(Person {
                identity,
                name,
                role,
            }),
            None => Err(SignOnError::NoRole { name, identity }),
        }
    }

    fn name(&self, settings: &Oidc) -> Result<String, SignOnError> {
        let claims = match &settings.username_claim {
            Some(claim) => vec![claim.as_str()],
            None => vec!["preferred_username", "email"],
        };
        let (claim, name) = claims
            .iter()
            .find_map(|claim| Some((*claim, self.claim(claim)?.as_str()?)))
            .ok_or_else(|| {
                SignOnError::Provider(format!(
                    "the ID token has no {}: expected a name in it; the setting oidc.username_claim says in which claim",
                    claims.join(" and no ")
                ))
            })?;
        // Anybody can write anybody's address into a profile that nobody has checked.
        if claim == "email" && self.rest.get("email_verified") == Some(&Value::Bool(false)) {
            return Err(SignOnError::Token("its e-mail address is not verified"));
        }
        crate::auth::manage::check_name(name)
            .map_err(|error| SignOnError::Provider(error.to_string()))?;
        Ok(name.to_owned())
    }

    /// The greatest role that a value of the claim is worth.
    fn role(&self, settings: &Oidc) -> Option<Role> {
        let worth = |value: &Value| settings.roles.get(value.as_str()?).copied();
        let found = match self.claim(&settings.role_claim) {
            Some(Value::Array(values)) => values.iter().filter_map(worth).max(),
            Some(value) => worth(value),
            None => None,
        };
        found.or(settings.default_role)
    }

    /// A claim by its name, or by the names of objects that lead to it, with dots between.
    fn claim(&self, name: &str) -> Option<&Value> {
        if let Some(value) = self.rest.get(name) {
            return Some(value);
        }
        let mut path = name.split('.');
        let first = self.rest.get(path.next()?)?;
        path.try_fold(first, |value, key| value.get(key))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    const EXPECTED: Expected<'static> = Expected {
        issuer: "https://id.example.org",
        client_id: "hedgerow",
        nonce: "n-1",
        now: Moment::from_millis(1_700_000_000_000),
    };

    fn claims(changed: &Value) -> Claims {
        let mut all = json!({
            "iss": "https://id.example.org", "sub": "1234", "aud": "hedgerow",
            "exp": 1_700_000_300, "iat": 1_700_000_000, "nonce": "n-1",
            "preferred_username": "ada", "email": "ada@example.org",
        });
        for (key, value) in changed.as_object().unwrap() {
            all[key] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn s11_a_token_is_taken_only_if_it_is_ours_of_now_and_of_this_sign_in() {
        for (changed, problem) in [
            (json!({}), None),
            (json!({"aud": ["hedgerow"]}), None),
            (json!({"aud": ["hedgerow", "b"], "azp": "hedgerow"}), None),
            (json!({"exp": 1_699_999_950.5}), None),
            (json!({"iss": "https://id.example.org/"}), Some("issuer")),
            (json!({"aud": "another"}), Some("audience")),
            (json!({"aud": []}), Some("audience")),
            (json!({"aud": ["hedgerow", "b"]}), Some("azp")),
            (json!({"azp": "b"}), Some("azp")),
            (json!({"exp": 1_699_999_940}), Some("expired")),
            (json!({"nbf": 1_700_000_061}), Some("future")),
            (json!({"iat": 1_700_000_061}), Some("future")),
            (json!({"nonce": "n-2"}), Some("nonce")),
            (json!({"nonce": null}), Some("nonce")),
            (json!({"sub": ""}), Some("sub")),
            (json!({"sub": "x".repeat(256)}), Some("sub")),
        ] {
            let found = claims(&changed).check(&EXPECTED).err();
            assert_eq!(found.is_some(), problem.is_some(), "{changed}: {found:?}");
            let words = found.unwrap_or_default();
            assert!(
                words.contains(problem.unwrap_or_default()),
                "{changed}: {words}"
            );
        }
    }

    fn settings() -> Oidc {
        Oidc {
            issuer: EXPECTED.issuer.into(),
            client_id: "hedgerow".into(),
            client_secret: None,
            name: "Example".into(),
            scopes: vec!["openid".into()],
            role_claim: "realm_access.roles".into(),
            roles: BTreeMap::from([
                ("sre".into(), Role::Operator),
                ("lead".into(), Role::Administrator),
            ]),
            default_role: None,
            username_claim: None,
            allow_private: false,
        }
    }

    #[test]
    fn the_greatest_role_that_a_claim_is_worth_holds_and_none_is_given_for_nothing() {
        for (changed, role) in [
            (
                json!({"realm_access": {"roles": ["x", "sre", "lead"]}}),
                Some(Role::Administrator),
            ),
            (
                json!({"realm_access": {"roles": ["sre"]}}),
                Some(Role::Operator),
            ),
            (
                json!({"realm_access": {"roles": "sre"}}),
                Some(Role::Operator),
            ),
            (
                json!({"realm_access.roles": "lead"}),
                Some(Role::Administrator),
            ),
            (json!({"realm_access": {"roles": ["SRE", 7, null]}}), None),
            (json!({"realm_access": "sre"}), None),
            (json!({}), None),
        ] {
            let found = claims(&changed).person(&settings());
            match role {
                Some(role) => assert_eq!(found.unwrap().role, role, "{changed}"),
                None => assert!(
                    matches!(found, Err(SignOnError::NoRole { .. })),
                    "{changed}"
                ),
            }
        }
        let lenient = Oidc {
            default_role: Some(Role::Viewer),
            ..settings()
        };
        assert_eq!(
            claims(&json!({})).person(&lenient).unwrap().role,
            Role::Viewer
        );
    }

    #[test]
    fn a_person_is_their_issuer_and_subject_and_is_called_what_can_stand_in_the_record() {
        let lenient = Oidc {
            default_role: Some(Role::Viewer),
            ..settings()
        };
        let person = claims(&json!({})).person(&lenient).unwrap();
        assert_eq!(person.identity, "https://id.example.org 1234");
        assert_eq!(person.name, "ada");
        let by_mail = json!({"preferred_username": null});
        assert_eq!(
            claims(&by_mail).person(&lenient).unwrap().name,
            "ada@example.org"
        );
        for (changed, words) in [
            (json!({"preferred_username": "<b>"}), "not a name"),
            (json!({"preferred_username": "controller"}), "not a name"),
            (
                json!({"preferred_username": null, "email": null}),
                "username_claim",
            ),
            (
                json!({"preferred_username": null, "email_verified": false}),
                "not verified",
            ),
        ] {
            let error = claims(&changed).person(&lenient).unwrap_err().to_string();
            assert!(error.contains(words), "{changed}: {error}");
        }
    }
}
