//! Values at the edges of ranges, drawn from a seed.

pub(super) use crate::chance::Dice;

impl Dice {
    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    /// `usual` mostly, else a number from the edges of some range, or any at all.
    pub(super) fn number(&mut self, usual: f64) -> f64 {
        if self.percent(88) {
            return usual;
        }
        match self.below(8) {
            0 => f64::from_bits(self.draw()),
            1 => usual.next_up(),
            2 => -usual,
            _ => self.pick(&[
                0.0,
                -0.0,
                f64::MIN_POSITIVE / 2.0,
                1e-9,
                0.25,
                0.25_f64.next_up(),
                0.5,
                1.0,
                1.0_f64.next_up(),
                95.0,
                10_000.0,
                10_000.0_f64.next_up(),
                f64::MAX,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::NAN,
            ]),
        }
    }

    /// A whole number below `n`, mostly.
    pub(super) fn count_below(&mut self, n: u64) -> u64 {
        let usual = self.below(n);
        self.count(usual)
    }

    /// The same as [`number`](Self::number) for whole numbers.
    pub(super) fn count(&mut self, usual: u64) -> u64 {
        if self.percent(88) {
            return usual;
        }
        match self.below(6) {
            0 => self.draw(),
            1 => usual.wrapping_add(1),
            2 => usual.wrapping_sub(1),
            _ => self.pick(&[
                0,
                1,
                2,
                3,
                4,
                9,
                10,
                99,
                100,
                999,
                1000,
                60_000,
                3_600_000,
                3_600_001,
                3_600_000_000,
                3_600_000_001,
                u64::from(u32::MAX),
                1 << 48,
                u64::MAX,
            ]),
        }
    }
}
