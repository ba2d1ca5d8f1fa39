//! Rules of every kind behind one type, for hosts whose users choose the kind.

use crate::check::{Broken, CheckExtent, check_rule};
use crate::placed::prefixed::PrefixedRule;
use crate::placed::{DelimitedRule, PlacedState};
use crate::rule::Rule;
use crate::samples::samples;
use crate::texts::{TextsError, texts};
use crate::tokens::by_rule::{ByRule, ByRuleError};
use crate::tokens::masks::{MaskLimits, MaskStats};
use crate::tokens::spelling::Spelling;
use lru::LruCache;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::work::spend;
use trie_core::{AnyConstraint, AnyState, Problem};

/// A rule of any kind: every [`Rule`] that can be cloned, and rules that are walked token by token.
pub trait AnyRule: fmt::Debug + Send + Sync {
    /// Compiles the rule over the tokens of a vocabulary.
    ///
    /// # Errors
    /// As [`ByRule::new`].
    fn compile_for(&self, spelling: Spelling, limits: MaskLimits) -> Result<Arc<dyn CompiledRule>, ByRuleError>;

    /// Compiles the rule between a prefix and one of several suffixes: see [`DelimitedRule`]. `None` for a rule that is
    /// walked token by token instead of byte by byte: such a rule begins and ends between tokens, see
    /// [`AnyRule::compile_for`].
    ///
    /// # Errors
    /// As [`ByRule::new`].
    fn compile_between(
        &self,
        before: &[u8],
        after: &[&[u8]],
        spelling: Spelling,
        limits: MaskLimits,
    ) -> Result<Option<Arc<dyn SpelledBetween>>, ByRuleError>;

    /// Returns whether a text is legal as a whole, or the length of its longest prefix that begins a legal one. The
    /// result means nothing if the [work](trie_core::work) limit of this thread is used up.
    fn read(&self, text: &[u8]) -> Read;

    /// Takes the error of [`AnyRule::read`] and of the methods below on this thread: see [`Rule::failure`].
    fn take_failure(&self) -> Option<Problem> {
        None
    }

    /// Checks that the rule keeps the laws of rules: see [`check_rule`].
    ///
    /// # Errors
    /// As [`check_rule`].
    fn check(&self, most_states: usize) -> Result<CheckExtent, Broken>;

    /// Returns all of its texts, if there are at most `limit`: see [`texts`].
    ///
    /// # Errors
    /// As [`texts`].
    fn texts(&self, limit: usize) -> Result<Vec<Vec<u8>>, TextsError>;

    /// Returns some of its texts, drawn at random: see [`samples`]. A rule that is not walked byte by byte gives none.
    fn samples(&self, count: usize, seed: u32) -> Vec<Vec<u8>> {
        let _ = (count, seed);
        Vec::new()
    }
}

/// Match of a text against a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// The whole text is legal.
    Whole,
    /// The text begins a legal text, but is not legal itself.
    Begun,
    /// Reading stopped early: the rule is too complex for this text.
    Unread {
        /// Bytes that were read.
        at: usize,
    },
    /// Only so many bytes of it begin a legal text.
    Refused {
        /// Bytes before the first that does not go on.
        at: usize,
    },
}

/// A rule over the tokens of a vocabulary.
pub trait CompiledRule: fmt::Debug + Send + Sync {
    /// As a constraint; masks are shared between all of them.
    fn constraint(&self) -> AnyConstraint;

    /// Returns the constraint after bytes that come first. `None` for a rule that begins between tokens: see
    /// [`AnyRule::compile_between`].
    ///
    /// # Errors
    /// As [`ByRule::new`].
    fn after_bytes(&self, bytes: &[u8]) -> Result<Option<AnyConstraint>, ByRuleError>;

    /// Returns the characters with which its texts may begin; `None` for more than `limit`.
    fn beginnings(&self, limit: usize) -> Option<Vec<char>>;

    /// Returns the statistics of the mask cache.
    fn stats(&self) -> MaskStats;

    /// Returns the number of unused copies of the rule, if nobody else holds one of its constraints.
    fn unused_copies(&self) -> Option<usize>;
}

/// A rule between two texts, over the tokens of a vocabulary.
pub trait SpelledBetween: fmt::Debug + Send + Sync {
    /// As a constraint; masks are shared between all of them.
    fn constraint(&self) -> AnyConstraint;

    /// Calls [`DelimitedRule::suffix_written`] for a type-erased state.
    fn suffix_written(&self, at: &AnyState) -> Option<usize>;

    /// Calls [`DelimitedRule::may_end`] for a type-erased state.
    fn may_end(&self, at: &AnyState) -> bool;

    /// Calls [`DelimitedRule::shortest_end`] for a type-erased state.
    fn shortest_end(&self, at: &AnyState, most_states: usize) -> Option<Vec<u8>>;
}

impl<R: Rule + Clone> AnyRule for R {
    fn compile_for(&self, spelling: Spelling, limits: MaskLimits) -> Result<Arc<dyn CompiledRule>, ByRuleError> {
        let by_rule = ByRule::with_limits(self.clone(), spelling, limits)?;
        Ok(Arc::new(SpelledRule { by_rule, after: Mutex::new(LruCache::new(AFTER)) }))
    }

    fn compile_between(
        &self,
        before: &[u8],
        after: &[&[u8]],
        spelling: Spelling,
        limits: MaskLimits,
    ) -> Result<Option<Arc<dyn SpelledBetween>>, ByRuleError> {
        Ok(Some(Arc::new(DelimitedRule::new(before, self.clone(), after, spelling, limits)?)))
    }

    fn take_failure(&self) -> Option<Problem> {
        self.failure()
    }

    fn check(&self, most_states: usize) -> Result<CheckExtent, Broken> {
        check_rule(self, most_states)
    }

    fn texts(&self, limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
        texts(self, limit)
    }

    fn samples(&self, count: usize, seed: u32) -> Vec<Vec<u8>> {
        samples(self, count, seed)
    }

    fn read(&self, text: &[u8]) -> Read {
        let mut state = self.start();
        for (at, &byte) in text.iter().enumerate() {
            match self.step(&state, byte) {
                Some(next) if spend(1).is_ok() => state = next,
                _ => return Read::Refused { at },
            }
        }
        if self.is_end(&state) { Read::Whole } else { Read::Begun }
    }
}

/// Ends of prompts for which it is kept what comes after them.
const AFTER: NonZeroUsize = NonZeroUsize::new(16).unwrap();

#[derive(Debug)]
struct SpelledRule<R: Rule> {
    by_rule: ByRule<R>,
    after: Mutex<LruCache<Vec<u8>, AnyConstraint>>,
}

impl<R: Rule + Clone> CompiledRule for SpelledRule<R> {
    fn constraint(&self) -> AnyConstraint {
        AnyConstraint::new(self.by_rule.clone())
    }

    fn after_bytes(&self, bytes: &[u8]) -> Result<Option<AnyConstraint>, ByRuleError> {
        let known = || self.after.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = known().get(bytes) {
            return Ok(Some(kept.clone()));
        }
        let made = AnyConstraint::new(PrefixedRule::new(bytes, &self.by_rule)?);
        known().put(bytes.to_vec(), made.clone());
        Ok(Some(made))
    }

    fn beginnings(&self, limit: usize) -> Option<Vec<char>> {
        let mut found = Vec::new();
        let mut begun = vec![(Vec::new(), self.by_rule.rule().start())];
        while let Some((bytes, state)) = begun.pop() {
            for byte in 0..=255 {
                let Some(next) = self.by_rule.rule().step(&state, byte) else { continue };
                let bytes = [bytes.as_slice(), &[byte]].concat();
                match std::str::from_utf8(&bytes) {
                    Ok(text) => found.extend(text.chars()),
                    Err(error) if error.error_len().is_none() => begun.push((bytes, next)),
                    // No character at all: text of another encoding.
                    Err(_) => return None,
                }
                if found.len() > limit {
                    return None;
                }
            }
        }
        Some(found)
    }

    fn stats(&self) -> MaskStats {
        self.by_rule.stats()
    }

    fn unused_copies(&self) -> Option<usize> {
        let after = self.after.lock().unwrap_or_else(PoisonError::into_inner).len();
        // Each of what comes after bytes holds the rule itself and this.
        (self.by_rule.holders() == 1 + after).then_some(1 + after)
    }
}

impl<R: Rule> SpelledBetween for DelimitedRule<R> {
    fn constraint(&self) -> AnyConstraint {
        AnyConstraint::new(self.clone())
    }

    fn suffix_written(&self, at: &AnyState) -> Option<usize> {
        at.downcast_ref::<PlacedState<R::State>>().and_then(|at| self.suffix_written(at))
    }

    fn may_end(&self, at: &AnyState) -> bool {
        at.downcast_ref::<PlacedState<R::State>>().is_some_and(|at| self.may_end(at))
    }

    fn shortest_end(&self, at: &AnyState, most_states: usize) -> Option<Vec<u8>> {
        at.downcast_ref::<PlacedState<R::State>>().and_then(|at| self.shortest_end(at, most_states))
    }
}
