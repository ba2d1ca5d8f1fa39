//! Masks of regular expressions over a real vocabulary of 152k tokens, beside llguidance: each mask is compared with
//! brute force, and with llguidance's, before it is timed. `TOKENTRIE_VOCAB_DIR` names the vocabularies.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{ByRule, MaskLimits, PrepareLimits, Regex, Rule, TokenBytes};

#[path = "common/pieces.rs"]
mod pieces;

/// Name, pattern, and text before the mask of each case.
const STATES: [(&str, &str, &str); 9] = [
    ("digits", "[0-9]+", "1"),
    ("identifier", "[A-Za-z_][A-Za-z0-9_]{0,62}", ""),
    ("words", r"\w+( \w+)*", "a"),
    ("any-line", ".*", ""),
    ("any-text", "(?s).*", ""),
    ("json-string", r#""([^"\\\x00-\x1f]|\\(["\\/bfnrt]|u[0-9a-fA-F]{4}))*""#, "\""),
    ("200-characters", r"[^\x00-\x1f]{0,200}", "a"),
    ("200-characters-3-left", r"[^\x00-\x1f]{0,200}", WRITTEN),
    ("no-comma", "[^,]*", ""),
];

const WRITTEN: &str = concat!(
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789",
    "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
);

const COMPILED: [(&str, &str); 4] = [
    ("date", "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    ("email", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+"),
    ("iso-time", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"),
    ("ip", r"((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"),
];

/// By brute force: every token, byte by byte.
fn brute_force(regex: &Regex, before: &str, pieces: &[Vec<u8>]) -> BTreeSet<TokenId> {
    let walk = |from: u32, bytes: &[u8]| bytes.iter().try_fold(from, |state, &byte| regex.step(&state, byte));
    let state = walk(regex.start(), before.as_bytes()).expect("a legal beginning");
    pieces::text(pieces).filter(|(piece, _)| walk(state, piece).is_some()).map(|(_, token)| token).collect()
}

/// The constraint after a text, whose bytes are tokens.
fn state_after(by_rule: &ByRule<Regex>, before: &str, pieces: &[Vec<u8>]) -> <ByRule<Regex> as Constraint>::State {
    let byte = |byte: u8| pieces::text(pieces).find(|(piece, _)| *piece == [byte]).expect("every byte is a token").1;
    let mut state = by_rule.start();
    for next in before.bytes() {
        by_rule.advance(&mut state, byte(next)).expect("a legal beginning");
    }
    state
}

struct Rival {
    factory: ParserFactory,
    end: TokenId,
}

impl Rival {
    fn new(pieces: &[Vec<u8>]) -> Self {
        let end = pieces.iter().position(Vec::is_empty).expect("a token that is not text");
        // Special tokens begin with the byte FF there.
        let special = |id: usize| [b"\xFF<|", id.to_string().as_bytes(), b"|>"].concat();
        let word = |(id, piece): (usize, &Vec<u8>)| if piece.is_empty() { special(id) } else { piece.clone() };
        let words: Vec<Vec<u8>> = pieces.iter().enumerate().map(word).collect();
        let trie = TokTrie::from(&TokRxInfo::new(pieces.len() as u32, end as u32), &words);
        let factory = ParserFactory::new_simple(&(Arc::new(ApproximateTokEnv::new(trie)) as _)).expect("a vocabulary");
        Self { factory, end: TokenId::new(end as u32).expect("an id") }
    }

    fn matcher(&self, pattern: &str) -> Matcher {
        Matcher::new(self.factory.create_parser(TopLevelGrammar::from_regex(pattern)))
    }

    /// After a text, given byte by byte.
    fn matcher_after(&self, pattern: &str, before: &str, pieces: &[Vec<u8>]) -> Matcher {
        let byte = |byte: u8| pieces::text(pieces).find(|(piece, _)| *piece == [byte]).expect("a byte").1.get();
        let mut matcher = self.matcher(pattern);
        before.bytes().for_each(|next| matcher.consume_token(byte(next)).expect("a legal beginning"));
        matcher
    }
}

/// Panics unless all three agree.
fn check(pattern: &str, before: &str, pieces: &[Vec<u8>], tokens: &Arc<TokenBytes>, rival: &Rival) {
    let regex = Regex::new(pattern).expect("a pattern");
    let want = brute_force(&regex, before, pieces);
    let by_rule = ByRule::new(regex, Arc::clone(tokens)).expect("a rule");
    let mut scratch = Scratch::default();
    let state = state_after(&by_rule, before, pieces);
    let ours: BTreeSet<TokenId> = by_rule.next(&state, &mut scratch).tokens.iter().collect();
    assert!(ours == want, "{pattern}: {} tokens instead of {}", ours.len(), want.len());
    let theirs = rival.matcher_after(pattern, before, pieces).compute_mask_or_eos().expect("a mask");
    let theirs: BTreeSet<TokenId> =
        theirs.iter().filter_map(TokenId::new).filter(|token| *token != rival.end).collect();
    let differ: Vec<_> = theirs.symmetric_difference(&want).take(5).map(|id| &pieces[id.index()]).collect();
    if !differ.is_empty() {
        println!("llguidance differs after {before:?} of {pattern}: {differ:?}");
    }
}

fn rules(criterion: &mut Criterion) {
    let Some(pieces) = pieces::pieces() else {
        return println!("no TOKENTRIE_VOCAB_DIR with ggml-vocab-qwen2.gguf: nothing measured");
    };
    let (tokens, rival) = (pieces::tokens(&pieces), Rival::new(&pieces));
    let mut scratch = Scratch::default();
    let regex = |pattern: &str| Regex::new(pattern).expect("a pattern");
    let n = pieces.len();

    let mut group = criterion.benchmark_group(format!("rules/{n}/seen-before"));
    for (name, pattern, before) in STATES {
        check(pattern, before, &pieces, &tokens, &rival);
        let by_rule = ByRule::new(regex(pattern), Arc::clone(&tokens)).expect("a rule");
        let state = state_after(&by_rule, before, &pieces);
        group.bench_function(name, |b| b.iter(|| black_box(by_rule.next(black_box(&state), &mut scratch)).ending));
    }
    group.finish();

    // Nothing is kept: every mask is walked, by an automaton that was walked before.
    let mut group = criterion.benchmark_group(format!("rules/{n}/first-visit"));
    for (name, pattern, before) in STATES {
        let by_rule = ByRule::with_limits(regex(pattern), Arc::clone(&tokens), MaskLimits::bytes(0)).expect("a rule");
        let state = state_after(&by_rule, before, &pieces);
        group.bench_function(name, |b| b.iter(|| black_box(by_rule.next(black_box(&state), &mut scratch)).ending));
        let fresh = || rival.matcher_after(pattern, before, &pieces);
        group.bench_function(format!("llguidance/{name}"), |b| {
            b.iter_batched_ref(fresh, Matcher::compute_mask_or_eos, BatchSize::SmallInput);
        });
    }
    group.finish();

    // The first mask of a new automaton; and of a new vocabulary, with what is derived from it.
    let mut group = criterion.benchmark_group(format!("rules/{n}/first-mask"));
    for (name, pattern, _) in STATES.iter().filter(|(name, ..)| ["any-text", "json-string", "words"].contains(name)) {
        let automaton = regex(pattern);
        group.bench_function(format!("of-an-automaton/{name}"), |b| {
            b.iter(|| ByRule::new(automaton.clone(), Arc::clone(&tokens)).expect("a rule"));
        });
    }
    let automaton = regex("(?s).*");
    let fresh = || Arc::new(TokenBytes::new(n, pieces::text(&pieces)).expect("a vocabulary"));
    group.bench_function("of-a-vocabulary/any-text", |b| {
        b.iter_batched(fresh, |tokens| ByRule::new(automaton.clone(), tokens).expect("a rule"), BatchSize::LargeInput);
    });
    group.finish();

    let mut group = criterion.benchmark_group(format!("rules/{n}/compile-with-first-mask"));
    for (name, pattern) in COMPILED {
        check(pattern, "", &pieces, &tokens, &rival);
        group.bench_function(name, |b| {
            b.iter(|| {
                let by_rule = ByRule::new(regex(pattern), Arc::clone(&tokens)).expect("a rule");
                let start = by_rule.start();
                by_rule.next(&start, &mut scratch).ending
            });
        });
        group.bench_function(format!("llguidance/{name}"), |b| {
            b.iter(|| rival.matcher(pattern).compute_mask_or_eos());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group(format!("rules/{n}/prepare"));
    for (name, pattern) in [("iso-time", COMPILED[2].1), ("200-characters", STATES[6].1)] {
        let automaton = regex(pattern);
        let fresh = || ByRule::new(automaton.clone(), Arc::clone(&tokens)).expect("a rule");
        let done = fresh().prepare(PrepareLimits::default());
        assert!(done.complete, "{done:?}");
        group.bench_function(format!("{name}/{}-states", done.states), |b| {
            b.iter_batched(fresh, |by_rule| by_rule.prepare(PrepareLimits::default()), BatchSize::LargeInput);
        });
    }
    group.finish();
    println!("{} bytes of tokens, with all that was derived from them", tokens.nbytes());
}

criterion_group!(benches, rules);
criterion_main!(benches);
