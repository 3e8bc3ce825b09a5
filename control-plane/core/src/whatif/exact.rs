//! Shares and probabilities as integers, and the one inequality everything here asks.

/// What shares are parts of: a share written with up to nine digits is exact.
pub(super) const ONE: u64 = 1_000_000_000;

/// A share from 0 to 1 in parts of [`ONE`].
pub(super) fn parts(share: f64) -> u64 {
    // In range: shares come from checked types.
    (share * ONE as f64).round() as u64
}

/// The probability with which a crossed call is hedged, `share / crossed` with both taken of all
/// calls: `min(1, B / c)` as it is, not as its nearest float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Draw {
    /// B, in parts of [`ONE`].
    share: u64,
    /// c, in calls.
    crossed: u64,
}

impl Draw {
    /// Every crossed call is hedged.
    pub(super) const fn every(total: u64) -> Self {
        Self {
            share: ONE,
            crossed: total,
        }
    }

    /// As many of the `crossed` calls among `total` as a budget allows.
    pub(super) fn within(budget: u64, crossed: u64, total: u64) -> Self {
        if u128::from(budget) * u128::from(total) >= u128::from(ONE) * u128::from(crossed) {
            Self::every(total)
        } else {
            Self {
                share: budget,
                crossed,
            }
        }
    }

    /// Whether `S(t) (1 - q (1 - phi) F(t - d)) <= tail`, with S = `above / total`, F = `below /
    /// total`, and `apart` for 1 - phi.
    ///
    /// With q = (share / ONE) (total / crossed), both sides times `total ONE^3 crossed`. Each factor
    /// fits: counts are at most 2^48, parts 2^30.
    pub(super) fn reaches(self, above: u64, below: u64, total: u64, apart: u64, tail: u64) -> bool {
        let [above, below, total, apart, tail] = [above, below, total, apart, tail].map(u128::from);
        let one = u128::from(ONE);
        let whole = u128::from(self.crossed) * one * one;
        // Not below zero: q, 1 - phi and F are at most 1.
        let left = whole - u128::from(self.share) * apart * below;
        product(above * one, left) <= product(tail * total, whole)
    }
}

/// The whole product, higher half first, so that products compare as numbers.
fn product(a: u128, b: u128) -> (u128, u128) {
    let (low, high) = a.carrying_mul(b, 0);
    (high, low)
}
