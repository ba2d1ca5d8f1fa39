//! Numbers in as few bits as the largest needs.

/// Numbers of up to 32 bits, one after the other.
#[derive(Debug, Default)]
pub struct PackedInts {
    words: Vec<u32>,
    /// Number of bits per item.
    bits: u32,
    len: usize,
}

impl PackedInts {
    /// Packs numbers that lie in several slices.
    pub fn new<'n>(parts: impl Iterator<Item = &'n [u32]> + Clone) -> Self {
        let mut packed = Self::room(parts.clone());
        packed.fill(parts);
        packed
    }

    /// Room for numbers that lie in several slices.
    pub(crate) fn room<'n>(parts: impl Iterator<Item = &'n [u32]>) -> Self {
        let (len, all) = parts
            .fold((0, 0), |(len, all), part| (len + part.len(), part.iter().fold(all, |all, number| all | number)));
        let bits = u32::BITS - all.leading_zeros();
        Self { words: Vec::with_capacity((len * bits as usize).div_ceil(u32::BITS as usize)), bits, len }
    }

    /// Packs the numbers that there is room for.
    pub(crate) fn fill<'n>(&mut self, parts: impl Iterator<Item = &'n [u32]>) {
        let (mut left, mut waiting) = (0u64, 0);
        for part in parts {
            for &number in part {
                left |= u64::from(number) << waiting;
                waiting += self.bits;
                if waiting >= u32::BITS {
                    self.words.push(left as u32);
                    left >>= u32::BITS;
                    waiting -= u32::BITS;
                }
            }
        }
        if waiting > 0 {
            self.words.push(left as u32);
        }
    }

    /// The number with this index.
    pub(crate) fn get(&self, at: usize) -> Option<u32> {
        if at >= self.len {
            return None;
        }
        let (word, shift) = (at * self.bits as usize / 32, at * self.bits as usize % 32);
        let part = |word: usize| self.words.get(word).map_or(0, |&word| u64::from(word));
        let mask = (1u64 << self.bits) - 1;
        Some(((part(word) | part(word + 1) << 32) >> shift & mask) as u32)
    }

    /// 32-bit words that they take.
    pub(crate) fn words(&self) -> usize {
        self.words.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(bits in 0..=32u32, numbers in prop::collection::vec(any::<u32>(), 0..200)) {
            let numbers: Vec<u32> = numbers.iter().map(|&number| number.checked_shr(32 - bits).unwrap_or(0)).collect();
            let (a, b) = numbers.split_at(numbers.len() / 3);
            let packed = PackedInts::new([a, b].into_iter());
            prop_assert!((0..numbers.len()).map(|at| packed.get(at)).eq(numbers.iter().map(|&number| Some(number))));
            prop_assert_eq!(packed.get(numbers.len()), None);
            prop_assert!(packed.words() <= (numbers.len() * bits as usize).div_ceil(32));
        }
    }
}
