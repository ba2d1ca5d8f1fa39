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
/// Requirements on an implementation, with the result if it breaks them:
///
/// - `step` returns `None` if and only if no legal text begins with these bytes. If it returns a state nevertheless,
///   generation may run into a dead end, which is an error; it never produces an illegal text.
/// - Answers depend on the state alone. If they change, cached token masks become wrong: a token that was chosen may be
///   refused.
/// - Equal states give equal answers, and unequal states should allow different texts: masks are cached for each state.
/// - `step` and `is_end` must terminate: every walk of the rule waits for them.
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
    /// State after some bytes of a text: small, and cheap to clone. For finite automata it is `Copy`.
    type State: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static;

    /// Returns the state before the first byte.
    fn start(&self) -> Self::State;

    /// Returns the state after one more byte; `None` if no legal text begins so.
    fn step(&self, state: &Self::State, byte: u8) -> Option<Self::State>;

    /// Returns the state after some bytes; `None` if no legal text begins so. Rules that cache steps look all of them
    /// up at once.
    fn steps(&self, state: &Self::State, bytes: &[u8]) -> Option<Self::State> {
        let Some((first, rest)) = bytes.split_first() else { return Some(state.clone()) };
        rest.iter().try_fold(self.step(state, *first)?, |state, &byte| self.step(&state, byte))
    }

    /// Returns whether a legal text ends here. Longer ones may go on.
    fn is_end(&self, state: &Self::State) -> bool;

    /// Takes the error of `step` and `is_end` on this thread; most rules fail only if the budget of this thread is used
    /// up. After a failure `step` returns `None` and `is_end` returns `false`, and results of the walk must be
    /// discarded.
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

    /// Returns a number of characters of which any may come from this state, one after the other: those of text in
    /// quotes, but for `"`, `\`, blanks, control characters and U+007F. A lower bound; most rules know none.
    fn free_chars(&self, state: &Self::State) -> u32 {
        let _ = state;
        0
    }

    /// Returns a walker, which finds the allowed tokens faster than a walk byte by byte. Most rules have none.
    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<Self::State>>> {
        let _ = tokens;
        None
    }
}

/// A rule's own search for the allowed tokens of a state. It must find exactly the tokens all of whose bytes
/// [`Rule::step`] accepts. It may leave out some of them, but not all of a state that can continue.
pub trait Walker<S>: fmt::Debug + Send + Sync {
    /// Sets the bit of every allowed token: bit `id % 32` of word `id / 32`. All bits are 0 before.
    fn tokens(&self, state: &S, words: &mut [u32]);

    /// Returns the allowed tokens in the smaller of two forms. `words` is scratch memory, all 0.
    fn legal(&self, state: &S, words: &mut [u32]) -> Legal {
        self.tokens(state, words);
        Legal::from_mask(words)
    }

    /// Returns whether the walker leaves out this token although all of its bytes are allowed. Such a token is not
    /// accepted either.
    fn leaves_out(&self, state: &S, token: TokenId) -> bool {
        let _ = (state, token);
        false
    }

    /// Returns the number of bytes that it keeps for later states.
    fn nbytes(&self) -> usize {
        0
    }

    /// Limits the bytes that it may keep from now on.
    fn limit(&self, bytes: usize) {
        let _ = bytes;
    }

    /// Drops the data that it keeps for later states. It may keep data that is in use.
    fn forget(&self) {}
}
