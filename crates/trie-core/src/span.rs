//! The life of one constrained stretch of output. Every face (C callback, Rust, Python) walks this one machine.
//!
//! ```text
//!            child                     end token, or a leaf that cannot go on
//!   Active ────────► Active (deeper) ──────────────────────────────────────► Complete
//!     ▲ │ illegal, from a host that cannot be told: ignored at the root        │
//!     │ └──────────────────────────────► Off  ◄── deeper, or patience is over ─┘ (illegal under After::Stop)
//!   reset, activate                     deactivate: Idle
//! ```

use crate::ids::TokenId;
use crate::rules::{After, SpanRules};
use crate::trie::{Cursor, Leaf, NotAllowed, Trie};
use std::sync::Arc;

/// Where a span is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Constraining: at the root or on the way to a leaf.
    Active,
    /// The leaf is known; the span is over.
    Complete,
    /// Switched off by the host until it activates a path.
    Idle,
    /// Switched off because something outside the trie was accepted.
    Off,
}

impl State {
    /// The name that hosts see: `active`, `complete`, `idle` or `off`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Idle => "idle",
            Self::Off => "off",
        }
    }
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed<'a> {
    /// Everything: logits are left alone.
    All,
    /// Everything, but only these ascending `children` go on; anything else completes the leaf that ends here.
    Open {
        /// Tokens that go on to a longer leaf.
        children: &'a [TokenId],
    },
    /// These alone, in two ascending slices that may share ids; at least one id.
    Only {
        /// Tokens that go on in the trie.
        tokens: &'a [TokenId],
        /// Tokens that end the span, or the output.
        ends: &'a [TokenId],
    },
}

impl<'a> Allowed<'a> {
    /// The legal tokens, ascending and each once; at an open leaf those that go on; nothing where everything may come.
    pub fn iter(&self) -> impl Iterator<Item = TokenId> + 'a {
        let (mut tokens, mut ends) = match *self {
            Self::All => (&[][..], &[][..]),
            Self::Open { children } => (children, &[][..]),
            Self::Only { tokens, ends } => (tokens, ends),
        };
        std::iter::from_fn(move || {
            let next = match (tokens.first(), ends.first()) {
                (Some(&token), Some(&end)) => token.min(end),
                (Some(&only), None) | (None, Some(&only)) => only,
                (None, None) => return None,
            };
            for side in [&mut tokens, &mut ends] {
                if side.first() == Some(&next) {
                    *side = &side[1..];
                }
            }
            Some(next)
        })
    }

    /// Whether this token may come next, and leaves the constraint intact.
    pub fn contains(&self, token: TokenId) -> bool {
        match self {
            Self::All | Self::Open { .. } => true,
            Self::Only { tokens, ends } => tokens.binary_search(&token).is_ok() || ends.binary_search(&token).is_ok(),
        }
    }
}

/// What became of a token that a host reported and could not be refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observed {
    /// It was legal.
    Accepted,
    /// Illegal at the root: ignored, the span stays armed.
    Ignored,
    /// Illegal deeper, or patience was over: the span is [`State::Off`].
    TurnedOff,
}

/// A request that the span refuses; its state is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpanError {
    /// The token is not among the allowed ones.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The vocabulary has no such token.
    #[error("token id {token} is outside the vocabulary of {n_vocab} tokens")]
    OutsideVocabulary {
        /// The id.
        token: TokenId,
        /// Size of the vocabulary.
        n_vocab: usize,
    },
    /// More tokens than were accepted since the span was armed.
    #[error("cannot roll back {asked} tokens: {accepted} were accepted since the span was armed")]
    RollbackTooFar {
        /// Tokens to take back.
        asked: usize,
        /// Tokens there are.
        accepted: usize,
    },
    /// No trie of that path.
    #[error("no trie has the path {path:?}; there are {known:?}")]
    UnknownPath {
        /// The path that was asked for.
        path: String,
        /// The paths there are.
        known: Vec<String>,
    },
}

/// A position in one of several tries, with the rules of what may follow. A clone is independent and O(1), or O(walk) in a set
/// that is no tree.
#[derive(Debug, Clone)]
pub struct Span {
    rules: Arc<SpanRules>,
    /// The trie of `place`, at hand: a step must not look it up.
    trie: Trie,
    place: Place,
    /// The positions before each token of the walk, where they cannot be told from the last one; empty in a tree.
    way: Vec<Cursor>,
}

/// Everything that changes. The tokens accepted so far are `ignored`, then the walk to `cursor`, then `tail`: so
/// rollback needs no history.
#[derive(Debug, Clone, Copy)]
struct Place {
    trie: u32,
    cursor: Cursor,
    /// Tokens after the walk: an end token and whatever followed the span.
    tail: u32,
    /// Illegal tokens at the root, from a host that cannot be told.
    ignored: u32,
    idle: bool,
    /// The number of accepted tokens when the span turned itself off.
    off_at: Option<u32>,
}

impl Place {
    const fn armed(trie: u32) -> Self {
        Self { trie, cursor: Cursor::ROOT, tail: 0, ignored: 0, idle: false, off_at: None }
    }
}

impl Span {
    /// A span armed at the root of the first trie.
    pub fn new(rules: Arc<SpanRules>) -> Self {
        let trie = rules.spans()[0].1.clone();
        Self { rules, trie, place: Place::armed(0), way: Vec::new() }
    }

    /// The rules it follows.
    pub fn rules(&self) -> &Arc<SpanRules> {
        &self.rules
    }

    /// The trie it walks.
    #[inline]
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// The path of that trie.
    pub fn path(&self) -> &str {
        &self.rules.spans()[self.place.trie as usize].0
    }

    /// The position in that trie.
    pub fn cursor(&self) -> Cursor {
        self.place.cursor
    }

    /// Where it is in its life.
    #[inline]
    pub fn state(&self) -> State {
        self.state_at(self.trie.is_childless(self.place.cursor))
    }

    /// The state, given whether the position has no children.
    #[inline]
    fn state_at(&self, childless: bool) -> State {
        let place = &self.place;
        // A leaf that is no prefix of another is complete at once where no end token has to follow.
        let ends_by_itself = || childless && place.cursor.depth() > 0 && self.rules.end_tokens().is_empty();
        if place.idle {
            State::Idle
        } else if place.off_at.is_some() {
            State::Off
        } else if place.tail > 0 || ends_by_itself() {
            State::Complete
        } else {
            State::Active
        }
    }

    /// Whether a leaf ends here and may also go on, with no end token to tell: the whole row competes.
    pub fn is_open(&self) -> bool {
        matches!(self.allowed(), Allowed::Open { .. })
    }

    /// What may come next. Allocation-free, `O(1)` where no leaf is a prefix of another.
    #[inline]
    pub fn allowed(&self) -> Allowed<'_> {
        let tokens = self.trie.children(self.place.cursor);
        match self.state_at(tokens.is_empty()) {
            State::Idle | State::Off => Allowed::All,
            State::Complete if self.rules.after() == After::Free => Allowed::All,
            State::Complete => Allowed::Only { tokens: &[], ends: self.rules.stop_tokens() },
            State::Active if !tokens.is_empty() && !self.trie.is_inner_terminal(self.place.cursor) => {
                Allowed::Only { tokens, ends: &[] }
            }
            State::Active => match self.rules.end_tokens() {
                [] => Allowed::Open { children: tokens },
                ends => Allowed::Only { tokens, ends },
            },
        }
    }

    /// The tokens that must come next because exactly one is allowed at each step, up to the end of the span.
    pub fn forced(&self) -> SpanForced<'_> {
        SpanForced { span: self, at: (self.state() == State::Active).then_some(self.place.cursor) }
    }

    /// The leaf, once complete.
    pub fn leaf(&self) -> Option<Leaf> {
        if self.state() != State::Complete {
            return None;
        }
        self.trie().leaf_at(self.place.cursor).and_then(|leaf| self.trie().leaf(leaf))
    }

    /// Tokens walked from the root of the trie.
    pub fn depth(&self) -> usize {
        self.place.cursor.depth()
    }

    /// Tokens accepted since the span was armed, ignored and free ones included.
    pub fn accepted(&self) -> usize {
        self.place.ignored as usize + self.depth() + self.place.tail as usize
    }

    /// Takes a token.
    ///
    /// # Errors
    /// A token that is not allowed, or that the vocabulary does not have; the state is as before.
    pub fn accept(&mut self, token: TokenId) -> Result<(), SpanError> {
        let n_vocab = self.rules.n_vocab();
        if token.index() >= n_vocab {
            return Err(SpanError::OutsideVocabulary { token, n_vocab });
        }
        if self.take(token) {
            return Ok(());
        }
        let legal: Vec<TokenId> = self.allowed().iter().collect();
        Err(NotAllowed::new(token, self.accepted(), &legal).into())
    }

    /// Takes the token if it is allowed. Allocation-free.
    #[inline]
    fn take(&mut self, token: TokenId) -> bool {
        if self.state() == State::Active
            && let Some(child) = self.trie.step(self.place.cursor, token)
        {
            if !self.trie.is_tree() {
                self.way.push(self.place.cursor);
            }
            self.place.cursor = child;
            return true;
        }
        let allowed = self.allowed().contains(token);
        self.place.tail += u32::from(allowed);
        allowed
    }

    /// Takes all tokens or none.
    ///
    /// # Errors
    /// As [`Span::accept`], for the first token that fails.
    pub fn accept_all(&mut self, tokens: &[TokenId]) -> Result<(), SpanError> {
        let before = self.place;
        tokens.iter().try_for_each(|&token| self.accept(token)).inspect_err(|_| self.restore(before))
    }

    /// Takes a token from a host that cannot be refused, such as a C callback. Allocation-free.
    pub fn observe(&mut self, token: TokenId) -> Observed {
        if token.index() < self.rules.n_vocab() && self.take(token) {
            return Observed::Accepted;
        }
        if self.depth() == 0 && self.state() == State::Active {
            self.place.ignored += 1;
            if self.place.ignored < self.rules.patience() {
                return Observed::Ignored;
            }
        } else {
            self.place.tail += 1;
        }
        self.place.off_at = Some(self.accepted() as u32);
        Observed::TurnedOff
    }

    /// Takes back the last `n` accepted tokens. `O(n log nodes)`.
    ///
    /// # Errors
    /// More than [`Span::accepted`].
    pub fn rollback(&mut self, n: usize) -> Result<(), SpanError> {
        let accepted = self.accepted();
        if n > accepted {
            return Err(SpanError::RollbackTooFar { asked: n, accepted });
        }
        let from_tail = n.min(self.place.tail as usize);
        let from_walk = (n - from_tail).min(self.depth());
        self.place.tail -= from_tail as u32;
        self.place.cursor = self.back(from_walk);
        self.place.ignored -= (n - from_tail - from_walk) as u32;
        let accepted = self.accepted() as u32;
        self.place.off_at = self.place.off_at.filter(|&off_at| accepted >= off_at);
        Ok(())
    }

    /// The position so many tokens of the walk ago.
    fn back(&mut self, tokens: usize) -> Cursor {
        let Some(cursor) = self.trie.ancestor(self.place.cursor, tokens) else {
            let kept = self.way.len().saturating_sub(tokens);
            return self.way.drain(kept..).next().unwrap_or(Cursor::ROOT);
        };
        cursor
    }

    fn restore(&mut self, place: Place) {
        self.place = place;
        self.way.truncate(place.cursor.depth());
    }

    /// As after creation: armed at the root of the first trie.
    pub fn reset(&mut self) {
        self.arm(0);
    }

    fn arm(&mut self, trie: u32) {
        self.trie = self.rules.spans()[trie as usize].1.clone();
        self.restore(Place::armed(trie));
    }

    /// Arms the root of the trie with this path, whatever the state was.
    ///
    /// # Errors
    /// No trie has that path.
    pub fn activate(&mut self, path: &str) -> Result<(), SpanError> {
        let spans = self.rules.spans();
        let found = spans.iter().position(|(known, _)| known == path);
        let trie = found.ok_or_else(|| SpanError::UnknownPath {
            path: path.to_owned(),
            known: spans.iter().map(|(known, _)| known.clone()).collect(),
        })?;
        self.arm(trie as u32);
        Ok(())
    }

    /// Stops constraining until a path is activated or the span is reset.
    pub fn deactivate(&mut self) {
        self.restore(Place { idle: true, ..Place::armed(self.place.trie) });
    }
}

/// The forced run of a span: see [`Span::forced`].
#[derive(Debug, Clone)]
pub struct SpanForced<'a> {
    span: &'a Span,
    at: Option<Cursor>,
}

impl Iterator for SpanForced<'_> {
    type Item = TokenId;

    fn next(&mut self) -> Option<TokenId> {
        let at = self.at.take()?;
        let (trie, rules) = (self.span.trie(), &self.span.rules);
        let ends = match trie.is_terminal(at) {
            true if rules.end_tokens().is_empty() => return None,
            true => rules.end_tokens(),
            false => &[],
        };
        match (trie.children(at), ends) {
            (_, []) => {
                let (token, below) = trie.forced_child(at)?;
                self.at = Some(below);
                Some(token)
            }
            (&[child], &[end]) if child == end => {
                self.at = trie.step(at, child);
                Some(child)
            }
            ([], &[end]) => Some(end),
            _ => None,
        }
    }
}
