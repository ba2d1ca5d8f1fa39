//! Text that must come, in the tokenizer's own tokens.
//!
//! Where the bytes of a text are forced, several tokenisations of it are legal, and the tokenizer's own is what a model
//! was trained on. What is written of it ends where another token could begin that goes on into what is not forced:
//! the tokenizer might have taken that one.

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
    spelling.certain_token(&bytes, cut, &mut |rest| {
        let Some((first, others)) = rest.split_first() else { return false };
        let Some(state) = rule.step(&after, *first) else { return false };
        others.iter().try_fold(state, |state, &byte| rule.step(&state, byte)).is_some()
    })
}

impl Spelling {
    /// Whether there is a tokenizer.
    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer().is_some()
    }

    /// The first of the tokenizer's tokens of bytes that must come, where no token can come that goes on from them into
    /// what follows. `cut`: whether more bytes must come that are not known. `goes_on`: whether bytes may come
    /// after those that must.
    pub fn certain_token(&self, bytes: &[u8], cut: bool, goes_on: &mut dyn FnMut(&[u8]) -> bool) -> Option<TokenId> {
        let tokenizer = self.tokenizer()?;
        // A character that is only begun is in no text.
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
        };
        let first = *tokenizer(whole).filter(|_| !whole.is_empty())?.first()?;
        let length = self.tokens().bytes(first).len();
        (length > 0 && length <= certain(self.tokens(), bytes, cut, goes_on)).then_some(first)
    }
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

/// How many of the bytes come before any place where a token begins that goes on behind them.
fn certain(tokens: &TokenBytes, bytes: &[u8], cut: bool, goes_on: &mut dyn FnMut(&[u8]) -> bool) -> usize {
    let from = bytes.len().saturating_sub(tokens.longest());
    if cut {
        return from;
    }
    let mut straddles = |&place: &usize| {
        let begun = &bytes[place..];
        tokens.longer_than(begun).any(|token| goes_on(&tokens.bytes(token)[begun.len()..]))
    };
    (from..bytes.len()).find(&mut straddles).unwrap_or(bytes.len())
}
