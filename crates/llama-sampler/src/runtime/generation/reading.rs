//! Log-probabilities of the tokens of a prompt, each given the tokens before it.

use super::likely::Likely;
use crate::runtime::context::{fits, not_empty};
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::{TokenLogprob, Watch};
use trie_core::{Allowed, DecodeCost, Host, Job, TokenId, TokenTree, WantedRows};

/// A prompt that is read for the probabilities of its tokens, in as few passes as their rows fit into.
#[derive(Debug)]
pub struct ReadingTask<W> {
    tokens: Vec<TokenId>,
    /// The tokens behind the first, each of which wants its row, but for the last.
    tree: TokenTree,
    likely: Likely,
    /// Number of tokens whose log-probability is known.
    known: usize,
    watch: W,
}

impl<W: Watch> ReadingTask<W> {
    /// Builds the task. `top` is the number of most probable tokens to report beside each token.
    ///
    /// # Errors
    /// No tokens, or more than there is room for.
    pub fn new(host: Host, tokens: &[TokenId], top: u32, watch: W) -> Result<Self, RuntimeError> {
        not_empty(tokens)?;
        fits(0, tokens.len(), host.room)?;
        let mut tree = TokenTree::root();
        for (depth, &token) in tokens[1..].iter().rev().skip(1).rev().enumerate() {
            tree.push(depth, token, true);
        }
        Ok(Self { tokens: tokens.to_vec(), tree, likely: Likely::new(top), known: 0, watch })
    }

    /// Returns the log-probability of each token but the first, which has no token before it.
    pub fn finish(self) -> Vec<TokenLogprob> {
        self.likely.finish()
    }
}

impl<W: Watch> Task for ReadingTask<W> {
    fn stop(&mut self) -> bool {
        self.watch.stop()
    }
}

impl<W: Watch> Job for ReadingTask<W> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        Ok(self.known + 1 < self.tokens.len())
    }

    fn want(&self) -> WantedRows<'_> {
        WantedRows { prompt: &self.tokens[..1], branches: &[], tree: &self.tree, is_draft: false }
    }

    fn take(&mut self, _: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.known += 1;
        self.likely.consider(row, &Allowed::All);
        self.likely.write(self.tokens[self.known], true);
        Ok(())
    }

    fn finish_batch(&mut self, _: DecodeCost) {}
}
