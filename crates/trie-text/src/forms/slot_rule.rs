//! A slot or text with a rule in its place: after the written text, and before the next literal or stop.
//!
//! A rule that is walked token by token stands alone: the text before it is written first. It ends where no token can
//! continue it, or with the first token of the next text.

use super::slot_set::{SlotHere, WrittenTokens};
use super::{Form, FormError, FormOptions, Overshoot, Part, SlotValues};
use crate::vocab::Vocab;
use std::sync::{Arc, OnceLock};
use trie_core::{AnyConstraint, AnyState, Constraint, Ending, SpanRules, TokenId};
use trie_rules::{AnyRule, ByRuleError, MaskLimits, Regex, SpelledBetween};

/// A rule, ready to be walked after the written text.
#[derive(Debug)]
pub(super) struct SlotRule {
    /// Rules of its value, and the tokens that may end it if nothing follows it.
    pub(super) rules: Arc<SpanRules>,
    /// `None` where it stands alone.
    between: Option<Arc<dyn SpelledBetween>>,
    max_tokens: Option<usize>,
    /// Crossings of free text, computed on first use.
    pub(super) crossings: OnceLock<Box<[Crossing]>>,
}

/// Position at which part of a text's stop is written, and a token may extend beyond it.
#[derive(Debug)]
pub(super) struct Crossing {
    pub(super) stop: String,
    /// Bytes of the stop that are written.
    pub(super) written: usize,
    /// Tokens that cross the boundary, in ascending order.
    pub(super) tokens: Box<[TokenId]>,
}

impl SlotRule {
    /// Returns the constraint that is walked.
    pub(super) fn constraint(&self) -> &AnyConstraint {
        &self.rules.constraints()[0].1
    }

    /// Returns the number of bytes written of the text behind it, once the end of the value is known.
    pub(super) fn suffix_written(&self, at: &AnyState) -> Option<usize> {
        match &self.between {
            Some(between) => between.suffix_written(at),
            None => (self.constraint().ending(at) == Ending::Must).then_some(0),
        }
    }

    /// Returns whether the value may end here.
    pub(super) fn may_end(&self, at: &AnyState) -> bool {
        match &self.between {
            Some(between) => between.may_end(at),
            None => self.constraint().ending(at) != Ending::No,
        }
    }

    /// Returns the fewest bytes that end the value, including bytes of the text behind it; `None` if reaching an end
    /// takes more than `most_states` states.
    pub(super) fn shortest_end(&self, at: &AnyState, most_states: usize) -> Option<Vec<u8>> {
        self.between.as_ref()?.shortest_end(at, most_states)
    }

    /// The most tokens of it, where it is a text.
    pub(super) fn max_tokens(&self) -> Option<usize> {
        self.max_tokens
    }

    /// Returns whether it begins after all text before it: that must be written first.
    pub(super) fn stands_alone(&self) -> bool {
        self.between.is_none()
    }
}

impl Form {
    /// Returns the text that follows the free text at `index`, once it ended with one of its stops, of which the bytes
    /// `written` are written: the next literal. If tokens are not taken back, a stop that the literal does not begin
    /// with comes first.
    pub(super) fn text_after_stop(
        &self,
        index: usize,
        stops: &[String],
        written: &[u8],
        overshoot: Overshoot,
    ) -> String {
        let literal = self.literal(index + 1);
        // One that was written whole was written first; of one that was cut off nothing need be said twice.
        let whole = stops.iter().find(|stop| stop.as_bytes() == written);
        let begun = || stops.iter().filter(|stop| stop.as_bytes().starts_with(written));
        let own = || begun().find(|stop| literal.starts_with(*stop));
        let stop = whole.or_else(own).or_else(|| begun().next()).map_or("", String::as_str);
        if overshoot == Overshoot::Refused { self.after_stop(index, stop) } else { literal.to_owned() }
    }

    /// This stop of the text at part `index`, unless the next literal begins with it, followed by that literal.
    pub(super) fn after_stop(&self, index: usize, stop: &str) -> String {
        let literal = self.literal(index + 1);
        if literal.starts_with(stop) { literal.to_owned() } else { format!("{stop}{literal}") }
    }

    /// The rule of the slot or text at part `index`, after the written text; its unwritten rest comes first. Free text
    /// has a rule if its tokens are not taken back.
    ///
    /// # Errors
    /// A part without a rule, or a text that the vocabulary cannot spell.
    pub(super) fn rule(
        &self,
        index: usize,
        written: &WrittenTokens,
        vocab: &Arc<Vocab>,
        options: FormOptions,
    ) -> Result<Arc<SlotRule>, FormError> {
        let literal = self.literal(index + 1);
        let (name, rule, behind, max_tokens) = match self.parts().get(index) {
            Some(Part::Slot { name, values: SlotValues::Rule(rule) }) => (name, Some(rule), vec![literal], None),
            Some(Part::Text { name, pattern, stops, max_tokens, .. }) => {
                (name, pattern.as_ref(), stops.iter().map(String::as_str).collect(), Some(*max_tokens))
            }
            _ => return Err(FormError::NoSlot { index }),
        };
        let before = written.rest_bytes();
        let key = (vocab.fingerprint().to_owned(), index, before.to_vec(), options);
        self.cache.rules.get_or_make(key, |_| {
            let refused = |error: ByRuleError| FormError::Rule { what: format!("slot {name:?}"), error };
            let rule = rule.map_or_else(|| self.free_text(index), Arc::clone);
            let texts: Vec<&[u8]> = behind.iter().map(|text| text.as_bytes()).collect();
            let placed = rule.compile_between(before, &texts, vocab.spelling(), MaskLimits::default());
            let between = placed.map_err(refused)?;
            let constraint = match &between {
                Some(between) => between.constraint(),
                None => rule.compile_for(vocab.spelling(), MaskLimits::default()).map_err(refused)?.constraint(),
            };
            let mut ends = Vec::new();
            for behind in behind.iter().filter(|behind| behind.is_empty() || between.is_none()) {
                let unspellable = || FormError::Unspellable { what: "literal".to_owned(), text: (*behind).to_owned() };
                let after: Vec<TokenId> = vocab.tokenize_inside(behind).ok_or_else(unspellable)?;
                if matches!(self.parts().get(index), Some(Part::Text { .. })) {
                    ends.extend(after.first());
                } else {
                    let slot = SlotHere { name, vocab, literal, next: self.next(index) };
                    let nothing = WrittenTokens { text: String::new(), rest: 0, tokens: Vec::new() };
                    slot.ends_after(&nothing, "", &after, 0, &mut ends);
                }
            }
            let rules = SpanRules::for_constraint(constraint, vocab.len())?.with_end_tokens(ends)?;
            let crossings = OnceLock::new();
            Ok(Arc::new(SlotRule { rules: Arc::new(rules), between, max_tokens, crossings }))
        })
    }

    /// A rule for any characters except those that the free text at part `index` excludes.
    fn free_text(&self, index: usize) -> Arc<dyn AnyRule> {
        let excluded = match self.parts().get(index) {
            Some(Part::Text { exclude, .. }) => exclude.as_slice(),
            _ => &[],
        };
        let class: Vec<String> = excluded.iter().map(|&char| format!("\\u{{{:x}}}", u32::from(char))).collect();
        let pattern = if class.is_empty() { "(?s:.)*".to_owned() } else { format!("[^{}]*", class.concat()) };
        Arc::new(Regex::new(&pattern).expect("characters by their numbers make a class"))
    }
}
