//! Sets of numbers against fractions that are counted out, text by text.

use proptest::prelude::*;
use std::collections::{HashSet, VecDeque};
use trie_rules::{Decimal, NumberError, NumberMachine, NumberSet, NumberSpelling, NumberState};

/// A number in thousandths, as text.
fn thousandths(number: i64) -> String {
    let (sign, size) = (if number < 0 { "-" } else { "" }, number.unsigned_abs());
    format!("{sign}{}.{:03}", size / 1000, size % 1000)
}

fn decimal(text: &str) -> Decimal {
    Decimal::read(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A set as it was drawn: everything in thousandths.
#[derive(Debug, Clone)]
struct Drawn {
    low: Option<(i64, bool)>,
    high: Option<(i64, bool)>,
    except: Vec<i64>,
    steps: Vec<i64>,
    not: Vec<i64>,
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        2 => -3_000..3_000i64,
        2 => (-30..30i64).prop_map(|whole| whole * 1000),
        2 => (-300..300i64).prop_map(|tenths| tenths * 100),
        1 => -200_000..200_000i64,
        1 => Just(0),
        1 => Just(100_000),
        1 => -9..9i64,
    ]
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let bound = || prop::option::weighted(0.7, (number(), any::<bool>()));
    let step = || {
        prop::sample::select(vec![
            1, 2, 5, 7, 10, 25, 100, 125, 250, 333, 500, 1000, 1500, 2000, 3000, 7000, 10_000, 13_000,
        ])
    };
    let few = |count| prop::collection::vec(step(), 0..count);
    (bound(), bound(), prop::collection::vec(number(), 0..4), few(3), few(3))
        .prop_map(|(low, high, except, steps, not)| Drawn { low, high, except, steps, not })
}

impl Drawn {
    fn set(&self) -> NumberSet {
        let mut set = NumberSet::full();
        if let Some((low, excluded)) = self.low {
            set = set.at_least(&decimal(&thousandths(low)), excluded);
        }
        if let Some((high, excluded)) = self.high {
            set = set.at_most(&decimal(&thousandths(high)), excluded);
        }
        for &except in &self.except {
            set = set.remove(&decimal(&thousandths(except)));
        }
        for &step in &self.steps {
            set = set.multiple_of(&decimal(&thousandths(step))).unwrap();
        }
        for &not in &self.not {
            set = set.no_multiple_of(&decimal(&thousandths(not))).unwrap();
        }
        set
    }

    /// Whether a number is in it, in millionths.
    fn has(&self, number: i64) -> bool {
        self.low.is_none_or(|(low, out)| number > low * 1000 || (number == low * 1000 && !out))
            && self.high.is_none_or(|(high, out)| number < high * 1000 || (number == high * 1000 && !out))
            && !self.except.iter().any(|except| except * 1000 == number)
            && self.steps.iter().all(|step| number % (step * 1000) == 0)
            && self.not.iter().all(|not| number % (not * 1000) != 0)
    }
}

/// Millionths of a text of JSON; `None` for what is none, or has more digits.
fn read(text: &str) -> Option<i64> {
    let size = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match size.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (size, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty()
        || (whole.len() > 1 && whole.starts_with('0'))
        || !digits(whole)
        || !digits(fraction)
        || fraction.len() > 6
    {
        return None;
    }
    let size: i64 = format!("{whole}{fraction:0<6}").parse().ok()?;
    match (size, text.starts_with('-')) {
        (0, true) => None,
        (_, minus) => Some(if minus { -size } else { size }),
    }
}

/// Texts that could be numbers of the set: all short ones, and those around its bounds.
fn texts(drawn: &Drawn) -> HashSet<String> {
    let mut all = HashSet::new();
    let mut ways = vec![String::new()];
    for _ in 0..4 {
        ways = ways.iter().flat_map(|text| "-.0123456789".chars().map(move |char| format!("{text}{char}"))).collect();
        ways.retain(|text| text.matches('.').count() < 2 && !text[1..].contains('-'));
        all.extend(ways.iter().cloned());
    }
    let bounds = drawn.low.iter().chain(&drawn.high).map(|bound| bound.0).chain(drawn.except.iter().copied());
    for bound in bounds {
        for millionths in [-1_000_000, -1000, -500, -1, 0, 1, 500, 1000, 1_000_000].map(|near| bound * 1000 + near) {
            let (sign, size) = (if millionths < 0 { "-" } else { "" }, millionths.unsigned_abs());
            let text = format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000);
            all.extend((1..=text.len()).map(|end| text[..end].to_owned()));
        }
        for step in &drawn.steps {
            for near in -2..=2 {
                let text = thousandths((bound / step + near) * step);
                all.extend((1..=text.len()).map(|end| text[..end].to_owned()));
            }
        }
    }
    all
}

/// Tens to a power, where they are whole.
fn scaled(millionths: i64, exponent: i32) -> Option<i64> {
    let power = 10i64.pow(exponent.unsigned_abs());
    if exponent >= 0 { Some(millionths * power) } else { (millionths % power == 0).then(|| millionths / power) }
}

fn after(machine: &NumberMachine, text: &str) -> Option<NumberState> {
    text.bytes().try_fold(machine.start(), |state, byte| machine.step(&state, byte))
}

fn can_end(machine: &NumberMachine, from: NumberState) -> bool {
    let mut seen = HashSet::from([from]);
    let mut queue = VecDeque::from([from]);
    while let Some(state) = queue.pop_front() {
        if machine.is_end(&state) {
            return true;
        }
        queue.extend((0..=255).filter_map(|byte| machine.step(&state, byte)).filter(|&state| seen.insert(state)));
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(250), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn numbers_are_those_of_the_set_and_nothing_is_a_dead_end(drawn in drawn(), fraction in any::<bool>()) {
        let set = drawn.set();
        let legal = |text: &str| {
            read(text).is_some_and(|number| drawn.has(number)) && (fraction || !text.contains('.'))
        };
        let all = texts(&drawn);
        let Some(machine) = NumberMachine::new(&set, NumberSpelling::default().fraction(fraction)).unwrap() else {
            let found = all.iter().find(|text| legal(text));
            prop_assert!(found.is_none(), "{:?}", found);
            return Ok(());
        };
        prop_assert!(can_end(&machine, machine.start()));
        let mut begins = HashSet::new();
        for text in all.iter().filter(|text| legal(text)) {
            begins.extend((1..=text.len()).map(|end| &text[..end]));
        }
        let mut ended = HashSet::new();
        for text in &all {
            match after(&machine, text) {
                Some(state) => {
                    prop_assert_eq!(machine.is_end(&state), legal(text), "{}", text);
                    prop_assert!(!ended.insert(state) || can_end(&machine, state), "a dead end: {}", text);
                }
                None => prop_assert!(!begins.contains(text.as_str()), "{}", text),
            }
        }
    }

    #[test]
    fn exponents_write_numbers_of_the_set(drawn in drawn(), mantissas in prop::collection::vec(number(), 2)) {
        let set = drawn.set();
        let any = NumberSpelling::default().fraction(true).exponent(true);
        let Some(machine) = NumberMachine::new(&set, any).unwrap() else { return Ok(()) };
        if set.is_all() {
            return Ok(());
        }
        let plain = NumberMachine::new(&set, NumberSpelling::default().fraction(true)).unwrap().unwrap();
        for mantissa in mantissas {
            let text = thousandths(mantissa);
            let (short, whole) = (text.trim_end_matches('0').trim_end_matches('.'), mantissa.to_string());
            for (digits, scale) in [(text.as_str(), 1000), (short, 1000), (whole.as_str(), 1_000_000)] {
                for exponent in -4..=4i32 {
                    // Those that are no more than millionths.
                    let Some(value) = scaled(mantissa * scale, exponent) else { continue };
                    let is_in = drawn.has(value) && mantissa != 0;
                    let begun = after(&machine, digits).is_some();
                    for sign in ["e", "E+", "e0", "e-"] {
                        if (sign == "e-") != (exponent < 0) {
                            continue;
                        }
                        let number = format!("{digits}{sign}{}", exponent.abs());
                        let ended = after(&machine, &number).is_some_and(|state| machine.is_end(&state));
                        prop_assert!(is_in || mantissa == 0 || !ended, "{}", number);
                        // What begins no number without an exponent may have been refused before.
                        prop_assert!(!is_in || ended || !begun, "{}", number);
                        for end in 1..=number.len() {
                            let begin = &number[..end];
                            let Some(state) = after(&machine, begin).filter(|_| begin != "-") else { continue };
                            let goes_on = if begin.contains(['e', 'E']) {
                                can_end(&machine, state)
                            } else {
                                let ways = if begin.ends_with('.') { b"0" } else { b"e" };
                                after(&plain, begin).is_some() || machine.step(&state, ways[0]).is_some()
                            };
                            prop_assert!(goes_on, "a dead end: {}", begin);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn sets_and_what_is_not_in_them(
        drawn in drawn(), other in drawn(), numbers in prop::collection::vec(number(), 20),
    ) {
        let (set, with) = (drawn.set(), other.set());
        let not = set.complement();
        let both = set.clone().and(&with).unwrap();
        for number in numbers.into_iter().chain(drawn.low.iter().chain(&drawn.high).map(|bound| bound.0)) {
            let value = decimal(&thousandths(number));
            let is_in = drawn.has(number * 1000);
            prop_assert_eq!(set.contains(&value), is_in, "{}", number);
            prop_assert_eq!(not.iter().any(|set| set.contains(&value)), !is_in, "{}", number);
            prop_assert_eq!(both.contains(&value), is_in && other.has(number * 1000), "{}", number);
        }
    }

    #[test]
    fn decimals_are_in_order(numbers in prop::collection::vec((number(), -3..3i64), 2)) {
        let text = |&(number, exponent): &(i64, i64)| format!("{}e{exponent}", thousandths(number));
        let value = |&(number, exponent): &(i64, i64)| number * 10i64.pow((exponent + 3) as u32);
        let [one, other] = [&numbers[0], &numbers[1]];
        prop_assert_eq!(decimal(&text(one)).cmp(&decimal(&text(other))), value(one).cmp(&value(other)));
        let shown = decimal(&text(one));
        prop_assert_eq!(decimal(&shown.to_string()), shown);
    }
}

#[test]
fn far_numbers_are_exact() {
    let fraction = NumberSpelling::default().fraction(true);
    let far = format!("1{}", "0".repeat(400));
    let less = "9".repeat(400);
    let set = NumberSet::full().at_least(&decimal("1e400"), false);
    let machine = NumberMachine::new(&set, fraction).unwrap().unwrap();
    assert!(after(&machine, &far).is_some_and(|state| machine.is_end(&state)));
    assert!(after(&machine, &less).is_some_and(|state| !machine.is_end(&state)));
    assert!(!set.contains(&decimal(&less)) && set.contains(&decimal(&far)));
    let machine = NumberMachine::new(&set.at_most(&decimal("1e400"), false), fraction).unwrap().unwrap();
    assert!(after(&machine, "2").is_none() && after(&machine, "11").is_none() && after(&machine, &far).is_some());

    let near = format!("0.{}1", "0".repeat(399));
    let set = NumberSet::full().multiple_of(&decimal("1e-400")).unwrap().at_least(&decimal("0"), true);
    let machine = NumberMachine::new(&set, fraction).unwrap().unwrap();
    assert!(after(&machine, &near).is_some_and(|state| machine.is_end(&state)));
    assert!(after(&machine, &format!("{}1", near.replace('1', "0"))).is_none());
    // Too small for anything but one number.
    let set = set.at_most(&decimal("1.5e-400"), false).no_multiple_of(&decimal("1e-400")).unwrap();
    assert!(set.is_empty().unwrap());
    // Numbers that a float of 64 bits rounds.
    let set = NumberSet::one(&decimal("9007199254740993"));
    let machine = NumberMachine::new(&set, NumberSpelling::default()).unwrap().unwrap();
    assert!(after(&machine, "9007199254740993").is_some() && after(&machine, "9007199254740992").is_none());
    let prime = NumberSet::full().multiple_of(&decimal("1000000007")).unwrap().at_least(&decimal("1e30"), false);
    let machine =
        NumberMachine::new(&prime.at_most(&decimal("1000000000000000000000900000000"), false), fraction).unwrap();
    assert!(machine.is_none_or(|machine| can_end_greedily(&machine)));
}

/// Writes digits until a number ends.
fn can_end_greedily(machine: &NumberMachine) -> bool {
    let mut state = machine.start();
    for _ in 0..1000 {
        if machine.is_end(&state) {
            return true;
        }
        let Some(next) = (0..=9).rev().find_map(|digit| machine.step(&state, b'0' + digit)) else { return false };
        state = next;
    }
    false
}

#[test]
fn any_number_is_written_as_in_json() {
    let free = NumberSpelling::default().fraction(true).exponent(true);
    let machine = NumberMachine::new(&NumberSet::full(), free).unwrap().unwrap();
    for text in ["0", "-0", "10.50", "1e5", "1E-07", "-0.0e+0", "123456789012345678901234567890"] {
        assert!(after(&machine, text).is_some_and(|state| machine.is_end(&state)), "{text}");
    }
    for text in ["+1", "01", ".5", "1.e1", "1ee", "1e1234", "1e0000", "--1", "-a"] {
        assert!(after(&machine, text).is_none(), "{text}");
    }
    let whole = NumberSet::full().multiple_of(&decimal("1")).unwrap();
    let machine = NumberMachine::new(&whole, NumberSpelling::default()).unwrap().unwrap();
    assert!(["-0", "1.", "1e"].iter().all(|text| after(&machine, text).is_none()) && after(&machine, "-12").is_some());
    let machine = NumberMachine::new(&whole, NumberSpelling::default().fraction(true)).unwrap().unwrap();
    assert!(after(&machine, "-12.000").is_some_and(|state| machine.is_end(&state)) && after(&machine, "1.5").is_none());
    let machine = NumberMachine::new(&whole, free).unwrap().unwrap();
    for text in ["1e2", "1.5e1", "100e-2", "1.0", "-3E+001", "0", "0e5", "1e999"] {
        assert!(after(&machine, text).is_some_and(|state| machine.is_end(&state)), "{text}");
    }
    for text in ["1.5", "1.5e0", "1e-1", "15e-1", "-0e1"] {
        assert!(!after(&machine, text).is_some_and(|state| machine.is_end(&state)), "{text}");
    }
}

#[test]
fn what_cannot_be_counted_says_which_number() {
    let step = |text: &str| NumberSet::full().multiple_of(&decimal(text));
    assert!(
        matches!(step("0"), Err(NumberError::NoStep { .. })) && matches!(step("-3"), Err(NumberError::NoStep { .. }))
    );
    assert!(matches!(step(&"3".repeat(50)), Err(NumberError::LongStep { digits: 50, .. })));
    let built = |set: NumberSet| NumberMachine::new(&set, NumberSpelling::default()).map(|machine| machine.is_some());
    assert!(matches!(built(step("1e400").unwrap()), Err(NumberError::WideSteps { .. })));
    let long = NumberSet::full().at_least(&decimal("1e20000"), false);
    assert!(matches!(built(long), Err(NumberError::LongBound { digits: 20_001, .. })));
    let many = (0..100).fold(NumberSet::full(), |set, number| set.remove(&decimal(&number.to_string())));
    assert!(matches!(built(many), Err(NumberError::ManyBounds { count: 100, limit: 64 })));
    for none in ["", "-", "1.", ".5", "1e", "0x1", "1e999999", "NaN"] {
        assert!(matches!(Decimal::read(none), Err(NumberError::NoNumber { .. })), "{none}");
    }
    assert_eq!(Decimal::read("0e999999999999"), Ok(decimal("0")));
}
