//! Samples of a rule: texts drawn at random, which show what the rule allows.

use crate::rule::Rule;
use rand_mt::Mt;
use std::collections::{BTreeSet, HashMap};
use trie_core::work::spend;

/// Bytes after which a text heads for its end.
const LONG: usize = 40;
/// States that are looked at for the nearest end.
const LOOKED_AT: usize = 5_000;
/// Draws for each text that is wanted: some are equal, and some find no end.
const DRAWS: usize = 8;

/// Returns up to `count` different complete texts of a rule, drawn at random, shorter ones first. The same seed gives
/// the same texts.
///
/// Each step chooses among the next states, not among the bytes, because one byte that ends a text would rarely be
/// drawn among many that do not. Bytes are printable ASCII where possible. After 40 bytes a text takes the shortest way
/// to an end. There may be fewer than `count` texts: the rule may have fewer, or ends may be too far away.
///
/// ```
/// use trie_rules::{Grammar, Regex, Rule, samples};
///
/// let names = Regex::new("[a-z]{2,300}")?;
/// let drawn = samples(&names, 5, 7);
/// assert_eq!(drawn.len(), 5);
/// for text in &drawn {
///     let state = text.iter().try_fold(names.start(), |state, byte| names.step(&state, *byte));
///     assert!(names.is_end(&state.unwrap()));
/// }
/// assert_eq!(samples(&Regex::new("yes|no")?, 5, 0), [b"no".to_vec(), b"yes".to_vec()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn samples<R: Rule>(rule: &R, count: usize, seed: u32) -> Vec<Vec<u8>> {
    let mut rng = Mt::new(seed);
    let mut found = BTreeSet::new();
    for _ in 0..count.saturating_mul(DRAWS) {
        if found.len() == count {
            break;
        }
        found.extend(draw(rule, &mut rng).map(|text| (text.len(), text)));
    }
    if found.is_empty() && count > 0 {
        found.extend(
            nearest_end(rule, rule.start(), LOOKED_AT, |bytes| one_of(bytes, &mut rng)).map(|text| (text.len(), text)),
        );
    }
    found.into_iter().map(|(_, text)| text).collect()
}

fn draw<R: Rule>(rule: &R, rng: &mut Mt) -> Option<Vec<u8>> {
    let (mut state, mut text) = (rule.start(), Vec::new());
    loop {
        let mut ways = ways(rule, &state);
        if rule.is_end(&state) && (ways.is_empty() || random_below(rng, 3) == 0) {
            return Some(text);
        }
        if text.len() >= LONG {
            text.extend(nearest_end(rule, state, LOOKED_AT, |bytes| one_of(bytes, rng))?);
            return Some(text);
        }
        // What begins with no printable character, such as most of Unicode, comes now and then.
        if random_below(rng, 64) > 0 && ways.iter().any(|(_, bytes)| bytes.iter().copied().any(printable)) {
            ways.retain(|(_, bytes)| bytes.iter().copied().any(printable));
        }
        if ways.is_empty() {
            // A rule with a dead end, against its laws.
            return None;
        }
        let (after, bytes) = ways.swap_remove(random_below(rng, ways.len()));
        text.push(one_of(&bytes, rng));
        state = after;
    }
}

/// Returns the bytes of a shortest way to an end, the same every time: the first printable one of those that lead on.
/// `None` where it is behind more states than `most_states`.
pub(crate) fn shortest_end<R: Rule>(rule: &R, state: R::State, most_states: usize) -> Option<Vec<u8>> {
    let plain = |bytes: &[u8]| bytes.iter().copied().find(|&byte| printable(byte)).unwrap_or(bytes[0]);
    nearest_end(rule, state, most_states, plain).filter(|_| rule.failure().is_none())
}

/// The bytes of a shortest way to an end. `pick` takes one of those that lead to the same state.
fn nearest_end<R: Rule>(
    rule: &R,
    state: R::State,
    most_states: usize,
    mut pick: impl FnMut(&[u8]) -> u8,
) -> Option<Vec<u8>> {
    let mut known = HashMap::from([(state.clone(), 0)]);
    // Each with the number of the one before it, and the byte that leads to it.
    let mut order = vec![(state, 0, 0)];
    let mut at = 0;
    while let Some((state, ..)) = order.get(at).cloned() {
        if rule.is_end(&state) {
            let mut text = Vec::new();
            while at > 0 {
                text.push(order[at].2);
                at = order[at].1;
            }
            text.reverse();
            return Some(text);
        }
        if order.len() < most_states {
            spend(256).ok()?;
            for (after, bytes) in ways(rule, &state) {
                if known.insert(after.clone(), order.len()).is_none() {
                    order.push((after, at, pick(&bytes)));
                }
            }
        }
        at += 1;
    }
    None
}

/// The states that may follow, each with the bytes that lead there.
fn ways<R: Rule>(rule: &R, state: &R::State) -> Vec<(R::State, Vec<u8>)> {
    let mut numbers: HashMap<R::State, usize> = HashMap::new();
    let mut ways: Vec<(R::State, Vec<u8>)> = Vec::new();
    for byte in 0..=255 {
        let Some(after) = rule.step(state, byte) else { continue };
        if let Some(&number) = numbers.get(&after) {
            ways[number].1.push(byte);
        } else {
            numbers.insert(after.clone(), ways.len());
            ways.push((after, vec![byte]));
        }
    }
    ways
}

fn printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// One of some bytes, printable where there is one.
fn one_of(bytes: &[u8], rng: &mut Mt) -> u8 {
    let good: Vec<u8> = bytes.iter().copied().filter(|&byte| printable(byte)).collect();
    let bytes = if good.is_empty() { bytes } else { &good };
    bytes[random_below(rng, bytes.len())]
}

fn random_below(rng: &mut Mt, count: usize) -> usize {
    rng.next_u32() as usize % count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Example, Regex};

    fn is_whole_match<R: Rule>(rule: &R, text: &[u8]) -> bool {
        let state = text.iter().try_fold(rule.start(), |state, byte| rule.step(&state, *byte));
        state.is_some_and(|state| rule.is_end(&state))
    }

    #[test]
    fn texts_are_whole_different_and_repeatable() {
        for pattern in ["[a-z]{2,300}", "[ab]{500}", ".*", "é|ü|\\p{Greek}+", "a?", "(x|y)*z"] {
            let rule = Regex::new(pattern).unwrap();
            for seed in 0..20 {
                let drawn = samples(&rule, 5, seed);
                assert!(!drawn.is_empty() && drawn.iter().all(|text| is_whole_match(&rule, text)), "{pattern}");
                assert!(drawn.is_sorted_by(|one, next| (one.len(), one) < (next.len(), next)));
                assert_eq!(drawn, samples(&rule, 5, seed));
            }
            assert!(samples(&rule, 0, 0).is_empty());
        }
        assert_eq!(samples(&Regex::new("a?").unwrap(), 9, 3), [b"".to_vec(), b"a".to_vec()]);
    }

    #[test]
    fn grammars_find_their_ends() {
        for example in Example::ALL {
            let grammar = example.grammar().unwrap();
            for seed in 0..5 {
                let drawn = samples(&grammar, 5, seed);
                assert!(
                    drawn.len() >= 3 && drawn.iter().all(|text| is_whole_match(&grammar, text)),
                    "{example:?}: {drawn:?}"
                );
            }
        }
    }

    #[test]
    fn the_shortest_end_is_whole_and_the_same_every_time() {
        let after = |pattern: &str, text: &[u8]| {
            let rule = Regex::new(pattern).unwrap();
            let state = text.iter().try_fold(rule.start(), |state, byte| rule.step(&state, *byte)).unwrap();
            String::from_utf8(shortest_end(&rule, state, LOOKED_AT).unwrap()).unwrap()
        };
        for (pattern, text, rest) in [
            ("(ab|c)+x?", "abca", "b"),
            ("(ab|c)+x?", "", "c"),
            ("[0-9]+", "12", ""),
            ("[a-z]{5}", "q", "aaaa"),
            ("(long way|on+[.])", "onnnn", "."),
            ("\u{00e9}x", "", "\u{00e9}x"),
        ] {
            assert_eq!(after(pattern, text.as_bytes()), rest, "{pattern} after {text:?}");
        }
        for example in Example::ALL {
            let grammar = example.grammar().unwrap();
            let text = shortest_end(&grammar, grammar.start(), LOOKED_AT).unwrap();
            assert!(is_whole_match(&grammar, &text), "{example:?}: {text:?}");
        }
    }

    #[test]
    fn rules_that_break_their_laws_give_what_there_is() {
        #[derive(Debug)]
        struct Endless;
        impl Rule for Endless {
            type State = u64;
            fn start(&self) -> u64 {
                0
            }
            fn step(&self, state: &u64, byte: u8) -> Option<u64> {
                (byte < 3).then_some(state + u64::from(byte))
            }
            fn is_end(&self, _: &u64) -> bool {
                false
            }
        }
        assert!(samples(&Endless, 3, 0).is_empty());
        assert_eq!(shortest_end(&Endless, 0, LOOKED_AT), None);
    }
}
