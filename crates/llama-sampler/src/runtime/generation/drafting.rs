//! Drafts of a generation: guesses, their verification, and what became of them.
//!
//! A generation asks for the row after its text. Its draft is a tree of tokens behind that text, whose rows come with
//! the same pass. Each of these rows is the row after some tokens. It is given to the generation if the generation,
//! after all that it did with the rows before, asks for the row after exactly these tokens, and is dropped otherwise.
//! Nothing else decides about acceptance, so the constraint, the draw, stops, streams and limits see one token after
//! the other, as they do without a draft.

use crate::runtime::draft::{Ahead, Draft, Length, Proposer};
use crate::runtime::error::RuntimeError;
use trie_core::{TokenId, TokenTree};

pub(super) struct Drafting {
    proposer: Box<dyn Proposer>,
    length: Length,
    /// The last draft; without nodes where there is none. It always wants its root. Its first path is the likeliest.
    pub(super) tree: TokenTree,
    /// For each token of the tree, whether no other could come.
    forced: Vec<bool>,
    /// The guesses for positions of the tree, also those that it does not have.
    positions: Vec<GuessedPosition>,
    /// Number of tokens before the tree.
    base: usize,
    /// True if the generation wants another row; `None` unless it went on inside a batch.
    pub(super) went_on: Option<bool>,
    /// True if the generation was stopped between two tokens of a draft.
    pub(super) is_stopped: bool,
    tokens: Vec<TokenId>,
}

/// A position of a draft for which the source had guesses.
struct GuessedPosition {
    /// The node before it.
    after: Option<usize>,
    /// The legal guesses, the best first.
    guesses: Vec<TokenId>,
}

/// The growth of one draft.
struct Growth<'g> {
    proposer: &'g mut dyn Proposer,
    length: &'g Length,
    ahead: &'g mut dyn Ahead,
    stop: &'g mut dyn FnMut() -> bool,
    /// Most guesses of the source for one position; 0 in a pause.
    width: usize,
    /// Guesses, and tokens of a path, for which there is room.
    guesses: usize,
    end: usize,
    /// The text and the path to the last node.
    tokens: Vec<TokenId>,
    base: usize,
    nodes: Vec<DraftedToken>,
    positions: Vec<GuessedPosition>,
}

struct DraftedToken {
    /// Tokens between the text and this one.
    depth: usize,
    token: TokenId,
    forced: bool,
}

impl Growth<'_> {
    fn push(&mut self, token: TokenId, forced: bool) {
        self.nodes.push(DraftedToken { depth: self.tokens.len() - self.base, token, forced });
        self.tokens.push(token);
    }

    /// Adds the tokens that must come here, and returns how many there are.
    fn push_forced(&mut self) -> usize {
        let before = self.tokens.len();
        while self.tokens.len() < self.end
            && let Some(token) = self.ahead.forced()
            && self.ahead.accept(token)
        {
            self.push(token, true);
        }
        self.tokens.len() - before
    }

    /// Adds what may follow a path that is right with this probability. The first path is as long as its guesses pay
    /// off; a branch must pay for its forced tokens, too.
    fn grow(&mut self, probability: f32, is_first: bool) -> Result<(), RuntimeError> {
        let is_root = self.tokens.len() == self.base;
        if self.guesses == 0 || self.tokens.len() >= self.end {
            return Ok(());
        }
        let mut guesses = Vec::new();
        if self.width > 0 && (is_root || self.length.pays(probability * self.length.share(0), 0)) {
            guesses = self.proposer.guess(&self.tokens, self.width, &mut *self.ahead, &mut *self.stop)?;
        }
        // The other tokens are as probable as all guesses are wrong.
        let most = self.length.width();
        let mut legal = Vec::new();
        if most > 1 && self.length.pays(probability, 0) {
            legal = self.ahead.list_few(most);
            legal.retain(|token| !guesses.contains(token));
        }
        let (after, len) = (self.nodes.len().checked_sub(1), self.tokens.len());
        let of_source = guesses.len();
        let (mut ranked, mut left, mut is_first) = (Vec::new(), 1.0_f32, is_first);
        for (index, &token) in guesses.iter().chain(&legal).enumerate() {
            let share =
                if index < of_source { self.length.share(ranked.len()) } else { left.max(0.0) / legal.len() as f32 };
            let is_last = index + 1 == of_source + legal.len();
            if !is_last {
                self.ahead.note();
            }
            // An illegal guess is cut here, and never decoded.
            if self.ahead.accept(token) {
                let is_probe = is_root && index < of_source && ranked.is_empty();
                if index < of_source {
                    ranked.push(token);
                    left -= share;
                }
                let probability = probability * share;
                if self.guesses > 0 && (is_probe || self.length.pays(probability, 0)) {
                    let begun = self.nodes.len();
                    self.push(token, false);
                    let forced = self.push_forced();
                    if is_first || self.length.pays(probability, forced) {
                        self.guesses -= 1;
                        self.grow(probability, is_first)?;
                        is_first = false;
                    } else {
                        self.nodes.truncate(begun);
                    }
                    self.tokens.truncate(len);
                }
            }
            if !is_last {
                self.ahead.go_back();
            }
        }
        if !ranked.is_empty() {
            self.positions.push(GuessedPosition { after, guesses: ranked });
        }
        Ok(())
    }
}

impl Drafting {
    pub(super) fn new(draft: &Draft) -> Self {
        Self::with_proposer(draft.proposer(), draft.length())
    }

    pub(super) fn with_proposer(proposer: Box<dyn Proposer>, length: Length) -> Self {
        Self {
            proposer,
            length,
            tree: TokenTree::root(),
            forced: Vec::new(),
            positions: Vec::new(),
            base: 0,
            went_on: None,
            is_stopped: false,
            tokens: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.tree = TokenTree::root();
        self.forced.clear();
        self.positions.clear();
    }

    /// Guesses what comes after this text: paths of at most `most` tokens.
    pub(super) fn propose(
        &mut self,
        text: &[TokenId],
        most: usize,
        ahead: &mut dyn Ahead,
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), RuntimeError> {
        self.clear();
        self.base = text.len();
        self.proposer.learn(text);
        let width = self.length.begin();
        if most == 0 || width == 0 && self.length.width() == 1 {
            return Ok(());
        }
        self.tokens.clear();
        self.tokens.extend_from_slice(text);
        let mut growth = Growth {
            proposer: &mut *self.proposer,
            length: &self.length,
            ahead,
            stop,
            width,
            guesses: Length::MOST,
            end: text.len() + most,
            tokens: std::mem::take(&mut self.tokens),
            base: text.len(),
            nodes: Vec::new(),
            positions: Vec::new(),
        };
        growth.push_forced();
        let grown = growth.grow(1.0, true);
        let Growth { tokens, nodes, positions, .. } = growth;
        (self.tokens, self.positions) = (tokens, positions);
        grown?;
        if nodes.iter().all(|node| node.forced) {
            return Ok(());
        }
        for (index, node) in nodes.iter().enumerate() {
            // No row is needed where the next token is certain.
            let is_certain = nodes.get(index + 1).is_some_and(|next| next.forced && next.depth > node.depth);
            self.tree.push(node.depth, node.token, !is_certain);
            self.forced.push(node.forced);
        }
        Ok(())
    }

    /// Returns whether a text is what the draft says up to a token of it.
    pub(super) fn agrees(&self, text: &[TokenId], node: usize) -> bool {
        let nodes = self.tree.nodes();
        let upwards = self.tree.upwards(node).map(|node| nodes[node].token);
        text.len() == self.base + nodes[node].depth && upwards.eq(text[self.base..].iter().rev().copied())
    }

    /// Notes what became of the draft, and returns how many tokens were guessed and how many of these were right.
    pub(super) fn record(&mut self, text: &[TokenId]) -> (usize, usize) {
        let nodes = self.tree.nodes();
        if nodes.is_empty() {
            return (0, 0);
        }
        let (mut reached, mut after) = (Vec::new(), None);
        for &token in text.get(self.base..).unwrap_or_default() {
            if let Some(position) = self.positions.iter().find(|position| position.after == after) {
                let right = position.guesses.iter().position(|&guess| guess == token);
                reached.push((position.guesses.len(), right));
            }
            let next = nodes.iter().position(|node| node.parent == after && node.token == token);
            if next.is_none() {
                break;
            }
            after = next;
        }
        if !self.positions.is_empty() {
            self.length.record(reached);
        }
        let guessed = |&node: &usize| !self.forced[node];
        let drafted = (0..nodes.len()).filter(guessed).count();
        let accepted = after.map_or(0, |last| self.tree.upwards(last).filter(guessed).count());
        (drafted, accepted)
    }
}
