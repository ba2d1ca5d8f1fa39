//! How far a value is from its end, about: what leads searches for an end in tests.

use super::Hold;
use super::keys::{Container, ObjectAt};
use super::thread::{Thread, Top};
use crate::values::shapes::numbers::{CountedAt, NumberShape};
use crate::values::shapes::strings::{TextAt, TextShape};
use crate::values::shapes::{Alternative, NEVER, ObjectShape, ShapeId, Shapes};
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
            let named = listed.filter(|key| !object.has(*key)).map(|at| {
                let depth = key.listed.map_or(0, |listed| listed.depth);
                let after = object.with(at).counted(shape);
                (missing(shapes, &after) + of_key(shapes, shape, at)).saturating_sub(2 + depth)
            });
            let others = shape.others.filter(|_| key.open);
            let other =
                others.map(|others| missing(shapes, &object.clone().counted(shape)) + 5 + of_shape(shapes, others));
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
    let keys = (0..shape.keys.len() as u32).filter(|&key| !object.has(key));
    let (required, more): (Vec<u32>, Vec<u32>) = keys.partition(|key| shape.required.contains(key));
    let costs = |keys: Vec<u32>| keys.into_iter().map(|key| of_key(shapes, shape, key));
    // Keys that must come whatever their name: those that are soonest written.
    let (lacks, mut more) = (object.lacks(shape) as usize, costs(more).collect::<Vec<_>>());
    more.sort_unstable();
    if let Some(others) = shape.others {
        more.resize(lacks.max(more.len()), 6 + of_shape(shapes, others));
    }
    1 + costs(required).sum::<u32>() + more.into_iter().take(lacks).sum::<u32>()
}

/// A key and its value.
fn of_key(shapes: &Shapes, shape: &ObjectShape, key: u32) -> u32 {
    let (name, value) = &shape.keys[key as usize];
    6 + name.len() as u32 + of_shape(shapes, *value)
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
