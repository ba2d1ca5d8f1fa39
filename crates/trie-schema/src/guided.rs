//! A grammar that llguidance reads, as a constraint over tokens.

use crate::compiled::Shared;
use crate::error::GuidedError;
use crate::known::{Kept, Known};
use crate::path::{Key, Path};
use crate::pool::{Pool, Source};
use crate::vocab::Vocab;
use llguidance::toktrie::TokTrie;
use lru::LruCache;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use trie_core::work::{Over, apart};
use trie_core::{Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Trie};
use trie_rules::{DeadEnd, Legal, MaskLimits, MaskStats, Spelling, TokenBytes};

/// For how many texts is kept what must come after them.
const KEPT: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// How much is kept of what was walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuidedLimits {
    /// Masks of texts that were asked about, and what llguidance's lexer keeps: half of these bytes each.
    pub masks: MaskLimits,
    /// Parsers that have read a text: as many walks as go on side by side without reading anything again.
    pub parsers: usize,
}

impl Default for GuidedLimits {
    /// 64 MiB, 32 parsers.
    fn default() -> Self {
        Self { masks: MaskLimits::default(), parsers: 32 }
    }
}

/// A JSON Schema or a Lark grammar over the tokens of a vocabulary: a constraint like a trie. A clone is one reference
/// count.
///
/// A state is the text that was written, shared with all states that began so: cloning it, going back and comparing
/// cost nothing. What may come after a text is found once and kept. A few parsers read along; a state that is asked
/// about takes the one that has read most of its text. They share one lexer, so threads wait for each other where a
/// mask must be found.
#[derive(Clone)]
pub struct Guided(Arc<Walked>);

struct Walked {
    spelling: Spelling,
    start: Arc<Path>,
    kept: Kept,
    forced: Mutex<LruCache<Key, Option<TokenId>>>,
    /// What reads. Another thread may have it for long, and then it is left to that one.
    pool: Mutex<Arc<Mutex<Pool>>>,
    /// To make another one of.
    source: Source,
    /// The text at which a mask was given up last, and why.
    given_up: Mutex<Option<(Key, Problem)>>,
    limits: GuidedLimits,
}

/// What was walked, as long as anybody keeps it.
#[derive(Clone)]
pub(crate) struct GuidedWeak(Weak<Walked>);

impl GuidedWeak {
    pub(crate) fn upgrade(&self) -> Option<Guided> {
        self.0.upgrade().map(Guided)
    }
}

/// Where a walk is: the text that was written. Equal where the texts are, whatever their tokens.
#[derive(Debug, Clone)]
pub struct GuidedState(Arc<Path>);

impl PartialEq for GuidedState {
    fn eq(&self, other: &Self) -> bool {
        self.0.key == other.0.key
    }
}

impl fmt::Debug for Guided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guided").field("spelling", &self.0.spelling).finish_non_exhaustive()
    }
}

impl Guided {
    pub(crate) fn new(
        compiled: &Shared,
        spelling: impl Into<Spelling>,
        limits: GuidedLimits,
    ) -> Result<Self, GuidedError> {
        let spelling = spelling.into();
        let failed = |reason| GuidedError::Failed { reason };
        let vocab = Vocab::of(spelling.tokens()).map_err(failed)?;
        let first = compiled.parser(&vocab).map_err(failed)?;
        // Half for masks, half for what the lexer keeps.
        let half = limits.masks.bytes / 2;
        let (compiled, tokens) = (Arc::clone(compiled), Arc::clone(spelling.tokens()));
        let source = Source { compiled, tokens, vocab, most: limits.parsers.max(1), lexer_bytes: half };
        let made = Self(Arc::new(Walked {
            spelling,
            start: Path::start(),
            kept: Kept::new(MaskLimits::bytes(half)),
            forced: Mutex::new(LruCache::sparse(KEPT)),
            pool: Mutex::new(Arc::new(Mutex::new(Pool::new(source.clone(), Some(first))))),
            source,
            given_up: Mutex::default(),
            limits,
        }));
        match made.known(&made.0.start) {
            Known { problem: Some(problem), .. } => Err(match problem.downcast_ref::<DeadEnd>() {
                Some(DeadEnd { bytes }) => GuidedError::Unspellable { bytes: bytes.clone() },
                None => problem.downcast_ref().cloned().unwrap_or_else(|| failed(problem.to_string())),
            }),
            Known { legal, .. } if legal.is_empty() => Err(GuidedError::Nothing),
            Known { .. } => Ok(made),
        }
    }

    /// What is kept, and how often it was of use.
    pub fn stats(&self) -> MaskStats {
        self.0.kept.stats()
    }

    /// What llguidance warned of when it read the grammar.
    pub fn warnings(&self) -> &[String] {
        &self.0.source.compiled.warnings
    }

    /// How often a parser was copied, because walks parted.
    #[doc(hidden)]
    pub fn copies(&self) -> usize {
        locked(&self.pool()).copies
    }

    /// What is walked, without keeping it.
    pub(crate) fn downgrade(&self) -> GuidedWeak {
        GuidedWeak(Arc::downgrade(&self.0))
    }

    /// Whether there is another clone of it.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether it is over just these tokens, and keeps so much.
    pub(crate) fn is_over(&self, spelling: &Spelling, limits: GuidedLimits) -> bool {
        let own = &self.0.spelling;
        let same = Arc::ptr_eq(own.tokens(), spelling.tokens()) && own.has_tokenizer() == spelling.has_tokenizer();
        same && self.0.limits == limits
    }

    fn tokens(&self) -> &TokenBytes {
        self.0.spelling.tokens()
    }

    fn pool(&self) -> Arc<Mutex<Pool>> {
        Arc::clone(&locked(&self.0.pool))
    }

    fn forced(&self) -> MutexGuard<'_, LruCache<Key, Option<TokenId>>> {
        locked(&self.0.forced)
    }

    /// Asks what reads. Where that may take long it is done apart, and given up where the work of this thread is over:
    /// then another pool is made, and the old one goes with the thread that has it.
    fn ask<T: Send + 'static>(
        &self,
        at: &Arc<Path>,
        question: impl FnOnce(&mut Pool, &Arc<Path>) -> Result<T, String> + Send + 'static,
    ) -> Result<T, Failed> {
        let pool = self.pool();
        if !self.0.source.compiled.is_slow {
            return question(&mut locked(&pool), at).map_err(Failed::Said);
        }
        let path = Arc::clone(at);
        apart(move || question(&mut locked(&pool), &path)).map_or_else(
            |over| {
                *locked(&self.0.pool) = Arc::new(Mutex::new(Pool::new(self.0.source.clone(), None)));
                *locked(&self.0.given_up) = Some((at.key, Problem::new(over)));
                Err(Failed::Over(over))
            },
            |answer| answer.map_err(Failed::Said),
        )
    }

    /// The bytes with which a text may go on.
    fn bytes_from(&self, at: &Arc<Path>) -> Result<Vec<u8>, Failed> {
        self.ask(at, |pool, at| {
            let mut bytes = Vec::new();
            for byte in 0..=255 {
                if pool.allows(at, &[byte])? {
                    bytes.push(byte);
                }
            }
            Ok(bytes)
        })
    }

    fn known(&self, at: &Arc<Path>) -> Known {
        if let Some(known) = self.0.kept.get(at.key) {
            return known;
        }
        let answer = self.ask(at, |pool, at| pool.next(at).map(|answer| (Legal::of(answer.words), answer.ends)));
        let known = match answer {
            Ok((legal, false)) if legal.is_empty() => self.bytes_from(at).map(Known::dead_end),
            Ok((legal, ends)) => Ok(Known { ending: legal.ending(ends), legal, problem: None }),
            Err(failed) => Err(failed),
        };
        let known = match known {
            Ok(known) => known,
            Err(Failed::Said(reason)) => Known::nothing(reason),
            // It is asked again next time.
            Err(Failed::Over(over)) => return Known::given_up(over),
        };
        self.0.kept.put(at.key, known.clone());
        known
    }

    fn allows(&self, at: &Arc<Path>, token: TokenId) -> bool {
        if let Some(allowed) = self.0.kept.allows(at.key, token) {
            return allowed;
        }
        let bytes = self.tokens().bytes(token);
        if bytes.is_empty() || bytes.contains(&TokTrie::SPECIAL_TOKEN_MARKER) {
            return false;
        }
        let bytes = bytes.to_vec();
        match self.ask(at, move |pool, at| pool.allows(at, &bytes)) {
            Ok(allowed) => allowed,
            Err(Failed::Said(reason)) => {
                self.0.kept.put(at.key, Known::nothing(reason));
                false
            }
            Err(Failed::Over(_)) => false,
        }
    }
}

/// Why there is no answer.
enum Failed {
    Said(String),
    Over(Over),
}

/// Only whole things are behind these locks: a pool that panicked is cleared by itself.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Constraint for Guided {
    type State = GuidedState;

    fn start(&self) -> GuidedState {
        GuidedState(Arc::clone(&self.0.start))
    }

    fn next<'a>(&'a self, at: &'a GuidedState, scratch: &'a mut Scratch) -> Next<'a> {
        let Known { legal, ending, .. } = self.known(&at.0);
        Next { tokens: legal.lent(self.tokens().n_vocab(), scratch), ending }
    }

    fn advance(&self, at: &mut GuidedState, token: TokenId) -> Option<Role> {
        if !self.allows(&at.0, token) {
            return None;
        }
        at.0 = at.0.push(token, self.tokens().bytes(token));
        Some(Role::Value)
    }

    /// The only token that may come; else, where the text must go on in one way, the first of the tokenizer's tokens
    /// for it.
    fn forced_token(&self, at: &GuidedState, _scratch: &mut Scratch) -> Option<TokenId> {
        let Known { legal: Legal::Ids(ids), ending: Ending::No, .. } = self.known(&at.0) else { return None };
        if let &[only] = &*ids {
            return Some(only);
        }
        let begins = |&token: &TokenId| self.tokens().bytes(token).first().copied();
        let first = ids.first().and_then(begins)?;
        // A byte that must come begins all tokens that may.
        if !self.0.spelling.has_tokenizer() || !ids.iter().all(|token| begins(token) == Some(first)) {
            return None;
        }
        if let Some(&known) = self.forced().get(&at.0.key) {
            return known;
        }
        // What fails is asked again where the next mask is wanted, and fails there.
        let spelling = self.0.spelling.clone();
        let forced = self.ask(&at.0, move |pool, at| Ok(pool.forced(at, &spelling).unwrap_or_default())).ok()?;
        self.forced().put(at.0.key, forced);
        forced
    }

    fn ending(&self, at: &GuidedState) -> Ending {
        self.known(&at.0).ending
    }

    fn problem(&self, at: &GuidedState) -> Option<Problem> {
        let given_up = locked(&self.0.given_up).take_if(|(key, _)| *key == at.0.key).map(|(_, problem)| problem);
        given_up.or_else(|| self.0.kept.problem(at.0.key))
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for Guided {}
