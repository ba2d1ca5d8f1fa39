//! Rules in WebAssembly: random automata beside the same ones in Rust, and modules that mean harm.

use crate::common::{compare, id, tokens, vocabulary, with_all_bytes};
use proptest::prelude::*;
use std::fmt::Write;
use std::time::{Duration, Instant};
use trie_core::work::{LimitExceeded, Limits, Work};
use trie_core::{Constraint, Problem, Scratch, TokenId};
use trie_rules::{AnyRule, Broken, ByRule, ByRuleError, DeadEnd, Read, Rule, Wasm, WasmError, check_rule};

/// A table of states: the next by a byte, and whether a text ends there.
#[derive(Debug, Clone)]
struct Table(Vec<([Option<u8>; 256], bool)>);

impl Rule for Table {
    type State = i64;

    fn start(&self) -> i64 {
        0
    }

    fn step(&self, &state: &i64, byte: u8) -> Option<i64> {
        self.0[state as usize].0[usize::from(byte)].map(i64::from)
    }

    fn is_end(&self, &state: &i64) -> bool {
        self.0[state as usize].1
    }
}

/// The same as a module, which keeps it in its memory.
fn written(table: &Table, with_allowed: bool) -> String {
    let (mut next, mut ends, mut words) = (String::new(), String::new(), String::new());
    for (steps, end) in &table.0 {
        for to in steps {
            write!(next, "\\{:02x}", to.unwrap_or(255)).unwrap();
        }
        write!(ends, "\\{:02x}", u8::from(*end)).unwrap();
        for eight in steps.chunks(8) {
            let bits = eight.iter().rev().fold(0u8, |bits, to| bits << 1 | u8::from(to.is_some()));
            write!(words, "\\{bits:02x}").unwrap();
        }
    }
    let allowed = "(func (export \"allowed\") (param i64 i32) (result i64)
        (i64.load offset=8192 (i32.add (i32.shl (i32.wrap_i64 (local.get 0)) (i32.const 5))
                                       (i32.shl (local.get 1) (i32.const 3)))))";
    format!(
        "(module (memory 1)
          (data (i32.const 0) \"{next}\") (data (i32.const 4096) \"{ends}\") (data (i32.const 8192) \"{words}\")
          (func (export \"start\") (result i64) i64.const 0)
          (func (export \"step\") (param i64 i32) (result i64) (local i64)
            (local.set 2 (i64.load8_u (i32.add (i32.shl (i32.wrap_i64 (local.get 0)) (i32.const 8)) (local.get 1))))
            (select (i64.const -1) (local.get 2) (i64.eq (local.get 2) (i64.const 255))))
          (func (export \"is_end\") (param i64) (result i32) (i32.load8_u offset=4096 (i32.wrap_i64 (local.get 0))))
          {})",
        if with_allowed { allowed } else { "" }
    )
}

fn module(text: &str) -> Wasm {
    Wasm::new(&wat::parse_str(text).unwrap()).unwrap()
}

fn table() -> impl Strategy<Value = Table> {
    (1..8u8).prop_flat_map(|states| {
        let some = prop::collection::vec((prop::sample::select(b"abc0\xc3\xa9".to_vec()), 0..states), 0..6);
        let state = (some, prop::option::weighted(0.1, 0..states), any::<bool>()).prop_map(|(some, other, end)| {
            let mut next = [other; 256];
            for (byte, to) in some {
                next[usize::from(byte)] = Some(to);
            }
            (next, end)
        });
        prop::collection::vec(state, usize::from(states)).prop_map(Table)
    })
}

proptest! {
    #[test]
    fn a_module_allows_what_its_automaton_does(
        table in table(),
        pieces in vocabulary(),
        with_allowed in any::<bool>(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let pieces = with_all_bytes(&pieces);
        let rule = module(&written(&table, with_allowed));
        compare(rule.clone(), &pieces, &[], 20)?;
        let made = (ByRule::new(rule, tokens(&pieces, &[])), ByRule::new(table, tokens(&pieces, &[])));
        let (asked, native) = match made {
            (Ok(asked), Ok(native)) => (asked, native),
            (asked, native) => {
                prop_assert_eq!(asked.err(), native.err());
                return Ok(());
            }
        };
        let (mut at, mut there) = (asked.start(), native.start());
        for pick in picks {
            let mut scratch = (Scratch::default(), Scratch::default());
            let (got, want) = (asked.next(&at, &mut scratch.0), native.next(&there, &mut scratch.1));
            let legal: Vec<TokenId> = want.tokens.iter().collect();
            prop_assert_eq!(got.tokens.iter().collect::<Vec<_>>(), legal.clone());
            prop_assert_eq!(got.ending, want.ending);
            if legal.is_empty() {
                let problems = (asked.problem(&at), native.problem(&there));
                let dead = |of: &Option<Problem>| of.as_ref().map(|of| of.downcast_ref::<DeadEnd>().cloned());
                prop_assert_eq!(dead(&problems.0), dead(&problems.1));
                break;
            }
            let token = *pick.get(&legal);
            (at, there) = (asked.step(&at, token).unwrap().state, native.step(&there, token).unwrap().state);
        }
    }

    #[test]
    fn damaged_modules_are_told_of(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = wat::parse_str(written(&Table(vec![([Some(0); 256], true)]), true)).unwrap();
        let at = at.index(bytes.len());
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        // Whatever it is, it answers or says why not.
        if let Ok(rule) = Wasm::new(&bytes) {
            let asked = ByRule::new(rule.clone(), tokens(&with_all_bytes(&[]), &[]));
            let mut scratch = Scratch::default();
            if let Ok(asked) = asked && asked.next(&asked.start(), &mut scratch).tokens.is_empty() {
                prop_assert!(asked.problem(&asked.start()).is_some());
            }
        }
    }
}

/// A rule of any text over a few states, with these functions in place of those.
fn with(functions: &str) -> String {
    let mut text = format!("(module {functions}");
    for (name, code) in [
        ("start", "(func (export \"start\") (result i64) i64.const 0)"),
        ("step", "(func (export \"step\") (param i64 i32) (result i64) i64.const 0)"),
        ("is_end", "(func (export \"is_end\") (param i64) (result i32) i32.const 1)"),
    ] {
        if !functions.contains(&format!("\"{name}\"")) {
            text += code;
        }
    }
    text + ")"
}

/// The time of this thread: others may have the processor meanwhile.
fn own_time(began: Instant) -> Duration {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = said.split(' ').next().and_then(|number| number.parse().ok());
    nanoseconds.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let (clock, began) = (Instant::now(), own_time(Instant::now()));
    let done = work();
    let took = own_time(clock).saturating_sub(began);
    // Beside other tests one was seen: only what nothing bounds takes so long.
    assert!(took < Duration::from_secs(5), "{what}: {took:?}");
    done
}

/// What is said of a module when it is made, or over a vocabulary.
fn said(what: &str, bytes: &[u8]) -> String {
    quickly(what, || match Wasm::new(bytes) {
        Err(error) => error.to_string(),
        Ok(rule) => {
            let pieces: Vec<Vec<u8>> = (0..3000_u32).map(|n| format!("{n:b}a{n}").into_bytes()).collect();
            match ByRule::new(rule, tokens(&with_all_bytes(&pieces), &[])) {
                Err(ByRuleError::Failed(problem)) => problem.to_string(),
                Err(error) => error.to_string(),
                Ok(rule) => rule.problem(&rule.start()).map_or("nothing".to_owned(), |problem| problem.to_string()),
            }
        }
    })
}

#[test]
fn what_means_harm_is_refused_by_name_and_soon() {
    let step = |code: &str| with(&format!("(func $s (export \"step\") (param i64 i32) (result i64) {code})"));
    let spin = "(local i32) (loop (br_if 0 (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1)))
                (i32.const 20000)))) i64.const 0";
    for (text, says) in [
        (step("(loop br 0) i64.const 0"), "step(0, 0) takes more than 250000 units of fuel"),
        (with("(func (export \"start\") (result i64) (loop br 0) i64.const 0)"), "start() takes more than"),
        (with("(func (export \"is_end\") (param i64) (result i32) (loop br 0) i32.const 1)"), "is_end(0) takes more"),
        (with("(func (export \"allowed\") (param i64 i32) (result i64) (loop br 0) i64.const 1)"), "allowed(0, 0)"),
        (step(spin), "the calls for one answer take more than 25000000 units of fuel"),
        (step("unreachable"), "step(0, 0) trapped: "),
        (step("(i64.div_u (i64.const 1) (i64.const 0))"), "step(0, 0) trapped: "),
        (step("(call $s (local.get 0) (local.get 1))"), "step(0, 0) trapped: "),
        (
            with(
                "(memory 1) (func (export \"step\") (param i64 i32) (result i64)
               (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable)) i64.const 0)",
            ),
            "trapped",
        ),
        (
            with(
                "(memory 1) (func (export \"step\") (param i64 i32) (result i64)
               (loop (memory.fill (i32.const 0) (i32.const 1) (i32.const 65536)) br 0) i64.const 0)",
            ),
            "of fuel",
        ),
        (with("(memory 65536)"), "the module cannot be begun: "),
        (with("(table 100000 funcref)"), "the module cannot be begun: "),
        (with("(func $s (loop br 0)) (start $s)"), "disallows start functions but found one"),
        (with("(import \"env\" \"now\" (func))"), "the module imports env.now: a rule imports nothing"),
        (with("(import \"env\" \"memory\" (memory 1))"), "the module imports env.memory"),
        (
            with("(func (export \"step\") (param i32 i32) (result i32) i32.const 0)"),
            "must export step as a function (i64",
        ),
        (with("(global (export \"is_end\") i32 (i32.const 1))"), "must export is_end as a function (i64) -> i32"),
        (with("(memory (export \"allowed\") 1)"), "must export allowed as a function (i64, i32) -> i64"),
        (with("(func (export \"start\") (result i64) i64.const -1)"), "start gave -1: states are at least 0"),
        (step("i64.const -1"), "the rule allows only the empty text"),
        (
            with(
                "(func (export \"step\") (param i64 i32) (result i64) i64.const -1)
               (func (export \"is_end\") (param i64) (result i32) i32.const 0)",
            ),
            "the rule allows no text",
        ),
    ] {
        let found = said(&text, &wat::parse_str(&text).unwrap());
        assert!(found.contains(says), "{text}: {found}");
    }
    assert_eq!(said("no module", b"start: a"), Wasm::new(b"start: a").unwrap_err().to_string());
}

#[test]
fn bombs_are_refused_or_bounded() {
    let many = |functions: usize| {
        let mut bytes = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0".to_vec();
        let number = |bytes: &mut Vec<u8>, mut number: usize| {
            while number > 127 {
                bytes.push(number as u8 | 128);
                number >>= 7;
            }
            bytes.push(number as u8);
        };
        for (section, each) in [(3, &[0][..]), (10, &[2, 0, 11])] {
            let mut inside = Vec::new();
            number(&mut inside, functions);
            inside.extend(each.iter().cycle().take(functions * each.len()));
            bytes.push(section);
            number(&mut bytes, inside.len());
            bytes.extend(inside);
        }
        bytes
    };
    assert!(said("10^6 functions", &many(1_000_000)).contains("bytes: it may have 1048576"));
    let found = said("as many as there is room for", &many(260_000));
    assert!(found.contains("must export start"), "{found}");
    let nested =
        |of: &str, end: &str, count: usize| with(&format!("(func {} {})", of.repeat(count), end.repeat(count)));
    for (what, text) in [
        ("blocks", nested("block ", "end ", 200_000)),
        ("conditions", nested("i32.const 1 if ", "end ", 150_000)),
        (
            "locals",
            with(&"(func (local i64) (local i64 i64))".replace("(local i64 i64)", &"(local i64)".repeat(40_000))),
        ),
        ("targets", with(&format!("(func (block (br_table {} (i32.const 1))))", "0 ".repeat(400_000)))),
        ("globals", with(&"(global i32 (i32.const 0))".repeat(150_000))),
        ("data", with(&format!("(memory 1) {}", "(data (i32.const 0) \"\")".repeat(90_000)))),
    ] {
        let bytes = wat::parse_str(&text).unwrap();
        let found = said(what, &bytes);
        eprintln!("{what}, {} bytes: {found}", bytes.len());
    }
}

#[test]
fn what_never_comes_back_to_a_state_is_walked_all_the_same() {
    // The state holds the last eight bytes: nearly every beginning of a token is a state of its own.
    let text = with(
        "(func (export \"step\") (param i64 i32) (result i64)
           (i64.and (i64.or (i64.shl (local.get 0) (i64.const 8)) (i64.extend_i32_u (local.get 1)))
                    (i64.const 0x7fffffffffffffff)))",
    );
    let pieces: Vec<Vec<u8>> = (0..30_000_u64).map(|n| (n * n).to_le_bytes()[..5].to_vec()).collect();
    let pieces = with_all_bytes(&pieces);
    quickly("ever new states", || {
        let rule = ByRule::new(module(&text), tokens(&pieces, &[])).unwrap();
        assert_eq!(rule.next(&rule.start(), &mut Scratch::default()).tokens.iter().count(), pieces.len());
        assert!(rule.stats().walker_bytes < 40 << 20, "{:?}", rule.stats());
    });
}

#[test]
fn what_fails_is_asked_again_and_says_so_once() {
    // It traps at "b", and goes on after "a".
    let text = with(
        "(func (export \"step\") (param i64 i32) (result i64)
           (if (i32.eq (local.get 1) (i32.const 98)) (then unreachable))
           (select (i64.const 0) (i64.const -1) (i32.eq (local.get 1) (i32.const 97))))",
    );
    let rule = module(&text);
    assert_eq!(AnyRule::read(&rule, b"aa"), Read::Whole);
    assert!(AnyRule::take_failure(&rule).is_none());
    for _ in 0..2 {
        assert_eq!(AnyRule::read(&rule, b"ab"), Read::Refused { at: 1 });
        assert!(rule.failing() && rule.step(&0, b'a').is_none(), "nothing counts until it was heard of");
        let problem = AnyRule::take_failure(&rule).unwrap();
        assert!(matches!(problem.downcast_ref(), Some(WasmError::Trap { function: "step", .. })), "{problem}");
        assert!(!rule.failing() && rule.step(&0, b'a') == Some(0));
    }
    // A failure of one rule is none of another's.
    assert!(AnyRule::read(&rule, b"b") == Read::Refused { at: 0 } && module(&with("")).failure().is_none());
}

#[test]
fn what_remembers_more_than_its_state_breaks_a_law() {
    let text = with(
        "(global $asked (mut i32) (i32.const 0))
         (func (export \"step\") (param i64 i32) (result i64)
           (global.set $asked (i32.add (global.get $asked) (i32.const 1)))
           (select (i64.const 0) (i64.const -1) (i32.and (global.get $asked) (i32.const 1))))",
    );
    let broken = check_rule(&module(&text), 10).unwrap_err();
    assert!(matches!(broken, Broken::ChangesItsMind { .. }), "{broken}");
    // Walked all the same, it gives tokens of which some are refused when they come, and nothing else.
    let rule = ByRule::new(module(&text), tokens(&with_all_bytes(&[]), &[])).unwrap();
    let at = rule.start();
    let allowed = rule.next(&at, &mut Scratch::default()).tokens.iter().count();
    let taken = (0..256).filter(|&token| rule.step(&at, id(token)).is_some()).count();
    assert!(allowed < 256 && taken < 256, "{allowed} allowed, {taken} taken");
}

#[test]
fn limits_hold() {
    let bytes = wat::parse_str(with("")).unwrap();
    let made = |limits: Limits| Wasm::with_limits(&bytes, limits).map(|_| ());
    assert_eq!(made(Limits::default().bytes(256)), Err(WasmError::TooLarge { bytes: bytes.len(), most: 1 }));
    assert!(matches!(made(Limits::default().steps(100)), Err(WasmError::Fuel { function: "start", fuel: 0, .. })));
    let grows = with("(memory 10)");
    let grows = wat::parse_str(grows).unwrap();
    let limits = Limits::default().bytes(64 << 16);
    assert!(matches!(Wasm::with_limits(&grows, limits), Err(WasmError::Instance { .. })));
    // Work that is over ends it, too, and is no fault of the module.
    let rule = module(&with(""));
    Work::new(Limits::default().steps(50_000)).run(|| {
        let last = (0..100_000).take_while(|_| rule.step(&0, b'a').is_some()).count();
        assert!(last < 51_000 && rule.failure().unwrap().downcast_ref::<LimitExceeded>().is_some(), "{last}");
    });
    assert_eq!(rule.step(&0, b'a'), Some(0));
}
