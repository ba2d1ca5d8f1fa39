//! Python's face of tokentrie: convert, call, convert back.

#![allow(
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    reason = "doc comments of Python's classes and methods are docstrings"
)]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

mod buffer;
mod choice;
mod choices;
mod error_docs;
mod errors;
mod form;
mod generated;
mod gil;
mod ids;
mod leaf;
mod model;
mod model_choose;
mod options;
mod payload;
mod prompt;
mod sampler;
mod sampling;
mod session;
mod stream;
mod strings;
mod tokenizer;
mod trie;
mod trie_export;
mod trie_file;
mod trie_rendered;
mod trie_sets;
mod trie_shape;
mod vocab;
mod watch;

/// The native part of tokentrie; import `tokentrie` instead.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::choice::{Choice, ChoiceStats};
    #[pymodule_export]
    use crate::choices::Choices;
    #[pymodule_export]
    use crate::form::{Form, Slot, Text};
    #[pymodule_export]
    use crate::generated::{Generated, Stats, Step};
    #[pymodule_export]
    use crate::leaf::Leaf;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::sampler::Sampler;
    #[pymodule_export]
    use crate::sampling::Sampling;
    #[pymodule_export]
    use crate::session::{CacheInfo, Session};
    #[pymodule_export]
    use crate::trie::Trie;
    #[pymodule_export]
    use crate::trie_shape::{levels, outline};
    #[pymodule_export]
    use crate::vocab::Vocab;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::errors::register(module)
    }
}
