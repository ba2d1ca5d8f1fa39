//! Texts that are tokenized in parts, on all cores, have the tokens that llama.cpp gives them one by one.

use crate::common::{in_child, tiny_model, vocab_files};
use llama_sampler::vocab_from_gguf;
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use trie_core::TokenId;
use trie_text::Vocab;

/// More than one thread takes at a time.
const TEXTS: usize = 513;

/// What splitting could get wrong: spaces of all kinds, runs of them, contractions, digits, tokens found first, letters
/// of several bytes, and the character that stands for a space in some vocabularies.
const PARTS: &[&str] = &[
    "a",
    "b",
    "the",
    "The",
    "city",
    "12",
    "2048",
    " ",
    " ",
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "\n",
    "\r\n",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "\u{2003}",
    "'s",
    "'ll",
    ".",
    ":",
    "!",
    "-",
    "(",
    ")",
    "</",
    ">",
    "\"",
    "'S",
    "'RE",
    "'d ",
    "iPhone",
    "ABC",
    "a1b2",
    "٣٤",
    "½",
    "/",
    "\n\n",
    " \n ",
    "é",
    "e\u{301}",
    "\u{301}",
    "ñandú",
    "한국어",
    "👩\u{200d}👩\u{200d}👧",
    "\u{1f1fa}\u{1f1f8}",
    "\u{feff}",
    "\u{85}",
    "\u{202e}",
    "ß",
    "日本",
    "🙂",
    "\u{2581}",
    "\0",
    "<0x20>",
    "<s>",
    "</s>",
    "<unk>",
    "[PAD151646]",
    "[PAD151646] ",
    " [PAD151646]",
    "<|tool_call>",
    " <|\"|> ",
    "<|endoftext|>",
    "\u{fffd}",
];

/// One name for each pattern by which tokenizers cut texts into words.
const PATTERNS: &[&str] = &[
    "gpt-2",
    "smollm",
    "llama-bpe",
    "dbrx",
    "glm4",
    "minicpm5",
    "qwen2",
    "stablelm2",
    "grok-2",
    "qwen35",
    "tekken",
    "deepseek-v3",
    "gpt-4o",
    "minimax-m2",
];

fn texts(count: usize) -> impl Strategy<Value = Vec<String>> {
    let text = prop::collection::vec(prop::sample::select(PARTS), 0..12).prop_map(|parts| parts.concat());
    prop::collection::vec(text, count)
}

/// The parts of a text, tokenized one by one.
fn in_parts(vocab: &Vocab, text: &str) -> Vec<TokenId> {
    let parts = vocab.split_points().unwrap().parts(text);
    parts.flat_map(|part| vocab.tokenize(part, false, false).unwrap()).collect()
}

fn same_as_one_by_one(
    vocab: &Vocab,
    texts: &[String],
    [prefix, suffix]: [&str; 2],
    name: &str,
) -> Result<(), TestCaseError> {
    let whole = |text: &String| format!("{prefix}{text}{suffix}");
    let expected: Vec<_> = texts.iter().map(|text| vocab.tokenize(&whole(text), false, false).unwrap()).collect();
    let found = vocab.tokenize_all(texts, prefix, suffix).unwrap();
    // Where one text had other tokens in parts, all would have been done again.
    prop_assert_eq!(found.in_parts(), vocab.split_points().is_some(), "{}", name);
    prop_assert_eq!(
        found.iter().collect::<Vec<_>>(),
        expected.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        "{}",
        name
    );
    if vocab.split_points().is_some() {
        for (text, expected) in texts.iter().zip(&expected).step_by(8) {
            prop_assert_eq!(&in_parts(vocab, &whole(text)), expected, "{}: {:?}", name, text);
        }
    }
    Ok(())
}

/// A file of a vocabulary with another pattern for words, in a file of its own that goes away.
fn with_words(path: &Path, words: &str) -> tempfile::NamedTempFile {
    let bytes = std::fs::read(path).unwrap();
    let key = b"tokenizer.ggml.pre\x08\0\0\0";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len();
    let length = u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let words = [&(words.len() as u64).to_le_bytes()[..], words.as_bytes()].concat();
    file.write_all(&[&bytes[..at], &words, &bytes[at + 8 + length..]].concat()).unwrap();
    file
}

/// Every pattern, over a vocabulary in which tokens cross many boundaries of words.
#[test]
fn patterns_for_words() {
    let wide = |path: &Path| ["llama-bpe.gguf", "qwen2.gguf"].iter().any(|end| path.to_string_lossy().ends_with(end));
    for path in vocab_files().iter().filter(|path| wide(path)) {
        for words in PATTERNS.iter().step_by(test_budget::every()) {
            let file = with_words(path, words);
            let vocab = vocab_from_gguf(file.path()).unwrap();
            assert!(vocab.split_points().is_some(), "{words}");
            let config = ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(1) };
            proptest!(config, |(texts in texts(TEXTS))| {
                same_as_one_by_one(&vocab, &texts, ["", ""], words)?;
            });
        }
    }
}

#[test]
fn the_same_tokens_as_one_by_one() {
    let texts = texts(5 * TEXTS);
    let around = prop::sample::select(&["", "a", " ", "the ", "\n", "The city: \"", "\"", " the city is b"][..]);
    for path in vocab_files().into_iter().chain([tiny_model()]) {
        let vocab = vocab_from_gguf(&path).unwrap();
        let name = path.display().to_string();
        println!("{name}: {}", if vocab.split_points().is_some() { "in parts" } else { "whole" });
        let config = ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::with_cases(test_budget::cases(3)) };
        proptest!(config, |(texts in &texts, prefix in &around, suffix in &around)| {
            same_as_one_by_one(&vocab, &texts, [prefix, suffix], &name)?;
        });
    }
}

/// The regular expressions of C++ recurse: threads have as much stack for them as a main thread.
#[test]
fn a_long_word_among_many_texts() {
    in_child(module_path!(), "a_long_word_among_many_texts", || {
        let mut bytes = std::fs::read(tiny_model()).unwrap();
        let at = bytes.windows(5).position(|window| window == b"gpt-2").unwrap();
        // Words of this one are found by such an expression.
        bytes[at..at + 5].copy_from_slice(b"bloom");
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let vocab = vocab_from_gguf(file.path()).unwrap();
        let mut texts = vec!["short".to_owned(); 4 * TEXTS];
        texts[3 * TEXTS] = "a".repeat(12_000);
        let found = vocab.tokenize_all(&texts, "", "").unwrap();
        assert_eq!(vocab.join(found.iter().nth(3 * TEXTS).unwrap()).unwrap(), texts[3 * TEXTS].as_bytes());
    });
}
