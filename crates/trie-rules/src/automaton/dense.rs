//! Transition tables of finite automata for walks, with a test for kinds of characters all of whose texts are allowed.

use crate::automaton::table::DEAD;
use crate::tokens::order::TokenTree;
use crate::tokens::slices::{ALL, ASCII, LETTER, MOST_CHARS, OTHER, kind_of, letters, set};
use regex_syntax::utf8::{Utf8Range, Utf8Sequence, Utf8Sequences};
use std::ops::Range;
use std::sync::OnceLock;

/// A table: after each state, by class of bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dense<'t> {
    pub(crate) classes: &'t [u8; 256],
    pub(crate) width: usize,
    pub(crate) next: &'t [u32],
}

/// Classes of the bytes that characters of each kind are made of.
#[derive(Debug)]
pub(crate) struct Alphabet {
    ascii: [Sequences; ASCII.len()],
    beyond: Sequences,
    letters: OnceLock<Sequences>,
}

/// Sequences of bytes, each as the classes of its first byte, of its second and so on.
type Sequences = Vec<Vec<Vec<u8>>>;

/// Well-formed UTF-8 beyond ASCII, as ranges of bytes.
const BEYOND_ASCII: [&[(u8, u8)]; 8] = [
    &[(0xC2, 0xDF), (0x80, 0xBF)],
    &[(0xE0, 0xE0), (0xA0, 0xBF), (0x80, 0xBF)],
    &[(0xE1, 0xEC), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xED, 0xED), (0x80, 0x9F), (0x80, 0xBF)],
    &[(0xEE, 0xEF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF0, 0xF0), (0x90, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF1, 0xF3), (0x80, 0xBF), (0x80, 0xBF), (0x80, 0xBF)],
    &[(0xF4, 0xF4), (0x80, 0x8F), (0x80, 0xBF), (0x80, 0xBF)],
];

impl Alphabet {
    pub(crate) fn new(classes: &[u8; 256]) -> Self {
        let ascii =
            ASCII.map(|kind| vec![vec![distinct_classes(classes, (0..128).filter(|&byte| kind_of(byte) == kind))]]);
        let sequence =
            |bytes: &&[(u8, u8)]| bytes.iter().map(|&(low, high)| distinct_classes(classes, low..=high)).collect();
        Self { ascii, beyond: BEYOND_ASCII.iter().map(sequence).collect(), letters: OnceLock::new() }
    }

    /// Returns the approximate number of bytes held.
    pub(crate) fn nbytes(&self) -> usize {
        let letters = self.letters.get().into_iter().flatten();
        letters.map(|sequence| sequence.iter().map(|classes| size_of::<Vec<u8>>() + classes.len()).sum::<usize>()).sum()
    }

    /// Returns the sequences of letters beyond ASCII: many, so they are computed on first use.
    fn letters(&self, classes: &[u8; 256]) -> &Sequences {
        self.letters.get_or_init(|| {
            let range = |range: &Utf8Range| distinct_classes(classes, range.start..=range.end);
            let sequence = |sequence: &Utf8Sequence| sequence.as_slice().iter().map(range).collect();
            let mut found: Sequences = letter_sequences().iter().map(sequence).collect();
            found.sort_unstable();
            found.dedup();
            found
        })
    }
}

/// Letters beyond ASCII as ranges of bytes.
fn letter_sequences() -> &'static [Utf8Sequence] {
    static SEQUENCES: OnceLock<Vec<Utf8Sequence>> = OnceLock::new();
    SEQUENCES.get_or_init(|| letters().iter().flat_map(|&(low, high)| Utf8Sequences::new(low, high)).collect())
}

/// Classes of some bytes, each once.
fn distinct_classes(classes: &[u8; 256], bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let (mut seen, mut found) = ([false; 256], Vec::new());
    for byte in bytes {
        let class = classes[usize::from(byte)];
        if !std::mem::replace(&mut seen[usize::from(class)], true) {
            found.push(class);
        }
    }
    found
}

/// Kinds of characters such that, from a state, every text of these characters is allowed, up to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WholeKinds {
    pub(crate) kinds: u8,
    /// Largest number of characters for which all texts of the kinds are allowed. Below [`MOST_CHARS`], no longer text
    /// of the kinds is allowed.
    pub(crate) chars: usize,
}

/// Transitions of a kind of characters from some states.
#[derive(PartialEq, Eq)]
enum KindStep {
    All,
    Some,
    No,
}

/// Limit on the states after texts of equal length: beyond it tokens are walked one by one.
const MOST_STATES: usize = 64;

impl Dense<'_> {
    #[inline]
    pub(crate) fn step(&self, state: u32, byte: u8) -> Option<u32> {
        self.by_class(state, self.classes[usize::from(byte)])
    }

    #[inline]
    fn by_class(&self, state: u32, class: u8) -> Option<u32> {
        let next = *self.next.get(state as usize * self.width + usize::from(class))?;
        (next != DEAD).then_some(next)
    }

    /// Kinds where all texts of up to [`MOST_CHARS`] go on from a state and pass `takes`. Where texts end because
    /// none of the kinds goes on after so many characters, that counts too, if they `may_end`. Sound, but not all that
    /// could be found.
    pub(crate) fn whole_kinds(
        &self,
        alphabet: &Alphabet,
        from: u32,
        may_end: bool,
        mut takes: impl FnMut(u32) -> bool,
    ) -> WholeKinds {
        let mut kinds = ALL;
        let (mut front, mut after) = (Vec::new(), Vec::new());
        'fewer: while kinds != 0 {
            front.clear();
            front.push(from);
            for chars in 0..MOST_CHARS {
                after.clear();
                let (mut failing, mut ending) = (0, 0);
                let mut look = |kinds: u8, sequences: &Sequences| {
                    let goes = self.step_kind(&front, sequences, &mut after);
                    failing |= if goes == KindStep::All { 0 } else { kinds };
                    ending |= if goes == KindStep::No { kinds } else { 0 };
                    goes
                };
                for (&kind, sequences) in ASCII.iter().zip(&alphabet.ascii).filter(|(kind, _)| kinds & **kind != 0) {
                    look(kind, sequences);
                }
                // All beyond ASCII, or its letters alone.
                if kinds & OTHER != 0 {
                    if look(OTHER, &alphabet.beyond) == KindStep::No {
                        look(LETTER & kinds, &alphabet.beyond);
                    }
                } else if kinds & LETTER != 0 && chars == 0 && !self.takes_some_letters(from) {
                    failing |= LETTER;
                } else if kinds & LETTER != 0 {
                    look(LETTER, alphabet.letters(self.classes));
                }
                if failing != 0 {
                    if may_end && chars > 0 && ending == kinds {
                        return WholeKinds { kinds, chars };
                    }
                    // Those that fail at once do so whatever the others are; later ones may fail for what came before.
                    kinds &= !if chars == 0 { failing } else { failing & failing.wrapping_neg() };
                    continue 'fewer;
                }
                if !after.iter().all(|&state| takes(state)) {
                    return WholeKinds { kinds: 0, chars: 0 };
                }
                after.sort_unstable();
                if after == front {
                    break;
                }
                std::mem::swap(&mut front, &mut after);
            }
            return WholeKinds { kinds, chars: MOST_CHARS };
        }
        WholeKinds { kinds: 0, chars: 0 }
    }

    /// Returns whether letters of several scripts continue: a quick look before a long one.
    fn takes_some_letters(&self, from: u32) -> bool {
        ["é", "я", "中", "한"]
            .iter()
            .all(|text| text.bytes().try_fold(from, |state, byte| self.step(state, byte)).is_some())
    }

    /// The states after each character of a kind, from each of some states.
    fn step_kind(&self, from: &[u32], sequences: &[Vec<Vec<u8>>], after: &mut Vec<u32>) -> KindStep {
        let (mut all, mut none) = (true, true);
        let mut here = Vec::new();
        let mut there = Vec::new();
        for &state in from {
            for sequence in sequences {
                here.clear();
                here.push(state);
                for classes in sequence {
                    there.clear();
                    for &state in &here {
                        for &class in classes {
                            match self.by_class(state, class) {
                                Some(next) if there.contains(&next) => {}
                                Some(next) => there.push(next),
                                None => all = false,
                            }
                        }
                    }
                    if !all && !none {
                        return KindStep::Some;
                    }
                    std::mem::swap(&mut here, &mut there);
                }
                none &= here.is_empty();
                after.extend(here.iter().filter(|next| !after.contains(next)).copied().collect::<Vec<_>>());
                if after.len() > MOST_STATES {
                    return KindStep::Some;
                }
            }
        }
        match (all, none) {
            (true, _) => KindStep::All,
            (_, true) => KindStep::No,
            _ => KindStep::Some,
        }
    }

    /// Sets the bit of every token of some nodes that goes on from a state. `path` is memory: as long as the longest
    /// token, and one more.
    pub(crate) fn scan(
        &self,
        (order, range): (&TokenTree, Range<usize>),
        from: u32,
        path: &mut [u32],
        words: &mut [u32],
    ) {
        // `path[n]` is the state after n bytes.
        path[0] = from;
        let nodes = &order.nodes()[..range.end];
        // All nodes between the two are legal. Their tokens are set together: fewer branches.
        let (mut legal, mut at) = (range.start, range.start);
        while let Some(&node) = nodes.get(at) {
            let depth = node.depth();
            if let Some(after) = self.step(path[depth], node.byte()) {
                path[depth + 1] = after;
                at += 1;
            } else {
                order.ending(legal..at).iter().for_each(|&token| set(words, token));
                at = node.subtree_end();
                legal = at;
            }
        }
        order.ending(legal..at).iter().for_each(|&token| set(words, token));
    }
}
