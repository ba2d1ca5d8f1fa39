//! Where a text may be cut so that its tokens are those of its parts.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token_type::LlamaTokenAttr;
use trie_core::{ByteTrie, TokenId};

/// Where texts may be cut for a tokenizer: between which two bytes of ASCII.
///
/// The tokenizers of [`WORDS`] first cut a text into words, which know nothing of each other. A run of letters or digits ends
/// before any other ASCII, and a run of anything visible before a space: none of their patterns goes on there, or looks further
/// than spaces. Those without words (`llama`, `gemma4`) merge neighbours into tokens: two bytes that stand beside each other in
/// no token are never merged.
#[derive(Debug)]
pub(super) struct Cuts {
    /// For each byte before a cut, those that may come after it, one bit each.
    between: Vec<u128>,
    /// The tokenizer puts a space before a text by itself: a part is given to it without its own.
    own_space: bool,
    /// Tokens that are found in a text before anything else. A text with one is not cut.
    found_first: ByteTrie,
    /// Bytes of the longest of them.
    longest: usize,
    /// Whether one of them begins with a byte: most places of a text need no look at them then.
    begins: [bool; 256],
}

/// The names of tokenizers (`tokenizer.ggml.pre`) whose patterns were read in llama.cpp's `llama-vocab.cpp`, by pattern.
const WORDS: &[&[&str]] = &[
    // GPT-2's.
    &["gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "a.x-4.0", "mellum", "exaone4"],
    &["modern-bert", "jina-v1-en", "jina-v2-code", "roberta-bpe", "mpt", "olmo", "jais", "trillion", "granite-docling"],
    // The same after each digit was cut out.
    &["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
    // Llama 3's: digits by three.
    &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"],
    &["dbrx", "smaug-bpe", "chatglm-bpe", "glm4", "glm5", "minicpm5"],
    // Qwen2's: digits one by one. The last goes over marks as over letters.
    &[
        "qwen2",
        "deepseek-r1-qwen",
        "kormo",
        "f2llmv2",
        "megrez",
        "stablelm2",
        "hunyuan",
        "solar-open",
        "grok-2",
        "qwen35",
    ],
    // Upper case ends a word, too.
    &["tekken"],
    // DeepSeek's third: a mark may begin a word.
    &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
];

/// The same, but for contractions, which belong to the word before them.
const WORDS_WITH_SUFFIXES: &[&str] = &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"];

/// One name for each pattern.
#[cfg(test)]
pub(super) const WORDS_OF_EACH_PATTERN: &[&str] = &[
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

impl Cuts {
    /// None where this is not known to be right.
    pub(super) fn of(model: &LlamaModel) -> Option<Self> {
        let meta = |key| model.meta_val_str(key).unwrap_or_default();
        let (kind, words) = (meta("tokenizer.ggml.model"), meta("tokenizer.ggml.pre"));
        let suffixes = WORDS_WITH_SUFFIXES.contains(&words.as_str());
        let has_words = match (kind.as_str(), words.as_str()) {
            ("gpt2", name) if suffixes || WORDS.iter().any(|names| names.contains(&name)) => true,
            ("llama", _) | ("gemma4", "" | "gemma4") => false,
            _ => return None,
        };
        let vocab = model.vocab();
        let first: Vec<u8> = vocab.tokenize(b"a", false, false).into_iter().fold(Vec::new(), |mut bytes, token| {
            vocab.token_to_piece_into(token, &mut bytes, true, None);
            bytes
        });
        let own_space = match first.as_slice() {
            b"a" => false,
            b" a" if !has_words => true,
            _ => return None,
        };
        let cuts = |before: u8, after: u8| match (has_words, after) {
            (true, b' ') => before.is_ascii_graphic(),
            (true, b'\'') if suffixes => false,
            (true, _) => before.is_ascii_alphanumeric() && !after.is_ascii_alphanumeric(),
            // What the tokenizer puts a space before must have had one.
            (false, _) => before.is_ascii_graphic() && (after == b' ' || !own_space),
        };
        let bits = |before| (0..128).filter(|&after| cuts(before, after)).fold(0, |bits, after| bits | 1 << after);
        let mut between: Vec<u128> = (0..=255).map(bits).collect();
        let mut found_first = Vec::new();
        for token in vocab.tokens() {
            let text = vocab.text(token)?.to_bytes();
            for at in (1..text.len()).filter(|_| !has_words) {
                let after = if text[at..].starts_with("▁".as_bytes()) { b' ' } else { text[at] };
                between[usize::from(text[at - 1])] &= !1u128.checked_shl(after.into()).unwrap_or(0);
            }
            if vocab.attr(token).contains(LlamaTokenAttr::UserDefined) {
                found_first.push((text, TokenId::try_from(token.0).ok()?));
            }
        }
        let longest = found_first.iter().map(|(text, _)| text.len()).max().unwrap_or(0);
        let mut begins = [false; 256];
        found_first.iter().filter_map(|(text, _)| text.first()).for_each(|&first| begins[usize::from(first)] = true);
        Some(Self { between, own_space, found_first: ByteTrie::new(found_first).ok()?, longest, begins })
    }

    /// Whether the tokenizer puts a space before a text by itself.
    pub(super) fn own_space(&self) -> bool {
        self.own_space
    }

    fn between(&self, before: u8, after: u8) -> bool {
        self.between[usize::from(before)] & 1u128.checked_shl(after.into()).unwrap_or(0) != 0
    }

    /// Whether a text holds a token that is found before anything else.
    pub(super) fn finds(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let begins = |&(_, &byte): &(usize, &u8)| self.begins[usize::from(byte)];
        let mut places = bytes.iter().enumerate().filter(begins);
        places.any(|(at, _)| self.found_first.prefixes(&bytes[at..]).next().is_some())
    }

    /// Whether a token that is found before anything else may begin in this text and go on after it.
    pub(super) fn opens(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        (bytes.len().saturating_sub(self.longest)..bytes.len()).any(|at| {
            let end = &bytes[at..];
            self.found_first.starting_with(end).len() > self.found_first.equal(end).len()
        })
    }

    /// Whether a text may be cut where this one ends and another begins.
    pub(super) fn parts_from(&self, text: &str, after: &str) -> bool {
        match (text.as_bytes(), after.as_bytes()) {
            ([], _) => true,
            ([.., last], [first, ..]) => !self.own_space && self.between(*last, *first),
            (_, []) => false,
        }
    }

    /// Whether a text of such parts may be cut between them: then one call of llama.cpp does for all.
    pub(super) fn joins(&self, part: &str) -> bool {
        let bytes = part.as_bytes();
        let begins = bytes.first().is_some_and(|&first| if self.own_space { first > b' ' } else { first == b' ' });
        begins && bytes.last().is_some_and(|&last| self.between(last, b' '))
    }

    /// The parts of a text, as the tokenizer wants them.
    pub(super) fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t, '_> {
        let bytes = text.as_bytes();
        let whole = self.finds(text);
        let cut = move |at: &usize| {
            !whole && self.between(bytes[*at - 1], bytes[*at])
                // The space that is left out must not be all of a part, nor be followed by another.
                && (!self.own_space || bytes.get(*at + 1).is_some_and(|&next| next > b' '))
        };
        let mut from = 0;
        std::iter::from_fn(move || {
            if from >= bytes.len() {
                return None;
            }
            let to = (from + 1..bytes.len()).find(cut).unwrap_or(bytes.len());
            let part = &text[from + usize::from(from > 0 && self.own_space)..to];
            from = to;
            Some(part)
        })
    }
}
