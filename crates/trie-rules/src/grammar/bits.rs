//! Sets of small numbers, as bits.

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Bits(Box<[u64]>);

impl std::fmt::Debug for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Bits {
    pub(super) fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)].into())
    }

    #[inline]
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    #[inline]
    pub(super) fn word(&self, at: usize) -> u64 {
        self.0.get(at).copied().unwrap_or_default()
    }

    pub(super) fn set(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Adds what another has; whether that was more.
    pub(super) fn add(&mut self, other: &Self) -> bool {
        let mut more = false;
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            more |= *word | other != *word;
            *word |= other;
        }
        more
    }

    #[inline]
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(one, other)| one & other != 0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let members =
            |(at, &word): (usize, &u64)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit);
        self.0.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(members)
    }
}
