//! The prompt of a conversation.

use chat_format::analysis::PromptOptions;
use chat_format::{ChatFormat, TemplateError};
use serde_json::Value;
use trie_core::TokenId;
use trie_text::{Vocab, VocabError};

/// The tokens of a conversation, up to where the model goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPrompt {
    /// Tokens of the prompt.
    pub tokens: Vec<TokenId>,
    /// Part of its text that begins the reply's turn.
    pub turn: String,
    /// Number of the tokens before the mark, which is left out; `None` where there is not exactly one.
    pub marked: Option<usize>,
}

impl ChatPrompt {
    /// Returns the prompt. Only the template's own text can name control tokens; in messages, tools and variables such
    /// names stay plain text.
    ///
    /// # Errors
    /// Messages that the template refuses, or a vocabulary that cannot tokenize.
    pub fn new<E: From<TemplateError> + From<VocabError>>(
        format: &ChatFormat,
        vocab: &Vocab,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<Self, E> {
        let (text, begins) = format.traced_prompt(messages, tools, options)?;
        let bos = format.template().bos();
        let begun = !bos.is_empty() && text.begins_with_own(bos);
        let tokens = vocab.tokenize_traced(text.text(), text.own_ranges(), !begun)?;
        let turn = text.text()[begins..].to_owned();
        Ok(Self { tokens, turn, marked: None })
    }

    /// Returns the prompt of messages in which a mark stands, tokenized apart before the mark and after it. A line
    /// break after the mark is left out with it.
    ///
    /// # Errors
    /// As [`ChatPrompt::new`].
    pub fn with_mark<E: From<TemplateError> + From<VocabError>>(
        format: &ChatFormat,
        vocab: &Vocab,
        messages: &[Value],
        mark: &str,
        options: &PromptOptions,
    ) -> Result<Self, E> {
        let (text, begins) = format.traced_prompt(messages, None, options)?;
        let bos = format.template().bos();
        let begun = !bos.is_empty() && text.begins_with_own(bos);
        let turn = text.text()[begins..].to_owned();
        let mut places = text.text().match_indices(mark);
        let (Some((at, _)), None) = (places.next(), places.next()) else {
            return Ok(Self { tokens: Vec::new(), turn, marked: None });
        };
        let after = at + mark.len();
        let after = after + usize::from(text.text()[after..].starts_with('\n'));
        let (head, tail) = (text.part(0..at), text.part(after..text.text().len()));
        let mut tokens = vocab.tokenize_traced(head.text(), head.own_ranges(), !begun)?;
        let marked = Some(tokens.len());
        tokens.extend(vocab.tokenize_traced_inside(tail.text(), tail.own_ranges())?);
        Ok(Self { tokens, turn, marked })
    }
}
