//! The model's own chat template, rendered so that text cannot pose as control tokens.

use super::Model;
use super::tokenizer::{load_vocab, vocab_of};
use crate::runtime::error::RuntimeError;
use chat_template::{ChatTemplate, Data, RenderOptions};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use std::path::Path;
use trie_core::TokenId;
use trie_text::Vocab;

/// The vocabulary of a GGUF file and its chat template, if it has one; the file may hold weights or not. `O(tokens)`.
///
/// # Errors
/// As [`vocab_from_gguf`](crate::vocab_from_gguf), and a faulty template.
pub fn chat_from_gguf(path: impl AsRef<Path>) -> Result<(Vocab, Option<ChatTemplate>), RuntimeError> {
    let path = path.as_ref();
    let llama = load_vocab(path)?;
    let vocab = vocab_of(&llama, path)?;
    let template = template_of(&llama, &vocab)?;
    Ok((vocab, template))
}

/// The template of a model's file, with its tokens for the beginning and the end of a text.
fn template_of(llama: &LlamaModel, vocab: &Vocab) -> Result<Option<ChatTemplate>, RuntimeError> {
    let Some(text) = llama.chat_template(None).ok().and_then(|template| template.to_string().ok()) else {
        return Ok(None);
    };
    let text_of = |token: LlamaToken| {
        let piece = TokenId::try_from(token.0).ok().and_then(|token| vocab.piece(token));
        piece.and_then(|piece| std::str::from_utf8(piece).ok()).unwrap_or_default()
    };
    let of = llama.vocab();
    Ok(Some(ChatTemplate::new(text, text_of(of.bos()), text_of(of.eos()))?))
}

impl Model {
    /// Returns the text of a key of the file's metadata, such as `general.name`; numbers as text.
    pub fn metadata(&self, key: &str) -> Option<String> {
        self.llama().meta_val_str(key).ok()
    }

    /// The template of the file (`tokenizer.chat_template`), with its tokens for the beginning and the end of a text.
    /// It is read once.
    ///
    /// # Errors
    /// The file has no template, or a faulty one.
    pub fn chat_template(&self) -> Result<&ChatTemplate, RuntimeError> {
        if let Some(template) = self.template.get() {
            return Ok(template);
        }
        let template = template_of(self.llama(), self.vocab())?;
        let template = template.ok_or_else(|| RuntimeError::NoTemplate { path: self.path().to_owned() })?;
        Ok(self.template.get_or_init(|| template))
    }

    /// A prompt from messages, and tools where there are any, in the model's own chat format.
    ///
    /// `messages` is a list of dicts with `role` and `content`, `tools` a list of tool definitions, both as the model's
    /// template expects them. If the template refuses them, other shapes are tried ([`ChatTemplate::render`]). Their
    /// contents and the variables are plain text: the name of a control token in them stays text.
    ///
    /// `answer_prefix` is plain text that opens the answer. It is tokenized together with the end of the prompt, as if
    /// the model had written it. A set for the text after it must be built with the same prefix and healing
    /// ([`Texts`](trie_text::Texts)).
    ///
    /// # Errors
    /// The file has no template, the template is faulty, or it refuses the messages.
    pub fn chat_prompt(
        &self,
        messages: &Data,
        tools: Option<&Data>,
        options: &RenderOptions,
        answer_prefix: &str,
    ) -> Result<Vec<TokenId>, RuntimeError> {
        let template = self.chat_template()?;
        let mut text = template.render_traced(messages, tools, options)?;
        let begins = !template.bos().is_empty() && text.begins_with_own(template.bos());
        text.push_foreign(answer_prefix);
        Ok(self.vocab().tokenize_traced(text.text(), text.own_ranges(), !begins)?)
    }
}
