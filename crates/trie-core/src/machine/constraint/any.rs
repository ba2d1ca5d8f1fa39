//! A constraint of any kind, behind one type: a trie and a filter over one directly, because they must cost nothing;
//! every other kind behind a pointer.

use super::{Constraint, Ending, FilteredTrie, Next, NotListed, Problem, Role, Scratch, Thought, Tokens, TrieState};
use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, Trie};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Any [`Constraint`]. A clone is one reference count.
#[derive(Clone)]
pub struct AnyConstraint(Kind);

#[derive(Clone)]
enum Kind {
    Trie(Trie),
    /// Its states are those of a trie.
    Filtered(FilteredTrie),
    Other(Arc<dyn Erased>),
}

/// The state of any constraint; of a trie it is stored in place. A clone is a copy or one reference count.
///
/// A state belongs to the constraint it came from. In one of another kind nothing may follow it.
#[derive(Debug, PartialEq)]
pub struct AnyState(StateKind);

#[derive(Debug, Clone)]
enum StateKind {
    Trie(TrieState),
    Other(Arc<dyn ErasedState>),
}

impl Clone for AnyState {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// From memory to memory where both are of a trie: what is built in parts and copied right after waits for the
    /// processor's store buffer.
    #[inline]
    fn clone_from(&mut self, source: &Self) {
        match (&mut self.0, &source.0) {
            (StateKind::Trie(at), StateKind::Trie(source)) => *at = *source,
            (at, source) => *at = source.clone(),
        }
    }
}

trait ErasedState: Any + fmt::Debug + Send + Sync {
    fn equals(&self, other: &dyn Any) -> bool;
    fn copy(&self) -> Arc<dyn ErasedState>;
}

impl<S: Any + Clone + PartialEq + fmt::Debug + Send + Sync> ErasedState for S {
    fn equals(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<S>().is_some_and(|other| self == other)
    }

    fn copy(&self) -> Arc<dyn ErasedState> {
        Arc::new(self.clone())
    }
}

impl PartialEq for StateKind {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Trie(one), Self::Trie(other)) => one == other,
            (Self::Other(one), Self::Other(other)) => one.equals(&**other),
            _ => false,
        }
    }
}

/// [`Constraint`] without its type of state.
trait Erased: Any + fmt::Debug + Send + Sync {
    fn start(&self) -> Arc<dyn ErasedState>;
    fn next<'a>(&'a self, at: &'a dyn Any, scratch: &'a mut Scratch) -> Next<'a>;
    fn advance(&self, at: &mut dyn Any, token: TokenId) -> Option<Role>;
    fn ending(&self, at: &dyn Any) -> Ending;
    fn forced_token(&self, at: &dyn Any, scratch: &mut Scratch) -> Option<TokenId>;
    fn value(&self, at: &dyn Any) -> Option<Leaf>;
    fn values(&self, at: &dyn Any, over: bool) -> Vec<Leaf>;
    fn remembers(&self) -> bool;
    fn back(&self, at: &mut dyn Any, tokens: usize) -> bool;
    fn never_ends(&self) -> bool;
    fn barred(&self) -> &[TokenId];
    fn thought(&self, at: &dyn Any) -> Thought;
    fn problem(&self, at: &dyn Any) -> Option<Problem>;
    fn max_token(&self) -> Option<TokenId>;
    fn sets(&self) -> Vec<&Trie>;
    fn first_set(&self) -> Option<&Trie>;
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed>;
}

const NOTHING: Next<'static> = Next { tokens: Tokens::Ids(&[]), ending: Ending::No };

/// What implements [`Erased`]: the kinds themselves would have every method twice.
struct Of<C>(C);

impl<C: fmt::Debug> fmt::Debug for Of<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<C: Constraint> Erased for Of<C> {
    fn start(&self) -> Arc<dyn ErasedState> {
        Arc::new(self.0.start())
    }

    fn next<'a>(&'a self, at: &'a dyn Any, scratch: &'a mut Scratch) -> Next<'a> {
        at.downcast_ref().map_or(NOTHING, |at| self.0.next(at, scratch))
    }

    fn advance(&self, at: &mut dyn Any, token: TokenId) -> Option<Role> {
        self.0.advance(at.downcast_mut()?, token)
    }

    fn ending(&self, at: &dyn Any) -> Ending {
        at.downcast_ref().map_or(Ending::No, |at| self.0.ending(at))
    }

    fn forced_token(&self, at: &dyn Any, scratch: &mut Scratch) -> Option<TokenId> {
        self.0.forced_token(at.downcast_ref()?, scratch)
    }

    fn value(&self, at: &dyn Any) -> Option<Leaf> {
        self.0.value(at.downcast_ref()?)
    }

    fn values(&self, at: &dyn Any, over: bool) -> Vec<Leaf> {
        at.downcast_ref().map_or_else(Vec::new, |at| self.0.values(at, over))
    }

    fn remembers(&self) -> bool {
        self.0.remembers()
    }

    fn back(&self, at: &mut dyn Any, tokens: usize) -> bool {
        at.downcast_mut().is_some_and(|at| self.0.back(at, tokens))
    }

    fn never_ends(&self) -> bool {
        self.0.never_ends()
    }

    fn barred(&self) -> &[TokenId] {
        self.0.barred()
    }

    fn thought(&self, at: &dyn Any) -> Thought {
        at.downcast_ref().map_or_else(Thought::default, |at| self.0.thought(at))
    }

    fn problem(&self, at: &dyn Any) -> Option<Problem> {
        self.0.problem(at.downcast_ref()?)
    }

    fn max_token(&self) -> Option<TokenId> {
        self.0.max_token()
    }

    fn sets(&self) -> Vec<&Trie> {
        self.0.sets()
    }

    fn first_set(&self) -> Option<&Trie> {
        self.0.first_set()
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        self.0.to_trie(limit)
    }
}

impl AnyConstraint {
    /// A constraint of whatever kind.
    pub fn new<C: Constraint>(constraint: C) -> Self {
        let any: &dyn Any = &constraint;
        if let Some(same) = any.downcast_ref::<Self>() {
            return same.clone();
        }
        if let Some(trie) = any.downcast_ref::<Trie>() {
            return trie.clone().into();
        }
        if let Some(filtered) = any.downcast_ref::<FilteredTrie>() {
            return Self(Kind::Filtered(filtered.clone()));
        }
        Self(Kind::Other(Arc::new(Of(constraint))))
    }

    /// The trie, if it is one.
    #[inline]
    pub fn as_trie(&self) -> Option<&Trie> {
        match &self.0 {
            Kind::Trie(trie) => Some(trie),
            Kind::Filtered(_) | Kind::Other(_) => None,
        }
    }

    /// The constraint as the kind that it is, if it is that kind.
    pub fn downcast_ref<C: Constraint>(&self) -> Option<&C> {
        match &self.0 {
            Kind::Trie(trie) => (trie as &dyn Any).downcast_ref(),
            Kind::Filtered(filtered) => (filtered as &dyn Any).downcast_ref(),
            Kind::Other(other) => (&**other as &dyn Any).downcast_ref::<Of<C>>().map(|of| &of.0),
        }
    }
}

impl AnyState {
    /// The position, where the constraint is a trie.
    pub fn as_trie(&self) -> Option<TrieState> {
        match &self.0 {
            StateKind::Trie(at) => Some(*at),
            StateKind::Other(_) => None,
        }
    }

    /// The state of a constraint of another kind than tries and filters, if it is this type.
    pub fn downcast_ref<S: Any>(&self) -> Option<&S> {
        match &self.0 {
            StateKind::Trie(_) => None,
            StateKind::Other(state) => (&**state as &dyn Any).downcast_ref(),
        }
    }
}

impl From<Trie> for AnyConstraint {
    fn from(trie: Trie) -> Self {
        Self(Kind::Trie(trie))
    }
}

impl From<&Trie> for AnyConstraint {
    fn from(trie: &Trie) -> Self {
        trie.clone().into()
    }
}

impl fmt::Debug for AnyConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Trie(trie) => trie.fmt(f),
            Kind::Filtered(filtered) => filtered.fmt(f),
            Kind::Other(other) => other.fmt(f),
        }
    }
}

/// A constraint with a state of its own kind.
enum Pair<'a> {
    Trie(&'a Trie, &'a TrieState),
    Filtered(&'a FilteredTrie, &'a TrieState),
    Other(&'a dyn Erased, &'a dyn Any),
    /// The state is of another kind: nothing may follow it.
    Mismatch,
}

impl AnyConstraint {
    #[inline]
    fn with<'a>(&'a self, at: &'a AnyState) -> Pair<'a> {
        match (&self.0, &at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => Pair::Trie(trie, at),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => Pair::Filtered(filtered, at),
            (Kind::Other(other), StateKind::Other(at)) => Pair::Other(&**other, &**at),
            _ => Pair::Mismatch,
        }
    }
}

/// In place where nobody else holds the state.
fn advance_shared(constraint: &dyn Erased, at: &mut Arc<dyn ErasedState>, token: TokenId) -> Option<Role> {
    if let Some(own) = Arc::get_mut(at) {
        return constraint.advance(own, token);
    }
    let mut copy = at.copy();
    let role = constraint.advance(Arc::get_mut(&mut copy)?, token)?;
    *at = copy;
    Some(role)
}

impl Constraint for AnyConstraint {
    type State = AnyState;

    #[inline]
    fn start(&self) -> AnyState {
        match &self.0 {
            Kind::Trie(trie) => AnyState(StateKind::Trie(trie.start())),
            Kind::Filtered(filtered) => AnyState(StateKind::Trie(filtered.start())),
            Kind::Other(other) => AnyState(StateKind::Other(other.start())),
        }
    }

    #[inline]
    fn next<'a>(&'a self, at: &'a AnyState, scratch: &'a mut Scratch) -> Next<'a> {
        match self.with(at) {
            Pair::Trie(trie, at) => trie.next(at, scratch),
            Pair::Filtered(filtered, at) => filtered.next(at, scratch),
            Pair::Other(other, at) => other.next(at, scratch),
            Pair::Mismatch => NOTHING,
        }
    }

    #[inline]
    fn advance(&self, at: &mut AnyState, token: TokenId) -> Option<Role> {
        match (&self.0, &mut at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => trie.advance(at, token),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => filtered.advance(at, token),
            (Kind::Other(other), StateKind::Other(at)) => advance_shared(&**other, at, token),
            // The state is of another kind: nothing may follow it.
            _ => None,
        }
    }

    #[inline]
    fn ending(&self, at: &AnyState) -> Ending {
        match self.with(at) {
            Pair::Trie(trie, at) => trie.ending(at),
            Pair::Filtered(filtered, at) => filtered.ending(at),
            Pair::Other(other, at) => other.ending(at),
            Pair::Mismatch => Ending::No,
        }
    }

    fn forced_token(&self, at: &AnyState, scratch: &mut Scratch) -> Option<TokenId> {
        match self.with(at) {
            Pair::Trie(trie, at) => trie.forced_token(at, scratch),
            Pair::Filtered(filtered, at) => filtered.forced_token(at, scratch),
            Pair::Other(other, at) => other.forced_token(at, scratch),
            Pair::Mismatch => None,
        }
    }

    fn value(&self, at: &AnyState) -> Option<Leaf> {
        match self.with(at) {
            Pair::Trie(trie, at) => trie.value(at),
            Pair::Filtered(filtered, at) => filtered.value(at),
            Pair::Other(other, at) => other.value(at),
            Pair::Mismatch => None,
        }
    }

    fn values(&self, at: &AnyState, over: bool) -> Vec<Leaf> {
        match self.with(at) {
            Pair::Trie(trie, at) => trie.values(at, over),
            Pair::Filtered(filtered, at) => filtered.values(at, over),
            Pair::Other(other, at) => other.values(at, over),
            Pair::Mismatch => Vec::new(),
        }
    }

    #[inline]
    fn remembers(&self) -> bool {
        match &self.0 {
            Kind::Trie(trie) => trie.remembers(),
            Kind::Filtered(filtered) => filtered.remembers(),
            Kind::Other(other) => other.remembers(),
        }
    }

    fn back(&self, at: &mut AnyState, tokens: usize) -> bool {
        match (&self.0, &mut at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => trie.back(at, tokens),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => filtered.back(at, tokens),
            (Kind::Other(other), StateKind::Other(at)) => {
                let mut own = at.copy();
                let back = Arc::get_mut(&mut own).is_some_and(|own| other.back(own, tokens));
                if back {
                    *at = own;
                }
                back
            }
            _ => false,
        }
    }

    fn never_ends(&self) -> bool {
        match &self.0 {
            Kind::Trie(trie) => trie.never_ends(),
            Kind::Filtered(filtered) => filtered.never_ends(),
            Kind::Other(other) => other.never_ends(),
        }
    }

    fn barred(&self) -> &[TokenId] {
        match &self.0 {
            Kind::Trie(_) | Kind::Filtered(_) => &[],
            Kind::Other(other) => other.barred(),
        }
    }

    fn thought(&self, at: &AnyState) -> Thought {
        match self.with(at) {
            Pair::Other(other, at) => other.thought(at),
            Pair::Trie(..) | Pair::Filtered(..) | Pair::Mismatch => Thought::default(),
        }
    }

    fn problem(&self, at: &AnyState) -> Option<Problem> {
        match self.with(at) {
            Pair::Other(other, at) => other.problem(at),
            Pair::Trie(..) | Pair::Filtered(..) | Pair::Mismatch => None,
        }
    }

    fn max_token(&self) -> Option<TokenId> {
        match &self.0 {
            Kind::Trie(trie) => Some(trie.max_token()),
            Kind::Filtered(filtered) => Constraint::max_token(filtered),
            Kind::Other(other) => other.max_token(),
        }
    }

    fn sets(&self) -> Vec<&Trie> {
        match &self.0 {
            Kind::Trie(trie) => vec![trie],
            Kind::Filtered(filtered) => filtered.sets(),
            Kind::Other(other) => other.sets(),
        }
    }

    fn first_set(&self) -> Option<&Trie> {
        match &self.0 {
            Kind::Trie(trie) => Some(trie),
            Kind::Filtered(filtered) => filtered.first_set(),
            Kind::Other(other) => other.first_set(),
        }
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        match &self.0 {
            Kind::Trie(trie) => Constraint::to_trie(trie, limit),
            Kind::Filtered(filtered) => Constraint::to_trie(filtered, limit),
            Kind::Other(other) => other.to_trie(limit),
        }
    }
}
