//! A JSON Schema or a Lark grammar beside rules of other kinds. It is walked token by token, not byte by byte.

use crate::compiled::Shared;
use crate::error::GuidedError;
use crate::guided::{Guided, GuidedLimits, GuidedWeak};
use crate::lark::Lark;
use crate::schema::JsonSchema;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use trie_core::work::quiet;
use trie_core::{AnyConstraint, Constraint, Ending, Problem, TokenId};
use trie_rules::{
    AnyRule, Broken, ByRuleError, Checked, DeadEnd, MaskLimits, MaskStats, Read, Spelled, SpelledBetween, Spelling,
    TextsError, TokenBytes,
};

/// A [`JsonSchema`] or a [`Lark`] as a rule of whatever kind. A clone is a few reference counts.
///
/// In a form it stands alone: what is written before it and behind it are other tokens, and a prompt is not healed for
/// it. Its texts are not listed, and its laws are those of llguidance.
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
    compiled: Shared,
    what: &'static str,
    /// Over single bytes, to read texts.
    by_bytes: Arc<OnceLock<Result<Guided, GuidedError>>>,
    /// Over vocabularies, where somebody still walks it: the masks are the same.
    walked: Arc<Mutex<Vec<GuidedWeak>>>,
}

impl fmt::Debug for GuidedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GuidedRule").field(&self.what).finish()
    }
}

impl From<&JsonSchema> for GuidedRule {
    fn from(schema: &JsonSchema) -> Self {
        Self::new(schema.compiled(), "a JSON Schema")
    }
}

impl From<&Lark> for GuidedRule {
    fn from(lark: &Lark) -> Self {
        Self::new(lark.compiled(), "a Lark grammar")
    }
}

/// All bytes, each with its number for an id.
static BYTES: LazyLock<Arc<TokenBytes>> = LazyLock::new(|| {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = bytes.iter().map(|byte| (&byte[..], token(byte[0])));
    Arc::new(TokenBytes::new(256, tokens).unwrap_or_default())
});

fn token(byte: u8) -> TokenId {
    TokenId::new(byte.into()).unwrap_or_default()
}

impl GuidedRule {
    fn new(compiled: &Shared, what: &'static str) -> Self {
        Self { compiled: Arc::clone(compiled), what, by_bytes: Arc::default(), walked: Arc::default() }
    }

    fn by_bytes(&self) -> &Result<Guided, GuidedError> {
        // Single bytes have small masks, and one text is read at a time.
        let limits = GuidedLimits { masks: MaskLimits::bytes(1 << 20), parsers: 1 };
        // Others wait for it.
        self.by_bytes.get_or_init(|| quiet(|| Guided::new(&self.compiled, Arc::clone(&BYTES), limits)))
    }
}

impl AnyRule for GuidedRule {
    fn spelled(&self, spelling: Spelling, limits: MaskLimits) -> Result<Arc<dyn Spelled>, ByRuleError> {
        let limits = GuidedLimits { masks: limits, ..GuidedLimits::default() };
        let known = || self.walked.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().iter().filter_map(GuidedWeak::upgrade).find(|walked| walked.is_over(&spelling, limits));
        if let Some(walked) = found {
            return Ok(Arc::new(walked));
        }
        let made = Guided::new(&self.compiled, spelling, limits)?;
        let mut known = known();
        known.retain(|walked| walked.upgrade().is_some());
        known.push(made.downgrade());
        Ok(Arc::new(made))
    }

    fn placed(
        &self,
        _before: &[u8],
        _after: &[u8],
        _spelling: Spelling,
        _limits: MaskLimits,
    ) -> Result<Option<Arc<dyn SpelledBetween>>, ByRuleError> {
        Ok(None)
    }

    fn read(&self, text: &[u8]) -> Read {
        let rule = match self.by_bytes() {
            Ok(rule) => rule,
            Err(GuidedError::Nothing) if text.is_empty() => return Read::Whole,
            Err(GuidedError::Failed { .. }) => return Read::Unread { at: 0 },
            Err(_) => return Read::Refused { at: 0 },
        };
        // A place without way on is no failure of the reader's.
        let failed = |state| rule.problem(state).is_some_and(|problem| problem.downcast_ref::<DeadEnd>().is_none());
        let mut state = rule.start();
        for (at, &byte) in text.iter().enumerate() {
            if rule.advance(&mut state, token(byte)).is_none() {
                return if failed(&state) { Read::Unread { at } } else { Read::Refused { at } };
            }
        }
        match rule.ending(&state) {
            Ending::No if failed(&state) => Read::Unread { at: text.len() },
            Ending::No => Read::Begun,
            _ => Read::Whole,
        }
    }

    fn check(&self, _most_states: usize) -> Result<Checked, Broken> {
        Err(Broken::Unasked { what: self.what })
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
            GuidedError::Failed { .. } => Self::Failed(Problem::new(error)),
        }
    }
}
