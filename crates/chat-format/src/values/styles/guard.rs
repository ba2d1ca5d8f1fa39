//! What a strict reader of arguments between tags knows besides where it is.

use crate::values::hold::Hold;
use crate::values::styles::raw::Raw;
use crate::values::syntax::Syntax;
use crate::values::types::Types;
use crate::values::watch::Event;
use crate::values::{ShapeId, Shapes};

/// Where the arguments are in their shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Strict {
    pub(crate) hold: Hold,
    /// The value that is read, where its type is open.
    pub(crate) raw: Option<Box<Raw>>,
}

/// The same, to be asked; lenient without it.
pub(crate) struct Guard<'a> {
    pub(crate) shapes: &'a Shapes,
    pub(crate) strict: Option<&'a mut Strict>,
    pub(crate) syntax: &'a Syntax,
}

impl Strict {
    /// Before the arguments.
    pub(crate) fn new(shape: ShapeId) -> Self {
        Self { hold: Hold::new(shape, Types::OBJECT), raw: None }
    }
}

impl Guard<'_> {
    pub(crate) fn is_strict(&self) -> bool {
        self.strict.is_some()
    }

    /// Reads an event; whether it may come.
    #[inline]
    pub(crate) fn on(&mut self, event: Event) -> bool {
        let shapes = self.shapes;
        self.strict.as_mut().is_none_or(|strict| strict.hold.on(shapes, event))
    }

    /// Whether these events may come.
    pub(crate) fn may(&self, events: &[Event]) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut hold = strict.hold.clone();
        events.iter().all(|&event| hold.on(self.shapes, event))
    }

    /// Whether a value of one of these types may come, at the end of its key.
    pub(crate) fn may_be(&self, types: Types) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut hold = strict.hold.clone();
        hold.on(self.shapes, Event::TextClose) && hold.types(self.shapes).meets(types)
    }

    /// Whether a list may come here that has items.
    pub(crate) fn may_have_items(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut hold = strict.hold.clone();
        hold.on(self.shapes, Event::ArrayOpen) && hold.first_item(self.shapes)
    }

    /// The first item of a list comes.
    pub(crate) fn first_item(&mut self) -> bool {
        let shapes = self.shapes;
        self.strict.as_mut().is_none_or(|strict| strict.hold.first_item(shapes))
    }

    /// A value begins: text, or one of these types.
    pub(crate) fn value(&mut self, text: bool, types: Types) -> bool {
        let shapes = self.shapes;
        let Some(strict) = &mut self.strict else { return true };
        if text {
            let Some(hold) = strict.hold.of_types(types) else { return false };
            strict.hold = hold;
            return strict.hold.on(shapes, Event::TextOpen);
        }
        strict.raw = Some(Box::new(Raw::new(shapes, &strict.hold, types)));
        true
    }

    /// A byte of a value.
    #[inline]
    pub(crate) fn text(&mut self, byte: u8) -> bool {
        let (shapes, syntax) = (self.shapes, self.syntax);
        let Some(strict) = &mut self.strict else { return true };
        match &mut strict.raw {
            Some(raw) => raw.step(shapes, syntax, byte),
            None => strict.hold.on(shapes, Event::Text(byte)),
        }
    }

    /// Whether the value may be over.
    pub(crate) fn may_end(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        strict.raw.as_ref().map_or_else(|| strict.hold.may_end(self.shapes), |raw| raw.may_end(self.shapes))
    }

    /// Whether the value may go on with these bytes.
    pub(crate) fn takes(&self, bytes: &[u8]) -> bool {
        let Some(strict) = &self.strict else { return true };
        match &strict.raw {
            Some(raw) => raw.takes(self.shapes, self.syntax, bytes),
            None => strict.hold.takes(self.shapes, bytes),
        }
    }

    /// Whether the value may be over after these bytes.
    pub(crate) fn may_end_after(&self, bytes: &[u8]) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut strict = Strict::clone(strict);
        let mut guard = Guard { shapes: self.shapes, strict: Some(&mut strict), syntax: self.syntax };
        bytes.iter().all(|&byte| guard.text(byte)) && guard.may_end()
    }

    /// Returns the state of a strict reader; `None` in other use.
    pub(crate) fn known(&self) -> Option<Strict> {
        self.strict.as_deref().cloned()
    }

    /// What is known once the value is over, if it may be.
    pub(crate) fn after_value(&self) -> Option<Strict> {
        let mut strict = Strict::clone(self.strict.as_deref()?);
        let mut guard = Guard { shapes: self.shapes, strict: Some(&mut strict), syntax: self.syntax };
        guard.end().then_some(strict)
    }

    /// The same with other knowledge.
    pub(crate) fn with<'s>(&'s self, strict: &'s mut Strict) -> Guard<'s> {
        Guard { shapes: self.shapes, strict: Some(strict), syntax: self.syntax }
    }

    /// Whether the value is a string that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        match &strict.raw {
            Some(raw) => raw.is_unlisted_text(),
            None => strict.hold.is_unlisted_text(),
        }
    }

    /// The value is over.
    pub(crate) fn end(&mut self) -> bool {
        let shapes = self.shapes;
        let Some(strict) = &mut self.strict else { return true };
        match strict.raw.take() {
            Some(raw) => raw.end(shapes).is_some_and(|hold| {
                strict.hold = hold;
                true
            }),
            None => strict.hold.on(shapes, Event::TextClose),
        }
    }
}
