//! What all rules over a vocabulary keep together: never more than the limit, and never another mask for it.

use crate::common::{id, tokens};
use rand_mt::Mt64;
use std::sync::Arc;
use std::thread;
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{ByRule, MaskLimits, Regex, TokenBytes};

/// So many tokens that a mask has many bytes.
const TOKENS: usize = 12_000;

fn pieces() -> Vec<Vec<u8>> {
    (0..TOKENS as u32)
        .map(|number| format!("{}{number:x}", ["a", "b", " ", "\"x"][number as usize % 4]).into())
        .collect()
}

fn vocabulary() -> Arc<TokenBytes> {
    tokens(&pieces(), &[])
}

/// A rule of which every state has a mask of its own, none of them small.
fn pattern(number: u64) -> String {
    format!("(?:[ab][0-9a-f]+){{1,{}}}| ?[0-9a-f]{{2,{}}}", 2 + number % 5, 3 + number % 40)
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "a state of any rule")]
fn legal(rule: &ByRule<Regex>, at: &<ByRule<Regex> as Constraint>::State) -> Vec<TokenId> {
    let mut scratch = Scratch::default();
    let next = rule.next(at, &mut scratch).tokens;
    (0..TOKENS).map(id).filter(|&token| next.names(token)).collect()
}

/// Draws a walk, and compares each mask with that of a rule over a vocabulary of its own.
fn walk(rule: &ByRule<Regex>, twin: &ByRule<Regex>, random: &mut Mt64) {
    let (mut at, mut other) = (rule.start(), twin.start());
    for _ in 0..6 {
        let found = legal(rule, &at);
        assert_eq!(found, legal(twin, &other));
        let Some(&token) = found.get(random.next_u64() as usize % found.len().max(1)) else { break };
        assert!(rule.advance(&mut at, token).is_some() && twin.advance(&mut other, token).is_some());
    }
}

#[test]
fn rules_keep_no_more_than_their_limit_together() {
    // The mask that a walk has just found is in use.
    const IN_USE: usize = TOKENS / 8 + 128;
    let mut random = Mt64::new(7);
    for limit in [0, 2_000, 5_000, usize::MAX] {
        let shared = vocabulary();
        shared.mask_memory().limit(limit);
        let mut rules: Vec<(ByRule<Regex>, ByRule<Regex>)> = Vec::new();
        for _ in 0..test_budget::cases(600) {
            let kept = random.next_u64() as usize % (rules.len() + 1);
            if let Some((rule, twin)) = rules.get(kept) {
                walk(rule, twin, &mut random);
            } else {
                let regex = Regex::new(&pattern(random.next_u64())).unwrap();
                let twin = ByRule::with_limits(regex.clone(), vocabulary(), MaskLimits::default()).unwrap();
                rules.push((ByRule::new(regex, Arc::clone(&shared)).unwrap(), twin));
            }
            if random.next_u64().is_multiple_of(7) {
                rules.swap_remove(random.next_u64() as usize % rules.len());
            }
            let stats = shared.mask_memory().stats();
            assert!(stats.bytes <= limit.saturating_add(IN_USE), "{stats:?}");
            assert_eq!(stats.rules, rules.len());
        }
        let stats = shared.mask_memory().stats();
        assert_eq!(stats.forgotten > 0, limit < usize::MAX, "{stats:?}");
        drop(rules);
        assert_eq!(shared.mask_memory().stats().bytes, 0, "nobody has a rule, and something is kept");
    }
}

#[test]
fn a_mask_that_many_rules_have_is_kept_once() {
    let shared = vocabulary();
    let rules = |count: u32| -> Vec<ByRule<Regex>> {
        let rule = |number| Regex::new(&format!("[ab]{number:x}[ab0-9a-f]*")).unwrap();
        (0..count).map(|number| ByRule::new(rule(number), Arc::clone(&shared)).unwrap()).collect()
    };
    let bytes_of = |rules: &[ByRule<Regex>]| {
        for rule in rules {
            let mut at = rule.start();
            // Behind its number each goes on alike.
            for _ in 0..3 {
                let found = legal(rule, &at);
                rule.advance(&mut at, *found.last().unwrap()).unwrap();
            }
            legal(rule, &at);
        }
        shared.mask_memory().stats().bytes
    };
    let few = rules(4);
    let (before, mask) = (bytes_of(&few), TOKENS / 8);
    let many = rules(40);
    let after = bytes_of(&many);
    assert!(before >= mask && after - before < 40 * mask, "{before} bytes of 4 rules, {after} of 44");
}

#[test]
fn rules_that_forget_are_walked_by_many_threads() {
    let shared = vocabulary();
    shared.mask_memory().limit(6_000);
    let regexes: Vec<Regex> = (0..8).map(|number| Regex::new(&pattern(number)).unwrap()).collect();
    let rules: Vec<ByRule<Regex>> =
        regexes.iter().map(|regex| ByRule::new(regex.clone(), Arc::clone(&shared)).unwrap()).collect();
    thread::scope(|scope| {
        for thread in 0..4 {
            let (rules, regexes) = (&rules, &regexes);
            scope.spawn(move || {
                let mut random = Mt64::new(thread);
                let own = vocabulary();
                for _ in 0..test_budget::cases(200) {
                    let which = random.next_u64() as usize % rules.len();
                    let twin = ByRule::new(regexes[which].clone(), Arc::clone(&own)).unwrap();
                    walk(&rules[which], &twin, &mut random);
                }
            });
        }
    });
    let stats = shared.mask_memory().stats();
    assert!(stats.forgotten > 0 && stats.bytes <= 6_000 + 5 * TOKENS / 8, "{stats:?}");
}
