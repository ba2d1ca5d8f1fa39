//! One alternative, followed.

use super::keys::{Container, KeyAt, ObjectAt, next_item};
use crate::values::shapes::numbers::CountedAt;
use crate::values::shapes::strings::TextAt;
use crate::values::shapes::{Alternative, ShapeId, Shapes};
use crate::values::syntax::MOST_LEVELS;
use crate::values::types::Types;
use crate::values::watch::Event;
use smallvec::SmallVec;
use std::sync::Arc;

/// Where one alternative is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Thread {
    pub(super) top: Top,
    pub(super) below: Below,
}

type Below = Option<Arc<Frame>>;

/// Threads on the way to be sorted.
pub(super) type Threads = SmallVec<[Thread; 2]>;

/// What a value stands in.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Frame {
    depth: u8,
    pub(super) container: Container,
    pub(super) below: Below,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Top {
    /// A value of this shape must come, of one of these types.
    Value(ShapeId, Types),
    /// In a value that may be anything: so many levels in, between tokens, in a string, in a number.
    Free(u8),
    FreeText(u8),
    FreeNumber(u8),
    Number(u32, CountedAt),
    Text(u32, TextAt),
    /// A key must come, or the end where none has come.
    Keys(ObjectAt, bool),
    Key(ObjectAt, KeyAt),
    FirstItem(u32),
    /// After a value in an object or a list.
    AfterValue(Container),
    Over,
}

impl Thread {
    pub(super) fn depth(&self) -> u8 {
        self.below.as_ref().map_or(0, |frame| frame.depth)
    }

    fn with(&self, top: Top) -> Self {
        Self { top, below: self.below.clone() }
    }

    /// After the value.
    fn over(&self) -> Self {
        match &self.below {
            None => self.with(Top::Over),
            Some(frame) => Self { top: Top::AfterValue(frame.container.clone()), below: frame.below.clone() },
        }
    }

    /// Before a value in this container.
    fn inside(&self, container: Container, shape: ShapeId) -> Self {
        let frame = Frame { depth: self.depth() + 1, container, below: self.below.clone() };
        Self { top: Top::Value(shape, Types::ALL), below: Some(Arc::new(frame)) }
    }

    pub(super) fn is_free_text(&self, shapes: &Shapes) -> bool {
        match &self.top {
            Top::FreeText(_) | Top::Text(_, TextAt::Free) => true,
            Top::Text(id, TextAt::Count(_)) => {
                let text = shapes.texts.get(*id);
                text.max.is_none() && self.may_end(shapes)
            }
            _ => false,
        }
    }

    /// Whether the string may end here.
    pub(super) fn may_end(&self, shapes: &Shapes) -> bool {
        match &self.top {
            Top::FreeText(_) => true,
            Top::Text(id, at) => shapes.texts.get(*id).is_end(*at),
            Top::Key(object, key) => object.ends(shapes, key, self.depth() + 1).is_some(),
            _ => false,
        }
    }

    /// Whether the number may end here.
    pub(super) fn may_number_end(&self, shapes: &Shapes) -> bool {
        match &self.top {
            Top::FreeNumber(_) => true,
            Top::Number(id, at) => shapes.numbers.get(*id).is_end(*at),
            _ => false,
        }
    }

    /// A byte of a string or a number, without anything made anew; `None` where that cannot be.
    #[inline]
    pub(super) fn in_place(&mut self, shapes: &Shapes, event: Event) -> Option<bool> {
        let depth = self.depth() + 1;
        match (&mut self.top, event) {
            (Top::Key(object, at), Event::Text(byte)) => Some(object.step(shapes, at, byte, depth)),
            (Top::FreeText(_), Event::Text(_)) | (Top::FreeNumber(_), Event::Number(_)) => Some(true),
            (Top::Text(id, at), Event::Text(byte)) => {
                let next = shapes.texts.get(*id).step(*at, byte);
                *at = next.unwrap_or(*at);
                Some(next.is_some())
            }
            (Top::Number(id, at), Event::Number(byte)) => {
                let next = shapes.numbers.get(*id).step(*at, byte);
                *at = next.unwrap_or(*at);
                Some(next.is_some())
            }
            _ => None,
        }
    }

    /// What comes of an event.
    pub(super) fn advance(&self, shapes: &Shapes, event: Event, to: &mut Threads) {
        match (&self.top, event) {
            (Top::Value(shape, types), _) => self.begin(shapes, *shape, *types, event, to),
            (Top::FreeText(_), Event::Text(_)) | (Top::FreeNumber(_), Event::Number(_)) => to.push(self.clone()),
            (Top::FreeText(0), Event::TextClose) | (Top::FreeNumber(0), Event::NumberEnd) => to.push(self.over()),
            (Top::FreeText(levels), Event::TextClose) | (Top::FreeNumber(levels), Event::NumberEnd) => {
                to.push(self.with(Top::Free(*levels)));
            }
            (Top::Free(levels), _) => match event {
                Event::Close if *levels == 1 => to.push(self.over()),
                Event::Close => to.push(self.with(Top::Free(levels - 1))),
                Event::ObjectOpen | Event::ArrayOpen => to.push(self.with(Top::Free(levels + 1))),
                Event::TextOpen => to.push(self.with(Top::FreeText(*levels))),
                Event::Number(_) => to.push(self.with(Top::FreeNumber(*levels))),
                _ => to.push(self.clone()),
            },
            (Top::Number(id, at), Event::Number(byte)) => {
                to.extend(shapes.numbers.get(*id).step(*at, byte).map(|at| self.with(Top::Number(*id, at))));
            }
            (Top::Number(id, at), Event::NumberEnd) if shapes.numbers.get(*id).is_end(*at) => to.push(self.over()),
            (Top::Text(id, at), Event::Text(byte)) => {
                to.extend(shapes.texts.get(*id).step(*at, byte).map(|at| self.with(Top::Text(*id, at))));
            }
            (Top::Text(id, at), Event::TextClose) if shapes.texts.get(*id).is_end(*at) => to.push(self.over()),
            (Top::Keys(object, _), Event::TextOpen) => {
                let key = object.key(shapes, self.depth() + 1);
                to.extend(key.map(|key| self.with(Top::Key(object.clone(), key))));
            }
            (Top::Keys(object, true), Event::Close) if object.is_whole(shapes) => to.push(self.over()),
            (Top::Key(object, key), Event::Text(byte)) => {
                let mut key = key.clone();
                let fits = object.step(shapes, &mut key, byte, self.depth() + 1);
                to.extend(fits.then(|| self.with(Top::Key(object.clone(), key))));
            }
            (Top::Key(object, key), Event::TextClose) => {
                let end = object.end(shapes, key, self.depth() + 1);
                to.extend(end.map(|(object, shape)| self.inside(Container::Object(object), shape)));
            }
            (Top::FirstItem(id), Event::Close) if shapes.arrays.get(*id).min == 0 => to.push(self.over()),
            (Top::FirstItem(id), _) => {
                if let Some(item) = self.item(shapes, *id, 0) {
                    item.advance(shapes, event, to);
                }
            }
            (Top::AfterValue(container), Event::Comma) => match container {
                Container::Object(object) => {
                    let more = object.key(shapes, self.depth() + 1).is_some();
                    to.extend(more.then(|| self.with(Top::Keys(object.clone(), false))));
                }
                Container::Array(id, count) => to.extend(self.item(shapes, *id, *count)),
            },
            (Top::AfterValue(container), Event::Close) => {
                let whole = match container {
                    Container::Object(object) => object.is_whole(shapes),
                    Container::Array(id, count) => *count >= shapes.arrays.get(*id).min,
                };
                to.extend(whole.then(|| self.over()));
            }
            _ => {}
        }
    }

    /// Before the first item of a list that began.
    pub(super) fn first_item(&self, shapes: &Shapes) -> Option<Self> {
        match &self.top {
            Top::FirstItem(id) => self.item(shapes, *id, 0),
            // In a value that may be anything an item is one too.
            Top::Free(_) => Some(self.clone()),
            _ => None,
        }
    }

    /// Before the next item of a list.
    fn item(&self, shapes: &Shapes, id: u32, count: u32) -> Option<Self> {
        let (shape, count) = next_item(shapes, id, count, self.depth() + 1)?;
        Some(self.inside(Container::Array(id, count), shape))
    }

    /// A value begins.
    fn begin(&self, shapes: &Shapes, shape: ShapeId, types: Types, event: Event, to: &mut Threads) {
        if shapes.is_any(shape) {
            let (of, top) = match event {
                Event::Null => (Types::NULL, None),
                Event::True | Event::False => (Types::BOOLEAN, None),
                Event::TextOpen => (Types::STRING, Some(Top::FreeText(0))),
                Event::Number(_) => (Types::NUMBER, Some(Top::FreeNumber(0))),
                Event::ObjectOpen => (Types::OBJECT, Some(Top::Free(1))),
                Event::ArrayOpen => (Types::ARRAY, Some(Top::Free(1))),
                _ => return,
            };
            if types.meets(of) {
                to.push(top.map_or_else(|| self.over(), |top| self.with(top)));
            }
            return;
        }
        if let [Alternative::Same(same)] = shapes.get(shape).alternatives[..] {
            return self.begin(shapes, same, types, event, to);
        }
        if shapes.get(shape).alternatives.iter().any(|one| matches!(one, Alternative::Same(_))) {
            for alternative in shapes.alternatives(shape) {
                self.begin_one(shapes, alternative, types, event, to);
            }
        } else {
            for &alternative in &shapes.get(shape).alternatives {
                self.begin_one(shapes, alternative, types, event, to);
            }
        }
    }

    fn begin_one(&self, shapes: &Shapes, one: Alternative, types: Types, event: Event, to: &mut Threads) {
        let levels = shapes.levels_of(one);
        if self.depth().saturating_add(levels) > MOST_LEVELS {
            return;
        }
        let next = match (one, event) {
            (Alternative::Null, Event::Null) if types.meets(Types::NULL) => Some(self.over()),
            (Alternative::Boolean(which), Event::False | Event::True) if types.meets(Types::BOOLEAN) => {
                (which & (1 << u8::from(event == Event::True)) != 0).then(|| self.over())
            }
            (Alternative::Number(id), Event::Number(byte)) if types.meets(Types::NUMBER) => {
                shapes.numbers.get(id).begin(byte).map(|at| self.with(Top::Number(id, at)))
            }
            (Alternative::Text(id), Event::TextOpen) if types.meets(Types::STRING) => {
                Some(self.with(Top::Text(id, shapes.texts.get(id).begin())))
            }
            (Alternative::Array(id), Event::ArrayOpen) if types.meets(Types::ARRAY) => {
                Some(self.with(Top::FirstItem(id)))
            }
            (Alternative::Object(id), Event::ObjectOpen) if types.meets(Types::OBJECT) => {
                Some(self.with(Top::Keys(ObjectAt::new(shapes, id), true)))
            }
            _ => None,
        };
        to.extend(next);
    }
}
