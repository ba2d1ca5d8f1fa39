//! Which tokens go on from a state: one scan over the tokens in the order of their bytes.

use crate::rule::Rule;
use crate::token_bytes::TokenBytes;
use trie_core::TokenId;

/// States on the way to a token, one for each byte. Kept for its memory.
#[derive(Debug)]
pub(crate) struct Path<S>(Vec<S>);

impl<S> Default for Path<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Gives `each` every token that goes on from a state, with the state after it, in the order of their bytes.
/// `O(bytes)` of the tokens whose beginnings are legal; what shares an illegal beginning is skipped.
pub(crate) fn tokens_from<S>(
    mut step: impl FnMut(&S, u8) -> Option<S>,
    tokens: &TokenBytes,
    from: &S,
    path: &mut Path<S>,
    mut each: impl FnMut(TokenId, &S),
) {
    let states = &mut path.0;
    for byte in 0..=255u8 {
        let places = tokens.beginning_with(byte);
        if places.is_empty() {
            continue;
        }
        let Some(after) = step(from, byte) else { continue };
        // `states[n]` is the state after n + 1 bytes.
        states.clear();
        states.push(after);
        let mut place = places.start;
        while place < places.end {
            let (shared, rest) = tokens.rest(place);
            // The first token of the range shares nothing with the one before, and its first byte is walked.
            let (known, rest) = if place == places.start { (1, &rest[1..]) } else { (shared, rest) };
            states.truncate(known);
            let mut legal = true;
            for &byte in rest {
                let next = states.last().and_then(|state| step(state, byte));
                let Some(next) = next else {
                    legal = false;
                    break;
                };
                states.push(next);
            }
            place += 1;
            if let (true, Some(state)) = (legal, states.last()) {
                each(tokens.token(place - 1), state);
            } else {
                // Whatever shares the byte that was refused is refused.
                place = tokens.skip(place, places.end, states.len());
            }
        }
    }
}

/// The state after all bytes of a token.
pub(crate) fn step_token<R: Rule>(rule: &R, tokens: &TokenBytes, from: &R::State, token: TokenId) -> Option<R::State> {
    let (first, rest) = tokens.bytes(token).split_first()?;
    rest.iter().try_fold(rule.step(from, *first)?, |state, &byte| rule.step(&state, byte))
}
