//! Positions in a document: stacks of open values, one for each way in which the document may go on.

use super::escape::TextAt;
use super::{ArrayAt, ObjectAt};
use crate::shape::array::{ArrayShape, Items};
use crate::shape::object::{Members, ObjectShape};
use crate::shape::{Goal, Listed, TextShape};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trie_rules::{NumberMachine, NumberState, TextMachine};

/// Position in a document. Equal positions allow the same continuations. A clone is one reference count.
#[derive(Clone)]
pub struct Place(Arc<Ways>);

/// The ways in which what was written may go on.
struct Ways {
    hash: u64,
    /// State inside whitespace; 0 outside of it.
    blank: u32,
    first: Stack,
    /// Further alternatives for the text so far, in order.
    more: Vec<Stack>,
    number: NumberCell,
}

/// The number of a thing in the table that was asked for it last, and which table that was.
#[derive(Default)]
pub(super) struct NumberCell(AtomicU64);

impl NumberCell {
    /// The number in a table, if that one was asked last.
    pub(super) fn of(&self, table: u32) -> Option<u32> {
        let known = self.0.load(Ordering::Relaxed);
        (known >> 32 == u64::from(table)).then_some(known as u32)
    }

    pub(super) fn set(&self, table: u32, number: u32) {
        self.0.store(u64::from(table) << 32 | u64::from(number), Ordering::Relaxed);
    }
}

/// One alternative: a stack whose top is the innermost open value; empty after the whole document.
#[derive(Clone)]
pub(super) struct Stack {
    pub(super) top: Option<Arc<Level>>,
    /// Bytes written so far of an item that others must differ from.
    pub(super) record: Record,
}

/// A value that is begun, in another one.
pub(super) struct Level {
    hash: u64,
    /// Number of arrays and objects that are open here, this one included.
    pub(super) depth: u16,
    pub(super) frame: Frame,
    pub(super) below: Option<Arc<Self>>,
    /// Number of the frame taken alone.
    pub(super) number: NumberCell,
}

/// Bytes that were written, the last first: one more costs the same however many there are.
#[derive(Clone, Default)]
pub(super) struct Record(Option<Arc<RecordedByte>>);

struct RecordedByte {
    before: Record,
    byte: u8,
    length: u32,
    hash: u64,
}

impl Record {
    /// Returns a record without any bytes yet.
    pub(super) fn begun() -> Self {
        Self(Some(Arc::new(RecordedByte { before: Self(None), byte: 0, length: 0, hash: 1 })))
    }

    /// Returns whether anything is recorded.
    pub(super) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn with(&self, byte: u8) -> Self {
        Self(self.0.as_ref().map(|last| {
            let hash = (last.hash.rotate_left(5) ^ u64::from(byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            Arc::new(RecordedByte { before: self.clone(), byte, length: last.length + 1, hash })
        }))
    }

    pub(super) fn len(&self) -> u32 {
        self.0.as_ref().map_or(0, |last| last.length)
    }

    /// Returns the bytes written since a position in the record.
    pub(super) fn since(&self, start: u32) -> Vec<u8> {
        let before = std::iter::successors(self.0.as_ref(), |last| last.before.0.as_ref());
        let mut text: Vec<u8> = before.take_while(|last| last.length > start).map(|last| last.byte).collect();
        text.reverse();
        text
    }

    fn hash(&self) -> u64 {
        self.0.as_ref().map_or(0, |last| last.hash)
    }
}

impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        let (mut one, mut other) = (&self.0, &other.0);
        loop {
            match (one, other) {
                (None, None) => return true,
                (Some(last), Some(own)) => {
                    if Arc::ptr_eq(last, own) {
                        return true;
                    }
                    if (last.hash, last.length, last.byte) != (own.hash, own.length, own.byte) {
                        return false;
                    }
                    (one, other) = (&last.before.0, &own.before.0);
                }
                _ => return false,
            }
        }
    }
}

impl Drop for RecordedByte {
    /// Drops bytes one after the other: a recursive drop of many would overflow the stack.
    fn drop(&mut self) {
        let mut before = self.before.0.take();
        while let Some(mut last) = before.and_then(Arc::into_inner) {
            before = last.before.0.take();
        }
    }
}

/// Members with their hash: an object has the same ones for many bytes.
pub(super) struct MemberSet {
    hash: u64,
    pub(super) members: Members,
}

impl MemberSet {
    pub(super) fn new(members: Members) -> Arc<Self> {
        Arc::new(Self { hash: PlaceHash::default().hash_one(&members), members })
    }
}

impl PartialEq for MemberSet {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.hash == other.hash && self.members == other.members
    }
}

#[derive(Clone)]
pub(super) enum Frame {
    /// Below a value that is looked at alone, inside so many arrays and objects. The number is 0 where whitespace does
    /// not depend on it.
    Floor(u16),
    /// Before a value.
    Value(Arc<Goal>),
    Word {
        word: u8,
        at: u8,
    },
    Number {
        machine: Arc<NumberMachine>,
        state: NumberState,
    },
    Text {
        shape: Arc<TextShape>,
        at: TextAt,
    },
    /// In one of some texts that begin alike.
    Listed {
        listed: Arc<Listed>,
        from: u32,
        to: u32,
        depth: u32,
    },
    Array {
        shape: Arc<ArrayShape>,
        items: Items,
        at: ArrayAt,
    },
    Object {
        shape: Arc<ObjectShape>,
        members: Arc<MemberSet>,
        at: ObjectAt,
    },
}

/// Hash of places: the same in every table, since a place keeps its own.
pub(super) type PlaceHash = foldhash::fast::FixedState;

fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}

impl Hash for Frame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Floor(depth) => depth.hash(state),
            Self::Value(goal) => goal.hash(state),
            Self::Word { word, at } => (*word, *at).hash(state),
            Self::Number { machine, state: at } => (address(machine), at).hash(state),
            Self::Text { shape, at } => (address(shape), at).hash(state),
            Self::Listed { listed, from, to, depth } => (address(listed), from, to, depth).hash(state),
            Self::Array { shape, items, at } => (address(shape), items, at).hash(state),
            Self::Object { shape, members, at } => {
                (address(shape), members.hash).hash(state);
                at.hash(state);
            }
        }
    }
}

impl Hash for ObjectAt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Known(known) => (known.from, known.to, known.depth).hash(state),
            Self::Other(other) => (other.class, other.at, &other.text).hash(state),
            Self::Named(member) => member.hash(state),
            Self::Open | Self::Next | Self::Value | Self::After => {}
        }
    }
}

impl PartialEq for ObjectAt {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // Which names may come, and what machine has one, depends on the members before.
            (Self::Known(one), Self::Known(other)) => {
                (one.from, one.to, one.depth) == (other.from, other.to, other.depth)
            }
            (Self::Other(one), Self::Other(other)) => {
                (one.class, one.at, &one.text) == (other.class, other.at, &other.text)
            }
            (Self::Named(one), Self::Named(other)) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Floor(one), Self::Floor(other)) => one == other,
            (Self::Value(one), Self::Value(other)) => one == other,
            (Self::Word { word, at }, Self::Word { word: other, at: place }) => (word, at) == (other, place),
            (Self::Number { machine, state }, Self::Number { machine: other, state: at }) => {
                Arc::ptr_eq(machine, other) && state == at
            }
            (Self::Text { shape, at }, Self::Text { shape: other, at: place }) => {
                Arc::ptr_eq(shape, other) && at == place
            }
            (
                Self::Listed { listed, from, to, depth },
                Self::Listed { listed: other, from: low, to: high, depth: deep },
            ) => Arc::ptr_eq(listed, other) && (from, to, depth) == (low, high, deep),
            (Self::Array { shape, items, at }, Self::Array { shape: other, items: others, at: place }) => {
                Arc::ptr_eq(shape, other) && at == place && items == others
            }
            (Self::Object { shape, members, at }, Self::Object { shape: other, members: others, at: place }) => {
                Arc::ptr_eq(shape, other) && at == place && members == others
            }
            _ => false,
        }
    }
}

impl Level {
    pub(super) fn new(frame: Frame, below: Option<Arc<Self>>) -> Arc<Self> {
        let (hash, depth) = (hash_of_level(&frame, below.as_deref()), depth_of(&frame, below.as_deref()));
        Arc::new(Self { hash, depth, frame, below, number: NumberCell::default() })
    }

    fn set_frame(&mut self, frame: Frame) {
        self.hash = hash_of_level(&frame, self.below.as_deref());
        self.depth = depth_of(&frame, self.below.as_deref());
        (self.frame, self.number) = (frame, NumberCell::default());
    }
}

/// Returns the number of arrays and objects that are open at a level with this frame.
fn depth_of(frame: &Frame, below: Option<&Level>) -> u16 {
    let around = below.map_or(0, |below| below.depth);
    match frame {
        Frame::Floor(depth) => *depth,
        Frame::Array { .. } | Frame::Object { .. } => around.saturating_add(1),
        _ => around,
    }
}

fn hash_of_level(frame: &Frame, below: Option<&Level>) -> u64 {
    let mut hash = PlaceHash::default().build_hasher();
    frame.hash(&mut hash);
    hash.write_u64(below.map_or(0, |below| below.hash));
    hash.finish()
}

/// The hash of a place with a single alternative.
fn hash_of_one(first: &Stack, blank: u32) -> u64 {
    let mut hash = PlaceHash::default().build_hasher();
    hash.write_u64(first.hash());
    hash.write_u32(blank);
    hash.finish()
}

impl Drop for Level {
    /// Drops levels one after the other: a recursive drop of a deeply nested document would overflow the stack.
    fn drop(&mut self) {
        let mut below = self.below.take();
        while let Some(mut level) = below.and_then(Arc::into_inner) {
            below = level.below.take();
        }
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        if self.record != other.record {
            return false;
        }
        let (mut one, mut other) = (self.top.as_ref(), other.top.as_ref());
        loop {
            match (one, other) {
                (None, None) => return true,
                (Some(level), Some(own)) => {
                    if Arc::ptr_eq(level, own) {
                        return true;
                    }
                    if level.hash != own.hash || level.frame != own.frame {
                        return false;
                    }
                    (one, other) = (level.below.as_ref(), own.below.as_ref());
                }
                _ => return false,
            }
        }
    }
}

impl Eq for Stack {}

impl Stack {
    fn hash(&self) -> u64 {
        let mut hash = PlaceHash::default().build_hasher();
        hash.write_u64(self.top.as_ref().map_or(1, |level| level.hash));
        hash.write_u64(self.record.hash());
        hash.finish()
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&*self.0, &*other.0);
        std::ptr::eq(one, other)
            || (one.hash, one.blank) == (other.hash, other.blank) && one.first == other.first && one.more == other.more
    }
}

impl Eq for Place {}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ways", &(1 + self.0.more.len())).finish_non_exhaustive()
    }
}

impl Place {
    /// Before a value.
    pub(crate) fn of_value(goal: &Arc<Goal>) -> Self {
        Self::alone(Frame::Value(Arc::clone(goal)), None, 0)
    }

    /// In one value.
    pub(super) fn alone(frame: Frame, below: Option<Arc<Level>>, blank: u32) -> Self {
        Self::of_one(Stack { top: Some(Level::new(frame, below)), record: Record::default() }, blank)
    }

    /// Returns the place with a single alternative.
    pub(super) fn of_one(first: Stack, blank: u32) -> Self {
        let hash = hash_of_one(&first, blank);
        Self(Arc::new(Ways { hash, blank, first, more: Vec::new(), number: NumberCell::default() }))
    }

    /// Returns the place with these alternatives, without duplicates; `None` if there are none.
    pub(super) fn of(mut all: Vec<Stack>, blank: u32) -> Option<Self> {
        if all.len() == 1 {
            return Some(Self::of_one(all.pop()?, blank));
        }
        all.sort_by_key(Stack::hash);
        all.dedup();
        let mut all = all.into_iter();
        let first = all.next()?;
        let more: Vec<Stack> = all.collect();
        let mut hash = PlaceHash::default().build_hasher();
        hash.write_u64(first.hash());
        for stack in &more {
            hash.write_u64(stack.hash());
        }
        hash.write_u32(blank);
        Some(Self(Arc::new(Ways { hash: hash.finish(), blank, first, more, number: NumberCell::default() })))
    }

    /// The innermost value, where there is one way alone and nothing is recorded.
    pub(super) fn only(&self) -> Option<&Arc<Level>> {
        let Ways { first, more, blank, .. } = &*self.0;
        let is_plain = more.is_empty() && !first.record.is_on() && *blank == 0;
        first.top.as_ref().filter(|_| is_plain)
    }

    /// Puts a frame in place of the innermost one, where [`Place::only`] has one.
    pub(super) fn set_frame(&mut self, frame: Frame) {
        // Nobody else may have it: states are told many bytes in a row.
        if let Some(ways) = Arc::get_mut(&mut self.0) {
            match &mut ways.first.top {
                Some(top) => match Arc::get_mut(top) {
                    Some(level) => level.set_frame(frame),
                    None => *top = Level::new(frame, top.below.clone()),
                },
                top => *top = Some(Level::new(frame, None)),
            }
            ways.number = NumberCell::default();
            ways.hash = hash_of_one(&ways.first, ways.blank);
            return;
        }
        let below = self.0.first.top.as_ref().and_then(|level| level.below.clone());
        let top = Some(Level::new(frame, below));
        *self = Self::of_one(Stack { top, record: Record::default() }, self.0.blank);
    }

    pub(super) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        std::iter::once(&self.0.first).chain(&self.0.more)
    }

    /// Returns the state inside whitespace; 0 outside of it.
    pub(super) fn blank(&self) -> u32 {
        self.0.blank
    }

    pub(super) fn number(&self) -> &NumberCell {
        &self.0.number
    }

    /// Returns whether it is in blanks.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.blank != 0
    }

    /// Bytes held that no other place holds, about.
    pub(super) fn nbytes(&self) -> usize {
        let own = |stack: &Stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(Frame::Object { members, .. }) => size_of::<Level>() + 8 * members.members.others().len(),
            _ => size_of::<Level>(),
        };
        size_of::<Ways>() + self.stacks().map(own).sum::<usize>()
    }

    /// The machine of the text that is written, in which all that counts is the class of each character.
    pub(super) fn text(&self) -> Option<&TextMachine> {
        let Ways { blank: 0, first: Stack { top: Some(level), record: Record(None) }, more, .. } = &*self.0 else {
            return None;
        };
        match &level.frame {
            Frame::Text { shape, at } if more.is_empty() && at.is_between() => Some(&shape.machine),
            _ => None,
        }
    }
}
