//! Masks of rules over real vocabularies against brute force, at random states, and no dead ends.
//!
//! `TOKENTRIE_RULE_STATES` says how many states each rule visits in each vocabulary; by default few.

use crate::common::{tiny_model, vocab_files};
use llama_sampler::vocab_from_gguf;
use std::collections::HashSet;
use std::sync::Arc;
use test_budget::Random;
use trie_core::{Constraint, Ending, Scratch, TokenId, Tokens};
use trie_rules::{ByRule, Example, Regex, Rule, TokenBytes};

const PATTERNS: [&str; 16] = [
    "[0-9]{4}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2})?",
    "[A-Za-z_][A-Za-z0-9_]{0,62}",
    r"\w+( \w+)*",
    ".*",
    r"(?s).{0,100}",
    r#""([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4})){0,40}""#,
    r"[^\x00-\x1f]{0,60}",
    "([^,\n]*,){3}[^,\n]*",
    "[a-z]+(-[a-z]+)*",
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+",
    r"(\p{L}{1,4} ){0,2}\p{L}{1,4}\.",
    r"\PC*",
    "[A-Z][a-z]{1,9}( [A-Z][a-z]{1,9}){0,3}",
    "(?i)(select|from|[a-z]{3})*",
    r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,4})?",
    "<[a-z]+>[^<>]{0,30}</[a-z]+>",
];

#[derive(Default)]
struct Done {
    states: usize,
    different: usize,
    tokens: usize,
    whole: usize,
}

struct Walk<'v> {
    pieces: &'v [Vec<u8>],
    states: usize,
    /// How many of them are compared on every token.
    whole: usize,
    random: Random,
}

impl Walk<'_> {
    /// A legal token: any, where it is quickly found, else one of the first.
    fn choose(&mut self, legal: Tokens<'_>) -> Option<TokenId> {
        if let Some(ids) = legal.ids() {
            return (!ids.is_empty()).then(|| ids[self.random.below(ids.len())]);
        }
        let tries = (0..200).filter_map(|_| TokenId::new(self.random.below(self.pieces.len()) as u32));
        tries.collect::<Vec<_>>().into_iter().find(|&token| legal.contains(token)).or_else(|| legal.iter().next())
    }

    fn run<R: Rule>(&mut self, rule: R, tokens: &Arc<TokenBytes>, done: &mut Done) {
        let name = format!("{rule:?}");
        let Ok(by_rule) = ByRule::new(rule, Arc::clone(tokens)) else { return };
        let rule = by_rule.rule();
        let mut scratch = Scratch::default();
        let mut known: HashSet<R::State> = HashSet::new();
        let (mut at, mut state, mut length) = (by_rule.start(), rule.start(), 0);
        for visit in 0..self.states {
            let next = by_rule.next(&at, &mut scratch);
            let brute = |id: usize| {
                let (first, rest) = self.pieces[id].split_first()?;
                rest.iter().try_fold(rule.step(&state, *first)?, |state, &byte| rule.step(&state, byte))
            };
            let fresh = known.insert(state.clone());
            let every = fresh && done.whole < self.whole;
            let sample: Vec<usize> = if every {
                (0..self.pieces.len()).collect()
            } else {
                (0..32).map(|_| self.random.below(self.pieces.len())).collect()
            };
            for &id in &sample {
                let (token, legal) = (TokenId::new(id as u32).unwrap(), brute(id).is_some());
                assert_eq!(next.tokens.contains(token), legal, "{name}, {state:?}, {:?}", self.pieces[id]);
            }
            for id in sample.iter().step_by(sample.len().div_ceil(32)) {
                let token = TokenId::new(*id as u32).unwrap();
                assert_eq!(by_rule.step(&at, token).is_some(), next.tokens.contains(token), "{name}, {state:?}");
            }
            done.states += 1;
            done.different += usize::from(fresh);
            done.tokens += sample.len();
            done.whole += usize::from(every);
            // Now and then from the start again.
            let chosen = self.choose(next.tokens).filter(|_| length < 60 || visit % 7 != 0);
            let Some(token) = chosen else {
                assert!(
                    length >= 60 || rule.is_end(&state) && next.ending == Ending::Must,
                    "a dead end: {name} {state:?}"
                );
                (at, state, length) = (by_rule.start(), rule.start(), 0);
                continue;
            };
            state = self.pieces[token.index()].iter().try_fold(state, |state, &byte| rule.step(&state, byte)).unwrap();
            at = by_rule.step(&at, token).unwrap().state;
            length += 1;
        }
    }
}

#[test]
fn masks_are_those_of_brute_force() {
    let setting = std::env::var("TOKENTRIE_RULE_STATES").ok().and_then(|states| states.parse().ok());
    let states: usize = setting.unwrap_or(test_budget::cases(60).max(12) as usize);
    let mut done = Done::default();
    for (number, path) in vocab_files().into_iter().chain([tiny_model()]).enumerate() {
        let vocab = vocab_from_gguf(&path).unwrap();
        let ids = (0..vocab.len()).filter_map(|id| TokenId::new(id as u32));
        let bytes = |id| vocab.piece(id).filter(|_| vocab.is_text(id)).unwrap_or_default().to_vec();
        let pieces: Vec<Vec<u8>> = ids.clone().map(bytes).collect();
        let tokens = Arc::new(TokenBytes::new(vocab.len(), pieces.iter().map(Vec::as_slice).zip(ids)).unwrap());
        let mut one = Done::default();
        let mut walk = Walk { pieces: &pieces, states, whole: 0, random: Random(number as u64) };
        let share = (states / 60).max(2);
        for pattern in PATTERNS {
            walk.whole += share;
            walk.run(Regex::new(pattern).unwrap(), &tokens, &mut one);
        }
        for example in Example::ALL {
            walk.whole += share;
            walk.run(example.grammar().unwrap(), &tokens, &mut one);
        }
        println!(
            "{}: {} states, {} different, {} on every token, {} tokens compared",
            path.display(),
            one.states,
            one.different,
            one.whole,
            one.tokens
        );
        assert!(one.states > 0 && one.whole > 0);
        done.states += one.states;
        done.different += one.different;
    }
    println!("{} states, {} different", done.states, done.different);
}
