//! A Lark grammar beside rules of other kinds. It is walked token by token, not byte by byte.

use crate::compiled::Shared;
use crate::error::GuidedError;
use crate::guided::{Guided, GuidedLimits, GuidedWeak};
use crate::lark::Lark;
use crate::reader::Reader;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::{AnyConstraint, Problem};
use trie_rules::{
    AnyRule, Broken, ByRuleError, CheckExtent, MaskLimits, MaskStats, Read, Spelled, SpelledBetween, Spelling,
    TextsError,
};

/// A [`Lark`] as a rule of whatever kind. A clone is a few reference counts.
///
/// In a form it stands alone: what is written before it and behind it are other tokens, and a prompt is not healed for
/// it. Its texts are not listed, and its laws are those of llguidance.
///
/// ```
/// use trie_rules::{AnyRule, Read};
/// use trie_schema::{GuidedRule, Lark};
///
/// let rule = GuidedRule::from(&Lark::new("start: /-?[1-9][0-9]*/")?);
/// assert_eq!(rule.read(b"-12"), Read::Whole);
/// assert_eq!(rule.read(b"-"), Read::Begun);
/// assert_eq!(rule.read(b"12x"), Read::Refused { at: 2 });
/// # Ok::<(), trie_schema::LarkError>(())
/// ```
#[derive(Clone)]
pub struct GuidedRule {
    compiled: Shared,
    reader: Arc<Reader>,
    /// Over vocabularies, where somebody still walks it: the masks are the same.
    walked: Arc<Mutex<Vec<GuidedWeak>>>,
}

const WHAT: &str = "a Lark grammar";

impl fmt::Debug for GuidedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GuidedRule").field(&WHAT).finish()
    }
}

impl From<&Lark> for GuidedRule {
    fn from(lark: &Lark) -> Self {
        let compiled = Arc::clone(lark.compiled());
        Self { reader: Arc::new(Reader::new(&compiled)), compiled, walked: Arc::default() }
    }
}

impl AnyRule for GuidedRule {
    fn spelled(&self, spelling: Spelling, limits: MaskLimits) -> Result<Arc<dyn Spelled>, ByRuleError> {
        let Self { compiled, walked, .. } = self;
        let limits = GuidedLimits { masks: limits, ..GuidedLimits::default() };
        let known = || walked.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().iter().filter_map(GuidedWeak::upgrade).find(|walked| walked.is_over(&spelling, limits));
        if let Some(walked) = found {
            return Ok(Arc::new(walked));
        }
        let made = Guided::new(compiled, spelling, limits)?;
        let mut known = known();
        known.retain(|walked| walked.upgrade().is_some());
        known.push(made.downgrade());
        Ok(Arc::new(made))
    }

    fn placed(
        &self,
        _before: &[u8],
        _after: &[&[u8]],
        _spelling: Spelling,
        _limits: MaskLimits,
    ) -> Result<Option<Arc<dyn SpelledBetween>>, ByRuleError> {
        Ok(None)
    }

    fn read(&self, text: &[u8]) -> Read {
        self.reader.read(text)
    }

    fn check(&self, _most_states: usize) -> Result<CheckExtent, Broken> {
        Err(Broken::Unasked { what: WHAT })
    }

    fn texts(&self, _limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
        Err(TextsError::Unlisted { what: WHAT })
    }
}

impl Spelled for Guided {
    fn constraint(&self) -> AnyConstraint {
        AnyConstraint::new(self.clone())
    }

    fn after(&self, _bytes: &[u8]) -> Result<Option<AnyConstraint>, ByRuleError> {
        Ok(None)
    }

    fn beginnings(&self, _limit: usize) -> Option<Vec<char>> {
        None
    }

    fn stats(&self) -> MaskStats {
        self.stats()
    }

    fn unused(&self) -> Option<usize> {
        // No rule of a user's is inside.
        (!self.is_shared()).then_some(0)
    }
}

impl From<GuidedError> for ByRuleError {
    fn from(error: GuidedError) -> Self {
        match error {
            GuidedError::Unspellable { bytes } => Self::Unspellable { bytes },
            GuidedError::Nothing => Self::Nothing { empty: true },
            GuidedError::Failed { .. } => Self::Failed(Problem::new(error)),
        }
    }
}
