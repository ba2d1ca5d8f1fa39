//! Where a string must be one of a list: a named key, a value of an enum.

use super::Hold;
use super::keys::Container;
use super::thread::{Thread, Top};
use crate::values::Shapes;
use crate::values::shapes::strings::TextAt;
use crate::values::shapes::{Alternative, ShapeId};
use crate::values::types::Types;

/// The rest of a text of a list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rest {
    /// The text from here on.
    pub(crate) text: Vec<u8>,
    /// The byte of it that was written last, if one was.
    pub(crate) before: Option<u8>,
    /// The bytes after it, as far as they are known.
    pub(crate) behind: Vec<u8>,
    /// `true` if the text goes on in a way that is not known here.
    pub(crate) is_cut: bool,
}

impl Hold {
    /// Returns whether a text of a list is written here, or is to be, and nothing else may be.
    pub(crate) fn is_listed(&self) -> bool {
        self.is_alive() && self.threads().iter().all(Thread::is_listed)
    }

    /// Whether nothing but keys that are named and values of enums may be written next, and what stands around them.
    pub(crate) fn leads_to_listed(&self, shapes: &Shapes) -> bool {
        self.threads().iter().all(|thread| thread.leads_to_listed(shapes))
    }

    /// Adds what is left of each text; `false` where it is not listed, or they are more than so many.
    pub(crate) fn listed(&self, shapes: &Shapes, most: usize, to: &mut Vec<Rest>) -> bool {
        self.is_listed() && self.threads().iter().all(|thread| thread.listed(shapes, most, to))
    }
}

impl Thread {
    fn is_listed(&self) -> bool {
        match &self.top {
            Top::Text(_, TextAt::Listed(_)) => true,
            Top::Key(_, key) => !key.open && key.listed.is_some(),
            _ => false,
        }
    }

    fn leads_to_listed(&self, shapes: &Shapes) -> bool {
        match &self.top {
            Top::Keys(object, _) | Top::AfterValue(Container::Object(object)) => !object.is_open(shapes),
            Top::Value(shape, types) => !types.meets(Types::STRING) || has_listed_strings(shapes, *shape),
            _ => self.is_listed(),
        }
    }

    fn listed(&self, shapes: &Shapes, most: usize, to: &mut Vec<Rest>) -> bool {
        let (range, may) = match &self.top {
            Top::Text(_, TextAt::Listed(listed)) => (*listed, None),
            Top::Key(object, key) => match key.listed {
                Some(listed) => (listed, Some(object)),
                None => return false,
            },
            _ => return false,
        };
        let text = |number: u32| match &self.top {
            Top::Text(id, _) => shapes.texts.get(*id).texts.as_deref().unwrap_or_default()[number as usize].as_bytes(),
            Top::Key(object, _) => object.name(shapes, number),
            _ => &[],
        };
        if (range.high - range.low) as usize > most.saturating_sub(to.len()) {
            return false;
        }
        let depth = self.depth() + 1;
        for number in range.low..range.high {
            if may.is_none_or(|object| object.may_name(shapes, number, depth)) {
                let (before, text) = text(number).split_at(range.depth as usize);
                // What is escaped is written otherwise.
                let end = text.iter().position(|&byte| byte < b' ' || b"\"'\\<>&".contains(&byte));
                let (is_cut, text) = (end.is_some(), &text[..end.unwrap_or(text.len())]);
                to.push(Rest { text: text.into(), before: before.last().copied(), behind: Vec::new(), is_cut });
            }
        }
        true
    }
}

/// Returns whether a shape has strings, and all of them are listed.
fn has_listed_strings(shapes: &Shapes, shape: ShapeId) -> bool {
    if shapes.is_any(shape) {
        return false;
    }
    let texts = shapes.alternatives(shape);
    let mut texts = texts.iter().filter_map(|alternative| match alternative {
        Alternative::Text(id) => Some(shapes.texts.get(*id).texts.is_some()),
        _ => None,
    });
    texts.all(|is_listed| is_listed)
}
