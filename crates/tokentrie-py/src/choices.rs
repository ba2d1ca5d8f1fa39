//! A set to choose from, and choices over a stream of prompts.

use crate::choice::Choice;
use crate::errors::Result;
use crate::model::Model;
use pyo3::prelude::*;
use pyo3::types::PyIterator;
use std::collections::VecDeque;
use std::sync::Arc;
use trie_core::{TokenId, Trie};

/// What may be chosen, and how much of it is scored.
pub(crate) struct ChoiceSet {
    pub(crate) trie: Trie,
    /// The number of each leaf among the values as they were given; `None` for leaf order.
    pub(crate) order: Option<Arc<[usize]>>,
    pub(crate) end_tokens: Vec<TokenId>,
    pub(crate) top: Option<usize>,
}

/// Iterator over the choices of `Model.choose_many`, in the order of the prompts.
#[pyclass(module = "tokentrie")]
pub(crate) struct Choices {
    model: Py<Model>,
    prompts: Py<PyIterator>,
    set: ChoiceSet,
    ready: VecDeque<Choice>,
}

impl Choices {
    /// Prompts that are read ahead and decoded together.
    const GROUP: usize = 32;

    pub(crate) fn new(model: Py<Model>, prompts: Py<PyIterator>, set: ChoiceSet) -> Self {
        Self { model, prompts, set, ready: VecDeque::new() }
    }
}

#[pymethods]
impl Choices {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> Result<Option<Choice>> {
        if self.ready.is_empty() {
            let model = self.model.bind(py).get();
            let mut group = Vec::new();
            for prompt in self.prompts.bind(py).clone().take(Self::GROUP) {
                group.push(model.prompt(&prompt?)?);
            }
            self.ready = model.choose_group(py, &group, &self.set)?.into();
        }
        Ok(self.ready.pop_front())
    }
}
