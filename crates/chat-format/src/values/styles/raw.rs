//! Text between tags that is a string, or another value, or either: held to a shape, and made JSON.

use crate::values::blanks::{Blanks, is_blank};
use crate::values::held::{Held, Loose, listed};
use crate::values::quoted_text::QuotedText;
use crate::values::reader::Step;
use crate::values::styles::literal::Literal;
use crate::values::syntax::Syntax;
use crate::values::utf8::Utf8;
use crate::values::watch::{Lenient, Watch};
use crate::values::{Nobody, Out, Rest};
use trie_schema::Event;
use trie_schema::Types;
use trie_schema::{ValueId, ValueState, Values};

/// A value between tags, in strict use: all that it may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Raw {
    /// As a string, which is the text itself.
    text: Option<(ValueState, Utf8)>,
    /// As any other value.
    literal: Option<(Literal, ValueState, Blanks)>,
}

impl Raw {
    /// Before a value of these types.
    pub(crate) fn new(values: &Values, state: &ValueState, types: Types) -> Self {
        let text = state.of_types(types.and(Types::STRING)).and_then(|mut state| {
            let fits = values.tell(&mut state, Event::TextOpen);
            fits.then_some((state, Utf8::WHOLE))
        });
        // A string that may be anything is all that else there is.
        let free = text.as_ref().is_some_and(|(state, _)| state.is_free_text());
        let others = if free { None } else { state.of_types(types.without(Types::STRING)) };
        Self { text, literal: others.map(|state| (Literal::new(), state, Blanks::default())) }
    }

    /// Reads a byte; whether the value may go on so.
    pub(crate) fn step(&mut self, values: &Values, syntax: &Syntax, byte: u8) -> bool {
        if let Some((state, utf8)) = &mut self.text {
            match utf8.step(byte) {
                Some(next) if values.tell(state, Event::Text(byte)) => *utf8 = next,
                _ => self.text = None,
            }
        }
        if let Some((literal, state, blanks)) = &mut self.literal {
            let over = literal.may_end(|| values.may_number_end(state));
            let fits = if over && is_blank(byte) {
                if !literal.is_over() {
                    values.tell(state, Event::NumberEnd);
                    literal.end();
                }
                blanks.step(byte, 0).is_some_and(|next| {
                    *blanks = next;
                    true
                })
            } else {
                let step = literal.step(syntax, byte, &mut Held { values, state }, &mut Nobody);
                matches!(step, Step::Inside | Step::Done)
            };
            if !fits {
                self.literal = None;
            }
        }
        self.text.is_some() || self.literal.is_some()
    }

    /// Returns whether the value may be over.
    pub(crate) fn may_end(&self, values: &Values) -> bool {
        let text = self.text.as_ref().is_some_and(|(state, utf8)| utf8.is_whole() && values.may_text_end(state));
        let ends =
            |(literal, state, _): &(Literal, ValueState, Blanks)| literal.may_end(|| values.may_number_end(state));
        text || self.literal.as_ref().is_some_and(ends)
    }

    /// Returns whether it may be a string that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        self.text.as_ref().is_some_and(|(state, _)| state.is_unlisted_text())
    }

    /// Returns whether it must be a string of a list.
    pub(crate) fn is_listed(&self) -> bool {
        self.literal.is_none() && self.text.as_ref().is_some_and(|(state, _)| state.is_listed())
    }

    /// As [`listed`], for text that is raw.
    pub(crate) fn listed(&self, most: usize, to: &mut Vec<Rest>) -> bool {
        self.literal.is_none() && self.text.as_ref().is_some_and(|(state, _)| listed(state, most, to))
    }

    /// Returns whether the value may go on with these bytes.
    pub(crate) fn takes(&self, values: &Values, syntax: &Syntax, bytes: &[u8]) -> bool {
        let mut raw = self.clone();
        bytes.iter().all(|&byte| raw.step(values, syntax, byte))
    }

    /// As [`ValueState::forget_names`], for a literal.
    pub(crate) fn forget_names(&mut self) {
        if let Some((_, state, _)) = &mut self.literal {
            state.forget_names();
        }
    }

    #[cfg(test)]
    pub(crate) fn distance(&self) -> u32 {
        let text = self.text.as_ref().map(|(state, _)| state.distance());
        let literal = self.literal.as_ref().map(|(_, state, _)| state.distance());
        text.into_iter().chain(literal).min().unwrap_or(u32::MAX / 4)
    }

    /// Returns the state after the value; `None` if the value cannot end here.
    pub(crate) fn end(mut self, values: &Values) -> Option<ValueState> {
        let text = self.text.take().and_then(|(mut state, utf8)| {
            (utf8.is_whole() && values.tell(&mut state, Event::TextClose)).then_some(state)
        });
        let literal = self.literal.take().and_then(|(literal, mut state, _)| {
            let ends = literal.may_end(|| values.may_number_end(&state));
            (ends && (literal.is_over() || values.tell(&mut state, Event::NumberEnd))).then_some(state)
        });
        match (text, literal) {
            (Some(text), literal) => Some(text.or(literal)),
            (None, literal) => literal,
        }
    }
}

/// The JSON of a text between tags: another value where one is asked for that it is, else a string where it may be one,
/// else what it looks like.
pub(crate) fn json_of(values: &Values, id: ValueId, types: Types, text: &[u8]) -> Vec<u8> {
    let had = values.types(id).and(types);
    let types = if had == Types::NONE { types } else { had };
    let any = values.is_any(id);
    let others = if any { types } else { types.without(Types::STRING) };
    if let Some(mut state) = values.begin(id).of_types(others) {
        let mut held = Loose(Held { values, state: &mut state });
        if let Some(json) = literal(text, &mut held) {
            return json;
        }
    }
    if !any && types.meets(Types::STRING) && std::str::from_utf8(text).is_ok_and(|text| is_string(values, id, text)) {
        return string(text);
    }
    let fits = |json: &Vec<u8>| any || !types.meets(Types::STRING) || type_of(json).meets(others);
    literal(text, &mut Lenient)
        .filter(fits)
        .filter(|json| !any || type_of(json).meets(types))
        .unwrap_or_else(|| string(text))
}

fn is_string(values: &Values, id: ValueId, text: &str) -> bool {
    let Some(mut state) = values.begin(id).of_types(Types::STRING) else { return false };
    values.tell(&mut state, Event::TextOpen)
        && text.bytes().all(|byte| values.tell(&mut state, Event::Text(byte)))
        && values.may_text_end(&state)
}

/// A text as a JSON string.
pub(crate) fn string(text: &[u8]) -> Vec<u8> {
    let mut json = QuotedText::default();
    json.json(b"\"");
    crate::values::escaped::write(text, &mut json);
    json.json(b"\"");
    json.0
}

/// A text that is a literal as a whole; in white space, perhaps.
fn literal<W: Watch>(text: &[u8], watch: &mut W) -> Option<Vec<u8>> {
    let syntax = Syntax::both();
    let mut json = QuotedText::default();
    let (mut at, mut over) = (Literal::new(), false);
    for &byte in text {
        if over {
            if !is_blank(byte) {
                return None;
            }
            continue;
        }
        match at.step(&syntax, byte, watch, &mut json) {
            Step::Inside => {}
            Step::Done => over = true,
            Step::DoneBefore if is_blank(byte) => over = true,
            _ => return None,
        }
    }
    let ends = over || (at.may_end(|| true) && watch.on(Event::NumberEnd));
    ends.then_some(json.0)
}

/// A value as Python prints it, at the beginning of a text: its JSON, and how much of the text it is.
pub(crate) fn printed(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let syntax = Syntax::both();
    let (mut at, mut json) = (Literal::new(), QuotedText::default());
    for (number, &byte) in text.iter().enumerate() {
        match at.step(&syntax, byte, &mut Lenient, &mut json) {
            Step::Inside => {}
            Step::Done => return Some((json.0, number + 1)),
            _ => return None,
        }
    }
    None
}

/// The type of a JSON text.
fn type_of(json: &[u8]) -> Types {
    match json.first() {
        Some(b'{') => Types::OBJECT,
        Some(b'[') => Types::ARRAY,
        Some(b'"') => Types::STRING,
        Some(b't' | b'f') => Types::BOOLEAN,
        Some(b'n') => Types::NULL,
        _ => Types::NUMBER,
    }
}
