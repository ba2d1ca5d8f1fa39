//! Split points: positions in a text where its tokens are those of the two parts.

use trie_core::{ByteTrie, TokenId};

/// First step of a tokenizer, which determines where texts may be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitRule {
    /// The text is cut into words, which are tokenized independently. A run of letters or digits ends before any other
    /// ASCII character, and a run of visible characters ends before a space: no pattern continues there or looks
    /// further than spaces.
    Words {
        /// Contractions such as `'ll` belong to the word before them.
        contractions: bool,
    },
    /// There is no such step: neighbours are merged into tokens. Two bytes that are not next to each other in any
    /// token are never merged.
    Merges,
}

/// Positions at which texts may be split for a tokenizer, each given by the two ASCII bytes around it.
///
/// ```
/// use trie_text::{SplitPoints, SplitRule};
///
/// let rule = SplitRule::of_gguf("gpt2", "llama-bpe").unwrap();
/// let points = SplitPoints::new(rule, false, [], []).unwrap();
/// assert_eq!(points.parts("two words, 3").collect::<Vec<_>>(), ["two", " words", ",", " 3"]);
/// ```
#[derive(Debug)]
pub struct SplitPoints {
    /// For each byte before a split point, a set of bits with the bytes that may follow it.
    between: Vec<u128>,
    /// True if the tokenizer puts a space before a text: then a part is passed to it without its own leading space.
    own_space: bool,
    /// Tokens that are found in a text before all others. A text that contains one is not split.
    found_first: ByteTrie,
    /// Length in bytes of the longest of these tokens.
    longest: usize,
    /// For each byte, true if one of these tokens begins with it, so that most positions of a text need no search.
    begins: [bool; 256],
}

/// The names of tokenizers (`tokenizer.ggml.pre`) whose patterns were read in llama.cpp's `llama-vocab.cpp`, by
/// pattern.
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
const WORDS_WITH_CONTRACTIONS: &[&str] = &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"];

impl SplitRule {
    /// The rule of a tokenizer by the names that GGUF files have for it (`tokenizer.ggml.model`, `tokenizer.ggml.pre`).
    /// `None` where no rule is known to be right.
    pub fn of_gguf(model: &str, pre: &str) -> Option<Self> {
        let contractions = WORDS_WITH_CONTRACTIONS.contains(&pre);
        match (model, pre) {
            ("gpt2", name) if contractions || WORDS.iter().any(|names| names.contains(&name)) => {
                Some(Self::Words { contractions })
            }
            ("llama", _) | ("gemma4", "" | "gemma4") => Some(Self::Merges),
            _ => None,
        }
    }

    fn splits(self, before: u8, after: u8, own_space: bool) -> bool {
        match (self, after) {
            (Self::Words { .. }, b' ') => before.is_ascii_graphic(),
            (Self::Words { contractions: true }, b'\'') => false,
            (Self::Words { .. }, _) => before.is_ascii_alphanumeric() && !after.is_ascii_alphanumeric(),
            // What the tokenizer puts a space before must have had one.
            (Self::Merges, _) => before.is_ascii_graphic() && (after == b' ' || !own_space),
        }
    }
}

impl SplitPoints {
    /// Split points for a tokenizer with this rule.
    ///
    /// `own_space` is true if the tokenizer puts a space before a text. `names` are all tokens as the tokenizer writes
    /// them, with U+2581 for a space; only [`SplitRule::Merges`] uses them. `found_first` are the tokens that are
    /// found in a text before all others.
    ///
    /// Returns `None` if splitting is not known to be correct: for words with a space of the tokenizer's own, or too
    /// many bytes in `found_first`.
    pub fn new<'t>(
        rule: SplitRule,
        own_space: bool,
        names: impl IntoIterator<Item = &'t [u8]>,
        found_first: impl IntoIterator<Item = (&'t [u8], TokenId)>,
    ) -> Option<Self> {
        if own_space && rule != SplitRule::Merges {
            return None;
        }
        let splits = |before| (0..128).filter(move |&after| rule.splits(before, after, own_space));
        let bits = |before| splits(before).fold(0, |bits, after| bits | 1 << after);
        let mut between: Vec<u128> = (0..=255).map(bits).collect();
        for name in names.into_iter().take_while(|_| rule == SplitRule::Merges) {
            for at in 1..name.len() {
                let after = if name[at..].starts_with("▁".as_bytes()) { b' ' } else { name[at] };
                between[usize::from(name[at - 1])] &= !1u128.checked_shl(after.into()).unwrap_or(0);
            }
        }
        let found_first: Vec<(&[u8], TokenId)> = found_first.into_iter().collect();
        let longest = found_first.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut begins = [false; 256];
        found_first.iter().filter_map(|(name, _)| name.first()).for_each(|&first| begins[usize::from(first)] = true);
        Some(Self { between, own_space, found_first: ByteTrie::new(found_first).ok()?, longest, begins })
    }

    /// Returns whether the tokenizer puts a space before a text by itself.
    pub fn own_space(&self) -> bool {
        self.own_space
    }

    fn is_split(&self, before: u8, after: u8) -> bool {
        self.between[usize::from(before)] & 1u128.checked_shl(after.into()).unwrap_or(0) != 0
    }

    /// Returns whether a text contains a token that is found before all others.
    pub(crate) fn finds(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        let begins = |&(_, &byte): &(usize, &u8)| self.begins[usize::from(byte)];
        let mut positions = bytes.iter().enumerate().filter(begins);
        positions.any(|(at, _)| self.found_first.prefixes(&bytes[at..]).next().is_some())
    }

    /// Returns whether a token that is found before all others may begin in this text and continue after it.
    pub(crate) fn opens(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        (bytes.len().saturating_sub(self.longest)..bytes.len()).any(|at| {
            let end = &bytes[at..];
            self.found_first.starting_with(end).len() > self.found_first.equal(end).len()
        })
    }

    /// Returns whether a text may be split between the end of this one and the beginning of another.
    pub(crate) fn parts_from(&self, text: &str, after: &str) -> bool {
        match (text.as_bytes(), after.as_bytes()) {
            ([], _) => true,
            ([.., last], [first, ..]) => !self.own_space && self.is_split(*last, *first),
            (_, []) => false,
        }
    }

    /// Returns whether a text made of such parts may be split between them, so that one call of the tokenizer suffices
    /// for all.
    pub(crate) fn joins(&self, part: &str) -> bool {
        let bytes = part.as_bytes();
        let begins = bytes.first().is_some_and(|&first| if self.own_space { first > b' ' } else { first == b' ' });
        begins && bytes.last().is_some_and(|&last| self.is_split(last, b' '))
    }

    /// The parts of a text, as the tokenizer wants them.
    pub fn parts<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> + use<'t, '_> {
        let bytes = text.as_bytes();
        let whole = self.finds(text);
        let splits = move |at: &usize| {
            !whole && self.is_split(bytes[*at - 1], bytes[*at])
                // The space that is left out must not be all of a part, nor be followed by another.
                && (!self.own_space || bytes.get(*at + 1).is_some_and(|&next| next > b' '))
        };
        let mut from = 0;
        std::iter::from_fn(move || {
            if from >= bytes.len() {
                return None;
            }
            let to = (from + 1..bytes.len()).find(splits).unwrap_or(bytes.len());
            let part = &text[from + usize::from(from > 0 && self.own_space)..to];
            from = to;
            Some(part)
        })
    }
}
