//! Transitions between the parts of a form: where each part begins, when it is over, and what is written then.

use super::constraint::FormConstraint;
use super::continuation::Continuation;
use super::free_text::FreeText;
use super::slot_rule::SlotRule;
use super::slot_set::{SlotSet, WrittenTokens};
use super::state::{FilledField, FilledFields, FormState, LastToken, PartPosition};
use super::{FormError, Listing, Part, SlotValues};
use std::sync::Arc;
use trie_core::{AnyState, Constraint, Ending, LeafId, Problem, SpanRules, Special, TokenId, Trie};

impl FormConstraint {
    /// The state before the first part, after this text, of which nothing is written yet.
    pub(super) fn begin(&self, text: String) -> Result<FormState, FormError> {
        let rest = text.len();
        let mut state = self.enter_part(None, WrittenTokens { text, rest, tokens: Vec::new() }, None, 0)?;
        self.settle(&mut state);
        Ok(state)
    }

    /// The state at this part, or at the part after it if it is a literal. The part may be over at once. It continues
    /// from `from`, if given, or else from the written tokens.
    fn enter_part(
        &self,
        filled: Option<Arc<FilledFields>>,
        before: WrittenTokens,
        from: Option<&WrittenTokens>,
        part: usize,
    ) -> Result<FormState, FormError> {
        let (part, at) = self.beginning(part, from.unwrap_or(&before))?;
        let last = LastToken::Written;
        Ok(FormState { filled, before: Arc::new(before), tokens: Vec::new(), part, at, last })
    }

    /// The number of this part, or of the part after it if it is a literal, and the position at its start: first the
    /// tokens that must be written before it.
    pub(super) fn beginning(&self, part: usize, before: &WrittenTokens) -> Result<(usize, PartPosition), FormError> {
        let part = part + usize::from(matches!(self.form.parts().get(part), Some(Part::Literal(_))));
        let (lead, at) = self.lead_and_part(part, before)?;
        Ok((part, if lead.is_empty() { at } else { PartPosition::Lead(lead.into(), Arc::new(at)) }))
    }

    fn lead_and_part(&self, part: usize, before: &WrittenTokens) -> Result<(Vec<TokenId>, PartPosition), FormError> {
        let rest = || before.rest_tokens(&self.vocab);
        let rule = |before: &WrittenTokens| {
            let rule = self.form.rule(part, before, &self.vocab, self.options)?;
            let lead = if rule.stands_alone() { rest()? } else { Vec::new() };
            Ok((lead, PartPosition::Rule { at: rule.constraint().start(), whole: None, rule }))
        };
        let set = || {
            let set = self.form.set(part, before, &self.vocab)?;
            Ok((set.lead.clone(), PartPosition::Set(Arc::clone(&set), set.constraint().start())))
        };
        match self.form.parts().get(part) {
            None => Ok((rest()?, PartPosition::Over)),
            Some(Part::Slot { values: SlotValues::Rule(_), .. }) if self.options.listed != Listing::Never => {
                match set() {
                    Err(FormError::NotListed { .. }) if self.options.listed == Listing::WhereFew => rule(before),
                    listed => listed,
                }
            }
            Some(Part::Text { pattern: None, .. }) if self.takes_back() => {
                let allowed = self.form.text_tokens(part, &self.vocab);
                Ok((rest()?, PartPosition::Free(FreeText::default(), allowed)))
            }
            Some(Part::Text { pattern: None, .. }) => {
                let alone = WrittenTokens { rest: 0, ..before.clone() };
                Ok((rest()?, rule(&alone)?.1))
            }
            Some(Part::Slot { values: SlotValues::Rule(_), .. } | Part::Text { .. }) => rule(before),
            Some(Part::Slot { .. } | Part::Literal(_)) => set(),
            Some(Part::Held { constraint, .. }) => {
                let rules = Arc::new(SpanRules::for_constraint(constraint.clone(), self.vocab.len())?);
                let at = rules.start();
                Ok((rest()?, PartPosition::Held(rules, at)))
            }
        }
    }

    /// Goes on to the next part where this one is over.
    pub(super) fn settle(&self, state: &mut FormState) {
        loop {
            let over = match &state.at {
                PartPosition::Lead(lead, then) if state.tokens.len() >= lead.len() => {
                    let at = (**then).clone();
                    let before = &*state.before;
                    let tokens = [before.tokens.as_slice(), &state.tokens].concat();
                    let rest = before.rest.saturating_sub(self.bytes_of(&state.tokens));
                    let text = before.text.clone();
                    state.before = Arc::new(WrittenTokens { text, rest, tokens });
                    state.tokens.clear();
                    state.at = at;
                    continue;
                }
                PartPosition::Set(set, at) => set.constraint().ending(at) == Ending::Must,
                PartPosition::Rule { rule, at, .. } => {
                    let cut = rule.max_tokens().is_some_and(|most| state.tokens.len() >= most);
                    rule.constraint().ending(at) == Ending::Must || cut && (self.takes_back() || rule.may_end(at))
                }
                PartPosition::Free(text, _) => text.is_over() || state.tokens.len() >= self.most_tokens(state.part),
                PartPosition::Held(rules, at) => {
                    state.tokens.len() >= self.most_tokens(state.part)
                        || rules.constraint(at).ending(at.position()) == Ending::Must
                }
                PartPosition::Lead(..) | PartPosition::Over | PartPosition::Failed(_) => false,
            };
            if !over {
                return;
            }
            *state = self.leave_value(state);
        }
    }

    fn most_tokens(&self, part: usize) -> usize {
        match self.form.parts().get(part) {
            Some(&Part::Text { max_tokens, .. } | &Part::Held { max_tokens, .. }) => max_tokens,
            _ => 0,
        }
    }

    /// The state after the value that ends here, and after further values that end at once.
    pub(super) fn end_value(&self, state: &FormState) -> FormState {
        let mut after = self.leave_value(state);
        self.settle(&mut after);
        after
    }

    /// The state after the value that ends here.
    fn leave_value(&self, state: &FormState) -> FormState {
        let after = match &state.at {
            PartPosition::Set(set, at) => {
                let leaves = set.constraint().values(at, true);
                let number = set.trie().and_then(|_| leaves.last()).map(|leaf| leaf.index);
                self.set_ended(state, set, number, &leaves)
            }
            PartPosition::Rule { rule, at, whole } => self.rule_ended(state, rule, at, *whole),
            PartPosition::Held(..) => self.keep_value(state, 0, whole_characters(&self.spell(&state.tokens))),
            PartPosition::Free(text, _) => self.keep_value(state, 0, text.value()),
            PartPosition::Lead(..) | PartPosition::Over | PartPosition::Failed(_) => Ok(state.clone()),
        };
        after.unwrap_or_else(|error| fail(state, error))
    }

    /// The sequences that are scored for the values of the set that begins here: see [`Continuation`].
    ///
    /// # Errors
    /// Values that cannot be listed.
    pub fn continuation<'s>(&self, state: &FormState, set: &'s SlotSet) -> Result<&'s Continuation, FormError> {
        let made = set.continuation.get_or_init(|| self.form.continuation(state.part, &state.before, &self.vocab, set));
        made.as_ref().map_err(Clone::clone)
    }

    /// The state after this value of the set that begins here. Its tokens are not written yet: they are forced next,
    /// whatever the model prefers.
    ///
    /// # Errors
    /// No set begins here, or it has no such value.
    pub fn take_value(&self, state: &FormState, value: LeafId) -> Result<FormState, FormError> {
        let none = || FormError::NoSlot { index: state.part };
        let set = state.begun_set().ok_or_else(none)?;
        let leaf = set.values()?.leaf(value).ok_or_else(none)?;
        let mut written = state.clone();
        written.tokens.clone_from(&leaf.tokens);
        let mut after = self.set_ended(&written, set, set.trie().map(|_| value), &[leaf])?;
        self.settle(&mut after);
        Ok(after)
    }

    fn set_ended(
        &self,
        state: &FormState,
        set: &SlotSet,
        number: Option<LeafId>,
        leaves: &[trie_core::Leaf],
    ) -> Result<FormState, FormError> {
        let Some(Part::Slot { name, values }) = self.form.parts().get(state.part) else {
            return Err(FormError::NoSlot { index: state.part });
        };
        let damaged = || FormError::Damaged { slot: name.clone() };
        if leaves.is_empty() {
            return Err(damaged());
        }
        let number = number.and_then(|number| set.order.get(number.index()).copied());
        let value = match (values, number) {
            (SlotValues::Texts(values), Some(number)) => values[number].clone(),
            // Its texts were listed, and each leaf has its text for a name.
            (SlotValues::Rule(_), Some(_)) => leaves.last().and_then(|leaf| leaf.name.clone()).unwrap_or_default(),
            (SlotValues::Texts(_) | SlotValues::Rule(_), None) => return Err(damaged()),
            (SlotValues::Tokens(constraint), _) => {
                let tokens: Vec<TokenId> = leaves.iter().flat_map(|leaf| leaf.tokens.iter().copied()).collect();
                let healed = constraint.first_set().map_or(0, Trie::heal_bytes);
                String::from_utf8_lossy(self.spell(&tokens).get(healed..).unwrap_or_default()).into_owned()
            }
        };
        let before = &*state.before;
        let ahead = format!("{value}{}", self.form.literal(state.part + 1));
        let text = format!("{}{ahead}", before.text);
        let rest = (before.rest + ahead.len()).saturating_sub(self.bytes_of(&state.tokens));
        let tokens = [before.tokens.as_slice(), &state.tokens].concat();
        // A set of tokens is called by its names.
        let names: Option<String> = leaves.iter().map(|leaf| leaf.name.clone()).collect();
        let field = FilledField {
            name: name.clone(),
            value: names.unwrap_or(value),
            index: number,
            tokens: state.tokens.clone(),
        };
        self.next_part(state, field, WrittenTokens { text, rest, tokens }, None)
    }

    fn rule_ended(
        &self,
        state: &FormState,
        rule: &SlotRule,
        at: &AnyState,
        whole: Option<usize>,
    ) -> Result<FormState, FormError> {
        let rest = state.before.rest;
        let written = self.spell(&state.tokens);
        let (end, tokens) = match (rule.suffix_written(at), whole) {
            (Some(behind), _) => (written.len() - behind, state.tokens.len()),
            // Another token ended it, or it was cut off.
            (None, _) if rule.may_end(at) => (written.len(), state.tokens.len()),
            (None, Some(whole)) => (self.bytes_of(&state.tokens[..whole]), whole),
            (None, None) => {
                let name = self.name_of(state.part);
                let text = String::from_utf8_lossy(written.get(rest..).unwrap_or_default()).into_owned();
                return Err(FormError::PatternCut { name, text, max_tokens: rule.max_tokens().unwrap_or_default() });
            }
        };
        let value = String::from_utf8_lossy(written.get(rest..end).unwrap_or_default()).into_owned();
        let mut state = state.clone();
        state.tokens.truncate(tokens);
        self.keep_value(&state, rest, value)
    }

    /// The state after a text that the tokens of the part spell, behind `rest` bytes of earlier text. Text that these
    /// tokens spell beyond it is dropped.
    fn keep_value(&self, state: &FormState, rest: usize, value: String) -> Result<FormState, FormError> {
        let then = match self.form.parts().get(state.part) {
            Some(Part::Text { stops, .. }) => {
                let written = self.spell(&state.tokens);
                let written = written.get(rest + value.len()..).unwrap_or_default();
                self.form.text_after_stop(state.part, stops, written, self.options.overshoot)
            }
            _ => self.form.literal(state.part + 1).to_owned(),
        };
        let (field, written) = self.with_field(state, rest, value, &then);
        self.next_part(state, field, written, None)
    }

    /// The field of such a text, and the tokens that are written with it if the text `then` follows.
    pub(super) fn with_field(
        &self,
        state: &FormState,
        rest: usize,
        value: String,
        then: &str,
    ) -> (FilledField, WrittenTokens) {
        let before = &*state.before;
        let text = format!("{}{value}{then}", before.text);
        let from = before.text.len() - rest;
        let ahead = &text.as_bytes()[from..];
        let (mut spelled, mut kept) = (0, 0);
        while let Some(piece) = state.tokens.get(kept).and_then(|&token| self.vocab.piece(token)) {
            if self.takes_back() && !ahead[spelled..].starts_with(piece) {
                break;
            }
            spelled += piece.len();
            kept += 1;
        }
        let tokens = state.tokens[..kept].to_vec();
        let field = FilledField { name: self.name_of(state.part), value, index: None, tokens: tokens.clone() };
        let tokens = [before.tokens.as_slice(), &tokens].concat();
        let rest = ahead.len().saturating_sub(spelled);
        (field, WrittenTokens { text, rest, tokens })
    }

    /// The state at the next part: see [`enter_part`](Self::enter_part).
    pub(super) fn next_part(
        &self,
        state: &FormState,
        field: FilledField,
        written: WrittenTokens,
        from: Option<&WrittenTokens>,
    ) -> Result<FormState, FormError> {
        let filled = Some(Arc::new(FilledFields { field, before: state.filled.clone() }));
        self.enter_part(filled, written, from, state.part + 1)
    }

    fn name_of(&self, part: usize) -> String {
        self.form.parts().get(part).and_then(Part::name).unwrap_or_default().to_owned()
    }

    pub(super) fn spell(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.vocab.piece(token).unwrap_or_default()).copied().collect()
    }

    fn bytes_of(&self, tokens: &[TokenId]) -> usize {
        tokens.iter().map(|&token| self.vocab.piece(token).map_or(0, <[u8]>::len)).sum()
    }
}

fn fail(state: &FormState, error: FormError) -> FormState {
    FormState { at: PartPosition::Failed(Problem::new(error)), ..state.clone() }
}

/// The text without an incomplete character at its end.
fn whole_characters(bytes: &[u8]) -> String {
    let begun = bytes.utf8_chunks().last().map_or(0, |chunk| {
        let cut = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if cut { chunk.invalid().len() } else { 0 }
    });
    String::from_utf8_lossy(&bytes[..bytes.len() - begun]).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_character_that_is_cut_off_is_left_out() {
        for (bytes, text) in [(&b"a\xc3"[..], "a"), (b"a\xff", "a\u{fffd}"), (b"\xc3\xa4", "ä"), (b"", "")] {
            assert_eq!(super::whole_characters(bytes), text);
        }
    }
}
