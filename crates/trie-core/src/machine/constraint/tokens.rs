//! A set of token ids as a constraint lends it: ascending ids, one bit for each token of the vocabulary, or all but a
//! few.

use super::trie::TrieState;
use crate::set::ids::TokenId;
use crate::set::trie::Trie;
use std::sync::Arc;

/// Tokens that continue a value, lent by a constraint or by the caller's [`Scratch`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tokens<'a> {
    /// Ascending ids, each once.
    Ids(&'a [TokenId]),
    /// The same with weights, which are added to logits.
    Weighted(WeightedTokens<'a>),
    /// Bits: cheaper if very many tokens are allowed.
    Mask(Mask<'a>),
    /// All tokens but a few: free text in which some tokens are not allowed.
    Except(AllExcept<'a>),
}

/// The whole vocabulary but a few tokens. No storage is needed for each of the allowed tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllExcept<'a> {
    denied: &'a [TokenId],
    wanted: &'a [TokenId],
    n_vocab: usize,
}

/// Ascending ids, each once, with the weight that is added to the logit of each and to that of an end token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedTokens<'a>(Source<'a>);

/// Storage of the tokens. It takes two words and is resolved on access, because a value that every step passes around
/// must stay small.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Source<'a> {
    Trie(&'a Trie, &'a TrieState),
    List(&'a WeightedList),
}

/// Ids with weights, for constraints that compute them. The list belongs to a [`Scratch`] and is reused.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WeightedList {
    ids: Vec<TokenId>,
    weights: Vec<f32>,
    end: f32,
}

/// One bit for each token of a vocabulary: token `i` is bit `i % 32` of word `i / 32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask<'a> {
    words: &'a [u32],
}

/// Buffers that a constraint may fill instead of allocating. The caller that walks the constraint owns them; one
/// `Scratch` serves any number of constraints.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Buffer for token ids.
    pub ids: Vec<TokenId>,
    /// Buffer for bit masks.
    pub words: Vec<u32>,
    /// For ids with weights.
    pub weighted: WeightedList,
    inner: Option<Box<Scratch>>,
    kept_ids: Option<Arc<[TokenId]>>,
    kept_words: Option<Arc<[u32]>>,
}

impl Scratch {
    /// Lends shared ids without a copy, until the next ids are kept.
    pub fn keep_ids(&mut self, ids: Arc<[TokenId]>) -> &[TokenId] {
        self.kept_ids.insert(ids)
    }

    /// Lends shared bits without a copy, until the next bits are kept.
    pub fn keep_words(&mut self, words: Arc<[u32]>) -> &[u32] {
        self.kept_words.insert(words)
    }

    /// The buffers for ids and bits, and scratch for a constraint inside this one.
    pub fn split(&mut self) -> (&mut Vec<TokenId>, &mut Vec<u32>, &mut Self) {
        (&mut self.ids, &mut self.words, self.inner.get_or_insert_default())
    }

    /// The buffers for ids and weights, and scratch for a constraint inside this one.
    pub fn split_weighted(&mut self) -> (&mut Vec<TokenId>, &mut WeightedList, &mut Self) {
        (&mut self.ids, &mut self.weighted, self.inner.get_or_insert_default())
    }
}

impl Default for Tokens<'_> {
    fn default() -> Self {
        Self::Ids(&[])
    }
}

impl<'a> Tokens<'a> {
    /// Returns whether no token is allowed. `O(V / 32)` for bits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Ids(ids) => ids.is_empty(),
            Self::Weighted(weighted) => weighted.ids().is_empty(),
            Self::Mask(mask) => mask.words.iter().all(|&word| word == 0),
            Self::Except(except) => except.len() == 0,
        }
    }

    /// The ids, if they are stored as ids, with or without weights.
    #[inline]
    pub fn ids(&self) -> Option<&'a [TokenId]> {
        match *self {
            Self::Ids(ids) => Some(ids),
            Self::Weighted(weighted) => Some(weighted.ids()),
            Self::Mask(_) | Self::Except(_) => None,
        }
    }

    /// The weights, where there are any.
    #[inline]
    pub fn weights(&self) -> Option<WeightedTokens<'a>> {
        match *self {
            Self::Weighted(weighted) => Some(weighted),
            Self::Ids(_) | Self::Mask(_) | Self::Except(_) => None,
        }
    }

    /// Returns the number of allowed tokens. `O(V / 32)` for bits.
    pub fn len(&self) -> usize {
        match self {
            Self::Ids(ids) => ids.len(),
            Self::Weighted(weighted) => weighted.ids().len(),
            Self::Mask(mask) => mask.words.iter().map(|word| word.count_ones() as usize).sum(),
            Self::Except(except) => except.len(),
        }
    }

    /// Returns the lowest allowed token.
    #[inline]
    pub fn first(&self) -> Option<TokenId> {
        match self {
            Self::Ids(ids) => ids.first().copied(),
            Self::Weighted(weighted) => weighted.ids().first().copied(),
            Self::Mask(mask) => mask.iter().next(),
            Self::Except(except) => except.iter().next(),
        }
    }

    /// The one token, if there is just one.
    pub fn single_token(&self) -> Option<TokenId> {
        let mut tokens = self.iter();
        tokens.next().filter(|_| tokens.next().is_none())
    }

    /// Returns whether this token is allowed.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::Ids(ids) => ids.binary_search(&token).is_ok(),
            Self::Weighted(weighted) => weighted.ids().binary_search(&token).is_ok(),
            Self::Mask(mask) => mask.contains(token),
            Self::Except(except) => except.contains(token),
        }
    }

    /// The allowed tokens, ascending, each with its weight; without weights, each with 0.
    pub fn weigh(&self) -> impl Iterator<Item = (TokenId, f32)> + use<'a> {
        let weights = self.weights().map_or(&[][..], |weighted| weighted.weights());
        self.iter().zip(weights.iter().copied().chain(std::iter::repeat(0.0)))
    }

    /// The allowed tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        const NONE: AllExcept<'static> = AllExcept { denied: &[], wanted: &[], n_vocab: 0 };
        let (ids, mask, except) = match *self {
            Self::Ids(ids) => (ids, Mask { words: &[] }, NONE),
            Self::Weighted(weighted) => (weighted.ids(), Mask { words: &[] }, NONE),
            Self::Mask(mask) => (&[][..], mask, NONE),
            Self::Except(except) => (&[][..], Mask { words: &[] }, except),
        };
        ids.iter().copied().chain(mask.iter()).chain(except.iter())
    }

    /// Returns whether the constraint names this token; of [`Tokens::Except`], only the tokens that it watches for.
    pub fn names(&self, token: TokenId) -> bool {
        match self {
            Self::Except(except) => except.wanted.binary_search(&token).is_ok(),
            named => named.contains(token),
        }
    }

    /// The same tokens; [`Tokens::Except`] is limited to a vocabulary of this size.
    #[inline]
    pub(crate) fn limit_to(self, n_vocab: usize) -> Self {
        match self {
            Self::Except(except) => Self::Except(except.limit_to(n_vocab)),
            named => named,
        }
    }
}

impl<'a> AllExcept<'a> {
    /// All tokens but these, which must ascend and be distinct.
    pub const fn new(denied: &'a [TokenId]) -> Self {
        Self { denied, wanted: &[], n_vocab: TokenId::MAX.index() + 1 }
    }

    /// Sets the tokens that the constraint itself watches for, ascending; all of them are allowed.
    #[must_use]
    pub const fn looking_for(self, wanted: &'a [TokenId]) -> Self {
        Self { wanted, ..self }
    }

    /// The same tokens, limited to a vocabulary of this size, which the rules of a span know.
    #[must_use]
    pub fn limit_to(self, n_vocab: usize) -> Self {
        let denied = &self.denied[..self.denied.partition_point(|token| token.index() < n_vocab)];
        Self { denied, n_vocab: self.n_vocab.min(n_vocab), ..self }
    }

    /// The tokens that are not allowed, ascending.
    pub const fn denied_tokens(&self) -> &'a [TokenId] {
        self.denied
    }

    /// Returns the tokens that the constraint itself watches for, ascending.
    pub const fn wanted_tokens(&self) -> &'a [TokenId] {
        self.wanted
    }

    /// Size of the vocabulary.
    pub const fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Returns the number of allowed tokens.
    #[allow(clippy::len_without_is_empty, reason = "one of the tokens that stand for all")]
    pub const fn len(&self) -> usize {
        self.n_vocab.saturating_sub(self.denied.len())
    }

    /// Returns whether this token is allowed.
    pub fn contains(&self, token: TokenId) -> bool {
        token.index() < self.n_vocab && self.denied.binary_search(&token).is_err()
    }

    /// The allowed tokens, ascending.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + use<'a> {
        let (mut denied, n_vocab) = (self.denied, self.n_vocab);
        (0..n_vocab as u32).filter_map(TokenId::new).filter(move |token| {
            let skipped = denied.first() == Some(token);
            denied = &denied[usize::from(skipped)..];
            !skipped
        })
    }
}

impl WeightedList {
    /// Makes it empty. `end` is the weight of an end token, where a value ends.
    pub fn clear(&mut self, end: f32) {
        self.ids.clear();
        self.weights.clear();
        self.end = end;
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds ids with weights where the id is not there yet.
    pub fn extend(&mut self, others: impl IntoIterator<Item = (TokenId, f32)>) {
        let mut all: Vec<(TokenId, f32)> = self.ids.drain(..).zip(self.weights.drain(..)).collect();
        all.extend(others);
        // Stable: of equal ids the first stays.
        all.sort_by_key(|&(token, _)| token);
        all.dedup_by_key(|&mut (token, _)| token);
        self.ids.extend(all.iter().map(|&(token, _)| token));
        self.weights.extend(all.iter().map(|&(_, weight)| weight));
    }

    /// The same, to lend.
    pub fn tokens(&self) -> Tokens<'_> {
        Tokens::Weighted(WeightedTokens(Source::List(self)))
    }
}

impl<'a> WeightedTokens<'a> {
    #[inline]
    pub(super) fn of_trie(trie: &'a Trie, at: &'a TrieState) -> Self {
        Self(Source::Trie(trie, at))
    }

    /// Returns the token ids.
    #[inline]
    pub fn ids(&self) -> &'a [TokenId] {
        match self.0 {
            Source::Trie(trie, at) => trie.tokens_of(at),
            Source::List(list) => &list.ids,
        }
    }

    /// Returns the weight of each token: as many as there are ids.
    #[inline]
    pub fn weights(&self) -> &'a [f32] {
        match self.0 {
            Source::Trie(trie, at) => trie.weights_of(at),
            Source::List(list) => &list.weights,
        }
    }

    /// Returns the weight of an end token that does not continue a value as well.
    #[inline]
    pub fn end(&self) -> f32 {
        match self.0 {
            Source::Trie(trie, at) => trie.end_weight(at.cursor()),
            Source::List(list) => list.end,
        }
    }
}

impl<'a> Mask<'a> {
    /// The first `n_vocab` bits of these words; `None` if there are more or fewer words than those bits need, or if a
    /// bit after them is set.
    pub fn new(words: &'a [u32], n_vocab: usize) -> Option<Self> {
        let tail = n_vocab % 32;
        let clean = tail == 0 || words.last().is_none_or(|&last| last >> tail == 0);
        (words.len() == n_vocab.div_ceil(32) && clean).then_some(Self { words })
    }

    /// Returns the words of the token mask.
    pub fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Returns whether the bit of this token is set.
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
                (tokens.len(), tokens.first(), tokens.single_token(), tokens.is_empty()),
                (5, Some(ids[0]), None, false)
            );
            for id in 0..100 {
                assert_eq!(tokens.contains(TokenId::new(id).unwrap()), [0, 31, 32, 63, 69].contains(&id));
            }
        }
        let others: Vec<TokenId> = TokenId::all(70).filter(|id| !ids.contains(id)).collect();
        let but = Tokens::Except(AllExcept::new(&others)).limit_to(70);
        assert_eq!(but.iter().collect::<Vec<_>>(), ids);
        assert_eq!((but.len(), but.first(), but.single_token(), but.is_empty()), (5, Some(ids[0]), None, false));
        assert!((0..100).all(|id| but.contains(TokenId::new(id).unwrap()) == list.contains(TokenId::new(id).unwrap())));
        let few = Tokens::Except(AllExcept::new(&others).looking_for(&ids[..1])).limit_to(32);
        assert_eq!(few.iter().collect::<Vec<_>>(), ids[..2], "a smaller vocabulary");
        assert!(few.names(ids[0]) && !few.names(ids[1]) && list.names(ids[1]));
        let everything: Vec<TokenId> = TokenId::all(9).collect();
        assert!(Tokens::Except(AllExcept::new(&everything)).limit_to(9).is_empty());
        assert_eq!(Tokens::Except(AllExcept::new(&everything[1..])).limit_to(9).single_token(), Some(everything[0]));
        assert_eq!(Tokens::Ids(&ids[1..2]).single_token(), Some(ids[1]));
        assert!(Tokens::Mask(Mask::new(&[0, 0], 40).unwrap()).is_empty());
    }

    #[test]
    fn a_mask_has_exactly_the_bits_of_its_vocabulary() {
        assert!(Mask::new(&[1 << 5], 5).is_none() && Mask::new(&[1 << 4], 5).is_some());
        assert!(Mask::new(&[0], 33).is_none() && Mask::new(&[0, 0, 0], 33).is_none());
        assert!(Mask::new(&[u32::MAX], 32).is_some());
    }
}
