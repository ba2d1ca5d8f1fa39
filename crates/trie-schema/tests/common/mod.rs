//! A small vocabulary with odd entries, and walks through a constraint.
#![allow(dead_code, unreachable_pub)]

use std::sync::Arc;
use trie_core::{Constraint, Ending, Scratch, TokenId};
use trie_rules::TokenBytes;
use trie_schema::{SchemaOptions, Whitespace};

pub fn id(n: usize) -> TokenId {
    TokenId::new(n as u32).unwrap()
}

/// Options that allow any whitespace.
pub fn spaced() -> SchemaOptions {
    let mut options = SchemaOptions::default();
    options.whitespace = Whitespace::Any;
    options
}

/// Every byte, pieces of JSON and words, some twice, some very long, some no text at all.
pub fn pieces() -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = (0..=255u8).map(|byte| vec![byte]).collect();
    let words = [
        "{\"",
        "\":",
        "\": \"",
        "\":\"",
        "\",\"",
        "\", \"",
        "\"}",
        "\"]",
        "[\"",
        "]}",
        "}}",
        "},{",
        "[]",
        "{}",
        "[[",
        "[{",
        "null",
        "true",
        "false",
        "tru",
        "als",
        "nu",
        "ab",
        "abc",
        "bc",
        "name",
        "na",
        "\"a\"",
        "\"b\":",
        "a\",\"",
        "12",
        "1,",
        "0,1",
        "-1",
        "10",
        "1]",
        "2}",
        ".5",
        "1.5",
        "1e",
        "\\u00",
        "\\\"",
        "\\n",
        "é",
        "  ",
        "\n\t",
        " \"",
        ", ",
        ": ",
        "red",
        "ed\"",
        "red\",",
        "\",\"gre",
        "\":\"red\"}",
        "en\"",
        "ab",
        "{\"",
        "日本",
    ];
    pieces.extend(words.iter().map(|word| word.as_bytes().to_vec()));
    pieces.push([b" ".repeat(1100).as_slice(), b"1"].concat());
    pieces.push(b"\xff[7]".to_vec());
    // A special token, which is no text.
    pieces.push(Vec::new());
    pieces
}

pub fn vocab() -> Arc<TokenBytes> {
    static VOCAB: std::sync::OnceLock<Arc<TokenBytes>> = std::sync::OnceLock::new();
    let make = || {
        let pieces = pieces();
        let text = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
        Arc::new(TokenBytes::new(pieces.len(), text.map(|(n, piece)| (piece.as_slice(), id(n)))).unwrap())
    };
    Arc::clone(VOCAB.get_or_init(make))
}

/// Numbers that look random and are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end
    }
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The text cut into tokens at random.
pub fn cut(text: &[u8], tokens: &TokenBytes, random: &mut Random) -> Vec<TokenId> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let fits = TokenId::all(tokens.n_vocab())
            .filter(|&token| !tokens.bytes(token).is_empty() && text[at..].starts_with(tokens.bytes(token)));
        let fits: Vec<TokenId> = fits.collect();
        let token = *random.one(&fits);
        at += tokens.bytes(token).len();
        found.push(token);
    }
    found
}

/// The state after these tokens.
pub fn walk<C: Constraint>(constraint: &C, tokens: &[TokenId]) -> Option<C::State> {
    let mut at = constraint.start();
    tokens.iter().all(|&token| constraint.advance(&mut at, token).is_some()).then_some(at)
}

/// The state after a text, byte by byte.
pub fn after<C: Constraint>(constraint: &C, text: &str) -> Option<C::State> {
    walk(constraint, &text.bytes().map(|byte| id(usize::from(byte))).collect::<Vec<_>>())
}

/// Whether a text is allowed as a whole.
pub fn allows<C: Constraint>(constraint: &C, text: &str) -> bool {
    after(constraint, text).is_some_and(|at| constraint.ending(&at) != Ending::No)
}

pub fn legal<C: Constraint>(constraint: &C, at: &C::State) -> (Vec<TokenId>, Ending) {
    let mut scratch = Scratch::default();
    let next = constraint.next(at, &mut scratch);
    (next.tokens.iter().collect(), next.ending)
}
