//! Short completions: few tokens after which a value is complete, for generations that run out of room.

use crate::vocab::Vocab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trie_core::work::{Limits, Work, spend};
use trie_core::{Constraint, Ending, Scratch, TokenId, Tokens};

/// Limits of the successive searches: tokens of a continuation, states to visit, and continuations of each state. The
/// first search follows only the most promising token, which is enough for most JSON.
const SEARCHES: [Search; 5] = [
    Search { depth: 512, states: 512, ways: 1 },
    Search { depth: 4, states: 256, ways: 16 },
    Search { depth: 16, states: 512, ways: 16 },
    Search { depth: 64, states: 1024, ways: 16 },
    Search { depth: 512, states: 2048, ways: 4 },
];

/// Up to this many allowed tokens, every token is tried; of more, only tokens of one byte.
const FEW: usize = 64;

/// Number of allowed bytes up to which they are taken for punctuation between values; more bytes mean text.
const SIGNS: usize = 48;

/// Bytes that usually end something, between values and inside text.
const CLOSING: &[u8] = b"}])>\"',:;/.";
const CLOSING_TEXT: &[u8] = b"\"'`\n</.;";

struct Search {
    depth: usize,
    states: usize,
    ways: usize,
}

/// A state on the way, and the token that led there.
struct VisitedState<S> {
    state: S,
    token: Option<TokenId>,
    before: usize,
    depth: usize,
}

/// Limits of one search, because users' rules may take long.
pub(crate) const LIMITS: Limits = Limits::NONE.steps(4_000_000).seconds(2.0);

/// Few tokens after which a value ends, from this state on; the same every time, and empty if a value ends here.
/// `None` if no completion was found, and in free text. The work is bounded for every constraint.
pub fn completion<C: Constraint>(constraint: &C, from: &C::State, vocab: &Vocab) -> Option<Vec<TokenId>> {
    Work::new(LIMITS).run(|| find_completion(constraint, from, vocab))
}

/// A bound on the tokens of completions, for a walk that asks after each of its tokens. It keeps the way of the first
/// search: a later way that meets it ends as it does, so most bounds take few steps.
#[derive(Debug)]
pub struct CompletionBound<S> {
    /// States of the last way, the first in which a value ends last.
    way: Vec<S>,
    bytes: Vec<Option<TokenId>>,
}

impl<S> CompletionBound<S> {
    /// Returns a bound for walks of one constraint over this vocabulary.
    pub fn new(vocab: &Vocab) -> Self {
        Self { way: Vec::new(), bytes: tokens_of_bytes(vocab) }
    }

    /// Returns a number of tokens that [`completion`] does not exceed from this state on; `None` if the first search
    /// finds no completion.
    pub fn most<C: Constraint<State = S>>(&mut self, constraint: &C, from: &S, vocab: &Vocab) -> Option<usize>
    where
        S: Clone + PartialEq,
    {
        let (first, mut scratch) = (&SEARCHES[0], Scratch::default());
        let (mut before, mut at) = (Vec::new(), from.clone());
        let known = loop {
            if let Some(met) = self.way.iter().position(|known| *known == at) {
                break met;
            }
            if constraint.ending(&at) != Ending::No {
                self.way = vec![at];
                break 0;
            }
            if before.len() + 1 == first.states {
                return None;
            }
            spend(256).ok()?;
            let token = *first.ways(constraint, &at, &mut scratch, &self.bytes, vocab).first()?;
            let mut after = at.clone();
            constraint.advance(&mut after, token)?;
            before.push(std::mem::replace(&mut at, after));
        };
        self.way.splice(..known, before);
        Some(self.way.len() - 1).filter(|&tokens| tokens < first.states)
    }
}

/// For each byte the token of it alone.
fn tokens_of_bytes(vocab: &Vocab) -> Vec<Option<TokenId>> {
    (0..=255).map(|byte| vocab.prefix_tokens(&[byte]).first().copied()).collect()
}

fn find_completion<C: Constraint>(constraint: &C, from: &C::State, vocab: &Vocab) -> Option<Vec<TokenId>> {
    let bytes = tokens_of_bytes(vocab);
    let found = SEARCHES.iter().find_map(|search| search.run(constraint, from, &bytes, vocab))?;
    let ends = |tokens: &Vec<TokenId>| {
        let mut at = from.clone();
        tokens.iter().all(|&token| constraint.advance(&mut at, token).is_some()) && constraint.ending(&at) != Ending::No
    };
    // The tokenizer's own tokens are fewer than those of single bytes.
    let own = in_own_tokens(&found, vocab).filter(|own| own.len() <= found.len() && ends(own));
    Some(own.unwrap_or(found))
}

/// The same text in the tokenizer's own tokens; control tokens are kept.
fn in_own_tokens(tokens: &[TokenId], vocab: &Vocab) -> Option<Vec<TokenId>> {
    let is_control = |token: &TokenId| vocab.control().binary_search(token).is_ok();
    let mut own = Vec::new();
    for run in tokens.chunk_by(|one, other| !is_control(one) && !is_control(other)) {
        if run.iter().any(is_control) {
            own.extend_from_slice(run);
        } else {
            own.extend(spellings(vocab, &vocab.join(run).ok()?).find(|own| own.len() <= run.len())?);
        }
    }
    Some(own)
}

/// Token sequences for some bytes, the tokenizer's own first.
pub(crate) fn spellings(vocab: &Vocab, bytes: &[u8]) -> impl Iterator<Item = Vec<TokenId>> {
    let own = std::str::from_utf8(bytes).ok().and_then(|text| vocab.tokenize_inside(text));
    own.into_iter().chain(std::iter::once_with(|| vocab.fewest(bytes)).flatten())
}

impl Search {
    /// A way of few tokens that are not the most promising ones; of those of as few, the shortest.
    fn run<C: Constraint>(
        &self,
        constraint: &C,
        from: &C::State,
        bytes: &[Option<TokenId>],
        vocab: &Vocab,
    ) -> Option<Vec<TokenId>> {
        let mut scratch = Scratch::default();
        let mut visited = vec![VisitedState { state: from.clone(), token: None, before: 0, depth: 0 }];
        let mut open = BinaryHeap::from([Reverse((0, 0, 0))]);
        for _ in 0..self.states {
            let Reverse((strange, depth, at)) = open.pop()?;
            let state = visited[at].state.clone();
            // Whoever walks a value is asked for a mask, which takes as long as many steps.
            spend(256).ok()?;
            if constraint.ending(&state) != Ending::No {
                return Some(way_to(&visited, at));
            }
            if depth == self.depth {
                continue;
            }
            let ways = self.ways(constraint, &state, &mut scratch, bytes, vocab);
            for (rank, token) in ways.into_iter().enumerate() {
                let mut after = state.clone();
                if constraint.advance(&mut after, token).is_some() {
                    open.push(Reverse((strange + rank, depth + 1, visited.len())));
                    visited.push(VisitedState { state: after, token: Some(token), before: at, depth: depth + 1 });
                }
            }
        }
        None
    }

    /// The tokens that the search follows from a state, the most promising first.
    fn ways<C: Constraint>(
        &self,
        constraint: &C,
        at: &C::State,
        scratch: &mut Scratch,
        bytes: &[Option<TokenId>],
        vocab: &Vocab,
    ) -> Vec<TokenId> {
        let mut ways = match constraint.forced_token(at, scratch) {
            Some(token) => vec![token],
            None => promising(constraint.next(at, scratch).tokens, bytes, vocab),
        };
        ways.truncate(self.ways);
        ways
    }
}

fn way_to<S>(visited: &[VisitedState<S>], end: usize) -> Vec<TokenId> {
    let steps = std::iter::successors(Some(end), |&at| Some(visited[at].before)).take(visited[end].depth);
    let mut way: Vec<TokenId> = steps.filter_map(|at| visited[at].token).collect();
    way.reverse();
    way
}

/// The allowed tokens, ordered by how soon each may lead to an end.
fn promising(tokens: Tokens<'_>, bytes: &[Option<TokenId>], vocab: &Vocab) -> Vec<TokenId> {
    if matches!(tokens, Tokens::Except(_)) {
        return Vec::new();
    }
    let mut ways: Vec<TokenId> = tokens.iter().take(FEW + 1).collect();
    let single = || bytes.iter().flatten().copied().filter(|&token| tokens.contains(token));
    let in_text = single().filter(|&token| vocab.piece(token).is_some_and(<[u8]>::is_ascii)).nth(SIGNS).is_some();
    if ways.len() > FEW {
        let alone: Vec<TokenId> = single().collect();
        if !alone.is_empty() {
            ways = alone;
        }
    }
    let closing = if in_text { CLOSING_TEXT } else { CLOSING };
    let order = |token: &TokenId| {
        let piece = vocab.piece(*token).unwrap_or_default();
        (piece.first().map_or(u8::MAX, |&byte| rank(byte, closing)), piece.len(), *token)
    };
    ways.sort_by_cached_key(order);
    ways
}

/// Rank of a byte in the order in which allowed bytes are tried.
fn rank(byte: u8, closing: &[u8]) -> u8 {
    match closing.iter().position(|&sign| sign == byte) {
        Some(at) => at as u8,
        None if byte.is_ascii_digit() => 32,
        None if byte.is_ascii_alphabetic() => 33,
        None if byte.is_ascii_whitespace() => 36,
        None if byte == b'\\' => 37,
        None if byte.is_ascii_graphic() => 34,
        None => 38,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokenKind;
    use std::sync::Arc;
    use trie_core::AnyConstraint;
    use trie_rules::{AnyRule, MaskLimits, Regex};

    fn vocab() -> Arc<Vocab> {
        let bytes = (0..=255u8).map(|byte| (vec![byte], TokenKind::Text));
        let words = ["ab", "abab", "zz", "end", "}}"].map(|word| (word.as_bytes().to_vec(), TokenKind::Text));
        Arc::new(Vocab::new(bytes.chain(words), vec![], None).unwrap())
    }

    fn completed_text(constraint: &AnyConstraint, vocab: &Vocab, before: &str) -> Option<String> {
        let mut at = constraint.start();
        for byte in before.bytes() {
            constraint.advance(&mut at, TokenId::new(byte.into()).unwrap()).unwrap();
        }
        let tokens = completion(constraint, &at, vocab)?;
        for &token in &tokens {
            constraint.advance(&mut at, token).unwrap();
        }
        assert_ne!(constraint.ending(&at), Ending::No);
        Some(String::from_utf8(vocab.join(&tokens).unwrap()).unwrap())
    }

    #[test]
    fn bounds_are_those_of_the_first_search() {
        let vocab = vocab();
        let bytes = tokens_of_bytes(&vocab);
        let object = r#"\{"a": \[("[a-z]{0,9}", )*[0-9]+\](, "b": (true|null))?\}"#;
        for pattern in ["(ab|c)+x?", "[a-z ]{40}", object, "x{600}"] {
            let rule = Regex::new(pattern).unwrap();
            let constraint = rule.compile_for(vocab.spelling(), MaskLimits::default()).unwrap().constraint();
            let mut bound = CompletionBound::new(&vocab);
            let (mut at, mut scratch, mut seed) = (constraint.start(), Scratch::default(), 7usize);
            for _ in 0..60 {
                let found = SEARCHES[0].run(&constraint, &at, &bytes, &vocab).map(|found| found.len());
                let most = bound.most(&constraint, &at, &vocab);
                assert_eq!(most, found, "{pattern}");
                let ended = completion(&constraint, &at, &vocab).map(|way| way.len());
                assert!(most.is_none() || ended.is_some() && ended <= most, "{pattern}: {ended:?} of {most:?}");
                let ways: Vec<TokenId> = constraint.next(&at, &mut scratch).tokens.iter().collect();
                if ways.is_empty() {
                    break;
                }
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                constraint.advance(&mut at, ways[(seed >> 33) % ways.len()]).unwrap();
            }
        }
    }

    #[test]
    fn values_end_soon() {
        let vocab = vocab();
        for (pattern, before, rest) in [
            ("(ab|c)+x?", "abca", "b"),
            ("(ab|c)+x?", "abc", ""),
            ("[0-9]+", "", "0"),
            ("[a-z]{200}", "a", &*"a".repeat(199)),
            // What looks promising leads nowhere.
            ("[xy\"]*z", "xx", "z"),
            ("(\"|,)*(begin|end)!", ",", "end!"),
            ("\\{\"a\": \"[^\"]*\", \"b\": [0-9]+\\}", "{\"a\": \"so on and ", "\", \"b\": 0}"),
        ] {
            let rule = Regex::new(pattern).unwrap();
            let constraint = rule.compile_for(vocab.spelling(), MaskLimits::default()).unwrap().constraint();
            assert_eq!(
                completed_text(&constraint, &vocab, before).as_deref(),
                Some(rest),
                "{pattern} after {before:?}"
            );
        }
    }

    #[test]
    fn a_way_that_is_too_far_is_none() {
        let vocab = vocab();
        let rule = Regex::new("[ab]{900}").unwrap();
        let constraint = rule.compile_for(vocab.spelling(), MaskLimits::default()).unwrap().constraint();
        assert_eq!(completed_text(&constraint, &vocab, ""), None);
    }
}
