//! The prompt of a conversation.

use crate::chat::messages::{map_texts, texts};
use chat_format::analysis::{Continued, PromptOptions};
use chat_format::{ChatFormat, TemplateError};
use serde_json::Value;
use trie_core::TokenId;
use trie_text::{ControlTextGuard, Vocab, VocabError};

/// The tokens of a conversation, up to where the model goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatPrompt {
    /// All of it.
    pub tokens: Vec<TokenId>,
    /// What of its text begins the reply's turn.
    pub turn: String,
}

impl ChatPrompt {
    /// The prompt, in which only the template's own text names control tokens: in messages, tools and variables such
    /// names stay text.
    ///
    /// # Errors
    /// What the template says of the messages, or a vocabulary that cannot tokenize.
    pub fn new<E: From<TemplateError> + From<VocabError>>(
        format: &ChatFormat,
        vocab: &Vocab,
        messages: &[Value],
        tools: Option<&Value>,
        options: &PromptOptions,
    ) -> Result<Self, E> {
        let mut found = Vec::new();
        messages.iter().chain(tools).for_each(|value| texts(value, &mut found));
        let variables = options.render.variables.iter();
        variables.for_each(|(_, value)| value.for_each_text(&mut |text| found.push(text.to_owned())));
        let guard = ControlTextGuard::new(vocab, found);
        let protected = |value: &Value| map_texts(value, &|text| guard.protect(text));
        let (shown, offered) = (messages.iter().map(protected).collect::<Vec<_>>(), tools.map(protected));
        let mut guarded = options.clone();
        for (_, value) in &mut guarded.render.variables {
            *value = value.map_texts(&mut |text| guard.protect(text));
        }
        let (text, begins) = format.prompt(&shown, offered.as_ref(), &guarded)?;
        let bos = format.template().bos();
        let begun = !bos.is_empty() && text.starts_with(bos);
        let tokens = guard.tokenize(&text, !begun)?;
        let turn = if options.continued == Continued::Nothing {
            text[begins..].to_owned()
        } else {
            // What is continued has marks of the guard in it.
            let (text, begins) = format.prompt(messages, tools, options)?;
            text[begins..].to_owned()
        };
        Ok(Self { tokens, turn })
    }
}
