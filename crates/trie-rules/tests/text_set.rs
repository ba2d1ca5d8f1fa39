//! Patterns of ECMA-262 and their sets of texts, against a matcher that follows every way; sets together; lengths.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::collections::{HashSet, VecDeque};
use trie_rules::{AutomatonError, AutomatonLimits, CharKinds, RegexError, TextFormat, TextMachine, TextSet, TextState};

const TEXT: [char; 12] = ['a', 'b', 'A', '1', ' ', '_', 'é', '\n', '😀', '[', '-', '\u{2028}'];

/// A pattern as it was drawn.
#[derive(Debug, Clone)]
enum Drawn {
    /// As it is written, and the characters of [`TEXT`] that it takes.
    One(&'static str, &'static str),
    Sequence(Vec<Self>),
    Either(Vec<Self>),
    Repeat(Box<Self>, usize, Option<usize>, bool),
    Start,
    End,
    Edge(bool),
    Look(bool, bool, Box<Self>),
}

const ALL: &str = "abA1 _é\n😀[-\u{2028}";

const ONES: [(&str, &str); 30] = [
    ("a", "a"),
    ("b", "b"),
    ("é", "é"),
    (".", "abA1 _é😀[-"),
    (r"\d", "1"),
    (r"\D", "abA _é\n😀[-\u{2028}"),
    (r"\w", "abA1_"),
    (r"\W", " é\n😀[-\u{2028}"),
    (r"\s", " \n\u{2028}"),
    (r"\S", "abA1_é😀[-"),
    ("[^]", ALL),
    ("[]", ""),
    ("[^[\\]]", "abA1 _é\n😀-\u{2028}"),
    ("[+--]", "-"),
    ("[a&&b]", "ab"),
    ("[a-]", "a-"),
    (r"[\w-]", "abA1_-"),
    (r"[^\w\s]", "é😀[-"),
    (r"\u{1F600}", "😀"),
    (r"\uD83D\uDE00", "😀"),
    (r"[\uD83D\uDE00]", "😀"),
    (r"[\uD800-\uDFFF]", ""),
    (r"\xe9", "é"),
    (r"\cJ", "\n"),
    (r"\p{L}", "abAé"),
    (r"\P{L}", "1 _\n😀[-\u{2028}"),
    (r"\p{Uppercase_Letter}", "A"),
    (r"[^\p{ASCII}]", "é😀\u{2028}"),
    ("(?i:A)", "aA"),
    (r"\-", "-"),
];

fn drawn() -> impl Strategy<Value = Drawn> {
    let leaf = prop_oneof![
        12 => prop::sample::select(ONES.to_vec()).prop_map(|(written, takes)| Drawn::One(written, takes)),
        2 => Just(Drawn::Start),
        2 => Just(Drawn::End),
        2 => any::<bool>().prop_map(Drawn::Edge),
        1 => Just(Drawn::Sequence(Vec::new())),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            4 => prop::collection::vec(inner.clone(), 1..4).prop_map(Drawn::Sequence),
            2 => prop::collection::vec(inner.clone(), 1..4).prop_map(Drawn::Either),
            2 => (inner.clone(), 0..3usize, prop::option::of(0..3usize), any::<bool>()).prop_map(
                |(inner, min, more, lazy)| Drawn::Repeat(inner.into(), min, more.map(|more| min + more), lazy)
            ),
            2 => (any::<bool>(), any::<bool>(), inner)
                .prop_map(|(ahead, not, inner)| Drawn::Look(ahead, not, inner.into())),
        ]
    })
}

impl Drawn {
    fn written(&self) -> String {
        let all = |all: &[Self], between: &str| all.iter().map(Self::written).collect::<Vec<_>>().join(between);
        match self {
            Self::One(written, _) => (*written).to_owned(),
            Self::Sequence(inner) => format!("(?:{})", all(inner, "")),
            Self::Either(inner) => format!("({})", all(inner, "|")),
            Self::Repeat(inner, min, max, lazy) => {
                let count = match (min, max) {
                    (0, None) => "*".to_owned(),
                    (1, None) => "+".to_owned(),
                    (0, Some(1)) => "?".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) if min == max => format!("{{{min}}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                };
                format!("(?<name>{}){count}{}", inner.written(), if *lazy { "?" } else { "" })
            }
            Self::Start => "^".to_owned(),
            Self::End => "$".to_owned(),
            Self::Edge(true) => r"\b".to_owned(),
            Self::Edge(false) => r"\B".to_owned(),
            Self::Look(ahead, not, inner) => {
                let (way, sign) = (if *ahead { "" } else { "<" }, if *not { "!" } else { "=" });
                format!("(?{way}{sign}{})", inner.written())
            }
        }
    }

    /// Where a match that begins at a place may end.
    fn ends(&self, text: &[char], at: usize) -> BTreeSet<usize> {
        let here = |holds: bool| if holds { BTreeSet::from([at]) } else { BTreeSet::new() };
        let word = |at: usize| text.get(at).is_some_and(|char| char.is_ascii_alphanumeric() || *char == '_');
        match self {
            Self::One(_, takes) => {
                text.get(at).filter(|char| takes.contains(**char)).map(|_| at + 1).into_iter().collect()
            }
            Self::Sequence(all) => all.iter().fold(BTreeSet::from([at]), |from, inner| {
                from.into_iter().flat_map(|at| inner.ends(text, at)).collect()
            }),
            Self::Either(all) => all.iter().flat_map(|inner| inner.ends(text, at)).collect(),
            Self::Repeat(inner, min, max, _) => {
                let mut found = BTreeSet::new();
                let mut from = BTreeSet::from([at]);
                // More times than there are characters add nothing.
                for times in 0..=max.unwrap_or(min + text.len() + 1) {
                    if times >= *min {
                        found.extend(&from);
                    }
                    from = from.into_iter().flat_map(|at| inner.ends(text, at)).collect();
                }
                found
            }
            Self::Start => here(at == 0),
            Self::End => here(at == text.len()),
            Self::Edge(is_edge) => here(
                (at > 0 && word(at - 1)) != word(at) && *is_edge || (at > 0 && word(at - 1)) == word(at) && !is_edge,
            ),
            Self::Look(true, not, inner) => here(inner.ends(text, at).is_empty() == *not),
            Self::Look(false, not, inner) => here((0..=at).any(|from| inner.ends(text, from).contains(&at)) != *not),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let chars: Vec<char> = text.chars().collect();
        (0..=chars.len()).any(|at| !self.ends(&chars, at).is_empty())
    }
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(TEXT.to_vec()), 0..7).prop_map(|chars| chars.into_iter().collect())
}

fn after(machine: &TextMachine, text: &[u8]) -> Option<TextState> {
    text.iter().try_fold(machine.start(), |state, &byte| machine.step(state, byte))
}

fn pattern(pattern: &str) -> TextSet {
    TextSet::pattern(pattern).unwrap_or_else(|error| panic!("{error}"))
}

/// The texts of up to so many characters of a few.
fn texts(chars: &[char], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut begin = 0;
    for _ in 0..most {
        let end = all.len();
        for at in begin..end {
            all.extend(chars.iter().map(|char| format!("{}{char}", all[at])).collect::<Vec<_>>());
        }
        begin = end;
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(10_000), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn patterns_match_as_if_every_way_were_tried(drawn in drawn(), tries in prop::collection::vec(text(), 12)) {
        let written = drawn.written();
        let set = match TextSet::pattern(&written) {
            Ok(set) => set,
            // Names may come twice in alternatives only, which is no matter of texts.
            Err(error) => return Err(TestCaseError::fail(format!("{written}: {error}"))),
        };
        let not = set.complement();
        for text in &tries {
            prop_assert_eq!(set.is_match(text), drawn.matches(text), "{} {:?}", written, text);
            prop_assert_eq!(not.is_match(text), !drawn.matches(text), "{} {:?}", written, text);
        }
        match set.shortest() {
            Some(text) => prop_assert!(set.is_match(&text), "{} {:?}", written, text),
            None => prop_assert!(set.is_empty()),
        }
    }

    #[test]
    fn sets_go_together(one in drawn(), other in drawn(), tries in prop::collection::vec(text(), 12)) {
        let (set, with) = (pattern(&one.written()), pattern(&other.written()));
        let (both, either) = (set.and(&with).unwrap(), set.or(&with).unwrap());
        for text in &tries {
            prop_assert_eq!(both.is_match(text), one.matches(text) && other.matches(text));
            prop_assert_eq!(either.is_match(text), one.matches(text) || other.matches(text));
        }
        // Equal sets are one automaton, however they were made.
        prop_assert_eq!(&both.complement(), &set.complement().or(&with.complement()).unwrap());
        prop_assert_eq!(&set.complement().complement(), &set);
        prop_assert_eq!(both.is_empty(), both.shortest().is_none());
    }

}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: test_budget::cases(1000), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn machines_take_what_can_be_completed_and_nothing_else(
        drawn in drawn(), min in 0..5u32, more in prop::option::of(0..4u32), tries in prop::collection::vec(text(), 6),
    ) {
        const CHARS: [char; 4] = ['a', '1', 'é', '😀'];
        let set = pattern(&drawn.written());
        let max = more.map(|more| min + more);
        // Texts of few characters, which stand for all others that the pattern could need.
        let most = max.unwrap_or(min + 2).min(6) as usize;
        let legal = |text: &str| {
            let chars = text.chars().count() as u32;
            set.is_match(text) && chars >= min && max.is_none_or(|max| chars <= max)
        };
        let all = texts(&CHARS, most);
        let some: HashSet<&str> = all.iter().map(String::as_str).filter(|text| legal(text)).collect();
        let Some(machine) = TextMachine::new(&set, min, max) else {
            prop_assert!(some.is_empty() && !tries.iter().any(|text| legal(text)));
            return Ok(());
        };
        for text in all.iter().chain(&tries) {
            match after(&machine, text.as_bytes()) {
                Some(state) => {
                    prop_assert_eq!(machine.is_end(state), legal(text), "{:?}", text);
                    prop_assert!(can_end(&machine, state), "a dead end: {} {:?} {:?}", drawn.written(), machine, text);
                    let free = machine.free_chars(state).min(3);
                    for further in texts(&['a', '[', '\u{2028}', '😀'], free as usize) {
                        let whole = format!("{text}{further}");
                        prop_assert!(after(&machine, whole.as_bytes()).is_some());
                    }
                }
                None => prop_assert!(!some.iter().any(|legal| legal.starts_with(text.as_str())), "{:?}", text),
            }
        }
        for state in tries.iter().filter_map(|text| after(&machine, text.as_bytes())) {
            let run = machine.run(state);
            let chars = "ag1AZ -_é\u{2028}😀".chars().filter(|&char| CharKinds::of(char).is_within(run.kinds));
            for further in texts(&chars.collect::<Vec<_>>(), run.chars.min(2) as usize) {
                let state = further.bytes().try_fold(state, |state, byte| machine.step(state, byte));
                prop_assert!(state.is_some(), "{} {:?} {:?}", drawn.written(), machine, further);
            }
        }
        if let Some(count) = count_by_bytes(&machine) {
            prop_assert_eq!(machine.count(COUNTED), count, "{}", drawn.written());
        }
        for text in &some {
            for end in 0..text.len() {
                prop_assert!(after(&machine, &text.as_bytes()[..end]).is_some(), "{:?} {}", text, end);
            }
        }
    }
}

/// Texts that are counted at most.
const COUNTED: usize = 100;

/// Counts texts byte by byte; `None` if there is too much to look at.
fn count_by_bytes(machine: &TextMachine) -> Option<usize> {
    let (mut open, mut count) = (vec![machine.start()], 0);
    for _ in 0..5000 {
        let Some(state) = open.pop() else { return Some(count) };
        count += usize::from(machine.is_end(state));
        if count == COUNTED {
            return Some(count);
        }
        open.extend((0..=255).filter_map(|byte| machine.step(state, byte)));
    }
    None
}

/// Whether an end can be reached, byte by byte.
fn can_end(machine: &TextMachine, from: TextState) -> bool {
    let mut seen = HashSet::from([from]);
    let mut queue = VecDeque::from([from]);
    while let Some(state) = queue.pop_front() {
        if machine.is_end(state) {
            return true;
        }
        queue.extend((0..=255).filter_map(|byte| machine.step(state, byte)).filter(|&state| seen.insert(state)));
        if seen.len() > 5000 {
            return false;
        }
    }
    false
}

#[test]
fn patterns_that_are_none_say_where_and_why() {
    for (pattern, position, part) in [
        ("a(b", 1, "a group that nothing closes"),
        ("a)b", 1, "closes nothing"),
        ("[a", 0, "a class that nothing closes"),
        ("[b-a]", 1, "behind its last"),
        ("*a", 0, "nothing to repeat before *"),
        ("a**", 2, "a quantifier behind a quantifier"),
        ("a++", 2, "a quantifier behind a quantifier"),
        ("a{2,1}", 1, "the smaller count first"),
        ("a{,3}", 1, "invalid quantifier"),
        ("{1}", 0, "invalid quantifier"),
        ("a\\", 1, "a \\ at the end"),
        (r"(a)\1", 3, "a back reference is not supported"),
        (r"(?<n>a)\k<m>", 7, "a back reference to a group that is not there"),
        (r"(?<n>a)\k<n>", 7, "a back reference is not supported"),
        (r"^a\Z", 2, "unknown escape \\Z"),
        (r"\A", 0, "unknown escape \\A"),
        (r"\u12", 0, "invalid escape: expected \\uHHHH"),
        (r"\u{110000}", 0, "up to 10FFFF"),
        (r"\xg1", 0, "expected \\xHH"),
        (r"\c1", 0, "expected a letter"),
        (r"\p{Nothing}", 0, "unknown property of characters \"Nothing\""),
        (r"\pL", 0, "expected \\p{…}"),
        ("(?P<n>a)", 0, "unknown kind of group"),
        ("(?>a)", 0, "unknown kind of group"),
        ("(?<1>a)", 0, "invalid name of a group"),
    ] {
        match TextSet::pattern(pattern) {
            Err(
                RegexError::Syntax { position: at, problem, .. }
                | RegexError::Unsupported { position: at, problem, .. },
            ) => {
                let is_unsupported = matches!(TextSet::pattern(pattern), Err(RegexError::Unsupported { .. }));
                assert_eq!(is_unsupported, part.ends_with("is not supported"), "{pattern}");
                assert_eq!(at, position, "{pattern}: {problem}");
                assert!(problem.contains(part), "{pattern}: {problem}");
            }
            other => panic!("{pattern}: {other:?}"),
        }
    }
    assert!(TextSet::pattern(&"(".repeat(300)).unwrap_err().to_string().contains("more than 200 groups"));
}

#[test]
fn what_is_too_large_says_so_soon() {
    let (took, refused) = test_budget::computed(|| {
        ["(?:a{1000}){1000}", "[ab]*a[ab]{40}", "a{4000000000}", "(?=.*a.{30}b).*b.{30}a"].map(TextSet::pattern)
    });
    for error in refused {
        let error = error.unwrap_err();
        assert!(
            matches!(
                &error,
                RegexError::Automaton { problem: AutomatonError::TooLarge { .. } | AutomatonError::TooMuch { .. }, .. }
            ),
            "{error}"
        );
    }
    assert!(took.as_secs() < 20, "{took:?}");
    let long = "é".repeat(10_000_000);
    assert!(TextSet::pattern_with(&long, AutomatonLimits::default()).is_err());
}

#[test]
fn patterns_as_schemas_have_them() {
    for (written, takes, refuses) in [
        (r"^\S(|(.|\n)*\S)$", &["a", "a b", "a\n\nb"][..], &["", " a", "a "][..]),
        (r"^[^[\]]+$", &["a\\b"], &["a[", "]"]),
        (r"^[+--]*$", &["+,-"], &["."]),
        (r"^(?!.*\.\.)[a-z.]+$", &["a.b", "."], &["a..b", ""]),
        (r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[a-zA-Z\d]{8,}$", &["aB345678"], &["ab345678", "aB3"]),
        (r"\bcat\b", &["a cat.", "cat"], &["concat", "cat1"]),
        (r"(?<=\$)\d+", &["cost: $5"], &["5", "€5"]),
        (r"(?<!\d)\d{2}(?!\d)", &["a12b", "1 23"], &["123", "1"]),
        (r"^\p{Script=Greek}+$", &["αβγ"], &["abc", ""]),
        (r"^🐲*$", &["", "🐲", "🐲🐲"], &["🐉"]),
        (r"^\$ref$|^(foo|^bar)$", &["$ref", "foo", "bar"], &["ref", "foobar"]),
        ("(?i)^straße$", &["STRAßE", "straẞe"], &["strasse"]),
        (r"(?i:\w)k", &["\u{212A}k"], &["k"]),
        ("^a{2}b{,$", &[], &[]),
        (r"^[\d-x]+$", &["1-x"], &["y"]),
        ("a]}", &["a]}"], &["a"]),
        ("", &["", "x"], &[]),
        ("(?=a)b|(?=a)a", &["a"], &["b"]),
        (r"^(?:(?=(?:..)*$).)*$", &[], &["a"]),
        ("(?m:^b$)", &["a\nb\nc", "b"], &["ab", "ba"]),
        (r"^(?:[^\x00-\x1f]|\n)*$", &["a\n"], &["\r"]),
    ] {
        let Ok(set) = TextSet::pattern(written) else {
            assert!(takes.is_empty() && refuses.is_empty(), "{written}");
            continue;
        };
        for text in takes {
            assert!(set.is_match(text), "{written} {text:?}");
        }
        for text in refuses {
            assert!(!set.is_match(text), "{written} {text:?}");
        }
    }
}

#[test]
fn lists_are_sets() {
    let some = TextSet::one_of(["a", "ab", "é", ""]).unwrap();
    assert_eq!(some, pattern("^(?:ab?|é)?$"));
    assert!(!some.complement().is_match("ab") && some.complement().is_match("b"));
    assert_eq!(TextSet::one_of([]).unwrap(), TextSet::none());
    assert!(TextSet::full().is_all() && TextSet::full().complement().is_empty());
}

#[test]
fn lengths_are_exact_where_a_set_has_some_only() {
    let threes = pattern("^(?:aaa|bbbbb)*$");
    // 3 and 5 make every length but 1, 2, 4, 7.
    for chars in 0..30u32 {
        assert_eq!(TextMachine::new(&threes, chars, Some(chars)).is_some(), ![1, 2, 4, 7].contains(&chars), "{chars}");
    }
    let machine = TextMachine::new(&threes, 7, Some(7 + 1)).unwrap();
    assert!(after(&machine, b"aaabbbbb").is_some() && after(&machine, b"aaaaaa").is_none());
    let wide = TextMachine::new(&pattern("^(?:[^]{7})*$"), 1_000_000, Some(1_000_006)).unwrap();
    assert!(after(&wide, "é".as_bytes()).is_some());
    assert!(TextMachine::new(&pattern("^(?:[^]{7})*$"), 1_000_000, Some(1_000_000)).is_none());
    // A surrogate half written is one of many characters.
    let some = TextMachine::new(&pattern("^[😀é]$"), 0, None).unwrap();
    assert!(some.takes_any(some.start(), 0x1_F600, 0x1_F9FF) && some.takes_any(some.start(), 0xD000, 0x10_FFFF));
    assert!(!some.takes_any(some.start(), 0xEA, 0x1_F5FF) && !some.takes_any(some.start(), 0xD800, 0xDFFF));
    assert!(some.step_char(some.start(), 'é').is_some_and(|state| some.is_end(state)));
}

#[test]
fn formats_are_held_and_so_is_what_is_none() {
    for (name, takes, refuses, neither) in [
        (
            "date",
            &["2024-02-29", "1963-06-19"][..],
            &["2023-02-29", "2024-13-01", "24-1-1", ""][..],
            &["0000-01-01"][..],
        ),
        (
            "time",
            &["08:30:06.283185Z", "08:30:06+00:20", "23:59:59z"],
            &["24:00:00Z", "12:00:00", "08:30:06 PST"],
            &["23:59:60Z"],
        ),
        (
            "date-time",
            &["1963-06-19t08:30:06.283185z"],
            &["2013-350T01:01:01", "1990-02-31T15:59:59Z"],
            &["1998-12-31T23:59:60Z"],
        ),
        ("duration", &["P4DT12H30M5S", "P2W", "PT0S"], &["P", "PT", "P2D1Y", "P1Y2W", "P1"], &[]),
        (
            "email",
            &["te~st@example.com", "\"joe@bloggs\"@example.com", "j@[127.0.0.1]", "j@[IPv6:::1]"],
            &["2962", ".t@a.de", "t.@a.de", "t..t@a.de", "j@[127.0.0.300]", "j@a=b.de"],
            &["j@xn--a.de"],
        ),
        ("idn-email", &["실례@실례.테스트", "j@a.de"], &["2962", "@a.de"], &["j@\u{0640}.de"]),
        (
            "hostname",
            &["www.example.com", "1host", "a-b"],
            &["-a", "a_b", "a-", "", ".", "a."],
            &["xn--4gbwdl.de", "ab--c"],
        ),
        ("idn-hostname", &["실례.테스트", "größe.de", "a。b"], &["-> $1.00 <--", "-hello", "hello-"], &["l·l", "〮실례"]),
        ("ipv4", &["192.168.0.1", "0.0.0.0"], &["256.1.1.1", "127.0", "087.10.0.1", "1.1.1.1/24"], &[]),
        (
            "ipv6",
            &["::1", "::", "1:2::192.168.0.1", "1:2:3:4:5:6:7:8"],
            &["12345::", "1::d6::42", "1:2:3:4:5:6:7", "fe80::a%eth1", ":2:3:4:5:6:7:8", "::192.168.0.256"],
            &[],
        ),
        (
            "uri",
            &["mailto:John.Doe@example.com", "ldap://[2001:db8::7]/c=GB?o#x"],
            &["/abc", "bar,baz:foo", "http:// a", "a:\\"],
            &[],
        ),
        ("uri-reference", &["/abc", "abc", "#fragment", "//foo.bar/?baz"], &["\\\\WINDOWS", "#frag\\ment", "%g1"], &[]),
        ("iri", &["http://ƒøø.ßår/?∂éœ=πîx#πîüx"], &["/abc", "âππ"], &[]),
        ("iri-reference", &["/âππ", "âππ"], &["\\\\WINDOWS\\filëßåré"], &[]),
        ("uri-template", &["d/{term:1}/{?a,b*}"], &["d/{term", "}", "{}"], &[]),
        ("uuid", &["2EB8AA08-aa98-11ea-b4aa-73b441d16380"], &["2eb8aa08aa9811eab4aa73b441d16380", "g"], &[]),
        ("json-pointer", &["", "/foo/bar~0/baz~1/%a", "/i\\j"], &["#", "/foo/bar~", "a"], &[]),
        ("relative-json-pointer", &["0", "2/0/a", "0#"], &["/foo", "-1/a", "01", "0##"], &[]),
        (
            "regex",
            &["([abc])+\\s+$", "^(?:[^\\]a-z]{2,}?|\\bx)$", ""],
            &[],
            &["^(abc]", "[b-a]", "a{3,2}", "*", "(", "\\1"],
        ),
    ] {
        let format = TextFormat::find_by_name(name).unwrap().unwrap_or_else(|| panic!("{name}"));
        for text in takes {
            assert!(format.texts().is_match(text), "{name} {text:?}");
        }
        for text in refuses {
            assert!(!format.texts().is_match(text) && format.complement().is_match(text), "{name} {text:?}");
        }
        for text in neither {
            assert!(!format.texts().is_match(text) && !format.complement().is_match(text), "{name} {text:?}");
        }
        assert!(format.texts().and(format.complement()).unwrap().is_empty(), "{name}");
    }
    assert_eq!(TextFormat::names().len(), 19);
    assert!(TextFormat::find_by_name("colour").unwrap().is_none());
    // Every pattern that the format takes is one.
    let patterns = TextMachine::new(TextFormat::find_by_name("regex").unwrap().unwrap().texts(), 3, Some(12)).unwrap();
    let mut draw = 1u64;
    for _ in 0..500 {
        let (mut state, mut text) = (patterns.start(), Vec::new());
        while !patterns.is_end(state) || !draw.is_multiple_of(5) {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let ways: Vec<_> = (0..128).filter_map(|byte| Some((byte, patterns.step(state, byte)?))).collect();
            let Some(&(byte, next)) = ways.get((draw >> 33) as usize % ways.len().max(1)) else { break };
            (state, draw) = (next, draw >> 1 | 1);
            text.push(byte);
        }
        let text = String::from_utf8(text).unwrap();
        assert!(TextSet::pattern(&text).is_ok(), "{text:?}: {:?}", TextSet::pattern(&text));
    }
}

#[test]
fn a_pattern_that_was_met_is_the_same_set() {
    let pattern = r"^\p{Lu}[a-z]{2}(x|\p{L})*$";
    let address = |set: &TextSet| TextMachine::new(set, 0, None).unwrap().set_address();
    let fresh = TextSet::pattern_with(pattern, AutomatonLimits::default()).unwrap();
    // Other tests may drive it out in between.
    let is_same = || {
        let (one, again) = (TextSet::pattern(pattern).unwrap(), TextSet::pattern(pattern).unwrap());
        assert!(address(&one) != address(&fresh) && one == fresh);
        address(&one) == address(&again)
    };
    assert!((0..20).any(|_| is_same()));
    // However many others come: the last ones are kept.
    for count in 1..200 {
        TextSet::pattern(&format!("^a{{{count}}}$")).unwrap();
    }
    assert!(TextSet::pattern(pattern).unwrap() == fresh);
}
