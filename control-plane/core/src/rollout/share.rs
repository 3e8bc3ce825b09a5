//! Which agents are in a share of all.

use hedgerow_protocol::ids::InstanceId;
use hedgerow_protocol::policy::PolicyScope;

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// A share of the agents: those whose place, a number from 0 to 1, is under `upto`.
///
/// The place is FNV-1a (64 bits) over the scope's text (a dependency's name), a zero byte and the sixteen bytes of
/// the agent's instance, most significant first, and over that the finalizer of `SplitMix64`, since
/// of FNV alone the last bytes move the upper bits little. It is part of no interface, but must not
/// change between releases: during an upgrade both would steer the same rollout.
///
/// Sources: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm"; G. Steele,
/// D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    seed: u64,
    upto: f64,
}

impl Share {
    pub(crate) fn of(scope: &PolicyScope, upto: f64) -> Self {
        let seed = fnv(FNV_OFFSET, scope.to_string().bytes().chain([0]));
        Self { seed, upto }
    }

    /// Whether an agent is in it.
    pub(crate) fn has(self, instance: InstanceId) -> bool {
        self.place(instance) < self.upto
    }

    /// How large it is, of 1.
    pub(crate) fn size(self) -> f64 {
        self.upto
    }

    fn place(self, instance: InstanceId) -> f64 {
        let hash = mixed(fnv(self.seed, instance.as_u128().to_be_bytes()));
        // 53 bits are all that a number from 0 to below 1 can hold exactly.
        (hash >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn fnv(seed: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
    })
}

fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(dependency: &str, upto: f64) -> Share {
        Share::of(&dependency.parse().unwrap(), upto)
    }

    fn members(share: Share) -> Vec<u128> {
        let all = 0..2_000_u128;
        all.filter(|it| share.has(InstanceId::from_u128(*it)))
            .collect()
    }

    #[test]
    fn a_share_is_as_large_as_it_says_and_a_larger_one_only_adds_agents() {
        let mut before = Vec::new();
        for upto in [0.01, 0.05, 0.25, 0.5, 1.0] {
            let now = members(share("catalog", upto));
            let expected = upto * 2_000.0;
            let spread = 4.0 * (expected * (1.0 - upto)).sqrt();
            assert!(
                (now.len() as f64 - expected).abs() <= spread,
                "{upto}: {}",
                now.len()
            );
            assert!(before.iter().all(|it| now.contains(it)), "{upto}");
            before = now;
        }
        assert_eq!(before.len(), 2_000, "all are in the whole");
    }

    #[test]
    fn other_dependencies_begin_with_other_agents() {
        let (one, other) = (share("catalog", 0.05), share("search", 0.05));
        let of_other = members(other);
        let both = members(one)
            .iter()
            .filter(|it| of_other.contains(it))
            .count();
        assert!(both <= 20, "{both} of 100 are first twice; 5 are expected");
    }

    #[test]
    fn places_are_the_same_in_every_release() {
        let share = share("catalog", 0.05);
        let places = [0, 1, u128::MAX].map(|it| share.place(InstanceId::from_u128(it)));
        let rounded = places.map(|it| (it * 1e6).round() / 1e6);
        // By another program, in another language.
        assert_eq!(rounded, [0.150_446, 0.290_496, 0.566_268]);
    }
}
