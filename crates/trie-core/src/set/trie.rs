//! The immutable trie and the walk through it.
//!
//! Nodes are numbered breadth first, so the children of a node are one contiguous, ascending run of ids in one array.
//! A step reads two neighbouring offsets and `k` neighbouring tokens and nothing else. Terminals, leaf numbers and
//! names lie apart from these arrays.

use crate::set::builder::TrieBuilder;
use crate::set::graph::Graph;
use crate::set::ids::{LeafId, NodeId, TokenId};
pub(crate) use crate::set::storage::names::Names;
pub(crate) use crate::set::storage::store::{LeafTable, Store};
use crate::set::vocabulary::VocabularyId;
use crate::set::weights::Weights;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The set of token sequences of one span. Immutable, `Send + Sync`; a clone costs one reference count.
///
/// `==` compares contents (sequences, names, [`Trie::heal_bytes`], end tokens, weights), not the order in which they
/// were added.
///
/// ```
/// use trie_core::{TokenId, Trie};
/// let id = |n| TokenId::new(n).unwrap();
/// let mut builder = Trie::builder();
/// builder.push(Some("REPLY"), &[id(1), id(2)]);
/// builder.push(Some("STOP"), &[id(9)]);
/// let trie = builder.build()?;
/// assert_eq!(trie.children(trie.root()), [id(1), id(9)]);
/// assert_eq!(trie.find(&[id(9)]).and_then(|leaf| trie.name(leaf)).as_deref(), Some("STOP"));
/// # Ok::<(), trie_core::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Trie {
    store: Arc<Store>,
    info: SetInfo,
}

/// Properties of a set beside its arrays.
#[derive(Debug, Clone, Default)]
pub struct SetInfo {
    /// Bytes at the end of the prompt that every leaf spells again, for token healing.
    pub heal_bytes: u32,
    /// Default end tokens of a value, as they lie in a file: their number, then their ids, ascending. `None` if the
    /// set has none.
    end_tokens: Option<Arc<[u32]>>,
    /// Biases added to logits.
    weights: Option<Arc<Weights>>,
    /// Fingerprint and size of the vocabulary of the ids, if known. It restricts the use of the set and is not part of
    /// its contents: sets of the same ids are equal.
    vocabulary: Option<Arc<(String, u32)>>,
}

impl PartialEq for SetInfo {
    fn eq(&self, other: &Self) -> bool {
        let Self { heal_bytes, end_tokens, weights, vocabulary: _ } = self;
        (heal_bytes, end_tokens, weights) == (&other.heal_bytes, &other.end_tokens, &other.weights)
    }
}

impl Eq for SetInfo {}

impl SetInfo {
    /// Builds the properties of a set beside its arrays: bytes to heal, and tokens that end its values.
    pub fn new(heal_bytes: u32, mut end_tokens: Vec<TokenId>) -> Self {
        end_tokens.sort_unstable();
        end_tokens.dedup();
        let words = || std::iter::once(end_tokens.len() as u32).chain(end_tokens.iter().map(|token| token.get()));
        Self { heal_bytes, end_tokens: (!end_tokens.is_empty()).then(|| words().collect()), ..Self::default() }
    }

    /// The same with these weights.
    #[must_use]
    pub fn with_weights(self, weights: Option<Weights>) -> Self {
        Self { weights: weights.map(Arc::new), ..self }
    }

    /// The same for the vocabulary with this fingerprint and size.
    #[must_use]
    pub fn with_vocabulary(self, vocabulary: Option<(String, u32)>) -> Self {
        Self { vocabulary: vocabulary.map(Arc::new), ..self }
    }

    /// Returns the biases added to logits.
    #[inline]
    pub fn weights(&self) -> Option<&Weights> {
        self.weights.as_deref()
    }

    /// Default end tokens of a value, ascending: they apply unless the caller names others.
    pub fn end_tokens(&self) -> &[TokenId] {
        self.end_words().map_or(&[], |words| bytemuck::cast_slice(&words[1..]))
    }

    /// The end tokens as they lie in a file.
    pub fn end_words(&self) -> Option<&[u32]> {
        self.end_tokens.as_deref()
    }
}

/// A position in a trie: eight bytes, `Copy`. Cloning, rollback and reordering of positions cost nothing.
///
/// A cursor belongs to the trie that it came from. Another trie may not have its node; the cursor then has no children
/// there and is not a terminal. Nothing panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cursor {
    node: NodeId,
    depth: u32,
}

impl Cursor {
    /// The start of every trie.
    pub const ROOT: Self = Self { node: NodeId::ROOT, depth: 0 };

    pub(crate) const fn new(node: NodeId, depth: u32) -> Self {
        Self { node, depth }
    }

    /// The position after one more token.
    pub(crate) const fn child(self, node: NodeId) -> Self {
        Self { node, depth: self.depth + 1 }
    }

    /// The node at this position.
    #[inline]
    pub const fn node(self) -> NodeId {
        self.node
    }

    /// Tokens walked from the root.
    #[inline]
    pub const fn depth(self) -> usize {
        self.depth as usize
    }
}

/// One value of a set with its name and tokens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// Its number: leaves are numbered by the order of their token sequences.
    pub index: LeafId,
    /// Its name, where names were given.
    pub name: Option<String>,
    /// Its tokens, never empty.
    pub tokens: Vec<TokenId>,
    /// The part of a form that it fills, by name; `None` elsewhere.
    pub field: Option<String>,
}

/// A token that does not continue the walk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {token} at position {position} is not allowed there: {}", shorten_list(.allowed, *.count))]
pub struct NotAllowed {
    /// The token that was given.
    pub token: TokenId,
    /// Its position, counted from the root of the trie.
    pub position: usize,
    /// Number of allowed tokens.
    pub count: usize,
    /// The first few of them, ascending.
    pub allowed: Vec<TokenId>,
}

crate::error_kind!(NotAllowed, NotAllowed);

impl NotAllowed {
    const SHOWN: usize = 8;

    pub(crate) fn new(token: TokenId, position: usize, mut legal: impl Iterator<Item = TokenId>) -> Self {
        let allowed: Vec<TokenId> = legal.by_ref().take(Self::SHOWN).collect();
        Self { token, position, count: allowed.len() + legal.count(), allowed }
    }
}

fn shorten_list(allowed: &[TokenId], count: usize) -> String {
    match count {
        0 => "nothing may follow".to_owned(),
        n if n > allowed.len() => format!("{n} tokens may follow, the first are {allowed:?}"),
        _ => format!("only {allowed:?} may follow"),
    }
}

impl Trie {
    /// A builder without leaves.
    pub fn builder() -> TrieBuilder {
        TrieBuilder::default()
    }

    #[doc(hidden)]
    pub fn from_store(store: Store) -> Self {
        Self { store: Arc::new(store), info: SetInfo::default() }
    }

    /// The same leaves, where each begins with the last `bytes` bytes of the prompt again: the caller that walks the
    /// trie first takes these bytes off the prompt.
    #[must_use]
    pub fn with_heal_bytes(mut self, bytes: u32) -> Self {
        self.info.heal_bytes = bytes;
        self
    }

    /// The same leaves, each followed by one of these end tokens unless the caller names others.
    #[must_use]
    pub fn with_end_tokens(self, tokens: impl Into<Vec<TokenId>>) -> Self {
        let (weights, vocabulary) = (self.info.weights.clone(), self.info.vocabulary.clone());
        let info = SetInfo { weights, vocabulary, ..SetInfo::new(self.info.heal_bytes, tokens.into()) };
        self.with_info(info)
    }

    /// The same leaves with the properties of another set: bytes to heal, end tokens, weights and vocabulary.
    #[must_use]
    #[doc(hidden)]
    pub fn with_info(self, info: SetInfo) -> Self {
        Self { info, ..self }
    }

    #[must_use]
    pub(crate) fn replace_weights(mut self, weights: Option<Weights>) -> Self {
        self.info.weights = weights.map(Arc::new);
        self
    }

    /// Returns the properties of the set beside its arrays.
    #[inline]
    #[doc(hidden)]
    pub fn info(&self) -> &SetInfo {
        &self.info
    }

    /// Default end tokens of a value, ascending: they apply unless the caller names others. Often none.
    pub fn end_tokens(&self) -> &[TokenId] {
        self.info.end_tokens()
    }

    /// The same leaves, marked as ids of this vocabulary, if it has a fingerprint: use with another one is then
    /// refused.
    #[must_use]
    pub fn with_vocabulary(mut self, vocabulary: Option<VocabularyId<'_>>) -> Self {
        let known = vocabulary.and_then(|known| Some((known.fingerprint?, known.stored_size())));
        if self.vocabulary().map(|own| (own.fingerprint, own.stored_size()))
            != known.map(|(own, size)| (Some(own), size))
        {
            self.info = self.info.with_vocabulary(known.map(|(fingerprint, size)| (fingerprint.to_owned(), size)));
        }
        self
    }

    /// The vocabulary of the ids, if the trie was made for a known one or comes from a file that was saved for one. A
    /// set of bare ids has none.
    pub fn vocabulary(&self) -> Option<VocabularyId<'_>> {
        let (fingerprint, size) = self.info.vocabulary.as_deref()?;
        Some(VocabularyId { size: *size as usize, fingerprint: Some(fingerprint) })
    }

    /// Returns the fingerprint of [`Trie::vocabulary`].
    pub fn fingerprint(&self) -> Option<&str> {
        self.vocabulary().and_then(|known| known.fingerprint)
    }

    /// Bytes at the end of the prompt that every leaf spells again; 0 where the set begins after the prompt.
    pub fn heal_bytes(&self) -> usize {
        self.info.heal_bytes as usize
    }

    #[doc(hidden)]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the identity of the arrays, in constant time.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.store) as usize
    }

    /// Number of leaves, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "a trie is never empty")]
    pub fn len(&self) -> usize {
        self.store.leaves.len()
    }

    /// Number of nodes, the root included.
    pub fn nodes(&self) -> usize {
        self.store.nodes()
    }

    /// Bytes held: arrays, names and this structure itself. The bytes of an open file are shared with other processes
    /// that have it open.
    pub fn nbytes(&self) -> usize {
        let s = &*self.store;
        let words = s.tokens.len() + s.first_child.len() + s.inner_terminals.len() + s.input_rows.words();
        let names = s.names.as_ref().map_or(0, Names::nbytes);
        let weights = self.info.weights().map_or(0, Weights::nbytes);
        weights + words * 4 + s.leaves.nbytes() + s.graph.as_ref().map_or(0, Graph::nbytes) + names + size_of::<Store>()
    }

    /// The largest token id of any leaf.
    pub fn max_token(&self) -> TokenId {
        self.store.max_token
    }

    /// Tokens of the longest leaf.
    pub fn max_depth(&self) -> usize {
        self.store.max_depth as usize
    }

    /// Returns the root node.
    #[inline]
    pub fn root(&self) -> Cursor {
        Cursor::ROOT
    }

    /// Tokens that continue from here, ascending; empty at the end of a leaf that is not a prefix of another.
    #[inline]
    pub fn children(&self, at: Cursor) -> &[TokenId] {
        self.family(at).1
    }

    /// The first child and the tokens of all children. In arrays that were not verified, the list ends at the first
    /// damaged token.
    #[inline]
    #[doc(hidden)]
    pub fn family(&self, at: Cursor) -> (u32, &[TokenId]) {
        let (first, tokens) = self.store.family(at.node);
        (first, if self.store.verified { tokens } else { self.store.sound(tokens) })
    }

    #[inline]
    pub(crate) fn is_childless(&self, at: Cursor) -> bool {
        self.store.children(at.node).is_empty()
    }

    /// The position after `token`, or `None` where it is not a child. `O(log k)`.
    #[inline]
    pub fn step(&self, at: Cursor, token: TokenId) -> Option<Cursor> {
        let (first, tokens) = self.family(at);
        let nth = tokens.binary_search(&token).ok()?;
        Some(Cursor { node: self.store.target(at.node, first + nth as u32), depth: at.depth + 1 })
    }

    #[inline]
    #[doc(hidden)]
    pub fn child(&self, at: Cursor, nth: usize) -> Cursor {
        Cursor { node: self.store.target(at.node, self.family(at).0 + nth as u32), depth: at.depth + 1 }
    }

    /// Returns whether exactly one sequence leads to each position. False for a set in which several sequences stand
    /// for one leaf ([`Trie::all_tokenizations`], [`Trie::with_partial_tokens`]).
    #[inline]
    pub fn is_tree(&self) -> bool {
        self.store.graph.is_none()
    }

    /// The position `up` tokens nearer to the root, or the root if that is nearer. `None` if this is not a tree,
    /// because a position then does not say how it was reached. `O(up log n)`.
    pub fn ancestor(&self, at: Cursor, up: usize) -> Option<Cursor> {
        let mut at = at;
        for _ in 0..up.min(at.depth()) {
            match self.store.parent(at.node) {
                _ if !self.is_tree() => return None,
                Some(node) if at.depth > 1 => at = Cursor { node, depth: at.depth - 1 },
                _ => return Some(Cursor::ROOT),
            }
        }
        Some(at)
    }

    /// The position after `prefix`.
    ///
    /// # Errors
    /// [`NotAllowed`] names the first token that leaves the trie.
    pub fn walk(&self, prefix: &[TokenId]) -> Result<Cursor, NotAllowed> {
        let mut at = Cursor::ROOT;
        for (position, &token) in prefix.iter().enumerate() {
            at = self
                .step(at, token)
                .ok_or_else(|| NotAllowed::new(token, position, self.children(at).iter().copied()))?;
        }
        Ok(at)
    }

    /// Returns whether a leaf ends here. It may go on: one leaf can be a prefix of another.
    #[inline]
    pub fn is_terminal(&self, at: Cursor) -> bool {
        self.ends_leaf(at, self.is_childless(at))
    }

    /// [`Trie::is_terminal`], given whether the position has no children.
    ///
    /// In a file that was never verified, a node may have lost its children. So only the table of leaves decides
    /// whether a leaf ends there.
    #[inline]
    pub(crate) fn ends_leaf(&self, at: Cursor, childless: bool) -> bool {
        let node = at.node.index();
        node != 0
            && node < self.nodes()
            && (childless || self.is_inner_terminal(at))
            && (self.store.verified || self.is_sound_leaf(at))
    }

    /// Returns whether the table of leaves contains this position, with as many tokens as were walked.
    #[cold]
    fn is_sound_leaf(&self, at: Cursor) -> bool {
        let Some(leaf) = self.store.leaves.leaf(at.node) else { return false };
        match &self.store.graph {
            None => self.store.path(at.node).is_some_and(|path| path.len() == at.depth()),
            Some(graph) => graph.canonical(leaf).is_some_and(|tokens| !tokens.is_empty()),
        }
    }

    /// Returns whether a leaf ends here that is a prefix of another one.
    #[inline]
    pub(crate) fn is_inner_terminal(&self, at: Cursor) -> bool {
        let inner = &self.store.inner_terminals;
        !inner.is_empty() && inner.binary_search(&at.node.0).is_ok()
    }

    /// The leaf that ends here. `O(log n)`.
    pub fn leaf_at(&self, at: Cursor) -> Option<LeafId> {
        if !self.is_terminal(at) {
            return None;
        }
        self.store.leaves.leaf(at.node)
    }

    /// The leaf with these tokens. `O(length · log k)`.
    pub fn find(&self, tokens: &[TokenId]) -> Option<LeafId> {
        let mut at = Cursor::ROOT;
        for token in tokens {
            // Each token that it passes is read, so what nobody verified need not be looked at whole.
            let (first, children) = self.store.family(at.node);
            let nth = children.binary_search(token).ok()?;
            at = Cursor { node: self.store.target(at.node, first + nth as u32), depth: at.depth + 1 };
        }
        self.leaf_at(at)
    }

    /// Name and tokens of a leaf, or `None` if there are not that many. `O(depth · log n)`.
    ///
    /// Where several sequences stand for the leaf, its tokens are the canonical one.
    pub fn leaf(&self, leaf: LeafId) -> Option<Leaf> {
        let tokens = match &self.store.graph {
            None => self.store.path(self.store.leaves.node(leaf)?)?,
            Some(graph) => {
                graph.canonical(leaf)?.iter().copied().take_while(|&token| token <= self.store.max_token).collect()
            }
        };
        Some(Leaf { index: leaf, name: self.name(leaf).map(Cow::into_owned), tokens, field: None })
    }

    /// The name of a leaf; `None` without names, and for one that is not text in a file that nobody verified.
    ///
    /// The name is borrowed, except from a mapped file, which others may change: then it is a copy.
    pub fn name(&self, leaf: LeafId) -> Option<Cow<'_, str>> {
        self.store.names.as_ref()?.get(leaf.index())
    }

    /// The leaves of this name, ascending. The first call costs `O(n log n)` in the number of leaves, and builds an
    /// index of eight bytes a leaf that the trie keeps; later calls cost `O(log n)`.
    pub fn leaves_named<'n>(&'n self, name: &'n str) -> impl Iterator<Item = LeafId> + 'n {
        self.store.names.iter().flat_map(move |names| names.leaves(name))
    }

    /// The leaves whose names begin with these bytes, ordered by the bytes of their names, equal names by number; none
    /// without names. The first call costs `O(n log n)` in the number of leaves, and builds an index of four bytes a
    /// leaf that the trie keeps; later calls cost `O(log n)`.
    ///
    /// ```
    /// use trie_core::{TokenId, Trie};
    /// let id = |n| TokenId::new(n).unwrap();
    /// let mut builder = Trie::builder();
    /// for (name, token) in [("Red Star", 9), ("Red Sky", 1), ("Blue", 5)] {
    ///     builder.push(Some(name), &[id(token)]);
    /// }
    /// let trie = builder.build()?;
    /// let found: Vec<_> = trie.named_starting_with(b"Red S").filter_map(|leaf| trie.name(leaf)).collect();
    /// assert_eq!(found, ["Red Sky", "Red Star"]);
    /// # Ok::<(), trie_core::BuildError>(())
    /// ```
    pub fn named_starting_with(&self, bytes: &[u8]) -> impl ExactSizeIterator<Item = LeafId> + '_ {
        let found = self.store.names.as_ref().map_or(&[][..], |names| names.starting_with(bytes));
        found.iter().map(|&leaf| LeafId(leaf))
    }

    /// The first input row with the tokens of this leaf; `None` for a trie from a file, which does not store it.
    pub fn input_row(&self, leaf: LeafId) -> Option<usize> {
        self.store.input_rows.get(leaf.index()).map(|row| row as usize)
    }

    /// Forced tokens, whatever the model prefers, up to the next choice or the end of a leaf.
    ///
    /// In a set of tokenisations, a choice is a choice between texts: if only one text can follow, its canonical
    /// tokens are forced.
    pub fn forced(&self, at: Cursor) -> ForcedTokens<'_> {
        ForcedTokens { trie: self, at }
    }

    /// The forced child of a position, if there is one.
    pub(crate) fn forced_child(&self, at: Cursor) -> Option<(TokenId, Cursor)> {
        let (first, tokens) = self.family(at);
        let nth = match &self.store.graph {
            _ if tokens.len() == 1 => 0,
            None => return None,
            Some(graph) => graph.forced_edge(at.node)?.checked_sub(first)? as usize,
        };
        let token = *tokens.get(nth)?;
        // A terminal with a child is a choice: to end here or to go on.
        if self.is_terminal(at) {
            return None;
        }
        Some((token, self.child(at, nth)))
    }

    /// Numbers of the leaves at and below this position: they are neighbours. `O(depth)`.
    pub fn leaves_below(&self, at: Cursor) -> Range<u32> {
        if let (Some(graph), LeafTable::Ends { nodes, leaves, .. }) = (&self.store.graph, &self.store.leaves) {
            let first = leaves.get(nodes.partition_point(|&end| end < at.node.0)).copied();
            let end = graph.leaves_end.get(at.node.index()).copied().filter(|&end| end as usize <= self.len());
            return first.zip(end).map_or(0..0, |(first, end)| if first < end { first..end } else { 0..0 });
        }
        let mut first = at;
        while !self.is_terminal(first) {
            if self.is_childless(first) {
                return 0..0;
            }
            first = self.child(first, 0);
        }
        let mut last = at;
        while let count @ 1.. = self.store.children(last.node).len() {
            last = self.child(last, count - 1);
        }
        match (self.leaf_at(first), self.leaf_at(last)) {
            (Some(first), Some(last)) if first <= last => first.0..last.0 + 1,
            _ => 0..0,
        }
    }

    /// All leaves in order. Each costs `O(depth · log n)`.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = Leaf> + '_ {
        (0..self.len()).map(|index| {
            let none = || Leaf { index: LeafId(0), name: None, tokens: Vec::new(), field: None };
            self.leaf(LeafId(index as u32)).unwrap_or_else(none)
        })
    }
}

impl Trie {
    /// Passes the arrays that `==` compares to `feed`, each after its length.
    #[doc(hidden)]
    pub fn hash_content(&self, feed: &mut dyn FnMut(&[u8])) {
        let s = &*self.store;
        feed(&self.info.heal_bytes.to_le_bytes());
        feed(&(self.end_tokens().len() as u64).to_le_bytes());
        feed(bytemuck::cast_slice(self.end_tokens()));
        let mut part = |bytes: &[u8]| {
            feed(&(bytes.len() as u64).to_le_bytes());
            feed(bytes);
        };
        if let Some(weights) = self.info.weights() {
            part(bytemuck::cast_slice(&weights.edges));
            part(weights.ends.as_ref().map_or(&[], |ends| bytemuck::cast_slice(ends)));
        }
        part(bytemuck::cast_slice(&s.tokens));
        part(bytemuck::cast_slice(&s.first_child));
        part(bytemuck::cast_slice(&s.inner_terminals));
        if let Some(graph) = &s.graph {
            part(bytemuck::cast_slice(&graph.targets));
            part(bytemuck::cast_slice(&graph.forced));
            part(bytemuck::cast_slice(&graph.canonical));
        }
        if let Some(names) = &s.names {
            part(&names.text);
            part(bytemuck::cast_slice(&names.ends));
        }
    }
}

impl PartialEq for Trie {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&*self.store, &*other.store);
        self.info == other.info
            && (Arc::ptr_eq(&self.store, &other.store)
                || (a.tokens == b.tokens
                    && a.first_child == b.first_child
                    && a.inner_terminals == b.inner_terminals
                    && a.graph == b.graph
                    && a.names == b.names))
    }
}

impl Eq for Trie {}

impl fmt::Debug for Trie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trie {{ leaves: {}, nodes: {}, bytes: {} }}", self.len(), self.nodes(), self.nbytes())
    }
}

/// The forced run from a position: see [`Trie::forced`].
#[derive(Debug, Clone)]
pub struct ForcedTokens<'t> {
    trie: &'t Trie,
    at: Cursor,
}

impl ForcedTokens<'_> {
    /// The position after the tokens yielded so far.
    pub fn position(&self) -> Cursor {
        self.at
    }
}

impl Iterator for ForcedTokens<'_> {
    type Item = TokenId;

    fn next(&mut self) -> Option<TokenId> {
        let (token, at) = self.trie.forced_child(self.at)?;
        self.at = at;
        Some(token)
    }
}
