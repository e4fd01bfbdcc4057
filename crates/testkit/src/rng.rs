//! Chance from a seed: the same seed gives the same numbers on every machine.

/// SplitMix64: small, fast, and good enough for choosing.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A stream of its own for every pair of seed and purpose.
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut rng = Rng(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        rng.bits();
        rng
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Yes in `percent` of the cases.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `items`.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
