//! Text between tags that is a string, or another value, or either: held to a shape, and made JSON.

use crate::values::blanks::{Blanks, is_blank};
use crate::values::hold::{Held, Hold, Loose};
use crate::values::quoted_text::QuotedText;
use crate::values::reader::Step;
use crate::values::styles::literal::Literal;
use crate::values::syntax::Syntax;
use crate::values::types::Types;
use crate::values::utf8::Utf8;
use crate::values::watch::{Event, Lenient, Watch};
use crate::values::{Nobody, Out, Rest, ShapeId, Shapes};

/// A value between tags, in strict use: all that it may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Raw {
    /// As a string, which is the text itself.
    text: Option<(Hold, Utf8)>,
    /// As any other value.
    literal: Option<(Literal, Hold, Blanks)>,
}

impl Raw {
    /// Before a value of these types.
    pub(crate) fn new(shapes: &Shapes, hold: &Hold, types: Types) -> Self {
        let text = hold.of_types(types.and(Types::STRING)).and_then(|mut hold| {
            let fits = hold.on(shapes, Event::TextOpen);
            fits.then_some((hold, Utf8::WHOLE))
        });
        // A string that may be anything is all that else there is.
        let free = text.as_ref().is_some_and(|(hold, _)| hold.is_free_text(shapes));
        let others = if free { None } else { hold.of_types(types.without(Types::STRING)) };
        Self { text, literal: others.map(|hold| (Literal::new(), hold, Blanks::default())) }
    }

    /// Reads a byte; whether the value may go on so.
    pub(crate) fn step(&mut self, shapes: &Shapes, syntax: &Syntax, byte: u8) -> bool {
        if let Some((hold, utf8)) = &mut self.text {
            match utf8.step(byte) {
                Some(next) if hold.on(shapes, Event::Text(byte)) => *utf8 = next,
                _ => self.text = None,
            }
        }
        if let Some((literal, hold, blanks)) = &mut self.literal {
            let over = literal.may_end(|| hold.may_number_end(shapes));
            let fits = if over && is_blank(byte) {
                if !literal.is_over() {
                    hold.on(shapes, Event::NumberEnd);
                    literal.end();
                }
                blanks.step(byte, 0).is_some_and(|next| {
                    *blanks = next;
                    true
                })
            } else {
                let step = literal.step(syntax, byte, &mut Held { shapes, hold }, &mut Nobody);
                matches!(step, Step::Inside | Step::Done)
            };
            if !fits {
                self.literal = None;
            }
        }
        self.text.is_some() || self.literal.is_some()
    }

    /// Whether the value may be over.
    pub(crate) fn may_end(&self, shapes: &Shapes) -> bool {
        self.text.as_ref().is_some_and(|(hold, utf8)| utf8.is_whole() && hold.may_end(shapes))
            || self.literal.as_ref().is_some_and(|(literal, hold, _)| literal.may_end(|| hold.may_number_end(shapes)))
    }

    /// Whether it may be a string that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        self.text.as_ref().is_some_and(|(hold, _)| hold.is_unlisted_text())
    }

    /// Whether it must be a string of a list.
    pub(crate) fn is_listed(&self) -> bool {
        self.literal.is_none() && self.text.as_ref().is_some_and(|(hold, _)| hold.is_listed())
    }

    /// See [`Hold::listed`].
    pub(crate) fn listed(&self, shapes: &Shapes, most: usize, to: &mut Vec<Rest>) -> bool {
        self.literal.is_none() && self.text.as_ref().is_some_and(|(hold, _)| hold.listed(shapes, most, to))
    }

    /// Whether the value may go on with these bytes.
    pub(crate) fn takes(&self, shapes: &Shapes, syntax: &Syntax, bytes: &[u8]) -> bool {
        let mut raw = self.clone();
        bytes.iter().all(|&byte| raw.step(shapes, syntax, byte))
    }

    /// See [`Hold::forget_names`].
    pub(crate) fn forget_names(&mut self) {
        if let Some((_, hold, _)) = &mut self.literal {
            hold.forget_names();
        }
    }

    #[cfg(test)]
    pub(crate) fn distance(&self, shapes: &Shapes) -> u32 {
        let text = self.text.as_ref().map(|(hold, _)| hold.distance(shapes));
        let literal = self.literal.as_ref().map(|(_, hold, _)| hold.distance(shapes));
        text.into_iter().chain(literal).min().unwrap_or(u32::MAX / 4)
    }

    /// What follows the value; `None` if it cannot be over.
    pub(crate) fn end(mut self, shapes: &Shapes) -> Option<Hold> {
        let text = self
            .text
            .take()
            .and_then(|(mut hold, utf8)| (utf8.is_whole() && hold.on(shapes, Event::TextClose)).then_some(hold));
        let literal = self.literal.take().and_then(|(literal, mut hold, _)| {
            let ends = literal.may_end(|| hold.may_number_end(shapes));
            (ends && (literal.is_over() || hold.on(shapes, Event::NumberEnd))).then_some(hold)
        });
        match (text, literal) {
            (Some(text), literal) => Some(text.or(literal)),
            (None, literal) => literal,
        }
    }
}

/// The JSON of a text between tags: another value where the shape has one that it is,
/// else a string where it may be one, else what it looks like.
pub(crate) fn json_of(shapes: &Shapes, shape: ShapeId, types: Types, text: &[u8]) -> Vec<u8> {
    let had = shapes.types(shape).and(types);
    let types = if had == Types::NONE { types } else { had };
    let any = shapes.is_any(shape);
    let others = if any { types } else { types.without(Types::STRING) };
    let mut hold = Hold::new(shape, others);
    let mut held = Loose(Held { shapes, hold: &mut hold });
    if let Some(json) = literal(text, &mut held) {
        return json;
    }
    if !any && types.meets(Types::STRING) && std::str::from_utf8(text).is_ok_and(|text| is_string(shapes, shape, text))
    {
        return string(text);
    }
    let fits = |json: &Vec<u8>| any || !types.meets(Types::STRING) || type_of(json).meets(others);
    literal(text, &mut Lenient)
        .filter(fits)
        .filter(|json| !any || type_of(json).meets(types))
        .unwrap_or_else(|| string(text))
}

fn is_string(shapes: &Shapes, shape: ShapeId, text: &str) -> bool {
    let mut hold = Hold::new(shape, Types::STRING);
    hold.on(shapes, Event::TextOpen)
        && text.bytes().all(|byte| hold.on(shapes, Event::Text(byte)))
        && hold.may_end(shapes)
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
