//! Tokens that end the stop of free text and begin the next part, for forms whose tokens are not taken back.
//!
//! The rule of a text ends with the last byte of its stop. So the unwritten rest of a stop is passed to the next part
//! as text before it, and the tokens of that part spell both.

use super::constraint::{FormConstraint, inner};
use super::free_text::FreeText;
use super::slot_rule::Crossing;
use super::slot_set::WrittenTokens;
use super::state::{FormState, PartPosition};
use super::{Overshoot, Part};
use trie_core::{AnyConstraint, AnyState, Constraint, Mask, Scratch, TokenId, Tokens};

/// The most bytes of a character.
const CHARACTER: usize = 4;

impl FormConstraint {
    /// Returns the crossings that are allowed here.
    pub(super) fn crossings_here<'a>(&'a self, state: &'a FormState) -> impl Iterator<Item = &'a Crossing> {
        let (all, stops) = self.crossings(state).unwrap_or_default();
        let longest = stops.iter().map(String::len).max().unwrap_or_default();
        let tail = if all.is_empty() { Vec::new() } else { self.tail(&state.tokens, longest + CHARACTER) };
        all.iter().filter(move |crossing| {
            let (begun, left) = crossing.stop.as_bytes().split_at(crossing.written);
            let Some(value) = tail.strip_suffix(begun) else { return false };
            // Not inside a character, and not where another stop ends the text before.
            let mut text = FreeText::default();
            text.push(&tail, stops);
            text.push(left, stops);
            value.utf8_chunks().last().is_none_or(|chunk| chunk.invalid().is_empty())
                && text.stop() == Some(value.len())
        })
    }

    /// All crossings of the free text that is being written, and its stops.
    fn crossings<'a>(&'a self, state: &'a FormState) -> Option<(&'a [Crossing], &'a [String])> {
        let PartPosition::Rule { rule, .. } = &state.at else { return None };
        let Some(Part::Text { pattern: None, stops, .. }) = self.form.parts().get(state.part) else { return None };
        let find = || stops.iter().flat_map(|stop| self.crossings_beyond(state.part, stop)).collect();
        (self.options.overshoot == Overshoot::Refused).then(|| (&**rule.crossings.get_or_init(find), stops.as_slice()))
    }

    /// Returns the positions from which a token can end a stop and begin the text behind it.
    fn crossings_beyond<'a>(&'a self, part: usize, stop: &'a str) -> impl Iterator<Item = Crossing> + 'a {
        (0..stop.len()).filter_map(move |written| {
            let left = &stop.as_bytes()[written..];
            let goes_beyond = |&token: &TokenId| self.vocab.piece(token).is_some_and(|piece| piece.len() > left.len());
            // Before what follows is worked out: mostly no token is so long.
            self.vocab.tokens_with_prefix(left).iter().find(|token| goes_beyond(token))?;
            let text = self.form.after_stop(part, stop);
            let left_of_stop =
                WrittenTokens { rest: text.len() - written, text, tokens: Vec::new() }.keep_remaining()?;
            let (_, at) = self.beginning(part + 1, &left_of_stop).ok()?;
            let tokens: Box<[TokenId]> = match &at {
                PartPosition::Lead(tokens, _) => tokens.first().copied().into_iter().filter(goes_beyond).collect(),
                at => {
                    let (constraint, at) = inner(at)?;
                    constraint.next(at, &mut Scratch::default()).tokens.iter().filter(goes_beyond).collect()
                }
            };
            (!tokens.is_empty()).then(|| Crossing { stop: stop.to_owned(), written, tokens })
        })
    }

    /// Returns the tokens of a part, and those that extend beyond the stop of a text.
    pub(super) fn or_crossing<'a>(
        &self,
        state: &FormState,
        constraint: &'a AnyConstraint,
        at: &'a AnyState,
        scratch: &'a mut Scratch,
    ) -> Tokens<'a> {
        let mut more: Vec<TokenId> =
            self.crossings_here(state).flat_map(|crossing| &crossing.tokens).copied().collect();
        if more.is_empty() {
            return constraint.next(at, scratch).tokens;
        }
        let (ids, words, scratch) = scratch.split();
        let tokens = constraint.next(at, scratch).tokens;
        let Tokens::Mask(mask) = tokens else {
            more.extend(tokens.iter());
            more.sort_unstable();
            more.dedup();
            ids.clone_from(&more);
            return Tokens::Ids(ids);
        };
        words.clear();
        words.extend(mask.words());
        for token in more {
            words[token.index() / 32] |= 1 << (token.index() % 32);
        }
        Mask::new(words, self.vocab.len()).map_or_else(Tokens::default, Tokens::Mask)
    }

    /// The state after a token that extends beyond the stop of a text: the text is over, and the token belongs to the
    /// next part.
    pub(super) fn cross(&self, state: &FormState, token: TokenId) -> Option<FormState> {
        let crossing = self.crossings_here(state).find(|crossing| crossing.tokens.binary_search(&token).is_ok())?;
        let mut value = self.spell(&state.tokens);
        value.truncate(value.len() - crossing.written);
        let then = self.form.after_stop(state.part, &crossing.stop);
        let (field, before) = self.with_field(state, state.before.rest, String::from_utf8(value).ok()?, &then);
        // As it was found: the same follows every text.
        let left_of_stop = before.keep_remaining()?;
        let mut after = self.next_part(state, field, before, Some(&left_of_stop)).ok()?;
        self.goes_on(&mut after, token)?.then_some(after)
    }

    /// The last bytes that these tokens spell: this many or a few more.
    fn tail(&self, tokens: &[TokenId], bytes: usize) -> Vec<u8> {
        let mut spelled = 0;
        let piece = |token: &TokenId| self.vocab.piece(*token).map_or(0, <[u8]>::len);
        let reached = tokens.iter().rposition(|token| {
            spelled += piece(token);
            spelled >= bytes
        });
        self.spell(&tokens[reached.unwrap_or(0)..])
    }
}
