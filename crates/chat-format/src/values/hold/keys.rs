//! Objects and lists on the way, and the keys of objects.

use crate::values::shapes::listed::Listed;
use crate::values::shapes::strings::TextAt;
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
    /// How many came, as far as that matters.
    count: u32,
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
    /// Where in what the names of others must be.
    name: TextAt,
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
        Self { id, seen, count: 0 }
    }

    pub(super) fn has(&self, key: u32) -> bool {
        match &self.seen {
            Seen::Few(bits) => bits >> key & 1 == 1,
            Seen::Many(words) => words[key as usize / 64] >> (key % 64) & 1 == 1,
        }
    }

    pub(super) fn with(&self, key: u32) -> Self {
        let seen = match &self.seen {
            Seen::Few(bits) => Seen::Few(bits | 1 << key),
            Seen::Many(words) => {
                let mut words = words.to_vec();
                words[key as usize / 64] |= 1 << (key % 64);
                Seen::Many(words.into())
            }
        };
        Self { id: self.id, seen, count: self.count }
    }

    /// With one key more.
    pub(super) fn counted(self, object: &ObjectShape) -> Self {
        let most = match object.counts {
            ObjectShape::ANY_COUNT => 0,
            (least, u32::MAX) => least,
            (_, most) => most,
        };
        Self { count: (self.count + 1).min(most), ..self }
    }

    /// Whether a key may come that need not.
    fn has_spare(&self, object: &ObjectShape) -> bool {
        let (_, most) = object.counts;
        let missing = || object.required.iter().filter(|&&key| !self.has(key)).count() as u32;
        most == u32::MAX || self.count + missing() < most
    }

    /// Whether one of these named keys may still come.
    fn may_come(&self, shapes: &Shapes, object: &ObjectShape, (low, high): (u32, u32), depth: u8) -> bool {
        let spare = self.has_spare(object);
        let fits = |key: u32| !self.has(key) && has_room(shapes, object.keys[key as usize].1, depth);
        (low..high).any(|key| fits(key) && (spare || object.required.contains(&key)))
    }

    /// How many keys must come besides those that are required by name.
    #[cfg(test)]
    pub(super) fn lacks(&self, object: &ObjectShape) -> u32 {
        let missing = object.required.iter().filter(|&&key| !self.has(key)).count() as u32;
        object.counts.0.saturating_sub(self.count + missing)
    }

    /// Whether it may end.
    pub(super) fn is_whole(&self, shapes: &Shapes) -> bool {
        let object = shapes.objects.get(self.id);
        self.count >= object.counts.0 && object.required.iter().all(|&key| self.has(key))
    }

    /// Before a key; `None` where none can come.
    pub(super) fn key(&self, shapes: &Shapes, depth: u8) -> Option<KeyAt> {
        let object = shapes.objects.get(self.id);
        let open = object.others.is_some_and(|others| has_room(shapes, others, depth)) && self.has_spare(object);
        let keys = object.keys.len();
        let named = self.may_come(shapes, object, (0, keys as u32), depth);
        // Those that have come must still be known, where others may come.
        let listed = (keys > 0 && (named || open)).then(|| Listed::begin(keys));
        let name = object.names.map_or(TextAt::Free, |id| shapes.texts.get(id).begin());
        (named || open).then_some(KeyAt { listed, open, name })
    }

    pub(super) fn step(&self, shapes: &Shapes, key: KeyAt, byte: u8, depth: u8) -> Option<KeyAt> {
        let object = shapes.objects.get(self.id);
        let listed = key.listed.and_then(|listed| listed.step(byte, |key| object.keys[key as usize].0.as_bytes()));
        let name = match object.names.filter(|_| key.open) {
            Some(id) => shapes.texts.get(id).step(key.name, byte),
            None => Some(key.name),
        };
        let key = KeyAt { open: key.open && name.is_some(), name: name.unwrap_or(TextAt::Free), ..key };
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
                let fits = self.may_come(shapes, object, (named, named + 1), depth);
                fits.then(|| (self.with(named).counted(object), shape))
            }
            None if key.open && object.names.is_none_or(|id| shapes.texts.get(id).is_end(key.name)) => {
                object.others.map(|others| (self.clone().counted(object), others))
            }
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
