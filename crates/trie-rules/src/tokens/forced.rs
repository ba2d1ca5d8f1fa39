//! Forced text, in the tokenizer's own tokens (jump-forward).
//!
//! If the bytes of a text are forced, several tokenisations of it are legal, but models are trained on the tokenizer's
//! own. Only its certain tokens are forced: they end at the first place where a token could begin that continues beyond
//! the forced text, because the tokenizer might then split the text in another way.

use crate::rule::Rule;
use crate::tokens::spelling::Spelling;
use crate::tokens::token_bytes::TokenBytes;
use trie_core::TokenId;

/// Longer runs are written in parts.
const MOST_BYTES: usize = 512;

/// The first of the tokenizer's tokens of the text that must come after a state, if it is certain.
pub(crate) fn forced_token<R: Rule>(rule: &R, spelling: &Spelling, from: &R::State) -> Option<TokenId> {
    spelling.has_tokenizer().then_some(())?;
    let (bytes, after, cut) = forced_bytes(rule, from);
    spelling.certain_token(&bytes, cut, |rest| {
        let Some((first, others)) = rest.split_first() else { return false };
        let Some(state) = rule.step(&after, *first) else { return false };
        others.iter().try_fold(state, |state, &byte| rule.step(&state, byte)).is_some()
    })
}

impl Spelling {
    /// Returns whether there is a tokenizer.
    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer().is_some()
    }

    /// Returns the tokenizer's first token of these forced bytes, if it is the same for every continuation. `cut` says
    /// that more bytes are forced that the caller does not know. `goes_on` tells whether given bytes may follow the
    /// forced ones.
    pub fn certain_token(&self, bytes: &[u8], cut: bool, mut goes_on: impl FnMut(&[u8]) -> bool) -> Option<TokenId> {
        let mut goes_on = |rest: &[u8]| cut || goes_on(rest);
        if straddles(self.tokens(), bytes, 0, &mut goes_on) {
            return None;
        }
        match self.first_tokens(bytes, goes_on)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns the tokens with which the tokenizer may begin a text that begins with these bytes, except tokens longer
    /// than the bytes. The token for the bytes alone comes first, then those that some continuation may cause.
    /// `goes_on` tells whether given bytes may follow. `None` without a tokenizer, and for an incomplete character.
    pub fn first_tokens(&self, bytes: &[u8], mut goes_on: impl FnMut(&[u8]) -> bool) -> Option<Vec<TokenId>> {
        let tokenizer = self.tokenizer()?;
        // A character that is only begun is in no text.
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let first = |text: &str| {
            let tokens = tokenizer(text).filter(|_| !text.is_empty())?;
            tokens.first().is_some_and(|&first| !self.tokens().bytes(first).is_empty()).then_some(tokens)
        };
        let own = first(whole)?;
        let mut firsts = vec![own[0]];
        let mut ends = own.iter().scan(0, |end, &token| {
            *end += self.tokens().bytes(token).len();
            Some(*end)
        });
        let mut end = ends.next();
        // Where a token begins that goes on behind, what is before it is tokenised alone. Between the tokenizer's own
        // tokens that changes nothing.
        for place in 1..whole.len() {
            while end.is_some_and(|end| end < place) {
                end = ends.next();
            }
            let is_near = bytes.len() - place < self.tokens().longest();
            if end == Some(place) || !is_near || !straddles(self.tokens(), bytes, place, &mut goes_on) {
                continue;
            }
            let before = first(whole.get(..place)?)?[0];
            if !firsts.contains(&before) {
                firsts.push(before);
            }
        }
        Some(firsts)
    }
}

/// Returns whether a token that begins at this place may extend beyond the bytes.
fn straddles(tokens: &TokenBytes, bytes: &[u8], place: usize, mut goes_on: impl FnMut(&[u8]) -> bool) -> bool {
    let begun = &bytes[place..];
    tokens.longer_than(begun).any(|token| goes_on(&tokens.bytes(token)[begun.len()..]))
}

/// The bytes that must come, the state after them, and whether there are more than were asked for.
fn forced_bytes<R: Rule>(rule: &R, from: &R::State) -> (Vec<u8>, R::State, bool) {
    let (mut bytes, mut state) = (Vec::new(), from.clone());
    while bytes.len() < MOST_BYTES && !rule.is_end(&state) {
        let mut ways = (0..=255u8).filter_map(|byte| Some((byte, rule.step(&state, byte)?)));
        let (Some((byte, next)), None) = (ways.next(), ways.next()) else { return (bytes, state, false) };
        drop(ways);
        bytes.push(byte);
        state = next;
    }
    let cut = bytes.len() == MOST_BYTES;
    (bytes, state, cut)
}
