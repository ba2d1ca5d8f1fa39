//! A trie as a constraint: its children may follow, and its leaves are the values.

use super::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Tokens, WeightedTokens};
use crate::set::ids::TokenId;
use crate::set::trie::{Cursor, Leaf, Trie};

/// A position in a trie, with its children and whether a leaf ends there. Twenty bytes, `Copy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TrieState {
    pub(super) at: Cursor,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) ending: Ending,
    /// True if some of its children lead to no leaf that a filter allows.
    pub(super) narrowed: bool,
}

impl TrieState {
    /// Returns the position in the trie.
    #[inline]
    pub const fn cursor(self) -> Cursor {
        self.at
    }
}

impl Trie {
    /// The state at a position.
    #[inline]
    pub(crate) fn settle(&self, at: Cursor) -> TrieState {
        let store = self.store();
        let (first, children) = store.family(at.node());
        let childless = children.is_empty();
        let count = if store.verified { children.len() } else { store.sound(children).len() } as u32;
        let ending = match self.ends_leaf(at, childless) {
            false => Ending::No,
            true if childless => Ending::Must,
            true => Ending::May,
        };
        TrieState { at, first, count, ending, narrowed: false }
    }

    /// Their weights, in a set that has some.
    pub(super) fn weights_of(&self, at: &TrieState) -> &[f32] {
        let first = at.first as usize;
        // There are as many as nodes: a file in which that is not so is not opened.
        let weights = self.info().weights().and_then(|weights| weights.edges.get(first..first + at.count as usize));
        weights.unwrap_or_default()
    }

    #[inline]
    pub(super) fn tokens_of(&self, at: &TrieState) -> &[TokenId] {
        let tokens = self.written_at(at);
        // Somebody may have changed the file since the state was made.
        if self.store().verified { tokens } else { self.store().sound(tokens) }
    }

    #[inline]
    fn written_at(&self, at: &TrieState) -> &[TokenId] {
        let first = at.first as usize;
        self.store().tokens.get(first..first + at.count as usize).unwrap_or_default()
    }
}

/// A file whose contents changed or were damaged, found during a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the file of the set is damaged, or was changed while it was used: {nth} of the {of} tokens that may follow here \
     are in order. Write a new file and rename it instead"
)]
struct ChangedFile {
    nth: usize,
    of: usize,
}

impl Constraint for Trie {
    type State = TrieState;

    #[inline]
    fn start(&self) -> TrieState {
        self.settle(Cursor::ROOT)
    }

    #[inline]
    fn next<'a>(&'a self, at: &'a TrieState, _: &'a mut Scratch) -> Next<'a> {
        let tokens = match self.info().weights() {
            None => Tokens::Ids(self.tokens_of(at)),
            Some(_) => Tokens::Weighted(WeightedTokens::of_trie(self, at)),
        };
        Next { tokens, ending: at.ending }
    }

    #[inline]
    fn advance(&self, at: &mut TrieState, token: TokenId) -> Option<Role> {
        let nth = self.tokens_of(at).binary_search(&token).ok()?;
        let node = self.store().target(at.at.node(), at.first + nth as u32);
        // Written in place: what is copied right after it was written in parts waits for the processor's store buffer.
        *at = self.settle(at.at.child(node));
        Some(Role::Value)
    }

    #[inline]
    fn ending(&self, at: &TrieState) -> Ending {
        at.ending
    }

    fn forced_token(&self, at: &TrieState, _: &mut Scratch) -> Option<TokenId> {
        self.forced_child(at.at).map(|(token, _)| token)
    }

    fn problem(&self, at: &TrieState) -> Option<Problem> {
        let (whole, sound) = (self.written_at(at).len(), self.tokens_of(at).len());
        (sound < whole).then(|| Problem::new(ChangedFile { nth: sound, of: whole }))
    }

    fn values(&self, at: &TrieState, over: bool) -> Vec<Leaf> {
        let leaf = if over { self.leaf_at(at.at) } else { None };
        leaf.and_then(|leaf| Trie::leaf(self, leaf)).into_iter().collect()
    }

    fn max_token(&self) -> Option<TokenId> {
        Some(Trie::max_token(self))
    }

    fn sets(&self) -> Vec<&Trie> {
        vec![self]
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        if self.len() > limit { Err(NotListed::TooMany { limit }) } else { Ok(self.clone()) }
    }
}

impl Special for Trie {
    fn remembers(&self) -> bool {
        self.is_tree()
    }

    fn back(&self, at: &mut TrieState, tokens: usize) -> bool {
        let before = self.ancestor(at.at, tokens);
        if let Some(before) = before {
            *at = self.settle(before);
        }
        before.is_some()
    }

    fn first_set(&self) -> Option<&Trie> {
        Some(self)
    }
}
