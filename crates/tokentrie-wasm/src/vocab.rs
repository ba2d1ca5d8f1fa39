//! Vocabularies of a `tokenizer.json`, and tokenizers of the host.

use crate::host::{put_result, tokenize_on_host};
use std::ffi::c_char;
use std::sync::Arc;
use tokentrie_c::abi::tokentrie_vocab;
use tokentrie_c::more::{Error, Result, done, insert_vocab, json_bytes, vocab_of};
use tokentrie_c::status::*;
use tokentrie_c::{In, Out};
use trie_core::TokenId;
use trie_text::{Tokenizer, TokenizerError, TokenizerJson, Vocab};

/// A tokenizer of the host, by its number.
#[derive(Debug)]
struct OfHost(i32);

impl Tokenizer for OfHost {
    fn tokenize(&self, text: &str, _: bool, _: bool) -> std::result::Result<Vec<TokenId>, TokenizerError> {
        let tokens = tokenize_on_host(self.0, text).ok_or("it failed")?;
        Ok(tokens.into_iter().map(TokenId::try_from).collect::<std::result::Result<_, _>>()?)
    }
}

/// The tokens of a `tokenizer.json`. `tokenizer` is the number of one of the host, by which texts become tokens, or -1.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_from_tokenizer_json(
    json: In<c_char>,
    length: usize,
    ends: In<i32>,
    n_ends: usize,
    tokenizer: i32,
    vocab: Out<tokentrie_vocab>,
) -> tokentrie_status {
    done(|| {
        vocab.check("vocab")?;
        json_bytes(&json, length)?;
        let read = TokenizerJson::read(json.text(length, "json")?)?;
        let mut end_of_generation = read.end_of_generation;
        for &end in ends.slice(n_ends, "ends")? {
            end_of_generation.push(TokenId::try_from(end)?);
        }
        let tokenizer = (tokenizer >= 0).then(|| Arc::new(OfHost(tokenizer)) as Arc<dyn Tokenizer>);
        let made = Arc::new(Vocab::new(read.tokens, end_of_generation, tokenizer)?);
        // Made on the first rule otherwise: pages read the vocabulary while the model still downloads.
        made.spelling();
        vocab.put(insert_vocab(made)?);
        Ok(())
    })
}

/// The tokens of a text, as an array in JSON; `TOKENTRIE_ERROR_VOCAB` where the vocabulary has no tokenizer.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_tokenize(
    vocab: tokentrie_vocab,
    text: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| {
        let (vocab, text) = (tokens_of(vocab)?, text.text(length, "text")?);
        put_tokens(&vocab.tokenize(text, false, false)?);
        Ok(())
    })
}

/// The tokens of a text in parts, `[["...", true]]`, each with whether it is trusted, as an array in JSON: names of
/// control tokens are those tokens where all of their bytes are trusted, and text elsewhere.
#[unsafe(no_mangle)]
pub extern "C" fn tokentrie_vocab_tokenize_parts(
    vocab: tokentrie_vocab,
    json: In<c_char>,
    length: usize,
) -> tokentrie_status {
    done(|| {
        let vocab = tokens_of(vocab)?;
        let parts: Vec<(String, bool)> = serde_json::from_slice(json_bytes(&json, length)?)
            .map_err(|error| Error::argument(format!("invalid parts: expected [[\"text\", true], …]: {error}")))?;
        let parts: Vec<(&str, bool)> = parts.iter().map(|(part, trusted)| (&**part, *trusted)).collect();
        put_tokens(&vocab.tokenize_parts(&parts, false)?);
        Ok(())
    })
}

/// The vocabulary of a handle, with the bytes of its tokens.
pub(crate) fn tokens_of(vocab: tokentrie_vocab) -> Result<Arc<Vocab>> {
    let none = || Error::new(TOKENTRIE_ERROR_VOCAB, "this vocabulary was made without the bytes of its tokens");
    vocab_of(vocab)?.tokens().cloned().ok_or_else(none)
}

/// Keeps tokens as an array in JSON for the host.
pub(crate) fn put_tokens(tokens: &[TokenId]) {
    put_result(&tokens.iter().map(|token| token.as_i32()).collect());
}
