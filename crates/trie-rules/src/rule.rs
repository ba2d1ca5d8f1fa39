//! Rules over bytes: the one trait that regular expressions, grammars and rules of users implement.

use crate::tokens::masks::Legal;
use crate::tokens::token_bytes::TokenBytes;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use trie_core::work::over;
use trie_core::{Problem, TokenId};

/// A set of texts as a machine over bytes.
///
/// What an implementation must do, and what follows if it does not:
///
/// - `step` says `None` exactly where no legal text begins so. If it goes on where none does, generation runs into a
///   dead end, which is an error; it never leads to other text.
/// - Answers depend on the state alone. If they change, masks that are kept no longer fit: a token that was chosen may
///   be refused.
/// - Equal states answer alike, and unequal ones should differ in what they allow: masks are kept for each state.
/// - `step` and `is_end` end. Whoever walks the rule waits for them.
///
/// [`check_rule`](crate::check_rule) looks for violations by brute force.
///
/// ```
/// use trie_rules::{Rule, check_rule};
///
/// /// As many `a` as `b` after them, at least one.
/// #[derive(Debug)]
/// struct Balanced;
///
/// impl Rule for Balanced {
///     /// How many `b` are missing, and whether one was written.
///     type State = (u32, bool);
///     fn start(&self) -> (u32, bool) {
///         (0, false)
///     }
///     fn step(&self, &(missing, closing): &(u32, bool), byte: u8) -> Option<(u32, bool)> {
///         match byte {
///             b'a' if !closing && missing < 100 => Some((missing + 1, false)),
///             b'b' if missing > 0 => Some((missing - 1, true)),
///             _ => None,
///         }
///     }
///     fn is_end(&self, &(missing, closing): &(u32, bool)) -> bool {
///         missing == 0 && closing
///     }
/// }
/// assert!(check_rule(&Balanced, 1000).is_ok());
/// ```
pub trait Rule: fmt::Debug + Send + Sync + 'static {
    /// A place in a text: small, and cheap to clone. For finite automata it is `Copy`.
    type State: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static;

    /// Before the first byte.
    fn start(&self) -> Self::State;

    /// After one byte more; `None` if no legal text begins so.
    fn step(&self, state: &Self::State, byte: u8) -> Option<Self::State>;

    /// Returns the state after some bytes; `None` if no legal text begins so. Rules that cache steps take them at once.
    fn steps(&self, state: &Self::State, bytes: &[u8]) -> Option<Self::State> {
        let Some((first, rest)) = bytes.split_first() else { return Some(state.clone()) };
        rest.iter().try_fold(self.step(state, *first)?, |state, &byte| self.step(&state, byte))
    }

    /// Returns whether a legal text ends here. Longer ones may go on.
    fn is_end(&self, state: &Self::State) -> bool;

    /// Takes the error of `step` and `is_end` on this thread; most rules fail only if the budget of this thread is used
    /// up. They say `None` and `false` then, and what was found meanwhile counts for nothing.
    fn failure(&self) -> Option<Problem> {
        over().map(Problem::new)
    }

    /// Returns whether [`Rule::failure`] has an error that persists: a `None` of `step` then means nothing.
    fn failing(&self) -> bool {
        over().is_some()
    }

    /// Returns whether it has so few states that all of them may be visited in advance: then a vocabulary that lacks a
    /// byte that every text needs is reported at once.
    fn is_finite(&self) -> bool {
        false
    }

    /// A faster way to the tokens of a vocabulary than byte by byte, for rules that have one. Most have none.
    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<Self::State>>> {
        let _ = tokens;
        None
    }
}

/// A rule's own way to the tokens that go on from a state. It must find exactly those all of whose bytes
/// [`Rule::step`] takes, but for those that it leaves out; of a state that goes on it must leave some.
pub trait Walker<S>: fmt::Debug + Send + Sync {
    /// Sets the bit of every token that goes on: bit `id % 32` of word `id / 32`. All bits are 0 before.
    fn tokens(&self, state: &S, words: &mut [u32]);

    /// Returns the same tokens in whichever form is smaller. `words` are all 0, and scratch memory.
    fn legal(&self, state: &S, words: &mut [u32]) -> Legal {
        self.tokens(state, words);
        Legal::from_mask(words)
    }

    /// Returns whether it leaves out a token all of whose bytes are allowed: then the token is not accepted either.
    fn leaves_out(&self, state: &S, token: TokenId) -> bool {
        let _ = (state, token);
        false
    }

    /// Bytes that it keeps for later states.
    fn nbytes(&self) -> usize {
        0
    }

    /// Limits the bytes that it may keep from now on.
    fn limit(&self, bytes: usize) {
        let _ = bytes;
    }

    /// Lets go of what it keeps for later states; of what it is just using it need not.
    fn forget(&self) {}
}
