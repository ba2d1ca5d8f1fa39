//! Slots and texts of a form that have a rule: written token by token, up to where it is known that the value ends.

use super::fill::{Field, Filler};
use crate::runtime::error::RuntimeError;
use std::sync::Arc;
use trie_core::{Ending, Sampler, Scratch};

/// Tokens and bytes of a value that is whole.
#[derive(Clone, Copy)]
struct Whole {
    tokens: usize,
    bytes: usize,
}

impl Filler<'_, '_> {
    /// Writes the slot or text that is the part at `index`, of at most so many tokens. Where a text is cut off, its
    /// longest beginning that is whole stays.
    pub(super) fn rule(&mut self, index: usize, name: &str, max_tokens: Option<usize>) -> Result<(), RuntimeError> {
        let mut before = self.written();
        let set = self.form.rule(index, &before, &self.generation.vocab)?;
        if set.stands_alone() {
            self.write_rest()?;
            before = self.written();
        }
        let begin = self.generation.tokens.len();
        let mut sampler = Sampler::new(Arc::clone(&set.rules), self.sampling())?;
        let mut scratch = Scratch::default();
        let mut written: Vec<u8> = Vec::new();
        let mut whole = None;
        self.generation.tentative = max_tokens.is_some();
        while sampler.span().ending() != Ending::Must {
            if max_tokens.is_some_and(|most| self.generation.tokens.len() - begin >= most) {
                break;
            }
            let Some(token) = self.step(&mut sampler, &mut scratch)? else { break };
            written.extend_from_slice(self.generation.vocab.piece(token).unwrap_or_default());
            if set.may_end(sampler.span().state().position()) {
                whole = Some(Whole { tokens: self.generation.tokens.len(), bytes: written.len() });
            }
        }
        self.generation.stats.starved += sampler.starved();
        self.generation.tentative = false;
        let at = sampler.span().state().position();
        let text = |end: usize| String::from_utf8_lossy(written.get(before.rest..end).unwrap_or_default()).into_owned();
        let end = match (set.behind(at), whole) {
            (Some(behind), _) => written.len() - behind,
            // Another token ended it.
            (None, _) if set.may_end(at) => written.len(),
            (None, Some(whole)) => {
                self.generation.take_back(whole.tokens);
                whole.bytes
            }
            (None, None) => {
                let max_tokens = max_tokens.unwrap_or_default();
                return Err(RuntimeError::PatternCut { name: name.to_owned(), text: text(written.len()), max_tokens });
            }
        };
        let value = text(end);
        self.keep(begin, before.rest, &format!("{value}{}", self.form.literal(index + 1)));
        self.values.push(Field { name: name.to_owned(), value, index: None, probabilities: None });
        Ok(())
    }
}
