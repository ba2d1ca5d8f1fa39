//! The generator of seeded draws: `std::mt19937`.

use rand_mt::Mt;

/// One sequence of words. Until the first of them it takes a few bytes.
#[derive(Debug, Clone)]
pub(crate) struct Generator {
    seed: u32,
    /// Pairs of words so far.
    drawn: u64,
    /// 2.5 KB: made at the first draw, if it is kept.
    kept: Option<Box<Mt>>,
    keeps: bool,
}

impl Generator {
    pub(crate) fn new(seed: u32) -> Self {
        Self { seed, drawn: 0, kept: None, keeps: true }
    }

    /// The same words from a few bytes: each draw costs 2 µs more, and the time of those before it.
    pub(crate) fn light(seed: u32) -> Self {
        Self { keeps: false, ..Self::new(seed) }
    }

    /// Starts again.
    pub(crate) fn reset(&mut self) {
        (self.kept, self.drawn) = (None, 0);
    }

    /// The two words of the next draw.
    pub(crate) fn words(&mut self) -> [u32; 2] {
        let (seed, drawn) = (self.seed, self.drawn);
        self.drawn += 1;
        let anew = || {
            let mut rng = Mt::new(seed);
            for _ in 0..2 * drawn {
                rng.next_u32();
            }
            rng
        };
        let next = |rng: &mut Mt| [rng.next_u32(), rng.next_u32()];
        if self.keeps { next(self.kept.get_or_insert_with(|| Box::new(anew()))) } else { next(&mut anew()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_light_sequence_is_the_same() {
        for seed in [0, 1, 5489, u32::MAX] {
            let (mut kept, mut light, mut plain) = (Generator::new(seed), Generator::light(seed), Mt::new(seed));
            for _ in 0..700 {
                let expected = [plain.next_u32(), plain.next_u32()];
                assert_eq!((kept.words(), light.words()), (expected, expected));
            }
            assert!(light.kept.is_none() && kept.kept.is_some());
            assert_eq!(kept.clone().words(), light.words());
            kept.reset();
            assert!(kept.kept.is_none());
            let mut plain = Mt::new(seed);
            assert_eq!(kept.words(), [plain.next_u32(), plain.next_u32()]);
        }
    }
}
