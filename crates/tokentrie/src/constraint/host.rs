//! Services of a host that a spec may refer to.

use super::{Spec, SpecProblem, TemplateTexts};
use std::sync::Arc;
use trie_core::{Problem, Trie};
use trie_formats::{Payload, PayloadReport};
use trie_text::{TextValues, ValuesError, Vocab};

/// Services that a spec may request of its host. Nothing is given by default: no files, no names, no chat format.
pub trait Host {
    /// Returns the set that is saved under a name. A host that serves untrusted requests must look only in places that
    /// it allows.
    ///
    /// # Errors
    /// What it cannot be had for.
    fn set(&self, name: &str) -> Result<Option<Trie>, Problem> {
        let _ = name;
        Ok(None)
    }

    /// Returns the spec registered under a name.
    ///
    /// # Errors
    /// What it cannot be had for.
    fn named_spec(&self, name: &str) -> Result<Option<Spec>, Problem> {
        let _ = name;
        Ok(None)
    }

    /// Returns the chat template for replies without one, with the values of its variables `bos_token` and `eos_token`.
    fn template(&self) -> Option<TemplateTexts> {
        None
    }

    /// Returns the chat format for replies without a template.
    ///
    /// # Errors
    /// What it cannot be had for.
    #[cfg(feature = "chat")]
    fn chat_format(&self) -> Result<Option<chat_format::ChatFormat>, Problem> {
        Ok(None)
    }

    /// Returns texts in tokens. A host may cache the tokens.
    ///
    /// # Errors
    /// As [`TextValues::set`].
    fn texts(&self, values: &TextValues, vocab: &Vocab) -> Result<Trie, ValuesError> {
        Ok(values.set(vocab)?.trie().clone())
    }

    /// Returns a parsed payload. A host may cache payloads.
    ///
    /// # Errors
    /// As [`Payload::from_json`].
    fn payload(&self, text: &[u8], n_vocab: Option<usize>) -> Result<Arc<Payload>, SpecProblem> {
        Ok(Arc::new(Payload::from_json(text, n_vocab)?))
    }

    /// Receives a report of the entries of a payload that the vocabulary cannot spell.
    fn report_dropped(&self, report: &PayloadReport) {
        let _ = report;
    }

    /// Receives a warning about a part of a grammar or a schema that is not enforced.
    fn warn(&self, warning: &str) {
        let _ = warning;
    }
}

/// A host that provides nothing: specs must contain everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct DataOnly;

impl Host for DataOnly {}
