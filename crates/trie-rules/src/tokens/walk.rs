//! Tokens that continue from a state: one scan over the tokens in the order of their bytes.

use crate::rule::Rule;
use crate::tokens::order::TokenTree;
use crate::tokens::token_bytes::TokenBytes;
use std::ops::Range;
use trie_core::TokenId;
use trie_core::work::spend;

/// States on the way to a token, one for each byte. Kept for its memory.
#[derive(Debug)]
pub(crate) struct Path<S>(Vec<S>);

impl<S> Default for Path<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Gives `each` every token of some nodes that goes on from a state, with the state after it, in the order of their
/// bytes. `O(bytes)` of the tokens whose beginnings are legal; what shares an illegal beginning is jumped over.
pub(crate) fn tokens_from<S>(
    mut step: impl FnMut(&S, u8) -> Option<S>,
    (order, nodes): (&TokenTree, Range<usize>),
    from: &S,
    path: &mut Path<S>,
    mut each: impl FnMut(TokenId, &S),
) {
    // `states[n]` is the state after n + 1 bytes.
    let states = &mut path.0;
    states.clear();
    let mut at = nodes.start;
    let within = &order.nodes()[..nodes.end];
    while let Some(&node) = within.get(at) {
        // Who asks sees that by itself, and what was found counts for nothing.
        if spend(1).is_err() {
            return;
        }
        states.truncate(node.depth());
        let Some(after) = step(states.last().unwrap_or(from), node.byte()) else {
            at = node.subtree_end();
            continue;
        };
        order.ending(at..at + 1).iter().for_each(|&token| each(token, &after));
        states.push(after);
        at += 1;
    }
}

/// The state after all bytes of a token.
pub(crate) fn step_token<R: Rule>(rule: &R, tokens: &TokenBytes, from: &R::State, token: TokenId) -> Option<R::State> {
    let bytes = tokens.bytes(token);
    if bytes.is_empty() { None } else { rule.steps(from, bytes) }
}
