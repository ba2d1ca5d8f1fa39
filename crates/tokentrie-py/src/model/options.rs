//! Texts allowed after a span, in samplers and generation.

use crate::convert::ids::tokens;
use crate::convert::words::After;
use crate::errors::Result;
use crate::rows::sampling::Keywords;
use pyo3::prelude::*;
use trie_core::{SpanRules, TokenId};

/// The arguments as Python gave them.
pub(crate) struct Options<'a, 'py> {
    pub(crate) keywords: Keywords<'a, 'py>,
    pub(crate) end_tokens: Option<&'a Bound<'py, PyAny>>,
    pub(crate) after: After,
}

impl Options<'_, '_> {
    /// # Errors
    /// `VocabularyError` for ids outside the vocabulary, `OptionError` for `after="stop"` with nothing to stop on.
    pub(crate) fn rules(&self, rules: SpanRules, end_of_generation: &[TokenId]) -> Result<SpanRules> {
        let mut rules = rules;
        if let Some(ends) = self.end_tokens {
            rules = rules.with_end_tokens(tokens(ends, "end_tokens, ")?)?;
        }
        if !end_of_generation.is_empty() {
            rules = rules.with_end_of_generation(end_of_generation)?;
        }
        Ok(rules.with_after(self.after.0)?)
    }
}
