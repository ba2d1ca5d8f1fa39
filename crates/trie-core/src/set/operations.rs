//! Tries as sets: union, intersection, differences, comparisons and subsets.
//!
//! Leaves are ordered by their token sequences, so two tries are merged like two sorted lists, in one pass over both
//! and without hashing. Only token sequences decide whether leaves are equal.

use crate::set::builder::{BuildError, TrieBuilder};
use crate::set::damage::Damage;
use crate::set::ids::{LeafId, TokenId};
use crate::set::trie::{Cursor, Trie};
use crate::work::ErrorKind;
use std::borrow::Cow;
use std::cmp::Ordering;

/// Set operation on two tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SetOperation {
    /// Leaves of at least one trie.
    Union,
    /// Leaves of both tries.
    Intersection,
    /// Leaves of the first that the second does not have.
    Difference,
    /// Leaves of exactly one of them.
    SymmetricDifference,
}

/// Sets that make no trie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// A trie without leaves would allow nothing.
    #[error("{what} is empty: a trie has at least one leaf")]
    Empty {
        /// Name of the empty result.
        what: &'static str,
    },
    /// The result would have leaves with and leaves without a name.
    #[error("{what} of a trie with names and one without: give both names, or none")]
    HalfNamed {
        /// Name of the operation.
        what: &'static str,
    },
    /// Several sequences stand for one leaf; which of them to keep can only be decided from the texts.
    #[error(
        "{what} of a set in which several sequences stand for one value: make it again, \
         from the texts that it shall have"
    )]
    NotATree {
        /// Name of the operation.
        what: &'static str,
    },
    /// Leaves that begin at different positions of a prompt.
    #[error("{what} of a trie whose leaves spell {one} bytes of the prompt again and one whose leaves spell {other}")]
    Healed {
        /// Name of the operation.
        what: &'static str,
        /// [`Trie::heal_bytes`] of the first.
        one: usize,
        /// [`Trie::heal_bytes`] of the second.
        other: usize,
    },
    /// Values that end with different tokens.
    #[error("{what} of a trie whose values end with {one:?} and one whose values end with {other:?}")]
    EndTokens {
        /// Name of the operation.
        what: &'static str,
        /// [`Trie::end_tokens`] of the first.
        one: Vec<TokenId>,
        /// [`Trie::end_tokens`] of the second.
        other: Vec<TokenId>,
    },
    /// Sets for two vocabularies, in which the same ids mean other tokens.
    #[error(
        "{what} of sets that were made for two vocabularies, of {one} and of {other} tokens: their ids mean other texts"
    )]
    OtherVocabulary {
        /// Name of the operation.
        what: &'static str,
        /// Tokens of the vocabulary of the first.
        one: usize,
        /// Tokens of the vocabulary of the second.
        other: usize,
    },
    /// A set from a file that nobody verified, which is damaged.
    #[error(transparent)]
    Damaged(#[from] Damage),
    /// More than a trie can hold.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl SetError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Build(error) => error.kind(),
            Self::Damaged(damage) => damage.kind(),
            Self::OtherVocabulary { .. } => ErrorKind::Vocabulary,
            Self::Empty { .. }
            | Self::HalfNamed { .. }
            | Self::NotATree { .. }
            | Self::Healed { .. }
            | Self::EndTokens { .. } => ErrorKind::Set,
        }
    }
}

impl SetOperation {
    const fn label(self) -> &'static str {
        match self {
            Self::Union => "the union",
            Self::Intersection => "the intersection",
            Self::Difference => "the difference",
            Self::SymmetricDifference => "the symmetric difference",
        }
    }

    /// Returns whether the result keeps a leaf that only the first (`Less`), only the second (`Greater`) or both have.
    fn keeps(self, whose: Ordering) -> bool {
        match self {
            Self::Union => true,
            Self::Intersection => whose == Ordering::Equal,
            Self::Difference => whose == Ordering::Less,
            Self::SymmetricDifference => whose != Ordering::Equal,
        }
    }

    /// Returns whether the result may keep leaves of the second trie only, which must then have names exactly if the
    /// first has.
    fn mixes(self) -> bool {
        self.keeps(Ordering::Greater)
    }
}

impl Trie {
    /// One trie from two. A leaf of both gets the smaller name, by code point, or its only name.
    ///
    /// The weight of an edge or a leaf is that of the first trie that has it.
    ///
    /// One pass over the nodes of both. The rows of the result are numbered in the order of its leaves.
    ///
    /// ```
    /// use trie_core::{SetOperation, TokenId, Trie};
    /// let set = |rows: &[u32]| {
    ///     let mut builder = Trie::builder();
    ///     rows.iter().for_each(|&row| builder.push(None, &[TokenId::new(row).unwrap()]));
    ///     builder.build()
    /// };
    /// let both = set(&[1, 2])?.combine(SetOperation::Intersection, &set(&[2, 3])?)?;
    /// assert_eq!(both, set(&[2])?);
    /// assert!(both.is_subset(&set(&[1, 2])?));
    /// # Ok::<(), trie_core::SetError>(())
    /// ```
    ///
    /// # Errors
    /// An empty result; a union or symmetric difference of a side with names and one without; a side that
    /// is not a tree ([`Trie::is_tree`]) or from a damaged file; leaves that begin at different positions of a prompt.
    pub fn combine(&self, operation: SetOperation, other: &Self) -> Result<Self, SetError> {
        if !self.is_tree() || !other.is_tree() {
            return Err(SetError::NotATree { what: operation.label() });
        }
        if operation.mixes() && self.has_names() != other.has_names() {
            return Err(SetError::HalfNamed { what: operation.label() });
        }
        self.check_alike(operation.label(), other)?;
        [self, other].into_iter().try_for_each(Self::verify)?;
        let mut builder = Self::builder();
        let mut merge = Merge::new(self, other);
        while let Some(whose) = merge.next() {
            if operation.keeps(whose) {
                let (left, right) = (&merge.left, &merge.right);
                let (tokens, name) = match whose {
                    Ordering::Less => (left.tokens(), left.name()),
                    Ordering::Greater => (right.tokens(), right.name()),
                    Ordering::Equal => (left.tokens(), smaller(left.name(), right.name())),
                };
                builder.push(name.as_deref(), tokens);
            }
        }
        let vocabulary = self.vocabulary().or(other.vocabulary());
        let made = self.like(builder, operation.label())?.weighed_as(&[self, other]);
        Ok(made.with_vocabulary(vocabulary))
    }

    /// Checks that leaves of both tries can be in one set. `what` names the operation.
    ///
    /// # Errors
    /// They were saved for two vocabularies, begin at different positions of a prompt, or end with different tokens.
    pub fn check_alike(&self, what: &'static str, other: &Self) -> Result<(), SetError> {
        if let (Some(one), Some(other)) = (self.vocabulary(), other.vocabulary())
            && one.fingerprint != other.fingerprint
        {
            return Err(SetError::OtherVocabulary { what, one: one.size, other: other.size });
        }
        if self.heal_bytes() != other.heal_bytes() {
            let (one, other) = (self.heal_bytes(), other.heal_bytes());
            return Err(SetError::Healed { what, one, other });
        }
        if self.end_tokens() != other.end_tokens() {
            let (one, other) = (self.end_tokens().to_vec(), other.end_tokens().to_vec());
            return Err(SetError::EndTokens { what, one, other });
        }
        Ok(())
    }

    /// Returns whether the other trie has all leaves of this one. Stops at the first that it does not have.
    pub fn is_subset(&self, other: &Self) -> bool {
        if !self.is_tree() || !other.is_tree() {
            return self.leaves().all(|leaf| other.find(&leaf.tokens).is_some());
        }
        self.len() <= other.len() && Merge::new(self, other).all(|whose| whose != Ordering::Less)
    }

    /// Returns whether no leaf is in both. Stops at the first that is.
    pub fn is_disjoint(&self, other: &Self) -> bool {
        if !self.is_tree() || !other.is_tree() {
            let either = |one: &Self, other: &Self| one.leaves().any(|leaf| other.find(&leaf.tokens).is_some());
            return !either(self, other) && !either(other, self);
        }
        Merge::new(self, other).all(|whose| whose != Ordering::Equal)
    }

    /// The trie of the leaves for which `keep` returns true. One pass; the rows of the result are numbered in the
    /// order of its leaves.
    ///
    /// # Errors
    /// None is wanted, or this is not a tree, or from a damaged file.
    pub fn select(&self, mut keep: impl FnMut(LeafId) -> bool) -> Result<Self, SetError> {
        if !self.is_tree() {
            return Err(SetError::NotATree { what: "a selection" });
        }
        self.verify()?;
        let mut builder = Self::builder();
        let mut walk = self.in_order();
        while let Some(leaf) = walk.advance() {
            if keep(leaf) {
                builder.push(self.name(leaf).as_deref(), walk.tokens());
            }
        }
        self.like(builder, "the selection").map(|made| made.weighed_as(&[self]))
    }

    /// All leaves in order with their tokens; if several sequences stand for a leaf, the canonical ones. Each step
    /// moves down or sideways, `O(nodes)` for all leaves. For a damaged file that was never verified, it yields some
    /// leaves, but never more than the trie says it has.
    pub fn in_order(&self) -> LeafWalk<'_> {
        self.in_order_below(Cursor::ROOT)
    }

    /// The leaves at and below a position, with their tokens from there on. A leaf that ends there has none.
    #[doc(hidden)]
    pub fn in_order_below(&self, at: Cursor) -> LeafWalk<'_> {
        let range = self.leaves_below(at);
        let (open, left) = (vec![(at, 0)], self.nodes());
        LeafWalk { trie: self, tokens: Vec::new(), open, next: range.start, end: range.end, fresh: true, left }
    }

    /// Returns whether leaves have names: all do, or none.
    pub fn has_names(&self) -> bool {
        self.store().names.is_some()
    }

    /// A trie of leaves that begin where those of this one do.
    fn like(&self, builder: TrieBuilder, what: &'static str) -> Result<Self, SetError> {
        if builder.is_empty() {
            return Err(SetError::Empty { what });
        }
        Ok(builder.build()?.with_info(self.info().clone().with_weights(None)))
    }
}

fn smaller<'n>(left: Option<Cow<'n, str>>, right: Option<Cow<'n, str>>) -> Option<Cow<'n, str>> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}

/// A pass over the leaves of a trie: see [`Trie::in_order`].
#[derive(Debug, Clone)]
pub struct LeafWalk<'t> {
    trie: &'t Trie,
    tokens: Vec<TokenId>,
    /// The nodes on the path, each with the number of its next child.
    open: Vec<(Cursor, usize)>,
    /// The number of the next leaf, and that after the last one.
    next: u32,
    end: u32,
    /// True until the root is visited.
    fresh: bool,
    /// Nodes that may still be entered: in a damaged file several may share their children.
    left: usize,
}

impl<'t> LeafWalk<'t> {
    /// The number of the next leaf, or `None` after the last. Its tokens are [`LeafWalk::tokens`].
    pub fn advance(&mut self) -> Option<LeafId> {
        self.step().then(|| self.leaf())
    }

    fn step(&mut self) -> bool {
        if let Some(graph) = &self.trie.store().graph {
            self.tokens.clear();
            self.tokens
                .extend(graph.canonical(LeafId(self.next)).filter(|_| self.next < self.end).into_iter().flatten());
            self.next += u32::from(!self.tokens.is_empty());
            return !self.tokens.is_empty();
        }
        if self.next as usize >= self.trie.len() {
            self.open.clear();
        }
        if std::mem::take(&mut self.fresh) && self.open.last().is_some_and(|&(at, _)| self.trie.is_terminal(at)) {
            self.next += 1;
            return true;
        }
        while let Some((at, nth)) = self.open.last_mut() {
            if let Some(&token) = self.trie.children(*at).get(*nth).filter(|_| self.left > 0) {
                self.left -= 1;
                let child = self.trie.child(*at, *nth);
                *nth += 1;
                self.tokens.push(token);
                self.open.push((child, 0));
                if self.trie.is_terminal(child) {
                    self.next += 1;
                    return true;
                }
            } else {
                self.open.pop();
                self.tokens.pop();
            }
        }
        false
    }

    /// Tokens of the leaf reached last.
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    fn leaf(&self) -> LeafId {
        LeafId(self.next.saturating_sub(1))
    }

    fn name(&self) -> Option<Cow<'t, str>> {
        self.trie.name(self.leaf())
    }

    fn is_over(&self) -> bool {
        self.open.is_empty()
    }
}

/// The leaves of two tries in one order, each with its owner: the first (`Less`), the second (`Greater`) or both.
struct Merge<'t> {
    left: LeafWalk<'t>,
    right: LeafWalk<'t>,
    last: Ordering,
}

impl<'t> Merge<'t> {
    fn new(left: &'t Trie, right: &'t Trie) -> Self {
        Self { left: left.in_order(), right: right.in_order(), last: Ordering::Equal }
    }
}

impl Iterator for Merge<'_> {
    type Item = Ordering;

    fn next(&mut self) -> Option<Ordering> {
        // Whoever had the last leaf goes on; the other one's is still to come.
        if self.last != Ordering::Greater {
            self.left.step();
        }
        if self.last != Ordering::Less {
            self.right.step();
        }
        self.last = match (self.left.is_over(), self.right.is_over()) {
            (true, true) => return None,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => self.left.tokens().cmp(self.right.tokens()),
        };
        Some(self.last)
    }
}
