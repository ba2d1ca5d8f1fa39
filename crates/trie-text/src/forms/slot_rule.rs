//! A slot or text with a rule where it stands: between what was written before it and the literal or stop behind it.
//!
//! A rule that is walked token by token stands alone: what is before it is written first, and it ends where nothing can
//! go on, or with the first token of what stands behind.

use super::slot_set::{SlotHere, Written};
use super::{Form, FormError, Part, SlotValues};
use crate::vocab::Vocab;
use std::sync::Arc;
use trie_core::{AnyConstraint, AnyState, Constraint, Ending, SpanRules, TokenId};
use trie_rules::{ByRuleError, MaskLimits, SpelledBetween};

/// A rule, ready to be walked after what was written before it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SlotRule {
    /// What may be written, and the tokens that may end it where nothing stands behind it.
    pub rules: Arc<SpanRules>,
    walked: Walked,
}

#[derive(Debug)]
enum Walked {
    Between(Arc<dyn SpelledBetween>),
    Alone(AnyConstraint),
}

impl SlotRule {
    /// How many bytes of what stands behind are written, once it is known where the value ends.
    pub fn behind(&self, at: &AnyState) -> Option<usize> {
        match &self.walked {
            Walked::Between(spelled) => spelled.behind(at),
            Walked::Alone(constraint) => (constraint.ending(at) == Ending::Must).then_some(0),
        }
    }

    /// Whether the value may end here.
    pub fn may_end(&self, at: &AnyState) -> bool {
        match &self.walked {
            Walked::Between(spelled) => spelled.may_end(at),
            Walked::Alone(constraint) => constraint.ending(at) != Ending::No,
        }
    }

    /// Whether it begins after all that stands before it: that must be written first.
    pub fn stands_alone(&self) -> bool {
        matches!(self.walked, Walked::Alone(_))
    }
}

impl Form {
    /// The rule of the slot or text that is the part at `index`, after what was written. What is not written of that
    /// yet comes first.
    ///
    /// # Errors
    /// A part without a rule, and what the vocabulary cannot spell.
    pub fn rule(&self, index: usize, written: &Written, vocab: &Arc<Vocab>) -> Result<Arc<SlotRule>, FormError> {
        let literal = self.literal(index + 1);
        let (name, rule, behind) = match self.parts().get(index) {
            Some(Part::Slot { name, values: SlotValues::Rule(rule) }) => (name, rule, literal),
            Some(Part::Text { name, pattern: Some(rule), stop, .. }) => (name, rule, stop.as_str()),
            _ => return Err(FormError::NoSlot { index }),
        };
        let before = written.rest_bytes();
        let key = (vocab.fingerprint().to_owned(), index, before.to_vec());
        self.cache.rules.get_or_make(key, |_| {
            let refused = |error: ByRuleError| FormError::Rule { what: format!("slot {name:?}"), error };
            let placed = rule.placed(before, behind.as_bytes(), vocab.spelling(), MaskLimits::default());
            let (constraint, walked) = if let Some(spelled) = placed.map_err(refused)? {
                (spelled.constraint(), Walked::Between(spelled))
            } else {
                let spelled = rule.spelled(vocab.spelling(), MaskLimits::default()).map_err(refused)?;
                (spelled.constraint(), Walked::Alone(spelled.constraint()))
            };
            let alone = matches!(walked, Walked::Alone(_));
            let mut ends = Vec::new();
            if behind.is_empty() || alone {
                let unspellable = || FormError::Unspellable { what: "literal".to_owned(), text: behind.to_owned() };
                let after: Vec<TokenId> = vocab.tokenize_inside(behind).ok_or_else(unspellable)?;
                if matches!(self.parts().get(index), Some(Part::Text { .. })) {
                    ends.extend(after.first());
                } else {
                    let slot = SlotHere { name, vocab, literal, next: self.next(index) };
                    let nothing = Written { text: String::new(), rest: 0, tokens: Vec::new() };
                    slot.ends_after(&nothing, "", &after, 0, &mut ends);
                }
            }
            let rules = SpanRules::of(constraint, vocab.len())?.with_end_tokens(ends)?;
            Ok(Arc::new(SlotRule { rules: Arc::new(rules), walked }))
        })
    }
}
