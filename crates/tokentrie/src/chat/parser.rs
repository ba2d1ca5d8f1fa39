//! A reply that is read in parts, of text or of tokens.

use crate::chat::ModelFormat;
use chat_format::{ChatFormat, Event, FormatError, Message, Parser, ParserOptions};
use std::sync::Arc;
use trie_core::work::{LimitExceeded, spend};
use trie_core::{ErrorKind, TokenId};

/// Parser of a reply in parts, which are all text or all tokens. In text, a marker that is a control token looks like
/// ordinary text with the same spelling; in tokens the two differ.
#[derive(Debug)]
pub struct ReplyParser {
    /// The parser of text; it is given a vocabulary when the first token comes.
    parser: Parser,
    kind: Option<Kind>,
    over: Option<Arc<ModelFormat>>,
    options: ParserOptions,
    /// True once a token that ends generation came: later text is not part of the reply.
    ended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Tokens,
}

/// Reason why a part of a reply cannot be read.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PartError {
    /// Text and tokens in one reply.
    #[error("a reply in {began} is not continued in {part}: give all of its parts as {began}, or make a new parser")]
    Mixed {
        /// Kind of the earlier input: `text` or `tokens`.
        began: &'static str,
        /// Kind of this input.
        part: &'static str,
    },
    /// Tokens of no vocabulary.
    #[error("a reply in tokens is not supported: this format has no vocabulary: give ChatFormat one, or give the text")]
    NoVocabulary,
    /// A token that the vocabulary does not have.
    #[error("position {at}: token id {token} is outside the vocabulary of {size} tokens")]
    Outside {
        /// Position in the part.
        at: usize,
        /// Id of the token.
        token: TokenId,
        /// Size of the vocabulary.
        size: usize,
    },
    /// A tool whose schema nothing satisfies.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The work ended. Some of the part is read then: such a parser is of no more use.
    #[error(transparent)]
    Over(#[from] LimitExceeded),
}

impl PartError {
    /// Returns the kind, by which hosts tell errors apart.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Mixed { .. } | Self::NoVocabulary => ErrorKind::Argument,
            Self::Outside { .. } => ErrorKind::Vocabulary,
            Self::Format(error) => error.kind(),
            Self::Over(_) => ErrorKind::Limit,
        }
    }
}

impl ReplyParser {
    /// Returns a parser of a reply in this format. Reading tokens needs `over`, the same format over a vocabulary.
    ///
    /// # Errors
    /// As [`ChatFormat::parser`].
    pub fn new(
        format: &ChatFormat,
        over: Option<Arc<ModelFormat>>,
        options: ParserOptions,
    ) -> Result<Self, FormatError> {
        Ok(Self { parser: format.parser(&options)?, kind: None, over, options, ended: false })
    }

    /// Reads text, and returns the events that became certain with it.
    ///
    /// # Errors
    /// Tokens came before; the work limit of this thread is used up.
    pub fn push_text(&mut self, text: &[u8]) -> Result<Vec<Event>, PartError> {
        if self.kind == Some(Kind::Tokens) {
            return Err(PartError::Mixed { began: "tokens", part: "text" });
        }
        self.kind = Some(Kind::Text);
        Ok(self.parser.push_long(text)?)
    }

    /// Reads tokens, and returns the events that became certain with them. A token that ends generation ends the reply.
    ///
    /// # Errors
    /// Text came before; there is no vocabulary, or it lacks a token; the work limit of this thread is used up. Only in
    /// the last case is a part of the tokens read.
    pub fn push_tokens(&mut self, tokens: &[TokenId]) -> Result<Vec<Event>, PartError> {
        if self.kind == Some(Kind::Text) {
            return Err(PartError::Mixed { began: "text", part: "tokens" });
        }
        let over = self.over.as_ref().ok_or(PartError::NoVocabulary)?;
        let vocab = over.vocab();
        if let Some(at) = tokens.iter().position(|token| token.index() >= vocab.len()) {
            return Err(PartError::Outside { at, token: tokens[at], size: vocab.len() });
        }
        if self.kind.is_none() {
            self.parser = over.parser(&self.options)?;
            self.kind = Some(Kind::Tokens);
        }
        let mut events = Vec::new();
        for &token in tokens {
            self.ended |= vocab.is_end_of_generation(token);
            if self.ended {
                break;
            }
            spend(1)?;
            events.extend(over.push(&mut self.parser, token));
        }
        Ok(events)
    }

    /// Returns the message so far.
    #[must_use]
    pub fn message(&self) -> &Message {
        self.parser.message()
    }

    /// Ends the reply, and returns the last events and the message. `partial` says that the reply was cut off: text
    /// that may have become a marker is then left out.
    #[must_use]
    pub fn finish(self, partial: bool) -> (Vec<Event>, Message) {
        self.parser.finish(partial)
    }
}
