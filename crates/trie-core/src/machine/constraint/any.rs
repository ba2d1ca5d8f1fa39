//! A constraint of any kind, behind one type. A trie and a filtered trie are stored directly, because they must cost
//! nothing; every other kind is stored behind a pointer.

use super::{
    Constraint, Ending, FilteredTrie, Next, NotListed, Problem, Role, Scratch, Special, Thought, Tokens, TrieState,
};
use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, Trie};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Any [`Constraint`]. A clone costs one reference count.
#[derive(Clone)]
pub struct AnyConstraint(Kind);

#[derive(Clone)]
enum Kind {
    Trie(Trie),
    /// Its states are those of a trie.
    Filtered(FilteredTrie),
    Other(Arc<dyn ErasedConstraint>),
}

/// The state of any constraint. The state of a trie is stored in place. A clone costs a copy or one reference count.
///
/// A state belongs to the constraint that it came from. A constraint of another kind allows no token at it.
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

    /// Copies from memory to memory if both are states of tries: a value that is built in parts and copied at once
    /// waits for the processor's store buffer.
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

/// [`Constraint`] and [`Special`] without the type of their state. At a state of another kind no token is allowed.
trait ErasedConstraint: Any + fmt::Debug + Send + Sync {
    fn start(&self) -> Arc<dyn ErasedState>;
    fn next<'a>(&'a self, at: &'a dyn Any, scratch: &'a mut Scratch) -> Next<'a>;
    fn advance(&self, at: &mut dyn Any, token: TokenId) -> Option<Role>;
    fn ending(&self, at: &dyn Any) -> Ending;
    fn forced_token(&self, at: &dyn Any, scratch: &mut Scratch) -> Option<TokenId>;
    fn values(&self, at: &dyn Any, over: bool) -> Vec<Leaf>;
    fn problem(&self, at: &dyn Any) -> Option<Problem>;
    fn max_token(&self) -> Option<TokenId>;
    fn sets(&self) -> Vec<&Trie>;
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed>;
    fn remembers(&self) -> bool;
    fn back(&self, at: &mut dyn Any, tokens: usize) -> bool;
    fn never_ends(&self) -> bool;
    fn depth(&self) -> usize;
    fn barred_tokens(&self) -> &[TokenId];
    fn text_ends(&self, at: &dyn Any) -> bool;
    fn thought(&self, at: &dyn Any) -> Thought;
    fn first_set(&self) -> Option<&Trie>;
}

const NOTHING: Next<'static> = Next { tokens: Tokens::Ids(&[]), ending: Ending::No };

impl<C: Special> ErasedConstraint for C {
    fn start(&self) -> Arc<dyn ErasedState> {
        Arc::new(Constraint::start(self))
    }

    fn next<'a>(&'a self, at: &'a dyn Any, scratch: &'a mut Scratch) -> Next<'a> {
        at.downcast_ref().map_or(NOTHING, |at| Constraint::next(self, at, scratch))
    }

    fn advance(&self, at: &mut dyn Any, token: TokenId) -> Option<Role> {
        Constraint::advance(self, at.downcast_mut()?, token)
    }

    fn ending(&self, at: &dyn Any) -> Ending {
        at.downcast_ref().map_or(Ending::No, |at| Constraint::ending(self, at))
    }

    fn forced_token(&self, at: &dyn Any, scratch: &mut Scratch) -> Option<TokenId> {
        Constraint::forced_token(self, at.downcast_ref()?, scratch)
    }

    fn values(&self, at: &dyn Any, over: bool) -> Vec<Leaf> {
        at.downcast_ref().map_or_else(Vec::new, |at| Constraint::values(self, at, over))
    }

    fn problem(&self, at: &dyn Any) -> Option<Problem> {
        Constraint::problem(self, at.downcast_ref()?)
    }

    fn max_token(&self) -> Option<TokenId> {
        Constraint::max_token(self)
    }

    fn sets(&self) -> Vec<&Trie> {
        Constraint::sets(self)
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        Constraint::to_trie(self, limit)
    }

    fn remembers(&self) -> bool {
        Special::remembers(self)
    }

    fn back(&self, at: &mut dyn Any, tokens: usize) -> bool {
        at.downcast_mut().is_some_and(|at| Special::back(self, at, tokens))
    }

    fn never_ends(&self) -> bool {
        Special::never_ends(self)
    }

    fn depth(&self) -> usize {
        Special::depth(self)
    }

    fn barred_tokens(&self) -> &[TokenId] {
        Special::barred_tokens(self)
    }

    fn text_ends(&self, at: &dyn Any) -> bool {
        at.downcast_ref().is_some_and(|at| Special::text_ends(self, at))
    }

    fn thought(&self, at: &dyn Any) -> Thought {
        at.downcast_ref().map_or_else(Thought::default, |at| Special::thought(self, at))
    }

    fn first_set(&self) -> Option<&Trie> {
        Special::first_set(self)
    }
}

impl AnyConstraint {
    /// Wraps a constraint of any kind.
    pub fn new<C: Special>(constraint: C) -> Self {
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
        Self(Kind::Other(Arc::new(constraint)))
    }

    /// The trie, if it is one.
    #[inline]
    pub fn as_trie(&self) -> Option<&Trie> {
        match &self.0 {
            Kind::Trie(trie) => Some(trie),
            Kind::Filtered(_) | Kind::Other(_) => None,
        }
    }

    /// The constraint as `C`, if it is of that kind.
    pub fn downcast_ref<C: Constraint>(&self) -> Option<&C> {
        match &self.0 {
            Kind::Trie(trie) => (trie as &dyn Any).downcast_ref(),
            Kind::Filtered(filtered) => (filtered as &dyn Any).downcast_ref(),
            Kind::Other(other) => (&**other as &dyn Any).downcast_ref(),
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

impl AnyConstraint {
    /// The constraint behind the pointer, for rare calls. Calls of every step match on the kind first, so that a trie
    /// costs nothing.
    fn as_erased(&self) -> &dyn ErasedConstraint {
        match &self.0 {
            Kind::Trie(trie) => trie,
            Kind::Filtered(filtered) => filtered,
            Kind::Other(other) => &**other,
        }
    }
}

impl AnyState {
    fn as_any(&self) -> &dyn Any {
        match &self.0 {
            StateKind::Trie(at) => at,
            StateKind::Other(at) => &**at,
        }
    }

    /// Changes the state in place if nobody else holds it. Otherwise changes a copy, and keeps the copy if `wanted`
    /// says so.
    fn change<R>(&mut self, change: impl FnOnce(&mut dyn Any) -> R, wanted: impl FnOnce(&R) -> bool) -> Option<R> {
        let shared = match &mut self.0 {
            StateKind::Trie(at) => return Some(change(at)),
            StateKind::Other(at) => at,
        };
        if let Some(own) = Arc::get_mut(shared) {
            return Some(change(own));
        }
        let mut copy = shared.copy();
        let changed = change(Arc::get_mut(&mut copy)?);
        if wanted(&changed) {
            *shared = copy;
        }
        Some(changed)
    }
}

impl Constraint for AnyConstraint {
    type State = AnyState;

    #[inline]
    fn start(&self) -> AnyState {
        match &self.0 {
            Kind::Trie(trie) => AnyState(StateKind::Trie(Constraint::start(trie))),
            Kind::Filtered(filtered) => AnyState(StateKind::Trie(Constraint::start(filtered))),
            Kind::Other(other) => AnyState(StateKind::Other(other.start())),
        }
    }

    #[inline]
    fn next<'a>(&'a self, at: &'a AnyState, scratch: &'a mut Scratch) -> Next<'a> {
        match (&self.0, &at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => Constraint::next(trie, at, scratch),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => Constraint::next(filtered, at, scratch),
            _ => self.as_erased().next(at.as_any(), scratch),
        }
    }

    #[inline]
    fn advance(&self, at: &mut AnyState, token: TokenId) -> Option<Role> {
        match (&self.0, &mut at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => Constraint::advance(trie, at, token),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => Constraint::advance(filtered, at, token),
            _ => at.change(|at| self.as_erased().advance(at, token), Option::is_some)?,
        }
    }

    #[inline]
    fn ending(&self, at: &AnyState) -> Ending {
        match (&self.0, &at.0) {
            (Kind::Trie(trie), StateKind::Trie(at)) => Constraint::ending(trie, at),
            (Kind::Filtered(filtered), StateKind::Trie(at)) => Constraint::ending(filtered, at),
            _ => self.as_erased().ending(at.as_any()),
        }
    }

    fn forced_token(&self, at: &AnyState, scratch: &mut Scratch) -> Option<TokenId> {
        self.as_erased().forced_token(at.as_any(), scratch)
    }

    fn values(&self, at: &AnyState, over: bool) -> Vec<Leaf> {
        self.as_erased().values(at.as_any(), over)
    }

    fn problem(&self, at: &AnyState) -> Option<Problem> {
        self.as_erased().problem(at.as_any())
    }

    fn max_token(&self) -> Option<TokenId> {
        self.as_erased().max_token()
    }

    fn sets(&self) -> Vec<&Trie> {
        self.as_erased().sets()
    }

    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed> {
        self.as_erased().to_trie(limit)
    }
}

impl Special for AnyConstraint {
    #[inline]
    fn remembers(&self) -> bool {
        match &self.0 {
            Kind::Trie(trie) => Special::remembers(trie),
            _ => self.as_erased().remembers(),
        }
    }

    fn back(&self, at: &mut AnyState, tokens: usize) -> bool {
        at.change(|at| self.as_erased().back(at, tokens), |&back| back).unwrap_or_default()
    }

    fn never_ends(&self) -> bool {
        self.as_erased().never_ends()
    }

    fn depth(&self) -> usize {
        self.as_erased().depth()
    }

    fn barred_tokens(&self) -> &[TokenId] {
        self.as_erased().barred_tokens()
    }

    fn text_ends(&self, at: &AnyState) -> bool {
        self.as_erased().text_ends(at.as_any())
    }

    fn thought(&self, at: &AnyState) -> Thought {
        self.as_erased().thought(at.as_any())
    }

    fn first_set(&self) -> Option<&Trie> {
        self.as_erased().first_set()
    }
}
