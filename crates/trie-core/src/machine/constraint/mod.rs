//! Constraints: the one trait that every kind implements, and its allowed tokens at each state.
//!
//! A kind of constraint says which tokens continue from a state, whether a value ends there, and to which state a
//! token leads. `span/` decides everything around a value once for all kinds: end tokens, free text after the value,
//! tokens that are refused or ignored. So a new kind is one file with one `impl`, and every front end can walk it.
//! [`Special`] holds the methods that only some kinds need.

mod any;
mod filter;
mod gate;
mod live;
mod marker;
mod patched;
mod sequence;
mod tokens;
mod trie;
mod unconstrained;

pub use any::{AnyConstraint, AnyState};
pub use filter::{FilterError, FilteredTrie};
pub use gate::{Budget, GateError, Opening, ThinkGate, ThinkOptions, ThinkState, Thought};
pub use patched::{Changes, PatchError, PatchedState, PatchedTrie};
pub use sequence::{Sequence, SequenceError, SequenceState};
pub use tokens::{AllExcept, Mask, Scratch, Tokens, WeightedList, WeightedTokens};
pub use trie::TrieState;
pub use unconstrained::Unconstrained;

use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, NotAllowed, Trie};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Possible end of a value at a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Ending {
    /// No value ends here. If no token continues either, the set is damaged, and no token is allowed.
    #[default]
    No,
    /// A value ends here, and longer values continue.
    May,
    /// A value ends here, and no token continues.
    Must,
    /// Every token is allowed and none changes the state; if the tokens are [`Tokens::Except`], only those are
    /// allowed.
    Free,
}

/// Allowed tokens at a state of a constraint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Next<'a> {
    /// The tokens that continue. If everything is allowed, only the tokens that the constraint itself watches for:
    /// often none.
    pub tokens: Tokens<'a>,
    /// Possible end of a value here.
    pub ending: Ending,
}

/// Role that an accepted token played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Part of a value.
    Value,
    /// An end token: it closed the value.
    End,
    /// Free text: nothing constrained it.
    Free,
    /// Part of a marker around free text, or of text before such a marker: neither a value nor free.
    Marker,
    /// A token that is not allowed, from a host that cannot be refused: it changed nothing.
    Ignored,
}

/// Transition on a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step<S> {
    /// The state after it.
    pub state: S,
    /// Role of the token.
    pub role: Role,
}

/// Error inside a constraint: see [`Constraint::problem`]. Equal to its clones.
#[derive(Debug, Clone)]
pub struct Problem(Arc<dyn Error + Send + Sync>);

crate::error_kind!(Problem, Damaged);

impl Problem {
    /// Wraps an error of any type.
    pub fn new(problem: impl Error + Send + Sync + 'static) -> Self {
        Self(Arc::new(problem))
    }

    /// The problem as the type that it is, if it is that type.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl Eq for Problem {}

impl PartialEq for Problem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for Problem {}

/// A constraint that has no list of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotListed {
    /// The values are endless.
    #[error("the values of this constraint cannot be listed: any text may be one")]
    Endless,
    /// There are more than were asked for.
    #[error("this constraint has more than {limit} values: too many to list")]
    TooMany {
        /// The most that were wanted.
        limit: usize,
    },
    /// Some leaves of a set in which several sequences stand for one.
    #[error(
        "some values of a set in which several sequences stand for one: \
         make it again, from the texts that it shall have"
    )]
    NotATree,
    /// A file that was damaged after it was written.
    #[error("the set is damaged: a value ended where it has none")]
    Damaged,
}

crate::error_kind!(NotListed, Set);

/// One kind of constraint: immutable, shared, and walked by states that are values.
///
/// Requirements for an implementation, and the effect of each violation:
///
/// - `advance` accepts exactly the tokens of `next`, or any token at a state that is [`Ending::Free`]. If `next` names
///   a token that `advance` refuses, choosing it is an error; a token that only `advance` accepts can never be chosen.
/// - Tokens ascend, are distinct, and do not exceed `max_token`. Otherwise look-ups miss tokens, but rows are still
///   never read out of bounds.
/// - [`Ending::No`] without a token means damage. Then no token is allowed, never every token.
/// - No state is on a cycle of forced tokens. Otherwise forced runs do not end.
/// - [`Tokens::Except`] names all but a few tokens of *any* vocabulary, so the code that walks such a constraint
///   limits it to its own ([`AllExcept::limit_to`]).
///
/// An implementation may answer from a cache, allocate in `advance`, and lend tokens from itself or from the caller's
/// [`Scratch`].
pub trait Constraint: fmt::Debug + Send + Sync + 'static {
    /// A place in the constraint: small, and cheap to clone. For tries and finite automata it is `Copy`.
    type State: Clone + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Before the first token.
    fn start(&self) -> Self::State;

    /// Returns the allowed tokens at a state.
    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a>;

    /// Accepts a token and returns its role. Returns `None`, without a change, if the token is not allowed here.
    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role>;

    /// The state after a token: [`Constraint::advance`] on a copy.
    fn step(&self, at: &Self::State, token: TokenId) -> Option<Step<Self::State>> {
        let mut state = at.clone();
        let role = self.advance(&mut state, token)?;
        Some(Step { state, role })
    }

    /// Returns whether a value ends at a state.
    fn ending(&self, at: &Self::State) -> Ending {
        self.next(at, &mut Scratch::default()).ending
    }

    /// The token that is forced where no value ends; by default, the only allowed token.
    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        let Next { tokens, ending } = self.next(at, scratch);
        (ending == Ending::No).then(|| tokens.single_token()).flatten()
    }

    /// The values known at this state, in order: several if constraints follow each other. The value that ends here,
    /// or that ended last, counts only if the span is `over`, because until then it may continue. By default none is
    /// known.
    fn values(&self, _at: &Self::State, _over: bool) -> Vec<Leaf> {
        Vec::new()
    }

    /// The error because of which no token is allowed at this state, such as an exception of a user's rule.
    fn problem(&self, _at: &Self::State) -> Option<Problem> {
        None
    }

    /// The largest id that may be named; `None` where ids are not the constraint's own.
    fn max_token(&self) -> Option<TokenId>;

    /// The sets of tokens in it, in the order in which they are walked.
    fn sets(&self) -> Vec<&Trie> {
        Vec::new()
    }

    /// The same values as one set.
    ///
    /// # Errors
    /// Values without end, or more than `limit`.
    fn to_trie(&self, limit: usize) -> Result<Trie, NotListed>;
}

/// The state after a prefix. The error holds the tokens that are allowed instead of the first refused one.
fn walk<C: Constraint>(constraint: &C, prefix: &[TokenId]) -> Result<C::State, NotAllowed> {
    let mut at = constraint.start();
    for (position, &token) in prefix.iter().enumerate() {
        if constraint.advance(&mut at, token).is_none() {
            let mut scratch = Scratch::default();
            return Err(NotAllowed::new(token, position, constraint.next(&at, &mut scratch).tokens.iter()));
        }
    }
    Ok(at)
}

/// Optional methods, for constraints that contain others and for those that remember how a state was reached. A kind
/// that needs none of them has `impl Special for Kind {}`.
pub trait Special: Constraint {
    /// Returns whether [`Special::back`] always succeeds. If not, walkers keep the states that they passed.
    fn remembers(&self) -> bool {
        false
    }

    /// Goes back by this many tokens of the walk, at most to its start. Returns `false`, without a change, if the
    /// constraint does not remember them.
    fn back(&self, _at: &mut Self::State, _tokens: usize) -> bool {
        false
    }

    /// Returns whether every token is allowed at its end, so that nothing can follow it.
    fn never_ends(&self) -> bool {
        self.ending(&self.start()) == Ending::Free
    }

    /// Returns the nesting depth of gates: each gate calls the next one recursively.
    fn depth(&self) -> usize {
        0
    }

    /// Tokens that are not allowed after the span either, ascending: usually none.
    fn barred_tokens(&self) -> &[TokenId] {
        &[]
    }

    /// Returns whether text that is not allowed here stands for the end of the output: see [`Sampler::sample_or_end`].
    ///
    /// [`Sampler::sample_or_end`]: crate::Sampler::sample_or_end
    fn text_ends(&self, _at: &Self::State) -> bool {
        false
    }

    /// Returns the thinking on the way to this state: see [`ThinkGate`].
    fn thought(&self, _at: &Self::State) -> Thought {
        Thought::default()
    }

    /// The set that it begins with: a prompt may be healed for it.
    fn first_set(&self) -> Option<&Trie> {
        None
    }
}
