//! A JSON Schema or a Lark grammar beside rules of other kinds. It is walked token by token, not byte by byte.

use crate::compiled::Shared;
use crate::error::GuidedError;
use crate::guided::{Guided, GuidedLimits, GuidedWeak};
use crate::lark::Lark;
use crate::reader::Reader;
use crate::schema::{JsonSchema, Made};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::{AnyConstraint, Problem};
use trie_rules::{
    AnyRule, ByRuleError, Documents, MaskLimits, MaskStats, Read, Spelled, SpelledBetween, Spelling, TextsError,
};

/// A [`JsonSchema`] or a [`Lark`] as a rule of whatever kind. A clone is a few reference counts.
///
/// In a form it stands alone: what is written before it and behind it are other tokens, and a prompt is not healed for
/// it, unless it is a long enum alone. Its texts are not listed, and its laws are those of llguidance.
///
/// ```
/// use trie_rules::{AnyRule, Read};
/// use trie_schema::{GuidedRule, JsonSchema, SchemaOptions};
///
/// let rule = GuidedRule::from(&JsonSchema::new(r#"{"type": "integer"}"#, SchemaOptions::default())?);
/// assert_eq!(rule.read(b"-12"), Read::Whole);
/// assert_eq!(rule.read(b"-"), Read::Begun);
/// assert_eq!(rule.read(b"12x"), Read::Refused { at: 2 });
/// # Ok::<(), trie_schema::SchemaError>(())
/// ```
#[derive(Clone)]
pub struct GuidedRule {
    way: Way,
    what: &'static str,
}

/// How its texts are read and walked.
#[derive(Clone)]
enum Way {
    Guided {
        compiled: Shared,
        reader: Arc<Reader>,
        /// Over vocabularies, where somebody still walks it: the masks are the same.
        walked: Arc<Mutex<Vec<GuidedWeak>>>,
    },
    Listed(Documents),
}

impl fmt::Debug for GuidedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GuidedRule").field(&self.what).finish()
    }
}

impl From<&JsonSchema> for GuidedRule {
    fn from(schema: &JsonSchema) -> Self {
        let what = "a JSON Schema";
        match schema.parts() {
            Made::Compiled(compiled) => Self::new(compiled, what),
            Made::Listed(list) => Self { way: Way::Listed(list.clone()), what },
        }
    }
}

impl From<&Lark> for GuidedRule {
    fn from(lark: &Lark) -> Self {
        Self::new(lark.compiled(), "a Lark grammar")
    }
}

impl GuidedRule {
    fn new(compiled: &Shared, what: &'static str) -> Self {
        let (compiled, reader) = (Arc::clone(compiled), Arc::new(Reader::new(compiled)));
        Self { way: Way::Guided { compiled, reader, walked: Arc::default() }, what }
    }
}

impl AnyRule for GuidedRule {
    fn spelled(&self, spelling: Spelling, limits: MaskLimits) -> Result<Arc<dyn Spelled>, ByRuleError> {
        let (compiled, walked) = match &self.way {
            Way::Guided { compiled, walked, .. } => (compiled, walked),
            Way::Listed(list) => return list.spelled(spelling, limits),
        };
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
        before: &[u8],
        after: &[&[u8]],
        spelling: Spelling,
        limits: MaskLimits,
    ) -> Result<Option<Arc<dyn SpelledBetween>>, ByRuleError> {
        match &self.way {
            Way::Guided { .. } => Ok(None),
            Way::Listed(list) => list.placed(before, after, spelling, limits),
        }
    }

    fn read(&self, text: &[u8]) -> Read {
        match &self.way {
            Way::Guided { reader, .. } => reader.read(text),
            Way::Listed(list) => list.read(text),
        }
    }

    #[cfg(not(target_family = "wasm"))]
    fn check(&self, _most_states: usize) -> Result<trie_rules::Checked, trie_rules::Broken> {
        Err(trie_rules::Broken::Unasked { what: self.what })
    }

    fn texts(&self, _limit: usize) -> Result<Vec<Vec<u8>>, TextsError> {
        Err(TextsError::Unlisted { what: self.what })
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
            GuidedError::Failed { .. } | GuidedError::Listed { .. } => Self::Failed(Problem::new(error)),
        }
    }
}
