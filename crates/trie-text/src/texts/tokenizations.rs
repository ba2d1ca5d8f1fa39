//! Texts in every tokenization: the part of it that needs a tokenizer.

use super::TextError;
use crate::tokenizer::SplitPoints;
use crate::vocab::{Vocab, VocabError};
use trie_core::{BuildError, ForcedText, TokenId, TokenizationError, TokenizedLeaf, Trie};

/// The set of every token sequence that spells these texts. The tokenizer's own sequences may be known already.
pub(super) fn every_tokenization<S: AsRef<str>>(
    vocab: &Vocab,
    values: &[S],
    texts: &[(Vec<u8>, Option<&[TokenId]>)],
    stop: &dyn Fn() -> bool,
) -> Result<Trie, TextError> {
    let unspellable = |row: usize| TextError::Unspellable { row, value: values[row].as_ref().to_owned() };
    // Where the tokenizer does not say: a token of its own crosses the boundary.
    let mut own: Vec<Vec<TokenId>> = vec![Vec::new(); texts.len()];
    for (row, (text, _)) in texts.iter().enumerate().filter(|(_, (text, known))| known.is_none() && !text.is_empty()) {
        own[row] = tokens_within(vocab, text)?.ok_or_else(|| unspellable(row))?;
    }
    let leaves: Vec<TokenizedLeaf<'_>> = texts
        .iter()
        .zip(&own)
        .zip(values)
        .map(|(((bytes, known), own), value)| TokenizedLeaf {
            name: value.as_ref(),
            bytes,
            canonical: known.unwrap_or(own),
        })
        .collect();
    let mut failed = None;
    let first = |texts: &[ForcedText<'_>]| {
        first_tokens(vocab, texts).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            vec![None; texts.len()]
        })
    };
    let made = Trie::all_tokenizations(&leaves, vocab.by_bytes(), first, stop);
    match (failed, made) {
        (Some(error), _) => Err(error.into()),
        (None, Ok(trie)) => Ok(trie),
        (None, Err(TokenizationError::Build(BuildError::EmptySequence { row }))) => Err(TextError::Empty { row }),
        (None, Err(TokenizationError::Build(error))) => Err(error.into()),
        (None, Err(TokenizationError::NoTokenization { row })) => Err(unspellable(row)),
    }
}

/// The tokens of a text in the middle of another; without a tokenizer, the fewest tokens that spell it.
fn tokens_within(vocab: &Vocab, text: &[u8]) -> Result<Option<Vec<TokenId>>, VocabError> {
    let written = match std::str::from_utf8(text) {
        Ok(text) if vocab.can_tokenize() => {
            // A tokenizer that fails is not one that has no answer.
            vocab.tokenize(text, false, false)?;
            vocab.tokenize_inside(text)
        }
        _ => None,
    };
    Ok(written.or_else(|| vocab.fewest(text)))
}

/// Returns the first tokens for [`Trie::all_tokenizations`].
fn first_tokens(vocab: &Vocab, texts: &[ForcedText<'_>]) -> Result<Vec<Option<TokenId>>, VocabError> {
    let values: Vec<&str> = texts.iter().map(|text| text.text).collect();
    if !vocab.can_tokenize() {
        return Ok(values.iter().map(|text| vocab.fewest(text.as_bytes())?.first().copied()).collect());
    }
    // Some tokenizers put a space before a text, which is not wanted here: then it goes before a line break.
    let before = if vocab.split_points().is_some_and(SplitPoints::own_space) { "\n" } else { "" };
    let tokenized = vocab.tokenize_all(&values, before, "")?;
    let first = |(tokens, text): (&[TokenId], &&str)| match vocab.ending(tokens, text) {
        Some(tokens) => Ok(tokens.first().copied()),
        None => Ok(tokens_within(vocab, text.as_bytes())?.and_then(|tokens| tokens.first().copied())),
    };
    tokenized.iter().zip(&values).map(first).collect()
}
