//! Thinking before a value: free text up to a marker or a budget, then another constraint.

use super::marker::Marker;
use super::{
    AllExcept, AnyConstraint, AnyState, Constraint, Ending, Next, NotListed, Problem, Role, Scratch, Special, Tokens,
};
use crate::set::ids::TokenId;
use crate::set::trie::{Leaf, Trie};
use std::ops::Add;
use std::sync::Arc;

/// Free text up to the end marker, or up to a budget, and then another constraint.
///
/// ```text
///   begin marker ──► thinking ──────────────► end marker, to its last token ──► what follows: a trie, say
///   (in the prompt,     │ budget is used up             ▲
///    forced, or the     └──────► closing message ───────┘
///    model's choice)
/// ```
///
/// - *Thinking*: every token is allowed except the first token of the begin marker and the tokens of
///   [`ThinkOptions::masked`]. A token that continues the end marker is always allowed: where both markers begin
///   alike, that token is not masked.
/// - *The end marker*: with [`ThinkOptions::at_once`], the rest of it is forced once the model writes its first token.
///   Otherwise the text is searched for the whole marker, because its tokens also occur in ordinary text.
/// - *The budget* counts the tokens before the end marker. The closing message and the marker come on top of it. A
///   budget of 0 closes thinking at once.
/// - *After the end marker* the model cannot think again: in free text, also in the free text after the span, the
///   first tokens of both markers are not allowed. Tokens that a set allows stay allowed, so no value is lost. Where a
///   value may end or continue without an end token, every token is allowed, as with any constraint.
///
/// Closing tokens are forced, so they need no forward pass. A token that differs from a forced one is not accepted.
///
/// ```
/// use trie_core::{Budget, Span, SpanRules, ThinkGate, ThinkOptions, TokenId, Trie};
/// let id = |id| TokenId::new(id).unwrap();
/// let mut answers = Trie::builder();
/// answers.push(Some("yes"), &[id(1)]);
/// answers.push(Some("no"), &[id(2)]);
/// let options = ThinkOptions { end: vec![id(8), id(9)], budget: Some(Budget::tokens(3)), ..ThinkOptions::default() };
/// let gate = ThinkGate::new(options, answers.build()?.into())?;
/// let mut span = Span::new(SpanRules::for_constraint(trie_core::AnyConstraint::new(gate), 16)?.into());
///
/// span.accept_all(&[id(5), id(1), id(5)])?;
/// assert_eq!(span.forced().collect::<Vec<_>>(), [id(8), id(9)], "three tokens are thought");
/// assert!(span.accept(id(5)).is_err());
/// span.accept_all(&[id(8), id(9), id(2)])?;
/// assert_eq!(span.leaf().unwrap().name.as_deref(), Some("no"));
/// assert_eq!((span.thought().tokens, span.thought().forced), (3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ThinkGate(Arc<Gate>);

#[derive(Debug)]
struct Gate {
    begin: Vec<TokenId>,
    opening: Opening,
    end: Marker,
    /// The closing message and the end marker: the tokens that are forced once the budget is used up.
    closing: Vec<TokenId>,
    budget: Option<Budget>,
    at_once: bool,
    /// Tokens that are forbidden while thinking, indexed by the length of the prefix of the end marker that is
    /// written.
    denied: Vec<Vec<TokenId>>,
    /// First tokens of both markers, forbidden in free text after thinking.
    marks: Vec<TokenId>,
    then: AnyConstraint,
    /// Nesting depth of gates, this one counted.
    depth: usize,
}

/// Limit on the nesting depth of gates: each calls the next one on the stack.
const MOST_DEPTH: usize = 32;

/// Markers of a [`ThinkGate`], and the budget that closes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThinkOptions {
    /// Marker that begins thinking; may be empty.
    pub begin: Vec<TokenId>,
    /// Marker that ends thinking; not empty.
    pub end: Vec<TokenId>,
    /// Limit on the length of thinking; `None` means unlimited.
    pub budget: Option<Budget>,
    /// Tokens inserted before the end marker when the budget is used up. It must not hold that marker.
    pub message: Vec<TokenId>,
    /// Writer of the begin marker.
    pub opening: Opening,
    /// Forces the rest of the end marker once its first token is written. Otherwise the text is searched for the whole
    /// marker, which suits markers whose tokens also occur in ordinary text.
    pub at_once: bool,
    /// Further tokens that are forbidden while thinking: end of generation, say, so that there is always a value.
    pub masked: Vec<TokenId>,
}

impl Default for ThinkOptions {
    fn default() -> Self {
        let (opening, at_once) = (Opening::default(), true);
        let none = Vec::new;
        Self { begin: none(), end: none(), budget: None, message: none(), opening, at_once, masked: none() }
    }
}

/// Writer of the begin marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Opening {
    /// The begin marker is in the prompt already, or there is none.
    #[default]
    Written,
    /// The begin marker is forced at the start.
    Forced,
    /// The begin marker is allowed at the start. If the first token of the next constraint is written instead, the
    /// model does not think.
    Optional,
}

/// Limit on the length of thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Maximum number of tokens.
    pub tokens: u32,
    /// Also counts the begin marker, if it is written here and not in the prompt.
    pub with_begin: bool,
}

impl Budget {
    /// So many tokens, counted from the start of the output.
    pub const fn tokens(tokens: u32) -> Self {
        Self { tokens, with_begin: true }
    }

    /// So many tokens, counted from the end of the begin marker.
    pub const fn after_begin(tokens: u32) -> Self {
        Self { tokens, with_begin: false }
    }
}

/// Reasons why a gate cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// The end marker is empty.
    #[error("the end marker has no tokens: nothing would tell where thinking ends")]
    NoEnd,
    /// A message that ends thinking too early.
    #[error(
        "the closing message and the end marker after it are {closing:?}: there the end marker {end:?} ends after \
         {length} tokens already; give another message"
    )]
    EndInMessage {
        /// The message, followed by the end marker.
        closing: Vec<TokenId>,
        /// Tokens of the end marker.
        end: Vec<TokenId>,
        /// Number of its tokens after which the end marker first ends.
        length: usize,
    },
    /// A first token that begins both the begin marker and the next constraint.
    #[error(
        "token {token} begins both the begin marker and what follows thinking: where the marker may be left out, \
         nothing tells which is meant"
    )]
    Ambiguous {
        /// The first token of the begin marker.
        token: TokenId,
    },
    /// A set that begins with the end of the prompt.
    #[error("what follows thinking begins inside the prompt (token healing): the end marker stands between them")]
    Healed,
    /// Too many gates nested in each other.
    #[error("more than {most} gates follow each other, each as what follows the one before: leave some out")]
    TooDeep {
        /// Maximum number of nested gates.
        most: usize,
    },
}

crate::error_kind!(GateError, Argument);

/// Tokens spent on thinking, and how thinking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Thought {
    /// Tokens between the markers, without a closing message.
    pub tokens: usize,
    /// Tokens of markers and message that the gate forced: no row of logits decided them.
    pub forced: usize,
    /// True if a budget closed it.
    pub cut_short: bool,
    /// Length of the prefix of the end marker that the last tokens form; all of the marker once thinking is over.
    pub end_matched: usize,
}

impl Add for Thought {
    type Output = Self;

    /// Adds up the thinking of one gate and of a later one.
    fn add(self, later: Self) -> Self {
        Self {
            tokens: self.tokens + later.tokens,
            forced: self.forced + later.forced,
            cut_short: self.cut_short || later.cut_short,
            end_matched: later.end_matched.max(self.end_matched),
        }
    }
}

/// Position of a walk through a [`ThinkGate`]: a few numbers, and the state of the constraint behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct ThinkState {
    /// Number of tokens of the begin marker that are written.
    opened: u32,
    /// Number of tokens of thinking, including those that may turn out to begin the end marker.
    thought: u32,
    /// Length of the prefix of the end marker that the last tokens of thinking form, if the text is searched for the
    /// whole marker.
    matched: u32,
    /// Number of tokens of the closing message and the end marker that are written.
    closed: u32,
    /// Number of those that the model wrote by itself; 0 if the budget closed it.
    own: u32,
    /// Number of tokens walked in the next constraint.
    inside: u32,
    then: AnyState,
}

/// Tokens allowed at a state of a gate.
enum Place<'a> {
    /// The begin marker, or the first token of the next constraint.
    Before,
    /// Exactly one token, which is forced.
    Must(&'a TokenId),
    Thinking,
    Then,
}

impl ThinkGate {
    /// A gate that thinks as `options` say and is then followed by `then`.
    ///
    /// # Errors
    /// No end marker, a message that contains it, a set that begins inside the prompt, an optional begin marker whose
    /// first token may also begin the next constraint, or more than 32 gates nested in each other.
    pub fn new(options: ThinkOptions, then: AnyConstraint) -> Result<Self, GateError> {
        let ThinkOptions { begin, end, budget, message, opening, at_once, mut masked } = options;
        if end.is_empty() {
            return Err(GateError::NoEnd);
        }
        let end = Marker::new(&end);
        let closing = [message.as_slice(), end.tokens()].concat();
        if let Some(last) = end.first_end(&closing).filter(|&last| last + 1 != closing.len()) {
            return Err(GateError::EndInMessage { end: end.tokens().to_vec(), length: last + 1, closing });
        }
        if then.first_set().is_some_and(|set| set.heal_bytes() > 0) {
            return Err(GateError::Healed);
        }
        let depth = 1 + then.depth();
        if depth > MOST_DEPTH {
            return Err(GateError::TooDeep { most: MOST_DEPTH });
        }
        let opening = if begin.is_empty() { Opening::Written } else { opening };
        if let (Opening::Optional, Some(&token)) = (opening, begin.first())
            && then.next(&then.start(), &mut Scratch::default()).tokens.names(token)
        {
            return Err(GateError::Ambiguous { token });
        }
        masked.extend(begin.first());
        let masked = ascending(masked);
        let goes_on = |matched| masked.iter().copied().filter(|&token| end.advance(matched, token) == 0).collect();
        let denied = (0..if at_once { 1 } else { end.len() }).map(goes_on).collect();
        let marks = ascending(begin.first().into_iter().chain(end.tokens().first()).copied().collect());
        Ok(Self(Arc::new(Gate { begin, opening, end, closing, budget, at_once, denied, marks, then, depth })))
    }

    /// Returns the constraint behind the gate.
    pub fn next_constraint(&self) -> &AnyConstraint {
        &self.0.then
    }

    fn place<'a>(&'a self, at: &ThinkState) -> Place<'a> {
        let gate = &*self.0;
        if at.inside > 0 {
            return Place::Then;
        }
        if gate.opening != Opening::Written
            && let Some(next) = gate.begin.get(at.opened as usize)
        {
            return if at.opened == 0 && gate.opening == Opening::Optional { Place::Before } else { Place::Must(next) };
        }
        let message = gate.closing.len() - gate.end.len();
        if at.closed > 0 {
            let from = if at.own > 0 { message } else { 0 };
            return gate.closing.get(from + at.closed as usize).map_or(Place::Then, Place::Must);
        }
        let written = |budget: Budget| at.thought + if budget.with_begin { at.opened } else { 0 };
        if gate.budget.is_some_and(|budget| written(budget) >= budget.tokens) {
            // A marker that the model has begun is finished, without a message inside it.
            let from = if at.matched > 0 { message + at.matched as usize } else { 0 };
            return gate.closing.get(from).map_or(Place::Then, Place::Must);
        }
        Place::Thinking
    }

    /// Returns the tokens that are forbidden while thinking.
    fn denied_tokens(&self, at: &ThinkState) -> &[TokenId] {
        self.0.denied.get(at.matched as usize).map_or(&[], Vec::as_slice)
    }

    /// Accepts a forced token.
    fn close(&self, at: &mut ThinkState) {
        let gate = &*self.0;
        if gate.opening != Opening::Written && (at.opened as usize) < gate.begin.len() {
            at.opened += 1;
        } else if at.closed == 0 && at.matched > 0 {
            at.begin_end(at.matched);
            at.closed += 1;
        } else {
            at.closed += 1;
        }
    }

    /// Takes a token that is thought.
    fn think(&self, at: &mut ThinkState, token: TokenId) -> Option<Role> {
        let gate = &*self.0;
        if self.denied_tokens(at).binary_search(&token).is_ok() {
            return None;
        }
        let matched = gate.end.advance(at.matched as usize, token) as u32;
        at.thought += 1;
        let ends = matched as usize == gate.end.len();
        if ends || (gate.at_once && matched > 0) {
            at.begin_end(matched);
            return Some(Role::Marker);
        }
        at.matched = matched;
        Some(Role::Free)
    }

    /// Free text after thinking: the first tokens of markers may not come.
    fn without_markers<'a>(next: Next<'a>, denied: &'a [TokenId], ids: &'a mut Vec<TokenId>) -> Next<'a> {
        if next.ending != Ending::Free {
            return next;
        }
        let (wanted, also): (&[TokenId], &[TokenId]) = match next.tokens {
            Tokens::Ids(wanted) => (wanted, &[]),
            Tokens::Except(inner) => (inner.wanted_tokens(), inner.denied_tokens()),
            Tokens::Weighted(wanted) => (wanted.ids(), &[]),
            Tokens::Mask(_) => (&[], &[]),
        };
        let unwanted = |token: &&TokenId| !next.tokens.names(**token);
        if also.is_empty() && denied.iter().all(|token| unwanted(&token)) {
            return Next { tokens: Tokens::Except(AllExcept::new(denied).looking_for(wanted)), ..next };
        }
        ids.clear();
        ids.extend(denied.iter().filter(unwanted).chain(also));
        ids.sort_unstable();
        ids.dedup();
        Next { tokens: Tokens::Except(AllExcept::new(ids).looking_for(wanted)), ..next }
    }

    /// The first token of the begin marker, or what follows begins with.
    fn before_thinking<'a>(&'a self, at: &'a ThinkState, scratch: &'a mut Scratch) -> Next<'a> {
        let (ids, weighted, scratch) = scratch.split_weighted();
        ids.clear();
        let Next { tokens, ending } = self.0.then.next(&at.then, scratch);
        let begin = self.0.begin[0];
        let tokens = match tokens {
            Tokens::Except(inner) => {
                ids.extend(inner.denied_tokens().iter().filter(|&&token| token != begin));
                Tokens::Except(AllExcept::new(ids))
            }
            _ if ending == Ending::Free => {
                ids.extend(self.0.marks.iter().filter(|&&token| token != begin && !tokens.names(token)));
                Tokens::Except(AllExcept::new(ids).looking_for(std::slice::from_ref(&self.0.begin[0])))
            }
            named if named.weights().is_some() => {
                let end = named.weights().map_or(0.0, |weighted| weighted.end());
                weighted.clear(end);
                weighted.extend(named.weigh().chain([(begin, 0.0)]));
                weighted.tokens()
            }
            named => {
                ids.extend(named.iter().chain([begin]));
                ids.sort_unstable();
                Tokens::Ids(ids)
            }
        };
        Next { tokens, ending }
    }

    /// Takes a token of what follows.
    fn follow(&self, at: &mut ThinkState, token: TokenId) -> Option<Role> {
        let gate = &*self.0;
        if gate.marks.binary_search(&token).is_ok() && gate.then.ending(&at.then) == Ending::Free {
            let mut scratch = Scratch::default();
            if !gate.then.next(&at.then, &mut scratch).tokens.names(token) {
                return None;
            }
        }
        let role = gate.then.advance(&mut at.then, token)?;
        at.inside += 1;
        Some(role)
    }

    /// Tokens of the closing that were not chosen, and of the begin marker.
    fn forced_tokens(&self, at: &ThinkState) -> u32 {
        let begun = match self.0.opening {
            Opening::Written => 0,
            Opening::Forced => at.opened,
            Opening::Optional => at.opened.saturating_sub(1),
        };
        begun + (at.closed - at.own)
    }
}

impl ThinkState {
    /// The model has written so much of the end marker.
    fn begin_end(&mut self, length: u32) {
        self.thought -= length;
        self.own = length;
        self.closed = length;
        self.matched = 0;
    }
}

impl Constraint for ThinkGate {
    type State = ThinkState;

    fn start(&self) -> ThinkState {
        let then = self.0.then.start();
        ThinkState { opened: 0, thought: 0, matched: 0, closed: 0, own: 0, inside: 0, then }
    }

    fn next<'a>(&'a self, at: &'a ThinkState, scratch: &'a mut Scratch) -> Next<'a> {
        match self.place(at) {
            Place::Before => self.before_thinking(at, scratch),
            Place::Must(token) => Next { tokens: Tokens::Ids(std::slice::from_ref(token)), ending: Ending::No },
            Place::Thinking => {
                Next { tokens: Tokens::Except(AllExcept::new(self.denied_tokens(at))), ending: Ending::No }
            }
            Place::Then => {
                let (ids, _, scratch) = scratch.split();
                Self::without_markers(self.0.then.next(&at.then, scratch), &self.0.marks, ids)
            }
        }
    }

    fn advance(&self, at: &mut ThinkState, token: TokenId) -> Option<Role> {
        match self.place(at) {
            Place::Before if self.0.begin.first() == Some(&token) => {
                at.opened = 1;
                Some(Role::Marker)
            }
            Place::Before | Place::Then => self.follow(at, token),
            Place::Must(&due) if due == token => {
                self.close(at);
                Some(Role::Marker)
            }
            Place::Must(_) => None,
            Place::Thinking => self.think(at, token),
        }
    }

    fn ending(&self, at: &ThinkState) -> Ending {
        match self.place(at) {
            Place::Before | Place::Then => self.0.then.ending(&at.then),
            Place::Must(_) | Place::Thinking => Ending::No,
        }
    }

    fn forced_token(&self, at: &ThinkState, scratch: &mut Scratch) -> Option<TokenId> {
        match self.place(at) {
            Place::Must(&token) => Some(token),
            Place::Then if self.0.then.ending(&at.then) == Ending::No => self.0.then.forced_token(&at.then, scratch),
            Place::Before | Place::Thinking | Place::Then => None,
        }
    }

    fn values(&self, at: &ThinkState, over: bool) -> Vec<Leaf> {
        if matches!(self.place(at), Place::Then) { self.0.then.values(&at.then, over) } else { Vec::new() }
    }

    fn problem(&self, at: &ThinkState) -> Option<Problem> {
        self.0.then.problem(&at.then)
    }

    fn max_token(&self) -> Option<TokenId> {
        let gate = &*self.0;
        let own = gate.begin.iter().chain(&gate.closing).chain(gate.denied.iter().flatten());
        own.copied().chain(gate.then.max_token()).max()
    }

    fn sets(&self) -> Vec<&Trie> {
        self.0.then.sets()
    }

    /// Anything may be thought.
    fn to_trie(&self, _: usize) -> Result<Trie, NotListed> {
        Err(NotListed::Endless)
    }
}

impl Special for ThinkGate {
    fn remembers(&self) -> bool {
        // How much of the end marker stood there before cannot be told from what stands there now.
        self.0.at_once && self.0.then.remembers()
    }

    fn back(&self, at: &mut ThinkState, tokens: usize) -> bool {
        if !self.remembers() {
            return false;
        }
        let inside = tokens.min(at.inside as usize);
        if inside > 0 && !self.0.then.back(&mut at.then, inside) {
            return false;
        }
        let mut left = (tokens - inside) as u32;
        at.inside -= inside as u32;
        for part in [&mut at.closed, &mut at.thought, &mut at.opened] {
            let taken = left.min(*part);
            *part -= taken;
            left -= taken;
        }
        at.own = at.own.min(at.closed);
        true
    }

    fn never_ends(&self) -> bool {
        self.0.then.never_ends()
    }

    fn depth(&self) -> usize {
        self.0.depth
    }

    fn barred_tokens(&self) -> &[TokenId] {
        &self.0.marks
    }

    fn thought(&self, at: &ThinkState) -> Thought {
        let message = self.0.closing.len() - self.0.end.len();
        let cut_short = at.closed > 0 && at.own == 0;
        let ended = (at.closed as usize).saturating_sub(if cut_short { message } else { 0 });
        let here = Thought {
            tokens: at.thought as usize,
            forced: self.forced_tokens(at) as usize,
            cut_short,
            end_matched: ended.max(at.matched as usize),
        };
        here + self.0.then.thought(&at.then)
    }
}

fn ascending(mut tokens: Vec<TokenId>) -> Vec<TokenId> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}
