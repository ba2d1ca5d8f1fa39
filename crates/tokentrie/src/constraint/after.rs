//! Constraints after a prompt: tokens may cross from one into the other.

use super::build::{Built, Spans, form_constraint, single_span};
use super::error::SpecProblem;
use trie_core::{Special, TokenId};
use trie_text::{Prompt, ValueSets};

/// Characters that a rule may begin with, beyond which they are many.
const FEW_CHARACTERS: usize = 64;

/// The tokens of a prompt, and the constraints that stand after them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AfterPrompt {
    /// Tokens of the prompt. A text prompt loses its last tokens where one token could span the end of the prompt and
    /// the text after it (token healing).
    pub prompt: Vec<TokenId>,
    /// Number of bytes at the end of the prompt that a rule spells again first. Sets and forms count their own.
    pub healed_bytes: usize,
    /// Constraints by path; at least one.
    pub spans: Spans,
}

impl Built {
    /// Builds the constraint after a prompt. Token ids are kept as they are; the end of a text prompt is tokenised
    /// together with the text after it (token healing). Texts of a list must differ.
    ///
    /// # Errors
    /// Text that the tokenizer cannot write; a set whose texts do not begin with the end of the prompt.
    pub fn after_prompt(self, prompt: Prompt, sets: &ValueSets) -> Result<AfterPrompt, SpecProblem> {
        let vocab = sets.vocab();
        let (prompt, spans) = match self {
            Self::Spans(spans) => {
                let set = spans.first().and_then(|(_, constraint)| constraint.first_set());
                (prompt.tokens(vocab, set)?, spans)
            }
            Self::Texts(texts) => {
                let (prompt, set) = sets.place_texts(prompt, &texts.with_distinct(true))?;
                (prompt, single_span(set.trie().clone().into()))
            }
            Self::Form(form) => (prompt.tokens(vocab, form.begins_with())?, single_span(form_constraint(form, vocab)?)),
            Self::Rule(rule) => {
                let is_text = matches!(prompt, Prompt::Text(_));
                let prompt = prompt.tokens(vocab, None)?;
                if is_text {
                    let (left, bytes) = vocab.before_texts(&prompt, rule.beginnings(FEW_CHARACTERS).as_deref());
                    let healed = if bytes.is_empty() { None } else { rule.after_bytes(&bytes)? };
                    if let Some(constraint) = healed {
                        let healed_bytes = bytes.len();
                        return Ok(AfterPrompt { prompt: left.to_vec(), healed_bytes, spans: single_span(constraint) });
                    }
                }
                (prompt, single_span(rule.constraint()))
            }
        };
        Ok(AfterPrompt { prompt, healed_bytes: 0, spans })
    }
}
