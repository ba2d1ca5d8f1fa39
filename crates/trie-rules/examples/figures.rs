//! Measures compilation of rules that are finite automata, and their first mask over a vocabulary of
//! `TOKENTRIE_VOCAB_DIR`.

#[path = "../tests/common/vocab.rs"]
#[allow(unreachable_pub)]
mod vocab;

use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::{Constraint, Scratch, TokenId};
use trie_rules::{ByRule, Machine, MaskLimits, NumberOptions, Regex, Regular, StringOptions, TokenBytes};

fn tokens() -> Option<Arc<TokenBytes>> {
    let path = vocab::files().into_iter().find(|path| path.ends_with("ggml-vocab-qwen2.gguf"))?;
    let pieces = vocab::pieces(&path);
    let text = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
    let text = text.map(|(id, piece)| (piece.as_slice(), TokenId::new(id as u32).unwrap()));
    Some(Arc::new(TokenBytes::new(pieces.len(), text).unwrap()))
}

fn least<T>(times: usize, mut what: impl FnMut() -> T) -> (Duration, T) {
    let once = |_| {
        let begin = Instant::now();
        let made = what();
        (begin.elapsed(), made)
    };
    (0..times).map(once).min_by_key(|(time, _)| *time).unwrap()
}

const PATTERNS: [(&str, &str); 9] = [
    ("date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    (r"date, \d", r"\d{4}-\d{2}-\d{2}"),
    ("e-mail", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,24}"),
    (r"e-mail, \w", r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    (
        "time",
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})",
    ),
    (r"time, \d", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"),
    ("IPv4", r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"),
    (
        "IPv6",
        "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}\
         |:((:[0-9a-fA-F]{1,4}){1,7}|:)",
    ),
    ("any text", r"(?s).*"),
];

fn print_figures(name: &str, tokens: &Arc<TokenBytes>, make: impl FnMut() -> Regular) {
    let (time, rule) = least(5, make);
    let (mask, _) =
        least(5, || rule.any().compile_for(Arc::clone(tokens).into(), MaskLimits::default()).unwrap().constraint());
    println!("{name}: {rule:?}, made in {time:?}, first mask {mask:?}");
}

fn values(tokens: &Arc<TokenBytes>) {
    let integer = |low, high| move || Regular::integer(low, high).unwrap();
    let string = |most| move || Regular::string(StringOptions::default().max_chars(most)).unwrap();
    print_figures("Integer(0, 999)", tokens, integer(Some(0), Some(999)));
    print_figures("Integer(i128)", tokens, integer(Some(i128::MIN), Some(i128::MAX)));
    print_figures("Number", tokens, || Regular::number_with(NumberOptions::default()).unwrap());
    print_figures("Date", tokens, Regular::date);
    print_figures("String(100)", tokens, string(100));
    print_figures("String(4000)", tokens, string(4000));
    let quote = Regular::regex("\"").unwrap();
    print_figures("'\"' + String(1000) + '\"'", tokens, || {
        quote.followed_by(&string(1000)()).and_then(|begun| begun.followed_by(&quote)).unwrap()
    });
}

/// Memory of this process in MiB: now, and at most until now.
fn memory() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<usize>().ok()
    };
    (field("VmRSS:").unwrap_or(0) / 1024, field("VmHWM:").unwrap_or(0) / 1024)
}

fn million(tokens: &Arc<TokenBytes>) {
    // Like names of products: words, then a number.
    let words = ["Alpha", "Beta", "Gamma", "Delta", "Omega", "Sigma", "North", "South", "East", "West", "Blue", "Red"];
    let mut at = 1u64;
    let mut random = move |below: u64| {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (at >> 33) % below
    };
    let texts: Vec<String> = (0..1_000_000)
        .map(|_| format!("{} {}-{}", words[random(12) as usize], words[random(12) as usize], random(100_000_000)))
        .collect();
    let before = memory().0;
    let begin = Instant::now();
    let list = Regular::one_of([], &texts).unwrap();
    let made = begin.elapsed();
    let Machine::Choice(choice) = list.machine() else { return };
    let (after, most) = memory();
    println!(
        "a million texts ({} MiB): made in {made:?}, {} MiB held, {} MiB more resident, {} MiB at most",
        texts.iter().map(String::len).sum::<usize>() >> 20,
        choice.nbytes() >> 20,
        after - before,
        most - before
    );
    let random_bytes: Vec<String> =
        (0..1_000_000).map(|_| (0..4 + random(12)).map(|_| char::from(b' ' + random(95) as u8)).collect()).collect();
    let begin = Instant::now();
    let wild = Regular::one_of([], &random_bytes).unwrap();
    println!("a million texts of random characters: made in {:?}", begin.elapsed());
    let either = Regular::one_of([Regular::regex("[0-9]+").unwrap(), list.clone()], &["x"]).unwrap();
    let quote = Regular::regex("\"").unwrap();
    let quoted = quote.followed_by(&list).and_then(|begun| begun.followed_by(&quote)).unwrap();
    let found = Regular::regex("(?s).*").unwrap().followed_by(&list).unwrap();
    for (name, rule) in
        [("alone", list), ("random", wild), ("or digits", either), ("quoted", quoted), (".* before", found)]
    {
        let (mask, constraint) =
            least(3, || rule.any().compile_for(Arc::clone(tokens).into(), MaskLimits::default()).unwrap().constraint());
        println!("a million texts, {name}: first mask {mask:?}");
        // A walk byte by byte, mask by mask.
        let (mut state, mut scratch, mut times) = (constraint.start(), Scratch::default(), Vec::new());
        let ids = || (0..tokens.n_vocab() as u32).filter_map(TokenId::new);
        for byte in b"\"Alpha Be" {
            let token = ids().find(|&token| tokens.bytes(token) == [*byte]).unwrap();
            let begin = Instant::now();
            let next = constraint.next(&state, &mut scratch);
            let time = begin.elapsed();
            if !next.tokens.contains(token) {
                continue;
            }
            times.push(time);
            state = constraint.step(&state, token).unwrap().state;
        }
        println!("  masks on the way: {times:?}");
    }
}

fn main() {
    let Some(tokens) = tokens() else { return println!("no ggml-vocab-qwen2.gguf: nothing measured") };
    println!("{} tokens", tokens.len());
    for (name, pattern) in PATTERNS {
        let (made, regex) = least(20, || Regex::new(pattern).unwrap());
        let (mask, _) = least(20, || ByRule::new(regex.clone(), Arc::clone(&tokens)).unwrap());
        println!("{name}: {} states, made in {made:?}, first mask {mask:?}", regex.automaton().states());
    }
    values(&tokens);
    million(&tokens);
}
