//! Any text as a pattern and as a grammar of either kind: an error, or a rule that keeps the laws.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trie_core::work::Limits;
use trie_rules::{AutomatonLimits, ContextFree, Grammar, Regex, Rule, check_rule, texts};

fuzz_target!(|text: &str| {
    if let Ok(regex) = Regex::with_limits(text, AutomatonLimits::bytes(1 << 16)) {
        let checked = check_rule(&regex, 2000).expect("no dead ends");
        if let Ok(all) = texts(&regex, 50) {
            assert!(all.iter().all(|text| matches(&regex, text)));
        }
        assert!(checked.states >= 1);
    }
    if let Ok(grammar) = Grammar::new(text) {
        check_rule(&grammar, 300).expect("no dead ends");
    }
    for read in [ContextFree::gbnf(text, Limits::default()), ContextFree::lark(text, Limits::default(), None)] {
        if let Ok(grammar) = read {
            check_rule(&grammar, 300).expect("no dead ends");
        }
    }
});

fn matches(rule: &Regex, text: &[u8]) -> bool {
    let end = text.iter().try_fold(rule.start(), |state, &byte| rule.step(&state, byte));
    end.is_some_and(|end| rule.is_end(&end))
}
