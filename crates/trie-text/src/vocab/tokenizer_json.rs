//! The tokens of a Hugging Face `tokenizer.json`: their bytes and kinds.
//!
//! The decoder of the tokenizer turns the name of a token into text, so it determines the bytes of the token: by the
//! table of GPT-2 (one character for each byte), with another character for a space, as `<0x0A>`, or as a part of a
//! word (`##ing`).

use super::{TokenKind, VocabError, end_of_generation_by_name};
use crate::quote;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use trie_core::TokenId;

/// Contents of `tokenizer.json`: its tokens.
///
/// ```
/// use trie_text::{TokenKind, TokenizerJson};
///
/// let file = r#"{"model": {"vocab": {"a": 0, "Ġb": 1, "</s>": 2}}, "decoder": {"type": "ByteLevel"}}"#;
/// let read = TokenizerJson::read(file)?;
/// assert_eq!(read.tokens[1], (b" b".to_vec(), TokenKind::Text));
/// assert_eq!(read.end_of_generation[0].get(), 2);
/// # Ok::<(), trie_text::VocabError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct TokenizerJson {
    /// Bytes and kind of each id; an id without a token is unused and has no bytes.
    pub tokens: Vec<(Vec<u8>, TokenKind)>,
    /// Ids with a name that is known to end the output, as in llama.cpp, ascending.
    pub end_of_generation: Vec<TokenId>,
    /// A corrected copy of the file, if its control tokens were not marked as special, or if it would cut, pad or
    /// randomly split texts.
    pub plain: Option<String>,
    /// The added tokens, which the library renumbers if a file does not meet its expectations.
    pub added: Vec<(String, TokenId)>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: Model,
    decoder: Option<Value>,
    pre_tokenizer: Option<Value>,
    truncation: Option<IgnoredAny>,
    padding: Option<IgnoredAny>,
    #[serde(default)]
    normalizer: Option<Value>,
}

#[derive(Deserialize)]
struct AddedToken {
    id: u32,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct Model {
    vocab: Names,
    unk_token: Option<String>,
    unk_id: Option<u32>,
    byte_fallback: Option<bool>,
    dropout: Option<f64>,
}

/// Largest number of bytes that a decoder may make of a token's name. The longest tokens of real vocabularies have
/// some hundreds.
const MAX_PIECE: usize = 1 << 16;

/// Largest number of replacements in a decoder. Real ones have one or two; each name is searched for each of them.
const MAX_REPLACEMENTS: usize = 64;

/// Limit on the growth of a text by a normalizer: real ones make three bytes of a space.
const MAX_GROWTH: f64 = 1024.0;

/// Names with their ids: a map, or, of a Unigram model, a list of names with scores.
struct Names(Vec<(String, u32)>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NamesVisitor;
        impl<'de> Visitor<'de> for NamesVisitor {
            type Value = Names;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from tokens to ids or a list of tokens with scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                // Of a name that comes twice the last id counts, as in the library.
                let mut names = IndexMap::<_, _, RandomState>::default();
                while let Some((name, id)) = map.next_entry()? {
                    names.insert(name, id);
                }
                Ok(Names(names.into_iter().collect()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, _)) = list.next_element::<(String, IgnoredAny)>()? {
                    names.push((name, names.len() as u32));
                }
                Ok(Names(names))
            }
        }
        deserializer.deserialize_any(NamesVisitor)
    }
}

/// Spelling of names as bytes.
#[derive(Debug, Default)]
struct NameSpelling {
    /// Names are in the alphabet of GPT-2.
    byte_level: bool,
    /// `<0x0A>` is a byte.
    byte_fallback: bool,
    /// Texts and what they stand for.
    replaced: Vec<(String, String)>,
    /// Prefix of names that continue a word; other names begin with a space.
    inside_word: Option<String>,
}

impl NameSpelling {
    fn from_file(file: &File) -> Result<Self, String> {
        let mut spelled = Self { byte_fallback: file.model.byte_fallback.unwrap_or(false), ..Self::default() };
        match &file.decoder {
            None => spelled.byte_level = file.pre_tokenizer.as_ref().is_some_and(is_byte_level),
            Some(decoder) => spelled.add(decoder, &mut false)?,
        }
        Ok(spelled)
    }

    /// Adds a decoder step. After `fused`, later steps apply to the text as a whole and say nothing about single
    /// tokens.
    fn add(&mut self, decoder: &Value, fused: &mut bool) -> Result<(), String> {
        let text = |key: &str| decoder[key].as_str();
        let kind = text("type").unwrap_or_default();
        match kind {
            "Sequence" => {
                for decoder in decoder["decoders"].as_array().into_iter().flatten() {
                    self.add(decoder, fused)?;
                }
            }
            "Fuse" => *fused = true,
            "Strip" | "Replace" if *fused => {}
            "ByteLevel" => self.byte_level = true,
            "ByteFallback" => self.byte_fallback = true,
            "Metaspace" => self.replaced.push((text("replacement").unwrap_or("▁").to_owned(), " ".to_owned())),
            "Replace" => match (decoder["pattern"]["String"].as_str(), text("content")) {
                (Some(pattern), Some(content)) if !pattern.is_empty() => {
                    if self.replaced.len() == MAX_REPLACEMENTS {
                        return Err(format!("the decoder has more than {MAX_REPLACEMENTS} replacements"));
                    }
                    self.replaced.push((pattern.to_owned(), content.to_owned()));
                }
                _ => {
                    return Err(
                        "the decoder replaces by a regular expression: tokens have no bytes of their own".into()
                    );
                }
            },
            "WordPiece" => self.inside_word = Some(text("prefix").unwrap_or("##").to_owned()),
            _ => return Err(format!("the bytes of single tokens are not known under a decoder of type {kind:?}")),
        }
        Ok(())
    }

    /// Applies the decoder to a name. A replacement may double the text, so its length is computed before it is
    /// applied.
    fn replace(&self, name: &str) -> Result<String, String> {
        let mut text = name.to_owned();
        for (from, to) in &self.replaced {
            let found = text.matches(from.as_str()).count();
            let longer = found.saturating_mul(to.len()).saturating_add(text.len() - found * from.len());
            if longer > MAX_PIECE.max(name.len()) {
                return Err(format!(
                    "the decoder makes {longer} bytes of the token {}, by replacing {} by {}: {MAX_PIECE} is the most",
                    quote(name),
                    quote(from),
                    quote(to)
                ));
            }
            if found > 0 {
                text = text.replace(from, to);
            }
        }
        Ok(text)
    }

    fn token(&self, name: &str) -> Result<(Vec<u8>, TokenKind), String> {
        if let Some(byte) = byte_name(name).filter(|_| self.byte_fallback) {
            return Ok((vec![byte], TokenKind::Byte));
        }
        if self.byte_level {
            // A name with other characters stands for itself, as in the decoder.
            let bytes: Option<Vec<u8>> = name.chars().map(byte_of).collect();
            return Ok((bytes.unwrap_or_else(|| name.as_bytes().to_vec()), TokenKind::Text));
        }
        let text = match &self.inside_word {
            None => self.replace(name)?,
            Some(prefix) => match name.strip_prefix(prefix.as_str()) {
                Some(part) => self.replace(part)?,
                None => format!(" {name}"),
            },
        };
        Ok((text.into_bytes(), TokenKind::Text))
    }
}

/// Returns the growth factor of a text under the replacing parts of a normalizer.
fn growth(part: &Value) -> f64 {
    let parts = part["normalizers"].as_array().into_iter().flatten();
    let own = match (part["type"].as_str(), part["content"].as_str()) {
        (Some("Replace"), Some(content)) => {
            // A regular expression may match a single byte, or between bytes.
            let pattern = part["pattern"]["String"].as_str().map_or(1, |pattern| pattern.len().max(1));
            (content.len() as f64 / pattern as f64).max(1.0)
        }
        _ => 1.0,
    };
    parts.fold(own, |all, part| all * growth(part))
}

fn is_byte_level(part: &Value) -> bool {
    part["type"] == "ByteLevel" || part["pretokenizers"].as_array().is_some_and(|parts| parts.iter().any(is_byte_level))
}

fn byte_name(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("<0x")?.strip_suffix('>')?;
    (digits.len() == 2).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// The byte that a character stands for in the alphabet of GPT-2: visible characters of Latin-1 are themselves, the
/// other 68 bytes follow from U+0100 on.
fn byte_of(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Returns whether a name looks like a control token that a model marks as text, as in llama.cpp's
/// `convert_hf_to_gguf.py`.
fn looks_special(name: &str) -> bool {
    let between = |begin: &str, end: &str| name.starts_with(begin) && name.ends_with(end) && name.len() > begin.len();
    matches!(name, "<pad>" | "<mask>" | "<2mass>" | "[@BOS@]")
        || between("<|", "|>")
        || between("<｜", "｜>")
        || between("<unused", ">")
}

impl TokenizerJson {
    /// Limit on ids, above any real vocabulary, so that a damaged id cannot demand much memory.
    pub const MAX_TOKENS: u32 = 1 << 24;

    /// Reads the text of a file. `O(length)`.
    ///
    /// # Errors
    /// [`VocabError::TokenizerFile`]: not JSON, not of the form that the library `tokenizers` writes, ids that are too
    /// large or used twice, or a decoder that does not determine the bytes of a token.
    pub fn read(text: &str) -> Result<Self, VocabError> {
        Self::parse(text).map_err(|reason| VocabError::TokenizerFile { reason })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let spelled = NameSpelling::from_file(&file)?;
        let Names(names) = &file.model.vocab;
        let ids = || names.iter().map(|&(_, id)| id).chain(file.added_tokens.iter().map(|added| added.id));
        let largest = ids().max();
        if let Some(id) = largest.filter(|&id| id >= Self::MAX_TOKENS) {
            return Err(format!("token id {id} is over the limit of {}", Self::MAX_TOKENS - 1));
        }
        let size = largest.map_or(0, |id| id + 1);
        if let Some(growth) = file.normalizer.as_ref().map(growth).filter(|&growth| growth > MAX_GROWTH) {
            return Err(format!("the normalizer can make a text {growth:e} times as long: {MAX_GROWTH} is the most"));
        }
        let shared = |one: &str, other: &str, id| format!("the tokens {one:?} and {other:?} both have id {id}");
        let mut tokens = vec![(Vec::new(), TokenKind::Unused); size as usize];
        let mut by_id: Vec<Option<&str>> = vec![None; size as usize];
        // What all tokens have together, so that many tokens of the greatest length cannot fill the memory.
        let mut room = text.len().saturating_mul(16).saturating_add(MAX_PIECE);
        let mut held = |piece: &[u8]| {
            room = room.checked_sub(piece.len()).ok_or_else(|| {
                format!(
                    "the decoder makes the tokens more than 16 times as long as the file, which has {} bytes",
                    text.len()
                )
            })?;
            Ok::<_, String>(())
        };
        for (name, id) in names {
            if let Some(other) = by_id[*id as usize].replace(name) {
                return Err(shared(other, name, *id));
            }
            tokens[*id as usize] = spelled.token(name)?;
            held(&tokens[*id as usize].0)?;
        }
        for added in &file.added_tokens {
            if let Some(other) =
                by_id[added.id as usize].replace(&added.content).filter(|other| other != &added.content)
            {
                return Err(shared(other, &added.content, added.id));
            }
            tokens[added.id as usize] = (spelled.replace(&added.content)?.into_bytes(), TokenKind::Text);
            held(&tokens[added.id as usize].0)?;
        }
        let with_ids = by_id.iter().zip(0..).filter_map(|(name, id)| Some(((*name)?, TokenId::new(id)?)));
        let end_of_generation = end_of_generation_by_name(with_ids);

        let special = file.added_tokens.iter().filter(|added| added.special || looks_special(&added.content));
        let control = special.map(|added| added.id).chain(end_of_generation.iter().map(|token| token.get()));
        for id in control {
            let name = by_id[id as usize].unwrap_or_default();
            tokens[id as usize] = (name.as_bytes().to_vec(), TokenKind::Control);
        }
        for (name, id) in by_id.iter().zip(0..) {
            if name.is_some() && (*name == file.model.unk_token.as_deref() || file.model.unk_id == Some(id)) {
                tokens[id as usize] = (name.unwrap_or_default().as_bytes().to_vec(), TokenKind::Unknown);
            }
        }
        let unmarked = |added: &AddedToken| !added.special && tokens[added.id as usize].1 != TokenKind::Text;
        let changes = file.added_tokens.iter().any(unmarked)
            || file.truncation.is_some()
            || file.padding.is_some()
            || file.model.dropout.is_some_and(|share| share > 0.0);
        let plain = changes.then(|| plain(text, |id| tokens[id].1 != TokenKind::Text)).transpose()?;
        let added = file.added_tokens.into_iter().filter_map(|added| Some((added.content, TokenId::new(added.id)?)));
        Ok(Self { tokens, end_of_generation, plain, added: added.collect() })
    }
}

/// The same file with these tokens marked as special, and without settings that change the tokens of a text.
fn plain(text: &str, is_control: impl Fn(usize) -> bool) -> Result<String, String> {
    let mut file: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    // Lists of the fields can be read too, but not changed by name.
    if !file.is_object() || !file["model"].is_object() {
        return Err("the file and its model must be objects".into());
    }
    for added in file.get_mut("added_tokens").and_then(Value::as_array_mut).into_iter().flatten() {
        if added["id"].as_u64().is_some_and(|id| is_control(id as usize)) {
            added["special"] = Value::Bool(true);
        }
    }
    file["truncation"] = Value::Null;
    file["padding"] = Value::Null;
    if file["model"]["dropout"].is_number() {
        file["model"]["dropout"] = Value::Null;
    }
    serde_json::to_string(&file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes: Vec<u8> = ('\0'..='\u{200}').filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(["Ġ", "Ċ", "a"].map(|name| byte_of(name.chars().next().unwrap())), [Some(32), Some(10), Some(97)]);
    }

    fn read(file: &Value) -> Result<TokenizerJson, VocabError> {
        TokenizerJson::read(&file.to_string())
    }

    fn pieces(file: &Value) -> Vec<(String, &'static str)> {
        let tokens = read(file).unwrap().tokens;
        tokens.into_iter().map(|(bytes, kind)| (bytes.escape_ascii().to_string(), kind.name())).collect()
    }

    fn expect(file: &Value, tokens: &[(&str, &str)]) {
        let found = pieces(file);
        let found: Vec<(&str, &str)> = found.iter().map(|(piece, kind)| (piece.as_str(), *kind)).collect();
        assert_eq!(found, tokens);
    }

    #[test]
    fn names_become_bytes() {
        let vocab = json!({"a": 0, "Ġa": 1, "<0x0A>": 2, "▁a": 3, "##a": 5, "é": 6});
        let file = |decoder: Value| json!({"model": {"vocab": vocab}, "decoder": decoder});
        let text = |pieces: [&'static str; 7]| pieces.map(|piece| (piece, "text"));
        let hole = |mut tokens: [(&'static str, &'static str); 7]| {
            tokens[4] = ("", "unused");
            tokens
        };
        let level = text(["a", " a", "<0x0A>", "\\xe2\\x96\\x81a", "", "##a", "\\xe9"]);
        expect(&file(json!({"type": "ByteLevel"})), &hole(level));
        let pre = json!({"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]});
        expect(&json!({"model": {"vocab": vocab}, "pre_tokenizer": pre}), &hole(level));
        let mut space = text(["a", "\\xc4\\xa0a", "\\n", " a", "", "##a", "\\xc3\\xa9"]);
        space[2].1 = "byte";
        let replace = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
        let parts = json!([replace, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " "}]);
        expect(&file(json!({"type": "Sequence", "decoders": parts})), &hole(space));
        space[2] = ("<0x0A>", "text");
        expect(&file(json!({"type": "Metaspace", "replacement": "▁"})), &hole(space));
        let words = text([" a", " \\xc4\\xa0a", " <0x0A>", " \\xe2\\x96\\x81a", "", "a", " \\xc3\\xa9"]);
        expect(&file(json!({"type": "WordPiece", "prefix": "##"})), &hole(words));
    }

    #[test]
    fn kinds() {
        let added = json!([
            {"id": 3, "content": "<tool>", "special": false},
            {"id": 4, "content": "<|x|>", "special": false},
            {"id": 5, "content": "<s>", "special": true},
            {"id": 7, "content": "<eos>", "special": false},
        ]);
        let model = json!({"vocab": [["<unk>", 0], ["a", -1.5], ["</s>", -2]], "unk_id": 0});
        let file = json!({"added_tokens": added, "model": model});
        let [control, text] = ["control", "text"];
        let expected = [
            ("<unk>", "unknown"),
            ("a", text),
            ("</s>", control),
            ("<tool>", text),
            ("<|x|>", control),
            ("<s>", control),
            ("", "unused"),
            ("<eos>", control),
        ];
        expect(&file, &expected);
        let read = read(&file).unwrap();
        assert_eq!(read.end_of_generation.iter().map(|token| token.get()).collect::<Vec<_>>(), [2, 7]);
        let plain: Value = serde_json::from_str(&read.plain.unwrap()).unwrap();
        let special = |at: usize| plain["added_tokens"][at]["special"].as_bool().unwrap();
        assert_eq!([0, 1, 2, 3].map(special), [false, true, true, true]);
        let cut =
            json!({"model": {"vocab": {"a": 0}, "dropout": 0.1}, "truncation": {"max_length": 2}, "padding": null});
        let plain: Value = serde_json::from_str(&self::read(&cut).unwrap().plain.unwrap()).unwrap();
        assert!(plain["truncation"].is_null() && plain["model"]["dropout"].is_null());
        assert!(self::read(&json!({"model": {"vocab": {"a": 0}}})).unwrap().plain.is_none());
    }

    proptest::proptest! {
        #[test]
        fn damage_is_an_error(
            damage in proptest::collection::vec(
                (proptest::prelude::any::<proptest::sample::Index>(), 0..9usize, "[\\[\\]{},:\"0-9a-z▁-]{0,3}"),
                1..5,
            ),
        ) {
            let replace = json!({"type": "Replace", "pattern": {"String": "▁"}, "content": " "});
            let parts = json!([{"type": "ByteFallback"}, replace]);
            let added = json!([{"id": 3, "content": "<|x|>"}, {"id": 1, "content": "a", "special": true}]);
            let mut file: Vec<char> = json!({
                "model": {"vocab": {"▁a": 0, "a": 1, "<0x0A>": 2}, "unk_token": "a", "dropout": 0.5},
                "added_tokens": added,
                "decoder": {"type": "Sequence", "decoders": parts},
                "padding": {},
            }).to_string().chars().collect();
            for (at, length, text) in damage {
                let at = at.index(file.len() + 1);
                file.splice(at..file.len().min(at + length), text.chars());
            }
            if let Ok(read) = TokenizerJson::read(&file.into_iter().collect::<String>()) {
                let again = read.plain.map_or(Ok(None), |plain| TokenizerJson::read(&plain).map(Some)).unwrap();
                proptest::prop_assert!(again.is_none_or(|again| again.tokens == read.tokens && again.plain.is_none()));
            }
        }
    }

    #[test]
    fn what_is_no_tokenizer() {
        let refused = |file: &Value, says: &str| {
            let error = read(file).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        refused(&json!([]), "invalid");
        refused(&json!([[], {"vocab": {"a": 0}}, null, null, {}, null]), "must be objects");
        let bare = json!([{"a": 0}, null, null, null, 0.5]);
        refused(&json!({"model": bare}), "must be objects");
        refused(&json!({"model": {}}), "missing field `vocab`");
        refused(&json!({"model": {"vocab": {"a": -1}}}), "invalid value");
        refused(&json!({"model": {"vocab": {"a": 16_777_216}}}), "token id 16777216 is over the limit");
        refused(
            &json!({"model": {"vocab": {"a": 4_294_967_295_u32}}}),
            "token id 4294967295 is over the limit of 16777215",
        );
        refused(&json!({"model": {"vocab": {"a": 4_294_967_296_u64}}}), "4294967296");
        refused(&json!({"model": {"vocab": {"a": 1, "b": 1}}}), "the tokens \"a\" and \"b\" both have id 1");
        let added = json!([{"id": 0, "content": "b"}]);
        refused(&json!({"model": {"vocab": {"a": 0}}, "added_tokens": added}), "\"a\" and \"b\" both have id 0");
        let vocab = json!({"a": 0});
        refused(&json!({"model": {"vocab": vocab}, "decoder": {"type": "CTC"}}), "a decoder of type \"CTC\"");
        let regex = json!({"type": "Replace", "pattern": {"Regex": "a+"}, "content": " "});
        refused(&json!({"model": {"vocab": vocab}, "decoder": regex}), "regular expression");
        assert!(TokenizerJson::read("{\"model\"").unwrap_err().to_string().contains("line 1 column 8"));
    }

    #[test]
    fn replacements_that_grow_without_bound() {
        let doubles = json!({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"});
        let file = |chain: Vec<Value>, names: &Value| {
            let decoder = json!({"type": "Sequence", "decoders": chain});
            json!({"model": {"vocab": names}, "decoder": decoder})
        };
        let refused = |file: &Value| read(file).unwrap_err().to_string();
        let one = json!({"a": 0, "b": 1});
        let sixteen = read(&file(vec![doubles.clone(); 16], &one)).unwrap();
        assert_eq!(sixteen.tokens[0].0.len(), 1 << 16);
        let message = refused(&file(vec![doubles.clone(); 60], &one));
        assert!(message.contains("makes 131072 bytes of the token \"a\", by replacing \"a\" by \"aa\""), "{message}");
        assert!(refused(&file(vec![doubles.clone(); 65], &json!({"b": 0}))).contains("more than 64 replacements"));
        let many: Value =
            (0..1000).map(|number| (format!("a{number}"), json!(number))).collect::<serde_json::Map<_, _>>().into();
        assert!(refused(&file(vec![doubles.clone(); 15], &many)).contains("more than 16 times as long as the file"));
        // Names that are long by themselves stay.
        let long = json!({"b".repeat(1 << 17): 0});
        assert_eq!(read(&file(vec![doubles.clone()], &long)).unwrap().tokens[0].0.len(), 1 << 17);

        let normalizer = json!({"type": "Sequence", "normalizers": vec![doubles; 11]});
        let message = refused(&json!({"model": {"vocab": one}, "normalizer": normalizer}));
        assert!(message.contains("the normalizer can make a text 2.048e3 times as long"), "{message}");
    }
}
