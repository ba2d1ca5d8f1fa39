//! How far a value is from its end, about: what leads searches for an end in tests.

use super::Hold;
use super::keys::{Container, ObjectAt};
use super::thread::{Thread, Top};
use crate::values::shapes::numbers::{CountedAt, NumberShape};
use crate::values::shapes::strings::{TextAt, TextShape};
use crate::values::shapes::{Alternative, NEVER, ShapeId, Shapes};
use std::collections::HashSet;
use std::hash::Hash;

impl Hold {
    /// Least where the end is near.
    pub(crate) fn distance(&self, shapes: &Shapes) -> u32 {
        self.threads().iter().map(|thread| of_thread(shapes, thread)).min().unwrap_or(u32::MAX / 4)
    }
}

fn of_thread(shapes: &Shapes, thread: &Thread) -> u32 {
    let mut all = match &thread.top {
        Top::Over => 0,
        Top::Value(shape, _) => 2 + of_shape(shapes, *shape),
        Top::Free(levels) => 2 * u32::from(*levels),
        Top::FreeText(levels) | Top::FreeNumber(levels) => 1 + 2 * u32::from(*levels),
        Top::Number(id, at) => 1 + of_number(shapes.numbers.get(*id), *at),
        Top::Text(id, at) => 1 + of_text(shapes.texts.get(*id), *at),
        Top::Keys(object, first) => match (missing(shapes, object), first) {
            (missing, true) => missing,
            (1, false) => 1 + 6,
            (missing, false) => missing - 1,
        },
        Top::Key(object, key) => {
            let shape = shapes.objects.get(object.id);
            let listed = key.listed.map_or(0..0, |listed| listed.low..listed.high);
            let missing = missing(shapes, object);
            let named = listed.filter(|key| !object.has(*key)).map(|at| {
                let value = shape.keys[at as usize].1;
                let depth = key.listed.map_or(0, |listed| listed.depth);
                // One that is required is counted among those that are missing.
                let more = if shape.required.contains(&at) { 0 } else { 8 + of_shape(shapes, value) };
                (missing + more).saturating_sub(2 + depth)
            });
            let other = shape.others.filter(|_| key.open).map(|others| missing + 5 + of_shape(shapes, others));
            named.chain(other).min().unwrap_or(u32::MAX / 8)
        }
        Top::FirstItem(id) => 1 + items(shapes, *id, 0),
        Top::AfterValue(container) => of_container(shapes, container),
    };
    let mut below = thread.below.as_deref();
    while let Some(frame) = below {
        all = all.saturating_add(of_container(shapes, &frame.container));
        below = frame.below.as_deref();
    }
    all
}

fn of_container(shapes: &Shapes, container: &Container) -> u32 {
    match container {
        Container::Object(object) => missing(shapes, object),
        Container::Array(id, count) => 1 + items(shapes, *id, *count),
    }
}

/// What an object lacks, and its end.
fn missing(shapes: &Shapes, object: &ObjectAt) -> u32 {
    let shape = shapes.objects.get(object.id);
    let lacks = shape.required.iter().filter(|&&key| !object.has(key));
    let of = |&key: &u32| {
        let (name, value) = &shape.keys[key as usize];
        6 + name.len() as u32 + of_shape(shapes, *value)
    };
    1 + lacks.map(of).sum::<u32>()
}

fn items(shapes: &Shapes, id: u32, count: u32) -> u32 {
    let array = shapes.arrays.get(id);
    let shape = |at: u32| array.first.get(at as usize).copied().or(array.others);
    (count..array.min).map(|at| 2 + shape(at).map_or(0, |shape| of_shape(shapes, shape))).sum()
}

/// Of the shallowest values, lest recursion has no end.
fn of_shape(shapes: &Shapes, id: ShapeId) -> u32 {
    let shallow = |one: &Alternative| {
        let levels = shapes.levels_of(*one);
        levels != NEVER && levels == shapes.levels(id)
    };
    let of = |one| match one {
        // More than it is: then each digit leads on.
        Alternative::Number(id) if *shapes.numbers.get(id) != NumberShape::free(false) => 30,
        Alternative::Text(id) => {
            let text = shapes.texts.get(id);
            1 + of_text(text, text.begin())
        }
        Alternative::Array(id) => 1 + items(shapes, id, 0),
        Alternative::Object(id) => missing(shapes, &ObjectAt::new(shapes, id)),
        _ => 1,
    };
    shapes.alternatives(id).into_iter().filter(shallow).map(of).min().unwrap_or(0)
}

fn of_text(text: &TextShape, at: TextAt) -> u32 {
    match at {
        TextAt::Free => 0,
        TextAt::Count(count) => text.min.saturating_sub(count),
        TextAt::Listed(listed) => {
            let texts = text.texts.as_deref().unwrap_or_default();
            (listed.low..listed.high).map(|at| texts[at as usize].len() as u32 - listed.depth).min().unwrap_or(0)
        }
        _ => steps(at, |at| text.is_end(*at), |at, byte| text.step(*at, byte)),
    }
}

fn of_number(number: &NumberShape, at: CountedAt) -> u32 {
    steps(at, |at| number.is_end(*at), |at, byte| number.step(*at, byte))
}

fn steps<S: Copy + Eq + Hash>(from: S, is_end: impl Fn(&S) -> bool, step: impl Fn(&S, u8) -> Option<S>) -> u32 {
    let (mut seen, mut open) = (HashSet::from([from]), vec![from]);
    for steps in 0..1000 {
        if open.iter().any(&is_end) {
            return steps;
        }
        let next = open.iter().flat_map(|at| (0..=255).filter_map(|byte| step(at, byte)));
        let next: Vec<S> = next.filter(|at| seen.insert(*at)).collect();
        open = next;
    }
    1000
}
