//! How often somebody may try, in bounded memory (S11).
//!
//! Attempts drain a leaky bucket that is picked by a keyed hash out of a fixed number of them. There
//! is nothing to evict: a flood of invented names or addresses cannot push out the count it is
//! hiding, and cannot make the table grow. Two keys that fall into one bucket share it, which makes
//! the limit stricter, never looser. Whoever locks an operator's name out this way does not lock the
//! operator out: a login link does not count against the name.

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Buckets for each kind of key: 16 bytes each.
const BUCKETS: usize = 4096;
/// Failures a name may have at once, and how long one takes to be forgotten: 10, then 2 a minute.
const ACCOUNT: Limit = Limit {
    burst: 10,
    forget: Duration::from_secs(30),
};
/// The same for an address: more, since many people may share one.
const ADDRESS: Limit = Limit {
    burst: 30,
    forget: Duration::from_secs(10),
};

#[derive(Debug, Clone, Copy)]
struct Limit {
    burst: u32,
    forget: Duration,
}

/// Counts attempts by account and by address. An attempt is counted before it is checked, so that
/// many at once are not all let through, and given back where it turns out to be good.
#[derive(Debug)]
pub(crate) struct Attempts {
    hasher: RandomState,
    began: Instant,
    accounts: Mutex<Box<[Bucket]>>,
    addresses: Mutex<Box<[Bucket]>>,
}

/// When the bucket will be empty again: all there is to know of a leaky bucket.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    empty_at: Duration,
}

impl Default for Attempts {
    fn default() -> Self {
        Self {
            hasher: RandomState::new(),
            began: Instant::now(),
            accounts: Mutex::new(vec![Bucket::default(); BUCKETS].into_boxed_slice()),
            addresses: Mutex::new(vec![Bucket::default(); BUCKETS].into_boxed_slice()),
        }
    }
}

impl Attempts {
    /// Counts an attempt; Err: too many, and when to come again.
    pub(crate) fn begin(
        &self,
        now: Instant,
        account: Option<&str>,
        peer: Option<IpAddr>,
    ) -> Result<(), Duration> {
        let now = now.saturating_duration_since(self.began);
        if let Some(peer) = peer {
            let at = self.place(&network(peer));
            self.addresses.lock()[at].take(now, ADDRESS)?;
        }
        if let Some(account) = account {
            let at = self.place(&account);
            self.accounts.lock()[at].take(now, ACCOUNT)?;
        }
        Ok(())
    }

    /// The attempt was good: it does not count.
    pub(crate) fn succeeded(&self, account: Option<&str>, peer: Option<IpAddr>) {
        if let Some(peer) = peer {
            let at = self.place(&network(peer));
            self.addresses.lock()[at].give_back(ADDRESS);
        }
        if let Some(account) = account {
            let at = self.place(&account);
            self.accounts.lock()[at].give_back(ACCOUNT);
        }
    }

    fn place(&self, key: &impl Hash) -> usize {
        self.hasher.hash_one(key) as usize % BUCKETS
    }
}

impl Bucket {
    fn take(&mut self, now: Duration, limit: Limit) -> Result<(), Duration> {
        let filled = self.empty_at.max(now) + limit.forget;
        let most = now + limit.forget * limit.burst;
        if filled > most {
            return Err(filled.saturating_sub(most));
        }
        self.empty_at = filled;
        Ok(())
    }

    fn give_back(&mut self, limit: Limit) {
        self.empty_at = self.empty_at.saturating_sub(limit.forget);
    }
}

/// What counts as one address: an IPv6 subscriber has a whole /64 to try from.
fn network(peer: IpAddr) -> [u8; 8] {
    match peer.to_canonical() {
        IpAddr::V4(v4) => {
            let mut key = [0xff; 8];
            key[..4].copy_from_slice(&v4.octets());
            key
        }
        IpAddr::V6(v6) => {
            let mut key = [0; 8];
            key.copy_from_slice(&v6.octets()[..8]);
            key
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(attempts: &Attempts, now: Instant, account: Option<&str>, peer: &str) -> u32 {
        let peer = peer.parse().ok();
        (0..1000)
            .take_while(|_| attempts.begin(now, account, peer).is_ok())
            .count() as u32
    }

    #[test]
    fn s11_a_name_has_ten_attempts_from_wherever_and_one_more_each_half_minute() {
        let attempts = Attempts::default();
        let now = Instant::now();
        let let_in = (0..40u8)
            .filter(|i| {
                let peer = IpAddr::from([10, 1, 2, *i]);
                attempts.begin(now, Some("ada"), Some(peer)).is_ok()
            })
            .count();
        assert_eq!(let_in, 10);
        let again = attempts.begin(now, Some("ada"), None).unwrap_err();
        assert!(
            again > Duration::from_secs(25) && again <= Duration::from_secs(30),
            "{again:?}"
        );
        assert!(attempts.begin(now + again, Some("ada"), None).is_ok());
        assert!(attempts.begin(now + again, Some("ada"), None).is_err());
    }

    #[test]
    fn s11_an_address_has_thirty_attempts_whatever_names_it_tries() {
        let attempts = Attempts::default();
        let now = Instant::now();
        assert_eq!(allowed(&attempts, now, None, "203.0.113.7"), 30);
        assert_eq!(
            allowed(&attempts, now, None, "::ffff:203.0.113.7"),
            0,
            "the same address"
        );
        assert_eq!(allowed(&attempts, now, None, "2001:db8:1:2::1"), 30);
        assert_eq!(
            allowed(&attempts, now, None, "2001:db8:1:2:ffff::9"),
            0,
            "the same /64"
        );
    }

    #[test]
    fn s11_a_flood_of_invented_names_does_not_hide_a_count_or_take_memory() {
        let attempts = Attempts::default();
        let now = Instant::now();
        assert_eq!(allowed(&attempts, now, Some("ada"), ""), 10);
        for i in 0..100_000u32 {
            let _ = attempts.begin(now, Some(&format!("nobody-{i}")), None);
        }
        assert!(attempts.begin(now, Some("ada"), None).is_err());
        assert_eq!(attempts.accounts.lock().len(), BUCKETS);
    }

    #[test]
    fn a_good_attempt_does_not_count() {
        let attempts = Attempts::default();
        let (now, peer) = (Instant::now(), "203.0.113.7".parse().ok());
        for _ in 0..1000 {
            attempts.begin(now, Some("ada"), peer).unwrap();
            attempts.succeeded(Some("ada"), peer);
        }
    }
}
