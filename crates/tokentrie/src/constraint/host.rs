//! Services of a host that a spec may refer to.

use super::{Spec, SpecProblem};
use std::sync::Arc;
use trie_core::{Problem, Trie};
use trie_formats::{Payload, PayloadReport};
use trie_text::{TextValues, ValuesError, Vocab};

/// Services that a spec may request of its host. Nothing is given by default: no files, no names, no chat format.
pub trait Host {
    /// The set that is saved under a name. A host that serves others must look only where it means to.
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

    /// The chat template of replies that bring none, with what it finds as `bos_token` and `eos_token`.
    fn template(&self) -> Option<(Arc<str>, Arc<str>, Arc<str>)> {
        None
    }

    /// The format of chats, for replies that bring no template.
    ///
    /// # Errors
    /// What it cannot be had for.
    #[cfg(feature = "chat")]
    fn chat_format(&self) -> Result<Option<chat_format::ChatFormat>, Problem> {
        Ok(None)
    }

    /// Texts in tokens, where the host keeps what it tokenised before.
    ///
    /// # Errors
    /// As [`TextValues::set`].
    fn texts(&self, values: &TextValues, vocab: &Vocab) -> Result<Trie, ValuesError> {
        Ok(values.set(vocab)?.trie().clone())
    }

    /// A payload, where the host keeps what it read before.
    ///
    /// # Errors
    /// As [`Payload::from_json`].
    fn payload(&self, text: &[u8], n_vocab: Option<usize>) -> Result<Arc<Payload>, SpecProblem> {
        Ok(Arc::new(Payload::from_json(text, n_vocab)?))
    }

    /// Is told what of a payload the vocabulary cannot spell.
    fn report_dropped(&self, report: &PayloadReport) {
        let _ = report;
    }

    /// Is told what a grammar or a schema has that is not held.
    fn warn(&self, warning: &str) {
        let _ = warning;
    }
}

/// A host that has nothing: specs must say everything themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct DataOnly;

impl Host for DataOnly {}
