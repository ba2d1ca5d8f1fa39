//! A rule over bytes as a constraint over tokens.

use crate::rule::{Rule, Walker};
use crate::tokens::forced::forced_token;
use crate::tokens::masks::{Legal, MaskLimits, MaskStats, Masks};
use crate::tokens::memory::Keeps;
use crate::tokens::slices::set;
use crate::tokens::spellable::unspellable;
use crate::tokens::spelling::Spelling;
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, step_token, tokens_from};
use lru::LruCache;
use std::cell::RefCell;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use trie_core::ErrorKind;
use trie_core::work::LimitExceeded;
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Tokens, Trie};

thread_local! {
    /// Error because of which the last question of this thread was given up.
    static STOPPED: RefCell<Option<Problem>> = const { RefCell::new(None) };
}

/// Number of states whose forced token and whose error are cached.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// A [`Rule`] over the tokens of a vocabulary: a constraint like a trie. The token mask of a state is computed once and
/// cached for all spans of the rule. A clone costs one reference count.
///
/// Its values have no numbers and no names: a value is the text that the tokens spell.
#[derive(Debug)]
pub struct ByRule<R: Rule>(Arc<RuleWalk<R>>);

struct RuleWalk<R: Rule> {
    rule: R,
    /// The rule's own way to its tokens.
    walker: Option<Arc<dyn Walker<R::State>>>,
    /// Bytes that the walker was made of: it never forgets them.
    made_of: usize,
    spelling: Spelling,
    masks: Masks<R::State>,
    forced: Mutex<LruCache<R::State, Option<TokenId>>>,
    /// Errors of the rule, by state.
    failed: Mutex<LruCache<R::State, Problem>>,
    /// Memory of walks that are over.
    spare: Mutex<Vec<Path<R::State>>>,
    /// Time of the last use, and the rule's own bytes that the memory of the vocabulary has counted.
    used: AtomicU64,
    counted: AtomicUsize,
}

/// State of a walk: the state of the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ByRuleState<S>(S);

impl<S> ByRuleState<S> {
    pub(crate) fn new(state: S) -> Self {
        Self(state)
    }

    /// Returns the state of the rule.
    pub fn rule_state(&self) -> &S {
        &self.0
    }
}

/// Error of a rule that the vocabulary cannot spell, or that failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ByRuleError {
    /// No token begins a legal text.
    #[error("no token of the vocabulary begins a legal text: it would have to begin with {}", describe_bytes(.bytes))]
    Unspellable {
        /// The bytes with which legal texts begin.
        bytes: Vec<u8>,
    },
    /// Every text runs into bytes that the vocabulary has no token for.
    #[error("the vocabulary cannot spell any text of the rule: sooner or later each needs {}", describe_bytes(.bytes))]
    NoWay {
        /// Bytes with which a text would have to go on, and no token does.
        bytes: Vec<u8>,
    },
    /// The rule allows no text, or only the empty one.
    #[error("the rule allows {}: there is nothing to write", if *.empty { "only the empty text" } else { "no text" })]
    Nothing {
        /// True if the empty text is legal.
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

/// A dead end of the vocabulary: the rule can continue, but no token does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no token goes on here: the rule wants {}. Either the vocabulary cannot spell that, or the rule says that it goes \
     on where it does not",
    if .bytes.is_empty() { "nothing, though its text is not over".to_owned() } else { describe_bytes(.bytes) }
)]
pub struct DeadEnd {
    /// Bytes with which the rule would continue.
    pub bytes: Vec<u8>,
}

trie_core::error_kind!(DeadEnd, Rule);

fn describe_bytes(bytes: &[u8]) -> String {
    let some: Vec<String> = bytes.iter().take(8).map(|&byte| format!("{:?}", char::from(byte))).collect();
    format!("{}{}", some.join(" or "), if bytes.len() > some.len() { " or others" } else { "" })
}

impl<R: Rule> Clone for ByRule<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R: Rule> fmt::Debug for RuleWalk<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByRule").field("rule", &self.rule).field("spelling", &self.spelling).finish_non_exhaustive()
    }
}

impl<R: Rule> ByRule<R> {
    /// Returns the rule over these tokens.
    ///
    /// # Errors
    /// A rule without a text to write; one whose first bytes begin no token; one that fails.
    pub fn new(rule: R, spelling: impl Into<Spelling>) -> Result<Self, ByRuleError> {
        Self::with_limits(rule, spelling, MaskLimits::default())
    }

    /// Returns the rule over these tokens, with limits on its cached masks.
    ///
    /// # Errors
    /// As [`ByRule::new`].
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
        let (forced, failed) = (Mutex::new(LruCache::sparse(KEPT)), Mutex::new(LruCache::sparse(KEPT)));
        let (masks, spare) = (Masks::new(limits), Mutex::default());
        let (used, counted) = (AtomicU64::new(0), AtomicUsize::new(0));
        let made_of = walker.as_ref().map_or(0, |walker| walker.nbytes());
        let inner = RuleWalk { rule, walker, made_of, spelling, masks, forced, failed, spare, used, counted };
        let made = Self(Arc::new(inner));
        let kept: Weak<RuleWalk<R>> = Arc::downgrade(&made.0);
        made.tokens().memory().enter(kept);
        match made.legal(&start) {
            Err(problem) => Err(ByRuleError::Failed(problem)),
            Ok(legal) if legal.is_empty() => Err(ByRuleError::Unspellable { bytes }),
            Ok(_) => Ok(made),
        }
    }

    /// Returns the rule itself.
    pub fn rule(&self) -> &R {
        &self.0.rule
    }

    /// Returns the statistics of the mask cache.
    pub fn stats(&self) -> MaskStats {
        MaskStats { walker_bytes: self.0.walker_bytes(), ..self.0.masks.stats() }
    }

    /// Returns whether so many more masks fit without an eviction.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn has_room(&self, count: usize) -> bool {
        let n_vocab = self.tokens().n_vocab();
        let together = self.tokens().memory().has_room(count * Masks::<R::State>::most_bytes(n_vocab));
        together && self.0.masks.has_room(count, self.0.walker_bytes(), n_vocab)
    }

    pub(crate) fn spelling(&self) -> &Spelling {
        &self.0.spelling
    }

    /// Returns the number of clones of it.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    fn tokens(&self) -> &TokenBytes {
        self.0.spelling.tokens()
    }

    pub(crate) fn legal(&self, state: &R::State) -> Result<Legal, Problem> {
        let walked = &*self.0;
        let memory = self.tokens().memory();
        walked.used.store(memory.current_time(), Ordering::Relaxed);
        if let Some(known) = walked.masks.cached_tokens(state) {
            return Ok(known);
        }
        let mut walker_bytes = 0;
        let legal = walked.masks.find(state, || {
            let found = walked.walk(state)?;
            walker_bytes = found.1;
            Ok(found)
        })?;
        memory.count(&walked.counted, walked.own_bytes(walker_bytes));
        Ok(legal)
    }

    /// Returns the allowed tokens at a state, and whether a text ends there; an error of the rule is cached.
    fn allowed_at(&self, state: &R::State) -> Option<(Legal, bool)> {
        let found = self.legal(state).and_then(|legal| {
            let end = self.0.rule.is_end(state);
            self.0.rule.failure().map_or(Ok((legal, end)), Err)
        });
        // What was only given up is found when it is asked for again.
        let passing = |problem: &Problem| problem.downcast_ref::<LimitExceeded>().is_some();
        match found {
            Ok(found) => {
                STOPPED.set(None);
                Some(found)
            }
            Err(problem) => {
                STOPPED.set(passing(&problem).then(|| problem.clone()));
                if !passing(&problem) {
                    lock(&self.0.failed).put(state.clone(), problem);
                }
                None
            }
        }
    }
}

impl<R: Rule> RuleWalk<R> {
    /// Walks the tokens from a state; and how many bytes the walker keeps.
    fn walk(&self, state: &R::State) -> Result<(Legal, usize), Problem> {
        let tokens = self.spelling.tokens();
        let mut words = tokens.memory().words(tokens.n_vocab().div_ceil(32));
        let legal = if let Some(walker) = &self.walker {
            walker.legal(state, &mut words)
        } else {
            let mut path = lock(&self.spare).pop().unwrap_or_default();
            let step = |state: &R::State, byte| self.rule.step(state, byte);
            tokens_from(step, tokens.all_tokens(), state, &mut path, |token, _| set(&mut words, token));
            lock(&self.spare).push(path);
            Legal::from_mask(&words)
        };
        let legal = tokens.memory().share(legal);
        tokens.memory().give_back(words);
        self.rule.failure().map_or(Ok((legal, self.walker_bytes())), Err)
    }

    fn walker_bytes(&self) -> usize {
        self.walker.as_ref().map_or(0, |walker| walker.nbytes())
    }

    /// Bytes that are kept for this rule alone, of which the walker has so many.
    fn own_bytes(&self, walker_bytes: usize) -> usize {
        let forced = lock(&self.forced).len() * (2 * size_of::<R::State>() + 64);
        self.masks.own_bytes() + walker_bytes.saturating_sub(self.made_of) + forced
    }
}

impl<R: Rule> Keeps for RuleWalk<R> {
    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn forget(&self) {
        self.masks.clear();
        if let Some(walker) = &self.walker {
            walker.forget();
        }
        *lock(&self.forced) = LruCache::sparse(KEPT);
        *lock(&self.spare) = Vec::new();
        // A walker that is just walking has not forgotten, and is not asked: who walks may be who waits here. Its bytes
        // count again when the walk is over.
        self.spelling.tokens().memory().set(&self.counted, self.own_bytes(0));
    }
}

impl<R: Rule> Drop for RuleWalk<R> {
    fn drop(&mut self) {
        self.masks.clear();
        self.spelling.tokens().memory().leave(&self.counted);
    }
}

/// The bytes with which a rule goes on.
fn bytes_from<R: Rule>(rule: &R, state: &R::State) -> Vec<u8> {
    (0..=255).filter(|&byte| rule.step(state, byte).is_some()).collect()
}

/// Locks a cache. A poisoned lock is used nevertheless: entries are whole, and no panic can leave one half changed.
fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Rule> Constraint for ByRule<R> {
    type State = ByRuleState<R::State>;

    fn start(&self) -> Self::State {
        ByRuleState(self.0.rule.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        let Some((legal, end)) = self.allowed_at(&at.0) else {
            return Next { tokens: Tokens::default(), ending: Ending::No };
        };
        let ending = legal.ending(end);
        Next { tokens: legal.lend(self.tokens().n_vocab(), scratch), ending }
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        let next = step_token(&self.0.rule, self.tokens(), &at.0, token);
        if let Some(problem) = self.0.rule.failure() {
            if problem.downcast_ref::<LimitExceeded>().is_none() {
                lock(&self.0.failed).put(at.0.clone(), problem);
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

    /// Returns the only allowed token; else, if the text is forced, the tokenizer's first token for it.
    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        let Next { tokens, ending } = self.next(at, scratch);
        if ending != Ending::No {
            return None;
        }
        if let Some(only) = tokens.single_token() {
            return Some(only);
        }
        if let Some(&known) = lock(&self.0.forced).get(&at.0) {
            return known;
        }
        let forced = forced_token(&self.0.rule, &self.0.spelling, &at.0);
        if self.0.rule.failure().is_none() {
            lock(&self.0.forced).put(at.0.clone(), forced);
        }
        forced
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        if let Some(problem) = STOPPED.take() {
            return Some(problem);
        }
        if let Some(problem) = lock(&self.0.failed).get(&at.0) {
            return Some(problem.clone());
        }
        let (legal, end) = self.allowed_at(&at.0)?;
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
