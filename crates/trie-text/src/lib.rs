//! Text for token tries: texts in the tokens of a model, and sets and forms of texts.
//!
//! A [`Vocab`] knows the bytes of every token, and turns text into tokens with a [`Tokenizer`]; llama.cpp's is one
//! (crate `llama-sampler`). [`Texts`] makes a [`Trie`](trie_core::Trie) of values, in the tokens that they have
//! between a prompt and the text after them. A [`Form`] is literal text with slots. Nothing here depends on llama.cpp.
//!
//! ```
//! use trie_core::TokenId;
//! use trie_text::{Tokenizer, TokenizerError, TokenKind, Texts, Vocab};
//! use std::sync::Arc;
//!
//! /// One token a byte.
//! #[derive(Debug)]
//! struct Bytes;
//!
//! impl Tokenizer for Bytes {
//!     fn tokenize(&self, text: &str, _: bool, _: bool) -> Result<Vec<TokenId>, TokenizerError> {
//!         Ok(text.bytes().filter_map(|byte| TokenId::new(byte.into())).collect())
//!     }
//! }
//!
//! let tokens = (0..=255u8).map(|byte| ([byte], TokenKind::Text));
//! let vocab = Vocab::new(tokens, vec![], Some(Arc::new(Bytes)))?;
//! let made = Texts::default().trie(&vocab, &["yes", "no"])?;
//! assert_eq!(made.trie.len(), 2);
//! assert_eq!(vocab.detokenize(&made.trie.leaves().next().unwrap().tokens)?, b"no");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod completion;
mod control_text;
mod forms;
mod healing;
mod texts;
mod tokenizer;
mod values;
mod vocab;

pub use completion::{CompletionBound, completion};
pub use forms::{
    Continuation, FilledField, Form, FormConstraint, FormError, FormOptions, FormState, KeptTokens, LastToken, Listing,
    Overshoot, Part, RestOfForm, SlotSet, SlotValues, WayOut, WrittenTokens,
};
pub use healing::{HealingError, Prompt};
pub use texts::{TextError, TextReport, TextStream, TextTrie, Texts, Tokenization, quote};
pub use tokenizer::{SplitPoints, SplitRule, Tokenizer, TokenizerError};
pub use values::{TextValues, ValueSet, ValueSets, Values, ValuesError};
pub use vocab::{
    Detokenizer, LossyText, TokenKind, TokenizedTexts, TokenizerJson, Vocab, VocabError, end_of_generation_by_name,
    hexadecimal,
};
