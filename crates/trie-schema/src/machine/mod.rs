//! Documents byte by byte: positions in a document, and the bytes that are allowed at each.

mod escape;
mod place;
mod room;
mod steps;
mod tell;
mod text_tokens;
#[cfg(test)]
mod twin;
mod walk;

pub use place::Place;
pub(crate) use steps::Steps;
pub(crate) use walk::DocumentWalk;
pub use walk::prepare_vocabulary;

use crate::formula::Values;
use crate::json::Json;
use crate::shape::array::{ArrayShape, Items};
use crate::shape::object::{Member, Members, ObjectShape};
use crate::shape::{Blanks, Engine, Goal, Listed, MARK, Refused, Search, TextShape};
use escape::TextAt;
use place::{Frame, Level, MemberSet, Record, Stack};
use std::cell::RefCell;
use std::sync::Arc;
use trie_core::work::spend;
use trie_rules::{TextMachine, TextSet};

/// A name that is not kept.
const UNKEPT: &str = "\u{10ffff}";

/// Maximum number of alternatives of a place: alternatives that the text does not tell apart may double at each level.
const MOST_WAYS: usize = 4096;

/// Words of JSON.
const WORDS: [&[u8]; 3] = [b"null", b"true", b"false"];

/// Position in an array: the part that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ArrayAt {
    /// Behind the bracket.
    Open,
    /// Behind a comma.
    Next,
    /// In an item, whose text began there in what is recorded.
    Item(u32),
    /// Behind an item.
    After,
}

/// Position in an object: the part that comes next.
#[derive(Debug, Clone)]
pub(crate) enum ObjectAt {
    /// Behind the brace.
    Open,
    /// Behind a comma.
    Next,
    /// In a name that the schema says.
    Known(Known),
    /// In another name.
    Other(Other),
    /// Behind a name.
    Named(Member),
    /// In a value.
    Value,
    /// Behind a value.
    After,
}

/// In one of some names: those whose texts begin alike.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// All names allowed here, sorted by their texts.
    names: Arc<[u32]>,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) depth: u32,
}

impl Known {
    /// Returns the names whose texts begin with the bytes written so far.
    fn range(&self) -> &[u32] {
        &self.names[self.from as usize..self.to as usize]
    }

    /// Returns the names whose texts go on with a byte; `None` if there are none.
    fn step(&self, shape: &ObjectShape, byte: u8) -> Option<Self> {
        let ((from, to, depth), _) = self.step_from(shape, (self.from, self.to, self.depth), byte)?;
        Some(Self { names: Arc::clone(&self.names), from, to, depth })
    }

    /// Steps from a range of the names, all of which begin alike, with the number of these bytes; with the name that is
    /// over then.
    pub(crate) fn step_from(
        &self,
        shape: &ObjectShape,
        (from, to, depth): (u32, u32, u32),
        byte: u8,
    ) -> Option<((u32, u32, u32), Option<u32>)> {
        let names = &self.names[from as usize..to as usize];
        let own = |name: u32| shape.names[name as usize].text[depth as usize];
        let (first, last) = (own(*names.first()?), own(*names.last()?));
        if !(first..=last).contains(&byte) {
            return None;
        }
        let low = names.partition_point(|&name| own(name) < byte);
        let high = names.partition_point(|&name| own(name) <= byte);
        let first = *names.get(low).filter(|_| low < high)?;
        let name = (shape.names[first as usize].text.len() == depth as usize + 1).then_some(first);
        Some(((from + low as u32, from + high as u32, depth + 1), name))
    }
}

/// In a name that the schema does not say.
#[derive(Debug, Clone)]
pub(crate) struct Other {
    pub(crate) class: u32,
    shape: Arc<TextShape>,
    pub(crate) at: TextAt,
    /// Decoded text so far; `None` if it is not kept.
    pub(crate) text: Option<Arc<[u8]>>,
}

thread_local! {
    /// Error because of which the last step of this thread could not be decided, and the engine that it belongs to.
    static FAILED: RefCell<Option<(usize, Refused)>> = const { RefCell::new(None) };
}

/// Returns whether the last byte is a comma between values or the colon behind a name.
fn is_behind_sign(frame: &Frame) -> bool {
    match frame {
        Frame::Value(_) | Frame::Array { at: ArrayAt::Next, .. } | Frame::Object { at: ObjectAt::Next, .. } => true,
        // In a string no mark follows.
        Frame::Listed { listed, from, depth, .. } => {
            let before = depth.checked_sub(1).map(|last| listed.texts[*from as usize][last as usize]);
            matches!(before, Some(b',' | b':'))
        }
        _ => false,
    }
}

/// Returns the number of arrays and objects that are open on a stack.
fn depth_at(stack: &Stack) -> usize {
    let Some(level) = &stack.top else { return 0 };
    let inside = match &level.frame {
        Frame::Listed { listed, from, depth, .. } => open_brackets(&listed.texts[*from as usize][..*depth as usize]),
        _ => 0,
    };
    usize::from(level.depth) + inside
}

/// Returns the number of brackets that the beginning of a JSON text leaves open.
fn open_brackets(text: &[u8]) -> usize {
    let (mut open, mut in_string, mut escaped) = (0_usize, false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => open += 1,
            b']' | b'}' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    open
}

impl Engine {
    /// Returns the place after one more byte, without the cache; `None` if no document continues with it.
    ///
    /// An alternative that cannot be decided is left out where others go on. It is a failure where none does.
    pub(crate) fn step(&self, place: &Place, byte: u8) -> Option<Place> {
        let was_failing = self.is_failing();
        let next = self.step_of_ways(place, byte);
        if next.is_some() && !was_failing {
            self.take_failure();
        }
        next
    }

    fn step_of_ways(&self, place: &Place, byte: u8) -> Option<Place> {
        if spend(1).is_err() {
            return None;
        }
        let blanks = &self.written.blanks;
        if place.blank() == 0 || blanks.is_end(place.blank()) {
            let mut found = Vec::new();
            for stack in place.stacks() {
                self.go(stack, byte, &mut found);
            }
            if let Some(next) = self.place_of(found, 0) {
                return Some(next);
            }
        }
        if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            return None;
        }
        let depth = || place.stacks().map(depth_at).max().unwrap_or_default();
        let blank = blanks.step(place.blank(), byte, depth)?;
        let mut found = Vec::new();
        for stack in place.stacks() {
            self.rest(stack, &mut found);
        }
        self.place_of(found, blank)
    }

    /// Returns the place with these ways; none where they are too many, which is a failure.
    fn place_of(&self, found: Vec<Stack>, blank: u32) -> Option<Place> {
        if found.len() > MOST_WAYS {
            let why = format!("what was written may mean more than {MOST_WAYS} things; describe fewer alternatives");
            self.fail(Refused::TooLarge { at: "".into(), keyword: "anyOf", why });
            return None;
        }
        Place::of(found, blank)
    }

    /// Takes why a step of this thread could not be made out.
    pub(crate) fn take_failure(&self) -> Option<Refused> {
        FAILED
            .with_borrow_mut(|failed| failed.take_if(|(whose, _)| *whose == self.address()).map(|(_, refused)| refused))
    }

    pub(crate) fn is_failing(&self) -> bool {
        FAILED.with_borrow(|failed| failed.as_ref().is_some_and(|(whose, _)| *whose == self.address()))
    }

    /// Returns whether a step of this thread could not be made out, whose ever it was.
    pub(crate) fn is_any_failing() -> bool {
        FAILED.with_borrow(Option::is_some)
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    fn fail(&self, refused: Refused) {
        // That work is over is known anyway.
        if !matches!(refused, Refused::Over(_)) {
            FAILED.set(Some((self.address(), refused)));
        }
    }

    /// Returns whether a document may end here.
    #[allow(clippy::unused_self, reason = "beside `step`")]
    pub(crate) fn may_end(&self, place: &Place) -> bool {
        place.blank() == 0
            && place.stacks().any(|stack| match &stack.top {
                None => true,
                Some(level) => level.below.is_none() && Self::may_be_over(&level.frame),
            })
    }

    /// Returns whether a value that goes on may be over, too.
    fn may_be_over(frame: &Frame) -> bool {
        match frame {
            Frame::Number { machine, state } => machine.is_end(state),
            Frame::Listed { listed, from, depth, .. } => listed.texts[*from as usize].len() == *depth as usize,
            _ => false,
        }
    }

    /// Gives `each` the bytes that may come, and maybe others.
    pub(crate) fn bytes_from(&self, place: &Place, each: &mut impl FnMut(u8)) {
        const BLANKS: &[u8] = b" \t\r\n";
        const VALUES: &[u8] = b"\"[{-0123456789ntf";
        let mut some = |bytes: &[u8]| bytes.iter().for_each(|&byte| each(byte));
        match self.written.blanks {
            Blanks::None => {}
            Blanks::Compact => some(b" "),
            Blanks::Any | Blanks::Flexible | Blanks::Pattern(_) => some(BLANKS),
        }
        for stack in place.stacks() {
            let Some(level) = &stack.top else { continue };
            match &level.frame {
                Frame::Floor(_) => {}
                Frame::Value(_) => some(VALUES),
                Frame::Word { word, at } => some(&WORDS[usize::from(*word)][usize::from(*at)..][..1]),
                Frame::Number { .. } => some(b"0123456789.eE+-,]}"),
                Frame::Text { .. } | Frame::Object { at: ObjectAt::Other(_), .. } => {
                    (b' '..=0xff).for_each(|byte| some(&[byte]));
                }
                Frame::Listed { listed, from, to, depth } => {
                    some(if Self::may_be_over(&level.frame) { b",]}" } else { b"" });
                    bytes_at(listed, (*from, *to), *depth, &mut |byte| some(&[byte]));
                    if let Some(range) = narrowed(listed, (*from, *to), *depth, MARK) {
                        bytes_at(listed, range, depth + 1, &mut |byte| some(&[byte]));
                    }
                }
                Frame::Array { at, .. } => {
                    some(if matches!(at, ArrayAt::After) { b",]" } else { b"]" });
                    if matches!(at, ArrayAt::Open | ArrayAt::Next) {
                        some(VALUES);
                    }
                }
                Frame::Object { shape, at, .. } => match at {
                    ObjectAt::Known(known) => {
                        let own = |&name: &u32| shape.names[name as usize].text[known.depth as usize];
                        known.names[known.from as usize..known.to as usize].iter().for_each(|name| some(&[own(name)]));
                    }
                    ObjectAt::Named(_) => some(b":"),
                    _ => some(b"\"},"),
                },
            }
        }
    }

    /// The stacks between two parts of a document, where blanks may stand.
    fn rest(&self, stack: &Stack, found: &mut Vec<Stack>) {
        let Some(level) = &stack.top else { return };
        if matches!(self.written.blanks, Blanks::Compact) && !is_behind_sign(&level.frame) {
            return;
        }
        match &level.frame {
            Frame::Value(_) if level.below.is_some() => found.push(stack.clone()),
            Frame::Array { .. } => found.push(stack.clone()),
            Frame::Object { at, .. } if !matches!(at, ObjectAt::Known(_) | ObjectAt::Other(_)) => {
                found.push(stack.clone());
            }
            frame @ (Frame::Number { .. } | Frame::Listed { .. }) => {
                let is_within = |below: &Arc<Level>| !matches!(below.frame, Frame::Floor(_));
                if Self::may_be_over(frame) && level.below.as_ref().is_some_and(is_within) {
                    self.behind(level.below.as_ref(), stack.record.clone(), found);
                }
                if let Frame::Listed { listed, from, depth, .. } = frame
                    && *depth > 0
                    && listed.texts[*from as usize][*depth as usize - 1] == MARK
                {
                    // In blanks already.
                    return found.push(stack.clone());
                }
                if let Frame::Listed { listed, from, to, depth } = frame
                    && let Some((from, to)) = narrowed(listed, (*from, *to), *depth, MARK)
                {
                    let frame = Frame::Listed { listed: Arc::clone(listed), from, to, depth: depth + 1 };
                    found.push(Stack {
                        top: Some(Level::new(frame, level.below.clone())),
                        record: stack.record.clone(),
                    });
                }
            }
            _ => {}
        }
    }

    /// Gives `found` the stacks behind a byte.
    fn go(&self, stack: &Stack, byte: u8, found: &mut Vec<Stack>) {
        let Some(level) = &stack.top else { return };
        let (below, record) = (level.below.as_ref(), &stack.record);
        let on = |frame: Frame, record: Record| Stack { top: Some(Level::new(frame, below.cloned())), record };
        match &level.frame {
            Frame::Floor(_) => {}
            Frame::Value(goal) => self.begin(goal, below, record, byte, found),
            Frame::Word { word, at } => {
                let text = WORDS[usize::from(*word)];
                if text[usize::from(*at)] == byte {
                    let record = record.with(byte);
                    if usize::from(*at) + 1 == text.len() {
                        self.behind(below, record, found);
                    } else {
                        found.push(on(Frame::Word { word: *word, at: at + 1 }, record));
                    }
                }
            }
            Frame::Number { machine, state } => {
                if let Some(state) = machine.step(state, byte) {
                    let frame = Frame::Number { machine: Arc::clone(machine), state };
                    found.push(on(frame, record.with(byte)));
                } else if machine.is_end(state) && below.is_some() {
                    self.over(below, record, byte, found);
                }
            }
            Frame::Text { shape, at } => {
                if byte == b'"' && at.is_end(&shape.machine) {
                    self.behind(below, record.with(byte), found);
                } else if let Some((at, _)) = at.step(&shape.machine, shape.escapes, byte) {
                    found.push(on(Frame::Text { shape: Arc::clone(shape), at }, record.with(byte)));
                }
            }
            Frame::Listed { listed, from, to, depth } => {
                self.list(listed, (*from, *to, *depth), below, record, byte, found);
                if Self::may_be_over(&level.frame) && below.is_some() {
                    self.over(below, record, byte, found);
                }
            }
            Frame::Array { shape, items, at } => self.in_array(shape, items, *at, (below, record), byte, found),
            Frame::Object { shape, members, at } => {
                self.in_object(shape, members, at, (below, record), byte, found);
            }
        }
    }

    /// Takes a byte after a value whose end is not marked, such as a number.
    fn over(&self, below: Option<&Arc<Level>>, record: &Record, byte: u8, found: &mut Vec<Stack>) {
        let mut ended = Vec::new();
        self.behind(below, record.clone(), &mut ended);
        for stack in ended {
            self.go(&stack, byte, found);
        }
    }

    fn list(
        &self,
        listed: &Arc<Listed>,
        (from, to, depth): (u32, u32, u32),
        below: Option<&Arc<Level>>,
        record: &Record,
        byte: u8,
        found: &mut Vec<Stack>,
    ) {
        if byte == MARK {
            return;
        }
        let direct = narrowed(listed, (from, to), depth, byte).map(|range| (range, depth + 1));
        let behind = || {
            let range = narrowed(listed, (from, to), depth, MARK)?;
            Some((narrowed(listed, range, depth + 1, byte)?, depth + 2))
        };
        let Some(((from, to), depth)) = direct.or_else(behind) else { return };
        let record = record.with(byte);
        if to - from == 1 && listed.texts[from as usize].len() == depth as usize {
            return self.behind(below, record, found);
        }
        let frame = Frame::Listed { listed: Arc::clone(listed), from, to, depth };
        found.push(Stack { top: Some(Level::new(frame, below.cloned())), record });
    }

    /// The first byte of a value.
    fn begin(&self, goal: &Arc<Goal>, below: Option<&Arc<Level>>, record: &Record, byte: u8, found: &mut Vec<Stack>) {
        let shapes = match self.shapes(goal) {
            Ok(shapes) => shapes,
            Err(refused) => return self.fail(refused),
        };
        let mut push = |frame: Frame| {
            found.push(Stack { top: Some(Level::new(frame, below.cloned())), record: record.with(byte) });
        };
        match byte {
            b'n' if shapes.null => push(Frame::Word { word: 0, at: 1 }),
            b't' if shapes.is_true => push(Frame::Word { word: 1, at: 1 }),
            b'f' if shapes.is_false => push(Frame::Word { word: 2, at: 1 }),
            b'"' => {
                for shape in &shapes.texts {
                    push(Frame::Text { shape: Arc::clone(shape), at: TextAt::start(&shape.machine) });
                }
            }
            b'[' => {
                let mut search = Search::new();
                for shape in &shapes.arrays {
                    if self.array_begins(shape, &mut search) {
                        push(Frame::Array { shape: Arc::clone(shape), items: shape.start(), at: ArrayAt::Open });
                    }
                }
                search.refused().unwrap_or_else(|refused| self.fail(refused));
            }
            b'{' => {
                let mut search = Search::new();
                for shape in &shapes.objects {
                    if self.object_begins(shape, &mut search) {
                        let members = MemberSet::new(Members::default());
                        push(Frame::Object { shape: Arc::clone(shape), members, at: ObjectAt::Open });
                    }
                }
                search.refused().unwrap_or_else(|refused| self.fail(refused));
            }
            b'-' | b'0'..=b'9' => {
                for machine in &shapes.numbers {
                    if let Some(state) = machine.step(&machine.start(), byte) {
                        push(Frame::Number { machine: Arc::clone(machine), state });
                    }
                }
            }
            _ => {}
        }
        if let Some(listed) = &shapes.listed {
            self.list(listed, (0, listed.texts.len() as u32, 0), below, record, byte, found);
        }
    }

    /// Gives `found` the stack behind a whole value.
    #[allow(clippy::unused_self, reason = "beside the others")]
    fn behind(&self, below: Option<&Arc<Level>>, mut record: Record, found: &mut Vec<Stack>) {
        let Some(level) = below else {
            found.push(Stack { top: None, record: Record::default() });
            return;
        };
        let frame = match &level.frame {
            Frame::Floor(_) => return found.push(Stack { top: Some(Arc::clone(level)), record }),
            Frame::Array { shape, items, at: ArrayAt::Item(start) } => {
                let mut items = items.clone();
                if shape.keeps(&items) {
                    let value = std::str::from_utf8(&record.since(*start)).ok().and_then(Json::read);
                    let mut seen = items.seen.as_ref().map_or_else(Vec::new, |seen| seen.all.clone());
                    if let Some(value) = value {
                        match seen.binary_search(&value) {
                            Ok(_) if shape.is_unique => return,
                            Ok(_) => {}
                            Err(at) => seen.insert(at, value),
                        }
                    }
                    items.seen = Some(Arc::new(Values::new(seen)));
                    if *start == 0 {
                        record = Record::default();
                    }
                }
                Frame::Array { shape: Arc::clone(shape), items, at: ArrayAt::After }
            }
            Frame::Object { shape, members, at: ObjectAt::Value } => {
                Frame::Object { shape: Arc::clone(shape), members: Arc::clone(members), at: ObjectAt::After }
            }
            _ => return,
        };
        found.push(Stack { top: Some(Level::new(frame, level.below.clone())), record });
    }

    fn in_array(
        &self,
        shape: &Arc<ArrayShape>,
        items: &Items,
        at: ArrayAt,
        (below, record): (Option<&Arc<Level>>, &Record),
        byte: u8,
        found: &mut Vec<Stack>,
    ) {
        let mut search = Search::new();
        match (at, byte) {
            (ArrayAt::Open | ArrayAt::After, b']') if shape.may_end(items) => {
                self.behind(below, record.with(byte), found);
            }
            (ArrayAt::After, b',') if !self.item_cells(shape, items, &mut search).is_empty() => {
                let frame = Frame::Array { shape: Arc::clone(shape), items: items.clone(), at: ArrayAt::Next };
                found.push(Stack { top: Some(Level::new(frame, below.cloned())), record: record.with(byte) });
            }
            (ArrayAt::Open | ArrayAt::Next, b'"' | b'[' | b'{' | b'-' | b'0'..=b'9' | b'n' | b't' | b'f') => {
                for (goal, items) in self.item_cells(shape, items, &mut search).iter() {
                    let is_first = !record.is_on() && shape.keeps(items);
                    let record = if is_first { Record::begun() } else { record.clone() };
                    let start = record.len();
                    let items = items.clone();
                    let frame = Frame::Array { shape: Arc::clone(shape), items, at: ArrayAt::Item(start) };
                    let level = Level::new(frame, below.cloned());
                    self.begin(goal, Some(&level), &record, byte, found);
                }
            }
            _ => {}
        }
        search.refused().unwrap_or_else(|refused| self.fail(refused));
    }

    fn in_object(
        &self,
        shape: &Arc<ObjectShape>,
        had: &Arc<MemberSet>,
        at: &ObjectAt,
        (below, record): (Option<&Arc<Level>>, &Record),
        byte: u8,
        found: &mut Vec<Stack>,
    ) {
        let mut search = Search::new();
        let members = &had.members;
        let record_on = record.with(byte);
        let on = |members: &Arc<MemberSet>, at: ObjectAt| {
            let frame = Frame::Object { shape: Arc::clone(shape), members: Arc::clone(members), at };
            Stack { top: Some(Level::new(frame, below.cloned())), record: record_on.clone() }
        };
        match (at, byte) {
            (ObjectAt::Open | ObjectAt::After, b'}') if shape.may_end(members) => {
                self.behind(below, record_on, found);
            }
            (ObjectAt::After, b',') if self.goes_on(shape, members, &mut search) => {
                found.push(on(had, ObjectAt::Next));
            }
            (ObjectAt::Open | ObjectAt::Next, b'"') => {
                for at in self.names(shape, members, &mut search) {
                    found.push(on(had, at));
                }
            }
            (ObjectAt::Known(known), _) => {
                let Some(known) = known.step(shape, byte) else { return };
                let first = known.range()[0];
                if shape.names[first as usize].text.len() == known.depth as usize {
                    found.push(on(had, ObjectAt::Named(Member::Named(first))));
                } else {
                    found.push(on(had, ObjectAt::Known(known)));
                }
            }
            (ObjectAt::Other(other), b'"') if other.at.is_end(&other.shape.machine) => {
                // A name that is not kept is like one that nobody says.
                let name = other.text.as_ref().map_or(Ok(UNKEPT), |text| std::str::from_utf8(text));
                let Ok(name) = name else { return };
                if other.text.is_some() && shape.is_taken(members, name) {
                    return;
                }
                let member = Member::Other(other.class, name.into());
                if self.may_come(shape, members, &member, &mut search) {
                    found.push(on(had, ObjectAt::Named(member)));
                }
            }
            (ObjectAt::Other(other), _) => {
                if let Some((at, meant)) = other.at.step(&other.shape.machine, other.shape.escapes, byte) {
                    let text = other.text.as_ref().map(|text| {
                        let mut text = text.to_vec();
                        meant.add_to(&mut text);
                        text.into()
                    });
                    let other = Other { at, text, shape: Arc::clone(&other.shape), ..*other };
                    found.push(on(had, ObjectAt::Other(other)));
                }
            }
            (ObjectAt::Named(member), b':') => {
                for (goal, members) in self.member_cells(shape, members, member, &mut search) {
                    let level = on(&MemberSet::new(members), ObjectAt::Value);
                    let value = Level::new(Frame::Value(goal), level.top);
                    found.push(Stack { top: Some(value), record: level.record });
                }
            }
            _ => {}
        }
        search.refused().unwrap_or_else(|refused| self.fail(refused));
    }

    /// Returns whether another member may come.
    fn goes_on(&self, shape: &ObjectShape, members: &Members, search: &mut Search) -> bool {
        let named = |at: usize, search: &mut Search| self.may_come(shape, members, &Member::Named(at as u32), search);
        shape.candidates(members).any(|at| named(at, search))
            || shape.is_open(members)
                && (0..shape.classes.len()).any(|class| self.may_open(shape, members, class, search))
    }

    /// Returns the positions at the beginning of each name allowed next.
    fn names(&self, shape: &ObjectShape, members: &Members, search: &mut Search) -> Vec<ObjectAt> {
        let mut found = Vec::new();
        let mut known: Vec<u32> = Vec::new();
        for at in shape.candidates(members) {
            if self.may_come(shape, members, &Member::Named(at as u32), search) {
                known.push(at as u32);
            }
        }
        known.sort_unstable_by(|&one, &other| shape.names[one as usize].text.cmp(&shape.names[other as usize].text));
        if !known.is_empty() {
            let to = known.len() as u32;
            found.push(ObjectAt::Known(Known { names: known.into(), from: 0, to, depth: 0 }));
        }
        if !shape.is_open(members) {
            return found;
        }
        for (number, class) in shape.classes.iter().enumerate() {
            if !self.may_open(shape, members, number, search) {
                continue;
            }
            // Where names without end go on from everywhere, those that were written need not be left out from their
            // first character on.
            let is_endless = class.text.machine.is_endless();
            let written = members.others().iter().filter(|name| !is_endless && class.set.is_match(name));
            let written: Vec<&str> = written.map(|name| &**name).collect();
            let text = if written.is_empty() {
                Some(Arc::clone(&class.text))
            } else {
                let escapes = class.text.escapes;
                let left = TextSet::one_of(written).and_then(|written| class.set.and(&written.complement()));
                match left {
                    Ok(left) => TextMachine::new(&left, 0, None).map(|machine| TextShape::new(machine, escapes, false)),
                    Err(error) => {
                        let why = error.to_string();
                        search.refuse(Refused::TooLarge {
                            at: "".into(),
                            keyword: "the combination of patterns of names",
                            why,
                        });
                        None
                    }
                }
            };
            if let Some(shape) = text {
                let at = TextAt::start(&shape.machine);
                let other = Other { class: number as u32, at, shape, text: Some(Arc::default()) };
                found.push(ObjectAt::Other(other));
            }
        }
        found
    }
}

/// Gives `each` the bytes with which the texts of a range go on.
fn bytes_at(listed: &Listed, (from, to): (u32, u32), depth: u32, each: &mut impl FnMut(u8)) {
    let mut texts = &listed.texts[from as usize..to as usize];
    let order = |text: &[u8]| text.get(depth as usize).copied();
    while let Some(first) = texts.first() {
        let byte = order(first);
        byte.into_iter().for_each(&mut *each);
        // Most ranges are short.
        let end = texts.iter().take(8).take_while(|text| order(text) == byte).count();
        texts = &texts[if end < 8 { end } else { texts.partition_point(|text| order(text) <= byte) }..];
    }
}

/// The texts of a range that go on with a byte.
fn narrowed(listed: &Listed, (from, to): (u32, u32), depth: u32, byte: u8) -> Option<(u32, u32)> {
    let depth = depth as usize;
    let texts = &listed.texts[from as usize..to as usize];
    // Those that end here come first.
    let order = |text: &[u8]| text.get(depth).map_or(-1, |&own| i32::from(own));
    let byte = i32::from(byte);
    // Most bytes go on nowhere, and most ranges are short.
    let (first, last) = (order(texts.first()?), order(texts.last()?));
    if byte < first || last < byte {
        return None;
    }
    let low = if first == byte { 0 } else { texts.partition_point(|text| order(text) < byte) };
    let high = if last == byte { texts.len() } else { texts.partition_point(|text| order(text) <= byte) };
    (low < high).then_some((from + low as u32, from + high as u32))
}
