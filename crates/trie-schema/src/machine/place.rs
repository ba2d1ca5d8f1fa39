//! Where one is in a document: values that are begun, one inside the other, in all ways in which they may go on.

use super::escape::TextAt;
use super::{ArrayAt, ObjectAt, Other};
use crate::shape::array::{ArrayShape, Items};
use crate::shape::object::{Members, ObjectShape};
use crate::shape::{Goal, Listed, TextShape};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use trie_rules::{NumberMachine, NumberState};

/// Where one is in a document. Equal where the same may come from there on.
#[derive(Clone, PartialEq, Eq)]
pub struct Place {
    hash: u64,
    /// Where in blanks: 0 for outside.
    pub(super) blank: u32,
    first: Stack,
    /// Other ways in which what was written may be meant, in order.
    more: Vec<Stack>,
}

/// One way: the innermost value that is begun, or none behind the whole document.
#[derive(Clone)]
pub(super) struct Stack {
    pub(super) top: Option<Arc<Level>>,
    /// What was written of an item that others must differ from.
    pub(super) record: Option<Arc<Vec<u8>>>,
}

/// A value that is begun, in another one.
pub(super) struct Level {
    hash: u64,
    pub(super) frame: Frame,
    pub(super) below: Option<Arc<Self>>,
}

pub(super) enum Frame {
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
        members: Members,
        at: ObjectAt,
    },
}

/// A hash that costs little: states are hashed with every byte.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

fn address<T>(of: &Arc<T>) -> usize {
    Arc::as_ptr(of) as usize
}

impl Hash for Frame {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Value(goal) => goal.hash(state),
            Self::Word { word, at } => (*word, *at).hash(state),
            Self::Number { machine, state: at } => (address(machine), at).hash(state),
            Self::Text { shape, at } => (address(shape), at).hash(state),
            Self::Listed { listed, from, to, depth } => (address(listed), from, to, depth).hash(state),
            Self::Array { shape, items, at } => (address(shape), items, at).hash(state),
            Self::Object { shape, members, at } => {
                (address(shape), members).hash(state);
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
        let mut hash = Quick::default();
        frame.hash(&mut hash);
        hash.write_u64(below.as_ref().map_or(0, |below| below.hash));
        Arc::new(Self { hash: hash.finish(), frame, below })
    }
}

impl Drop for Level {
    /// One after the other: documents may be nested deeper than a stack.
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
        let mut hash = Quick(self.top.as_ref().map_or(1, |level| level.hash));
        self.record.hash(&mut hash);
        hash.finish()
    }
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place").field("ways", &(1 + self.more.len())).finish_non_exhaustive()
    }
}

impl Place {
    /// Before a value.
    pub(crate) fn of_value(goal: &Arc<Goal>) -> Self {
        let top = Some(Level::new(Frame::Value(Arc::clone(goal)), None));
        let first = Stack { top, record: None };
        Self { hash: first.hash(), blank: 0, first, more: Vec::new() }
    }

    /// Of some ways, each once; `None` without any.
    pub(super) fn of(mut all: Vec<Stack>, blank: u32) -> Option<Self> {
        if all.len() > 1 {
            all.sort_by_key(Stack::hash);
            all.dedup();
        }
        let mut all = all.into_iter();
        let first = all.next()?;
        let more: Vec<Stack> = all.collect();
        let mut hash = Quick(first.hash());
        for stack in &more {
            hash.write_u64(stack.hash());
        }
        hash.write_u32(blank);
        Some(Self { hash: hash.finish(), blank, first, more })
    }

    /// The innermost value, where there is one way alone and nothing is recorded.
    pub(super) fn only(&self) -> Option<&Arc<Level>> {
        let is_plain = self.more.is_empty() && self.first.record.is_none() && self.blank == 0;
        self.first.top.as_ref().filter(|_| is_plain)
    }

    /// Of one way, in which nothing is recorded.
    pub(super) fn of_level(level: Arc<Level>) -> Self {
        let first = Stack { top: Some(level), record: None };
        // As `of` has it.
        let mut hash = Quick(first.hash());
        hash.write_u32(0);
        Self { hash: hash.finish(), blank: 0, first, more: Vec::new() }
    }

    pub(super) fn stacks(&self) -> impl Iterator<Item = &Stack> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Whether any characters may come for so long, but for controls, quotes and backslashes.
    pub(super) fn is_free(&self, chars: u32) -> bool {
        let is_free = |stack: &Stack| match stack.top.as_ref().map(|level| &level.frame) {
            Some(Frame::Text { shape, at }) => at.is_between() && shape.machine.free_chars(at.state) >= chars,
            Some(Frame::Object { at: ObjectAt::Other(other), .. }) => {
                other.at.is_between() && other.machine.free_chars(other.at.state) >= chars
            }
            _ => false,
        };
        self.blank == 0 && self.stacks().any(is_free)
    }

    /// The same without what tells nothing for tokens of so many bytes: the beginning of a name, how long a string is.
    /// `None` where there is no such thing.
    pub(super) fn forgetting(&self, longest: u32) -> Option<Self> {
        if self.blank != 0 {
            return None;
        }
        let mut is_other = false;
        let stacks = self.stacks().map(|stack| {
            let level = stack.top.as_ref();
            let frame = level.and_then(|level| match &level.frame {
                Frame::Text { shape, at } => {
                    let at = at.far_from_bounds(&shape.machine, longest)?;
                    Some(Frame::Text { shape: Arc::clone(shape), at })
                }
                Frame::Object { shape, members, at: ObjectAt::Other(other) } if shape.is_whole(other.class) => {
                    let other = Other { text: None, ..other.clone() };
                    let at = ObjectAt::Other(other);
                    Some(Frame::Object { shape: Arc::clone(shape), members: members.clone(), at })
                }
                _ => None,
            });
            let Some(frame) = frame else { return stack.clone() };
            is_other = true;
            let below = level.and_then(|level| level.below.clone());
            Stack { top: Some(Level::new(frame, below)), record: stack.record.clone() }
        });
        let stacks: Vec<Stack> = stacks.collect();
        if is_other { Self::of(stacks, 0) } else { None }
    }

    /// The rests of names that must not come, where one is begun that the schema does not say; with the quote behind.
    pub(super) fn rests_of_names(&self) -> Vec<Vec<u8>> {
        let mut rests = Vec::new();
        for stack in self.stacks() {
            let Some(Frame::Object { shape, members, at: ObjectAt::Other(other) }) =
                stack.top.as_ref().map(|level| &level.frame)
            else {
                continue;
            };
            let (true, Some(text)) = (shape.is_whole(other.class), &other.text) else { continue };
            let names = shape.by_name.keys().chain(members.others());
            let rest = names.filter_map(|name| name.as_bytes().strip_prefix(&**text));
            rests.extend(rest.map(|rest| [rest, b"\""].concat()));
        }
        rests.sort_unstable();
        rests.dedup();
        rests
    }

    /// Whether it is in blanks.
    pub(crate) fn is_blank(&self) -> bool {
        self.blank != 0
    }
}
