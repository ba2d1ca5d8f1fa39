//! llama.cpp's tokenizer, and the vocabularies of GGUF files.

use super::gguf::Header;
use super::load::load;
use crate::runtime::error::RuntimeError;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token_type::LlamaTokenAttr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trie_core::TokenId;
use trie_text::{SplitPoints, SplitRule, TokenKind, Tokenizer, TokenizerError, Vocab};

/// The tokenizer of a model.
///
/// `llama_tokenize` reads the vocabulary and writes only what belongs to the call (its tables are made once, behind
/// C++'s own guard), so threads may share it.
#[derive(Debug)]
struct LlamaTokenizer(Arc<LlamaModel>, PathBuf);

impl Tokenizer for LlamaTokenizer {
    fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<TokenId>, TokenizerError> {
        let vocab = self.0.vocab();
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
        let tokens = vocab.tokenize(text.as_bytes(), add_special, parse_special);
        Ok(tokens.into_iter().filter_map(|token| TokenId::try_from(token.0).ok()).collect())
    }

    fn is_parallel(&self) -> bool {
        true
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.1)
    }

    fn keeps_control_text(&self) -> bool {
        true
    }

    fn detokenize(&self, tokens: &[TokenId]) -> Option<Vec<u8>> {
        let tokens: Vec<LlamaToken> = tokens.iter().map(|token| LlamaToken(token.as_i32())).collect();
        Some(self.0.vocab().detokenize(&tokens, false, true))
    }

    fn stands_alone(&self, token: TokenId) -> bool {
        let token = LlamaToken(token.as_i32());
        token.0 < self.0.n_vocab() && self.0.vocab().attr(token).contains(LlamaTokenAttr::UserDefined)
    }

    fn split_points(&self) -> Option<SplitPoints> {
        let meta = |key| self.0.meta_val_str(key).unwrap_or_default();
        let rule = SplitRule::of_gguf(&meta("tokenizer.ggml.model"), &meta("tokenizer.ggml.pre"))?;
        let vocab = self.0.vocab();
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
    Ok(Vocab::new(tokens, ends, Some(Arc::new(LlamaTokenizer(Arc::clone(model), path))))?)
}
