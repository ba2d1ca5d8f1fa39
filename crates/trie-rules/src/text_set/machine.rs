//! Sets of texts with bounds on their length, byte by byte.

use super::alphabet::ByteTarget;
use super::kinds::CharRun;
use super::{Characters, TextSet};
use crate::automaton::table::DEAD;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::work::spend;

/// Texts of a set within bounds on their length, walked byte by byte as UTF-8. Every state can be completed. A clone
/// costs one reference count.
///
/// ```
/// use trie_rules::{TextMachine, TextSet};
///
/// let even = TextMachine::new(&TextSet::pattern("^(aa|éé)*$")?, 3, Some(5)).unwrap();
/// let after = |text: &str| text.bytes().try_fold(even.start(), |state, byte| even.step(state, byte));
/// assert!(after("aaé").is_some_and(|state| !even.is_end(state)) && even.is_end(after("aaéé").unwrap()));
/// // Five characters are odd: nothing may begin behind the fourth.
/// assert_eq!(after("aaééa"), None);
/// assert!(TextMachine::new(&TextSet::pattern("^(aa)*$")?, 3, Some(3)).is_none());
/// # Ok::<(), trie_rules::RegexError>(())
/// ```
#[derive(Clone)]
pub struct TextMachine(Arc<TextTables>);

struct TextTables {
    characters: Arc<Characters>,
    min: u32,
    max: Option<u32>,
    /// Characters that are missing at least, from each state.
    fewest: Vec<u32>,
    /// Characters that may come at most; `u32::MAX` where any number may.
    most: Vec<u32>,
    /// Characters that may come whatever they are, from each state; `u32::MAX` where all may for ever.
    free: Vec<u32>,
    lengths: Mutex<Lengths>,
}

/// States from which texts of so many characters end, by that number: found as far as somebody asked.
#[derive(Default)]
struct Lengths {
    sets: Vec<Arc<[u64]>>,
    known: HashMap<Arc<[u64]>, usize>,
    /// Index from which the sets repeat.
    again: Option<usize>,
}

/// State of a text in a [`TextMachine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TextState {
    /// State of the automaton before the character.
    state: u32,
    /// Inside the character: the place + 1; 0 before it.
    place: u32,
    /// Characters so far, those that count.
    chars: u32,
}

impl TextState {
    /// Returns whether a character begins here.
    #[inline]
    pub fn is_between(self) -> bool {
        self.place == 0
    }
}

impl fmt::Debug for TextMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextTables { characters, min, max, .. } = &*self.0;
        let states = characters.raw.ends.len();
        f.debug_struct("TextMachine").field("states", &states).field("min", min).field("max", max).finish()
    }
}

impl TextMachine {
    /// Returns the machine of a set's texts with at least `min_chars` and at most `max_chars` characters; `None` if
    /// there are no such texts.
    pub fn new(set: &TextSet, min_chars: u32, max_chars: Option<u32>) -> Option<Self> {
        let characters = Arc::clone(&set.0);
        let raw = &characters.raw;
        if raw.ends.is_empty() {
            return None;
        }
        let states = raw.ends.len();
        let mut into = vec![Vec::new(); states];
        for state in 0..states as u32 {
            let mut row: Vec<u32> = raw.row(state).iter().copied().filter(|&to| to != DEAD).collect();
            row.sort_unstable();
            row.dedup();
            for to in row {
                into[to as usize].push(state);
            }
        }
        let ends = (0..states as u32).filter(|&state| raw.ends[state as usize]);
        let fewest = distances(&into, ends.map(|state| (state, 0)));
        let stops = (0..states as u32).filter(|&state| raw.row(state).contains(&DEAD));
        let free = distances(&into, stops.map(|state| (state, 0)));
        let most = longest(&characters, &into);
        let (min, max, lengths) = (min_chars, max_chars, Mutex::default());
        let machine = Self(Arc::new(TextTables { characters, min, max, fewest, most, free, lengths }));
        machine.0.completes(0, 0).then_some(machine)
    }

    /// Returns the identity of the set: equal for machines of clones of one set, as long as one of them is there.
    pub fn set_address(&self) -> usize {
        Arc::as_ptr(&self.0.characters) as usize
    }

    /// Returns the state before the first byte.
    pub fn start(&self) -> TextState {
        TextState { state: 0, place: 0, chars: 0 }
    }

    /// Returns the state after one more byte; `None` if no text continues with it.
    #[inline]
    pub fn step(&self, state: TextState, byte: u8) -> Option<TextState> {
        let utf8 = self.0.characters.utf8();
        match utf8.step(state.place.checked_sub(1), byte) {
            ByteTarget::No => None,
            ByteTarget::Class(class) => self.after_class(state, class),
            ByteTarget::Inside(place) => {
                let goes = utf8.children(place).iter().any(|&class| self.after_class(state, class).is_some());
                goes.then_some(TextState { place: place + 1, ..state })
            }
        }
    }

    /// Returns the state after one more character, from a state between two characters; `None` if no text continues
    /// with it.
    pub fn step_char(&self, state: TextState, char: char) -> Option<TextState> {
        self.after_class(state, self.0.characters.alphabet.class(u32::from(char)))
    }

    /// Returns whether any character in a range of code points is allowed next, from a state between two characters.
    /// Surrogates in the range are ignored.
    pub fn takes_any(&self, state: TextState, low: u32, high: u32) -> bool {
        let takes = |low: u32, high: u32| {
            low <= high
                && self.0.characters.alphabet.classes(low, high).any(|class| self.after_class(state, class).is_some())
        };
        takes(low, high.min(0xD7FF)) || takes(low.max(0xE000), high.min(0x10_FFFF))
    }

    /// Returns whether a text ends here.
    #[inline]
    pub fn is_end(&self, state: TextState) -> bool {
        state.place == 0 && state.chars >= self.0.min && self.0.characters.raw.ends[state.state as usize]
    }

    /// Returns a number of characters that may come whatever they are, from a state between two characters; after each
    /// of them the text can still be completed. `u32::MAX` stands for no limit. The number is a lower bound.
    pub fn free_chars(&self, state: TextState) -> u32 {
        let TextTables { characters, min, max, fewest, most, free, .. } = &*self.0;
        let free = free[state.state as usize];
        match max {
            None if *min == 0 || state.chars >= *min || most.iter().all(|&most| most == u32::MAX) => free,
            // Every text of every length is in it.
            Some(max) if fewest.iter().all(|&fewest| fewest == 0) && characters.raw.ends.len() == 1 => {
                free.min(max - state.chars)
            }
            _ => 0,
        }
    }

    /// Returns texts that may come whatever they are, from a state between two characters; after each of them the text
    /// can still be completed. Others may come, too.
    ///
    /// ```
    /// use trie_rules::{CharKinds, TextMachine, TextSet};
    ///
    /// let code = TextMachine::new(&TextSet::pattern("^[a-z]{2,8}$")?, 0, None).unwrap();
    /// let run = code.run(code.start());
    /// assert!(run.chars == 8 && CharKinds::of('x').is_within(run.kinds) && !CharKinds::of('X').is_within(run.kinds));
    /// # Ok::<(), trie_rules::RegexError>(())
    /// ```
    pub fn run(&self, state: TextState) -> CharRun {
        /// Longer tokens are looked at one by one.
        const LONGEST: u32 = 128;
        let tables = &*self.0;
        let levels = tables.characters.levels(state.state);
        let kinds = levels.kinds;
        let (mut level, mut chars, mut count) = (0, 0, state.chars);
        while chars < LONGEST {
            let Some(next) = levels.after(level) else { return CharRun { kinds, chars, is_closed: levels.is_closed } };
            let after = tables.count(count);
            let states = levels.level(next);
            let completing = states.iter().filter(|&&next| tables.completes(next, after)).count();
            if completing < states.len() {
                return CharRun { kinds, chars, is_closed: completing == 0 };
            }
            // Where nothing is counted any more, it goes on like that.
            if next <= level && tables.max.is_none() && after == count {
                return CharRun { kinds, chars: u32::MAX, is_closed: false };
            }
            (level, chars, count) = (next, chars + 1, after);
        }
        CharRun { kinds, chars, is_closed: false }
    }

    /// Returns the minimum and maximum number of characters still to come, if the state is between two characters and
    /// nothing but their number counts any more; a maximum of `None` means no limit.
    pub fn open_chars(&self, state: TextState) -> Option<(u32, Option<u32>)> {
        let TextTables { characters, min, max, .. } = &*self.0;
        let raw = &characters.raw;
        let is_open = state.place == 0
            && raw.ends[state.state as usize]
            && raw.row(state.state).iter().all(|&to| to == state.state);
        is_open.then(|| (min.saturating_sub(state.chars), max.map(|max| max - state.chars)))
    }

    /// Returns the number of texts, or `enough` if there are more.
    pub fn count(&self, enough: usize) -> usize {
        let TextTables { characters, min, max, most, .. } = &*self.0;
        let raw = &characters.raw;
        if max.is_none() && most.contains(&u32::MAX) {
            return enough;
        }
        let sizes = characters.alphabet.sizes();
        // Texts of one length by the state that they lead to.
        let mut begun = vec![0usize; raw.ends.len()];
        begun[0] = 1;
        let mut count = 0usize;
        for chars in 0..=max.unwrap_or(u32::MAX) {
            if chars >= *min {
                let ending = begun.iter().zip(&raw.ends).filter(|(_, ends)| **ends).map(|(&begun, _)| begun);
                count = ending.fold(count, usize::saturating_add);
            }
            if begun.iter().all(|&begun| begun == 0) {
                break;
            }
            if count >= enough || spend(raw.next.len()).is_err() {
                return enough;
            }
            let mut next = vec![0usize; begun.len()];
            for (state, &begun) in begun.iter().enumerate().filter(|(_, begun)| **begun > 0) {
                for (&to, &size) in raw.row(state as u32).iter().zip(&sizes).filter(|(to, _)| **to != DEAD) {
                    let next = &mut next[to as usize];
                    *next = next.saturating_add(begun.saturating_mul(size));
                }
            }
            begun = next;
        }
        count.min(enough)
    }

    /// Returns whether texts can continue without a limit from every state.
    pub fn is_endless(&self) -> bool {
        self.0.max.is_none() && self.0.most.iter().all(|&most| most == u32::MAX)
    }

    /// Returns the class of an ASCII character: the set does not distinguish characters of one class.
    pub fn class(&self, byte: u8) -> u32 {
        self.0.characters.alphabet.class(u32::from(byte & 0x7f))
    }

    /// Returns the bounds on the number of characters.
    pub fn chars(&self) -> (u32, Option<u32>) {
        (self.0.min, self.0.max)
    }

    #[inline]
    fn after_class(&self, state: TextState, class: u32) -> Option<TextState> {
        let next = self.0.characters.raw.step(state.state, class);
        if next == DEAD {
            return None;
        }
        let chars = self.0.count(state.chars);
        self.0.completes(next, chars).then_some(TextState { state: next, place: 0, chars })
    }
}

impl TextTables {
    /// After one more character; characters are counted as far as it matters.
    #[inline]
    fn count(&self, chars: u32) -> u32 {
        if self.max.is_some() { chars.saturating_add(1) } else { (chars + 1).min(self.min) }
    }

    /// Returns whether some text ends exactly so many characters from here.
    #[inline]
    fn completes(&self, state: u32, chars: u32) -> bool {
        let at_least = self.min.saturating_sub(chars);
        let (fewest, most) = (self.fewest[state as usize], self.most[state as usize]);
        let Some(max) = self.max else { return most >= at_least };
        let Some(at_most) = max.checked_sub(chars) else { return false };
        if fewest > at_most || most < at_least {
            return false;
        }
        fewest >= at_least || (most <= at_most && most != u32::MAX) || self.ends_within(state, at_least, at_most)
    }

    fn ends_within(&self, state: u32, at_least: u32, at_most: u32) -> bool {
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        (at_least..=at_most).any(|chars| lengths.ends_after(&self.characters, state, chars as usize))
    }
}

impl Lengths {
    /// Returns whether a text of so many characters ends, from a state.
    fn ends_after(&mut self, characters: &Characters, state: u32, chars: usize) -> bool {
        let raw = &characters.raw;
        while self.again.is_none() && self.sets.len() <= chars {
            let mut set = vec![0u64; raw.ends.len().div_ceil(64)];
            let before = self.sets.last();
            for state in 0..raw.ends.len() {
                let has = |to: u32| before.is_some_and(|set| to != DEAD && set[to as usize / 64] >> (to % 64) & 1 == 1);
                let ends = match before {
                    None => raw.ends[state],
                    Some(_) => raw.row(state as u32).iter().any(|&to| has(to)),
                };
                set[state / 64] |= u64::from(ends) << (state % 64);
            }
            // Each follows from the one before it: one that was there before goes on as it did.
            self.again = self.known.get(&*set).copied();
            if self.again.is_none() {
                let set: Arc<[u64]> = set.into();
                self.known.insert(Arc::clone(&set), self.sets.len());
                self.sets.push(set);
            }
        }
        let at = match self.again {
            Some(again) if chars >= self.sets.len() => again + (chars - again) % (self.sets.len() - again),
            _ => chars,
        };
        self.sets[at][state as usize / 64] >> (state % 64) & 1 == 1
    }
}

/// Computes the shortest distance from each state to one of some; `u32::MAX` if none is reachable.
fn distances(into: &[Vec<u32>], from: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut found = vec![u32::MAX; into.len()];
    let mut queue: std::collections::VecDeque<u32> = from
        .map(|(state, distance)| {
            found[state as usize] = distance;
            state
        })
        .collect();
    while let Some(state) = queue.pop_front() {
        for &before in &into[state as usize] {
            if found[before as usize] == u32::MAX {
                found[before as usize] = found[state as usize] + 1;
                queue.push_back(before);
            }
        }
    }
    found
}

/// Computes the length of the longest text from each state; `u32::MAX` if unbounded. Every state leads to an end, so
/// that those that lead into a circle have none.
fn longest(characters: &Characters, into: &[Vec<u32>]) -> Vec<u32> {
    let raw = &characters.raw;
    let states = raw.ends.len();
    let mut left: Vec<usize> = vec![0; states];
    for before in into.iter().flatten() {
        left[*before as usize] += 1;
    }
    let mut most = vec![u32::MAX; states];
    let mut queue: Vec<u32> = (0..states as u32).filter(|&state| left[state as usize] == 0).collect();
    // Nothing follows: it ends there.
    for &state in &queue {
        most[state as usize] = 0;
    }
    let mut longest = vec![0u32; states];
    while let Some(state) = queue.pop() {
        for &before in &into[state as usize] {
            longest[before as usize] = longest[before as usize].max(most[state as usize] + 1);
            left[before as usize] -= 1;
            if left[before as usize] == 0 {
                most[before as usize] = longest[before as usize];
                queue.push(before);
            }
        }
    }
    most
}
