//! Values that stand inside each other so deeply that there is an end to it: what needs more levels than there are left
//! is not begun.

use super::place::{Frame, Level, Stack};
use super::{ArrayAt, Known, ObjectAt, Place};
use crate::event::MOST_LEVELS;
use crate::shape::array::ArrayShape;
use crate::shape::object::ObjectShape;
use crate::shape::{Engine, Goal, Search};
use std::collections::HashMap;
use std::sync::Arc;

/// From here on it is asked whether what may come needs more levels than are left.
const DEEP: usize = 40;

impl Engine {
    /// The same without what needs more levels than are left.
    pub(super) fn with_room(&self, place: Place) -> Option<Place> {
        let levels = |stack: &Stack| {
            let below = std::iter::successors(stack.top.as_ref(), |level| level.below.as_ref());
            below.filter(|level| matches!(level.frame, Frame::Array { .. } | Frame::Object { .. })).count()
        };
        if place.stacks().all(|stack| levels(stack) < DEEP) {
            return Some(place);
        }
        let found = place.stacks().filter_map(|stack| self.of_room(stack, MOST_LEVELS.checked_sub(levels(stack))?));
        Place::of(found.collect(), 0)
    }

    fn of_room(&self, stack: &Stack, room: usize) -> Option<Stack> {
        let level = stack.top.as_ref()?;
        let mut fitting = Fitting { engine: self, known: HashMap::new(), search: Search::new() };
        let is_fit = match &level.frame {
            Frame::Value(goal) => fitting.goal(goal, room),
            Frame::Array { shape, items, at } => match at {
                ArrayAt::Open => fitting.array(shape, room),
                ArrayAt::Next => {
                    let cells = self.item_cells(shape, items, &mut fitting.search);
                    cells.iter().any(|(goal, _)| fitting.goal(goal, room))
                }
                ArrayAt::Item(_) | ArrayAt::After => true,
            },
            Frame::Object { shape, members, at } => match at {
                ObjectAt::Open => fitting.object(shape, room),
                ObjectAt::Next => {
                    let names = self.names(shape, &members.members, &mut fitting.search);
                    names.iter().any(|at| match at {
                        ObjectAt::Known(known) => !fitting.names(shape, known, room).is_empty(),
                        ObjectAt::Other(other) => fitting.goal(&shape.classes[other.class as usize].goal, room),
                        _ => false,
                    })
                }
                ObjectAt::Known(known) if known.depth == 0 => {
                    let names = fitting.names(shape, known, room);
                    if names.len() < known.range().len() && !names.is_empty() {
                        let to = names.len() as u32;
                        let at = ObjectAt::Known(Known { names: names.into(), from: 0, to, depth: 0 });
                        let frame = Frame::Object { shape: Arc::clone(shape), members: members.clone(), at };
                        let top = Some(Level::new(frame, level.below.clone()));
                        return Some(Stack { top, record: stack.record.clone() });
                    }
                    !names.is_empty()
                }
                ObjectAt::Other(other) => fitting.goal(&shape.classes[other.class as usize].goal, room),
                ObjectAt::Known(_) | ObjectAt::Named(_) | ObjectAt::Value | ObjectAt::After => true,
            },
            Frame::Floor | Frame::Word { .. } | Frame::Number { .. } | Frame::Text { .. } | Frame::Listed { .. } => {
                true
            }
        };
        fitting.search.refused().unwrap_or_else(|refused| self.fail(refused));
        is_fit.then(|| stack.clone())
    }
}

/// Cached test of whether values fit into a number of nesting levels.
struct Fitting<'e> {
    engine: &'e Engine,
    known: HashMap<(*const Goal, usize), bool>,
    search: Search,
}

impl Fitting<'_> {
    fn goal(&mut self, goal: &Arc<Goal>, room: usize) -> bool {
        let key = (Arc::as_ptr(goal), room);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let Ok(shapes) = self.engine.shapes(goal) else { return false };
        let is_scalar = shapes.null || shapes.is_true || shapes.is_false;
        let is_fit = is_scalar
            || !(shapes.numbers.is_empty() && shapes.texts.is_empty())
            || shapes.listed.iter().flat_map(|listed| &listed.texts).any(|text| depth(text) <= room)
            || (room > 0
                && (shapes.arrays.iter().any(|shape| self.array(shape, room - 1))
                    || shapes.objects.iter().any(|shape| self.object(shape, room - 1))));
        self.known.insert(key, is_fit);
        is_fit
    }

    /// Returns whether the items of an array fit that must come.
    fn array(&mut self, shape: &ArrayShape, room: usize) -> bool {
        self.engine.array_begins(shape, &mut self.search)
            && shape.needs(self.engine).iter().all(|goal| self.goal(goal, room))
    }

    /// Returns whether the members of an object fit that must come.
    fn object(&mut self, shape: &ObjectShape, room: usize) -> bool {
        if !self.engine.object_begins(shape, &mut self.search) {
            return false;
        }
        let needs = shape.needs(self.engine);
        needs.all.iter().all(|goal| self.goal(goal, room))
            && needs.any.iter().all(|ways| ways.iter().any(|goal| self.goal(goal, room)))
            && (needs.more == 0
                || needs.endless.iter().any(|goal| self.goal(goal, room))
                || needs.named.iter().filter(|goal| self.goal(goal, room)).count() >= needs.more)
    }

    /// Names whose values fit.
    fn names(&mut self, shape: &ObjectShape, known: &Known, room: usize) -> Vec<u32> {
        let names = known.range().iter().copied();
        names.filter(|&name| self.goal(&shape.names[name as usize].goal, room)).collect()
    }
}

/// Returns the nesting depth of a listed value.
fn depth(text: &[u8]) -> usize {
    let (mut here, mut most) = (0usize, 0);
    let (mut is_text, mut is_escaped) = (false, false);
    for &byte in text {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                here += 1;
                most = most.max(here);
            }
            b']' | b'}' if !is_text => here = here.saturating_sub(1),
            _ => {}
        }
    }
    most
}
