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
        Ok(Self { tokens, turn })
    }
}
