//! Positions of special tokens in a text. llama.cpp searches for each special token in every remaining piece of text,
//! which takes quadratic time if there are many. So a text with many special tokens is given to llama.cpp in parts.
//!
//! A part ends where llama.cpp certainly finds a special token. Between two such tokens llama.cpp reads a text alone,
//! so the parts give the same tokens as the whole text.

use aho_corasick::automaton::{Automaton as _, StateID};
use aho_corasick::nfa::contiguous::NFA;
use aho_corasick::{Anchored, MatchKind};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Special tokens that a part has at most.
const MOST: usize = 64;

/// The special tokens of a vocabulary: those that are found in a text before anything else.
#[derive(Debug)]
pub(super) struct SpecialTokens {
    /// `None` where there are none.
    automaton: Option<NFA>,
    tokens: Vec<SpecialToken>,
    /// True if one of them strips white space beside it.
    strips: bool,
}

/// A token that is found before anything else.
#[derive(Debug)]
struct SpecialToken {
    length: usize,
    /// The longest other token that it ends with.
    shorter: Option<usize>,
    strips: Strips,
    /// True if it begins or ends with white space.
    spaced: bool,
}

/// The white space that a token takes away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Strips {
    pub(super) before: bool,
    pub(super) after: bool,
}

/// Tokens that overlap each other, and the text under them.
#[derive(Debug)]
struct Cluster {
    text: Range<usize>,
    /// Range of the ends that lie in it.
    ends: Range<usize>,
}

/// A token that llama.cpp finds for certain.
#[derive(Debug)]
struct Certain {
    text: Range<usize>,
    token: usize,
}

impl SpecialTokens {
    /// Builds the search for these texts.
    pub(super) fn new<'t>(tokens: impl IntoIterator<Item = (&'t [u8], Strips)>) -> Self {
        let mut given: Vec<(&[u8], Strips)> = tokens.into_iter().filter(|(text, _)| !text.is_empty()).collect();
        // Which of two that are written alike is found makes no difference to where.
        given.sort_by_key(|(text, _)| *text);
        given.dedup_by(|(one, strips), (other, kept)| {
            let same = one == other;
            if same {
                *kept = Strips { before: kept.before || strips.before, after: kept.after || strips.after };
            }
            same
        });
        let numbers: HashMap<&[u8], usize> =
            given.iter().enumerate().map(|(number, (text, _))| (*text, number)).collect();
        let is_space = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
        let made = given.iter().map(|&(text, strips)| SpecialToken {
            length: text.len(),
            shorter: (1..text.len()).find_map(|from| numbers.get(&text[from..]).copied()),
            strips,
            spaced: is_space(text.first()) || is_space(text.last()),
        });
        let texts = given.iter().map(|(text, _)| text);
        Self {
            automaton: NFA::builder().match_kind(MatchKind::Standard).build(texts).ok().filter(|_| !given.is_empty()),
            tokens: made.collect(),
            strips: given.iter().any(|(_, strips)| *strips != Strips::default()),
        }
    }

    /// A text in parts, in order.
    pub(super) fn parts<'t>(&self, text: &'t [u8]) -> Vec<&'t [u8]> {
        let ends = self.ends(text);
        let (mut parts, mut from, mut count) = (Vec::new(), 0, 0);
        for cluster in clusters(&ends, |token| self.tokens[token].length) {
            let all = &ends[cluster.ends.clone()];
            let certain = self.certain(&cluster, all);
            if certain.is_empty() {
                count += all.len();
            }
            for Certain { text: found, token } in certain {
                count += 1;
                let strips = self.tokens[token].strips;
                let cut = match strips {
                    _ if count < MOST => continue,
                    Strips { before: false, .. } => found.start,
                    Strips { after: false, .. } => found.end,
                    Strips { .. } => continue,
                };
                parts.push(&text[from..cut]);
                (from, count) = (cut, 1);
            }
        }
        parts.push(&text[from..]);
        parts
    }

    /// Returns the ends of tokens, each with the longest token that ends there.
    fn ends(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let Some(automaton) = &self.automaton else { return Vec::new() };
        let Ok(mut at) = automaton.start_state(Anchored::No) else { return Vec::new() };
        let longest = |at: StateID| {
            let all = (0..automaton.match_len(at)).map(|number| automaton.match_pattern(at, number).as_usize());
            all.max_by_key(|&token| self.tokens[token].length)
        };
        let ended = text.iter().enumerate().filter_map(|(number, &byte)| {
            at = automaton.next_state(Anchored::No, at, byte);
            if automaton.is_match(at) { Some((number + 1, longest(at)?)) } else { None }
        });
        ended.collect()
    }

    /// The tokens that are certainly found in a cluster, in order: longer ones first, tokens of one length from left to
    /// right. None if the result depends on the order of different tokens of one length, which is not specified.
    fn certain(&self, cluster: &Cluster, ends: &[(usize, usize)]) -> Vec<Certain> {
        let certain = |end: usize, token: usize| Certain { text: end - self.tokens[token].length..end, token };
        if let [(end, token)] = *ends {
            // White space that another one takes away may be of this one.
            return if self.strips && self.tokens[token].spaced { Vec::new() } else { vec![certain(end, token)] };
        }
        if self.strips {
            return Vec::new();
        }
        let mut at_end: Vec<Option<usize>> = ends.iter().map(|&(_, token)| Some(token)).collect();
        let different: BTreeSet<usize> = ends.iter().map(|&(_, token)| token).collect();
        let suffixes = |token: usize| std::iter::successors(Some(token), |&token| self.tokens[token].shorter);
        let lengths: BTreeSet<usize> =
            different.into_iter().flat_map(suffixes).map(|token| self.tokens[token].length).collect();
        // Of each byte: the token that was found there.
        let mut occupied: Vec<Option<usize>> = vec![None; cluster.text.len()];
        let mut found = Vec::new();
        for &length in lengths.iter().rev() {
            for (candidate, &(end, _)) in at_end.iter_mut().zip(ends) {
                let Some(token) = candidate.filter(|&token| self.tokens[token].length == length) else { continue };
                *candidate = self.tokens[token].shorter;
                let (first, last) = (end - length - cluster.text.start, end - 1 - cluster.text.start);
                // What is in the way is as long at least: it has the first byte or the last.
                let in_the_way = [occupied[first], occupied[last]];
                if in_the_way == [None, None] {
                    occupied[first..=last].fill(Some(token));
                    found.push(certain(end, token));
                } else if in_the_way
                    .iter()
                    .flatten()
                    .any(|&other| other != token && self.tokens[other].length == length)
                {
                    return Vec::new();
                }
            }
        }
        found.sort_unstable_by_key(|found| found.text.start);
        found
    }
}

/// The clusters of tokens that end there, in order.
fn clusters(ends: &[(usize, usize)], length: impl Fn(usize) -> usize) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::new();
    for (number, &(end, token)) in ends.iter().enumerate() {
        let mut next = Cluster { text: end - length(token)..end, ends: number..number + 1 };
        while let Some(before) = clusters.pop_if(|before| before.text.end > next.text.start) {
            next.text.start = next.text.start.min(before.text.start);
            next.ends.start = before.ends.start;
        }
        clusters.push(next);
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::{SpecialTokens, Strips};
    use proptest::prelude::*;

    #[derive(Debug, Clone, PartialEq)]
    enum Fragment {
        Token(Vec<u8>),
        Text(Vec<u8>),
    }

    /// Splits as llama.cpp does: each token in turn is searched in all remaining text.
    fn fragments(tokens: &[(Vec<u8>, Strips)], text: &[u8]) -> Vec<Fragment> {
        let mut all = vec![Fragment::Text(text.to_vec())];
        for (name, strips) in tokens {
            let mut next = Vec::new();
            for fragment in all {
                let Fragment::Text(mut rest) = fragment else {
                    next.push(fragment);
                    continue;
                };
                while let Some(at) = rest.windows(name.len()).position(|window| window == name) {
                    let (mut before, mut after) = (rest[..at].to_vec(), rest[at + name.len()..].to_vec());
                    while strips.before && before.last().is_some_and(u8::is_ascii_whitespace) {
                        before.pop();
                    }
                    while strips.after && after.first().is_some_and(u8::is_ascii_whitespace) {
                        after.remove(0);
                    }
                    next.push(Fragment::Text(before));
                    next.push(Fragment::Token(name.clone()));
                    rest = after;
                }
                next.push(Fragment::Text(rest));
            }
            next.retain(|fragment| *fragment != Fragment::Text(Vec::new()));
            all = next;
        }
        all
    }

    fn strips() -> impl Strategy<Value = Strips> {
        prop_oneof![
            6 => Just(Strips::default()),
            1 => any::<(bool, bool)>().prop_map(|(before, after)| Strips { before, after }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: test_budget::cases(2000), ..ProptestConfig::default() })]

        #[test]
        fn parts_have_the_fragments_of_the_whole(
            given in prop::collection::vec(("[ab <]{1,4}", strips(), any::<u8>()), 1..7),
            stripping in any::<bool>(),
            text in prop::collection::vec(prop_oneof![
                4 => (0..7_usize).prop_map(Ok),
                2 => "[abc <]{0,3}".prop_map(Err),
            ], 0..400),
        ) {
            let strips = |strips: Strips| if stripping { strips } else { Strips::default() };
            let mut tokens: Vec<(Vec<u8>, Strips, u8)> =
                given.into_iter().map(|(name, of, order)| (name.into_bytes(), strips(of), order)).collect();
            tokens.sort();
            tokens.dedup_by(|one, other| one.0 == other.0);
            let text: Vec<u8> = text
                .into_iter()
                .flat_map(|piece| match piece {
                    Ok(number) => tokens[number % tokens.len()].0.clone(),
                    Err(other) => other.into_bytes(),
                })
                .collect();
            // Those of one length stand in any order.
            tokens.sort_by_key(|(name, _, order)| (std::cmp::Reverse(name.len()), *order));
            let tokens: Vec<(Vec<u8>, Strips)> = tokens.into_iter().map(|(name, strips, _)| (name, strips)).collect();
            let special = SpecialTokens::new(tokens.iter().map(|(name, strips)| (&name[..], *strips)));
            let parts = special.parts(&text);
            prop_assert_eq!(parts.concat(), text.clone());
            let parted: Vec<Fragment> = parts.iter().flat_map(|part| fragments(&tokens, part)).collect();
            prop_assert_eq!(parted, fragments(&tokens, &text));
        }
    }

    #[test]
    fn parts_are_short() {
        let special = SpecialTokens::new([&b"<s>"[..], b"\n", b"\n\n\n"].map(|name| (name, Strips::default())));
        for unit in ["<s>", "<s>a", "\n", "\n\n"] {
            let text = unit.repeat(10_000);
            let parts = special.parts(text.as_bytes());
            assert!(parts.iter().all(|part| part.len() <= 64 * 4), "{unit:?}: {}", parts.len());
        }
    }
}
