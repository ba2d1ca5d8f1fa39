//! A walk that records the rule as an automaton: each step from a state by a byte is computed once.

use crate::rule::{Rule, Walker};
use crate::tokens::order::TokenTree;
use crate::tokens::slices::{ALL, ASCII, LETTER, MOST_CHARS, OTHER, add, kind_of, set};
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use indexmap::IndexSet;
use std::collections::VecDeque;
use std::fmt;
use std::mem::size_of;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trie_core::TokenId;
use trie_core::work::quiet;

/// A [`Walker`] for rules whose states are expensive to clone or to step, while a vocabulary reaches only few of them,
/// as in free text and strings. The states are numbered, and a step is a look-up by number and byte. The numbers are
/// kept between walks, up to a limit.
pub struct LazyWalk<R: Rule> {
    rule: Arc<R>,
    tokens: Arc<TokenBytes>,
    known: Mutex<LazyStates<R::State>>,
}

/// No way on, and a way that was not asked yet. Numbers of states are less.
const DEAD: u16 = u16::MAX;
const UNKNOWN: u16 = u16::MAX - 1;

/// States beyond which all are forgotten.
const MOST: usize = 8192;

/// States beyond which a walk goes on without remembering any: a rule may have ever new ones.
const MOST_IN_A_WALK: usize = 2 * MOST;
const _: () = assert!(MOST_IN_A_WALK < UNKNOWN as usize, "numbers of states are kept in so many bits");

/// Walks that later ones may copy from.
const COPIED: usize = 8;

/// States after a character, or after some, beyond which the way is not followed.
const MOST_AFTER: usize = 4;

/// Kinds of characters that are stepped together: those of ASCII, and all characters beyond it.
const KINDS: [u8; 6] = [ASCII[0], ASCII[1], ASCII[2], ASCII[3], ASCII[4], LETTER | OTHER];

/// Bytes of characters beyond ASCII, by their first byte: the second byte, and how many more follow.
const UTF8: [(Range<u8>, Range<u8>, usize); 8] = [
    (0xC2..0xE0, 0x80..0xC0, 0),
    (0xE0..0xE1, 0xA0..0xC0, 1),
    (0xE1..0xED, 0x80..0xC0, 1),
    (0xED..0xEE, 0x80..0xA0, 1),
    (0xEE..0xF0, 0x80..0xC0, 1),
    (0xF0..0xF1, 0x90..0xC0, 2),
    (0xF1..0xF4, 0x80..0xC0, 2),
    (0xF4..0xF5, 0x80..0x90, 2),
];

/// States in ascending order, few of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FewStates {
    numbers: [u16; MOST_AFTER],
    count: u8,
}

/// Result of a step by each character of a kind.
#[derive(Debug, Clone, Copy, Default)]
enum KindStep {
    /// The step was not asked yet.
    #[default]
    Unknown,
    /// All characters of the kind are refused.
    Refused,
    /// Some characters are refused, or they lead to many states.
    Mixed,
    /// All characters are legal and lead to these states.
    Free(FewStates),
}

/// Kinds of characters of which any text is legal at a state, up to a number of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FreeText {
    /// Kinds of the characters; none where no text is free.
    kinds: u8,
    /// Most characters: longer texts of these kinds are illegal, or have more than [`MOST_CHARS`].
    chars: usize,
}

struct LazyStates<S> {
    /// States that were reached, by their numbers.
    states: IndexSet<S>,
    #[allow(clippy::vec_box, reason = "a row is 512 bytes: a vector of them would be copied while it grows")]
    next: Vec<Box<[u16; 256]>>,
    /// By state, steps by the characters of [`KINDS`].
    by_kind: Vec<[KindStep; KINDS.len()]>,
    most: usize,
    /// True if a step led to a state beyond the limit.
    full: bool,
    path: Path<u32>,
    /// Recent walks that found many tokens.
    walked: VecDeque<(u32, Box<[u32]>)>,
}

impl<R: Rule> fmt::Debug for LazyWalk<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyWalk").field("rule", &self.rule).finish_non_exhaustive()
    }
}

impl<R: Rule> LazyWalk<R> {
    /// Builds the walk over these tokens.
    pub fn new(rule: Arc<R>, tokens: Arc<TokenBytes>) -> Self {
        Self { rule, tokens, known: Mutex::default() }
    }
}

impl<S> Default for LazyStates<S> {
    fn default() -> Self {
        let (states, next, by_kind) = (IndexSet::new(), Vec::new(), Vec::new());
        Self { states, next, by_kind, most: MOST, full: false, path: Path::default(), walked: VecDeque::new() }
    }
}

impl From<u16> for FewStates {
    fn from(state: u16) -> Self {
        let mut states = Self::default();
        states.add(state);
        states
    }
}

impl FewStates {
    fn as_slice(&self) -> &[u16] {
        &self.numbers[..usize::from(self.count)]
    }

    /// Adds some states; false if there is no room for one.
    fn add_all(&mut self, states: Self) -> bool {
        states.as_slice().iter().all(|&state| self.add(state))
    }

    /// Adds a state; false if there is no room for it.
    fn add(&mut self, state: u16) -> bool {
        let Err(place) = self.as_slice().binary_search(&state) else { return true };
        let count = usize::from(self.count);
        if count == MOST_AFTER {
            return false;
        }
        self.numbers.copy_within(place..count, place + 1);
        self.numbers[place] = state;
        self.count += 1;
        true
    }
}

impl<S: Clone + Eq + std::hash::Hash> LazyStates<S> {
    /// Bytes of a state: itself with its hash and place, and its ways.
    const STATE: usize = size_of::<S>() + size_of::<[u16; 256]>() + size_of::<[KindStep; KINDS.len()]>() + 32;

    fn number(&mut self, state: S) -> u32 {
        let (number, is_new) = self.states.insert_full(state);
        if is_new {
            self.next.push(Box::new([UNKNOWN; 256]));
            self.by_kind.push([KindStep::Unknown; KINDS.len()]);
        }
        number as u32
    }

    fn step(&mut self, rule: &impl Rule<State = S>, at: u32, byte: u8) -> Option<u32> {
        let known = self.next[at as usize][usize::from(byte)];
        if known < UNKNOWN {
            return Some(u32::from(known));
        }
        if known == DEAD {
            return None;
        }
        let Some(state) = rule.step(&self.states[at as usize], byte) else {
            // What failed is asked again.
            if !rule.failing() {
                self.next[at as usize][usize::from(byte)] = DEAD;
            }
            return None;
        };
        if self.states.len() >= MOST_IN_A_WALK && !self.states.contains(&state) {
            self.full = true;
            return None;
        }
        let next = self.number(state);
        self.next[at as usize][usize::from(byte)] = next as u16;
        Some(next)
    }

    /// Sets the bits of some nodes that go on from a state, which has the number `from`.
    fn scan(
        &mut self,
        rule: &impl Rule<State = S>,
        (state, from): (&S, u32),
        (order, nodes): (&TokenTree, Range<usize>),
        words: &mut [u32],
    ) {
        let mut path = std::mem::take(&mut self.path);
        let step = |at: &u32, byte| self.step(rule, *at, byte);
        tokens_from(step, (order, nodes.clone()), &from, &mut path, |token, _| set(words, token));
        self.path = path;
        if std::mem::take(&mut self.full) {
            let step = |at: &S, byte| rule.step(at, byte);
            tokens_from(step, (order, nodes), state, &mut Path::default(), |token, _| set(words, token));
        }
    }

    /// Steps from each of some states by each of some bytes.
    fn after_bytes(
        &mut self,
        rule: &impl Rule<State = S>,
        from: FewStates,
        bytes: &(impl Iterator<Item = u8> + Clone),
    ) -> KindStep {
        let (mut after, mut is_refused) = (FewStates::default(), false);
        for &at in from.as_slice() {
            for byte in bytes.clone() {
                let next = self.step(rule, u32::from(at), byte);
                is_refused |= next.is_none();
                if next.is_some_and(|next| is_refused || !after.add(next as u16)) || is_refused && after.count > 0 {
                    return KindStep::Mixed;
                }
            }
        }
        if is_refused { KindStep::Refused } else { KindStep::Free(after) }
    }

    /// Steps from a state by each character beyond ASCII.
    fn after_beyond_ascii(&mut self, rule: &impl Rule<State = S>, from: FewStates) -> KindStep {
        let first = UTF8.iter().flat_map(|(first, ..)| first.clone());
        if let step @ (KindStep::Refused | KindStep::Mixed) = self.after_bytes(rule, from, &first) {
            return step;
        }
        let mut all = FewStates::default();
        for (first, second, more) in UTF8 {
            let mut step = self.after_bytes(rule, from, &first);
            for bytes in std::iter::once(second).chain(std::iter::repeat_n(0x80..0xC0, more)) {
                let KindStep::Free(after) = step else { return KindStep::Mixed };
                step = self.after_bytes(rule, after, &bytes);
            }
            let KindStep::Free(after) = step else { return KindStep::Mixed };
            if !all.add_all(after) {
                return KindStep::Mixed;
            }
        }
        KindStep::Free(all)
    }

    /// Steps from a state by each character of one of [`KINDS`].
    fn after_kind(&mut self, rule: &impl Rule<State = S>, at: u16, kind: usize) -> KindStep {
        if !matches!(self.by_kind[usize::from(at)][kind], KindStep::Unknown) {
            return self.by_kind[usize::from(at)][kind];
        }
        let from = FewStates::from(at);
        let step = match KINDS[kind] {
            ascii if ASCII.contains(&ascii) => {
                self.after_bytes(rule, from, &(0..128).filter(move |&byte| kind_of(byte) == ascii))
            }
            _ => self.after_beyond_ascii(rule, from),
        };
        // As for a step: what failed is asked again.
        if rule.failing() || self.full {
            return KindStep::Mixed;
        }
        self.by_kind[usize::from(at)][kind] = step;
        step
    }

    /// Returns the texts that are legal from a state whichever characters of some kinds they have.
    fn free_text(&mut self, rule: &impl Rule<State = S>, from: u16) -> FreeText {
        if rule.free_chars(&self.states[usize::from(from)]) as usize >= MOST_CHARS {
            return FreeText { kinds: ALL, chars: MOST_CHARS };
        }
        // By kind, the number of states after a character.
        let mut kinds: Vec<(usize, u8)> = Vec::new();
        for kind in 0..KINDS.len() {
            if let KindStep::Free(after) = self.after_kind(rule, from, kind) {
                kinds.push((kind, after.count));
            }
        }
        while !kinds.is_empty() {
            if let Some(chars) = self.free_chars(rule, FewStates::from(from), &kinds) {
                return FreeText { kinds: kinds.iter().fold(0, |kinds, &(kind, _)| kinds | KINDS[kind]), chars };
            }
            // Kinds that lead to several states begin something, such as a tag; without them the rest may be free.
            let most = kinds.iter().map(|&(_, count)| count).max().unwrap_or(0);
            match kinds.iter().position(|&(_, count)| count < most) {
                Some(_) => kinds.retain(|&(_, count)| count < most),
                None => drop(kinds.remove(0)),
            }
        }
        FreeText::default()
    }

    /// Number of consecutive characters of some kinds that are legal from some states while any more are illegal, or
    /// [`MOST_CHARS`]; `None` where that depends on the characters.
    fn free_chars(
        &mut self,
        rule: &impl Rule<State = S>,
        mut states: FewStates,
        kinds: &[(usize, u8)],
    ) -> Option<usize> {
        for chars in 0..MOST_CHARS {
            let (mut after, mut is_refused) = (FewStates::default(), false);
            for &at in states.as_slice() {
                for &(kind, _) in kinds {
                    match self.after_kind(rule, at, kind) {
                        KindStep::Free(next) if !is_refused && after.add_all(next) => {}
                        KindStep::Refused if after.count == 0 => is_refused = true,
                        _ => return None,
                    }
                }
            }
            if is_refused {
                return Some(chars);
            }
            if after == states {
                break;
            }
            states = after;
        }
        Some(MOST_CHARS)
    }

    /// Returns the walk whose state has the most steps in common with this one, if that is more than half.
    fn walked_like(&mut self, rule: &impl Rule<State = S>, from: u32) -> Option<usize> {
        let mut best = (128, None);
        for number in 0..self.walked.len() {
            let other = self.walked[number].0;
            let alike = (0..=255).filter(|&byte| self.step(rule, from, byte) == self.step(rule, other, byte)).count();
            if alike > best.0 {
                best = (alike, Some(number));
            }
        }
        best.1
    }

    fn nbytes(&self) -> usize {
        let walked: usize = self.walked.iter().map(|(_, words)| size_of_val(&**words)).sum();
        walked + self.states.len() * Self::STATE
    }
}

fn unset(words: &mut [u32], token: TokenId) {
    words[token.index() / 32] &= !(1 << (token.index() % 32));
}

impl<R: Rule> Walker<R::State> for LazyWalk<R> {
    fn tokens(&self, state: &R::State, words: &mut [u32]) {
        quiet(|| self.walk(state, words));
    }

    fn nbytes(&self) -> usize {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).nbytes()
    }

    fn limit(&self, bytes: usize) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.most = (bytes / size_of::<[u16; 256]>()).clamp(64, MOST);
    }

    fn forget(&self) {
        // Who walks just now needs it.
        if let Ok(mut known) = self.known.try_lock() {
            *known = LazyStates { most: known.most, ..LazyStates::default() };
        }
    }
}

impl<R: Rule> LazyWalk<R> {
    /// Sets the bits of the allowed tokens of these nodes only.
    pub(crate) fn walk_some<'o>(
        &self,
        state: &R::State,
        some: impl IntoIterator<Item = (&'o TokenTree, Range<usize>)>,
        words: &mut [u32],
    ) {
        quiet(|| {
            let known = &mut *self.lock_states();
            let from = known.number(state.clone());
            for nodes in some {
                known.scan(&*self.rule, (state, from), nodes, words);
            }
        });
    }

    /// Locks the known states, which there is room to extend.
    fn lock_states(&self) -> MutexGuard<'_, LazyStates<R::State>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.states.len() >= known.most {
            let most = known.most;
            *known = LazyStates { most, ..LazyStates::default() };
        }
        known
    }

    fn walk(&self, state: &R::State, words: &mut [u32]) {
        let known = &mut *self.lock_states();
        let from = known.number(state.clone());
        let like = known.walked_like(&*self.rule, from);
        match like {
            Some(number) => self.walk_from_copy(known, (state, from), number, words),
            None => self.walk_text(known, (state, from), words),
        }
        let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
        // What was given up is copied by nobody.
        if count > words.len() && like.is_none() && !self.rule.failing() {
            known.walked.truncate(COPIED - 1);
            known.walked.push_front((from, (&*words).into()));
        }
    }

    /// Copies a walk, and walks what begins with a byte that leads to another state than there.
    fn walk_from_copy(
        &self,
        known: &mut LazyStates<R::State>,
        (state, from): (&R::State, u32),
        number: usize,
        words: &mut [u32],
    ) {
        let other = known.walked[number].0;
        words.copy_from_slice(&known.walked[number].1);
        let (order, all) = self.tokens.all_tokens();
        let mut at = all.start;
        while at < all.end {
            let node = order.nodes()[at];
            let (nodes, byte) = (at..node.subtree_end(), node.byte());
            at = nodes.end;
            if known.step(&*self.rule, from, byte) != known.step(&*self.rule, other, byte) {
                order.ending(nodes.clone()).iter().for_each(|&token| unset(words, token));
                known.scan(&*self.rule, (state, from), (order, nodes), words);
            }
        }
    }

    /// Adds the tokens of free text without a walk, and walks the others.
    fn walk_text(&self, known: &mut LazyStates<R::State>, (state, from): (&R::State, u32), words: &mut [u32]) {
        let rule = &*self.rule;
        for blank in [false, true] {
            let first = if blank { known.step(rule, from, b' ') } else { Some(from) };
            let free = first.map_or_else(FreeText::default, |first| known.free_text(rule, first as u16));
            // Only the walk must be complete.
            known.full = false;
            let kinds = self.tokens.best_slice(blank, free.kinds);
            if kinds != 0 {
                add(words, self.tokens.slice_mask(blank, kinds, free.chars));
            }
            for nodes in self.tokens.remaining_tokens(blank, kinds) {
                known.scan(rule, (state, from), nodes, words);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Regex;

    #[test]
    fn finds_what_a_walk_without_memory_finds() {
        let pieces: Vec<Vec<u8>> = (0..2000_u32).map(|n| format!("{n:b}a{n}").into_bytes()).collect();
        let tokens = pieces.iter().zip(0..).map(|(piece, n)| (&piece[..], TokenId::new(n).unwrap()));
        let tokens = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap());
        let rule = Arc::new(Regex::new("[01]*1a[0-9]*7[0-9]*").unwrap());
        let walker = LazyWalk::new(Arc::clone(&rule), Arc::clone(&tokens));
        walker.limit(1);
        for from in ["", "1", "10", "1a", "1a7"] {
            let state = from.bytes().fold(rule.start(), |state, byte| rule.step(&state, byte).unwrap());
            let (mut lazy, mut plain) = (vec![0; 63], vec![0; 63]);
            walker.tokens(&state, &mut lazy);
            tokens.walk(&state, |state, byte| rule.step(state, byte), |token| set(&mut plain, token));
            assert_eq!(lazy, plain, "after {from:?}");
        }
        assert!(walker.nbytes() > 0);
    }

    /// Random texts, of few characters, so that tags are spelled and slices are large.
    fn texts(seed: u64, count: usize) -> Vec<String> {
        const CHARS: [char; 16] = ['a', 'b', 't', 'g', 'A', 'Z', '0', '7', '_', '<', '>', 'é', '世', '✓', '🙂', '"'];
        let mut random = seed;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let mut texts = std::collections::BTreeSet::new();
        while texts.len() < count {
            let blank = if next(3) == 0 { " " } else { "" };
            let most = if next(3) == 0 { 16 } else { 4 };
            let kinds = 1 + next(most);
            let (first, some) = (next(15), 1 + next(15));
            let text: String = (0..kinds).map(|_| CHARS[(first + next(some)) % 15]).collect();
            let end = if next(8) == 0 { "\"" } else { "" };
            texts.insert(format!("{blank}{text}{end}"));
        }
        texts.into_iter().collect()
    }

    #[test]
    fn free_text_is_what_a_plain_walk_finds() {
        let mut pieces: Vec<Vec<u8>> = texts(7, 6000).into_iter().map(String::into_bytes).collect();
        // Parts of characters, too.
        pieces.extend(
            "é世✓🙂".bytes().chain(*b"abtg<> \"").collect::<std::collections::BTreeSet<u8>>().iter().map(|&b| vec![b]),
        );
        let tokens = pieces.iter().zip(0..).map(|(piece, n)| (&piece[..], TokenId::new(n).unwrap()));
        let tokens = Arc::new(TokenBytes::new(pieces.len(), tokens).unwrap());
        let rules = [
            // Free text, in which a tag begins something else.
            "([^<]|<[^t]|<t[^a])*<ta>[0-9]*",
            // The same with letters only, and with a character that is refused.
            "[^7]*\"",
            "[a-z ]*[A-Z]",
            // Counted, so that the end comes within tokens.
            "[^\"]{0,20}\"",
            "( ?[a-z]){5}[^\"]{3}\"?",
            "[^\"]{2,6}\"",
            // One more state with each character of a kind.
            "[^0]*(0[^0]*){9}",
            // Letters beyond ASCII, some of them.
            "[a-zé]*",
            "[\\x00-\\x{ffff}]*",
        ];
        let mut free = 0;
        for rule in rules {
            let rule = Arc::new(Regex::new(rule).unwrap());
            let walker = LazyWalk::new(Arc::clone(&rule), Arc::clone(&tokens));
            let mut states = vec![rule.start()];
            for text in texts(11, 400) {
                let next = states.iter().filter_map(|state| rule.steps(state, text.as_bytes())).next_back();
                states.extend(next);
            }
            for (number, state) in states.iter().enumerate() {
                let (mut lazy, mut plain) = (vec![0; pieces.len().div_ceil(32)], vec![0; pieces.len().div_ceil(32)]);
                // Without copies of earlier walks now and then, which would hide what a walk of its own finds.
                if number % 2 == 0 {
                    walker.forget();
                }
                walker.tokens(state, &mut lazy);
                tokens.walk(state, |state, byte| rule.step(state, byte), |token| set(&mut plain, token));
                assert_eq!(lazy, plain, "state {number} of {rule:?}");
                let known = &mut *walker.lock_states();
                let from = known.number(*state);
                free += usize::from(known.free_text(&*rule, from as u16).kinds != 0);
            }
        }
        assert!(free > 500, "{free} states of free text");
    }
}
