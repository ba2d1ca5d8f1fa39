//! A trie with some of its leaves denied, without dead ends.

use super::live::{Live, ends_allowed};
use super::{Constraint, Ending, Next, NotListed, Role, Scratch, Special, Tokens, TrieState, walk};
use crate::set::ids::{LeafId, NodeId, TokenId};
use crate::set::leaf_set::{LeafSet, slice_within};
use crate::set::trie::{Leaf, NotAllowed, Trie};
use crate::work::ErrorKind;
use std::fmt;
use std::sync::Arc;

/// A trie with only some of its leaves allowed. A child is allowed exactly if an allowed leaf lies at or below it, at
/// any depth. So no walk leads into a dead end, and once one leaf is left, all of its tokens are forced.
///
/// The leaves below a node are neighbours, and nodes are numbered level by level. So making a filter visits only the
/// nodes above the leaves that the filter stores: for 10^4 denied leaves in a set of 10^6, some 10^4 nodes. A step
/// looks up its children among the dead nodes; if none of them is dead, the step costs the same as in the trie.
///
/// Its states are the states of the trie: a few bytes, `Copy`. A clone costs one reference count. Where several
/// sequences stand for one leaf, all of them are allowed or none.
///
/// ```
/// use trie_core::{LeafSet, Span, SpanRules, TokenId, Trie};
/// let id = |n| TokenId::new(n).unwrap();
/// let mut items = Trie::builder();
/// for (name, tokens) in [("a", [1, 2]), ("b", [1, 3]), ("c", [4, 2])] {
///     items.push(Some(name), &tokens.map(id));
/// }
/// let items = items.build()?;
/// let sold_out = LeafSet::from_leaves(items.len(), [items.find(&[id(4), id(2)]).unwrap()])?;
/// let left = items.filter(&!sold_out)?;
/// let span = Span::new(SpanRules::for_constraint(left.clone(), 6)?.into());
/// assert_eq!(span.forced().collect::<Vec<_>>(), [id(1)], "nothing is left below 4");
///
/// let last = left.deny(&[items.find(&[id(1), id(3)]).unwrap()])?;
/// let span = Span::new(SpanRules::for_constraint(last, 6)?.into());
/// assert_eq!(span.forced().collect::<Vec<_>>(), [id(1), id(2)], "one leaf is left");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FilteredTrie(Arc<Filter>);

struct Filter {
    trie: Trie,
    base: Arc<Base>,
    /// Leaves that were denied later, ascending, and the nodes that lead to no allowed leaf since then.
    gone: Box<[u32]>,
    dead: Box<[u32]>,
    left: usize,
}

/// State shared by a filter and the filters that deny further leaves.
struct Base {
    leaves: LeafSet,
    live: Live,
}

/// Reasons why a filter cannot be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// No leaf is allowed.
    #[error("none of the {leaves} leaves is left: there would be nothing to write")]
    NothingLeft {
        /// Leaves of the trie.
        leaves: usize,
    },
    /// A set for another trie.
    #[error("the filter is for {got} leaves, the trie has {leaves}")]
    OtherTrie {
        /// Leaves that the filter is for.
        got: usize,
        /// Leaves of the trie.
        leaves: usize,
    },
    /// A leaf that the trie does not have.
    #[error("entry {entry}: leaf {leaf} is out of range: the trie has {leaves} leaves, numbered from 0")]
    NoSuchLeaf {
        /// Its place among those given.
        entry: usize,
        /// Number of the leaf.
        leaf: u32,
        /// Leaves of the trie.
        leaves: usize,
    },
}

impl FilterError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NothingLeft { .. } => ErrorKind::Set,
            Self::OtherTrie { .. } | Self::NoSuchLeaf { .. } => ErrorKind::Argument,
        }
    }
}

impl Trie {
    /// The same trie with only these leaves allowed. `O(d log n)` if the set lists `d` leaves, or all but `d` leaves;
    /// `O(nodes)` if it stores one bit for each leaf.
    ///
    /// # Errors
    /// A set for another number of leaves, or one without leaves.
    pub fn filter(&self, allowed: &LeafSet) -> Result<FilteredTrie, FilterError> {
        let (got, leaves) = (allowed.size(), self.len());
        if got != leaves {
            return Err(FilterError::OtherTrie { got, leaves });
        }
        let left = allowed.count();
        if left == 0 {
            return Err(FilterError::NothingLeft { leaves });
        }
        let base = Arc::new(Base { live: Live::from_leaves(self, allowed), leaves: allowed.clone() });
        let (gone, dead) = Default::default();
        Ok(FilteredTrie(Arc::new(Filter { trie: self.clone(), base, gone, dead, left })))
    }
}

impl FilteredTrie {
    /// The trie with all of its leaves.
    pub fn trie(&self) -> &Trie {
        &self.0.trie
    }

    /// Returns the number of allowed leaves, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "something is left")]
    pub fn len(&self) -> usize {
        self.0.left
    }

    /// Returns whether the filter allows this leaf.
    pub fn allows(&self, leaf: LeafId) -> bool {
        self.0.base.leaves.contains(leaf) && self.0.gone.binary_search(&leaf.get()).is_err()
    }

    /// The state after `prefix`.
    ///
    /// # Errors
    /// [`NotAllowed`] names the first token that leads to no allowed leaf.
    pub fn walk(&self, prefix: &[TokenId]) -> Result<TrieState, NotAllowed> {
        walk(self, prefix)
    }

    /// The set of leaves that are still allowed.
    pub fn leaves(&self) -> LeafSet {
        let gone = LeafSet::from_leaves(self.0.trie.len(), self.0.gone.iter().map(|&leaf| LeafId(leaf)));
        // They are leaves of this trie.
        gone.and_then(|gone| self.0.base.leaves.and(&!gone)).unwrap_or_else(|_| LeafSet::none(self.0.trie.len()))
    }

    /// A filter that denies these leaves too and shares everything else with this one. `O(g + d log n)`, where `g`
    /// leaves were denied in this way before. Where several sequences stand for one leaf, the cost is that of
    /// [`Trie::filter`].
    ///
    /// # Errors
    /// A leaf that the trie does not have, or none left.
    pub fn deny(&self, denied: &[LeafId]) -> Result<Self, FilterError> {
        let leaves = self.0.trie.len();
        if let Some(entry) = denied.iter().position(|leaf| leaf.index() >= leaves) {
            return Err(FilterError::NoSuchLeaf { entry, leaf: denied[entry].get(), leaves });
        }
        let Filter { trie, base, gone, dead, left } = &*self.0;
        if !trie.is_tree() {
            // Nodes have several parents there: all of it is looked at again.
            let denied =
                LeafSet::from_leaves(leaves, denied.iter().copied()).and_then(|denied| self.leaves().and(&!denied));
            return trie.filter(&denied.unwrap_or_else(|_| LeafSet::none(leaves)));
        }
        let (trie, base) = (trie.clone(), Arc::clone(base));
        let mut filter = Filter { trie, base, gone: gone.clone(), dead: dead.clone(), left: *left };
        for &leaf in denied {
            filter.deny(leaf);
        }
        if filter.left == 0 { Err(FilterError::NothingLeft { leaves }) } else { Ok(Self(Arc::new(filter))) }
    }
}

fn insert(ascending: &mut Box<[u32]>, number: u32) {
    let mut all = std::mem::take(ascending).into_vec();
    if let Err(at) = all.binary_search(&number) {
        all.insert(at, number);
    }
    *ascending = all.into();
}

impl Filter {
    fn allows(&self, leaf: LeafId) -> bool {
        self.base.leaves.contains(leaf) && self.gone.binary_search(&leaf.0).is_err()
    }

    fn deny(&mut self, leaf: LeafId) {
        if !self.allows(leaf) {
            return;
        }
        insert(&mut self.gone, leaf.0);
        self.left -= 1;
        let store = self.trie.store();
        // Up as long as nothing else is left below; parents are numbered below their children.
        let mut at = store.leaves.node(leaf);
        while let Some(node) = at {
            let (first, children) = store.family(node);
            let ends = ends_allowed(&self.trie, &self.base.leaves, node.0)
                && store.leaves.leaf(node).is_some_and(|leaf| self.allows(leaf));
            if ends || self.live_nodes(first, children.len()) > 0 {
                return;
            }
            insert(&mut self.dead, node.0);
            at = self.trie.store().parent(node);
        }
    }

    /// Counts the nodes that lead to an allowed leaf, among `count` neighbouring nodes of a tree.
    fn live_nodes(&self, first: u32, count: usize) -> usize {
        let nodes = first..first + count as u32;
        self.base.live.count(nodes.clone()) - slice_within(&self.dead, nodes).len()
    }

    /// Returns whether a child leads to an allowed leaf. `edge` is its number among all edges.
    fn is_live(&self, from: NodeId, edge: u32) -> bool {
        let node = self.trie.store().target(from, edge).0;
        self.base.live.contains(node) && self.dead.binary_search(&node).is_err()
    }

    fn settle(&self, at: TrieState) -> TrieState {
        let TrieState { at, first, count, ending, .. } = at;
        let edges = first..first + count;
        let live = if self.trie.is_tree() {
            self.live_nodes(first, count as usize)
        } else {
            edges.filter(|&edge| self.is_live(at.node(), edge)).count()
        };
        let ends = match ending {
            Ending::No | Ending::Free => false,
            // It was live, and nothing else is there.
            Ending::Must if self.trie.is_tree() => true,
            Ending::Must | Ending::May => self.trie.leaf_at(at).is_some_and(|leaf| self.allows(leaf)),
        };
        let ending = match (ends, live) {
            (false, _) => Ending::No,
            (true, 0) => Ending::Must,
            (true, _) => Ending::May,
        };
        let count = if live == 0 { 0 } else { count };
        TrieState { at, first, count, ending, narrowed: live < count as usize }
    }
}

impl Constraint for FilteredTrie {
    type State = TrieState;

    fn start(&self) -> TrieState {
        self.0.settle(self.0.trie.start())
    }

    /// `O(1)`, or `O(k)` if some of the `k` children are not allowed.
    #[inline]
    fn next<'a>(&'a self, at: &'a TrieState, scratch: &'a mut Scratch) -> Next<'a> {
        let tokens = self.0.trie.tokens_of(at);
        if !at.narrowed {
            return self.0.trie.next(at, scratch);
        }
        let (ids, weighted, _) = scratch.split_weighted();
        ids.clear();
        let filter = &*self.0;
        let nodes = at.first..at.first + tokens.len() as u32;
        if filter.trie.is_tree() {
            let mut dead = slice_within(&filter.dead, nodes.clone());
            filter.base.live.for_each_live(nodes, |node| {
                if dead.first() == Some(&node) {
                    dead = &dead[1..];
                } else {
                    ids.extend(tokens.get((node - at.first) as usize));
                }
            });
        } else {
            let live = nodes.zip(tokens).filter(|&(edge, _)| filter.is_live(at.at.node(), edge));
            ids.extend(live.map(|(_, &token)| token));
        }
        if filter.trie.is_weighted() {
            weighted.clear(filter.trie.end_weight(at.at));
            weighted.extend(ids.iter().map(|&token| (token, filter.trie.edge_weight(at.at, token))));
            return Next { tokens: weighted.tokens(), ending: at.ending };
        }
        Next { tokens: Tokens::Ids(ids), ending: at.ending }
    }

    #[inline]
    fn advance(&self, at: &mut TrieState, token: TokenId) -> Option<Role> {
        let nth = self.0.trie.tokens_of(at).binary_search(&token).ok()? as u32;
        if at.narrowed && !self.0.is_live(at.at.node(), at.first + nth) {
            return None;
        }
        let mut next = *at;
        let role = self.0.trie.advance(&mut next, token)?;
        *at = self.0.settle(next);
        Some(role)
    }

    #[inline]
    fn ending(&self, at: &TrieState) -> Ending {
        at.ending
    }

    fn forced_token(&self, at: &TrieState, scratch: &mut Scratch) -> Option<TokenId> {
        if at.ending != Ending::No {
            return None;
        }
        // In a graph what is forced is more than what has no rival.
        let graph = !at.narrowed && !self.0.trie.is_tree();
        let forced = if graph { self.0.trie.forced_token(at, scratch) } else { None };
        forced.or_else(|| self.next(at, scratch).tokens.single_token())
    }

    fn values(&self, at: &TrieState, over: bool) -> Vec<Leaf> {
        if at.ending == Ending::No { Vec::new() } else { self.0.trie.values(at, over) }
    }

    fn max_token(&self) -> Option<TokenId> {
        Some(self.0.trie.max_token())
    }

    fn sets(&self) -> Vec<&Trie> {
        vec![&self.0.trie]
    }

    /// The allowed leaves as a trie of their own, in which they have new numbers.
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        let Filter { trie, left, .. } = &*self.0;
        if *left > limit {
            return Err(NotListed::TooMany { limit });
        }
        if *left == trie.len() {
            return Ok(trie.clone());
        }
        if !trie.is_tree() {
            return Err(NotListed::NotATree);
        }
        let mut builder = Trie::builder();
        for leaf in self.leaves().iter() {
            let leaf = trie.leaf(leaf).ok_or(NotListed::Damaged)?;
            builder.push(leaf.name.as_deref(), &leaf.tokens);
        }
        let made = builder.build().map_err(|_| NotListed::Damaged)?;
        Ok(made.with_info(trie.info().clone().with_weights(None)).weighed_as(&[trie]))
    }
}

impl Special for FilteredTrie {
    fn remembers(&self) -> bool {
        self.0.trie.remembers()
    }

    fn back(&self, at: &mut TrieState, tokens: usize) -> bool {
        let back = self.0.trie.back(at, tokens);
        if back {
            *at = self.0.settle(*at);
        }
        back
    }

    fn first_set(&self) -> Option<&Trie> {
        Some(&self.0.trie)
    }
}

impl From<FilteredTrie> for super::AnyConstraint {
    fn from(filtered: FilteredTrie) -> Self {
        Self::new(filtered)
    }
}

impl fmt::Debug for FilteredTrie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FilteredTrie {{ left: {}, of: {:?} }}", self.0.left, self.0.trie)
    }
}
