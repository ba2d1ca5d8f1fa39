//! Free text: strings that are constrained only in their length. Their allowed tokens are the same under all schemas.

use super::escape::TextAt;
use super::walk::{Rests, ValueTokens};
use crate::shape::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use trie_core::TokenId;
use trie_rules::{Legal, TextMachine, TextSet, TokenBytes};

/// Findings that are kept at most: of a vocabulary of 150,000 tokens each takes 20 kB.
const MOST_KNOWN: usize = 256;
/// Stands for a token that never comes in text.
const NEVER: u32 = u32::MAX;

/// The tokens of a vocabulary as free text takes them, from between two characters on.
pub(super) struct FreeText {
    /// Number of characters that each token begins, if all of it is text.
    begun: Vec<u32>,
    /// Tokens whose last byte is the quote that ends the text, with the characters before it.
    closing: Vec<(u32, TokenId)>,
    /// Tokens that go on behind the quote, with the characters before it and how many bytes go on.
    crossing: Vec<(u32, TokenId, usize)>,
    /// By how many characters must and may come.
    known: Mutex<HashMap<(u32, u32), Arc<ValueTokens>>>,
    longest: u32,
}

/// Returns whether something of a document may follow a string or a number: blanks, then a comma, a colon or a bracket.
pub(super) fn may_follow(rest: &[u8]) -> bool {
    let behind = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'));
    behind.is_none_or(|byte| matches!(byte, b',' | b':' | b']' | b'}'))
}

impl FreeText {
    /// Builds the tables of a vocabulary; `escapes` says whether any character may be written as an escape.
    pub(super) fn new(tokens: &TokenBytes, escapes: bool) -> Option<Self> {
        let machine = TextMachine::new(&TextSet::full(), 0, None)?;
        let mut made = Self {
            begun: vec![NEVER; tokens.n_vocab()],
            closing: Vec::new(),
            crossing: Vec::new(),
            known: Mutex::default(),
            longest: tokens.longest() as u32,
        };
        for &token in tokens.tree().tokens() {
            let bytes = tokens.bytes(token);
            let is_plain = bytes.iter().all(|&byte| byte >= b' ' && byte != b'"' && byte != b'\\');
            if let (true, Ok(text)) = (is_plain, std::str::from_utf8(bytes)) {
                made.begun[token.index()] = text.chars().count() as u32;
                continue;
            }
            made.read(&machine, escapes, token, bytes);
        }
        Some(made)
    }

    fn read(&mut self, machine: &TextMachine, escapes: bool, token: TokenId, bytes: &[u8]) {
        let (mut at, mut chars) = (TextAt::start(machine), 0);
        for (place, &byte) in bytes.iter().enumerate() {
            if byte == b'"' && at.is_between() {
                let rest = &bytes[place + 1..];
                if rest.is_empty() {
                    self.closing.push((chars, token));
                } else if may_follow(rest) {
                    self.crossing.push((chars, token, rest.len()));
                }
                return;
            }
            let Some((next, _)) = at.step(machine, escapes, byte) else { return };
            chars += u32::from(at.is_between());
            at = next;
        }
        self.begun[token.index()] = chars;
    }

    /// The tokens that may come where so many characters must and may come before the quote.
    pub(super) fn found(&self, tokens: &TokenBytes, (least, most): (u32, Option<u32>)) -> Arc<ValueTokens> {
        // No token tells more of them apart.
        let least = least.min(self.longest + 1);
        let most = most.filter(|&most| most < self.longest).unwrap_or(NEVER - 1);
        if let Some(known) = lock(&self.known).get(&(least, most)) {
            return Arc::clone(known);
        }
        let may_close = |chars: u32| (least..=most).contains(&chars);
        let mut words = vec![0; tokens.n_vocab().div_ceil(32)];
        for (at, chunk) in self.begun.chunks(32).enumerate() {
            words[at] = chunk.iter().rev().fold(0, |word, &begun| word << 1 | u32::from(begun <= most));
        }
        for &(_, token) in self.closing.iter().filter(|(chars, _)| may_close(*chars)) {
            words[token.index() / 32] |= 1 << (token.index() % 32);
        }
        let all_cross = self.crossing.iter().all(|&(chars, ..)| may_close(chars));
        let rests = if all_cross && (least, most) != (0, NEVER - 1) {
            self.found(tokens, (0, None)).rests.clone()
        } else {
            let crossing = self.crossing.iter().filter(|&&(chars, ..)| may_close(chars));
            let rest = |&(_, token, length): &(u32, TokenId, usize)| {
                let bytes = tokens.bytes(token);
                (&bytes[bytes.len() - length..], token)
            };
            Rests::of(crossing.map(rest).collect()).into_iter().collect()
        };
        let found = Arc::new(ValueTokens::new(Legal::from_mask(&words), rests));
        let mut known = lock(&self.known);
        if known.len() >= MOST_KNOWN {
            known.retain(|chars, _| *chars == (0, NEVER - 1));
        }
        known.insert((least, most), Arc::clone(&found));
        drop(known);
        found
    }
}
