//! The native module of the Python package: buffers, rows, tries, vocabularies and calls.
//!
//! Constraints and requests arrive as the JSON that Python's dataclasses write, and results leave as JSON or as views
//! of buffers. Nothing is decided here. An error of any crate becomes the Python class of its `ErrorKind`; a panic
//! becomes `PanicException` and never unwinds into the interpreter.

#![allow(
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    reason = "doc comments of Python's classes and methods are docstrings"
)]
#![cfg_attr(not(feature = "llama"), allow(dead_code, reason = "what only a model makes or takes"))]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

mod call;
mod chat;
mod convert;
mod errors;
mod exit;
mod model;
mod rows;
mod rule;
mod spec;
mod trie;
mod vocab;

/// The native part of tokentrie; import `tokentrie` instead.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::call::{CancelToken, OpenCall};
    #[pymodule_export]
    use crate::chat::constraint::ChatConstraint;
    #[pymodule_export]
    use crate::chat::format::ChatFormat;
    #[pymodule_export]
    use crate::chat::parser::ChatParser;
    #[pymodule_export]
    use crate::chat::response_template::{ResponseParser, ResponseTemplate};
    #[pymodule_export]
    use crate::chat::template::ChatTemplate;
    #[pymodule_export]
    use crate::chat::tools::Tools;
    #[cfg(feature = "llama")]
    #[pymodule_export]
    use crate::model::choices::Choices;
    #[cfg(feature = "llama")]
    #[pymodule_export]
    use crate::model::loaded::Model;
    #[cfg(not(feature = "llama"))]
    #[pymodule_export]
    use crate::model::missing::{Choices, Model, verify_receipt};
    #[pymodule_export]
    use crate::rows::batch::Batch;
    #[pymodule_export]
    use crate::rows::exact::choose;
    #[pymodule_export]
    use crate::rows::in_chain::{InChain, into_chain};
    #[pymodule_export]
    use crate::rows::sampler::Sampler;
    #[pymodule_export]
    use crate::rows::sampling::Sampling;
    #[pymodule_export]
    use crate::rows::search::beam_search;
    #[pymodule_export]
    use crate::rule::gate::ThinkGate;
    #[pymodule_export]
    use crate::rule::typed::Typed;
    #[pymodule_export]
    use crate::spec::helpers::{grammar_example, is_text_list, listed_texts, read_constraint, slot_size};
    #[pymodule_export]
    use crate::spec::object::{Constraint, Spec, constraint};
    #[cfg(feature = "llama")]
    #[pymodule_export]
    use crate::spec::receipt::verify_receipt;
    #[pymodule_export]
    use crate::trie::Trie;
    #[pymodule_export]
    use crate::trie::arrays::TrieArrays;
    #[pymodule_export]
    use crate::trie::cache::TrieCache;
    #[pymodule_export]
    use crate::trie::filter::{FilteredTrie, LeafSet};
    #[pymodule_export]
    use crate::trie::leaf::Leaf;
    #[pymodule_export]
    use crate::trie::live::LiveSet;
    #[pymodule_export]
    use crate::trie::shape::{levels, outline};
    #[pymodule_export]
    use crate::vocab::Vocab;
    #[pymodule_export]
    use crate::vocab::detokenizer::Detokenizer;
    #[pymodule_export]
    use crate::vocab::tokenizer::host_vocab;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::exit::register(module.py())?;
        trie_core::work::ask_host(crate::convert::gil::host_wants_stop);
        crate::errors::register(module)
    }
}
