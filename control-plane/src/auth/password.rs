//! Passwords: argon2id, one at a time for each core, the same work for a name that does not exist.

use std::fmt;
use std::sync::{Arc, OnceLock};

use argon2::password_hash::PasswordHasher as _;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq as _;
use tokio::sync::Semaphore;

/// Shortest password. NIST 800-63B asks for 15 where the password is all there is; there is a limit
/// on attempts here, and no rule of composition.
pub const PASSWORD_LEN_MIN: usize = 12;
/// Longest password, in bytes: hashing costs what its length is, and a form can be sent by anyone.
pub const PASSWORD_LEN_MAX: usize = 1024;
/// Hashes computed at once. Each takes 19 MiB and a core for some 20 ms: more at once would let a
/// flood of attempts take the machine from the decisions.
const HASHES_AT_ONCE: usize = 2;

/// Why a password cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too short.
    #[error("the password has {len} characters; at least {PASSWORD_LEN_MIN} are needed")]
    TooShort {
        /// Its length, in characters.
        len: usize,
    },
    /// Too long.
    #[error("the password has {len} bytes; at most {PASSWORD_LEN_MAX} are allowed")]
    TooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// The hash could not be computed.
    #[error("the password could not be hashed")]
    NotHashed,
}

/// The place where passwords are hashed.
#[derive(Clone)]
pub(crate) struct Passwords {
    permits: Arc<Semaphore>,
    /// What hashes are computed in, kept for the next ones: given back to the allocator from one thread
    /// after the other, as much would stay with each of them, and a stranger's attempts would be the
    /// controller's memory. Never more than there are permits.
    memory: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(HASHES_AT_ONCE)),
            memory: Arc::default(),
        }
    }
}

impl Passwords {
    /// Whether `password` is the one behind `hash`. Without a hash (no such name, or a name that
    /// signs in by link only) the same work is done, so that the time it takes tells nothing.
    pub(crate) async fn verify(&self, password: &str, hash: Option<String>) -> bool {
        if password.len() > PASSWORD_LEN_MAX {
            return false;
        }
        let permit = Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let password = SecretString::from(password);
        let kept = Arc::clone(&self.memory);
        tokio::task::spawn_blocking(move || {
            // Until the work is done, also where whoever asked has hung up meanwhile.
            let _permit = permit;
            let known = hash.is_some();
            let hash = hash.as_deref().unwrap_or_else(|| nobodys_hash());
            let mut memory = kept.lock().pop().unwrap_or_default();
            let fits = matches(&password, hash, &mut memory);
            kept.lock().push(memory);
            fits && known
        })
        .await
        .unwrap_or(false)
    }
}

/// A hash to keep. Takes some 20 ms of a core: call it where that may block.
pub(crate) fn hash(password: &SecretString) -> Result<String, PasswordError> {
    let text = password.expose_secret();
    let chars = text.chars().count();
    if chars < PASSWORD_LEN_MIN {
        return Err(PasswordError::TooShort { len: chars });
    }
    if text.len() > PASSWORD_LEN_MAX {
        return Err(PasswordError::TooLong { len: text.len() });
    }
    Argon2::default()
        .hash_password(text.as_bytes())
        .map(|hash| hash.to_string())
        .map_err(|_| PasswordError::NotHashed)
}

/// Whether the password is the one behind the hash, computed in `memory`.
fn matches(password: &SecretString, hash: &str, memory: &mut Vec<Block>) -> bool {
    let Ok(hash) = PasswordHash::new(hash) else {
        return false;
    };
    let (Ok(params), Some(salt), Some(expected)) = (Params::try_from(&hash), hash.salt, hash.hash)
    else {
        return false;
    };
    // Nothing else was ever written here, see `hash`.
    if hash.algorithm.as_str() != Algorithm::Argon2id.as_str() {
        return false;
    }
    let blocks = params.block_count();
    if memory.len() < blocks {
        memory.resize(blocks, Block::default());
    }
    let mut found = vec![0; expected.len()];
    let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let password = password.expose_secret().as_bytes();
    argon2
        .hash_password_into_with_memory(password, &salt, &mut found, &mut memory[..blocks])
        .is_ok()
        && bool::from(found.ct_eq(expected.as_ref()))
}

/// The hash of a password nobody knows.
fn nobodys_hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        hash(&super::token::generate("")).expect("a token is as long as a password must be")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_argon2id_and_matches_its_password_alone() {
        let hash = hash(&"correct horse battery".into()).unwrap();
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        let memory = &mut Vec::new();
        assert!(matches(&"correct horse battery".into(), &hash, memory));
        assert!(!matches(&"correct horse batterz".into(), &hash, memory));
        assert!(!matches(
            &"correct horse battery".into(),
            "not a hash",
            memory
        ));
        assert!(
            matches(&"correct horse battery".into(), &hash, memory),
            "used memory serves too"
        );
    }

    #[tokio::test]
    async fn s11_attempts_are_computed_in_the_same_memory_however_many_there_are() {
        let passwords = Passwords::default();
        let attempts = (0..12).map(|_| passwords.verify("correct horse battery", None));
        futures::future::join_all(attempts).await;
        let kept = passwords.memory.lock();
        assert!((1..=HASHES_AT_ONCE).contains(&kept.len()), "{}", kept.len());
    }

    #[test]
    fn short_and_huge_passwords_are_refused_with_the_length_that_is_needed() {
        let short = hash(&"elevenchars".into()).unwrap_err();
        assert_eq!(
            short.to_string(),
            "the password has 11 characters; at least 12 are needed"
        );
        assert_eq!(
            hash(&"x".repeat(1025).into()),
            Err(PasswordError::TooLong { len: 1025 })
        );
    }

    #[tokio::test]
    async fn s11_who_hangs_up_keeps_their_place_until_the_hash_is_done() {
        let passwords = Passwords::default();
        for _ in 0..HASHES_AT_ONCE {
            let mut attempt = Box::pin(passwords.verify("correct horse battery", None));
            assert!(futures::poll!(&mut attempt).is_pending());
        }
        assert_eq!(passwords.permits.available_permits(), 0);
        assert!(!passwords.verify("correct horse battery", None).await);
    }

    #[tokio::test]
    async fn nobody_has_no_password() {
        let passwords = Passwords::default();
        assert!(!passwords.verify("correct horse battery", None).await);
        assert!(!passwords.verify(&"x".repeat(1025), None).await);
    }
}
