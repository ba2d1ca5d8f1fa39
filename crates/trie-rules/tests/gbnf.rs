//! GBNF: what is read, what is refused and where, and what is allowed, beside a parser that knows no automata.

use crate::common::naive_cfg::{Cfg, Expression, written};
use crate::common::{compare, vocabulary, with_all_bytes};
use proptest::prelude::*;
use trie_core::work::{Limits, Over};
use trie_rules::{AnyRule, Gbnf, GrammarError, GrammarProblem, Read, Rule, check_rule, samples};

fn whole(rule: &Gbnf, text: &str) -> bool {
    AnyRule::read(rule, text.as_bytes()) == Read::Whole
}

fn after(rule: &Gbnf, text: &str) -> Option<<Gbnf as Rule>::State> {
    text.bytes().try_fold(rule.start(), |state, byte| rule.step(&state, byte))
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|at| line(at) + "\n").collect()
}

#[test]
fn reads_what_llama_cpp_reads() {
    for (grammar, legal, illegal) in [
        ("root ::= \"a\"", &["a"][..], &["", "b", "aa"][..]),
        // A character class runs into the text behind it, and a longest match would take that away.
        ("root ::= [a-z]* \"end\"", &["end", "endend", "xend"], &["en", "endx"]),
        ("root ::= \"a\"* \"ab\"", &["ab", "aab"], &["a", "b", "aa"]),
        ("root ::= \"ab\"* \"c\"", &["c", "ababc"], &["abbc"]),
        ("root ::= [^a-c\\]\\n]+", &["d]".split_at(1).0, "é🦀"], &["]", "a", "\n", ""]),
        ("root ::= [a\\-c] [x-] [-y] [--0]", &["axy-", "---0", "c--."], &["bxy0", "aay0"]),
        ("root ::= .{2}", &["é\n", "🦀\\"], &["a", "abc"]),
        ("root ::= \"\\x41\\u00e9\\U0001F980\\t\\\\\\\"\\[\\]\\-\\r\\n\"", &["Aé🦀\t\\\"[]-\r\n"], &["A"]),
        ("root ::= \"x\"{2} \"y\"{1,} \"z\"{0,2} [0-9]{ 1 , 2 }", &["xxyzz12", "xxyy1"], &["xy1", "xxyzzz1", "xxy123"]),
        ("root ::= \"a\"?* \"b\"+", &["b", "aabb"], &["a"]),
        ("root ::= \"\" | \"a\" |", &["", "a"], &["b"]),
        ("root ::= \"a\" | # first\n \"b\" |\n\n\"c\"", &["a", "b", "c"], &["ab"]),
        ("# only\nroot ::= (\n \"a\" # here\n | \"b\"\n)\r\n\r\nunused ::= unused", &["a", "b"], &["ab"]),
        ("root ::= A a A-a Aa\nA ::= \"1\"\na ::= \"2\"\nA-a ::= \"3\"\nAa ::= \"4\"\n", &["1234"], &["1224"]),
        ("root ::=\n  1 # number\n1 ::= \"one\"", &["one"], &["1"]),
        // Recursion: in the middle, at the end, twice, and through others.
        ("root ::= \"(\" root \")\" | \"\"", &["", "(())"], &["(", "())"]),
        ("root ::= \"a\" root root | \"b\"", &["b", "abb", "aabbabb"], &["ab", "bb"]),
        ("root ::= one\none ::= \"1\" two | \"1\"\ntwo ::= \"2\" one? \";\"", &["1", "12;", "1212;;"], &["121", ";"]),
        ("root ::= x \"b\"\nx ::= y?\ny ::= \"a\" x", &["b", "aab"], &["a", "ba"]),
    ] {
        let rule = Gbnf::new(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
        for text in legal {
            assert!(whole(&rule, text), "{grammar} allows {text:?}");
        }
        for text in illegal {
            assert!(!whole(&rule, text), "{grammar} refuses {text:?}");
        }
    }
}

#[test]
fn says_what_is_wrong_and_where() {
    use GrammarProblem as Problem;
    let syntax = |error: &GrammarError| matches!(error.problem, Problem::Syntax { .. });
    for (grammar, line, column, says) in [
        ("", 1, 1, "missing rule root"),
        ("start ::= \"a\"\n", 2, 1, "missing rule root"),
        ("root ::= \"a\"\n  b-c d", 2, 7, "::= must follow b-c"),
        ("root = \"a\"", 1, 6, "::= must follow root"),
        ("root_1 ::= \"a\"", 1, 5, "::= must follow root"),
        ("root ::= \"a\" other\n", 1, 14, "named other"),
        ("root ::= \"a\"\nx ::= (\n  other)", 3, 3, "named other"),
        ("root ::= \"a\"\n\nroot ::= \"b\"", 3, 1, "root is defined already, at line 1, column 1"),
        ("root ::= \"a\n", 1, 10, "the closing \" is missing"),
        ("root ::= \"a\\", 1, 10, "the closing \" is missing"),
        ("root ::= [a", 1, 10, "the closing ] is missing"),
        ("root ::= []", 1, 10, "the class is empty"),
        ("root ::= [^]", 1, 10, "the class is empty"),
        ("root ::= \"é\" [^\\x00-\\U0010ffff]", 1, 14, "no character is left"),
        ("root ::= [az-b]", 1, 12, "no character is from 'z' to 'b'"),
        ("root ::= \"a\\q\"", 1, 12, "'q' cannot be escaped"),
        ("root ::= \"\\x4\"", 1, 11, "2 digits"),
        ("root ::= \"\\u00é\"", 1, 11, "4 digits"),
        ("root ::= \"\\ud800\"", 1, 11, "d800 is the number of no character"),
        ("root ::= [\\U00110000]", 1, 11, "00110000 is the number of no character"),
        ("root ::= * \"a\"", 1, 10, "nothing before it"),
        ("root ::= \"a\" | +", 1, 16, "nothing before it"),
        ("root ::= \"a\"{}", 1, 14, "a number of times must come here"),
        ("root ::= \"a\"{,3}", 1, 14, "a number of times must come here"),
        ("root ::= \"a\"{3", 1, 15, "the closing }"),
        ("root ::= \"a\"{3,2}", 1, 13, "from 3 to 2 times is never"),
        ("root ::= (\"a\"", 1, 14, "the text ends, and the ( of line 1, column 10 is not closed"),
        ("root ::= (\"a\" = )", 1, 15, "here comes '=', and the ( of line 1, column 10"),
        ("root ::= \"a\")", 1, 13, "unmatched )"),
        ("root ::= \"a\" = \"b\"", 1, 14, "unexpected '=' in a rule"),
        ("root ::= \"a\"\n| \"b\"", 2, 1, "end the line with |"),
        ("root ::= \"a\" |\nb ::= \"c\"", 2, 3, "a rule ends with its line"),
    ] {
        let error = Gbnf::new(grammar).unwrap_err();
        assert_eq!((error.place.line, error.place.column), (line, column), "{grammar}: {error}");
        assert!(error.to_string().contains(says), "{grammar}: {error}");
        let named = [says.contains("named"), says.contains("rule root"), says.contains("defined already")];
        assert_eq!(syntax(&error), !named.contains(&true), "{grammar}: {error}");
    }
    for token in ["<think>", "<[7]>", "!<think>", "!<[7]>*"] {
        let error = Gbnf::new(&format!("root ::= \"a\"\n  | {token}").replace("\n  |", " |\n")).unwrap_err();
        assert!(matches!(error.problem, Problem::Unsupported { .. }), "{error}");
        assert_eq!((error.place.line, error.place.column), (2, 2), "{error}");
    }
    for grammar in ["root ::= root \"a\" | \"a\"", "root ::= \"\" x \"a\" | \"b\"\nx ::= y? root\ny ::= \"c\""] {
        let error = Gbnf::new(grammar).unwrap_err();
        assert!(matches!(error.problem, Problem::LeftRecursive { .. }), "{grammar}: {error}");
    }
    let circle = lines(20_000, |n| format!("r{n} ::= r{} | \"a\"", (n + 1) % 20_000));
    let error = Gbnf::new(&format!("root ::= \"b\" r0\n{circle}")).unwrap_err();
    assert!(matches!(error.problem, Problem::LeftRecursive { .. }), "{error}");
    let error = Gbnf::new("root ::= \"a\" x?\nx ::= \"b\" y\ny ::= x").unwrap_err();
    assert!(matches!(&error.problem, Problem::Endless { name } if name == "x" || name == "y"), "{error}");
}

#[test]
fn is_as_large_as_it_may_be_and_no_larger() {
    use GrammarProblem as Problem;
    for times in ["{2000000000}", "{100001}", "{0,99999999999999999999999}", "{100001,}"] {
        let error = Gbnf::new(&format!("root ::= \"a\"{times}")).unwrap_err();
        assert!(matches!(error.problem, Problem::TooOften { .. }), "{times}: {error}");
        assert_eq!(error.place.line, 1);
    }
    // What llama.cpp reads as no bound is one.
    let bounded = Gbnf::new("root ::= \"a\"{0,3000}").unwrap();
    assert!(whole(&bounded, &"a".repeat(3000)) && !whole(&bounded, &"a".repeat(3001)));
    for grammar in ["root ::= [^x]{100000}", "root ::= ((\"a\"{1000}){1000}){1000}", "root ::= [a-z]* \"x\" [a-z]{30}"]
    {
        let error = Gbnf::new(grammar).unwrap_err();
        let large = matches!(error.problem, Problem::TooMuch { over: Over::Bytes(_) });
        assert!(large, "{grammar}: {error}");
    }
    // A text that grows with every rule is none of these: what is long is called.
    let grown = Gbnf::new("root ::= x{1000}\nx ::= y{1000}\ny ::= z{1000}\nz ::= \"a\" | \"bb\"").unwrap();
    assert!(after(&grown, &"a".repeat(5000)).is_some_and(|state| !grown.is_end(&state)));
    let doubling = |n| lines(n, |at| format!("r{at} ::= r{0} r{0}", at + 1)) + &format!("r{n} ::= \"a\"\n");
    let doubled = Gbnf::new(&format!("root ::= r0\n{}", doubling(16))).unwrap();
    assert!(whole(&doubled, &"a".repeat(1 << 16)) && !whole(&doubled, &"a".repeat((1 << 16) - 1)));
    assert!(after(&Gbnf::new(&format!("root ::= r0\n{}", doubling(100))).unwrap(), &"a".repeat(1000)).is_some());
    let limits = Limits::default().steps(1000);
    let many = lines(5000, |n| format!("r{n} ::= \"a\""));
    let error = Gbnf::with_limits(&format!("root ::= r0\n{many}"), limits).unwrap_err();
    assert!(matches!(error.problem, Problem::TooMuch { over: Over::Steps(1000) }), "{error}");
    let error = Gbnf::with_limits("root ::= \"abc\"", Limits::default().bytes(100)).unwrap_err();
    assert!(matches!(error.problem, Problem::TooMuch { over: Over::Bytes(100) }), "{error}");
}

#[test]
fn groups_and_texts_may_be_deep() {
    let deep = 60_000;
    let around = |open: &str, close: &str| format!("root ::= {}\"x\"{}", open.repeat(deep), close.repeat(deep));
    assert!(whole(&Gbnf::new(&around("(", ")")).unwrap(), "x"));
    assert!(whole(&Gbnf::new(&around("(", ")*")).unwrap(), "xx"));
    let nested = Gbnf::new(&around("(\"a\" ", ")?")).unwrap();
    assert!(whole(&nested, &format!("{}x", "a".repeat(deep))) && whole(&nested, "aaa"));
    assert!(!whole(&nested, "aax"));
    let both = Gbnf::new(&around("(\"a\" ", "\"b\")")).unwrap();
    assert!(whole(&both, &format!("{}x{}", "a".repeat(deep), "b".repeat(deep))));
    let unclosed = Gbnf::new(&format!("root ::= {}", "(".repeat(deep))).unwrap_err();
    assert!(matches!(unclosed.problem, GrammarProblem::Syntax { .. }));
    // Each rule needs the next.
    let chain = lines(20_000, |n| format!("r{n} ::= \"a\" r{} | \"b\"", n + 1));
    let chain = Gbnf::new(&format!("root ::= r0\n{chain}r20000 ::= \"c\"")).unwrap();
    assert!(whole(&chain, &format!("{}b", "a".repeat(3000))));
    // And a text that is deeper than any stack, let go.
    let brackets = Gbnf::new("root ::= \"[\" root* \"]\"").unwrap();
    let state = after(&brackets, &"[".repeat(1_000_000)).unwrap();
    assert!(!brackets.is_end(&state));
    drop(state);
}

#[test]
fn lists_by_recursion_at_their_end_need_no_stack() {
    let list = Gbnf::new("root ::= \"a\" (\",\" root)? | \"(\" root \")\"").unwrap();
    assert_eq!(after(&list, "a"), after(&list, "a,a,a,a"));
    assert_ne!(after(&list, "a"), after(&list, "(a"));
    assert_eq!(after(&list, "(a"), after(&list, "(a,a"));
    assert_eq!(check_rule(&list, 300).map(|checked| checked.complete).ok(), Some(false));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_budget::cases(3000)))]

    #[test]
    fn allows_what_a_parser_of_characters_allows(
        rules in written(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let text = Expression::text(&rules);
        let naive = Cfg::of(&rules);
        let rule = match Gbnf::new(&text) {
            Ok(rule) => rule,
            Err(error) => {
                let expected = match error.problem {
                    GrammarProblem::Endless { .. } => naive.has_endless(),
                    GrammarProblem::LeftRecursive { .. } => !naive.has_endless() && Expression::left_recursive(&rules),
                    _ => false,
                };
                prop_assert!(expected, "{}\n{}", text, error);
                return Ok(());
            }
        };
        prop_assert!(!naive.has_endless() && !Expression::left_recursive(&rules), "{}", text);
        let mut parser = naive.parser();
        let (mut state, mut written) = (rule.start(), String::new());
        for choice in choices {
            prop_assert_eq!(rule.is_end(&state), parser.is_end(), "{}\nafter {:?}", text, written);
            let mut legal = Vec::new();
            for character in Expression::ALPHABET {
                let bytes = character.to_string();
                let next = bytes.bytes().try_fold(state.clone(), |state, byte| rule.step(&state, byte));
                let expected = parser.read(character);
                prop_assert_eq!(next.is_some(), expected.is_some(), "{}\nafter {:?}: {:?}", text, written, character);
                legal.extend(next.zip(expected).map(|(next, expected)| (character, next, expected)));
            }
            if legal.is_empty() {
                break;
            }
            let (character, next, expected) = legal.swap_remove(choice.index(legal.len()));
            written.push(character);
            (state, parser) = (next, expected);
        }
        prop_assert_eq!(whole(&rule, &written), parser.is_end(), "{}\n{:?}", text, written);
    }

    #[test]
    fn tokens_are_those_that_steps_allow(rules in written(), pieces in vocabulary()) {
        let Ok(rule) = Gbnf::new(&Expression::text(&rules)) else { return Ok(()) };
        compare(rule, &with_all_bytes(&pieces), &[], 25)?;
    }

    #[test]
    fn texts_that_are_drawn_are_legal(rules in written(), seed in any::<u32>()) {
        let Ok(rule) = Gbnf::new(&Expression::text(&rules)) else { return Ok(()) };
        let naive = Cfg::of(&rules);
        for text in samples(&rule, 5, seed) {
            let Ok(text) = String::from_utf8(text) else { panic!("all texts are UTF-8") };
            if text.chars().count() > 60 {
                continue;
            }
            let read = text.chars().try_fold(naive.parser(), |parser, character| parser.read(character));
            prop_assert!(read.is_some_and(|parser| parser.is_end()), "{:?}", text);
        }
    }
}
