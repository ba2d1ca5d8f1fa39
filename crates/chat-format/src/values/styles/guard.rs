//! State of a strict reader of arguments between tags, besides its position.

use crate::values::styles::raw::Raw;
use crate::values::syntax::Syntax;
use trie_schema::Event;
use trie_schema::Types;
use trie_schema::{ValueId, ValueState, Values};

/// Position of the arguments in their schema.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Strict {
    pub(crate) state: ValueState,
    /// The value that is read, where its type is open.
    pub(crate) raw: Option<Box<Raw>>,
}

/// The same, to be asked; lenient without it.
pub(crate) struct Guard<'a> {
    pub(crate) values: &'a Values,
    pub(crate) strict: Option<&'a mut Strict>,
    pub(crate) syntax: &'a Syntax,
}

impl Strict {
    /// Creates a guard that stands before the arguments.
    pub(crate) fn new(values: &Values, id: ValueId) -> Self {
        Self { state: values.begin(id), raw: None }
    }
}

impl Guard<'_> {
    pub(crate) fn is_strict(&self) -> bool {
        self.strict.is_some()
    }

    /// Reads an event; whether it may come.
    #[inline]
    pub(crate) fn on(&mut self, event: Event) -> bool {
        let values = self.values;
        self.strict.as_mut().is_none_or(|strict| values.tell(&mut strict.state, event))
    }

    /// Returns whether these events may come.
    pub(crate) fn may(&self, events: &[Event]) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut state = strict.state.clone();
        events.iter().all(|&event| self.values.tell(&mut state, event))
    }

    /// Returns whether a value of one of these types may come, at the end of its key.
    pub(crate) fn may_be(&self, types: Types) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut state = strict.state.clone();
        self.values.tell(&mut state, Event::TextClose) && self.values.types_here(&state).meets(types)
    }

    /// Returns whether a list may come here that has items.
    pub(crate) fn may_have_items(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut state = strict.state.clone();
        self.values.tell(&mut state, Event::ArrayOpen) && self.values.first_item(&mut state)
    }

    /// The first item of a list comes.
    pub(crate) fn first_item(&mut self) -> bool {
        let values = self.values;
        self.strict.as_mut().is_none_or(|strict| values.first_item(&mut strict.state))
    }

    /// A value begins: text, or one of these types.
    pub(crate) fn value(&mut self, text: bool, types: Types) -> bool {
        let values = self.values;
        let Some(strict) = &mut self.strict else { return true };
        if text {
            let Some(state) = strict.state.of_types(types) else { return false };
            strict.state = state;
            return values.tell(&mut strict.state, Event::TextOpen);
        }
        strict.raw = Some(Box::new(Raw::new(values, &strict.state, types)));
        true
    }

    /// A byte of a value.
    #[inline]
    pub(crate) fn text(&mut self, byte: u8) -> bool {
        let (values, syntax) = (self.values, self.syntax);
        let Some(strict) = &mut self.strict else { return true };
        match &mut strict.raw {
            Some(raw) => raw.step(values, syntax, byte),
            None => values.tell(&mut strict.state, Event::Text(byte)),
        }
    }

    /// Returns whether the value may be over.
    pub(crate) fn may_end(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        strict.raw.as_ref().map_or_else(|| self.values.may_text_end(&strict.state), |raw| raw.may_end(self.values))
    }

    /// Returns whether the value may go on with these bytes.
    pub(crate) fn takes(&self, bytes: &[u8]) -> bool {
        let Some(strict) = &self.strict else { return true };
        match &strict.raw {
            Some(raw) => raw.takes(self.values, self.syntax, bytes),
            None => self.values.takes(&strict.state, bytes),
        }
    }

    /// Returns whether the value may be over after these bytes.
    pub(crate) fn may_end_after(&self, bytes: &[u8]) -> bool {
        let Some(strict) = &self.strict else { return true };
        let mut strict = Strict::clone(strict);
        let mut guard = Guard { values: self.values, strict: Some(&mut strict), syntax: self.syntax };
        bytes.iter().all(|&byte| guard.text(byte)) && guard.may_end()
    }

    /// Returns the state of a strict reader; `None` in other use.
    pub(crate) fn known(&self) -> Option<Strict> {
        self.strict.as_deref().cloned()
    }

    /// Returns the state after the value, if the value may end here.
    pub(crate) fn after_value(&self) -> Option<Strict> {
        let mut strict = Strict::clone(self.strict.as_deref()?);
        let mut guard = Guard { values: self.values, strict: Some(&mut strict), syntax: self.syntax };
        guard.end().then_some(strict)
    }

    /// The same with other knowledge.
    pub(crate) fn with<'s>(&'s self, strict: &'s mut Strict) -> Guard<'s> {
        Guard { values: self.values, strict: Some(strict), syntax: self.syntax }
    }

    /// Returns whether the value is a string that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        let Some(strict) = &self.strict else { return true };
        match &strict.raw {
            Some(raw) => raw.is_unlisted_text(),
            None => strict.state.is_unlisted_text(),
        }
    }

    /// The value is over.
    pub(crate) fn end(&mut self) -> bool {
        let values = self.values;
        let Some(strict) = &mut self.strict else { return true };
        match strict.raw.take() {
            Some(raw) => raw.end(values).is_some_and(|state| {
                strict.state = state;
                true
            }),
            None => values.tell(&mut strict.state, Event::TextClose),
        }
    }
}
