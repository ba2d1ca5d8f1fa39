//! Numbers in as few bits as the largest needs.

/// Numbers of up to 32 bits, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    words: Vec<u32>,
    /// Bits of each.
    bits: u32,
    len: usize,
}

impl Packed {
    /// Packs numbers in the memory that they are in.
    pub(crate) fn new(mut numbers: Vec<u32>) -> Self {
        let len = numbers.len();
        let bits = u32::BITS - numbers.iter().fold(0, |all, number| all | number).leading_zeros();
        let (mut left, mut waiting, mut written) = (0u64, 0, 0);
        for at in 0..len {
            left |= u64::from(numbers[at]) << waiting;
            waiting += bits;
            if waiting >= u32::BITS {
                // Never ahead of what is read: no number takes more than a word.
                numbers[written] = left as u32;
                written += 1;
                left >>= u32::BITS;
                waiting -= u32::BITS;
            }
        }
        if waiting > 0 {
            numbers[written] = left as u32;
            written += 1;
        }
        numbers.truncate(written);
        numbers.shrink_to_fit();
        Self { words: numbers, bits, len }
    }

    /// The number at this place.
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
            let packed = Packed::new(numbers.clone());
            prop_assert!((0..numbers.len()).map(|at| packed.get(at)).eq(numbers.iter().map(|&number| Some(number))));
            prop_assert_eq!(packed.get(numbers.len()), None);
            prop_assert!(packed.words() <= (numbers.len() * bits as usize).div_ceil(32));
        }
    }
}
