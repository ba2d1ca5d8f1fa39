//! A rule over bytes as a constraint over tokens.

use crate::masks::{Legal, MaskLimits, MaskStats, Masks};
use crate::rule::{Rule, Walker};
use crate::token_bytes::TokenBytes;
use crate::walk::{Path, step_token, tokens_from};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::{Constraint, Ending, Leaf, Mask, Next, NotListed, Role, Scratch, TokenId, Tokens, Trie};

/// A [`Rule`] walked over the tokens of a vocabulary: a constraint like a trie. What may come at a state is walked once
/// and kept for all who walk the rule. A clone is one reference count.
///
/// A value of it has no number and no name: its text is what the tokens spell.
#[derive(Debug)]
pub struct ByRule<R: Rule>(Arc<Walked<R>>);

struct Walked<R: Rule> {
    rule: R,
    /// The rule's own way to its tokens.
    walker: Option<Arc<dyn Walker<R::State>>>,
    tokens: Arc<TokenBytes>,
    masks: Masks<R::State>,
    /// Memory of walks that are over.
    spare: Mutex<Vec<Spare<R::State>>>,
}

struct Spare<S> {
    path: Path<S>,
    words: Vec<u32>,
}

/// Where a walk is: the state of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByRuleState<S>(S);

/// A rule that the vocabulary cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ByRuleError {
    /// No token begins a legal text.
    #[error("no token of the vocabulary begins a legal text: it would have to begin with {}", shown(.bytes))]
    Unspellable {
        /// The bytes with which legal texts begin.
        bytes: Vec<u8>,
    },
    /// The rule allows no text, or only the empty one.
    #[error("the rule allows {}: there is nothing to write", if *.empty { "only the empty text" } else { "no text" })]
    Nothing {
        /// Whether the empty text is legal.
        empty: bool,
    },
}

fn shown(bytes: &[u8]) -> String {
    let some: Vec<String> = bytes.iter().take(8).map(|&byte| format!("{:?}", char::from(byte))).collect();
    format!("{}{}", some.join(" or "), if bytes.len() > some.len() { " or others" } else { "" })
}

impl<R: Rule> Clone for ByRule<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Rule> fmt::Debug for Walked<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByRule").field("rule", &self.rule).field("tokens", &self.tokens.len()).finish_non_exhaustive()
    }
}

impl<R: Rule> ByRule<R> {
    /// The rule over these tokens.
    ///
    /// # Errors
    /// A rule that allows nothing to write, or whose first byte no token begins with.
    pub fn new(rule: R, tokens: Arc<TokenBytes>) -> Result<Self, ByRuleError> {
        Self::with_limits(rule, tokens, MaskLimits::default())
    }

    /// [`ByRule::new`] that keeps masks up to these limits.
    ///
    /// # Errors
    /// As there.
    pub fn with_limits(rule: R, tokens: Arc<TokenBytes>, limits: MaskLimits) -> Result<Self, ByRuleError> {
        let start = rule.start();
        let bytes: Vec<u8> = (0..=255).filter(|&byte| rule.step(&start, byte).is_some()).collect();
        if bytes.is_empty() {
            return Err(ByRuleError::Nothing { empty: rule.is_end(&start) });
        }
        let walker = rule.walker(&tokens);
        let made = Self(Arc::new(Walked { rule, walker, tokens, masks: Masks::new(limits), spare: Mutex::default() }));
        if made.legal(&start).is_empty() {
            return Err(ByRuleError::Unspellable { bytes });
        }
        Ok(made)
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.0.rule
    }

    /// What is kept, and how often it was of use.
    pub fn stats(&self) -> MaskStats {
        self.0.masks.stats()
    }

    fn legal(&self, state: &R::State) -> Legal {
        let walked = &*self.0;
        walked.masks.get(state, || {
            let spare = || walked.spare.lock().unwrap_or_else(PoisonError::into_inner);
            let mut memory = spare().pop().unwrap_or_else(|| Spare { path: Path::default(), words: Vec::new() });
            memory.words.clear();
            memory.words.resize(walked.tokens.n_vocab().div_ceil(32), 0);
            let words = &mut memory.words;
            if let Some(walker) = &walked.walker {
                walker.tokens(state, words);
            } else {
                let step = |state: &R::State, byte| walked.rule.step(state, byte);
                tokens_from(step, &walked.tokens, state, &mut memory.path, |token, _| {
                    words[token.index() / 32] |= 1 << (token.index() % 32);
                });
            }
            let legal = Legal::of(words);
            spare().push(memory);
            legal
        })
    }
}

impl<R: Rule> Constraint for ByRule<R> {
    type State = ByRuleState<R::State>;

    fn start(&self) -> Self::State {
        ByRuleState(self.0.rule.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        let legal = self.legal(&at.0);
        let ending = match (self.0.rule.is_end(&at.0), legal.is_empty()) {
            (false, _) => Ending::No,
            (true, false) => Ending::May,
            (true, true) => Ending::Must,
        };
        let tokens = match legal {
            Legal::Ids(ids) => Tokens::Ids(scratch.keep_ids(ids)),
            Legal::Words(words) => {
                let words = scratch.keep_words(words);
                Mask::new(words, self.0.tokens.n_vocab()).map_or_else(Tokens::default, Tokens::Mask)
            }
        };
        Next { tokens, ending }
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        at.0 = step_token(&self.0.rule, &self.0.tokens, &at.0, token)?;
        Some(Role::Value)
    }

    fn value(&self, _at: &Self::State) -> Option<Leaf> {
        None
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}
