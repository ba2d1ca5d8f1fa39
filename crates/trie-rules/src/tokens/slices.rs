//! Slices of a vocabulary: tokens grouped by the kinds of their characters. Where all texts of some kinds are legal,
//! all tokens of these kinds are allowed without a check of each.

use crate::tokens::order::TokenTree;
use crate::tokens::token_bytes::TokenBytes;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trie_core::{TokenId, shared_prefix};

/// Characters that a token of a slice has at most, a blank before them not counted.
pub(crate) const MOST_CHARS: usize = 16;

/// Kinds of characters, one bit each. Digits; _; other ASCII but for controls, blank, quote and backslash; A-Z; beyond
/// ASCII characters that are not letters; letters beyond ASCII; a-z. Where not all can be kept, the first are given up
/// first.
pub(crate) const DIGIT: u8 = 1;
pub(crate) const UNDERSCORE: u8 = 2;
pub(crate) const PUNCTUATION: u8 = 4;
pub(crate) const UPPER: u8 = 8;
pub(crate) const OTHER: u8 = 16;
pub(crate) const LETTER: u8 = 32;
pub(crate) const LOWER: u8 = 64;
pub(crate) const ALL: u8 = 127;
/// The kinds of ASCII characters.
pub(crate) const ASCII: [u8; 5] = [DIGIT, UNDERSCORE, PUNCTUATION, UPPER, LOWER];

/// The kind of an ASCII character; 0 for those that are in no slice.
pub(crate) const fn kind_of(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'0'..=b'9' => DIGIT,
        b'_' => UNDERSCORE,
        b'"' | b'\\' | 0..=b' ' | 127.. => 0,
        _ => PUNCTUATION,
    }
}

/// The characters that count as letters beyond ASCII: `\p{L}` up to U+FFFF, as ascending ranges.
pub(crate) fn letters() -> &'static [(char, char)] {
    static LETTERS: OnceLock<Vec<(char, char)>> = OnceLock::new();
    LETTERS.get_or_init(|| {
        let class = regex_syntax::parse(r"[\p{L}&&[\u{80}-\u{FFFF}]]").map(regex_syntax::hir::Hir::into_kind);
        let Ok(regex_syntax::hir::HirKind::Class(regex_syntax::hir::Class::Unicode(class))) = class else {
            return Vec::new();
        };
        class.ranges().iter().map(|range| (range.start(), range.end())).collect()
    })
}

/// One bit for each character up to U+FFFF: whether it is a letter beyond ASCII.
fn letter_bits() -> &'static [u64] {
    static BITS: OnceLock<Vec<u64>> = OnceLock::new();
    BITS.get_or_init(|| {
        let mut bits = vec![0; 1024];
        for code in letters().iter().flat_map(|&(low, high)| low as usize..=high as usize) {
            bits[code / 64] |= 1 << (code % 64);
        }
        bits
    })
}

/// Returns whether a character counts as a letter beyond ASCII.
#[inline]
pub(crate) fn is_letter(char: char) -> bool {
    letter_bits().get(char as usize / 64).is_some_and(|word| word >> (char as usize % 64) & 1 == 1)
}

/// Signature of a token: its kinds, its number of characters, and whether a blank comes before them. Without kinds it
/// is in no slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sign {
    kinds: u8,
    chars: u8,
    blank: bool,
}

impl Sign {
    fn from_bytes(bytes: &[u8], letters: &[u64]) -> Self {
        let (blank, text) = bytes.strip_prefix(b" ").map_or((false, bytes), |text| (true, text));
        let none = Self { kinds: 0, chars: 0, blank };
        // A character has at most 4 bytes.
        if text.len() > 4 * MOST_CHARS {
            return none;
        }
        let Ok(text) = std::str::from_utf8(text) else { return none };
        let (mut kinds, mut chars) = (0, 0);
        for char in text.chars() {
            let code = char as usize;
            kinds |= match kind_of(code.min(255) as u8) {
                0 if code < 128 => return none,
                0 if letters.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1) => LETTER,
                0 => OTHER,
                kind => kind,
            };
            chars += 1;
        }
        if usize::from(chars) > MOST_CHARS {
            return none;
        }
        Self { kinds, chars, blank }
    }

    fn is_within(self, kinds: u8) -> bool {
        self.kinds != 0 && self.kinds & !kinds == 0
    }
}

/// Maximum number of slices of a vocabulary; later kinds use a smaller slice, or none. Each slice has a tree of the
/// tokens that are not in it, which may take as much memory as all tokens.
const MOST_SLICES: usize = 16;

/// The slices of a vocabulary, each made when it is first asked for.
#[derive(Debug, Clone)]
pub(crate) struct Slices {
    /// By place in the order of all tokens.
    signs: Vec<Sign>,
    /// Without a blank in front, and with one; by kinds.
    by_kinds: [[OnceLock<Box<Slice>>; ALL as usize + 1]; 2],
    /// Slices that are built or being built.
    made: Arc<Mutex<Vec<(bool, u8)>>>,
    /// Number of tokens with exactly these kinds.
    counts: [[u32; ALL as usize + 1]; 2],
}

/// The tokens that are made of some kinds of characters, and those that are not.
#[derive(Debug, Clone)]
struct Slice {
    /// Tokens outside the slice, which must be walked.
    others: TokenTree,
    /// Tokens in the slice, as bits, of at most so many characters.
    masks: [OnceLock<Box<[u32]>>; MOST_CHARS + 1],
}

impl Slices {
    pub(crate) fn new<'b>(tokens: impl Iterator<Item = &'b [u8]>) -> Self {
        let letters = letter_bits();
        let signs: Vec<Sign> = tokens.map(|bytes| Sign::from_bytes(bytes, letters)).collect();
        let mut counts = [[0; ALL as usize + 1]; 2];
        for sign in &signs {
            counts[usize::from(sign.blank)][usize::from(sign.kinds)] += 1;
        }
        let by_kinds = std::array::from_fn(|_| std::array::from_fn(|_| OnceLock::new()));
        Self { signs, by_kinds, made: Arc::default(), counts }
    }

    /// The best slice for some kinds, as [`TokenBytes::best_slice`] says.
    fn best(&self, blank: bool, kinds: u8) -> u8 {
        let size = |kinds: u8| {
            let counts = &self.counts[usize::from(blank)];
            let of = (1..=kinds).filter(|of| of & !kinds == 0).map(|of| counts[usize::from(of)] as usize);
            of.sum::<usize>()
        };
        if size(kinds) <= self.signs.len() / 64 {
            return 0;
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.contains(&(blank, kinds)) {
            return kinds;
        }
        if made.len() < MOST_SLICES {
            made.push((blank, kinds));
            return kinds;
        }
        let smaller = made.iter().filter(|(of, some)| *of == blank && some & !kinds == 0).map(|&(_, some)| some);
        smaller.max_by_key(|&some| size(some)).unwrap_or(0)
    }

    pub(crate) fn nbytes(&self) -> usize {
        let made = self.by_kinds.iter().flatten().filter_map(OnceLock::get);
        size_of_val(&*self.signs) + made.map(|slice| slice.nbytes()).sum::<usize>()
    }
}

impl Slice {
    fn nbytes(&self) -> usize {
        let masks = self.masks.iter().filter_map(OnceLock::get).map(|mask| size_of_val(&**mask));
        self.others.nbytes() + masks.sum::<usize>()
    }
}

impl TokenBytes {
    /// Returns the best slice for a state at which tokens of these kinds are legal, all or some of them; none if few
    /// tokens are of these kinds. The slices are made only for a state that could use one.
    pub(crate) fn best_slice(&self, blank: bool, kinds: u8) -> u8 {
        if kinds == 0 { 0 } else { self.slices().best(blank, kinds) }
    }

    /// The tokens with or without a blank in front that are not in a slice, as nodes of orders. Without kinds, that is
    /// all of them.
    pub(crate) fn remaining_tokens(&self, blank: bool, kinds: u8) -> [(&TokenTree, Range<usize>); 2] {
        let order = if kinds == 0 { self.tree() } else { &self.slice(blank, kinds).others };
        order.beginning(blank).map(|nodes| (order, nodes))
    }

    fn slice(&self, blank: bool, kinds: u8) -> &Slice {
        self.slices().by_kinds[usize::from(blank)][usize::from(kinds)].get_or_init(|| {
            let mut before: &[u8] = &[];
            let rows = self.tree().tokens().iter().zip(&self.slices().signs);
            let rows = rows.filter(|(_, sign)| sign.blank == blank && !sign.is_within(kinds)).map(|(&token, _)| {
                let bytes = self.bytes(token);
                let common = shared_prefix(bytes, std::mem::replace(&mut before, bytes));
                (bytes, common, token)
            });
            let others = TokenTree::of_rows(rows);
            Box::new(Slice { others, masks: std::array::from_fn(|_| OnceLock::new()) })
        })
    }

    /// The tokens of a slice, as bits, of at most so many characters.
    pub(crate) fn slice_mask(&self, blank: bool, kinds: u8, chars: usize) -> &[u32] {
        let chars = chars.min(MOST_CHARS);
        self.slice(blank, kinds).masks[chars].get_or_init(|| {
            let mut words = vec![0; self.n_vocab().div_ceil(32)];
            let signs = self.tree().tokens().iter().zip(&self.slices().signs);
            let here = |sign: &Sign| sign.blank == blank && sign.is_within(kinds) && usize::from(sign.chars) <= chars;
            signs.filter(|(_, sign)| here(sign)).for_each(|(&token, _)| set(&mut words, token));
            words.into()
        })
    }
}

/// Sets the bit of a token.
#[inline]
pub(crate) fn set(words: &mut [u32], token: TokenId) {
    words[token.index() / 32] |= 1 << (token.index() % 32);
}

/// Sets the bits that others have.
pub(crate) fn add(words: &mut [u32], others: &[u32]) {
    words.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
}
