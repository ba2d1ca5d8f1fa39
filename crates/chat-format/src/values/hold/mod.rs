//! Values held to their shapes: what was read, followed through all alternatives at once.

#[cfg(test)]
mod distance;
mod keys;
mod listed;
mod thread;

pub(crate) use listed::Rest;

use super::shapes::strings::TextAt;
use super::shapes::{ShapeId, Shapes};
use super::types::Types;
use super::watch::{Escaped, Event, Watch};
use std::sync::Arc;
use thread::{Thread, Threads, Top};

/// Where a value is in its shape: sorted, so that equal ones are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hold(Ways);

/// Sorted, and cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Ways {
    One(Thread),
    /// None, or several.
    Several(Arc<[Thread]>),
}

impl FromIterator<Thread> for Hold {
    fn from_iter<I: IntoIterator<Item = Thread>>(threads: I) -> Self {
        let mut threads: Threads = threads.into_iter().collect();
        if threads.len() > 1 {
            threads.sort_unstable();
            threads.dedup();
        }
        match threads.len() {
            1 => Self(Ways::One(threads.remove(0))),
            _ => Self(Ways::Several(threads.into_iter().collect())),
        }
    }
}

/// A [`Hold`] and what it is held to.
pub(crate) struct Held<'a> {
    pub(crate) shapes: &'a Shapes,
    pub(crate) hold: &'a mut Hold,
}

/// The same, where white space is free and texts may be invalid.
pub(crate) struct Loose<'a>(pub(crate) Held<'a>);

impl Hold {
    /// Before a value of this shape.
    pub(crate) fn new(shape: ShapeId, types: Types) -> Self {
        Self(Ways::One(Thread { top: Top::Value(shape, types), below: None }))
    }

    /// The same, where values can only be of these types. `None` where there are none.
    pub(crate) fn of_types(&self, types: Types) -> Option<Self> {
        let hold: Self = self
            .threads()
            .iter()
            .filter_map(|thread| match &thread.top {
                Top::Value(shape, had) if had.meets(types) => {
                    Some(Thread { top: Top::Value(*shape, had.and(types)), below: thread.below.clone() })
                }
                // Inside of what may be anything.
                Top::Free(_) => Some(thread.clone()),
                _ => None,
            })
            .collect();
        hold.is_alive().then_some(hold)
    }

    /// Right after a list began: its first item must come. Whether one can.
    pub(crate) fn first_item(&mut self, shapes: &Shapes) -> bool {
        *self = self.threads().iter().filter_map(|thread| thread.first_item(shapes)).collect();
        self.is_alive()
    }

    /// The types that a value may have that must come.
    pub(crate) fn types(&self, shapes: &Shapes) -> Types {
        let of = |thread: &Thread| match &thread.top {
            Top::Value(shape, types) => shapes.types(*shape).and(*types),
            Top::Free(_) => Types::ALL,
            _ => Types::NONE,
        };
        self.threads().iter().map(of).fold(Types::NONE, Types::or)
    }

    /// Both at once.
    pub(crate) fn or(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        self.threads().iter().chain(other.threads()).cloned().collect()
    }

    /// Whether it is in a string that may be anything.
    pub(crate) fn is_free_text(&self, shapes: &Shapes) -> bool {
        self.threads().iter().any(|thread| thread.is_free_text(shapes))
    }

    /// Whether it is in a string that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        let fits =
            |thread: &Thread| matches!(thread.top, Top::FreeText(_) | Top::Text(_, TextAt::Free | TextAt::Count(_)));
        self.threads().iter().any(fits)
    }

    /// Whether something may come of it.
    pub(crate) fn is_alive(&self) -> bool {
        !self.threads().is_empty()
    }

    #[inline]
    fn threads(&self) -> &[Thread] {
        match &self.0 {
            Ways::One(thread) => std::slice::from_ref(thread),
            Ways::Several(threads) => threads,
        }
    }

    /// Keeps no names of keys that are being written: see [`keys::KeyAt::forget`].
    pub(crate) fn forget_names(&mut self) {
        let is_key = |thread: &Thread| matches!(thread.top, Top::Key(..));
        if self.threads().iter().any(is_key) {
            let forgotten = |mut thread: Thread| {
                if let Top::Key(_, key) = &mut thread.top {
                    key.forget();
                }
                thread
            };
            *self = self.threads().iter().cloned().map(forgotten).collect();
        }
    }

    /// Reads an event; whether anything is left.
    #[inline]
    pub(crate) fn on(&mut self, shapes: &Shapes, event: Event) -> bool {
        if let (Ways::One(thread), Event::Text(_) | Event::Number(_)) = (&mut self.0, event)
            && let Some(fits) = thread.in_place(shapes, event)
        {
            return fits;
        }
        let mut threads = Threads::new();
        for thread in self.threads() {
            thread.advance(shapes, event, &mut threads);
        }
        *self = threads.into_iter().collect();
        self.is_alive()
    }

    /// Whether the string may end here.
    pub(crate) fn may_end(&self, shapes: &Shapes) -> bool {
        self.threads().iter().any(|thread| thread.may_end(shapes))
    }

    /// Whether the number may end here.
    pub(crate) fn may_number_end(&self, shapes: &Shapes) -> bool {
        self.threads().iter().any(|thread| thread.may_number_end(shapes))
    }

    /// Whether the string may go on with these bytes.
    pub(crate) fn takes(&self, shapes: &Shapes, bytes: &[u8]) -> bool {
        let mut hold = self.clone();
        bytes.iter().all(|&byte| hold.on(shapes, Event::Text(byte)))
    }

    /// Strings that are held to something are escaped as few as can be, and in one way each: else an escape could begin
    /// what nothing ends.
    fn may_escape(&self, shapes: &Shapes, escaped: Escaped, quote: u8) -> bool {
        if self.is_free_text(shapes) {
            return true;
        }
        let named =
            [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 8), (b'f', 12), (b'\\', b'\\'), (quote, quote)];
        let is_named = |byte: u8| named.iter().any(|(_, named)| *named == byte);
        let takes = |byte: u8| self.takes(shapes, &[byte]);
        let mut controls = (0..0x20).filter(|byte| !is_named(*byte));
        match escaped {
            Escaped::Begun => named.iter().any(|(_, byte)| takes(*byte)) || controls.any(takes),
            Escaped::Letter(b'u') => controls.any(takes),
            Escaped::Letter(letter) => named.iter().any(|(name, byte)| *name == letter && takes(*byte)),
            Escaped::Hex(digits, value) => {
                let begins = |byte: &u8| u16::from(*byte) >> (4 * (4 - u16::from(digits))) == value;
                controls.filter(begins).any(takes)
            }
        }
    }
}

impl Watch for Held<'_> {
    const STRICT: bool = true;

    #[inline]
    fn on(&mut self, event: Event) -> bool {
        self.hold.on(self.shapes, event)
    }

    fn may_end(&self) -> bool {
        self.hold.may_end(self.shapes)
    }

    fn takes(&self, bytes: &[u8]) -> bool {
        self.hold.takes(self.shapes, bytes)
    }

    fn may_escape(&self, escaped: Escaped, quote: u8) -> bool {
        self.hold.may_escape(self.shapes, escaped, quote)
    }
}

impl Watch for Loose<'_> {
    const STRICT: bool = false;

    #[inline]
    fn on(&mut self, event: Event) -> bool {
        self.0.on(event)
    }

    fn may_end(&self) -> bool {
        true
    }

    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn may_escape(&self, _: Escaped, _: u8) -> bool {
        true
    }
}
