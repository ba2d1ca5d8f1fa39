//! What rules that are finite automata cost to make, with their first mask over a vocabulary of `TOKENTRIE_VOCAB_DIR`.

#[path = "../tests/common/vocab.rs"]
mod vocab;

use std::sync::Arc;
use std::time::{Duration, Instant};
use trie_core::TokenId;
use trie_rules::{ByRule, Regex, TokenBytes};

fn tokens() -> Option<Arc<TokenBytes>> {
    let path = vocab::files().into_iter().find(|path| path.ends_with("ggml-vocab-qwen2.gguf"))?;
    let pieces = vocab::pieces(&path);
    let text = pieces.iter().enumerate().filter(|(_, piece)| !piece.is_empty());
    let text = text.map(|(id, piece)| (piece.as_slice(), TokenId::new(id as u32).unwrap()));
    Some(Arc::new(TokenBytes::new(pieces.len(), text).unwrap()))
}

fn least<T>(times: usize, mut what: impl FnMut() -> T) -> (Duration, T) {
    let timed = |_| {
        let begin = Instant::now();
        let made = what();
        (begin.elapsed(), made)
    };
    (0..times).map(timed).min_by_key(|(time, _)| *time).unwrap()
}

const PATTERNS: [(&str, &str); 9] = [
    ("date", r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
    (r"date, \d", r"\d{4}-\d{2}-\d{2}"),
    ("e-mail", r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,24}"),
    (r"e-mail, \w", r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    ("time", r"[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})"),
    (r"time, \d", r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})"),
    ("IPv4", r"((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"),
    (
        "IPv6",
        "([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|([0-9a-fA-F]{1,4}:){1,7}:|([0-9a-fA-F]{1,4}:){1,6}:[0-9a-fA-F]{1,4}\
         |:((:[0-9a-fA-F]{1,4}){1,7}|:)",
    ),
    ("any text", r"(?s).*"),
];

fn main() {
    let Some(tokens) = tokens() else { return println!("no ggml-vocab-qwen2.gguf: nothing measured") };
    println!("{} tokens", tokens.len());
    for (name, pattern) in PATTERNS {
        let (made, regex) = least(20, || Regex::new(pattern).unwrap());
        let (mask, _) = least(20, || ByRule::new(regex.clone(), Arc::clone(&tokens)).unwrap());
        println!("{name}: {} states, made in {made:?}, first mask {mask:?}", regex.automaton().states());
    }
}
