//! Patterns: what they match against the crate `regex`, what is refused and how, flags and anchors.

use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use std::time::Instant;
use trie_rules::{AutomatonLimits, ByRule, Regex, RegexError, Rule, TokenBytes, check_rule};

const ALPHABET: [&str; 6] = ["a", "b", "A", "é", "\n", " "];

fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "a",
        "b",
        "ab",
        "[a-b]",
        "[^a]",
        ".",
        "é",
        "\\w",
        "\\s",
        "\\S",
        "^",
        "$",
        "(?m:^)",
        "(?m:$)",
        "\\A",
        "\\z",
        "(?-u:\\b)",
        "(?-u:\\B)",
        "(?i:a)",
        "(?i:É)",
        "(?s:.)",
        "(?R:.)",
        "\\n",
        "[[:alpha:]]",
        "\\p{Lu}",
        "\\PL",
        "",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(4, 20, 3, |inner| {
        prop_oneof![
            3 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("{one}{other}")),
            2 => (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("(?:{one}|{other})")),
            1 => (inner.clone(), 0..3u32, 0..3u32).prop_map(|(one, n, more)| format!("(?:{one}){{{n},{}}}", n + more)),
            1 => (inner, prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??"]))
                .prop_map(|(one, how)| format!("(?:{one}){how}")),
        ]
    })
}

/// A shortest way to an end.
fn way_out(regex: &Regex, from: u32) -> Option<Vec<u8>> {
    let mut seen = HashSet::from([from]);
    let mut queue = VecDeque::from([(from, Vec::new())]);
    while let Some((state, text)) = queue.pop_front() {
        if regex.is_end(&state) {
            return Some(text);
        }
        for byte in 0..=255 {
            if let Some(next) = regex.step(&state, byte).filter(|&next| seen.insert(next)) {
                queue.push_back((next, [text.as_slice(), &[byte]].concat()));
            }
        }
    }
    None
}

fn after(regex: &Regex, text: &[u8]) -> Option<u32> {
    text.iter().try_fold(regex.start(), |state, &byte| regex.step(&state, byte))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(400)))]

    #[test]
    fn as_the_crate_regex(pattern in pattern()) {
        let theirs = regex_automata::meta::Regex::new(&format!("\\A(?:{pattern})\\z")).unwrap();
        let mut texts = vec![String::new()];
        let mut level = texts.clone();
        for _ in 0..4 {
            level = level.iter().flat_map(|text| ALPHABET.map(|char| format!("{text}{char}"))).collect();
            texts.extend(level.iter().cloned());
        }
        let matched: Vec<&String> = texts.iter().filter(|text| theirs.is_match(text)).collect();
        let ours = match Regex::new(&pattern) {
            Ok(ours) => ours,
            Err(RegexError::Automaton { problem, .. }) => {
                prop_assert!(problem.to_string() == "no text matches", "{}: {}", pattern, problem);
                prop_assert!(matched.is_empty(), "{} matches {:?}", pattern, matched);
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        for text in &texts {
            let end = after(&ours, text.as_bytes());
            let matches = end.is_some_and(|end| ours.is_end(&end));
            prop_assert_eq!(matches, theirs.is_match(text), "{} on {:?}", pattern, text);
        }
        // What begins a match may come; what may come begins a match.
        for text in matched {
            for length in 0..text.len() {
                prop_assert!(after(&ours, &text.as_bytes()[..length]).is_some(), "{}: {:?}", pattern, text);
            }
        }
        for text in texts.iter().filter(|text| text.len() < 4) {
            let Some(state) = after(&ours, text.as_bytes()) else { continue };
            let way = way_out(&ours, state).map(|way| [text.as_bytes(), &way].concat());
            let whole = way.map(|whole| String::from_utf8(whole).unwrap());
            prop_assert!(whole.is_some_and(|whole| theirs.is_match(&whole)), "{}: {:?} is a dead end", pattern, text);
        }
        prop_assert!(check_rule(&ours, 10_000).is_ok());
    }
}

fn error(pattern: &str) -> String {
    Regex::new(pattern).unwrap_err().to_string()
}

fn matches(pattern: &str, text: &str) -> bool {
    let regex = Regex::new(pattern).unwrap_or_else(|error| panic!("{error}"));
    after(&regex, text.as_bytes()).is_some_and(|end| regex.is_end(&end))
}

#[test]
fn errors_have_their_place() {
    assert_eq!(error("ab(c"), "\"ab(c\", position 2: unclosed group\n  ab(c\n    ^");
    // In characters, not bytes.
    assert_eq!(error("é\té["), "\"é\\té[\", position 3: unclosed character class\n  é é[\n     ^");
    let long = format!("{}(", "x".repeat(500));
    assert_eq!(
        error(&long),
        format!(
            "\"{}\" and more, position 500: unclosed group\n  ...{}(\n  {}^",
            "x".repeat(80),
            "x".repeat(30),
            " ".repeat(33)
        )
    );
    for (pattern, position) in
        [("*", 0), ("a**?+(", 5), ("[z-a]", 1), ("a{3,2}", 1), (r"\q", 0), ("(?<n>a)(?<n>b)", 10)]
    {
        let Err(RegexError::Syntax { position: found, .. }) = Regex::new(pattern) else { panic!("{pattern}") };
        assert_eq!(found, position, "{pattern}");
    }
}

#[test]
fn refused_by_name() {
    for pattern in ["(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b"] {
        assert!(error(pattern).contains("look-around, including look-ahead and look-behind, is not supported"));
    }
    assert!(error(r"(a)\1").contains("position 3: backreferences are not supported"), "{}", error(r"(a)\1"));
    for pattern in [r"a\bb", r"\Ba", r"\b"] {
        let error = error(pattern);
        assert!(error.contains(r"word boundary of Unicode (\b, for ASCII: (?-u:\b))"), "{error}");
    }
    assert!(error(r"(?-u:\xff)").contains("position 5: pattern can match invalid UTF-8"), "{}", error(r"(?-u:\xff)"));
}

#[test]
fn nothing_and_the_empty_text() {
    for pattern in ["a^b", "a$b", "[^\\s\\S]", "[a&&b]", "\\PL\\A", "(?m)a$b", "a[^\\x00-\\u{10FFFF}]"] {
        assert!(error(pattern).ends_with("no text matches"), "{}", error(pattern));
    }
    let token = ([b"a".as_slice()], trie_core::TokenId::new(0).unwrap());
    let tokens = std::sync::Arc::new(TokenBytes::new(1, [(token.0[0], token.1)]).unwrap());
    for pattern in ["", "^$", "$^", "(?m)^$", "(?:)*", "a{0}", "(?:){1000000}", "(((){1000}){1000}){1000}"] {
        let regex = Regex::new(pattern).unwrap();
        assert!(matches(pattern, "") && regex.automaton().states() == 1, "{pattern}");
        let error = ByRule::new(regex, tokens.clone()).unwrap_err().to_string();
        assert!(error.contains("only the empty text"), "{error}");
    }
}

#[test]
fn what_grows_without_bound_is_refused_soon() {
    let nested = format!("{}a{}", "(".repeat(5000), ")".repeat(5000));
    assert!(error(&nested).contains("nest"), "{}", error(&nested));
    for pattern in [
        "(a{1000}){1000}",
        "((((a{1000}){1000}){1000}){1000}){1000}",
        "((a{1,1000}){1,1000}){1,1000}",
        "[ab]*a[ab]{30}",
        r"(?:\w{1,300}){1,300}",
        r"\pL{1,1000}",
        r"(?-u:\B|[ab])*a[ab]{40}",
    ] {
        let begin = Instant::now();
        let error = error(pattern);
        eprintln!("{pattern}: {:?}", begin.elapsed());
        assert!(
            error.contains("needs more than 33554432 bytes: raise the limit (max_bytes, AutomatonLimits::bytes)"),
            "{error}"
        );
    }
    let small = Regex::with_limits("[a-z]{50}", AutomatonLimits::bytes(100)).unwrap_err().to_string();
    assert!(small.contains("more than 100 bytes"), "{small}");
    // And the way out that the message names.
    let large = Regex::with_limits("(?:[ab]{1,3}c){30000}", AutomatonLimits::bytes(256 << 20)).unwrap();
    assert!(large.automaton().states() > 100_000);
}

#[test]
fn anchors_bind_to_the_whole() {
    for (pattern, yes, no) in [
        ("a|b$", vec!["a", "b"], vec!["ab", "a\n", ""]),
        ("^a|b", vec!["a", "b"], vec!["ab"]),
        (r"\Aa\z|^b$", vec!["a", "b"], vec!["ab", "a\n"]),
        ("(^a)?b($)", vec!["ab", "b"], vec!["aab"]),
        ("(?m)a$\n^b", vec!["a\nb"], vec!["ab", "a\n"]),
        ("(?m)(^a$\n?)+", vec!["a", "a\na", "a\n"], vec!["aa"]),
        (r"(?-u:a\b b)", vec!["a b"], vec!["ab"]),
        (r"(?-u:\ba*\b)", vec!["a", "aa"], vec![""]),
    ] {
        for text in yes {
            assert!(matches(pattern, text), "{pattern} on {text:?}");
        }
        for text in no {
            assert!(!matches(pattern, text), "{pattern} on {text:?}");
        }
    }
}

#[test]
fn flags() {
    for (pattern, yes, no) in [
        ("(?i)straße", vec!["STRAßE", "StraẞE"], vec!["strasse"]),
        ("(?i-u)k", vec!["K"], vec!["\u{212a}"]),
        ("(?i)k", vec!["K", "\u{212a}"], vec!["c"]),
        ("a.b", vec!["a\rb", "aéb"], vec!["a\nb", "ab"]),
        ("(?s)a.b", vec!["a\nb"], vec!["ab"]),
        ("(?R)a.b", vec!["axb"], vec!["a\nb", "a\rb"]),
        ("(?x) a  b # c", vec!["ab"], vec!["a b"]),
        ("(?U)a+", vec!["a", "aaa"], vec![""]),
        ("a(?i)b|c", vec!["ab", "aB", "C"], vec!["Ab"]),
        (r"\d", vec!["7", "٣"], vec!["x"]),
        (r"(?-u)\d", vec!["7"], vec!["٣"]),
        (r"\w\s\W", vec!["é\u{a0}!"], vec!["! é"]),
        (r"[\w--\d]", vec!["é"], vec!["5"]),
    ] {
        for text in yes {
            assert!(matches(pattern, text), "{pattern} on {text:?}");
        }
        for text in no {
            assert!(!matches(pattern, text), "{pattern} on {text:?}");
        }
    }
}
