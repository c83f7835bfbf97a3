//! Random numbers that are the same in every run.

/// A splitmix64 generator.
pub struct Dice(u64);

impl Dice {
    /// A generator seeded by this name.
    pub fn of(name: &str) -> Dice {
        Dice(name.bytes().fold(super::SEED, |seed, byte| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// `count` different elements, in random order.
    pub fn some<'a, T>(&mut self, all: &'a [T], count: usize) -> Vec<&'a T> {
        let mut left: Vec<&T> = all.iter().collect();
        (0..count.min(all.len())).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }

    /// A date of the last years: `2025-03-04`.
    pub fn day(&mut self) -> String {
        format!("{}-{:02}-{:02}", 2024 + self.below(3), 1 + self.below(10), 1 + self.below(28))
    }
}
