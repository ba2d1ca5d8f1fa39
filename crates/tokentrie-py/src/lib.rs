//! Python's face of tokentrie: convert, call, convert back.

#![allow(
    clippy::doc_link_with_quotes,
    clippy::doc_markdown,
    reason = "doc comments of Python's classes and methods are docstrings"
)]
#![cfg_attr(not(feature = "llama"), allow(dead_code, reason = "what only a model makes or takes"))]
#![allow(clippy::needless_pass_by_value, reason = "pyo3 hands arguments over by value")]

mod batch;
mod batch_items;
mod batch_rules;
mod buffer;
mod call;
mod chat_constraint;
mod chat_format;
mod chat_messages;
mod chat_parser;
#[cfg(feature = "llama")]
mod chat_shares;
mod chat_template;
mod chat_tools;
mod choice;
#[cfg(feature = "llama")]
mod choices;
mod constraint;
mod data;
mod detokenizer;
mod error_docs;
mod errors;
#[cfg(feature = "llama")]
mod errors_runtime;
mod exit;
mod filter;
mod form;
mod gate;
mod generated;
mod gil;
mod grammar;
mod ids;
mod in_chain;
mod leaf;
mod message;
#[cfg(feature = "llama")]
mod model;
#[cfg(feature = "llama")]
mod model_chat;
#[cfg(feature = "llama")]
mod model_choose;
#[cfg(not(feature = "llama"))]
mod no_model;
mod options;
mod payload;
mod pickled;
mod prefix_table;
#[cfg(feature = "llama")]
mod prompt;
mod regex;
mod regular;
#[cfg(feature = "llama")]
mod rivals;
mod rule;
mod rule_of_user;
mod rule_samples;
mod sampler;
mod sampling;
mod schema;
mod scorer;
mod search;
mod spec;
mod spec_data;
mod spec_object;
mod stream;
mod strings;
mod tokenizer;
mod trie;
mod trie_arrays;
mod trie_cache;
mod trie_export;
mod trie_file;
mod trie_rendered;
mod trie_sets;
mod trie_shape;
mod value;
mod vocab;
#[cfg(feature = "llama")]
mod watch;

/// The native part of tokentrie; import `tokentrie` instead.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::batch::Batch;
    #[pymodule_export]
    use crate::call::CancelToken;
    #[pymodule_export]
    use crate::chat_constraint::ChatConstraint;
    #[pymodule_export]
    use crate::chat_format::ChatFormat;
    #[pymodule_export]
    use crate::chat_parser::ChatParser;
    #[pymodule_export]
    use crate::chat_template::ChatTemplate;
    #[pymodule_export]
    use crate::chat_tools::Tools;
    #[pymodule_export]
    use crate::choice::{Choice, ChoiceStats};
    #[cfg(feature = "llama")]
    #[pymodule_export]
    use crate::choices::Choices;
    #[pymodule_export]
    use crate::constraint::{Sequence, Unconstrained};
    #[pymodule_export]
    use crate::detokenizer::Detokenizer;
    #[pymodule_export]
    use crate::filter::{FilteredTrie, LeafSet};
    #[pymodule_export]
    use crate::form::{Form, Slot, Text};
    #[pymodule_export]
    use crate::gate::ThinkGate;
    #[pymodule_export]
    use crate::generated::{Generated, Stats, Step};
    #[pymodule_export]
    use crate::grammar::Grammar;
    #[pymodule_export]
    use crate::in_chain::{InChain, into_chain};
    #[pymodule_export]
    use crate::leaf::Leaf;
    #[pymodule_export]
    use crate::message::{ChatEvent, ChatPrompt, ChatStats, Message, ToolCall};
    #[cfg(feature = "llama")]
    #[pymodule_export]
    use crate::model::Model;
    #[cfg(not(feature = "llama"))]
    #[pymodule_export]
    use crate::no_model::{Choices, Model};
    #[pymodule_export]
    use crate::regex::Regex;
    #[pymodule_export]
    use crate::regular::{Concatenation, Date, Integer, Number, OneOf, StringRule};
    #[pymodule_export]
    use crate::rule::{Rule, RuleStats};
    #[pymodule_export]
    use crate::rule_samples::samples;
    #[pymodule_export]
    use crate::sampler::Sampler;
    #[pymodule_export]
    use crate::sampling::Sampling;
    #[pymodule_export]
    use crate::schema::{JsonSchema, Lark};
    #[pymodule_export]
    use crate::search::{Hypothesis, beam_search, choose};
    #[pymodule_export]
    use crate::spec_object::{SpecObject, constraint};
    #[pymodule_export]
    use crate::tokenizer::host_vocab;
    #[pymodule_export]
    use crate::trie::Trie;
    #[pymodule_export]
    use crate::trie_arrays::TrieArrays;
    #[pymodule_export]
    use crate::trie_cache::{CacheInfo, TrieCache};
    #[pymodule_export]
    use crate::trie_shape::{levels, outline};
    #[pymodule_export]
    use crate::vocab::Vocab;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        crate::exit::register(module.py())?;
        crate::errors::register(module)
    }
}
