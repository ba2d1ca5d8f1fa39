//! The key that is read, and what its value is: known in lenient use too.

use crate::values::shapes::listed::Listed;
use crate::values::shapes::{ShapeId, Shapes};

/// Where among the keys of an object; nowhere where it has no shape of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Track {
    object: Option<u32>,
    listed: Option<Listed>,
}

impl Track {
    /// Before a key of such an object.
    pub(crate) fn new(shapes: &Shapes, shape: ShapeId) -> Self {
        let object = shapes.only_object(shape);
        Self { object, listed: object.map(|id| Listed::begin(shapes.objects.get(id).keys.len())) }
    }

    pub(crate) fn step(self, shapes: &Shapes, byte: u8) -> Self {
        let (Some(id), Some(listed)) = (self.object, self.listed) else { return self };
        let keys = &shapes.objects.get(id).keys;
        Self { listed: listed.step(byte, |key| keys[key as usize].0.as_bytes()), ..self }
    }

    /// What the value of the key is.
    pub(crate) fn shape(self, shapes: &Shapes) -> ShapeId {
        let Some(id) = self.object else { return Shapes::ANY };
        let object = shapes.objects.get(id);
        let named = self.listed.and_then(|listed| listed.whole(|key| object.keys[key as usize].0.as_bytes()));
        named.map_or(object.others.unwrap_or(Shapes::ANY), |key| object.keys[key as usize].1)
    }
}
