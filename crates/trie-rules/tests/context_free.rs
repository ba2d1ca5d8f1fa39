//! Context-free grammars in GBNF and Lark: syntax, errors and their places, and the language, beside a parser without
//! automata.

use crate::common::naive_cfg::{Cfg, Expression, written};
use crate::common::{compare, vocabulary, with_all_bytes};
use proptest::prelude::*;
use trie_core::work::{LimitExceeded, Limits};
use trie_rules::{
    AnyRule, ContextFree, EmbeddedRule, GrammarError, GrammarProblem, Read, Regex, Rule, check_rule, samples,
};

fn whole(rule: &ContextFree, text: &str) -> bool {
    AnyRule::read(rule, text.as_bytes()) == Read::Whole
}

fn after(rule: &ContextFree, text: &str) -> Option<<ContextFree as Rule>::State> {
    text.bytes().try_fold(rule.start(), |state, byte| rule.step(&state, byte))
}

fn gbnf(text: &str) -> Result<ContextFree, GrammarError> {
    ContextFree::gbnf(text, Limits::default())
}

fn lark(text: &str) -> Result<ContextFree, GrammarError> {
    ContextFree::lark(text, Limits::default(), None)
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
        let rule = gbnf(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
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
        let error = gbnf(grammar).unwrap_err();
        assert_eq!((error.place.line, error.place.column), (line, column), "{grammar}: {error}");
        assert!(error.to_string().contains(says), "{grammar}: {error}");
        let named = [says.contains("named"), says.contains("rule root"), says.contains("defined already")];
        assert_eq!(syntax(&error), !named.contains(&true), "{grammar}: {error}");
    }
    for token in ["<think>", "<[7]>", "!<think>", "!<[7]>*"] {
        let error = gbnf(&format!("root ::= \"a\"\n  | {token}").replace("\n  |", " |\n")).unwrap_err();
        assert!(matches!(error.problem, Problem::Unsupported { .. }), "{error}");
        assert_eq!((error.place.line, error.place.column), (2, 2), "{error}");
    }
    let error = gbnf("root ::= \"a\" x?\nx ::= \"b\" y\ny ::= x").unwrap_err();
    assert!(matches!(&error.problem, Problem::Endless { name } if name == "x" || name == "y"), "{error}");
}

#[test]
fn is_as_large_as_it_may_be_and_no_larger() {
    use GrammarProblem as Problem;
    for times in ["{2000000000}", "{100001}", "{0,99999999999999999999999}", "{100001,}"] {
        let error = gbnf(&format!("root ::= \"a\"{times}")).unwrap_err();
        assert!(matches!(error.problem, Problem::TooOften { .. }), "{times}: {error}");
        assert_eq!(error.place.line, 1);
    }
    // What llama.cpp reads as no bound is one.
    let bounded = gbnf("root ::= \"a\"{0,3000}").unwrap();
    assert!(whole(&bounded, &"a".repeat(3000)) && !whole(&bounded, &"a".repeat(3001)));
    for grammar in ["root ::= [^x]{100000}", "root ::= ((\"a\"{1000}){1000}){1000}", "root ::= [a-z]* \"x\" [a-z]{30}"]
    {
        let error = gbnf(grammar).unwrap_err();
        let large = matches!(error.problem, Problem::TooMuch { over: LimitExceeded::Bytes(_) });
        assert!(large, "{grammar}: {error}");
    }
    // A text that grows with every rule is none of these: what is long is called.
    let grown = gbnf("root ::= x{1000}\nx ::= y{1000}\ny ::= z{1000}\nz ::= \"a\" | \"bb\"").unwrap();
    assert!(after(&grown, &"a".repeat(5000)).is_some_and(|state| !grown.is_end(&state)));
    let doubling = |n| lines(n, |at| format!("r{at} ::= r{0} r{0}", at + 1)) + &format!("r{n} ::= \"a\"\n");
    let doubled = gbnf(&format!("root ::= r0\n{}", doubling(16))).unwrap();
    assert!(whole(&doubled, &"a".repeat(1 << 16)) && !whole(&doubled, &"a".repeat((1 << 16) - 1)));
    assert!(after(&gbnf(&format!("root ::= r0\n{}", doubling(100))).unwrap(), &"a".repeat(1000)).is_some());
    let limits = Limits::default().steps(1000);
    let many = lines(5000, |n| format!("r{n} ::= \"a\""));
    let error = ContextFree::gbnf(&format!("root ::= r0\n{many}"), limits).unwrap_err();
    assert!(matches!(error.problem, Problem::TooMuch { over: LimitExceeded::Steps(1000) }), "{error}");
    let error = ContextFree::gbnf("root ::= \"abc\"", Limits::default().bytes(100)).unwrap_err();
    assert!(matches!(error.problem, Problem::TooMuch { over: LimitExceeded::Bytes(100) }), "{error}");
}

#[test]
fn groups_and_texts_may_be_deep() {
    let deep = 60_000;
    let around = |open: &str, close: &str| format!("root ::= {}\"x\"{}", open.repeat(deep), close.repeat(deep));
    assert!(whole(&gbnf(&around("(", ")")).unwrap(), "x"));
    assert!(whole(&gbnf(&around("(", ")*")).unwrap(), "xx"));
    let nested = gbnf(&around("(\"a\" ", ")?")).unwrap();
    assert!(whole(&nested, &format!("{}x", "a".repeat(deep))) && whole(&nested, "aaa"));
    assert!(!whole(&nested, "aax"));
    let both = gbnf(&around("(\"a\" ", "\"b\")")).unwrap();
    assert!(whole(&both, &format!("{}x{}", "a".repeat(deep), "b".repeat(deep))));
    let unclosed = gbnf(&format!("root ::= {}", "(".repeat(deep))).unwrap_err();
    assert!(matches!(unclosed.problem, GrammarProblem::Syntax { .. }));
    // Each rule needs the next.
    let chain = lines(20_000, |n| format!("r{n} ::= \"a\" r{} | \"b\"", n + 1));
    let chain = gbnf(&format!("root ::= r0\n{chain}r20000 ::= \"c\"")).unwrap();
    assert!(whole(&chain, &format!("{}b", "a".repeat(3000))));
    // And a text that is deeper than any stack, let go.
    let brackets = gbnf("root ::= \"[\" root* \"]\"").unwrap();
    let state = after(&brackets, &"[".repeat(1_000_000)).unwrap();
    assert!(!brackets.is_end(&state));
    drop(state);
}

#[test]
fn lists_by_recursion_at_their_end_need_no_stack() {
    let list = gbnf("root ::= \"a\" (\",\" root)? | \"(\" root \")\"").unwrap();
    assert_eq!(after(&list, "a"), after(&list, "a,a,a,a"));
    assert_ne!(after(&list, "a"), after(&list, "(a"));
    assert_eq!(after(&list, "(a"), after(&list, "(a,a"));
    assert_eq!(check_rule(&list, 300).map(|checked| checked.complete).ok(), Some(false));
}

/// Walks a rule and Earley's parser side by side, by characters that are drawn of those that may come.
fn same_language(rule: &ContextFree, naive: &Cfg, choices: &[prop::sample::Index]) -> Result<(), TestCaseError> {
    let mut parser = naive.parser();
    let (mut state, mut written) = (rule.start(), String::new());
    for choice in choices {
        prop_assert_eq!(rule.is_end(&state), parser.is_end(), "after {:?}", written);
        let mut legal = Vec::new();
        for character in Expression::ALPHABET {
            let bytes = character.to_string();
            let next = bytes.bytes().try_fold(state.clone(), |state, byte| rule.step(&state, byte));
            let expected = parser.read(character);
            prop_assert_eq!(next.is_some(), expected.is_some(), "after {:?}: {:?}", written, character);
            legal.extend(next.zip(expected).map(|(next, expected)| (character, next, expected)));
        }
        if legal.is_empty() {
            break;
        }
        let (character, next, expected) = legal.swap_remove(choice.index(legal.len()));
        written.push(character);
        (state, parser) = (next, expected);
    }
    prop_assert_eq!(whole(rule, &written), parser.is_end(), "{:?}", written);
    Ok(())
}

#[test]
fn rules_may_begin_with_themselves() {
    for (grammar, legal, illegal) in [
        ("root ::= root \"a\" | \"b\"", &["b", "baa"][..], &["", "a", "bb"][..]),
        ("root ::= \"\" x \"a\" | \"b\"\nx ::= y? root\ny ::= \"c\"", &["b", "ba", "cba", "ccbaa"], &["c", "bb", "a"]),
        ("root ::= root \"+\" root | [0-9]", &["1", "1+2+3"], &["+", "1+", "12"]),
        // Through each other, with what may be empty before it.
        (
            "root ::= one\none ::= n two \"x\" | \"1\"\ntwo ::= one? \"y\"\nn ::= \"\"",
            &["1", "1yx", "yx", "yxyx"],
            &["1y", "y"],
        ),
        ("root ::= root? \"(\" root? \")\"", &["()", "()()", "(()())()"], &["", "(", ")("]),
    ] {
        let rule = gbnf(grammar).unwrap();
        for text in legal {
            assert!(whole(&rule, text), "{grammar} allows {text:?}");
        }
        for text in illegal {
            assert!(!whole(&rule, text), "{grammar} refuses {text:?}");
        }
    }
    let finite = gbnf("root ::= root \"+\" [0-9] | [0-9]").unwrap();
    assert!(finite.is_finite() && whole(&finite, "1+2+3"), "a list by recursion at its beginning is an automaton");
    let circle = lines(40, |n| format!("r{n} ::= r{} | \"a\" \"{n}\"", (n + 1) % 40));
    let circle = gbnf(&format!("root ::= \"b\" r0\n{circle}")).unwrap();
    assert!(whole(&circle, "ba39") && !whole(&circle, "b39"));
}

#[test]
fn reads_lark() {
    for (grammar, legal, illegal) in [
        ("start: \"a\"", &["a"][..], &["", "b", "aa"][..]),
        (
            "?start: A b \"c\" // end\nA: \"x\"i | \"y\" .. \"z\"\n!b: /[0-9]+/ | \n",
            &["Xc", "x12c", "y3c"],
            &["ac", "x1"],
        ),
        (
            "start: sum\nsum: product\n   | sum \"+\" product -> add\nproduct: atom | product \"*\" atom\n\
          ?atom.2: NUMBER\n\n     # a comment\n     | \"(\" sum \")\"\n%import common.INT -> NUMBER\n%ignore \" \"",
            &["1", "1+2*3", " (1 + 2) * 3 ", "((7))"],
            &["", "1+", "(1", "1)", "1 2", "+1", "1+ +1"],
        ),
        (
            "start: [\"a\"] \"b\"? (\"c\" | \"d\")* \"e\"~2 \"f\"~0..1 \"g\"{1,2} \"h\"{,1} \"i\"{1,}",
            &["eegi", "abcdceefgghiii"],
            &["egi", "eeggggi", "eeg"],
        ),
        ("start: /\\/\\*x/ /a.b/s /A/i /[^\\]\\n]/", &["/*xa\nbaZ", "/*xa\nbA["], &["/*xa\nba]", "/*xacbaa\n"]),
        ("start: _LIST\n_LIST: ITEM (\",\" ITEM)*\nITEM: \"a\" | \"b\"", &["a", "a,b"], &["a, b", "a,"]),
        ("start[capture]: x\nx[capture=\"it\"]: \"a\"\n%llguidance {}", &["a"], &["b"]),
        (
            "%import common (WS, ESCAPED_STRING)\nstart: \"{\" ESCAPED_STRING \":\" ESCAPED_STRING \"}\"\n%ignore WS",
            &["{\"a\":\"b\"}", "{ \"a\\\"\"\t: \"b\" }\n"],
            &["{\"a\" \"b\"}", "{\"a:\"b\"}"],
        ),
        ("start: x*\nx: \"a\"? \"b\"?", &["", "abba"], &["c"]),
        ("start: \"\\u00e9\\x41\\n\\\"\" \"\\U0001F980\"", &["éA\n\"🦀"], &["eA\n\"🦀"]),
        // All ways to split a text into terminals.
        ("start: NAME \"and\" NAME\nNAME: /[a-z]+/", &["xandy", "andandand"], &["and", "xand"]),
        (
            "start: \"say \" %regex {\"substring_words\": \"to be or not to be\"} \"!\"",
            &["say to be!", "say or not!", "say !", "say be or!", "say  to!"],
            &["say to or!", "say o!", "say be be!"],
        ),
        (
            "start: %regex {\"substring_chunks\": [\"a\", \"ab\", \"c\"]} \".\"",
            &["a.", "ab.", "aab.", "abc.", "aabc."],
            &["b.", "ac.", "aba."],
        ),
    ] {
        let rule = lark(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
        for text in legal {
            assert!(whole(&rule, text), "{grammar} allows {text:?}");
        }
        for text in illegal {
            assert!(!whole(&rule, text), "{grammar} refuses {text:?}");
        }
        check_rule(&rule, 300).unwrap();
    }
}

#[test]
fn substrings_are_those_of_the_text() {
    let text = "the cat that sat on that mat";
    let rule = lark(&format!("start: %regex {{\"substring_chars\": \"{text}\"}}")).unwrap();
    for from in 0..=text.len() {
        for end in from..=text.len() {
            assert!(whole(&rule, &text[from..end]));
            let changed = text[from..end].replace('a', "o");
            assert_eq!(whole(&rule, &changed), text.contains(&changed), "{changed:?}");
        }
    }
}

#[test]
fn a_rule_of_another_kind_stands_inside_lark() {
    let schemas = |text: &str| {
        let pattern = text.trim_matches('"');
        Regex::new(pattern).map(EmbeddedRule::new).map_err(|error| error.to_string())
    };
    let read = |text: &str| ContextFree::lark(text, Limits::default(), Some(&schemas));
    let list = read("start: start \",\" %json \"[a-c]*\" | \"<\" start? \">\"").unwrap();
    for text in ["<>", "<>,abc", "<<>,a,>,,b"] {
        assert!(whole(&list, text), "{text:?}");
    }
    for text in ["", ",", "<>d", "<>,abcd", "<,"] {
        assert!(!whole(&list, text), "{text:?}");
    }
    check_rule(&list, 300).unwrap();
    let error = read("start: \"a\"\n  %json \"(\"").err();
    assert!(error.is_none_or(|error| error.place.line == 2), "the second line is no part of the first");
    let error = read("start: \"a\" |\n  %json \"(\"").unwrap_err();
    assert_eq!((error.place.line, error.place.column), (2, 3), "{error}");
    assert!(lark("start: %json {}").unwrap_err().to_string().contains("%json is not supported"));
}

#[test]
fn lark_says_the_place_of_an_error() {
    use GrammarProblem as Problem;
    for (grammar, line, column, says) in [
        ("", 1, 1, "missing rule start"),
        ("begin: \"a\"", 1, 11, "missing rule start"),
        ("start: nobody", 1, 8, "named nobody"),
        ("start: \"a\"\nb: ( \"x\"\nc: \"y\"", 3, 2, "the bracket of line 2, column 4 is not closed"),
        ("start: \"a\" ?? %", 1, 15, "unknown %"),
        ("start \"a\"", 1, 7, ": must follow start"),
        ("start: \"a\"\nstart: \"b\"", 2, 1, "start is defined already, at line 1, column 1"),
        ("start: \"a", 1, 8, "the closing \" is missing"),
        ("start: /a", 1, 8, "the closing / is missing"),
        ("start: /(/", 1, 8, "unclosed group"),
        ("start: /a/q", 1, 8, "unknown flag q"),
        ("start: \"b\"..\"a\"", 1, 8, "no character is from 'b' to 'a'"),
        ("start: \"ab\"..\"c\"", 1, 8, "one character at each end"),
        ("start: (\"a\"]", 1, 12, "does not close the bracket of line 1, column 8"),
        ("start: \"a\")", 1, 11, "unmatched closing bracket"),
        ("start: * \"a\"", 1, 8, "nothing before it"),
        ("start: \"a\"~", 1, 12, "a number of times must come here"),
        ("start: \"a\"{3,2}", 1, 11, "from 3 to 2 times is never"),
        ("start: A\nA: b\nb: \"x\"", 2, 4, "a terminal cannot use the rule b"),
        ("start: \"a\"\n%import common.NOBODY", 2, 1, "unknown name NOBODY of common"),
        ("start: \"a\"\n%imprt common.WS", 2, 1, "unknown directive %imprt"),
        ("start: \"a\" start", 1, 1, "never ends"),
        ("start: \"\\q\"", 1, 9, "'q' cannot be escaped"),
    ] {
        let error = lark(grammar).unwrap_err();
        assert!(error.to_string().contains(says), "{grammar}: {error}");
        assert_eq!((error.place.line, error.place.column), (line, column), "{grammar}: {error}");
    }
    for (grammar, says) in [
        ("start: <|tool|>", "a special token is not supported"),
        ("start: <[7]>", "a special token is not supported"),
        ("start: x\nx[max_tokens=3]: /.*/", "max_tokens=, stop=, suffix= or temperature= is not supported"),
        ("start: x\nx[stop=\"a\"]: /.*/", "is not supported"),
        ("start: x\nx[lazy]: /.*/", "lazy is not supported"),
        ("start: A & B", "& between terminals is not supported"),
        ("start: ~A", "~ before a terminal is not supported"),
        ("start: list{A}\nlist{x}: x", "a template is not supported"),
        ("list{x}: x\nstart: \"a\"", "a template is not supported"),
        ("%import .own.NAME\nstart: NAME", "an import from \".own.NAME\" is not supported"),
        ("%declare A\nstart: A", "%declare is not supported"),
        ("start: /\\bword\\b/", "what looks around in /\\bword\\b/ is not supported"),
    ] {
        let error = lark(grammar).unwrap_err();
        assert!(matches!(error.problem, Problem::Unsupported { .. }), "{grammar}: {error}");
        assert!(error.to_string().contains(says), "{grammar}: {error}");
    }
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
        let endless = naive.has_endless();
        for rule in [gbnf(&text), lark(&Expression::lark(&rules))] {
            let rule = match rule {
                Ok(rule) if !endless => rule,
                Err(GrammarError { problem: GrammarProblem::Endless { .. }, .. }) if endless => continue,
                other => panic!("{text}\n{other:?}"),
            };
            same_language(&rule, &naive, &choices)?;
        }
    }

    #[test]
    fn blanks_stand_between_terminals(
        rules in written(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let naive = Cfg::of(&Expression::with_blanks(&rules));
        let text = Expression::lark(&rules) + "%ignore \"c\"\n%ignore /b{2}/\n";
        if let Ok(rule) = lark(&text) {
            same_language(&rule, &naive, &choices)?;
        }
    }
    #[test]
    fn tokens_are_those_that_steps_allow(rules in written(), pieces in vocabulary()) {
        let Ok(rule) = gbnf(&Expression::text(&rules)) else { return Ok(()) };
        compare(rule, &with_all_bytes(&pieces), &[], 25)?;
    }

    #[test]
    fn texts_that_are_drawn_are_legal(rules in written(), seed in any::<u32>()) {
        let Ok(rule) = gbnf(&Expression::text(&rules)) else { return Ok(()) };
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
