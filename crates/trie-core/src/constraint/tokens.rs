//! A set of token ids as a constraint lends it: ascending ids, or one bit for each token of the vocabulary.

use crate::ids::TokenId;

/// Tokens that go on, lent by a constraint or by the caller's [`Scratch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens<'a> {
    /// Ascending ids, each once.
    Ids(&'a [TokenId]),
    /// Bits: cheaper where very many tokens may come.
    Mask(Mask<'a>),
}

/// One bit for each token of a vocabulary: token `i` is bit `i % 32` of word `i / 32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask<'a> {
    words: &'a [u32],
}

/// What a constraint may write into instead of allocating. Owned by whoever walks it; one serves any number of
/// constraints.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// For ids.
    pub ids: Vec<TokenId>,
    /// For bits.
    pub words: Vec<u32>,
    inner: Option<Box<Scratch>>,
}

impl Scratch {
    /// The buffer for ids, and scratch for a constraint inside this one.
    pub fn split(&mut self) -> (&mut Vec<TokenId>, &mut Self) {
        (&mut self.ids, self.inner.get_or_insert_default())
    }
}

impl Default for Tokens<'_> {
    fn default() -> Self {
        Self::Ids(&[])
    }
}

impl<'a> Tokens<'a> {
    /// Whether there is none. `O(V / 32)` for bits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Ids(ids) => ids.is_empty(),
            Self::Mask(mask) => mask.words.iter().all(|&word| word == 0),
        }
    }

    /// How many there are. `O(V / 32)` for bits.
    pub fn len(&self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Mask(mask) => mask.words.iter().map(|word| word.count_ones() as usize).sum(),
        }
    }

    /// The lowest.
    #[inline]
    pub fn first(&self) -> Option<TokenId> {
        match self {
            Self::Ids(ids) => ids.first().copied(),
            Self::Mask(mask) => mask.iter().next(),
        }
    }

    /// The one token, if there is just one.
    pub fn only(&self) -> Option<TokenId> {
        let mut tokens = self.iter();
        tokens.next().filter(|_| tokens.next().is_none())
    }

    /// Whether this token is one of them.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Ids(ids) => ids.binary_search(&token).is_ok(),
            Self::Mask(mask) => mask.contains(token),
        }
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        let (ids, mask) = match *self {
            Self::Ids(ids) => (ids, Mask { words: &[] }),
            Self::Mask(mask) => (&[][..], mask),
        };
        ids.iter().copied().chain(mask.iter())
    }
}

impl<'a> Mask<'a> {
    /// The first `n_vocab` bits of these words; `None` if there are more or fewer words than those bits need, or if a
    /// bit after them
    /// is set.
    pub fn new(words: &'a [u32], n_vocab: usize) -> Option<Self> {
        let tail = n_vocab % 32;
        let clean = tail == 0 || words.last().is_none_or(|&last| last >> tail == 0);
        (words.len() == n_vocab.div_ceil(32) && clean).then_some(Self { words })
    }

    /// The words.
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Whether the bit of this token is set.
    pub fn contains(&self, token: TokenId) -> bool {
        self.words.get(token.index() / 32).is_some_and(|word| word >> (token.index() % 32) & 1 == 1)
    }

    /// The tokens whose bits are set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        self.words.iter().zip(0u32..).flat_map(|(&word, at)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.wrapping_sub(1);
                // Words beyond the largest id hold no token.
                (bit < 32).then(|| TokenId::new(at.saturating_mul(32).saturating_add(bit))).flatten()
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_and_ids_answer_alike() {
        let ids: Vec<TokenId> = [0, 31, 32, 63, 69].map(|id| TokenId::new(id).unwrap()).to_vec();
        let mut words = vec![0u32; 3];
        for id in &ids {
            words[id.index() / 32] |= 1 << (id.index() % 32);
        }
        let (bits, list) = (Tokens::Mask(Mask::new(&words, 70).unwrap()), Tokens::Ids(&ids));
        assert_eq!(bits.iter().collect::<Vec<_>>(), ids);
        for tokens in [bits, list] {
            assert_eq!(
                (tokens.len(), tokens.first(), tokens.only(), tokens.is_empty()),
                (5, Some(ids[0]), None, false)
            );
            for id in 0..100 {
                assert_eq!(tokens.contains(TokenId::new(id).unwrap()), [0, 31, 32, 63, 69].contains(&id));
            }
        }
        assert_eq!(Tokens::Ids(&ids[1..2]).only(), Some(ids[1]));
        assert!(Tokens::Mask(Mask::new(&[0, 0], 40).unwrap()).is_empty());
    }

    #[test]
    fn a_mask_has_exactly_the_bits_of_its_vocabulary() {
        assert!(Mask::new(&[1 << 5], 5).is_none() && Mask::new(&[1 << 4], 5).is_some());
        assert!(Mask::new(&[0], 33).is_none() && Mask::new(&[0, 0, 0], 33).is_none());
        assert!(Mask::new(&[u32::MAX], 32).is_some());
    }
}
