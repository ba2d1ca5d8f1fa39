//! Values over automata against naive twins: numbers counted, days counted, strings read by `serde_json`, lists looked
//! through, texts split in every way.

use crate::common::{compare, vocabulary};
use proptest::prelude::*;
use std::collections::BTreeSet;
use trie_rules::{
    AutomatonLimits, Clock, Machine, Moment, NumberBound, NumberOptions, Regular, RegularError, Rule, StringOptions,
    TextsError, Timespec, Value, check_rule, samples, texts,
};

fn regex(pattern: &str) -> Regular {
    Regular::regex(pattern).unwrap()
}

fn lawful(rule: &Regular) {
    let checked = check_rule(rule, 3000).unwrap_or_else(|broken| panic!("{rule:?}: {broken}"));
    assert!(checked.states > 0);
}

#[test]
fn small_ranges_of_integers() {
    let numerals: Vec<String> = (-130..=130).map(|number: i32| number.to_string()).collect();
    for low in -12..=12i128 {
        for high in low..=112 {
            let some = Regular::integer(Some(low), Some(high)).unwrap();
            let found: BTreeSet<Vec<u8>> = some.texts(1000).unwrap().into_iter().collect();
            let want: BTreeSet<Vec<u8>> = (low..=high).map(|number| number.to_string().into_bytes()).collect();
            assert_eq!(found, want, "{low}..={high}");
        }
        let (above, below) = (Regular::integer(Some(low), None).unwrap(), Regular::integer(None, Some(low)).unwrap());
        for numeral in &numerals {
            let number: i128 = numeral.parse().unwrap();
            assert_eq!(above.is_match(numeral.as_bytes()), number >= low, "{numeral} >= {low}");
            assert_eq!(below.is_match(numeral.as_bytes()), number <= low, "{numeral} <= {low}");
        }
        assert!(above.is_match(b"98765432109876543210987654321098765432109876543210"));
        assert!(below.is_match(b"-98765432109876543210987654321098765432109876543210"));
        assert_eq!(above.texts(10), Err(TextsError::Endless));
        lawful(&above);
        lawful(&below);
    }
    let any = Regular::integer(None, None).unwrap();
    for no in ["", "-", "-0", "00", "01", "+1", "1.0", "1-", "--1", "-01", " 1"] {
        assert!(!any.is_match(no.as_bytes()), "{no}");
    }
    assert!(any == regex("0|-?[1-9][0-9]*") || any.machine() == regex("0|-?[1-9][0-9]*").machine());
    let error = Regular::integer(Some(3), Some(2)).unwrap_err();
    assert_eq!(error, RegularError::EmptyRange { low: 3, high: 2 });
    let long = "98765432109876543210987654321098765432109876543210";
    assert_eq!(any.value(long.as_bytes()), Some(Value::LongInteger(long.into())));
    assert_eq!(any.value(b"-17"), Some(Value::Integer(-17)));
    assert_eq!(Regular::integer(Some(0), Some(9)).unwrap().value(b"-1"), None);
    for bound in [i128::MIN, i128::MAX] {
        let only = Regular::integer(Some(bound), Some(bound)).unwrap();
        assert_eq!(only.texts(1).unwrap(), [bound.to_string().into_bytes()]);
    }
}

fn wide() -> impl Strategy<Value = i128> {
    // Of all lengths.
    (any::<i128>(), 0..127u32).prop_map(|(number, shift)| number >> shift)
}

proptest! {
    #[test]
    fn wide_ranges_of_integers(one in wide(), other in wide(), numbers in prop::collection::vec(wide(), 30)) {
        let (low, high) = (one.min(other), one.max(other));
        let some = Regular::integer(Some(low), Some(high)).unwrap();
        let (above, below) = (Regular::integer(Some(low), None).unwrap(), Regular::integer(None, Some(high)).unwrap());
        let near = [low.saturating_sub(1), low, low.saturating_add(1), high.saturating_sub(1), high, 0];
        let near = near.into_iter().chain([high.saturating_add(1), -1, low / 10, high / 10]);
        for number in numbers.into_iter().chain(near) {
            let text = number.to_string();
            prop_assert_eq!(some.is_match(text.as_bytes()), (low..=high).contains(&number), "{}", text);
            prop_assert_eq!(above.is_match(text.as_bytes()), number >= low, "{}", text);
            prop_assert_eq!(below.is_match(text.as_bytes()), number <= high, "{}", text);
        }
        prop_assert!(check_rule(&some, 5000).unwrap().complete);
        prop_assert!(check_rule(&above, 5000).unwrap().complete);
    }

    #[test]
    fn numbers_are_those_of_json(text in "-?[0-9.eE+-]{0,9}", around in any::<f64>()) {
        let number = Regular::number_with(NumberOptions::default()).unwrap();
        for text in [text, format!("{around:e}")] {
            let json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            let digits = |exponent: &str| exponent.trim_start_matches(['-', '+']).len();
            let short = text.split(['e', 'E']).nth(1).is_none_or(|exponent| digits(exponent) < 3);
            if short {
                prop_assert_eq!(number.is_match(text.as_bytes()), json, "{}", &text);
                let read = number.value(text.as_bytes());
                let same = json.then(|| Value::Number(text.parse().unwrap()));
                prop_assert_eq!(read, same);
            }
        }
    }

    #[test]
    fn strings_are_those_of_json(
        pieces in prop::collection::vec(prop_oneof![
            "\\PC{0,3}",
            Just("\\n".to_owned()),
            Just("\\\"".to_owned()),
            Just("\"".to_owned()),
            Just("\\x".to_owned()),
            "\\\\u[0-9a-fA-F]{4}",
            "\\\\u[dD][89abAB][0-9a-f]{2}\\\\u[dD][c-f][0-9a-f]{2}",
            "\\\\u[dD][0-9a-fA-F]{3}",
            Just("\u{1}".to_owned()),
            Just("\u{7f}😀".to_owned()),
        ], 0..5),
        least in 0..4usize, more in prop::option::of(0..5usize), cut in any::<prop::sample::Index>(),
    ) {
        let text = pieces.concat();
        let mut options = StringOptions::default().min_chars(least);
        if let Some(more) = more {
            options = options.max_chars(least + more);
        }
        let (bare, quoted) = (Regular::string(options).unwrap(), Regular::string(options.quotes(true)).unwrap());
        let with_quotes = format!("\"{text}\"");
        let json = serde_json::from_str::<String>(&with_quotes).ok();
        let fits = |said: &String| {
            let chars = said.chars().count();
            chars >= least && more.is_none_or(|more| chars <= least + more)
        };
        let want = json.filter(fits).map(Value::String);
        prop_assert_eq!(bare.value(text.as_bytes()), want.clone(), "{}", text);
        prop_assert_eq!(quoted.value(with_quotes.as_bytes()), want, "{}", text);
        prop_assert!(!quoted.is_match(text.as_bytes()) || text.len() > 1);
        // Bytes that end inside a character.
        let cut = &text.as_bytes()[..cut.index(text.len() + 1)];
        if std::str::from_utf8(cut).is_err() {
            prop_assert!(!bare.is_match(cut));
        }
        prop_assert!(check_rule(&bare, 500).is_ok() && check_rule(&quoted, 500).is_ok());
    }
}

#[test]
fn digits_of_numbers() {
    let small = NumberOptions::default().integer_digits(2).fraction_digits(1).exponent_digits(0);
    let small = Regular::number_with(small).unwrap();
    assert_eq!(small.machine(), regex("-?(0|[1-9][0-9]?)([.][0-9])?").machine());
    assert_eq!(small.texts(5000).unwrap().len(), 2 * 100 * 11);
    let error = Regular::number_with(NumberOptions::default().integer_digits(0)).unwrap_err();
    assert!(error.to_string().contains("integer_digits is 0"), "{error}");
    lawful(&Regular::number_with(NumberOptions::default()).unwrap());
}

/// The days of all years, as a pattern.
fn days() -> String {
    let leap = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)";
    let year = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)";
    let day = "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)\
        |02-(?:0[1-9]|1[0-9]|2[0-8])";
    format!("{year}-(?:{day})|{leap}-02-29")
}

/// Days are said twice: by an automaton, and as a pattern.
#[test]
fn both_definitions_of_days_are_one_language() {
    let (date, pattern) = (Regular::date(), regex(&days()));
    assert_eq!(date.machine(), pattern.machine(), "smallest automata of one language are the same");
    let mut seen = 0u32;
    for year in 0..=9999 {
        for (month, day) in (0..=13).flat_map(|month| (0..=32).map(move |day| (month, day))) {
            let text = format!("{year:04}-{month:02}-{day:02}");
            let there = date.is_match(text.as_bytes());
            assert_eq!(pattern.is_match(text.as_bytes()), there, "{text}");
            seen += u32::from(there);
            if year % 41 == 0 && day % 5 == 0 {
                for (at, byte) in (0..text.len()).flat_map(|at| b"0129-/:x ".iter().map(move |byte| (at, *byte))) {
                    let mut other = text.clone().into_bytes();
                    other[at] = byte;
                    assert_eq!(date.is_match(&other), pattern.is_match(&other), "{other:?}");
                    other.insert(at, byte);
                    assert!(!date.is_match(&other) && !pattern.is_match(&other), "{other:?}");
                }
            }
        }
    }
    assert_eq!(seen, 3_652_059);
}

#[test]
fn every_time() {
    let parts =
        ["[01][0-9]|2[0-3]", "[0-5][0-9]", "[0-5][0-9]", "[0-9]{3}", "[0-9]{3}"].map(|part| format!("({part})"));
    let mut pattern = format!("{}:{}", parts[0], parts[1]);
    let day = days();
    for (timespec, (mark, more)) in Timespec::ALL.into_iter().zip([("", 1), (":", 2), ("[.]", 3), ("", 4)]) {
        if more > 1 {
            pattern = format!("{pattern}{mark}{}", parts[more]);
        }
        for (utc, zone) in [(false, ""), (true, "Z")] {
            let time = Regular::moment(Moment::Time { timespec, utc }, None, None).unwrap();
            assert_eq!(time.machine(), regex(&format!("{pattern}{zone}")).machine(), "{timespec:?}");
            lawful(&time);
            let moment = Regular::moment(Moment::DateTime { timespec, utc }, None, None).unwrap();
            assert_eq!(moment.machine(), regex(&format!("({day})T{pattern}{zone}")).machine(), "{timespec:?}");
            lawful(&moment);
            assert_eq!(Timespec::from_name(timespec.name()), Some(timespec));
        }
    }
    assert_eq!(Timespec::from_name("hours"), None);
    let time = Clock { hour: 23, minute: 5, second: 0, microsecond: 120_000, utc: false };
    let value = |timespec, text: &str| {
        Regular::moment(Moment::Time { timespec, utc: false }, None, None).unwrap().value(text.as_bytes())
    };
    assert_eq!(value(Timespec::Milliseconds, "23:05:00.120"), Some(Value::Time(time)));
    assert_eq!(value(Timespec::Minutes, "23:05"), Some(Value::Time(Clock { microsecond: 0, ..time })));
    assert_eq!(value(Timespec::Seconds, "24:00:00"), None);
    assert_eq!(value(Timespec::Seconds, "23:59:60"), None);
}

#[test]
fn every_day() {
    let date = Regular::date();
    lawful(&date);
    let (mut days, mut year, mut month, mut day) = (0u32, 1u16, 1u8, 1u8);
    while year < 10_000 {
        let text = format!("{year:04}-{month:02}-{day:02}");
        assert_eq!(date.value(text.as_bytes()), Some(Value::Date { year, month, day }), "{text}");
        days += 1;
        day += 1;
        let leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
        let last = match month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day > last {
            assert!(!date.is_match(format!("{year:04}-{month:02}-{day:02}").as_bytes()), "{year}-{month}-{day}");
            (day, month) = (1, month + 1);
        }
        if month > 12 {
            (month, year) = (1, year + 1);
        }
    }
    // All of them, and no others: as many texts as days.
    assert_eq!(days, 3_652_059);
    assert_eq!(date.texts(1_000_000), Err(TextsError::TooMany { limit: 1_000_000 }));
    assert_eq!(texts_of(&date), u64::from(days));
    for no in ["0000-01-01", "2024-13-01", "2024-00-10", "2024-01-00", "2024-1-01", "2024-01-011", "1900-02-29"] {
        assert!(!date.is_match(no.as_bytes()), "{no}");
    }
}

/// How many texts an automaton has that ends: by states.
fn texts_of(rule: &Regular) -> u64 {
    let mut level = std::collections::HashMap::from([(rule.start(), 1u64)]);
    let mut found = 0;
    while !level.is_empty() {
        let mut next = std::collections::HashMap::new();
        for (state, ways) in level {
            found += ways * u64::from(rule.is_end(&state));
            for after in (0..=255).filter_map(|byte| rule.step(&state, byte)) {
                *next.entry(after).or_default() += ways;
            }
        }
        level = next;
    }
    found
}

#[test]
fn long_strings() {
    let begin = std::time::Instant::now();
    let long = Regular::string(StringOptions::default().max_chars(4000)).unwrap();
    eprintln!("4000 characters: {:?}", begin.elapsed());
    assert!(long.is_match("é".repeat(4000).as_bytes()) && !long.is_match("é".repeat(4001).as_bytes()));
    assert!(long.is_match(r"\u00e9".repeat(4000).as_bytes()) && !long.is_match(r"\u00e9".repeat(4001).as_bytes()));
    let error = Regular::string(StringOptions::default().max_chars(1 << 40)).unwrap_err().to_string();
    assert!(error.contains("more than 33554432 bytes") && error.contains("raise the limit"), "{error}");
    let larger = StringOptions::default().max_chars(20_000).automaton(AutomatonLimits::bytes(64 << 20));
    assert!(Regular::string(larger).unwrap().is_match("a".repeat(20_000).as_bytes()));
    let error = Regular::string(StringOptions::default().min_chars(3).max_chars(2)).unwrap_err();
    assert_eq!(error, RegularError::NoLength { min_chars: 3, max_chars: 2 });
    let empty = Regular::string(StringOptions::default().max_chars(0).quotes(true)).unwrap();
    assert_eq!(empty.texts(2).unwrap(), [b"\"\"".to_vec()]);
}

fn pattern() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "ab?", "(ab)*", "b{1,3}", "a|bc", "[ab]c", "(a|b)*c?", "", "aa|a"])
        .prop_map(Into::into)
}

fn list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abc]{0,4}", 1..12)
}

/// Lists that are too long to become automata.
fn padded(texts: &[String]) -> Vec<String> {
    texts.iter().cloned().chain([format!("z{}", "y".repeat(5000))]).collect()
}

proptest! {
    #[test]
    fn one_of_rules_and_lists(patterns in prop::collection::vec(pattern(), 0..3), texts in list(),
                              inner in list(), tries in prop::collection::vec("[abc]{0,6}", 40),
                              pieces in vocabulary()) {
        let inner_list = Regular::one_of([], &inner).unwrap();
        let rules = patterns.iter().map(|pattern| regex(pattern)).chain([inner_list]);
        let one_of = Regular::one_of(rules, &texts).unwrap();
        let automata: Vec<Regular> = patterns.iter().map(|pattern| regex(pattern)).collect();
        for text in tries.iter().chain(&texts).chain(&inner) {
            let entry = texts.iter().chain(&inner).position(|entry| entry == text);
            let matched = automata.iter().any(|rule| rule.is_match(text.as_bytes()));
            prop_assert_eq!(one_of.is_match(text.as_bytes()), entry.is_some() || matched, "{}", text);
            let want = entry.map(|index| Value::Entry { index, text: text.clone() });
            let want = want.or_else(|| matched.then(|| Value::Text(text.clone())));
            prop_assert_eq!(one_of.value(text.as_bytes()), want);
            // The state knows, too.
            let Machine::Choice(choice) = one_of.machine() else { panic!() };
            let end = text.bytes().try_fold(choice.start(), |state, byte| choice.step(&state, byte));
            prop_assert_eq!(end.and_then(|end| choice.entry(&end)), entry);
        }
        prop_assert!(check_rule(&one_of, 5000).is_ok());
        compare(one_of, &pieces, &[0], 60)?;
    }

    #[test]
    fn one_after_the_other(patterns in prop::collection::vec(pattern(), 1..4), texts in list(), at in 0..4usize,
                           long in any::<bool>(), tries in prop::collection::vec("[abc]{0,8}", 40),
                           pieces in vocabulary()) {
        let mut rules: Vec<Regular> = patterns.iter().map(|pattern| regex(pattern)).collect();
        let given = if long { padded(&texts) } else { texts.clone() };
        rules.insert(at.min(rules.len()), Regular::one_of([], &given).unwrap());
        let whole = rules[1..].iter().try_fold(rules[0].clone(), |whole, rule| whole.followed_by(rule)).unwrap();
        prop_assert_eq!(matches!(whole.machine(), Machine::Parts(_)), long);
        let splits = |text: &str| {
            let mut ends = BTreeSet::from([0]);
            for rule in &rules {
                let text = text.as_bytes();
                let after = |&from: &usize| (from..=text.len()).filter(move |&to| rule.is_match(&text[from..to]));
                ends = ends.iter().flat_map(after).collect();
            }
            ends.contains(&text.len())
        };
        for text in &tries {
            prop_assert_eq!(whole.is_match(text.as_bytes()), splits(text), "{}", text);
        }
        // In another order of putting together.
        let (first, last) = rules.split_first().unwrap();
        let tail = last[1..].iter().try_fold(last[0].clone(), |whole, rule| whole.followed_by(rule)).unwrap();
        let other = first.followed_by(&tail).unwrap();
        for text in &tries {
            prop_assert_eq!(whole.is_match(text.as_bytes()), other.is_match(text.as_bytes()), "{}", text);
        }
        prop_assert!(check_rule(&whole, 8000).is_ok());
        compare(whole.clone(), &pieces, &[0], 60)?;
        // And one of it and something else.
        let either = Regular::one_of([whole.clone(), regex("cc")], &["bbb"]).unwrap();
        for text in tries.iter().map(String::as_str).chain(["cc", "bbb"]) {
            let want = whole.is_match(text.as_bytes()) || text == "cc" || text == "bbb";
            prop_assert_eq!(either.is_match(text.as_bytes()), want, "{}", text);
        }
    }

    #[test]
    fn texts_are_all_and_no_others(pattern in pattern(), other in pattern(), list in list(), limit in 0..40usize) {
        let both = regex(&pattern).followed_by(&regex(&other)).unwrap();
        let rule = Regular::one_of([both], &list).unwrap();
        let stars = pattern.contains('*') || other.contains('*');
        // Without a star nothing is longer than 10 bytes.
        let mut all = vec![(rule.start(), Vec::new())];
        let mut want = Vec::new();
        while !stars && !all.is_empty() {
            let ends = all.iter().filter(|(state, _)| rule.is_end(state));
            want.extend(ends.map(|(_, text): &(_, Vec<u8>)| text.clone()));
            let next = |(state, text): &(_, Vec<u8>)| {
                let after = |byte| Some((rule.step(state, byte)?, [text.as_slice(), &[byte]].concat()));
                (0..=255).filter_map(after).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(next).collect();
        }
        let want = match () {
            () if stars => Err(TextsError::Endless),
            () if want.len() > limit => Err(TextsError::TooMany { limit }),
            () => Ok(want),
        };
        prop_assert_eq!(rule.texts(limit), want.clone());
        prop_assert_eq!(texts(&rule, limit), want);
    }
}

#[test]
fn texts_of_grammars() {
    let grammar = |text: &str| trie_rules::Grammar::new(text).unwrap();
    let few = grammar("%start s\ns : \"a\" t | \"b\" ;\nt : \"c\" | \"d\" | ;");
    assert_eq!(texts(&few, 9).unwrap(), [b"a".to_vec(), b"b".to_vec(), b"ac".to_vec(), b"ad".to_vec()]);
    assert_eq!(texts(&few, 3), Err(TextsError::TooMany { limit: 3 }));
    // A stack that grows is no state that comes back.
    let nested = grammar("%start s\ns : | \"a\" s \"b\" ;");
    assert_eq!(texts(&nested, 1000), Err(TextsError::TooMany { limit: 1000 }));
    let blanks = grammar("SKIP : \"/ +/\" ;\ns : \"x\" ;");
    assert_eq!(texts(&blanks, 1000), Err(TextsError::Endless));
    assert_eq!(texts(&trie_rules::Example::Json.grammar().unwrap(), 1000), Err(TextsError::Endless));
}

/// It never ends, nor comes back: a rule that breaks the laws.
#[derive(Debug)]
struct Counts;

impl Rule for Counts {
    type State = u64;
    fn start(&self) -> u64 {
        0
    }
    fn step(&self, state: &u64, byte: u8) -> Option<u64> {
        (byte == b'a').then_some(state + 1)
    }
    fn is_end(&self, _: &u64) -> bool {
        false
    }
}

#[test]
fn what_is_never_settled() {
    assert_eq!(texts(&Counts, 5), Err(TextsError::Unsettled { states: 100_320, limit: 5 }));
}

#[test]
fn nothing_to_choose_from() {
    let none: [&str; 0] = [];
    assert_eq!(Regular::one_of([], &none).unwrap_err(), RegularError::NoTexts);

    let mut nested = Regular::integer(Some(0), Some(9)).unwrap();
    for _ in 0..256 {
        nested = Regular::one_of([nested], &["a"]).unwrap();
    }
    assert_eq!(nested.value(b"7"), Some(Value::Integer(7)));
    assert_eq!(Regular::one_of([nested], &["a"]).unwrap_err(), RegularError::TooDeep { most: 256 });
    let only = Regular::one_of([], &[""]).unwrap();
    assert!(only.is_match(b"") && !only.is_match(b"a"));
    assert_eq!(only.texts(5).unwrap(), [Vec::<u8>::new()]);
}

#[test]
fn equal_texts_make_equal_automata() {
    assert_eq!(regex("a|ab|abc"), regex("a(b(c)?)?"));
    assert_eq!(Regular::integer(Some(0), Some(99)).unwrap().machine(), regex("0|[1-9][0-9]?").machine());
    assert_eq!(regex("a").followed_by(&regex("b*")).unwrap(), regex("ab*"));
    assert_ne!(regex("a"), regex("b"));
    assert_ne!(regex("12"), Regular::integer(Some(12), Some(12)).unwrap(), "they are read differently");
}

#[test]
fn automata_that_grow_together() {
    let begin = std::time::Instant::now();
    let (one, other) = (regex("[ab]*a"), regex("[ab]{24}"));
    let error = one.followed_by(&other).unwrap_err().to_string();
    assert!(error.contains("more than 33554432 bytes"), "{error}");
    let error = one.then_with(&regex("[ab]{12}"), AutomatonLimits::bytes(1 << 14)).unwrap_err().to_string();
    assert!(error.contains("more than 16384 bytes"), "{error}");
    assert!(one.followed_by(&regex("[ab]{8}")).unwrap().is_match(b"bbabbbbbbbb"));
    eprintln!("refused in {:?}", begin.elapsed());
}

/// A number in thousandths.
fn thousandths(text: &str) -> Option<i64> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    let size = whole.parse::<i64>().ok()? * 1000 + fraction.parse::<i64>().ok()?;
    Some(if negative { -size } else { size })
}

fn in_thousandths(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", number.abs() / 1000, number.abs() % 1000)
}

fn digits(fraction: u32) -> NumberOptions {
    NumberOptions::default().integer_digits(3).fraction_digits(fraction).exponent_digits(0)
}

#[test]
fn every_number_of_small_ranges() {
    // All texts with up to two digits on each side.
    let mut written: Vec<String> = vec![String::new()];
    for _ in 0..5 {
        let longer = |text: &String| "-.0129".chars().map(move |char| format!("{text}{char}")).collect::<Vec<_>>();
        let last = written.iter().max_by_key(|text| text.len()).unwrap().len();
        let more: Vec<String> = written.iter().filter(|text| text.len() == last).flat_map(longer).collect();
        written.extend(more);
    }
    let is_number = |text: &str| {
        let size = text.strip_prefix('-').unwrap_or(text);
        let (whole, fraction) = size.split_once('.').unwrap_or((size, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0'))
    };
    let numbers: Vec<&str> = written.iter().map(String::as_str).filter(|text| is_number(text)).collect();
    assert!(numbers.len() > 500);
    let ends = ["-12.9", "-2", "-0.1", "0", "0.01", "0.1", "1", "1.09", "2", "12", "19.2", "1e2", "-1.2e1", "29e-1"];
    for (a, low) in ends.iter().map(|end| (end.parse::<f64>().unwrap(), end)) {
        for (b, high) in ends.iter().map(|end| (end.parse::<f64>().unwrap(), end)) {
            for (without_low, without_high) in [(false, false), (true, false), (false, true), (true, true)] {
                let (low, high) = (NumberBound::new(low, without_low), NumberBound::new(high, without_high));
                assert_eq!(low.compare(&high), a.partial_cmp(&b).unwrap());
                let made = Regular::number_between(Some(&low), Some(&high), None, digits(3));
                assert_eq!(made.is_ok(), low.leaves_room_to(&high), "{low:?} {high:?}");
                let Ok(made) = made else { continue };
                for &text in &numbers {
                    let value: f64 = text.parse().unwrap();
                    let above = if without_low { value > a } else { value >= a };
                    let below = if without_high { value < b } else { value <= b };
                    let is_minus_zero = text.starts_with('-') && value == 0.0;
                    let wanted = above && below && !is_minus_zero;
                    assert_eq!(made.is_match(text.as_bytes()), wanted, "{low:?} {high:?} {text}");
                }
                lawful(&made);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(400), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn ranges_of_numbers(
        one in -20_000..20_000i64, other in -20_000..20_000i64, without in any::<(bool, bool)>(),
        numbers in prop::collection::vec(-20_000..20_000i64, 40),
    ) {
        let (a, b) = (one.min(other), one.max(other));
        let low = NumberBound::new(&in_thousandths(a), without.0);
        let high = NumberBound::new(&in_thousandths(b), without.1);
        let Ok(both) = Regular::number_between(Some(&low), Some(&high), None, digits(3)) else {
            prop_assert!(a == b && (without.0 || without.1));
            return Ok(());
        };
        let above = Regular::number_between(Some(&low), None, None, digits(3)).unwrap();
        let below = Regular::number_between(None, Some(&high), None, digits(3)).unwrap();
        for number in numbers.into_iter().chain([a, b, a + 1, b - 1, 0]) {
            let text = in_thousandths(number);
            let text = if number % 2 == 0 { text.as_str() } else { text.trim_end_matches('0').trim_end_matches('.') };
            let text = if text == "-0" { "0" } else { text };
            prop_assert_eq!(thousandths(text), Some(number));
            let from = if without.0 { number > a } else { number >= a };
            let to = if without.1 { number < b } else { number <= b };
            prop_assert_eq!(above.is_match(text.as_bytes()), from, "{} {}", text, a);
            prop_assert_eq!(below.is_match(text.as_bytes()), to, "{} {}", text, b);
            prop_assert_eq!(both.is_match(text.as_bytes()), from && to, "{} {} {}", text, a, b);
        }
        for text in samples(&both, 20, 7) {
            let number = thousandths(std::str::from_utf8(&text).unwrap()).unwrap();
            prop_assert!(a <= number && number <= b);
        }
    }

    /// All numbers with so many digits, one by one, of bounds that may have more.
    #[test]
    fn ranges_with_few_digits(
        one in -12_000..12_000i64, other in -12_000..12_000i64, without in any::<(bool, bool)>(),
        whole in 1..3u32, fraction in 0..3u32,
    ) {
        let (a, b) = (one.min(other), one.max(other));
        let bound = |number, without| NumberBound::read(&in_thousandths(number), without).unwrap();
        let (low, high) = (bound(a, without.0), bound(b, without.1));
        let options = digits(fraction).integer_digits(whole);
        let made = Regular::number_between(Some(&low), Some(&high), None, options);
        let mut wanted = BTreeSet::new();
        for digits in 0..=fraction {
            let (step, most) = (10i64.pow(3 - digits), 10i64.pow(whole + 3));
            for number in (1 - most..most).filter(|number| number % step == 0) {
                let from = if without.0 { number > a } else { number >= a };
                let to = if without.1 { number < b } else { number <= b };
                if from && to {
                    let text = in_thousandths(number);
                    let cut = if digits == 0 { 4 } else { 3 - digits as usize };
                    wanted.insert(text.as_bytes()[..text.len() - cut].to_vec());
                }
            }
        }
        match made {
            Ok(made) => {
                prop_assert_eq!(made.texts(100_000).unwrap().into_iter().collect::<BTreeSet<_>>(), wanted);
                lawful(&made);
            }
            Err(error) => {
                prop_assert!(wanted.is_empty());
                prop_assert_eq!(error.to_string(), "no text matches");
            }
        }
    }

    /// A bound is written back as the same number.
    #[test]
    fn bounds_are_read_and_written(number in any::<f64>().prop_filter("finite", |number| number.is_finite())) {
        for text in [format!("{number:e}"), number.to_string()] {
            let bound = NumberBound::read(&text, false).unwrap();
            prop_assert_eq!(bound.to_string().parse::<f64>().unwrap().to_bits(), (number + 0.0).to_bits());
            prop_assert_eq!(&NumberBound::read(&bound.to_string(), false).unwrap(), &bound);
        }
    }

    #[test]
    fn multiples_of_numbers(
        one in -5_000..5_000i64, other in -5_000..5_000i64, step in 1..3_000i64,
        numbers in prop::collection::vec(-5_000..5_000i64, 60),
    ) {
        let (a, b) = (one.min(other), one.max(other));
        let bound = |number: i64| NumberBound::new(&in_thousandths(number), false);
        let made = Regular::number_between(Some(&bound(a)), Some(&bound(b)), Some(&bound(step)), digits(3));
        let Ok(made) = made else {
            prop_assert!((a..=b).all(|number| number % step != 0));
            return Ok(());
        };
        for number in numbers.into_iter().chain((-5..=5).map(|times| times * step)) {
            let text = in_thousandths(number);
            let short = text.trim_end_matches('0').trim_end_matches('.');
            for text in [text.as_str(), if short == "-0" { "0" } else { short }] {
                let wanted = a <= number && number <= b && number % step == 0;
                prop_assert_eq!(made.is_match(text.as_bytes()), wanted, "{} in {}..{} by {}", text, a, b, step);
            }
        }
    }
}

#[test]
fn what_is_no_bound_is_refused() {
    for given in
        ["", "-", "x", "1.", ".5", "1e", "e1", "1e5000", "--1", "1 ", "NaN", "inf", "0x1", "1e99999999999999999999"]
    {
        let said = NumberBound::read(given, false).unwrap_err().to_string();
        assert!(said.contains("invalid bound"), "{said}");
    }
    let read = |text| NumberBound::read(text, false).unwrap();
    assert_eq!(read("-0.0"), read("0"));
    assert_eq!(read("1.50e+2").to_string(), "150");
    assert_eq!(read("-125E-4").to_string(), "-0.0125");
    let (low, high) = (read("0"), read("1e25"));
    let error = Regular::number_between(Some(&low), Some(&high), None, NumberOptions::default()).unwrap_err();
    assert_eq!(error, RegularError::Exponents);
    let long = Regular::number_between(Some(&low), Some(&high), None, NumberOptions::of_range(Some(&low), Some(&high)));
    assert!(long.unwrap().is_match(b"10000000000000000000000000"), "as many digits as the bounds have");
    let error = Regular::number_between(Some(&low), None, None, digits(2).integer_digits(0)).unwrap_err();
    assert_eq!(error, RegularError::NoDigits);
}

#[test]
fn steps_that_cannot_be_counted() {
    for step in ["0", "0.0", "10001", "1.0001"] {
        let made = Regular::number_between(None, None, Some(&NumberBound::new(step, false)), digits(2));
        assert_eq!(made.unwrap_err(), RegularError::Step, "{step}");
    }
    let tens = Regular::number_between(None, None, Some(&NumberBound::new("1e1", false)), digits(0)).unwrap();
    assert!(tens.is_match(b"120") && tens.is_match(b"0") && tens.is_match(b"-30") && !tens.is_match(b"125"));
    assert!(!tens.is_match(b"30.0"), "without digits after the point");
    lawful(&tens);
}

/// All texts of a repetition of few texts, by counting.
fn repeated(
    items: &[String],
    separator: &str,
    counts: std::ops::RangeInclusive<usize>,
    longest: usize,
) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut level = BTreeSet::from([String::new()]);
    for count in 0..=*counts.end() {
        if counts.contains(&count) {
            all.extend(level.iter().filter(|text| text.len() <= longest).cloned());
        }
        let separator = if count == 0 { "" } else { separator };
        level = level
            .iter()
            .flat_map(|text| items.iter().map(move |item| format!("{text}{separator}{item}")))
            .filter(|text| text.len() <= longest)
            .collect();
    }
    all
}

proptest! {
    #[test]
    fn repetitions_are_counted(patterns in prop::collection::vec(pattern(), 0..3), texts in list(),
                               long in any::<bool>(), min in 0..4usize, more in prop::option::of(0..4usize),
                               separator in prop::sample::select(vec!["", ",", "a", "ab", "ca"]),
                               tries in prop::collection::vec("[abc,]{0,7}", 40), pieces in vocabulary()) {
        const LONGEST: usize = 7;
        let given = if long { padded(&texts) } else { texts.clone() };
        let rule = Regular::one_of(patterns.iter().map(|pattern| regex(pattern)), &given).unwrap();
        let max = more.map(|more| min + more);
        let whole = rule.repeat(min, max, separator).unwrap();
        // No times at all: one automaton of nothing.
        prop_assert_eq!(matches!(whole.machine(), Machine::Parts(_)), long && max != Some(0));
        // Items up to the longest text that is looked at, from the alphabet of all of them.
        let mut every = vec![String::new()];
        let mut items: Vec<String> = Vec::new();
        for _ in 0..=LONGEST {
            items.extend(every.iter().filter(|text| rule.is_match(text.as_bytes())).cloned());
            every = every.iter().flat_map(|text| ["a", "b", "c"].map(|more| format!("{text}{more}"))).collect();
        }
        // Without an end: of an empty item there may be any number, of others no more than there are bytes.
        let most = max.unwrap_or(min.max(1) + LONGEST + 1);
        let want = repeated(&items, separator, min..=most, LONGEST);
        for text in tries.iter().chain(&want) {
            let is_one = want.contains(text);
            prop_assert_eq!(whole.is_match(text.as_bytes()), is_one, "{:?}", text);
            let Some(found) = whole.items(text.as_bytes()) else {
                prop_assert!(!is_one, "{:?}", text);
                continue;
            };
            let found: Vec<&str> = found.into_iter().map(|item| &text[item]).collect();
            prop_assert!(found.len() >= min && max.is_none_or(|max| found.len() <= max), "{:?}", found);
            prop_assert!(found.iter().all(|item| rule.is_match(item.as_bytes())), "{:?}", found);
            prop_assert_eq!(&found.join(separator), text);
            let Some(Value::List(values)) = whole.value(text.as_bytes()) else { panic!("{text:?}") };
            let each: Vec<Value> = found.iter().map(|item| rule.value(item.as_bytes()).unwrap()).collect();
            prop_assert_eq!(values, each);
        }
        prop_assert!(check_rule(&whole, 3000).is_ok());
        compare(whole, &pieces, &[0], 60)?;
    }
}

#[test]
fn repetitions_in_each_other_and_with_others() {
    let row = Regular::integer(Some(0), Some(99)).unwrap().repeat(2, Some(3), ",").unwrap();
    let table = row.repeat(1, None, "\n").unwrap();
    assert!(table.is_match(b"1,2\n3,4,5\n6,7") && !table.is_match(b"1,2\n3") && !table.is_match(b"1,2\n"));
    let numbers = |text: &[u8]| match table.value(text) {
        Some(Value::List(rows)) => rows.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(numbers(b"1,2\n3,4,5"), 2);
    let whole = regex("\\[").followed_by(&row).unwrap().followed_by(&regex("\\]")).unwrap();
    assert!(whole.is_match(b"[1,2,3]") && !whole.is_match(b"[1]"));
    let either = Regular::one_of([row.clone(), regex("none")], &[] as &[&str]).unwrap();
    assert!(matches!(either.value(b"1,2"), Some(Value::List(_))) && either.is_match(b"none"));
    lawful(&table);
    // As the expression says it.
    let same = regex("[0-9]{2}(, [0-9]{2}){4,499}");
    let counted = regex("[0-9]{2}").repeat(5, Some(500), ", ").unwrap();
    assert_eq!(counted.machine(), same.machine());
    assert_eq!(regex("a*").repeat(7, None, "").unwrap().machine(), regex("a*").machine());
    assert_eq!(regex("a").repeat(0, Some(0), ",").unwrap().texts(3).unwrap(), [b"".to_vec()]);
    assert_eq!(regex("a").repeat(0, None, "").unwrap().machine(), regex("a*").machine());
}

#[test]
fn repetitions_that_are_too_large_are_refused() {
    let error = regex("a").repeat(3, Some(2), "").unwrap_err();
    assert_eq!(error, RegularError::NoTimes { min: 3, max: 2 });
    for (min, max) in [(usize::MAX, None), (0, Some(usize::MAX)), (0, Some(1 << 40)), (3_000_000, Some(3_000_000))] {
        let error = regex("[a-z]{3}").repeat(min, max, ", ").unwrap_err().to_string();
        assert!(error.contains("more than 33554432 bytes"), "{error}");
    }
    // All ways to split are open at once.
    let error = regex("(a|b)*a(a|b){8}").repeat(0, Some(100), "").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("more than"), "{error}");
    let mut deep = regex("a");
    let error = (0..300).find_map(|_| match deep.repeat(1, Some(1), "") {
        Ok(deeper) => {
            deep = deeper;
            None
        }
        Err(error) => Some(error),
    });
    assert_eq!(error, Some(RegularError::TooDeep { most: 256 }));
}
