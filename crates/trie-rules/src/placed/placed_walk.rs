//! Tokens of a rule between two texts: the rule's own way to those inside it, and a scan of those that may cross its
//! end.

use crate::placed::{At, Between};
use crate::rule::{Rule, Walker};
use crate::tokens::order::{Order, common};
use crate::tokens::token_bytes::TokenBytes;
use crate::tokens::walk::{Path, tokens_from};
use std::ops::Range;
use std::sync::Arc;
use trie_core::TokenId;

#[derive(Debug)]
pub(crate) struct BetweenWalk<R: Rule> {
    between: Between<R>,
    inside: Arc<dyn Walker<R::State>>,
    tokens: Arc<TokenBytes>,
    /// The tokens with the first byte of a text that stands behind: no other can cross the end of the rule's text.
    crossing: Order,
}

impl<R: Rule> BetweenWalk<R> {
    pub(crate) fn new(between: Between<R>, inside: Arc<dyn Walker<R::State>>, tokens: Arc<TokenBytes>) -> Self {
        let mut before: &[u8] = &[];
        let crossing = Order::new(tokens.order().tokens().iter().filter_map(|&token| {
            let bytes = tokens.bytes(token);
            let shared = common(bytes, before);
            between.may_cross(bytes).then_some(())?;
            before = bytes;
            Some((bytes, shared, token))
        }));
        Self { between, inside, tokens, crossing }
    }

    fn scan(&self, tokens: (&Order, Range<usize>), state: &At<R::State>, words: &mut [u32]) {
        let step = |state: &At<R::State>, byte| self.between.step(state, byte);
        tokens_from(step, tokens, state, &mut Path::default(), |token, _| set(words, token));
    }
}

fn set(words: &mut [u32], token: TokenId) {
    words[token.index() / 32] |= 1 << (token.index() % 32);
}

impl<R: Rule> Walker<At<R::State>> for BetweenWalk<R> {
    fn tokens(&self, state: &At<R::State>, words: &mut [u32]) {
        match state {
            // Nothing of what stands behind is written yet.
            At::Inside { rule: Some(rule), behind } if self.between.is_inside(*behind) => {
                self.inside.tokens(rule, words);
                for token in self.crossing.tokens() {
                    words[token.index() / 32] &= !(1 << (token.index() % 32));
                }
                self.scan((&self.crossing, 0..self.crossing.nodes().len()), state, words);
            }
            _ => self.scan(self.tokens.all(), state, words),
        }
    }

    fn nbytes(&self) -> usize {
        self.inside.nbytes() + self.crossing.nbytes()
    }

    fn limit(&self, bytes: usize) {
        self.inside.limit(bytes);
    }
}
