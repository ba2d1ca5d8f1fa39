//! Objects and lists on the way, and the keys of objects.

use crate::values::shapes::listed::Listed;
use crate::values::shapes::{NEVER, ObjectShape, ShapeId, Shapes};
use crate::values::syntax::MOST_LEVELS;
use std::sync::Arc;

/// An object or a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Container {
    Object(ObjectAt),
    /// Which, and how many items it has, as far as that matters.
    Array(u32, u32),
}

/// An object, and which of its keys have come.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ObjectAt {
    pub(super) id: u32,
    seen: Seen,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Seen {
    Few(u64),
    Many(Arc<[u64]>),
}

/// Where in a key: among those that are named, and whether it may be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyAt {
    pub(super) listed: Option<Listed>,
    pub(super) open: bool,
}

/// Whether a value of this shape has room in so many levels.
pub(super) fn has_room(shapes: &Shapes, shape: ShapeId, depth: u8) -> bool {
    let levels = shapes.levels(shape);
    levels != NEVER && depth + levels <= MOST_LEVELS
}

impl ObjectAt {
    pub(super) fn new(shapes: &Shapes, id: u32) -> Self {
        let keys = shapes.objects.get(id).keys.len();
        let seen = if keys <= 64 { Seen::Few(0) } else { Seen::Many(vec![0; keys.div_ceil(64)].into()) };
        Self { id, seen }
    }

    pub(super) fn has(&self, key: u32) -> bool {
        match &self.seen {
            Seen::Few(bits) => bits >> key & 1 == 1,
            Seen::Many(words) => words[key as usize / 64] >> (key % 64) & 1 == 1,
        }
    }

    fn with(&self, key: u32) -> Self {
        let seen = match &self.seen {
            Seen::Few(bits) => Seen::Few(bits | 1 << key),
            Seen::Many(words) => {
                let mut words = words.to_vec();
                words[key as usize / 64] |= 1 << (key % 64);
                Seen::Many(words.into())
            }
        };
        Self { id: self.id, seen }
    }

    /// Whether one of these named keys may still come.
    fn may_come(&self, shapes: &Shapes, object: &ObjectShape, (low, high): (u32, u32), depth: u8) -> bool {
        (low..high).any(|key| !self.has(key) && has_room(shapes, object.keys[key as usize].1, depth))
    }

    /// Whether it may end.
    pub(super) fn is_whole(&self, shapes: &Shapes) -> bool {
        shapes.objects.get(self.id).required.iter().all(|&key| self.has(key))
    }

    /// Before a key; `None` where none can come.
    pub(super) fn key(&self, shapes: &Shapes, depth: u8) -> Option<KeyAt> {
        let object = shapes.objects.get(self.id);
        let open = object.others.is_some_and(|others| has_room(shapes, others, depth));
        let keys = object.keys.len();
        let named = self.may_come(shapes, object, (0, keys as u32), depth);
        // Those that have come must still be known, where others may come.
        let listed = (keys > 0 && (named || open)).then(|| Listed::begin(keys));
        (named || open).then_some(KeyAt { listed, open })
    }

    pub(super) fn step(&self, shapes: &Shapes, key: KeyAt, byte: u8, depth: u8) -> Option<KeyAt> {
        let object = shapes.objects.get(self.id);
        let listed = key.listed.and_then(|listed| listed.step(byte, |key| object.keys[key as usize].0.as_bytes()));
        let fits = |listed: &Listed| key.open || self.may_come(shapes, object, (listed.low, listed.high), depth);
        let listed = listed.filter(fits);
        (key.open || listed.is_some()).then_some(KeyAt { listed, ..key })
    }

    /// The object with the key that ends here, and what its value is; `None` where none may end.
    pub(super) fn end(&self, shapes: &Shapes, key: KeyAt, depth: u8) -> Option<(Self, ShapeId)> {
        let object = shapes.objects.get(self.id);
        let named = key.listed.and_then(|listed| listed.whole(|key| object.keys[key as usize].0.as_bytes()));
        match named {
            Some(named) => {
                let shape = object.keys[named as usize].1;
                (!self.has(named) && has_room(shapes, shape, depth)).then(|| (self.with(named), shape))
            }
            None if key.open => object.others.map(|others| (self.clone(), others)),
            None => None,
        }
    }
}

/// What the next item of a list is, and how many it then has; `None` where none can come.
pub(super) fn next_item(shapes: &Shapes, id: u32, count: u32, depth: u8) -> Option<(ShapeId, u32)> {
    let array = shapes.arrays.get(id);
    let shape = array.first.get(count as usize).copied().or(array.others)?;
    let most = if array.max == u32::MAX { array.min.max(array.first.len() as u32) } else { array.max };
    (count < array.max && has_room(shapes, shape, depth)).then(|| (shape, (count + 1).min(most)))
}
