//! Kinds of characters: groups that patterns seldom tell apart, so that whole groups of tokens are decided at once.

use super::alphabet::Alphabet;
use super::char_set::LAST;
use super::raw::Raw;
use super::syntax::SPACE;
use crate::automaton::table::DEAD;
use crate::tokens::slices::{is_letter, letters};

/// A set of kinds of characters, one bit each: a blank, digits, a–f, g–z, A–F, G–Z, letters beyond ASCII, blanks beyond
/// ASCII, other characters beyond ASCII, and each other ASCII character. A character that is begun but not complete is
/// a kind, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CharKinds(u64);

/// Texts that may come whatever they are: all of at most `chars` characters of some kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CharRun {
    /// Kinds of the characters.
    pub kinds: CharKinds,
    /// Number of characters; `u32::MAX` for no limit.
    pub chars: u32,
    /// True if no longer text of these kinds may come.
    pub is_closed: bool,
}

const LETTER: usize = 6;
const OTHER: usize = 7;
const PARTIAL: usize = 8;
const BLANK: usize = 9;
const COUNT: usize = 41;

/// Returns the ranges of blanks beyond ASCII: what `\s` takes, and `.` takes most of.
fn blanks() -> impl Iterator<Item = (u32, u32)> {
    SPACE.into_iter().filter(|&(low, _)| low > 0x7F)
}

fn is_blank(char: u32) -> bool {
    // Most characters beyond ASCII are none of them.
    (char < 0x3001 || char == 0xFEFF) && blanks().any(|(low, high)| (low..=high).contains(&char))
}

/// The kind of each ASCII character; quote, backslash and controls have none.
const ASCII: [u8; 128] = {
    let mut kinds = [u8::MAX; 128];
    let (mut byte, mut next) = (b' ', BLANK as u8 + 1);
    while byte < 128 {
        kinds[byte as usize] = match byte {
            b' ' => 0,
            b'0'..=b'9' => 1,
            b'a'..=b'f' => 2,
            b'g'..=b'z' => 3,
            b'A'..=b'F' => 4,
            b'G'..=b'Z' => 5,
            b'"' | b'\\' => u8::MAX,
            _ => {
                next += 1;
                next - 1
            }
        };
        byte += 1;
    }
    assert!(next as usize == COUNT);
    kinds
};

impl CharKinds {
    /// The empty set of kinds.
    pub const NONE: Self = Self(0);
    /// The kind of a character whose last bytes are missing.
    pub const PARTIAL: Self = Self(1 << PARTIAL);

    /// Returns the kind of a character; none for a quote, a backslash or a control.
    #[inline]
    pub fn of(char: char) -> Self {
        let kind = match ASCII.get(char as usize) {
            Some(&u8::MAX) => return Self::NONE,
            Some(&kind) => usize::from(kind),
            None if is_letter(char) => LETTER,
            None if is_blank(char.into()) => BLANK,
            None => OTHER,
        };
        Self(1 << kind)
    }

    /// Number of kinds that there are.
    pub const COUNT: usize = COUNT;

    /// Returns the kinds as bits, the lowest [`CharKinds::COUNT`] of a number.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Returns the kinds of these bits; others are ignored.
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << COUNT) - 1))
    }

    /// Returns the kinds in either set.
    #[must_use]
    #[inline]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns whether all kinds are in another set.
    #[inline]
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns whether many tokens of a vocabulary may have these kinds alone.
    pub fn are_many(self) -> bool {
        self.0 & (1 << 3 | 1 << LETTER) != 0
    }
}

/// The kinds of characters in an alphabet.
#[derive(Debug)]
pub(super) struct KindGroups {
    /// The classes of the characters of each kind.
    classes: Vec<Vec<u32>>,
    /// Kinds of the same classes, those first of which most tokens are.
    kinds: Vec<u64>,
}

impl KindGroups {
    pub(super) fn new(alphabet: &Alphabet) -> Self {
        /// g–z, letters beyond ASCII, a–f, a blank, G–Z, A–F, digits; all others are after them.
        const ORDER: [usize; 7] = [3, LETTER, 2, 0, 5, 4, 1];
        let classes = classes_of_kinds(alphabet);
        let others = (0..COUNT).filter(|kind| !ORDER.contains(kind));
        let mut kinds: Vec<u64> = Vec::new();
        let mut first: Vec<usize> = Vec::new();
        for kind in ORDER.into_iter().chain(others).filter(|&kind| !classes[kind].is_empty()) {
            if let Some(at) = first.iter().position(|&other| classes[other] == classes[kind]) {
                kinds[at] |= 1 << kind;
            } else {
                first.push(kind);
                kinds.push(1 << kind);
            }
        }
        Self { classes, kinds }
    }
}

/// Computes the classes of the characters of each kind.
fn classes_of_kinds(alphabet: &Alphabet) -> Vec<Vec<u32>> {
    let mut classes = vec![Vec::new(); COUNT];
    for (byte, &kind) in ASCII.iter().enumerate().filter(|(_, kind)| **kind != u8::MAX) {
        classes[usize::from(kind)].push(alphabet.class(byte as u32));
    }
    if let Some(class) = alphabet.uniform(128, LAST) {
        for kind in [LETTER, BLANK, OTHER] {
            classes[kind].push(class);
        }
    } else {
        let letters = letters().iter().map(|&(low, high)| (u32::from(low), u32::from(high), LETTER));
        let mut ranges: Vec<_> = letters.chain(blanks().map(|(low, high)| (low, high, BLANK))).collect();
        ranges.sort_unstable();
        let mut end = 128;
        for (low, high, kind) in ranges {
            classes[kind].extend(alphabet.classes(low, high));
            if end < low {
                classes[OTHER].extend(alphabet.classes(end, low - 1));
            }
            end = high + 1;
        }
        classes[OTHER].extend(alphabet.classes(end, LAST));
    }
    for classes in &mut classes {
        classes.sort_unstable();
        classes.dedup();
    }
    classes
}

/// Numbers of characters that are looked at, and states that may be reached by one of them.
const MOST_LEVELS: usize = 128;
const FEW_LEVELS: usize = 16;
const MOST_STATES: usize = 16;

/// The states that texts of some kinds lead to from one state, by the number of characters: as far as all these texts
/// may come. The first level is the state itself.
#[derive(Debug)]
pub(super) struct Levels {
    pub(super) kinds: CharKinds,
    states: Vec<u32>,
    ends: Vec<usize>,
    /// The level that follows the last one, where the levels repeat.
    pub(super) again: Option<usize>,
    /// True if no character of the kinds may come after the last level.
    pub(super) is_closed: bool,
}

/// Result of a step with all characters of some kinds from all states of a level.
struct Step {
    next: Vec<u32>,
    /// Kinds of which some characters may not come.
    missing: u64,
    /// True if no character may come.
    is_dead: bool,
}

impl Levels {
    pub(super) fn new(raw: &Raw, groups: &KindGroups, from: u32) -> Self {
        let classes = &groups.classes;
        let all = groups.kinds.iter().fold(0, |all, kinds| all | kinds);
        let live = all & !step(raw, classes, all, &[from]).missing;
        let (found, missing) = Self::of(raw, classes, live, from, MOST_LEVELS);
        if missing == 0 || found.is_closed {
            return found;
        }
        // Some lead where others may not come, as `%` before two digits: those go first of which most tokens are.
        let (mut kinds, mut length) = (0, 0);
        for &more in &groups.kinds {
            if more & live == more {
                let with = Self::of(raw, classes, kinds | more, from, FEW_LEVELS).0;
                if with.length() >= length.max(1) {
                    (kinds, length) = (kinds | more, with.length());
                }
            }
        }
        Self::of(raw, classes, kinds, from, MOST_LEVELS).0
    }

    fn length(&self) -> usize {
        if self.again.is_some() { usize::MAX } else { self.ends.len() - 1 }
    }

    /// The levels for some kinds, and those of which some characters may not come after the last.
    fn of(raw: &Raw, classes: &[Vec<u32>], kinds: u64, from: u32, most: usize) -> (Self, u64) {
        // Whatever begins a character beyond ASCII, some that are no blanks begin so.
        const BEYOND: u64 = 1 << LETTER | 1 << OTHER;
        let partial = if kinds & BEYOND == BEYOND { CharKinds::PARTIAL.0 } else { 0 };
        let (states, ends) = (vec![from], vec![1]);
        let mut made = Self { kinds: CharKinds(kinds | partial), states, ends, again: None, is_closed: false };
        while kinds != 0 && made.ends.len() <= most {
            let Step { next, missing, is_dead } = step(raw, classes, kinds, made.level(made.ends.len() - 1));
            if missing != 0 {
                made.is_closed = is_dead;
                return (made, missing);
            }
            if next.len() > MOST_STATES {
                break;
            }
            made.again = (0..made.ends.len()).find(|&level| *made.level(level) == *next);
            if made.again.is_some() {
                break;
            }
            made.states.extend(next);
            made.ends.push(made.states.len());
        }
        (made, 0)
    }

    /// Returns the states after so many characters.
    pub(super) fn level(&self, level: usize) -> &[u32] {
        let begin = level.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.states[begin..self.ends[level]]
    }

    /// Returns the index of the level after another one.
    pub(super) fn after(&self, level: usize) -> Option<usize> {
        if level + 1 < self.ends.len() { Some(level + 1) } else { self.again }
    }
}

fn step(raw: &Raw, classes: &[Vec<u32>], kinds: u64, from: &[u32]) -> Step {
    let mut found = Step { next: Vec::new(), missing: 0, is_dead: true };
    for (kind, classes) in classes.iter().enumerate().filter(|(kind, _)| kinds >> kind & 1 == 1) {
        for &state in from {
            for &class in classes {
                match raw.step(state, class) {
                    DEAD => found.missing |= 1 << kind,
                    to => {
                        found.is_dead = false;
                        if !found.next.contains(&to) {
                            found.next.push(to);
                        }
                        if found.next.len() > MOST_STATES {
                            return found;
                        }
                    }
                }
            }
        }
    }
    found.next.sort_unstable();
    found
}
