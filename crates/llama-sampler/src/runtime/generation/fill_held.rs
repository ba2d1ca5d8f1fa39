//! Texts of a form that a constraint holds, such as the replies of a chat: they end where the model ends its output.

use super::fill::{Field, Filler};
use crate::runtime::error::RuntimeError;
use std::sync::Arc;
use trie_core::{AnyConstraint, Ending, Sampler, SamplerError, Scratch, SpanRules};

impl Filler<'_, '_> {
    /// Writes the text that is the part at `index`, of at most so many tokens.
    pub(super) fn held(
        &mut self,
        index: usize,
        name: &str,
        constraint: &AnyConstraint,
        max_tokens: usize,
    ) -> Result<(), RuntimeError> {
        self.write_rest()?;
        let vocab = Arc::clone(&self.generation.vocab);
        let rules = SpanRules::of(constraint.clone(), vocab.len())?;
        let mut sampler = Sampler::new(Arc::new(rules), self.sampling())?;
        let mut scratch = Scratch::default();
        let mut written: Vec<u8> = Vec::new();
        let begin = self.generation.tokens.len();
        while self.generation.tokens.len() - begin < max_tokens && sampler.span().ending() != Ending::Must {
            let token = if let Some(token) = self.step_forced(&mut sampler, &mut scratch)? {
                token
            } else {
                let depth = sampler.span().depth();
                let token = self.select(&mut sampler, &mut scratch, |_| true)?;
                if vocab.is_end_of_generation(token) {
                    break;
                }
                sampler.span_mut().accept(token).map_err(SamplerError::from)?;
                self.write_chosen(token, depth);
                token
            };
            written.extend_from_slice(vocab.piece(token).unwrap_or_default());
        }
        self.generation.stats.starved += sampler.starved();
        let value = whole_characters(&written);
        self.keep(begin, 0, &format!("{value}{}", self.form.literal(index + 1)));
        self.values.push(Field { name: name.to_owned(), value, index: None, probabilities: None });
        Ok(())
    }
}

/// The text, without a character that its end only begins.
fn whole_characters(bytes: &[u8]) -> String {
    let begun = bytes.utf8_chunks().last().map_or(0, |chunk| {
        let cut = std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
        if cut { chunk.invalid().len() } else { 0 }
    });
    String::from_utf8_lossy(&bytes[..bytes.len() - begun]).into_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_character_that_is_cut_off_is_left_out() {
        for (bytes, text) in [(&b"a\xc3"[..], "a"), (b"a\xff", "a\u{fffd}"), (b"\xc3\xa4", "ä"), (b"", "")] {
            assert_eq!(super::whole_characters(bytes), text);
        }
    }
}
