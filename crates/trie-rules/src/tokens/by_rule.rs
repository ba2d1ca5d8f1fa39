//! A rule over bytes as a constraint over tokens.

use crate::rule::{Rule, Walker};
use crate::tokens::forced::forced_token;
use crate::tokens::masks::{Legal, MaskLimits, MaskStats, Masks};
use crate::tokens::slices::set;
use crate::tokens::spellable::unspellable;
use crate::tokens::spelling::Spelling;
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, step_token, tokens_from};
use lru::LruCache;
use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::ErrorKind;
use trie_core::work::Over;
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Tokens, Trie};

thread_local! {
    /// Why the last question of this thread was given up.
    static STOPPED: RefCell<Option<Problem>> = const { RefCell::new(None) };
}

/// For how many states is kept what must come after them, and what went wrong there.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

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
    spelling: Spelling,
    masks: Masks<R::State>,
    forced: Mutex<LruCache<R::State, Option<TokenId>>>,
    /// What the rule failed with, at which states.
    failed: Mutex<LruCache<R::State, Problem>>,
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

impl<S> ByRuleState<S> {
    pub(crate) fn new(state: S) -> Self {
        Self(state)
    }

    /// The state of the rule.
    pub fn rule_state(&self) -> &S {
        &self.0
    }
}

/// A rule that the vocabulary cannot begin.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ByRuleError {
    /// No token begins a legal text.
    #[error("no token of the vocabulary begins a legal text: it would have to begin with {}", shown(.bytes))]
    Unspellable {
        /// The bytes with which legal texts begin.
        bytes: Vec<u8>,
    },
    /// Every text runs into bytes that the vocabulary has no token for.
    #[error("the vocabulary cannot spell any text of the rule: sooner or later each needs {}", shown(.bytes))]
    NoWay {
        /// Bytes with which a text would have to go on, and no token does.
        bytes: Vec<u8>,
    },
    /// The rule allows no text, or only the empty one.
    #[error("the rule allows {}: there is nothing to write", if *.empty { "only the empty text" } else { "no text" })]
    Nothing {
        /// Whether the empty text is legal.
        empty: bool,
    },
    /// The rule failed before its first byte.
    #[error(transparent)]
    Failed(Problem),
}

impl ByRuleError {
    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Unspellable { .. } | Self::NoWay { .. } => ErrorKind::Vocabulary,
            Self::Nothing { .. } | Self::Failed(_) => ErrorKind::Rule,
        }
    }
}

/// A place where the rule goes on and no token does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no token goes on here: the rule wants {}. Either the vocabulary cannot spell that, or the rule says that it goes \
     on where it does not",
    if .bytes.is_empty() { "nothing, though its text is not over".to_owned() } else { shown(.bytes) }
)]
pub struct DeadEnd {
    /// The bytes with which the rule would go on.
    pub bytes: Vec<u8>,
}

trie_core::error_kind!(DeadEnd, Rule);

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
        f.debug_struct("ByRule").field("rule", &self.rule).field("spelling", &self.spelling).finish_non_exhaustive()
    }
}

impl<R: Rule> ByRule<R> {
    /// The rule over these tokens.
    ///
    /// # Errors
    /// A rule that allows nothing to write, whose first byte no token begins with, or that fails.
    pub fn new(rule: R, spelling: impl Into<Spelling>) -> Result<Self, ByRuleError> {
        Self::with_limits(rule, spelling, MaskLimits::default())
    }

    /// [`ByRule::new`] that keeps masks up to these limits.
    ///
    /// # Errors
    /// As there.
    pub fn with_limits(rule: R, spelling: impl Into<Spelling>, limits: MaskLimits) -> Result<Self, ByRuleError> {
        let spelling = spelling.into();
        let start = rule.start();
        let bytes = bytes_from(&rule, &start);
        let empty = rule.is_end(&start);
        if let Some(problem) = rule.failure() {
            return Err(ByRuleError::Failed(problem));
        }
        if bytes.is_empty() {
            return Err(ByRuleError::Nothing { empty });
        }
        if rule.is_finite()
            && let Some(stuck) = unspellable(&rule, spelling.tokens())
        {
            let bytes = bytes_from(&rule, &stuck);
            return Err(if stuck == start { ByRuleError::Unspellable { bytes } } else { ByRuleError::NoWay { bytes } });
        }
        let walker = rule.walker(spelling.tokens());
        if let Some(walker) = &walker {
            walker.limit(limits.bytes / 2);
        }
        let (forced, failed) = (Mutex::new(LruCache::new(KEPT)), Mutex::new(LruCache::new(KEPT)));
        let (masks, spare) = (Masks::new(limits), Mutex::default());
        let made = Self(Arc::new(Walked { rule, walker, spelling, masks, forced, failed, spare }));
        match made.legal(&start) {
            Err(problem) => Err(ByRuleError::Failed(problem)),
            Ok(legal) if legal.is_empty() => Err(ByRuleError::Unspellable { bytes }),
            Ok(_) => Ok(made),
        }
    }

    /// The rule.
    pub fn rule(&self) -> &R {
        &self.0.rule
    }

    /// What is kept, and how often it was of use.
    pub fn stats(&self) -> MaskStats {
        let walker_bytes = self.0.walker.as_ref().map_or(0, |walker| walker.nbytes());
        MaskStats { walker_bytes, ..self.0.masks.stats() }
    }

    /// Whether so many more masks can be kept without others being thrown away.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_room(&self, count: usize) -> bool {
        let walker = self.0.walker.as_ref().map_or(0, |walker| walker.nbytes());
        self.0.masks.has_room(count, walker, self.tokens().n_vocab())
    }

    pub(crate) fn spelling(&self) -> &Spelling {
        &self.0.spelling
    }

    /// How many clones of it there are.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    fn tokens(&self) -> &TokenBytes {
        self.0.spelling.tokens()
    }

    pub(crate) fn legal(&self, state: &R::State) -> Result<Legal, Problem> {
        let walked = &*self.0;
        walked.masks.get(state, || {
            let mut memory =
                kept(&walked.spare).pop().unwrap_or_else(|| Spare { path: Path::default(), words: Vec::new() });
            memory.words.clear();
            memory.words.resize(self.tokens().n_vocab().div_ceil(32), 0);
            let words = &mut memory.words;
            let legal = if let Some(walker) = &walked.walker {
                walker.legal(state, words)
            } else {
                let step = |state: &R::State, byte| walked.rule.step(state, byte);
                tokens_from(step, self.tokens().all(), state, &mut memory.path, |token, _| {
                    set(words, token);
                });
                Legal::of(words)
            };
            kept(&walked.spare).push(memory);
            let taken = walked.walker.as_ref().map_or(0, |walker| walker.nbytes());
            walked.rule.failure().map_or(Ok((legal, taken)), Err)
        })
    }

    /// What may come at a state, and whether a text ends there; what the rule fails with is kept.
    fn found(&self, state: &R::State) -> Option<(Legal, bool)> {
        let found = self.legal(state).and_then(|legal| {
            let end = self.0.rule.is_end(state);
            self.0.rule.failure().map_or(Ok((legal, end)), Err)
        });
        // What was only given up is found when it is asked for again.
        let passing = |problem: &Problem| problem.downcast_ref::<Over>().is_some();
        match found {
            Ok(found) => {
                STOPPED.set(None);
                Some(found)
            }
            Err(problem) => {
                STOPPED.set(passing(&problem).then(|| problem.clone()));
                if !passing(&problem) {
                    kept(&self.0.failed).put(state.clone(), problem);
                }
                None
            }
        }
    }
}

/// The bytes with which a rule goes on.
fn bytes_from<R: Rule>(rule: &R, state: &R::State) -> Vec<u8> {
    (0..=255).filter(|&byte| rule.step(state, byte).is_some()).collect()
}

/// Whole entries stand behind these locks, which no panic can leave half changed.
fn kept<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Rule> Constraint for ByRule<R> {
    type State = ByRuleState<R::State>;

    fn start(&self) -> Self::State {
        ByRuleState(self.0.rule.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        let Some((legal, end)) = self.found(&at.0) else {
            return Next { tokens: Tokens::default(), ending: Ending::No };
        };
        let ending = legal.ending(end);
        Next { tokens: legal.lent(self.tokens().n_vocab(), scratch), ending }
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        let next = step_token(&self.0.rule, self.tokens(), &at.0, token);
        if let Some(problem) = self.0.rule.failure() {
            if problem.downcast_ref::<Over>().is_none() {
                kept(&self.0.failed).put(at.0.clone(), problem);
            }
            return None;
        }
        let next = next?;
        if self.0.walker.as_ref().is_some_and(|walker| walker.leaves_out(&at.0, token)) {
            return None;
        }
        at.0 = next;
        Some(Role::Value)
    }

    /// The only token that may come; else, where the text must go on in one way, the first of the tokenizer's tokens
    /// for it.
    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        let Next { tokens, ending } = self.next(at, scratch);
        if ending != Ending::No {
            return None;
        }
        if let Some(only) = tokens.only() {
            return Some(only);
        }
        if let Some(&known) = kept(&self.0.forced).get(&at.0) {
            return known;
        }
        let forced = forced_token(&self.0.rule, &self.0.spelling, &at.0);
        if self.0.rule.failure().is_none() {
            kept(&self.0.forced).put(at.0.clone(), forced);
        }
        forced
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        if let Some(problem) = STOPPED.take() {
            return Some(problem);
        }
        if let Some(problem) = kept(&self.0.failed).get(&at.0) {
            return Some(problem.clone());
        }
        let (legal, end) = self.found(&at.0)?;
        let bytes = || bytes_from(&self.0.rule, &at.0);
        (!end && legal.is_empty()).then(|| Problem::new(DeadEnd { bytes: bytes() }))
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl<R: Rule> Special for ByRule<R> {}
