//! A sign-in under way. Nothing of it is kept here until it ends: the browser holds it in a cookie
//! that this process has signed, so that beginning many costs no memory. Nonce and PKCE verifier
//! follow from the state and this process's key; the cookie tells neither.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hedgerow_core::moment::Moment;
use hmac::{Hmac, KeyInit as _, Mac as _};
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::SignOnError;
use crate::auth::token;
use crate::store::sha256;

/// How long a sign-in may take at the provider.
pub const TICKET_LASTS: Duration = Duration::from_mins(10);
/// Longest way back that is kept; a longer one leads to the overview.
const NEXT_LEN_MAX: usize = 1024;
/// Longest cookie looked at.
const KEPT_LEN_MAX: usize = 4096;
/// Sign-ins remembered as ended, so that none ends twice; one is forgotten when its time is over.
/// Beyond, the oldest is forgotten early: each takes one of its address's attempts, so that is a flood
/// from many, and the provider itself takes a code but once.
const ENDED_MAX: usize = 4096;

/// A sign-in begun.
pub(super) struct Ticket {
    /// What the provider hands back.
    pub(super) state: String,
    /// What its ID token is to hold.
    pub(super) nonce: String,
    /// The hash of what is shown when the code is exchanged.
    pub(super) challenge: String,
    /// The cookie.
    pub(super) keep: String,
}

/// A sign-in that comes back.
pub(super) struct Begun {
    pub(super) nonce: String,
    pub(super) verifier: SecretString,
    pub(super) next: String,
}

/// Issues and redeems them. Prints nothing of its key.
pub(super) struct Tickets {
    key: SecretString,
    /// Ends of time and states, in this order.
    ended: Mutex<VecDeque<(Moment, [u8; 32])>>,
}

impl Default for Tickets {
    fn default() -> Self {
        Self {
            key: token::generate(""),
            ended: Mutex::default(),
        }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl Tickets {
    pub(super) fn issue(&self, next: &str, now: Moment) -> Ticket {
        let state = token::generate("").expose_secret().to_owned();
        let next = if next.len() > NEXT_LEN_MAX { "/" } else { next };
        let until = now.plus(TICKET_LASTS).as_millis();
        let body = format!("{state}.{until}.{}", URL_SAFE_NO_PAD.encode(next));
        let seal = self.derive("cookie", &body);
        let verifier = self.derive("verifier", &state);
        Ticket {
            nonce: self.derive("nonce", &state),
            challenge: URL_SAFE_NO_PAD.encode(sha256(verifier.as_bytes())),
            keep: format!("{body}.{seal}"),
            state,
        }
    }

    /// Takes a sign-in that comes back, once.
    pub(super) fn redeem(
        &self,
        state: &str,
        kept: &str,
        now: Moment,
    ) -> Result<Begun, SignOnError> {
        let (until, next) = self.opened(state, kept).ok_or(SignOnError::NotBegun)?;
        if until <= now || !self.first(until, state, now) {
            return Err(SignOnError::NotBegun);
        }
        Ok(Begun {
            nonce: self.derive("nonce", state),
            verifier: self.derive("verifier", state).into(),
            next,
        })
    }

    /// Until when the sign-in of this state may end, and where it leads.
    fn opened(&self, state: &str, kept: &str) -> Option<(Moment, String)> {
        if kept.len() > KEPT_LEN_MAX {
            return None;
        }
        let (body, seal) = kept.rsplit_once('.')?;
        let good = self.derive("cookie", body);
        if !bool::from(good.as_bytes().ct_eq(seal.as_bytes())) {
            return None;
        }
        let mut parts = body.split('.');
        let (its_state, until, next) = (parts.next()?, parts.next()?, parts.next()?);
        if !bool::from(its_state.as_bytes().ct_eq(state.as_bytes())) {
            return None;
        }
        let next = URL_SAFE_NO_PAD.decode(next).ok()?;
        let until = Moment::from_millis(until.parse().ok()?);
        Some((until, String::from_utf8(next).ok()?))
    }

    /// Whether this state has not ended before; from now on it has.
    fn first(&self, until: Moment, state: &str, now: Moment) -> bool {
        let hash = sha256(state.as_bytes());
        let mut ended = self.ended.lock();
        ended.retain(|(until, _)| *until > now);
        if ended.iter().any(|(_, it)| *it == hash) {
            return false;
        }
        if ended.len() >= ENDED_MAX {
            ended.pop_front();
        }
        ended.push_back((until, hash));
        true
    }

    fn derive(&self, what: &str, of: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key.expose_secret().as_bytes())
            .expect("HMAC takes a key of any length");
        mac.update(what.as_bytes());
        mac.update(b".");
        mac.update(of.as_bytes());
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Moment = Moment::from_millis(1_000_000);

    #[test]
    fn s11_a_sign_in_ends_once_in_time_and_in_the_browser_it_began_in() {
        let tickets = Tickets::default();
        let ticket = tickets.issue("/agents?q=a.b", NOW);
        let other = tickets.issue("/", NOW);
        let late = NOW.plus(TICKET_LASTS);
        let tampered = ticket.keep.replacen('.', "x.", 1);
        for (state, kept, at) in [
            (ticket.state.as_str(), other.keep.as_str(), NOW),
            (&other.state, &ticket.keep, NOW),
            (&ticket.state, "", NOW),
            ("", "", NOW),
            (&ticket.state, &tampered, NOW),
            (&ticket.state, &ticket.keep, late),
        ] {
            let refused = tickets.redeem(state, kept, at).err();
            assert_eq!(refused, Some(SignOnError::NotBegun), "{state} {kept}");
        }
        assert!(
            Tickets::default()
                .redeem(&ticket.state, &ticket.keep, NOW)
                .is_err(),
            "another process's"
        );
        let begun = tickets.redeem(&ticket.state, &ticket.keep, NOW).unwrap();
        assert_eq!(begun.next, "/agents?q=a.b");
        assert_eq!(begun.nonce, ticket.nonce);
        let verifier = begun.verifier.expose_secret();
        assert_eq!(
            URL_SAFE_NO_PAD.encode(sha256(verifier.as_bytes())),
            ticket.challenge
        );
        assert!((43..=128).contains(&verifier.len()), "RFC 7636");
        assert!(
            tickets.redeem(&ticket.state, &ticket.keep, NOW).is_err(),
            "again"
        );
    }

    #[test]
    fn s09_the_cookie_tells_neither_nonce_nor_verifier() {
        let tickets = Tickets::default();
        let ticket = tickets.issue("/", NOW);
        let begun = tickets.redeem(&ticket.state, &ticket.keep, NOW).unwrap();
        assert!(!ticket.keep.contains(&ticket.nonce));
        assert!(!ticket.keep.contains(begun.verifier.expose_secret()));
        assert!(!format!("{tickets:?}").contains(tickets.key.expose_secret()));
    }

    #[test]
    fn s11_what_is_remembered_of_ended_sign_ins_is_bounded_and_goes_with_time() {
        let tickets = Tickets::default();
        for _ in 0..=ENDED_MAX {
            let ticket = tickets.issue("/", NOW);
            tickets.redeem(&ticket.state, &ticket.keep, NOW).unwrap();
        }
        assert_eq!(tickets.ended.lock().len(), ENDED_MAX);
        let later = NOW.plus(TICKET_LASTS);
        let ticket = tickets.issue(&"/x".repeat(1000), later);
        let begun = tickets.redeem(&ticket.state, &ticket.keep, later).unwrap();
        assert_eq!(begun.next, "/", "too long a way back");
        assert_eq!(tickets.ended.lock().len(), 1);
    }
}
