//! The tokens that may come in free text: nearly all, found without a state of the whole machine for each byte.

use super::rule::ReplyRule;
use crate::machine::{FreeText, State};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use trie_core::TokenId;
use trie_rules::{Rule, TokenBytes, Walker};

/// Walks a vocabulary from a state of free text.
pub(super) struct TextWalker {
    rule: ReplyRule,
    tokens: Arc<TokenBytes>,
    /// What may come where nothing is begun, by where that is.
    plain: Mutex<HashMap<FreeText, Arc<[u32]>>>,
}

/// A state on the way through a token.
#[derive(Clone)]
enum At {
    Text(FreeText),
    Other(Box<State>),
}

impl fmt::Debug for TextWalker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TextWalker")
    }
}

impl TextWalker {
    pub(super) fn new(rule: ReplyRule, tokens: Arc<TokenBytes>) -> Self {
        Self { rule, tokens, plain: Mutex::default() }
    }

    fn step(&self, at: &At, byte: u8) -> Option<At> {
        let machine = &self.rule.machine;
        let state = match at {
            At::Text(text) => match machine.step_text(*text, byte) {
                Some(text) => return Some(At::Text(text)),
                None => machine.state_of(*text),
            },
            At::Other(state) => (**state).clone(),
        };
        let state = self.rule.step(&state, byte)?;
        Some(machine.text_of(&state).map_or_else(|| At::Other(Box::new(state)), At::Text))
    }

    fn walked(&self, from: &At, wanted: impl Fn(u8) -> bool, words: &mut [u32]) {
        // The first byte decides whether a token is looked at.
        let step = |(at, begun): &(At, bool), byte: u8| {
            if *begun || wanted(byte) { Some((self.step(at, byte)?, true)) } else { None }
        };
        self.tokens.walk(&(from.clone(), false), step, |token| set(words, token, true));
    }

    /// Where nothing is begun.
    fn plain(&self, at: FreeText, n_words: usize) -> Arc<[u32]> {
        let mut kept = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        let made = kept.entry(at).or_insert_with(|| {
            let mut words = vec![0; n_words];
            self.walked(&At::Text(at), |_| true, &mut words);
            words.into()
        });
        Arc::clone(made)
    }
}

fn set(words: &mut [u32], token: TokenId, bit: bool) {
    let (word, mask) = (token.index() / 32, 1 << (token.index() % 32));
    if bit { words[word] |= mask } else { words[word] &= !mask }
}

impl Walker<State> for TextWalker {
    fn tokens(&self, state: &State, words: &mut [u32]) {
        let machine = &self.rule.machine;
        let Some(text) = machine.text_of(state) else {
            return self.walked(&At::Other(Box::new(state.clone())), |_| true, words);
        };
        let start = text.at_start();
        words.copy_from_slice(&self.plain(start, words.len()));
        if text == start {
            return;
        }
        // Where a marker is begun, only tokens that go on with it differ.
        let differs: Vec<bool> =
            (0..=255).map(|byte| machine.step_text(text, byte) != machine.step_text(start, byte)).collect();
        let differs = |byte: u8| differs[usize::from(byte)] || machine.step_text(text, byte).is_none();
        let under = |begun: &bool, byte: u8| (*begun || differs(byte)).then_some(true);
        self.tokens.walk(&false, under, |token| set(words, token, false));
        self.walked(&At::Text(text), differs, words);
    }

    fn nbytes(&self) -> usize {
        let kept = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        kept.values().map(|words| size_of_val(&**words)).sum()
    }
}
