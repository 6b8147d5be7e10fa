//! A small seeded generator (xorshift64*), for samples that must be the same when a run is repeated.

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number below `bound`. In half of the cases it is the last one, otherwise any.
    pub fn last_or_any(&mut self, bound: u64) -> u64 {
        self.below(2 * bound).min(bound - 1)
    }

    /// A number from 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_comes_in_half_of_the_cases_and_the_others_do_too() {
        let mut random = Random::new(1);
        let mut counts = [0; 4];
        (0..8000).for_each(|_| counts[random.last_or_any(4) as usize] += 1);
        assert!(counts[..3].iter().all(|count| (900..1100).contains(count)), "{counts:?}");
        assert!((4800..5200).contains(&counts[3]), "{counts:?}");
        assert_eq!(random.last_or_any(1), 0);
    }
}
