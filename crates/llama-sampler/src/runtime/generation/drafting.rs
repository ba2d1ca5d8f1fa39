//! Drafts of a generation: guesses, their verification, and what became of them.
//!
//! A generation asks for the row after its text. Its draft is a path of tokens behind that text, whose rows come with
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
    /// The path of the last draft; without nodes where there is none. It always wants its root.
    pub(super) path: TokenTree,
    /// For each token of the path, whether no other could come.
    forced: Vec<bool>,
    /// Number of tokens before the path.
    base: usize,
    /// True if the generation wants another row; `None` unless it went on inside a batch.
    pub(super) went_on: Option<bool>,
    /// True if the generation was stopped between two tokens of a draft.
    pub(super) is_stopped: bool,
    tokens: Vec<TokenId>,
}

impl Drafting {
    pub(super) fn new(draft: &Draft) -> Self {
        Self::with_proposer(draft.proposer(), draft.length())
    }

    pub(super) fn with_proposer(proposer: Box<dyn Proposer>, length: Length) -> Self {
        Self {
            proposer,
            length,
            path: TokenTree::root(),
            forced: Vec::new(),
            base: 0,
            went_on: None,
            is_stopped: false,
            tokens: Vec::new(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.path = TokenTree::root();
        self.forced.clear();
    }

    /// Guesses what comes after this text: at most `most` tokens.
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
        let mut guesses = self.length.next();
        if guesses == 0 || most == 0 {
            return Ok(());
        }
        self.tokens.clear();
        self.tokens.extend_from_slice(text);
        while self.forced.len() < most {
            let forced = ahead.forced();
            let guess = match forced {
                Some(token) => Some(token),
                None if guesses == 0 => None,
                None => self.proposer.next(&self.tokens, ahead, stop)?,
            };
            // An illegal guess is cut here, and never decoded.
            let Some(token) = guess.filter(|&token| ahead.accept(token)) else { break };
            guesses -= usize::from(forced.is_none());
            self.tokens.push(token);
            self.forced.push(forced.is_some());
        }
        if self.forced.iter().all(|&forced| forced) {
            self.forced.clear();
        }
        for (depth, &token) in self.tokens[self.base..].iter().take(self.forced.len()).enumerate() {
            // No row is needed where the next token is certain.
            let wanted = self.forced.get(depth + 1) != Some(&true);
            self.path.push(depth, token, wanted);
        }
        Ok(())
    }

    /// Returns whether a text is what the draft says up to a token of it.
    pub(super) fn agrees(&self, text: &[TokenId], node: usize) -> bool {
        let path = self.path.nodes().iter().map(|node| node.token);
        text.len() == self.base + node + 1 && text[self.base..].iter().copied().eq(path.take(node + 1))
    }

    /// Notes what became of the draft, and returns how many tokens were guessed and how many of these were right.
    pub(super) fn record(&mut self, text: &[TokenId]) -> (usize, usize) {
        let drafted = self.forced.iter().filter(|&&forced| !forced).count();
        if drafted == 0 {
            return (0, 0);
        }
        let written = text.get(self.base..).unwrap_or_default();
        let path = self.path.nodes().iter().zip(written).zip(&self.forced);
        let right = path.take_while(|((node, token), _)| node.token == **token);
        let accepted = right.filter(|&(_, forced)| !forced).count();
        self.length.record(drafted, accepted);
        (drafted, accepted)
    }
}
