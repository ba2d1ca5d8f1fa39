//! Subject of a reply's receipt, and the check of one.

use super::prompt::ChatPrompt;
use super::reply::{ReadyChat, ReplyOptions};
use crate::call::{Receipt, ReceiptError};
use crate::constraint::{Reply, Spec};
use chat_format::ChatFormat;
use chat_format::analysis::ToolsIn;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use trie_text::hexadecimal;

/// Returns the fingerprint of a reply: as a [`Spec`], together with the place of the tools and the constraint on its
/// content. `None` where that is not data.
pub(super) fn fingerprint(
    format: &ChatFormat,
    definitions: Option<&Value>,
    tools_in: ToolsIn,
    budget: Option<u32>,
    prompt: &ChatPrompt,
    options: &ReplyOptions,
) -> Option<String> {
    let (template, response_template) = Reply::texts_of(format);
    let reply = Reply {
        tools: definitions.map_or_else(|| "[]".into(), |tools| tools.to_string().into()),
        tool_choice: (&options.choice).into(),
        parallel_tool_calls: options.parallel,
        generation_prompt: Some(prompt.turn.as_str().into()),
        thinking_budget: budget,
        any_spelling: false,
        whitespace: options.whitespace,
        template,
        response_template,
    };
    let reply = Spec::Reply(Box::new(reply)).fingerprint()?;
    let content = match &options.content {
        Some(_) => Some(options.content_fingerprint.as_deref()?),
        None => None,
    };
    if content.is_none() && tools_in == ToolsIn::Template {
        return Some(reply);
    }
    let told = json!({"reply": reply, "tools_in": tools_in.name(), "content": content});
    Some(hexadecimal(&Sha256::digest(told.to_string())))
}

impl ReadyChat {
    /// Checks that a receipt is of a reply to this chat, whose options had [`ReplyOptions::receipt`]: that prompt and
    /// constraint are the same, nothing was changed, and each token was allowed. `O(tokens × vocabulary)`.
    ///
    /// # Errors
    /// The first mismatch, with its place.
    pub fn check_receipt(&self, receipt: &Receipt, key: Option<&[u8]>) -> Result<(), ReceiptError> {
        let own = self.subject.as_ref();
        receipt.check_is_of(own.and_then(|own| own.constraint.as_deref()), &self.vocab, key)?;
        if own.is_none_or(|own| own.prompt != receipt.prompt || receipt.free || receipt.end_tokens.is_some()) {
            return Err(ReceiptError::Prompt);
        }
        receipt.check_inside(Some(&self.rules), &self.vocab)
    }
}
