//! llama.cpp's tokenizer, and the vocabularies of GGUF files.

use super::backend::load;
use super::gguf::Header;
use super::special_tokens::{SpecialTokens, Strips};
use crate::runtime::error::RuntimeError;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use trie_core::TokenId;
use trie_core::work::{LimitExceeded, look};
use trie_text::{SplitPoints, SplitRule, TokenKind, Tokenizer, TokenizerError, Vocab};

/// The tokenizer of a model.
///
/// `llama_tokenize` reads the vocabulary and writes only what belongs to the call (its tables are made once, behind
/// C++'s own guard), so threads may share it.
#[derive(Debug)]
struct LlamaTokenizer {
    model: Arc<LlamaModel>,
    file: PathBuf,
    /// The tokens that are found before anything else: without control tokens, and with them.
    special: [OnceLock<SpecialTokens>; 2],
}

/// Longest text in bytes that llama.cpp gets as a whole: a shorter text has few special tokens.
const WHOLE: usize = 1 << 12;

impl LlamaTokenizer {
    fn new(model: Arc<LlamaModel>, file: PathBuf) -> Self {
        Self { model, file, special: Default::default() }
    }

    fn special(&self, parse_special: bool) -> &SpecialTokens {
        self.special[usize::from(parse_special)].get_or_init(|| {
            let vocab = self.model.vocab();
            let special = vocab.tokens().filter_map(|token| {
                let attributes = vocab.attr(token);
                let has = |attribute| attributes.contains(attribute);
                // A token may be defined by users and a control token too.
                let is_control = has(LlamaTokenAttr::Control) || has(LlamaTokenAttr::Unknown);
                let named = if is_control { parse_special } else { has(LlamaTokenAttr::UserDefined) };
                let strips = Strips { before: has(LlamaTokenAttr::LStrip), after: has(LlamaTokenAttr::RStrip) };
                Some((vocab.text(token).filter(|_| named)?.to_bytes(), strips))
            });
            SpecialTokens::new(special)
        })
    }

    /// The tokens of a long text, which is given to llama.cpp in parts.
    fn in_parts(&self, text: &[u8], add_special: bool, parse_special: bool) -> Result<Vec<LlamaToken>, LimitExceeded> {
        let vocab = self.model.vocab();
        // What is added stands around the tokens of the text, and around those of none.
        let added = if add_special { vocab.tokenize(b"", true, parse_special) } else { Vec::new() };
        let before = match added.len() {
            1 => usize::from(vocab.should_add_bos()),
            count => count.div_ceil(2),
        };
        let mut tokens = added[..before].to_vec();
        for part in self.special(parse_special).parts(text) {
            look(1, 0)?;
            tokens.extend(vocab.tokenize(part, false, parse_special));
        }
        tokens.extend_from_slice(&added[before..]);
        Ok(tokens)
    }
}

impl Tokenizer for LlamaTokenizer {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, TokenizerError> {
        let vocab = self.model.vocab();
        if add_special {
            // llama.cpp asserts that a special token which it is told to add exists.
            let wanted = [
                (vocab.should_add_bos(), vocab.bos(), "begin-of-text"),
                (vocab.should_add_eos(), vocab.eos(), "end-of-text"),
                (vocab.should_add_sep(), vocab.sep(), "separator"),
            ];
            if let Some((_, _, name)) = wanted.iter().find(|(add, token, _)| *add && token.0 < 0) {
                return Err(format!("it adds a {name} token, but the model file defines none").into());
            }
        }
        let tokens = if text.len() > WHOLE {
            self.in_parts(text.as_bytes(), add_special, parse_special)?
        } else {
            vocab.tokenize(text.as_bytes(), add_special, parse_special)
        };
        Ok(tokens.into_iter().filter_map(|token| TokenId::try_from(token.0).ok()).collect())
    }

    fn is_parallel(&self) -> bool {
        true
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.file)
    }

    fn keeps_control_text(&self) -> bool {
        true
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let tokens: Vec<LlamaToken> = tokens.iter().map(|token| LlamaToken(token.as_i32())).collect();
        Some(self.model.vocab().detokenize(&tokens, false, true))
    }

    fn stands_alone(&self, token: TokenId) -> bool {
        let token = LlamaToken(token.as_i32());
        token.0 < self.model.n_vocab() && self.model.vocab().attr(token).contains(LlamaTokenAttr::UserDefined)
    }

    fn split_points(&self) -> Option<SplitPoints> {
        let meta = |key| self.model.meta_val_str(key).unwrap_or_default();
        let rule = SplitRule::of_gguf(&meta("tokenizer.ggml.model"), &meta("tokenizer.ggml.pre"))?;
        let vocab = self.model.vocab();
        let mut first = Vec::new();
        for token in vocab.tokenize(b"a", false, false) {
            vocab.token_to_piece_into(token, &mut first, true, None);
        }
        let own_space = match first.as_slice() {
            b"a" => false,
            b" a" => true,
            _ => return None,
        };
        let names: Vec<&[u8]> =
            vocab.tokens().map(|token| Some(vocab.text(token)?.to_bytes())).collect::<Option<_>>()?;
        let found_first = vocab.tokens().zip(&names).filter_map(|(token, &name)| {
            let is_first = vocab.attr(token).contains(LlamaTokenAttr::UserDefined);
            is_first.then(|| Some((name, TokenId::try_from(token.0).ok()?)))?
        });
        SplitPoints::new(rule, own_space, names.iter().copied(), found_first)
    }
}

/// The vocabulary of a GGUF file, whether it holds weights or not. `O(tokens)`, a tenth of a second for big ones.
///
/// # Errors
/// The file cannot be read, is damaged, or holds no vocabulary.
pub fn vocab_from_gguf(path: impl AsRef<Path>) -> Result<Vocab, RuntimeError> {
    let path = path.as_ref();
    vocab_of(&load_vocab(path)?, path)
}

/// All of a file but its weights.
pub(super) fn load_vocab(path: &Path) -> Result<Arc<LlamaModel>, RuntimeError> {
    Header::read(path)?;
    load(path, &LlamaModelParams::default().with_vocab_only(true))
}

/// The vocabulary of a model that was loaded from this file.
pub(super) fn vocab_of(model: &Arc<LlamaModel>, path: &Path) -> Result<Vocab, RuntimeError> {
    let tokenizer = model.meta_val_str("tokenizer.ggml.model").unwrap_or_default();
    let n_vocab = model.n_vocab();
    // Every query about a vocabulary of type "none" aborts the process.
    if n_vocab <= 0 || matches!(tokenizer.as_str(), "" | "none" | "no_vocab") {
        return Err(RuntimeError::NoVocabulary { path: path.to_owned(), tokenizer, n_vocab: n_vocab.into() });
    }
    let vocab = model.vocab();
    let mut bytes = Vec::new();
    let mut pieces = Vec::with_capacity(n_vocab as usize);
    for token in vocab.tokens() {
        let begin = bytes.len();
        // The safe crate retries with the exact length, so no piece is truncated.
        vocab.token_to_piece_into(token, &mut bytes, true, None);
        pieces.push(begin..bytes.len());
    }
    let kind = |token| {
        let has = |attribute| vocab.attr(token).contains(attribute);
        match () {
            // The tokenizer reads the name of the unknown token as it reads those of control tokens.
            () if has(LlamaTokenAttr::Unknown) => TokenKind::Unknown,
            () if vocab.is_control(token) => TokenKind::Control,
            () if has(LlamaTokenAttr::Unused) => TokenKind::Unused,
            () if has(LlamaTokenAttr::Byte) => TokenKind::Byte,
            () => TokenKind::Text,
        }
    };
    let tokens = pieces.into_iter().zip(vocab.tokens()).map(|(piece, token)| (&bytes[piece], kind(token)));
    let ends = vocab.tokens().filter(|&token| vocab.is_eog(token));
    let ends = ends.filter_map(|token| TokenId::try_from(token.0).ok()).collect();
    // Where the program changes its folder, the file stays the same.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Vocab::new(tokens, ends, Some(Arc::new(LlamaTokenizer::new(Arc::clone(model), path))))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<PathBuf> {
        let folder = std::env::var_os("TOKENTRIE_VOCAB_DIR").map(PathBuf::from);
        let entries = folder.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let real =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|of| of == "gguf"));
        real.chain([Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tokentrie/models/tiny.gguf")]).collect()
    }

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn next_below(&mut self, end: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % end as u64) as usize
        }
    }

    #[test]
    fn parts_have_the_tokens_of_the_whole() {
        let mut random = Random(std::process::id().into());
        println!("seed {}", random.0);
        for path in files() {
            let model = load_vocab(&path).unwrap();
            let tokenizer = LlamaTokenizer::new(model, path.clone());
            let vocab = tokenizer.model.vocab();
            let special = |token: &LlamaToken| {
                [LlamaTokenAttr::Control, LlamaTokenAttr::UserDefined, LlamaTokenAttr::Unknown]
                    .into_iter()
                    .any(|of| vocab.attr(*token).contains(of))
            };
            let mut names: Vec<Vec<u8>> =
                vocab.tokens().filter(special).map(|token| vocab.text(token).unwrap().to_bytes().to_vec()).collect();
            let special = names.len();
            names.extend(vocab.tokens().step_by(997).map(|token| vocab.text(token).unwrap().to_bytes().to_vec()));
            let mut parted = 0;
            for _ in 0..test_budget::cases(400) {
                // Few names make many overlaps.
                let mut some = vec![random.next_below(special)];
                some.extend((0..random.next_below(6)).map(|_| random.next_below(names.len())));
                let mut text = Vec::new();
                for _ in 0..random.next_below(900) {
                    let name = &names[some[random.next_below(some.len())]];
                    match random.next_below(9) {
                        0 => text.extend_from_slice(&name[..random.next_below(name.len() + 1)]),
                        1 => text.extend_from_slice(&name[random.next_below(name.len() + 1)..]),
                        2 => text.extend_from_slice(&b" \n\n\t\r\x0b  \n"[..random.next_below(10)]),
                        3 => text.extend_from_slice(" two words, 3 \u{e4}\u{1f514}".as_bytes()),
                        _ => text.extend_from_slice(name),
                    }
                }
                let text = String::from_utf8_lossy(&text).into_owned().into_bytes();
                for (add, parse) in [(false, true), (true, true), (false, false)] {
                    parted += usize::from(tokenizer.special(parse).parts(&text).len() > 1);
                    let found = tokenizer.in_parts(&text, add, parse).unwrap();
                    let whole = vocab.tokenize(&text, add, parse);
                    let differ = found.iter().zip(&whole).position(|(one, other)| one != other);
                    let at = differ.unwrap_or(found.len().min(whole.len()));
                    assert!(
                        found == whole,
                        "{}, add {add}, parse {parse}: at {at} of {} and {}: {:?} and {:?} in {:?}",
                        path.display(),
                        found.len(),
                        whole.len(),
                        &found[at.saturating_sub(2)..found.len().min(at + 3)],
                        &whole[at.saturating_sub(2)..whole.len().min(at + 3)],
                        String::from_utf8_lossy(&text),
                    );
                }
            }
            println!("{}: {} special tokens, {parted} texts in parts", path.display(), names.len());
            assert!(parted > 0, "{}", path.display());
        }
    }

    #[test]
    fn many_special_tokens_take_linear_time() {
        for path in files() {
            let tokenizer = LlamaTokenizer::new(load_vocab(&path).unwrap(), path.clone());
            let vocab = tokenizer.model.vocab();
            let control = vocab.tokens().filter(|&token| vocab.is_control(token)).max_by_key(|token| token.0);
            let Some(control) = control.and_then(|token| vocab.text(token)) else { continue };
            let control = control.to_str().unwrap();
            for between in ["", "user\n"] {
                let text = |count: usize| format!("{control}{between}").repeat(count);
                let time = |count: usize| {
                    let text = text(count);
                    let all = (0..3).map(|_| test_budget::computed(|| tokenizer.tokenize(&text, false, true).unwrap()));
                    let (time, tokens) = all.min_by_key(|(time, _)| *time).unwrap();
                    assert!(tokens.len() >= count, "{}", path.display());
                    time.as_secs_f64()
                };
                let (short, long) = (time(2_000), time(16_000));
                println!("{}: {short:.4} s, eight times as many {long:.4} s", path.display());
                // What is quadratic takes 64 times as long.
                assert!(long < 24.0 * short.max(0.001), "{}: {short} s, {long} s", path.display());
            }
        }
    }
}
