//! Legal values given as text.

use crate::errors::{Class, Result};
use llama_sampler::Vocab;
use trie_core::Trie;

/// A trie of these values, each tokenised on its own as plain text between `prefix` and `suffix`; the values are its names.
///
/// # Errors
/// A vocabulary without a tokeniser, no value, an empty one, or one whose tokens spell something else.
pub(crate) fn trie(vocab: &Vocab, values: &[String], prefix: &str, suffix: &str) -> Result<Trie> {
    let mut builder = Trie::builder();
    for (row, value) in values.iter().enumerate() {
        let text = format!("{prefix}{value}{suffix}");
        let tokens = vocab.tokenize(&text, false, false)?;
        let spelled = vocab.detokenize(&tokens)?;
        if spelled != text.as_bytes() {
            let spelled = String::from_utf8_lossy(&spelled);
            return Err(Class::Vocabulary.error(format!("value {row}: the tokens of {text:?} spell {spelled:?}")));
        }
        builder.push(Some(value), &tokens);
    }
    Ok(builder.build()?)
}
