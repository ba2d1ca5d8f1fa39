//! A slot or text with a rule where it stands: between what was written before it and the literal or stop behind it.

use super::slot_set::{SlotHere, Written};
use super::{Form, FormError, Part, SlotValues};
use crate::vocab::Vocab;
use std::sync::Arc;
use trie_core::{AnyState, SpanRules};
use trie_rules::{MaskLimits, SpelledBetween};

/// A rule, ready to be walked after what was written before it.
#[derive(Debug)]
#[non_exhaustive]
pub struct SlotRule {
    /// What may be written, and the tokens that may end it where nothing stands behind it.
    pub rules: Arc<SpanRules>,
    spelled: Arc<dyn SpelledBetween>,
}

impl SlotRule {
    /// How many bytes of what stands behind are written, once it is known where the value ends.
    pub fn behind(&self, at: &AnyState) -> Option<usize> {
        self.spelled.behind(at)
    }

    /// Whether the value may end here.
    pub fn may_end(&self, at: &AnyState) -> bool {
        self.spelled.may_end(at)
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
            let refused = |error| FormError::Rule { what: format!("slot {name:?}"), error };
            let spelled = rule.placed(before, behind.as_bytes(), vocab.spelling(), MaskLimits::default());
            let spelled = spelled.map_err(refused)?;
            let mut ends = Vec::new();
            if behind.is_empty() {
                let slot = SlotHere { name, vocab, literal, next: self.next(index) };
                let nothing = Written { text: String::new(), rest: 0, tokens: Vec::new() };
                slot.ends_after(&nothing, "", &[], 0, &mut ends);
            }
            let rules = SpanRules::of(spelled.constraint(), vocab.len())?.with_end_tokens(ends)?;
            Ok(Arc::new(SlotRule { rules: Arc::new(rules), spelled }))
        })
    }
}
