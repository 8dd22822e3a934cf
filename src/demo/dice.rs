//! Random numbers by the four operations alone.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of draws; streams of one seed are independent.
#[derive(Debug)]
pub(super) struct Dice {
    rng: ChaCha8Rng,
    level: f64,
}

impl Dice {
    pub(super) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        let level = f64::from(rng.next_u32()) / 4_294_967_296.0;
        Self { rng, level }
    }

    /// Uniform in `[0, 1)`.
    pub(super) fn unit(&mut self) -> f64 {
        f64::from(self.rng.next_u32()) / 4_294_967_296.0
    }

    /// Uniform in `[low, high)`.
    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Whole seconds in `[low, high)`.
    pub(super) fn seconds(&mut self, low: i64, high: i64) -> i64 {
        self.between(low as f64, high as f64) as i64
    }

    /// Nearly normal, mean 0 and standard deviation 1: the sum of four uniforms from one draw.
    pub(super) fn noise(&mut self) -> f64 {
        let bits = self.rng.next_u64();
        let part = |shift: u32| f64::from((bits >> shift) as u16) / 65_536.0;
        (part(0) + part(16) + part(32) + part(48) - 2.0) * 1.732_050_8
    }

    /// One of `items`, by weight.
    pub(super) fn pick<T: Copy>(&mut self, items: &[(T, f64)]) -> T {
        let total: f64 = items.iter().map(|(_, weight)| weight).sum();
        let mut left = self.unit() * total;
        for (item, weight) in items {
            left -= weight;
            if left < 0.0 {
                return *item;
            }
        }
        items[items.len() - 1].0
    }

    /// The next level of a sequence that advances by `stride` and fills `[0, 1)` evenly.
    pub(super) fn level(&mut self, stride: f64) -> f64 {
        self.level = (self.level + stride) % 1.0;
        self.level
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }
}

/// The value at a level of `table`: pairs of level and value, level from 0 to 1.
pub(super) fn quantile(table: &[(f64, f64)], level: f64) -> f64 {
    let at = table.windows(2).find(|pair| level < pair[1].0);
    let pair = at.unwrap_or(&table[table.len() - 2..]);
    let share = (level - pair[0].0) / (pair[1].0 - pair[0].0);
    pair[0].1 + share * (pair[1].1 - pair[0].1)
}

/// Mean of [`quantile`] over all levels.
pub(super) fn quantile_mean(table: &[(f64, f64)]) -> f64 {
    table.windows(2).map(|pair| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0).sum()
}
