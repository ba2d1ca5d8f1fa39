//! Objects and lists on the way, and the keys of objects.

use crate::values::shapes::listed::Listed;
use crate::values::shapes::strings::TextAt;
use crate::values::shapes::{NEVER, ObjectShape, ShapeId, Shapes};
use crate::values::syntax::MOST_LEVELS;
use crate::values::utf8::Utf8;
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
    others: Option<Arc<Others>>,
    /// How many came, as far as that matters.
    count: u32,
}

/// The keys of an object that have come and are not named: none comes again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Others {
    /// Sorted.
    came: Vec<Box<[u8]>>,
    /// Whether there is one more, whose name was not kept.
    unknown: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Seen {
    Few(u64),
    Many(Arc<[u64]>),
}

/// Where in a key: among those that are named, and whether it may be another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct KeyAt {
    pub(super) listed: Option<Listed>,
    pub(super) open: bool,
    /// Where in what the names of others must be.
    name: TextAt,
    /// Of another.
    other: Option<Box<Other>>,
}

/// What was written of a key that is not named.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Other {
    /// Among those that have come.
    came: Option<Listed>,
    /// The text, where it is kept.
    written: Option<Vec<u8>>,
}

impl KeyAt {
    /// Keeps nothing that was written. Where names differ, states do; a walk over a vocabulary would meet too many.
    pub(super) fn forget(&mut self) {
        if let Some(other) = &mut self.other {
            other.written = None;
        }
    }

    fn came(&self) -> Option<Listed> {
        self.other.as_ref().and_then(|other| other.came)
    }
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
        Self { id, seen, others: None, count: 0 }
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
        Self { seen, ..self.clone() }
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

    /// Whether keys may come that are not named.
    pub(super) fn is_open(&self, shapes: &Shapes) -> bool {
        shapes.objects.get(self.id).others.is_some()
    }

    /// Whether this named key may still come.
    pub(super) fn may_name(&self, shapes: &Shapes, key: u32, depth: u8) -> bool {
        self.may_come(shapes, shapes.objects.get(self.id), (key, key + 1), depth)
    }

    /// The name of a named key.
    pub(super) fn name<'s>(&self, shapes: &'s Shapes, key: u32) -> &'s [u8] {
        text_of(shapes.objects.get(self.id), key)
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
        let keys = object.keys.len();
        let named = self.may_come(shapes, object, (0, keys as u32), depth);
        let all = (keys > 0).then(|| Listed::begin(keys));
        let name = object.names.map_or(TextAt::Free, |id| shapes.texts.get(id).begin());
        let came = self.others.as_ref().map(|others| Listed::begin(others.came.len()));
        let open = object.others.is_some_and(|others| has_room(shapes, others, depth))
            && self.has_spare(object)
            && self.leads_to_another(shapes, object, (name, all, came), Utf8::WHOLE);
        // Those that have come must still be known, where others may come.
        let listed = all.filter(|_| named || open);
        let other = open.then(|| Box::new(Other { came, written: Some(Vec::new()) }));
        (named || open).then_some(KeyAt { listed, open, name, other })
    }

    /// Whether a name that is not listed and has not come can be written from here on. `utf8`: where in a character.
    fn leads_to_another(&self, shapes: &Shapes, object: &ObjectShape, at: NameAt, utf8: Utf8) -> bool {
        // What may be any text goes on to one that nobody has.
        let Some(text) = object.names.map(|id| shapes.texts.get(id)) else { return true };
        let mut open = vec![(at, utf8)];
        while let Some(((name, listed, came), utf8)) = open.pop() {
            let is_known = Self::listed(object, listed).is_some() || self.came(came).is_some();
            if (listed, came) == (None, None) || (!is_known && utf8.is_whole() && text.is_end(name)) {
                return !self.has_unknown();
            }
            open.extend((0..=255).filter_map(|byte| {
                let (utf8, name) = utf8.step(byte).zip(text.step(name, byte))?;
                let came = self.step_came(came, byte);
                Some(((name, step_listed(object, listed, byte), came), utf8))
            }));
        }
        false
    }

    /// The listed key that ends here.
    fn listed(object: &ObjectShape, at: Option<Listed>) -> Option<u32> {
        at.and_then(|at| at.whole(|key| text_of(object, key)))
    }

    /// The other key that has come and ends here.
    fn came(&self, at: Option<Listed>) -> Option<u32> {
        at.and_then(|at| at.whole(|number| self.text_of_other(number)))
    }

    fn step_came(&self, at: Option<Listed>, byte: u8) -> Option<Listed> {
        at.and_then(|at| at.step(byte, |number| self.text_of_other(number)))
    }

    fn text_of_other(&self, number: u32) -> &[u8] {
        self.others.as_ref().map_or(&[], |others| &others.came[number as usize])
    }

    fn has_unknown(&self) -> bool {
        self.others.as_ref().is_some_and(|others| others.unknown)
    }

    /// With a key of this name, which is none of those that came.
    fn with_other(&self, name: Option<&[u8]>) -> Self {
        let mut others = self.others.as_deref().cloned().unwrap_or_default();
        match name {
            None => others.unknown = true,
            Some(name) => {
                let place = others.came.partition_point(|other| **other < *name);
                others.came.insert(place, name.into());
            }
        }
        Self { others: Some(Arc::new(others)), ..self.clone() }
    }

    /// Goes on in a key; `false`, and nothing changed, where none goes on so.
    pub(super) fn step(&self, shapes: &Shapes, key: &mut KeyAt, byte: u8, depth: u8) -> bool {
        let object = shapes.objects.get(self.id);
        let listed = step_listed(object, key.listed, byte);
        let came = self.step_came(key.came(), byte);
        let name = match object.names.filter(|_| key.open) {
            Some(id) => shapes.texts.get(id).step(key.name, byte),
            None => Some(key.name),
        };
        let leads_on = |name: TextAt| {
            // Where both end nothing is looked for.
            let begun = came.map(|at| self.text_of_other(at.low)).or(listed.map(|at| text_of(object, at.low)));
            let depth = came.or(listed).map_or(0, |at| at.depth as usize);
            let begun = &begun.unwrap_or_default()[..depth];
            let utf8 = begun.iter().try_fold(Utf8::WHOLE, |utf8, &byte| utf8.step(byte)).unwrap_or_default();
            self.leads_to_another(shapes, object, (name, listed, came), utf8)
        };
        let open = key.open && name.is_some_and(leads_on);
        let fits = |listed: &Listed| open || self.may_come(shapes, object, (listed.low, listed.high), depth);
        let listed = listed.filter(fits);
        if !open && listed.is_none() {
            return false;
        }
        let mut other = key.other.take().filter(|_| open);
        if let Some(other) = &mut other {
            other.came = came;
            other.written.iter_mut().for_each(|written| written.push(byte));
        }
        *key = KeyAt { listed, open, name: name.unwrap_or(TextAt::Free), other };
        true
    }

    /// The named key that ends here, if it is one, and what its value is; `None` where no key may end.
    pub(super) fn ends(&self, shapes: &Shapes, key: &KeyAt, depth: u8) -> Option<(Option<u32>, ShapeId)> {
        let object = shapes.objects.get(self.id);
        if let Some(named) = Self::listed(object, key.listed) {
            let fits = self.may_come(shapes, object, (named, named + 1), depth);
            return fits.then(|| (Some(named), object.keys[named as usize].1));
        }
        let is_name = || object.names.is_none_or(|id| shapes.texts.get(id).is_end(key.name));
        let is_new = self.came(key.came()).is_none() && !self.has_unknown();
        object.others.filter(|_| key.open && is_new && is_name()).map(|others| (None, others))
    }

    /// The object with the key that ends here, and what its value is; `None` where none may end.
    pub(super) fn end(&self, shapes: &Shapes, key: &KeyAt, depth: u8) -> Option<(Self, ShapeId)> {
        let (named, shape) = self.ends(shapes, key, depth)?;
        let after = match named {
            Some(named) => self.with(named),
            None => self.with_other(key.other.as_ref().and_then(|other| other.written.as_deref())),
        };
        Some((after.counted(shapes.objects.get(self.id)), shape))
    }
}

/// Where a name is: in what names must be, among the keys that are listed, and among others that have come.
type NameAt = (TextAt, Option<Listed>, Option<Listed>);

fn text_of(object: &ObjectShape, key: u32) -> &[u8] {
    object.keys[key as usize].0.as_bytes()
}

fn step_listed(object: &ObjectShape, at: Option<Listed>, byte: u8) -> Option<Listed> {
    at.and_then(|at| at.step(byte, |key| text_of(object, key)))
}

/// What the next item of a list is, and how many it then has; `None` where none can come.
pub(super) fn next_item(shapes: &Shapes, id: u32, count: u32, depth: u8) -> Option<(ShapeId, u32)> {
    let array = shapes.arrays.get(id);
    let shape = array.first.get(count as usize).copied().or(array.others)?;
    let most = if array.max == u32::MAX { array.min.max(array.first.len() as u32) } else { array.max };
    (count < array.max && has_room(shapes, shape, depth)).then(|| (shape, (count + 1).min(most)))
}
