//! Reading the arguments of a call.

use crate::dialect::Arguments;
use crate::values::blanks::{Gaps, is_blank};
use crate::values::held::{Held, listed};
use crate::values::styles::elements::{Elements, ElementsAt};
use crate::values::styles::guard::{Guard, Strict};
use crate::values::styles::json_text::JsonText;
use crate::values::styles::literal::Literal;
use crate::values::styles::pairs::{Pairs, PairsAt};
use crate::values::styles::tagged::{Tagged, TaggedAt};
use crate::values::syntax::Syntax;
use crate::values::watch::{Lenient, Watch};
use crate::values::{CONTROL, Nobody, Out, Rest};
use trie_schema::Event;
use trie_schema::{ValueId, Values};

/// Reads arguments of one style.
#[derive(Debug)]
pub(crate) struct Reader {
    strict: bool,
    kind: Kind,
    /// Syntax of values between tags that are not strings.
    both: Syntax,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are few readers")]
enum Kind {
    /// An object, most often JSON.
    Json(Syntax),
    /// JSON in a JSON string.
    JsonText(Syntax),
    Pairs(Pairs),
    Tagged(Tagged),
    Elements(Elements),
}

/// State of a reader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ArgsState {
    id: ValueId,
    at: At,
    /// Only in strict use.
    strict: Option<Strict>,
    /// True if the object is begun, in strict use.
    begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum At {
    Json(Literal),
    JsonText(JsonText),
    Pairs(PairsAt),
    Tagged(TaggedAt),
    Elements(ElementsAt),
    /// In the word that says that there are none.
    Nothing {
        python: bool,
        read: u8,
    },
}

/// Role of a byte that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Part of the arguments; more must come.
    Inside,
    /// The last byte of the arguments.
    Done,
    /// The arguments were over before this byte, which is not part of them.
    DoneBefore,
    /// It cannot come here.
    Dead,
}

impl Reader {
    /// A reader of these arguments. `after` is the text after them, without the white space around it: the arguments
    /// end with it, and the reader takes it too; JSON alone ends at its own closing brace. `gaps` limits the white
    /// space of a strict reader.
    pub(crate) fn new(arguments: &Arguments, after: &str, strict: bool, gaps: Gaps) -> Self {
        let kind = match arguments {
            Arguments::Json => Kind::Json(Syntax::json().with_gaps(gaps)),
            Arguments::JsonText => Kind::JsonText(Syntax::json().with_gaps(gaps)),
            Arguments::Literal(style) => Kind::Json(Syntax::of(style).with_gaps(gaps)),
            Arguments::Tagged(keyed) => Kind::Tagged(Tagged::new(keyed, after)),
            Arguments::Keywords(style) => Kind::Pairs(Pairs::new(style, b'=', after, gaps)),
            Arguments::Pairs(style) => Kind::Pairs(Pairs::new(style, b':', after, gaps)),
            Arguments::Elements { mark, quoted } => Kind::Elements(Elements::new(mark, *quoted, after)),
        };
        Self { strict, kind, both: Syntax::both().with_gaps(gaps) }
    }

    /// Returns the state before arguments that must match the schema `id`.
    pub(crate) fn begin(&self, values: &Values, id: ValueId) -> ArgsState {
        let at = match &self.kind {
            // A lenient reader finds out which of both it is.
            Kind::JsonText(_) if self.strict => At::JsonText(JsonText::new()),
            Kind::Json(_) | Kind::JsonText(_) => At::Json(Literal::new()),
            Kind::Pairs(_) => At::Pairs(Pairs::begin()),
            Kind::Tagged(_) => At::Tagged(Tagged::begin()),
            Kind::Elements(_) => At::Elements(Elements::begin(id)),
        };
        let strict = self.strict.then(|| Strict::new(values, id));
        ArgsState { id, at, strict, begun: false }
    }

    /// Reads a byte of the arguments.
    #[inline]
    pub(crate) fn step(&self, values: &Values, state: &mut ArgsState, byte: u8, out: &mut impl Out) -> Step {
        let ArgsState { id, at, strict, begun } = state;
        // All but JSON is in an object from its first byte.
        if let Some(strict) = strict
            && !*begun
            && !matches!(at, At::Json(_) | At::JsonText(_))
        {
            *begun = true;
            if !values.tell(&mut strict.state, Event::ObjectOpen) {
                return Step::Dead;
            }
        }
        // White space before a JSON string is none of its JSON.
        if matches!((&self.kind, &*at), (Kind::JsonText(_), At::Json(literal)) if literal.is_fresh()) && is_blank(byte)
        {
            return Step::Inside;
        }
        if let At::Json(literal) = at
            && literal.is_fresh()
            && strict.is_none()
            && matches!(byte, b'n' | b'N' | b'}')
        {
            if byte == b'}' {
                // The object around the arguments ends without any.
                out.json(b"{}");
                return Step::DoneBefore;
            }
            *at = At::Nothing { python: byte == b'N', read: 1 };
            return Step::Inside;
        }
        if let At::Nothing { python, read } = at {
            let word = if *python { b"None" } else { b"null" };
            if word[usize::from(*read)] != byte {
                return Step::Dead;
            }
            *read += 1;
            if usize::from(*read) < word.len() {
                return Step::Inside;
            }
            out.json(b"{}");
            return Step::Done;
        }
        if let At::Json(literal) = at
            && byte == b'"'
            && literal.is_fresh()
            && strict.is_none()
        {
            *at = At::JsonText(JsonText::opened());
            return Step::Inside;
        }
        match (&self.kind, at) {
            (Kind::JsonText(syntax), At::JsonText(text)) if strict.is_some() => {
                strict_json_text(syntax, values, text, strict, byte, out)
            }
            (Kind::Json(syntax) | Kind::JsonText(syntax), At::JsonText(text)) => {
                text.step(syntax, byte, &mut Lenient, out)
            }
            (Kind::Json(syntax) | Kind::JsonText(syntax), At::Json(literal)) => match strict {
                Some(strict) => json(syntax, literal, byte, &mut Held { values, state: &mut strict.state }, out),
                None => json(syntax, literal, byte, &mut Lenient, out),
            },
            (Kind::Pairs(pairs), At::Pairs(at)) => match strict {
                Some(strict) => pairs.step(at, byte, &mut Held { values, state: &mut strict.state }, out),
                None => pairs.step(at, byte, &mut Lenient, out),
            },
            (Kind::Tagged(tagged), At::Tagged(at)) => {
                let mut guard = Guard { values, strict: strict.as_mut(), syntax: &self.both };
                tagged.step(at, *id, byte, &mut guard, out)
            }
            (Kind::Elements(elements), At::Elements(at)) => {
                let mut guard = Guard { values, strict: strict.as_mut(), syntax: &self.both };
                elements.step(at, byte, &mut guard, out)
            }
            // A state of another reader.
            _ => Step::Dead,
        }
    }
}

/// JSON text, held; a backslash comes only where an escape may follow it.
fn strict_json_text(
    syntax: &Syntax,
    values: &Values,
    text: &mut JsonText,
    strict: &mut Option<Strict>,
    byte: u8,
    out: &mut impl Out,
) -> Step {
    let Some(strict) = strict else { return Step::Dead };
    let step = text.step(syntax, byte, &mut Held { values, state: &mut strict.state }, out);
    if step == Step::Inside && text.is_escaping() {
        let goes_on = |next: u8| {
            let (mut text, mut state) = (text.clone(), strict.state.clone());
            text.step(syntax, next, &mut Held { values, state: &mut state }, &mut Nobody) != Step::Dead
        };
        if !br#""\nrt"#.iter().any(|&next| goes_on(next)) {
            return Step::Dead;
        }
    }
    step
}

impl Reader {
    /// Keeps no names of keys that are being written, and may come again then, and none of elements: for walks over a
    /// vocabulary, in which no token has two keys of any name as a whole. What closes an element has to be judged
    /// otherwise, see [`Reader::closing`].
    pub(crate) fn forget_names(&self, values: &Values, state: &mut ArgsState) {
        let ArgsState { at, strict, .. } = state;
        let Some(strict) = strict else { return };
        if let (Kind::Elements(elements), At::Elements(at)) = (&self.kind, at) {
            elements.forget_names(at, &mut Guard { values, strict: Some(strict), syntax: &self.both });
        }
        strict.state.forget_names();
        strict.raw.iter_mut().for_each(|raw| raw.forget_names());
    }

    /// Returns a number of characters of which any may come next, as [`trie_rules::Rule::free_chars`] says; only in
    /// strict use.
    pub(crate) fn free_chars(&self, state: &ArgsState) -> u32 {
        let is_text = match (&self.kind, &state.at) {
            (Kind::Json(syntax), At::Json(literal)) => literal.is_plain_text(syntax),
            (Kind::Pairs(pairs), At::Pairs(at)) => pairs.is_plain_text(at),
            _ => false,
        };
        state
            .strict
            .as_ref()
            .filter(|strict| is_text && strict.raw.is_none())
            .map_or(0, |strict| strict.state.free_chars())
    }

    /// Returns the text that closing elements begin with, before their names.
    pub(crate) fn closing(&self) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Elements(elements) => Some(elements.closing()),
            _ => None,
        }
    }
}

impl ArgsState {
    /// Returns whether a text of a list must be written here, or the rest of one; only in strict use.
    pub(crate) fn is_listed(&self) -> bool {
        let Some(strict) = &self.strict else { return false };
        strict.raw.as_ref().map_or_else(|| strict.state.is_listed(), |raw| raw.is_listed())
    }

    /// Returns whether nothing but listed texts may be written next, and what stands around them.
    pub(crate) fn leads_to_listed(&self, values: &Values) -> bool {
        let Some(strict) = &self.strict else { return false };
        strict.raw.as_ref().map_or_else(|| values.leads_to_listed(&strict.state), |raw| raw.is_listed())
    }

    /// Adds what is left of each text; `false` where none is listed, or they are more than so many.
    pub(crate) fn listed(&self, most: usize, to: &mut Vec<Rest>) -> bool {
        let Some(strict) = &self.strict else { return false };
        match &strict.raw {
            Some(raw) => raw.listed(most, to),
            None => listed(&strict.state, most, to),
        }
    }
}

#[cfg(test)]
impl ArgsState {
    /// Estimates the distance to the end of the arguments.
    pub(super) fn distance(&self) -> u32 {
        let raw = |strict: &Strict| strict.raw.as_ref().map(|raw| raw.distance());
        // Names in what may be text are only held at their end.
        let name = if matches!(&self.at, At::Elements(at) if at.is_in_open_name()) { 60 } else { 0 };
        let held = |strict: &Strict| raw(strict).unwrap_or_else(|| 1 + strict.state.distance());
        name + self.strict.as_ref().map_or(0, held)
    }
}

impl Reader {
    /// Reads bytes at once that are nothing but more of a string, and says how many: for each, [`Reader::step`] would
    /// say [`Step::Inside`]. With 0 the next byte needs a step. Only lenient readers do more than that.
    #[inline]
    pub(crate) fn run(&self, state: &mut ArgsState, bytes: &[u8], out: &mut impl Out) -> usize {
        if self.strict {
            return 0;
        }
        match (&self.kind, &state.at) {
            (Kind::Json(syntax) | Kind::JsonText(syntax), At::Json(literal)) => literal.run(syntax, bytes, out),
            (Kind::Json(syntax) | Kind::JsonText(syntax), At::JsonText(text)) => text.run(syntax, bytes, out),
            (Kind::Pairs(pairs), At::Pairs(at)) => pairs.run(at, bytes, out),
            (Kind::Tagged(tagged), At::Tagged(at)) => tagged.run(at, bytes, out),
            (Kind::Elements(_), At::Elements(at)) => Elements::run(at, bytes, out),
            _ => 0,
        }
    }
}

#[inline]
fn json<W: Watch>(syntax: &Syntax, literal: &mut Literal, byte: u8, watch: &mut W, out: &mut impl Out) -> Step {
    // Arguments are an object.
    if literal.is_fresh() && byte != b'{' && !is_blank(byte) || W::STRICT && byte == CONTROL {
        return Step::Dead;
    }
    literal.step(syntax, byte, watch, out)
}
