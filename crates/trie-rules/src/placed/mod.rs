//! A rule between fixed texts, as in a form.

pub(crate) mod prefixed;

use crate::rule::{Rule, Walker};
use crate::samples::shortest_end;
use crate::tokens::by_rule::{ByRule, ByRuleError, ByRuleState};
use crate::tokens::masks::MaskLimits;
use crate::tokens::order::TokenTree;
use crate::tokens::spelling::Spelling;
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use std::ops::Range;
use std::sync::Arc;
use trie_core::{
    Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, TokenId, Tokens, Trie, shared_prefix,
};

/// A rule between a prefix and a suffix, or any of several suffixes. Tokens may cross both boundaries. The constraint
/// ends as soon as the end of the rule's text is certain: the caller writes the rest of the suffix. Of several suffixes
/// the first one that is written counts, or the longest of those that end at the same byte.
#[derive(Debug)]
pub struct DelimitedRule<R: Rule>(ByRule<PlacedBytes<R>>);

/// Bytes before a rule, the rule, and bytes after it. A clone is one reference count.
#[derive(Debug)]
pub(crate) struct PlacedBytes<R>(Arc<Texts<R>>);

#[derive(Debug)]
struct Texts<R> {
    before: Box<[u8]>,
    rule: R,
    /// For each byte: places of the suffixes that begin with this byte.
    places: Box<[Places; 256]>,
    /// Before the first byte of each text that stands after, and behind its last: one place where that is empty.
    starts: Places,
    ends: Places,
    /// First place and length of each suffix.
    after: Box<[(u32, u32)]>,
    /// The bytes that they begin with.
    firsts: Box<[u8]>,
}

/// Places in texts one after the other, each with one more place than it has bytes.
pub(crate) type Places = u128;

impl<R> Clone for PlacedBytes<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Places of all texts behind a rule. More bytes of one tell nothing more of where the rule's text ends.
const PLACES: usize = Places::BITS as usize;

/// The most texts behind a rule.
const MOST_BEHIND: usize = PLACES / 2;

/// Returns whether these suffixes fit behind a rule in full length.
pub fn fit_behind(after: &[&[u8]]) -> bool {
    after.iter().map(|text| text.len() + 1).sum::<usize>() <= PLACES
}

/// State of a walk through a [`DelimitedRule`] rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Position<S> {
    /// So many bytes of what stands before.
    Before(u32),
    Inside {
        /// In the rule's text, if it can go on.
        rule: Option<S>,
        /// The rule's text may be over, and what stands after be written up to these places.
        behind: Places,
    },
}

impl<R: Rule> Clone for DelimitedRule<R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Rule> PlacedBytes<R> {
    /// Before one of these texts; before none where there is none. Those that do not [fit](fit_behind) are cut.
    pub(crate) fn new(before: &[u8], rule: R, after: &[&[u8]]) -> Self {
        const NOTHING: &[&[u8]] = &[b""];
        let after = if after.is_empty() { NOTHING } else { &after[..after.len().min(MOST_BEHIND)] };
        let most = if fit_behind(after) { PLACES } else { PLACES / after.len() - 1 };
        let (mut places, mut starts, mut ends, mut at) = (Box::new([0; 256]), 0, 0, 0);
        let mut texts = Vec::new();
        for text in after {
            let text = &text[..text.len().min(most)];
            texts.push((at, text.len() as u32));
            starts |= 1 << at;
            for &byte in text {
                places[usize::from(byte)] |= 1 << at;
                at += 1;
            }
            ends |= 1 << at;
            at += 1;
        }
        let firsts = after.iter().filter_map(|text| text.first().copied()).collect();
        Self(Arc::new(Texts { before: before.into(), rule, places, starts, ends, after: texts.into(), firsts }))
    }

    /// Returns whether a token contains the first byte of a suffix.
    pub(crate) fn may_cross(&self, token: &[u8]) -> bool {
        self.0.firsts.iter().any(|first| token.contains(first))
    }

    /// Returns whether no byte of a suffix is written yet.
    pub(crate) fn is_inside(&self, behind: Places) -> bool {
        behind & !self.0.starts == 0
    }

    fn initial_position(&self) -> Position<R::State> {
        let state = self.0.rule.start();
        let behind = self.end_places(self.0.rule.is_end(&state));
        Position::Inside { rule: Some(state), behind }
    }

    /// The places where the rule's text may be over.
    fn end_places(&self, is_end: bool) -> Places {
        if is_end { self.0.starts } else { 0 }
    }

    fn is_whole(&self, behind: Places) -> bool {
        behind & self.0.ends != 0
    }

    /// Returns whether a suffix follows, which is written once.
    fn stops(&self) -> bool {
        self.0.starts & self.0.ends == 0
    }

    /// Returns the number of written bytes for each suffix that is still possible.
    fn ways(&self, behind: Places) -> impl Iterator<Item = (u32, bool)> {
        let of = move |&(start, length): &(u32, u32)| {
            let written = (0..=length).filter(move |bytes| behind >> (start + bytes) & 1 == 1);
            written.map(move |bytes| (bytes, bytes == length))
        };
        self.0.after.iter().flat_map(of)
    }
}

impl<R: Rule> Rule for PlacedBytes<R> {
    type State = Position<R::State>;

    fn start(&self) -> Self::State {
        if self.0.before.is_empty() { self.initial_position() } else { Position::Before(0) }
    }

    fn step(&self, state: &Self::State, byte: u8) -> Option<Self::State> {
        match state {
            Position::Before(at) => {
                let place = *at as usize;
                let last = place + 1 == self.0.before.len();
                (self.0.before[place] == byte)
                    .then(|| if last { self.initial_position() } else { Position::Before(at + 1) })
            }
            // Once what stands behind is whole, nothing goes on: the shortest text of the rule counts.
            Position::Inside { behind, .. } if self.stops() && self.is_whole(*behind) => None,
            Position::Inside { rule, behind } => {
                let rule = rule.as_ref().and_then(|state| self.0.rule.step(state, byte));
                let over = self.end_places(rule.as_ref().is_some_and(|state| self.0.rule.is_end(state)));
                let behind = ((behind & self.0.places[usize::from(byte)]) << 1) | over;
                (rule.is_some() || behind != 0).then_some(Position::Inside { rule, behind })
            }
        }
    }

    fn is_end(&self, state: &Self::State) -> bool {
        matches!(state, Position::Inside { behind, .. } if self.is_whole(*behind))
    }

    fn failure(&self) -> Option<Problem> {
        self.0.rule.failure()
    }

    fn failing(&self) -> bool {
        self.0.rule.failing()
    }

    fn is_finite(&self) -> bool {
        self.0.rule.is_finite()
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<Self::State>>> {
        let inside = self.0.rule.walker(tokens)?;
        Some(Arc::new(BetweenWalk::new(self.clone(), inside, Arc::clone(tokens))))
    }
}

/// State of a text in a [`DelimitedRule`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PlacedState<S>(ByRuleState<Position<S>>);

impl<R: Rule> DelimitedRule<R> {
    /// Returns the rule between a prefix and one of several suffixes. Suffixes that do not [fit](fit_behind) are cut.
    ///
    /// # Errors
    /// As [`ByRule::new`].
    pub fn new(
        before: &[u8],
        rule: R,
        after: &[&[u8]],
        spelling: impl Into<Spelling>,
        limits: MaskLimits,
    ) -> Result<Self, ByRuleError> {
        ByRule::with_limits(PlacedBytes::new(before, rule, after), spelling, limits).map(Self)
    }

    /// Returns whether the rule's text may end here, with no byte of a suffix behind it.
    pub fn may_end(&self, at: &PlacedState<R::State>) -> bool {
        let starts = self.0.rule().0.starts;
        matches!(at.0.rule_state(), Position::Inside { behind, .. } if behind & starts != 0)
    }

    /// Returns the number of written bytes of the suffix, once the end of the rule's own text is known.
    pub fn suffix_written(&self, at: &PlacedState<R::State>) -> Option<usize> {
        let (between, own) = (self.0.rule(), &self.0.rule().0.rule);
        let &Position::Inside { ref rule, behind } = at.0.rule_state() else { return None };
        if between.stops() && between.is_whole(behind) {
            return between.ways(behind).filter(|(_, whole)| *whole).map(|(bytes, _)| bytes as usize).max();
        }
        let goes_on = || rule.as_ref().is_some_and(|state| (0..=255).any(|byte| own.step(state, byte).is_some()));
        let mut ways = between.ways(behind).map(|(bytes, _)| bytes);
        let one = ways.next().filter(|one| ways.all(|other| other == *one))?;
        (!goes_on()).then_some(one as usize)
    }

    /// Returns the shortest bytes that complete the rule's text and a suffix, the same every time. `None` if the search
    /// visits more than `most_states` states, or the rule fails on the way. Takes up to 256 steps of the rule for each
    /// state.
    pub fn shortest_end(&self, at: &PlacedState<R::State>, most_states: usize) -> Option<Vec<u8>> {
        shortest_end(self.0.rule(), at.0.rule_state().clone(), most_states)
    }
}

impl<R: Rule> Constraint for DelimitedRule<R> {
    type State = PlacedState<R::State>;

    fn start(&self) -> Self::State {
        PlacedState(self.0.start())
    }

    fn next<'a>(&'a self, at: &'a Self::State, scratch: &'a mut Scratch) -> Next<'a> {
        if self.suffix_written(at).is_some() {
            return Next { tokens: Tokens::default(), ending: Ending::Must };
        }
        self.0.next(&at.0, scratch)
    }

    fn advance(&self, at: &mut Self::State, token: TokenId) -> Option<Role> {
        if self.suffix_written(at).is_some() { None } else { self.0.advance(&mut at.0, token) }
    }

    fn forced_token(&self, at: &Self::State, scratch: &mut Scratch) -> Option<TokenId> {
        if self.suffix_written(at).is_some() { None } else { self.0.forced_token(&at.0, scratch) }
    }

    fn problem(&self, at: &Self::State) -> Option<Problem> {
        self.0.problem(&at.0)
    }

    fn max_token(&self) -> Option<TokenId> {
        None
    }

    fn to_trie(&self, _limit: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl<R: Rule> Special for DelimitedRule<R> {}

#[derive(Debug)]
pub(crate) struct BetweenWalk<R: Rule> {
    between: PlacedBytes<R>,
    inside: Arc<dyn Walker<R::State>>,
    tokens: Arc<TokenBytes>,
    /// The tokens with the first byte of a text that stands behind: no other can cross the end of the rule's text.
    crossing: TokenTree,
}

impl<R: Rule> BetweenWalk<R> {
    pub(crate) fn new(between: PlacedBytes<R>, inside: Arc<dyn Walker<R::State>>, tokens: Arc<TokenBytes>) -> Self {
        let mut before: &[u8] = &[];
        let crossing = TokenTree::of_rows(tokens.tree().tokens().iter().filter_map(|&token| {
            let bytes = tokens.bytes(token);
            let shared = shared_prefix(bytes, before);
            between.may_cross(bytes).then_some(())?;
            before = bytes;
            Some((bytes, shared, token))
        }));
        Self { between, inside, tokens, crossing }
    }

    fn scan(&self, tokens: (&TokenTree, Range<usize>), state: &Position<R::State>, words: &mut [u32]) {
        let step = |state: &Position<R::State>, byte| self.between.step(state, byte);
        tokens_from(step, tokens, state, &mut Path::default(), |token, _| set(words, token));
    }
}

fn set(words: &mut [u32], token: TokenId) {
    words[token.index() / 32] |= 1 << (token.index() % 32);
}

impl<R: Rule> Walker<Position<R::State>> for BetweenWalk<R> {
    fn tokens(&self, state: &Position<R::State>, words: &mut [u32]) {
        match state {
            // Nothing of what stands behind is written yet.
            Position::Inside { rule: Some(rule), behind } if self.between.is_inside(*behind) => {
                self.inside.tokens(rule, words);
                for token in self.crossing.tokens() {
                    words[token.index() / 32] &= !(1 << (token.index() % 32));
                }
                self.scan((&self.crossing, 0..self.crossing.nodes().len()), state, words);
            }
            _ => self.scan(self.tokens.all_tokens(), state, words),
        }
    }

    fn nbytes(&self) -> usize {
        self.inside.nbytes() + self.crossing.nbytes()
    }

    fn limit(&self, bytes: usize) {
        self.inside.limit(bytes);
    }

    fn forget(&self) {
        self.inside.forget();
    }
}
