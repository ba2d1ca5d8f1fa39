//! Limit on the nesting depth: a value that needs more levels than are left is not begun.

use super::place::{Frame, Level, Stack};
use super::{ArrayAt, Known, ObjectAt, Place};
use crate::event::MOST_LEVELS;
use crate::shape::array::ArrayShape;
use crate::shape::object::ObjectShape;
use crate::shape::{Engine, Goal, Refused, Search, lock};
use std::collections::HashMap;
use std::sync::Arc;

impl Engine {
    /// Returns the place without alternatives that need more levels than are left.
    pub(super) fn with_room(&self, place: Place) -> Option<Place> {
        let levels = |stack: &Stack| {
            let below = std::iter::successors(stack.top.as_ref(), |level| level.below.as_ref());
            below.filter(|level| matches!(level.frame, Frame::Array { .. } | Frame::Object { .. })).count()
        };
        // What stands in nothing has all levels, and so much was asked of it when the schema was added.
        let most = place.stacks().map(levels).max().unwrap_or_default();
        if most == 0 || most + self.deepest() <= MOST_LEVELS {
            return Some(place);
        }
        let found = place.stacks().filter_map(|stack| self.of_room(stack, MOST_LEVELS.checked_sub(levels(stack))?));
        Place::of(found.collect(), 0)
    }

    fn of_room(&self, stack: &Stack, room: usize) -> Option<Stack> {
        let level = stack.top.as_ref()?;
        let mut fitting = Fitting::new(self);
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
            Frame::Floor(_) | Frame::Word { .. } | Frame::Number { .. } | Frame::Text { .. } | Frame::Listed { .. } => {
                true
            }
        };
        fitting.search.refused().unwrap_or_else(|refused| self.fail(refused));
        is_fit.then(|| stack.clone())
    }
}

impl Engine {
    /// Levels that some value needs at most, as far as goals were met.
    fn deepest(&self) -> usize {
        let goals: Vec<Arc<Goal>> = {
            let goals = lock(&self.goals);
            let (count, deepest) = *lock(&self.deepest);
            if count == goals.len() {
                return deepest;
            }
            goals.values().cloned().collect()
        };
        let mut fitting = Fitting::new(self);
        let deepest = goals.iter().filter_map(|goal| fitting.levels(goal)).max().unwrap_or_default();
        if fitting.search.is_sure() {
            *lock(&self.deepest) = (goals.len(), deepest);
        }
        deepest
    }

    /// Returns whether some value of a goal needs no more levels than there are.
    pub(crate) fn has_room(&self, goal: &Arc<Goal>) -> Result<bool, Refused> {
        let mut fitting = Fitting::new(self);
        let levels = fitting.levels(goal);
        fitting.search.refused()?;
        Ok(levels.is_none_or(|levels| levels <= MOST_LEVELS))
    }
}

/// Cached test of whether values fit into a number of nesting levels.
struct Fitting<'e> {
    engine: &'e Engine,
    known: HashMap<(*const Goal, usize), bool>,
    search: Search,
}

impl<'e> Fitting<'e> {
    fn new(engine: &'e Engine) -> Self {
        Self { engine, known: HashMap::new(), search: Search::new() }
    }

    /// The levels that a value of a goal needs, one more than there are at most; `None` where there is no value.
    fn levels(&mut self, goal: &Arc<Goal>) -> Option<usize> {
        if let Some(known) = goal.known_levels() {
            return Some(known);
        }
        if !self.engine.is_possible(goal, &mut self.search) {
            return None;
        }
        let levels = (0..=MOST_LEVELS).find(|&room| self.goal(goal, room)).unwrap_or(MOST_LEVELS + 1);
        if self.search.is_sure() {
            goal.set_levels(levels);
        }
        Some(levels)
    }

    fn goal(&mut self, goal: &Arc<Goal>, room: usize) -> bool {
        if let Some(known) = goal.known_levels() {
            return known <= room;
        }
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
