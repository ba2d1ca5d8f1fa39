//! Values that are fed as events: each event stands for the JSON text that the machine over bytes would write for it.

use super::place::{Frame, Level, Stack};
use super::{ArrayAt, ObjectAt, Other, Place, Record, narrowed};
use crate::event::{Event, RemainingText};
use crate::formula::Types;
use crate::json::quoted;
use crate::shape::{Engine, Goal, Listed, MARK, Search};
use std::sync::Arc;
use trie_core::work::spend;

/// Returns whether JSON strings write a byte of a text as it is; bytes inside of characters stand for themselves.
fn is_written_so(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// A byte of a text as JSON strings write it.
fn written(byte: u8, mut each: impl FnMut(u8)) {
    if is_written_so(byte) {
        return each(byte);
    }
    let mut text = Vec::new();
    quoted(char::from(byte).encode_utf8(&mut [0; 4]), &mut text);
    text[1..text.len() - 1].iter().for_each(|&byte| each(byte));
}

fn with_text(record: &Record, byte: u8) -> Record {
    let mut record = record.clone();
    if record.is_on() {
        written(byte, |byte| record = record.with(byte));
    }
    record
}

impl Engine {
    /// After a part more; `None` if no value goes on so.
    pub(crate) fn tell(&self, place: &Place, event: Event) -> Option<Place> {
        if spend(1).is_err() {
            return None;
        }
        let mut found = Vec::new();
        for stack in place.stacks() {
            self.told(stack, event, &mut found);
        }
        let place = self.place_of(found, 0)?;
        match event {
            Event::ObjectOpen | Event::ArrayOpen | Event::Comma | Event::TextOpen | Event::TextClose => {
                self.with_room(place)
            }
            _ => Some(place),
        }
    }

    /// Takes a byte of a string or a number where one way alone goes on: `None` where there may be more, else whether
    /// it fits.
    #[inline]
    pub(crate) fn tell_byte(place: &mut Place, event: Event) -> Option<bool> {
        let level = place.only()?;
        let frame = match (&level.frame, event) {
            (Frame::Text { shape, at }, Event::Text(byte)) => {
                if shape.is_free && byte.is_ascii() && at.state == shape.machine.start() {
                    return Some(true);
                }
                let Some(state) = shape.machine.step(at.state, byte) else { return Some(false) };
                if state == at.state {
                    return Some(true);
                }
                let mut at = *at;
                at.state = state;
                Frame::Text { shape: Arc::clone(shape), at }
            }
            (Frame::Number { machine, state }, Event::Number(byte)) => {
                let Some(state) = machine.step(state, byte) else { return Some(false) };
                Frame::Number { machine: Arc::clone(machine), state }
            }
            (Frame::Listed { listed, from, to, depth }, Event::Text(byte)) if is_written_so(byte) => {
                let Some((from, to)) = narrowed(listed, (*from, *to), *depth, byte) else { return Some(false) };
                Frame::Listed { listed: Arc::clone(listed), from, to, depth: depth + 1 }
            }
            (Frame::Object { shape, members, at: ObjectAt::Known(known) }, Event::Text(byte))
                if is_written_so(byte) =>
            {
                let Some(known) = known.step(shape, byte) else { return Some(false) };
                // Behind its text comes the quote.
                let at = ObjectAt::Known(known);
                Frame::Object { shape: Arc::clone(shape), members: Arc::clone(members), at }
            }
            _ => return None,
        };
        place.set_frame(frame);
        Some(true)
    }

    fn told(&self, stack: &Stack, event: Event, found: &mut Vec<Stack>) {
        match event {
            Event::Text(byte) => self.told_text(stack, byte, found),
            Event::TextOpen => self.go(stack, b'"', found),
            Event::TextClose => self.told_end_of_text(stack, found),
            Event::Number(byte) => self.go(stack, byte, found),
            Event::NumberEnd => self.told_end_of_number(stack, found),
            Event::ObjectOpen => self.go(stack, b'{', found),
            Event::ArrayOpen => self.go(stack, b'[', found),
            Event::Comma => self.go(stack, b',', found),
            Event::Close => {
                self.go(stack, b'}', found);
                self.go(stack, b']', found);
            }
            Event::Null => self.told_bytes(stack, b"null", found),
            Event::True => self.told_bytes(stack, b"true", found),
            Event::False => self.told_bytes(stack, b"false", found),
        }
    }

    fn told_bytes(&self, stack: &Stack, bytes: &[u8], found: &mut Vec<Stack>) {
        let mut stacks = vec![stack.clone()];
        for &byte in bytes {
            let mut next = Vec::new();
            for stack in &stacks {
                self.go(stack, byte, &mut next);
            }
            stacks = next;
        }
        found.append(&mut stacks);
    }

    fn told_text(&self, stack: &Stack, byte: u8, found: &mut Vec<Stack>) {
        let Some(level) = &stack.top else { return };
        let on = |frame: Frame| {
            let top = Some(Level::new(frame, level.below.clone()));
            Stack { top, record: with_text(&stack.record, byte) }
        };
        match &level.frame {
            Frame::Text { shape, at } => {
                let Some(state) = shape.machine.step(at.state, byte) else { return };
                if state == at.state && !stack.record.is_on() {
                    return found.push(stack.clone());
                }
                let mut at = *at;
                at.state = state;
                found.push(on(Frame::Text { shape: Arc::clone(shape), at }));
            }
            Frame::Object { shape, members, at: ObjectAt::Other(other) } => {
                let Some(state) = other.shape.machine.step(other.at.state, byte) else { return };
                let text = other.text.as_ref().map(|text| text.iter().copied().chain([byte]).collect());
                let mut other = Other { text, ..other.clone() };
                other.at.state = state;
                let at = ObjectAt::Other(other);
                found.push(on(Frame::Object { shape: Arc::clone(shape), members: members.clone(), at }));
            }
            Frame::Listed { .. } | Frame::Object { at: ObjectAt::Known(_), .. } => {
                let mut bytes = Vec::new();
                written(byte, |byte| bytes.push(byte));
                self.told_bytes(stack, &bytes, found);
            }
            _ => {}
        }
    }

    fn told_end_of_text(&self, stack: &Stack, found: &mut Vec<Stack>) {
        let mut ended = Vec::new();
        self.go(stack, b'"', &mut ended);
        for stack in ended {
            let is_name = matches!(
                stack.top.as_ref().map(|level| &level.frame),
                Some(Frame::Object { at: ObjectAt::Named(_), .. })
            );
            let before = found.len();
            // A name in what is listed goes on with a colon, and no other string does.
            self.go(&stack, b':', found);
            if found.len() == before && !is_name {
                found.push(stack);
            }
        }
    }

    fn told_end_of_number(&self, stack: &Stack, found: &mut Vec<Stack>) {
        match stack.top.as_ref().map(|level| (&level.frame, level)) {
            Some((frame @ Frame::Number { .. }, level)) if Self::may_be_over(frame) => {
                self.behind(level.below.as_ref(), stack.record.clone(), found);
            }
            Some((Frame::Number { .. }, _)) => {}
            Some((frame @ Frame::Listed { .. }, level)) => {
                if Self::may_be_over(frame) {
                    self.behind(level.below.as_ref(), stack.record.clone(), found);
                } else if ends_in_list(frame) {
                    found.push(stack.clone());
                }
            }
            // What is listed ends by itself where nothing else begins alike.
            _ => found.push(stack.clone()),
        }
    }

    /// Returns whether a number may end here.
    pub(crate) fn may_number_end(place: &Place) -> bool {
        place.stacks().any(|stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(frame @ (Frame::Number { .. } | Frame::Listed { .. })) => {
                Self::may_be_over(frame) || ends_in_list(frame)
            }
            _ => true,
        })
    }

    /// Returns whether a text may end here.
    pub(crate) fn may_text_end(&self, place: &Place) -> bool {
        let mut ended = Vec::new();
        place.stacks().any(|stack| {
            if let Some(Frame::Text { shape, at }) = stack.top.as_ref().map(|level| &level.frame) {
                return shape.machine.is_end(at.state);
            }
            self.told_end_of_text(stack, &mut ended);
            !ended.is_empty()
        })
    }

    /// Right behind the beginning of an array: its first item must come. `None` where there is none.
    pub(crate) fn first_item(&self, place: &Place) -> Option<Place> {
        let mut found = Vec::new();
        for stack in place.stacks() {
            let Some(level) = &stack.top else { continue };
            let mut on = |frame: Frame| {
                let top = Some(Level::new(frame, level.below.clone()));
                found.push(Stack { top, record: stack.record.clone() });
            };
            match &level.frame {
                Frame::Array { shape, items, at: ArrayAt::Open } => {
                    let mut search = Search::new();
                    if !self.item_cells(shape, items, &mut search).is_empty() {
                        on(Frame::Array { shape: Arc::clone(shape), items: items.clone(), at: ArrayAt::Next });
                    }
                    search.refused().unwrap_or_else(|refused| self.fail(refused));
                }
                Frame::Listed { listed, from, to, depth } => {
                    let Some((from, to)) = narrowed(listed, (*from, *to), *depth, MARK) else { continue };
                    let depth = depth + 1;
                    let (low, high) = narrowed(listed, (from, to), depth, b']').unwrap_or((from, from));
                    for (from, to) in [(from, low), (high, to)].into_iter().filter(|(from, to)| from < to) {
                        on(Frame::Listed { listed: Arc::clone(listed), from, to, depth });
                    }
                }
                _ => {}
            }
        }
        Place::of(found, 0)
    }

    /// The types that values of a goal have.
    pub(crate) fn types_of(&self, goal: &Goal) -> Types {
        let shapes = match self.shapes(goal) {
            Ok(shapes) => shapes,
            Err(refused) => {
                self.fail(refused);
                return Types::NONE;
            }
        };
        let mut search = Search::new();
        let listed = shapes.listed.iter().flat_map(|listed| &listed.texts).map(|text| match text.first() {
            Some(b'n') => Types::NULL,
            Some(b't' | b'f') => Types::BOOLEAN,
            Some(b'"') => Types::STRING,
            Some(b'[') => Types::ARRAY,
            Some(b'{') => Types::OBJECT,
            _ => Types::NUMBER,
        });
        let some = |types: Types, is: bool| if is { types } else { Types::NONE };
        let types = [
            some(Types::NULL, shapes.null),
            some(Types::BOOLEAN, shapes.is_true || shapes.is_false),
            some(Types::NUMBER, !shapes.numbers.is_empty()),
            some(Types::STRING, !shapes.texts.is_empty()),
            some(Types::ARRAY, shapes.arrays.iter().any(|shape| self.array_begins(shape, &mut search))),
            some(Types::OBJECT, shapes.objects.iter().any(|shape| self.object_begins(shape, &mut search))),
        ];
        types.into_iter().chain(listed).fold(Types::NONE, Types::or)
    }

    /// The types that a value may have which must come here.
    pub(crate) fn types_at(&self, place: &Place) -> Types {
        let mut types = Types::NONE;
        for stack in place.stacks() {
            match stack.top.as_ref().map(|level| &level.frame) {
                Some(Frame::Value(goal)) => types = types.or(self.types_of(goal)),
                Some(Frame::Array { shape, items, at: ArrayAt::Open | ArrayAt::Next }) => {
                    let mut search = Search::new();
                    for (goal, _) in self.item_cells(shape, items, &mut search).iter() {
                        types = types.or(self.types_of(goal));
                    }
                    search.refused().unwrap_or_else(|refused| self.fail(refused));
                }
                // In what is listed the next part says it.
                Some(Frame::Listed { .. }) => types = Types::ALL,
                _ => {}
            }
        }
        types
    }

    /// Returns whether nothing but listed strings and names may be written next, and what stands around them.
    pub(crate) fn leads_to_listed(&self, place: &Place) -> bool {
        place.stacks().all(|stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(Frame::Object { shape, at: ObjectAt::Open | ObjectAt::Next | ObjectAt::After, .. }) => {
                shape.classes.is_empty()
            }
            Some(Frame::Value(goal)) => self.shapes(goal).is_ok_and(|shapes| shapes.texts.is_empty()),
            _ => is_listed(stack),
        })
    }
}

/// Returns whether a number may end inside of a listed array or object.
fn ends_in_list(frame: &Frame) -> bool {
    match frame {
        Frame::Listed { listed, from, to, depth } => narrowed(listed, (*from, *to), *depth, MARK).is_some(),
        _ => false,
    }
}

/// Returns whether a text is in a string after so many bytes.
fn is_in_string(text: &[u8], depth: usize) -> bool {
    let (mut is_in, mut is_escaped) = (false, false);
    for &byte in &text[..depth] {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_in = !is_in,
            _ => {}
        }
    }
    is_in
}

fn is_listed(stack: &Stack) -> bool {
    match stack.top.as_ref().map(|level| &level.frame) {
        Some(Frame::Object { at: ObjectAt::Known(_), .. }) => true,
        Some(Frame::Listed { listed, from, depth, .. }) => is_in_string(&listed.texts[*from as usize], *depth as usize),
        _ => false,
    }
}

impl Place {
    /// Returns whether a text of a list is written here, and nothing else may be.
    pub(crate) fn is_listed(&self) -> bool {
        self.stacks().all(is_listed)
    }

    /// Adds the rests of the texts that may be written here; `false` where they are not listed, or more than so many.
    pub(crate) fn listed(&self, most: usize, to: &mut Vec<RemainingText>) -> bool {
        let is_few = |count: usize, to: &Vec<RemainingText>| count <= most.saturating_sub(to.len());
        self.is_listed()
            && self.stacks().all(|stack| match stack.top.as_ref().map(|level| &level.frame) {
                Some(Frame::Object { shape, at: ObjectAt::Known(known), .. }) => {
                    let names = known.range();
                    let fits = is_few(names.len(), to);
                    if fits {
                        let text = |&name: &u32| rest(&shape.names[name as usize].text, known.depth as usize);
                        to.extend(names.iter().map(text));
                    }
                    fits
                }
                Some(Frame::Listed { listed, from, to: end, depth }) => {
                    let fits = is_few((end - from) as usize, to);
                    if fits {
                        let texts = &listed.texts[*from as usize..*end as usize];
                        let mut rests: Vec<RemainingText> =
                            texts.iter().map(|text| rest(text, *depth as usize)).collect();
                        rests.dedup();
                        to.extend(rests);
                    }
                    fits
                }
                _ => false,
            })
    }

    /// Returns whether a string is written here that is held to a length and nothing else.
    pub(crate) fn is_unlisted_text(&self) -> bool {
        self.stacks().any(|stack| {
            matches!(stack.top.as_ref().map(|level| &level.frame), Some(Frame::Text { shape, .. }) if shape.is_any)
        })
    }

    /// Returns a number of characters that may come in a string here, whatever they are; a lower bound.
    pub(crate) fn free_chars(&self) -> u32 {
        let of = |stack: &Stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(Frame::Text { shape, at }) if at.is_between() => shape.machine.free_chars(at.state),
            _ => 0,
        };
        self.stacks().map(of).max().unwrap_or(0)
    }

    /// Returns whether a string is written here that may be anything, and may end wherever a character does.
    pub(crate) fn is_free_text(&self) -> bool {
        self.stacks().any(|stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(Frame::Text { shape, at }) => {
                shape.is_any && shape.machine.chars().1.is_none() && shape.machine.free_chars(at.state) == u32::MAX
            }
            _ => false,
        })
    }

    /// The same without names that are begun, as far as they become none that must not come.
    pub(crate) fn without_names(&self) -> Option<Self> {
        let mut is_other = false;
        let stacks: Vec<Stack> = self
            .stacks()
            .map(|stack| match stack.top.as_ref().map(|level| (&level.frame, level)) {
                Some((Frame::Object { shape, members, at: ObjectAt::Other(other) }, level)) => {
                    let begins = |name: &str| other.text.as_ref().is_some_and(|text| name.as_bytes().starts_with(text));
                    let is_kept = shape.by_name.keys().chain(members.members.others()).any(|name| begins(name));
                    if is_kept || other.text.is_none() {
                        return stack.clone();
                    }
                    is_other = true;
                    let at = ObjectAt::Other(Other { text: None, ..other.clone() });
                    let frame = Frame::Object { shape: Arc::clone(shape), members: members.clone(), at };
                    Stack { top: Some(Level::new(frame, level.below.clone())), record: stack.record.clone() }
                }
                _ => stack.clone(),
            })
            .collect();
        if is_other { Self::of(stacks, 0) } else { None }
    }

    /// The ways of both.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let all = self.stacks().chain(other.stacks()).cloned().collect();
        Self::of(all, 0).unwrap_or_else(|| self.clone())
    }

    /// Parts that are missing at least, about: what leads searches for an end.
    pub(crate) fn distance(&self) -> u32 {
        self.stacks().map(distance).min().unwrap_or(0)
    }
}

/// The rest of a text in JSON, up to its end or to what is escaped.
fn rest(text: &[u8], depth: usize) -> RemainingText {
    let (before, text) = text.split_at(depth);
    let end = text.iter().position(|&byte| byte == b'"' || byte == b'\\').unwrap_or(text.len());
    let is_cut = text.get(end) == Some(&b'\\');
    RemainingText { text: text[..end].into(), before: before.last().copied().filter(|&byte| byte != b'"'), is_cut }
}

fn distance(stack: &Stack) -> u32 {
    let shortest = |listed: &Listed, from: u32, to: u32, depth: u32| {
        listed.texts[from as usize..to as usize].iter().map(|text| text.len() as u32 - depth).min().unwrap_or(0)
    };
    let (mut all, mut level) = (0, stack.top.as_ref());
    while let Some(here) = level {
        all += 1 + match &here.frame {
            Frame::Floor(_) => 0,
            Frame::Value(_) => 3,
            Frame::Word { .. } | Frame::Number { .. } | Frame::Text { .. } => 1,
            Frame::Listed { listed, from, to, depth } => shortest(listed, *from, *to, *depth),
            Frame::Array { shape, items, .. } => 4 * shape.missing(items) as u32,
            Frame::Object { shape, members, at } => {
                let begun = match at {
                    ObjectAt::Known(known) => {
                        let left = |&name: &u32| shape.names[name as usize].text.len() as u32 - known.depth;
                        known.range().iter().map(left).min().unwrap_or(0) + 4
                    }
                    ObjectAt::Other(_) => 6,
                    _ => 0,
                };
                begun + shape.missing(&members.members) as u32
            }
        };
        level = here.below.as_ref();
    }
    all
}
