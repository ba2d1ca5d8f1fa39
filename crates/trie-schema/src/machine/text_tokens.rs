//! The tokens of a vocabulary as contents of strings. Groups of tokens whose characters are of the same kinds are
//! allowed at once where all texts of these kinds may come; only the others are walked.

use super::escape::TextAt;
use super::place::PlaceHash;
use super::walk::{Rests, ValueTokens};
use crate::shape::{TextShape, lock};
use lru::LruCache;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use trie_core::TokenId;
use trie_core::work::spend;
use trie_rules::{CharKinds, CharRun, Legal, TextMachine, TextSet, TextState, TokenBytes, TokenTree};

/// Tokens of free text that are kept at most: of a vocabulary of 150,000 tokens each takes 20 kB.
const MOST_FREE: usize = 256;
/// Numbers of characters for each of which there is a mask of the longer tokens, from 0 on.
const SHORT: usize = 16;
/// Bytes of the tokens of other texts that all schemas keep together.
const MOST_SHARED_BYTES: usize = 4 << 20;
/// Nodes of a subtree for which it is asked whether all of its texts may come.
const WORTH_A_RUN: usize = 32;
/// Stands for all numbers of characters from here on.
const LONG: u8 = u8::MAX;

/// Plain tokens below a node, from the character of the node on: their kinds of characters in the lowest bits, the
/// largest number of characters of one of them in the highest byte, and between them one more than the number of the
/// kind of the node's own character, which is 0 inside a character.
#[derive(Clone, Copy, Default)]
struct PlainTokens(u64);

const OWN: u32 = 42;
const CHARS: u32 = 56;
const _: () = assert!(CharKinds::COUNT <= OWN as usize && CharKinds::COUNT < 1 << (CHARS - OWN));

impl PlainTokens {
    fn new(kinds: CharKinds, own: CharKinds, chars: u8) -> Self {
        let own = if own.is_within(CharKinds::PARTIAL) { 0 } else { u64::from(own.bits().trailing_zeros()) + 1 };
        Self(kinds.bits() | own << OWN | u64::from(chars) << CHARS)
    }

    #[inline]
    fn kinds(self) -> CharKinds {
        CharKinds::from_bits(self.0)
    }

    #[inline]
    fn own(self) -> CharKinds {
        match (self.0 >> OWN) as u8 {
            0 => CharKinds::PARTIAL,
            own => CharKinds::from_bits(1 << (own - 1)),
        }
    }

    #[inline]
    fn chars(self) -> u8 {
        (self.0 >> CHARS) as u8
    }
}

/// The tokens of a vocabulary as texts take them, from between two characters on. A token is *plain* if it holds no
/// quote, no backslash and no control character, and begins where a character begins.
pub(super) struct TextTokens {
    /// By node of the tree of all tokens.
    below: Vec<PlainTokens>,
    /// Plain tokens, as bits.
    plain: Vec<u32>,
    /// Plain tokens with a character of each kind, as bits, one kind after the other.
    of_kind: Vec<u32>,
    /// Plain tokens with more characters than each number up to [`SHORT`], as bits.
    longer: Vec<u32>,
    /// Plain tokens with more than [`SHORT`] characters, each with their number.
    longest: Vec<(u8, TokenId)>,
    /// Other tokens that may come in a text, or that end one.
    special: Option<Arc<Rests>>,
    /// Tokens of texts of which only the number of characters counts: by whether any character may be an escape, and by
    /// how many characters must and may come.
    free: Mutex<HashMap<(bool, u32, u32), Arc<ValueTokens>>>,
    /// Tokens of other texts, for the schemas that have them in common, as formats.
    shared: Mutex<SharedTexts>,
}

/// Set of a text, by its address; bounds on its characters; whether any character may be an escape; the state.
type TextKey = (usize, (u32, Option<u32>), bool, TextState);

/// Tokens of texts that were found, the last ones used, with the machine of each, whose set keeps its address.
struct SharedTexts {
    found: LruCache<TextKey, (TextMachine, Arc<ValueTokens>)>,
    nbytes: usize,
}

impl Default for SharedTexts {
    fn default() -> Self {
        Self { found: LruCache::unbounded(), nbytes: 0 }
    }
}

impl SharedTexts {
    /// Bytes of an entry beside its tokens.
    const ENTRY: usize = size_of::<TextKey>() + size_of::<ValueTokens>() + 128;

    fn keep(&mut self, key: TextKey, machine: &TextMachine, found: &Arc<ValueTokens>) {
        self.nbytes += found.legal.nbytes() + Self::ENTRY;
        if let Some((_, (_, before))) = self.found.push(key, (machine.clone(), Arc::clone(found))) {
            self.nbytes -= before.legal.nbytes() + Self::ENTRY;
        }
        while self.nbytes > MOST_SHARED_BYTES {
            let Some((_, (_, oldest))) = self.found.pop_lru() else { break };
            self.nbytes -= oldest.legal.nbytes() + Self::ENTRY;
        }
    }
}

/// Returns whether something of a document may follow a string or a number: blanks, then a comma, a colon or a bracket.
pub(super) fn may_follow(rest: &[u8]) -> bool {
    let behind = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    behind.is_none_or(|byte| matches!(byte, b',' | b':' | b']' | b'}'))
}

/// Kind of the bytes of a node, from the root on: a plain text, or the beginning of one.
#[derive(Clone, Copy)]
struct Prefix {
    /// Kinds of all characters, and their number; the last one may be incomplete.
    kinds: CharKinds,
    chars: u8,
    /// Kind of the last character.
    last: CharKinds,
    /// Bytes that are missing, with the least and the largest value of the next one, and the bits so far.
    missing: u8,
    next: (u8, u8),
    code: u32,
}

impl Prefix {
    const EMPTY: Self =
        Self { kinds: CharKinds::NONE, chars: 0, last: CharKinds::NONE, missing: 0, next: (0, 0), code: 0 };

    /// After one more byte; `None` if no plain text begins so.
    fn with(self, byte: u8) -> Option<Self> {
        let begin = |missing, next, bits: u8| {
            let chars = self.chars.saturating_add(1);
            Some(Self { chars, last: CharKinds::PARTIAL, missing, next, code: u32::from(byte & bits), ..self })
        };
        let whole = |kind: CharKinds, chars| Self { kinds: self.kinds.with(kind), chars, last: kind, ..Self::EMPTY };
        if self.missing > 0 {
            let (least, most) = self.next;
            if !(least..=most).contains(&byte) {
                return None;
            }
            let code = self.code << 6 | u32::from(byte & 0x3F);
            if self.missing == 1 {
                return Some(whole(CharKinds::of(char::from_u32(code)?), self.chars));
            }
            return Some(Self { missing: self.missing - 1, next: (0x80, 0xBF), code, ..self });
        }
        match byte {
            0..b' ' | b'"' | b'\\' => None,
            b' '..=0x7F => Some(whole(CharKinds::of(char::from(byte)), self.chars.saturating_add(1))),
            0xC2..=0xDF => begin(1, (0x80, 0xBF), 0x1F),
            0xE0 => begin(2, (0xA0, 0xBF), 0xF),
            0xED => begin(2, (0x80, 0x9F), 0xF),
            0xE1..=0xEF => begin(2, (0x80, 0xBF), 0xF),
            0xF0 => begin(3, (0x90, 0xBF), 7),
            0xF1..=0xF3 => begin(3, (0x80, 0xBF), 7),
            0xF4 => begin(3, (0x80, 0x8F), 7),
            _ => None,
        }
    }

    /// The kinds and the number of characters, the incomplete one included.
    fn sign(self) -> (CharKinds, u8) {
        (self.kinds.with(self.last), self.chars)
    }
}

/// Returns whether a token may come in some text, or end it.
fn is_special(machine: &TextMachine, bytes: &[u8]) -> bool {
    let mut at = TextAt::start(machine);
    for (place, &byte) in bytes.iter().enumerate() {
        if byte == b'"' && at.between().is_some() {
            return may_follow(&bytes[place + 1..]);
        }
        let Some((next, _)) = at.step(machine, true, byte) else { return false };
        at = next;
    }
    true
}

fn add(words: &mut [u32], tokens: &[TokenId]) {
    for one in tokens {
        words[one.index() / 32] |= 1 << (one.index() % 32);
    }
}

/// Returns whether a run has room for so many characters, after some.
fn has_room(run: CharRun, chars: u8, before: u32) -> bool {
    if chars == LONG { run.chars == u32::MAX } else { u32::from(chars) <= run.chars.saturating_add(before) }
}

impl TextTokens {
    pub(super) fn new(tokens: &TokenBytes) -> Option<Self> {
        let machine = TextMachine::new(&TextSet::full(), 0, None)?;
        let tree = tokens.tree();
        let mut plain = vec![0; tokens.n_vocab().div_ceil(32)];
        let words = plain.len();
        let (mut of_kind, mut longer) = (vec![0; words * CharKinds::COUNT], vec![0; words * (SHORT + 1)]);
        let mut longest = Vec::new();
        // Of each node the kind of its character, and the characters so far if plain tokens end there.
        let mut below = Vec::with_capacity(tree.nodes().len());
        let mut special = Vec::new();
        let mut path = vec![Some(Prefix::EMPTY)];
        for (at, node) in tree.nodes().iter().enumerate() {
            path.truncate(node.depth() + 1);
            let prefix = path[node.depth()].and_then(|prefix| prefix.with(node.byte()));
            path.push(prefix);
            let ending = tree.ending(at..at + 1);
            let Some(prefix) = prefix else {
                special.extend(ending.iter().map(|&token| (tokens.bytes(token), token)));
                below.push(PlainTokens::default());
                continue;
            };
            below.push(PlainTokens::new(prefix.last, prefix.last, if ending.is_empty() { 0 } else { prefix.chars }));
            if ending.is_empty() {
                continue;
            }
            add(&mut plain, ending);
            let (kinds, chars) = prefix.sign();
            let mut bits = kinds.bits();
            while bits != 0 {
                add(&mut of_kind[words * bits.trailing_zeros() as usize..], ending);
                bits &= bits - 1;
            }
            add(&mut longer[words * (usize::from(chars) - 1).min(SHORT)..], ending);
            if usize::from(chars) > SHORT {
                longest.extend(ending.iter().map(|&token| (chars, token)));
            }
        }
        for word in (0..words * SHORT).rev() {
            longer[word] |= longer[word + words];
        }
        special.retain(|(bytes, _)| is_special(&machine, bytes));
        sum(tree, tokens.longest(), &mut below);
        let (special, free, shared) = (Rests::of(special), Mutex::default(), Mutex::default());
        Some(Self { below, plain, of_kind, longer, longest, special, free, shared })
    }

    /// Returns the tokens that may come in a text, or end one, and are not plain.
    pub(super) fn special(&self) -> Option<&Rests> {
        self.special.as_deref()
    }

    /// Returns the plain tokens of a run, as bits.
    fn slice(&self, run: CharRun) -> Vec<u32> {
        let mut words = self.plain.clone();
        let mut without = |others: &[u32]| words.iter_mut().zip(others).for_each(|(word, other)| *word &= !other);
        for (kind, tokens) in self.of_kind.chunks_exact(self.plain.len().max(1)).enumerate() {
            if !CharKinds::from_bits(1 << kind).is_within(run.kinds) {
                without(tokens);
            }
        }
        if (run.chars as usize) < SHORT {
            without(&self.longer[self.plain.len() * run.chars as usize..][..self.plain.len()]);
        }
        for &(_, one) in self.longest.iter().filter(|(chars, _)| !has_room(run, *chars, 0)) {
            words[one.index() / 32] &= !(1 << (one.index() % 32));
        }
        words
    }

    /// Computes the tokens of a text, from between two characters on, and the remainders of those that end it.
    pub(super) fn found(&self, tokens: &TokenBytes, shape: &TextShape, state: TextState) -> Arc<ValueTokens> {
        let Some((least, most)) = shape.machine.open_chars(state) else {
            let key = (shape.machine.set_address(), shape.machine.chars(), shape.escapes, state);
            if let Some((_, known)) = lock(&self.shared).found.get(&key) {
                return Arc::clone(known);
            }
            let found = Arc::new(self.look(tokens, shape, state));
            if trie_core::work::over().is_none() {
                lock(&self.shared).keep(key, &shape.machine, &found);
            }
            return found;
        };
        // No token tells more of them apart.
        let longest = tokens.longest() as u32;
        let most = most.filter(|&most| most < longest).unwrap_or(u32::MAX);
        let key = (shape.escapes, least.min(longest + 1), most);
        if let Some(known) = lock(&self.free).get(&key) {
            return Arc::clone(known);
        }
        let found = Arc::new(self.look(tokens, shape, state));
        let mut free = lock(&self.free);
        if free.len() >= MOST_FREE {
            free.clear();
        }
        if trie_core::work::over().is_none() {
            free.insert(key, Arc::clone(&found));
        }
        found
    }

    fn look(&self, tokens: &TokenBytes, shape: &TextShape, state: TextState) -> ValueTokens {
        let machine = &shape.machine;
        let run = machine.run(state);
        let has_slice = run.kinds.are_many() && run.chars > 0;
        let mut words = if has_slice { self.slice(run) } else { vec![0; self.plain.len()] };
        self.add_plain(tokens, machine, state, run, has_slice, &mut words);
        let rests = self.special.iter().flat_map(|special| add_special(tokens, special, shape, state, &mut words));
        let rests: Vec<_> = rests.collect();
        ValueTokens::new(Legal::from_mask(&words), rests)
    }

    /// Adds the plain tokens that a text takes; those of the run are there already if it `has_slice`.
    fn add_plain(
        &self,
        tokens: &TokenBytes,
        machine: &TextMachine,
        state: TextState,
        run: CharRun,
        has_slice: bool,
        words: &mut [u32],
    ) {
        /// Before a byte: the state; the state before the character of the byte, and the characters before that;
        /// whether all of these are in the run.
        #[derive(Clone, Copy)]
        struct WalkedByte {
            state: TextState,
            between: TextState,
            chars: u32,
            is_in_run: bool,
        }
        let tree = tokens.tree();
        let mut runs: HashMap<TextState, CharRun, PlaceHash> = HashMap::default();
        runs.insert(state, run);
        let mut last = (state, run);
        let mut path = vec![WalkedByte { state, between: state, chars: 0, is_in_run: has_slice }];
        let mut at = 0;
        while let Some(&node) = tree.nodes().get(at) {
            let below = self.below[at];
            let (kinds, chars) = (below.kinds(), below.chars());
            if chars == 0 {
                at = node.subtree_end();
                continue;
            }
            path.truncate(node.depth() + 1);
            let before = path[node.depth()];
            // In the run is what may come of these.
            if before.is_in_run && kinds.is_within(run.kinds) && (run.is_closed || has_room(run, chars, 0)) {
                at = node.subtree_end();
                continue;
            }
            if spend(1).is_err() {
                return;
            }
            // The run of a state takes longer to find than a few nodes to walk.
            if node.subtree_end() - at >= WORTH_A_RUN {
                if last.0 != before.between {
                    last = (before.between, *runs.entry(before.between).or_insert_with(|| machine.run(before.between)));
                }
                if kinds.is_within(last.1.kinds) && has_room(last.1, chars, before.chars) {
                    add(words, tree.ending(at..node.subtree_end()));
                    at = node.subtree_end();
                    continue;
                }
            }
            let Some(next) = machine.step(before.state, node.byte()) else {
                at = node.subtree_end();
                continue;
            };
            add(words, tree.ending(at..at + 1));
            path.push(if next.is_between() {
                let is_in_run = before.is_in_run && below.own().is_within(run.kinds);
                WalkedByte { state: next, between: next, chars: before.chars + 1, is_in_run }
            } else {
                WalkedByte { state: next, ..before }
            });
            at += 1;
        }
        // Subtrees hold others, too.
        words.iter_mut().zip(&self.plain).for_each(|(word, plain)| *word &= plain);
    }
}

/// Adds the special tokens that a text takes; returns the remainders of those that end it.
fn add_special(
    tokens: &TokenBytes,
    special: &Rests,
    shape: &TextShape,
    state: TextState,
    words: &mut [u32],
) -> Vec<Arc<Rests>> {
    let tree = special.tree(tokens);
    // Most of these begin with the quote: their remainders are the same for all texts.
    let (mut first, mut others) = (Vec::new(), Vec::new());
    let mut path = vec![TextAt::at(state)];
    let mut at = 0;
    while let Some(&node) = tree.nodes().get(at) {
        if spend(1).is_err() {
            break;
        }
        path.truncate(node.depth() + 1);
        let before = path[node.depth()];
        if node.byte() == b'"' && before.between().is_some() {
            if before.is_end(&shape.machine) {
                add(words, tree.ending(at..at + 1));
                if node.depth() == 0 { &mut first } else { &mut others }.push(at);
            }
            at = node.subtree_end();
            continue;
        }
        let Some((next, _)) = before.step(&shape.machine, shape.escapes, node.byte()) else {
            at = node.subtree_end();
            continue;
        };
        add(words, tree.ending(at..at + 1));
        path.push(next);
        at += 1;
    }
    [first, others].into_iter().filter_map(|nodes| special.below(tokens, nodes, true)).collect()
}

/// Sums the kinds and the numbers of characters of the plain tokens below each node. Each node has the kind of its
/// character, and its number if plain tokens end there.
fn sum(tree: &TokenTree, longest: usize, below: &mut [PlainTokens]) {
    // By depth: what the nodes hold that come behind, below the same node.
    let mut open = vec![(CharKinds::NONE, 0u8); longest + 2];
    for (node, below) in tree.nodes().iter().zip(below).rev() {
        let (mut kinds, most) = std::mem::take(&mut open[node.depth() + 1]);
        let (own, ending) = (below.own(), below.chars());
        let chars = most.max(ending);
        // A character counts where it is complete, or where a token ends inside it.
        if chars > 0 && (own != CharKinds::PARTIAL || ending > 0) {
            kinds = kinds.with(own);
        }
        *below = PlainTokens::new(kinds, own, chars);
        let behind = &mut open[node.depth()];
        *behind = (behind.0.with(kinds), behind.1.max(chars));
    }
}
