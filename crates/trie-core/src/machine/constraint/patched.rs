//! A trie with leaves taken away and leaves added, without making another trie.

use super::{
    Constraint, Ending, FilteredTrie, Next, NotListed, Problem, Role, Scratch, Special, Tokens, TrieState, walk,
};
use crate::set::builder::BuildError;
use crate::set::ids::{LeafId, TokenId};
use crate::set::leaf_set::LeafSet;
use crate::set::operations::SetOperation;
use crate::set::trie::{Leaf, NotAllowed, Trie};
use crate::work::ErrorKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A trie, which may be mapped from a file, and its changes since it was made: removed leaves and added leaves. A
/// token is allowed exactly if a remaining or added leaf lies at or below it, so no walk leads into a dead end.
///
/// Immutable: [`PatchedTrie::apply_changes`] returns a new set, and walks of this one are not affected. Leaves of the
/// trie keep their numbers; added leaves are numbered after them, in the order of their tokens. Every change processes
/// all earlier changes again, so rebuild the set as one trie ([`Constraint::to_trie`]) once they are a large part of
/// it.
///
/// ```
/// use trie_core::{PatchedTrie, Span, SpanRules, TokenId, Trie};
/// let id = |n| TokenId::new(n).unwrap();
/// let mut items = Trie::builder();
/// items.push(Some("lamp"), &[id(1), id(2)]);
/// items.push(Some("chair"), &[id(4), id(2)]);
/// let items = PatchedTrie::new(items.build()?)?;
/// let (now, changes) = items.apply_changes(&[&[id(4), id(2)]], &[(Some("table"), &[id(1), id(3)])])?;
/// assert_eq!((now.len(), changes.added, changes.removed), (2, 1, 1));
/// let span = Span::new(SpanRules::for_constraint(now, 6)?.into());
/// assert_eq!(span.forced().collect::<Vec<_>>(), [id(1)], "nothing is left below 4");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct PatchedTrie(Arc<PatchedInner>);

struct PatchedInner {
    base: Trie,
    /// Remaining leaves of the original trie, if any.
    left: Option<FilteredTrie>,
    gone: BTreeSet<u32>,
    added: Option<Trie>,
}

/// Number of leaves that a change added and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Number of added leaves.
    pub added: usize,
    /// Number of removed leaves.
    pub removed: usize,
    /// Leaves that were to be removed but are not in the set, or to be added but are in it already.
    pub unchanged: usize,
}

/// Reasons why a change cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// No leaf would be left.
    #[error("nothing would be left: a set has at least one value")]
    NothingLeft,
    /// Leaves with and leaves without a name.
    #[error(
        "entry {entry} that is added has {}: the values of the set have {}", name_words(!set).0, name_words(*set).1
    )]
    HalfNamed {
        /// Its place among those that come.
        entry: usize,
        /// True if the leaves of the set have names.
        set: bool,
    },
    /// A leaf without tokens.
    #[error("entry {entry} that is added has no token")]
    NoTokens {
        /// Its place among those that come.
        entry: usize,
    },
    /// Weights cannot be added to.
    #[error("a set with weights cannot be changed: make it again")]
    Weighted,
    /// Several sequences stand for one leaf.
    #[error("a set in which several sequences stand for one value cannot be changed: make it again, from the texts")]
    NotATree,
    /// More than a trie can hold.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl PatchError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Build(error) => error.kind(),
            Self::NothingLeft | Self::HalfNamed { .. } | Self::NoTokens { .. } | Self::Weighted | Self::NotATree => {
                ErrorKind::Set
            }
        }
    }
}

fn name_words(is: bool) -> (&'static str, &'static str) {
    if is { ("a name", "one") } else { ("no name", "none") }
}

impl PatchedTrie {
    /// A patched trie without changes so far.
    ///
    /// # Errors
    /// [`PatchError::Weighted`], [`PatchError::NotATree`].
    pub fn new(base: Trie) -> Result<Self, PatchError> {
        match () {
            () if base.is_weighted() => Err(PatchError::Weighted),
            () if !base.is_tree() => Err(PatchError::NotATree),
            () => Self::build(base, BTreeSet::new(), None),
        }
    }

    fn build(base: Trie, gone: BTreeSet<u32>, added: Option<Trie>) -> Result<Self, PatchError> {
        // They are leaves of this trie; an error is that nothing is left of it.
        let denied = LeafSet::from_leaves(base.len(), gone.iter().copied().map(LeafId));
        let left = denied.ok().and_then(|denied| base.filter(&!denied).ok());
        if left.is_none() && added.is_none() {
            return Err(PatchError::NothingLeft);
        }
        Ok(Self(Arc::new(PatchedInner { base, left, gone, added })))
    }

    /// The trie that the changes apply to.
    pub fn base(&self) -> &Trie {
        &self.0.base
    }

    /// Returns whether both are this very set, and not one derived from it by a change.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the number of leaves, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "something is left")]
    pub fn len(&self) -> usize {
        self.0.left.as_ref().map_or(0, FilteredTrie::len) + self.0.added.as_ref().map_or(0, Trie::len)
    }

    /// Returns the number of leaves added or removed since the trie was built.
    pub fn patches(&self) -> usize {
        self.0.gone.len() + self.0.added.as_ref().map_or(0, Trie::len)
    }

    /// Returns whether these tokens are a leaf.
    pub fn contains(&self, tokens: &[TokenId]) -> bool {
        let here = self.0.base.find(tokens).is_some_and(|leaf| !self.0.gone.contains(&leaf.0));
        here || self.0.added.as_ref().is_some_and(|added| added.find(tokens).is_some())
    }

    /// The state after `prefix`.
    ///
    /// # Errors
    /// [`NotAllowed`] names the first token that leads to no leaf.
    pub fn walk(&self, prefix: &[TokenId]) -> Result<PatchedState, NotAllowed> {
        walk(self, prefix)
    }

    /// The tokens of the leaves that have this name.
    pub fn tokens_by_name(&self, name: &str) -> Vec<Vec<TokenId>> {
        let PatchedInner { base, gone, added, .. } = &*self.0;
        let here = base.leaves_named(name).filter(|leaf| !gone.contains(&leaf.0)).filter_map(|leaf| base.leaf(leaf));
        let came = added.iter().flat_map(|added| added.leaves_named(name).filter_map(|leaf| added.leaf(leaf)));
        here.chain(came).map(|leaf| leaf.tokens).collect()
    }

    /// The set after a change: leaves to remove, by their tokens, and then leaves to add, with their names. Removing a
    /// leaf that is not in the set, or adding one that is, has no effect: the leaf keeps its name and is counted as
    /// unchanged.
    ///
    /// `O((c + p) log n)` for `c` changes after `p` earlier ones.
    ///
    /// # Errors
    /// See [`PatchError`]; the set has not changed then.
    pub fn apply_changes(
        &self,
        remove: &[&[TokenId]],
        add: &[(Option<&str>, &[TokenId])],
    ) -> Result<(Self, Changes), PatchError> {
        let PatchedInner { base, gone, added, .. } = &*self.0;
        let (mut gone, mut changes, set) = (gone.clone(), Changes::default(), base.has_names());
        let mut came: BTreeMap<Vec<TokenId>, Option<String>> =
            added.iter().flat_map(|added| added.leaves().map(|leaf| (leaf.tokens, leaf.name))).collect();
        for &tokens in remove {
            let was_here = base.find(tokens).is_some_and(|leaf| gone.insert(leaf.0));
            let went = was_here || came.remove(tokens).is_some();
            *(if went { &mut changes.removed } else { &mut changes.unchanged }) += 1;
        }
        for (entry, &(name, tokens)) in add.iter().enumerate() {
            if tokens.is_empty() {
                return Err(PatchError::NoTokens { entry });
            }
            if name.is_some() != set {
                return Err(PatchError::HalfNamed { entry, set });
            }
            let leaf = base.find(tokens);
            if came.contains_key(tokens) || leaf.is_some_and(|leaf| !gone.contains(&leaf.0)) {
                changes.unchanged += 1;
                continue;
            }
            changes.added += 1;
            match leaf.filter(|&leaf| base.name(leaf).as_deref() == name) {
                Some(leaf) => _ = gone.remove(&leaf.0),
                None => _ = came.insert(tokens.to_vec(), name.map(str::to_owned)),
            }
        }
        let mut builder = Trie::builder();
        for (tokens, name) in &came {
            builder.push(name.as_deref(), tokens);
        }
        let added = if came.is_empty() { None } else { Some(builder.build()?.with_info(base.info().clone())) };
        Ok((Self::build(base.clone(), gone, added)?, changes))
    }
}

/// A position in the remaining leaves of the trie and one in the added leaves. If one of the two is missing, the walk
/// continues in the other alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchedState {
    left: Option<TrieState>,
    added: Option<TrieState>,
}

impl PatchedState {
    fn ending(self) -> Ending {
        match (self.left, self.added) {
            (Some(one), None) | (None, Some(one)) => one.ending,
            (Some(one), Some(other)) => match (one.ending, other.ending) {
                (Ending::No, Ending::No) => Ending::No,
                (Ending::Must, Ending::Must) => Ending::Must,
                // A state that must end has nothing below it; the other one has.
                _ => Ending::May,
            },
            (None, None) => Ending::No,
        }
    }
}

impl Constraint for PatchedTrie {
    type State = PatchedState;

    fn start(&self) -> PatchedState {
        PatchedState {
            left: self.0.left.as_ref().map(Constraint::start),
            added: self.0.added.as_ref().map(Constraint::start),
        }
    }

    /// The cost of the trie where no added leaf begins with the same tokens; otherwise `O(k)` for the `k` children of
    /// both.
    fn next<'a>(&'a self, at: &'a PatchedState, scratch: &'a mut Scratch) -> Next<'a> {
        let left = self.0.left.as_ref().zip(at.left.as_ref());
        let added = self.0.added.as_ref().zip(at.added.as_ref());
        match (left, added) {
            (Some((left, at)), None) => left.next(at, scratch),
            (None, Some((added, at))) => added.next(at, scratch),
            (None, None) => Next { tokens: Tokens::Ids(&[]), ending: Ending::No },
            (Some((left, here)), Some((added, there))) => {
                let (ids, _, inner) = scratch.split();
                merge(ids, left.next(here, inner).tokens.iter(), added.tokens_of(there));
                Next { tokens: Tokens::Ids(ids), ending: at.ending() }
            }
        }
    }

    fn advance(&self, at: &mut PatchedState, token: TokenId) -> Option<Role> {
        let after = PatchedState {
            left: self.0.left.as_ref().zip(at.left).and_then(|(left, at)| advance(left, at, token)),
            added: self.0.added.as_ref().zip(at.added).and_then(|(added, at)| advance(added, at, token)),
        };
        (after.left.is_some() || after.added.is_some()).then(|| {
            *at = after;
            Role::Value
        })
    }

    fn ending(&self, at: &PatchedState) -> Ending {
        at.ending()
    }

    fn values(&self, at: &PatchedState, over: bool) -> Vec<Leaf> {
        let left = self.0.left.as_ref().zip(at.left.as_ref()).map(|(left, at)| left.values(at, over));
        let mut values = left.unwrap_or_default();
        if let Some((added, at)) = self.0.added.as_ref().zip(at.added.as_ref()) {
            let after = self.0.base.len() as u32;
            values.extend(
                added.values(at, over).into_iter().map(|leaf| Leaf { index: LeafId(after + leaf.index.0), ..leaf }),
            );
        }
        values
    }

    fn problem(&self, at: &PatchedState) -> Option<Problem> {
        self.0.base.problem(at.left.as_ref()?)
    }

    fn max_token(&self) -> Option<TokenId> {
        self.sets().into_iter().map(Trie::max_token).max()
    }

    fn sets(&self) -> Vec<&Trie> {
        [Some(&self.0.base), self.0.added.as_ref()].into_iter().flatten().collect()
    }

    /// One trie of all leaves, in which they have new numbers.
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        if self.len() > limit {
            return Err(NotListed::TooMany { limit });
        }
        let left = self.0.left.as_ref().map(|left| left.to_trie(limit)).transpose()?;
        match (left, self.0.added.clone()) {
            (Some(left), Some(added)) => left.combine(SetOperation::Union, &added).map_err(|_| NotListed::Damaged),
            (left, added) => left.or(added).ok_or(NotListed::Damaged),
        }
    }
}

fn advance<C: Constraint<State = TrieState>>(constraint: &C, mut at: TrieState, token: TokenId) -> Option<TrieState> {
    constraint.advance(&mut at, token).map(|_| at)
}

/// Two ascending lists as one, each token once.
fn merge(ids: &mut Vec<TokenId>, one: impl Iterator<Item = TokenId>, mut other: &[TokenId]) {
    ids.clear();
    for token in one {
        let before = other.partition_point(|&rival| rival < token);
        ids.extend(&other[..before]);
        ids.push(token);
        other = other.get(before + usize::from(other.get(before) == Some(&token))..).unwrap_or_default();
    }
    ids.extend(other);
}

impl Special for PatchedTrie {
    fn first_set(&self) -> Option<&Trie> {
        Some(&self.0.base)
    }
}

impl From<PatchedTrie> for super::AnyConstraint {
    fn from(patched: PatchedTrie) -> Self {
        Self::new(patched)
    }
}

impl fmt::Debug for PatchedTrie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PatchedTrie {{ leaves: {}, patches: {}, of: {:?} }}", self.len(), self.patches(), self.0.base)
    }
}
