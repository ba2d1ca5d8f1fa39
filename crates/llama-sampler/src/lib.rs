//! A token trie inside llama.cpp.
//!
//! [`TokenTrieSampler`] is an ordinary sampler for `llama_cpp_2`'s chains, and [`Model`] and [`Session`] are a safe
//! runtime for the main job: load a GGUF, feed a prompt, choose one of a finite set.
//!
//! ```
//! use llama_cpp_2::sampling::LlamaSampler;
//! use llama_cpp_2::token::{LlamaToken, data::LlamaTokenData, data_array::LlamaTokenDataArray};
//! use llama_sampler::{Mode, SpanRules, TokenId, TokenTrieSampler, Trie};
//! use std::sync::Arc;
//!
//! let id = |id| TokenId::new(id).unwrap();
//! let mut builder = Trie::builder();
//! builder.push(Some("THINK"), &[id(5), id(6)]);
//! builder.push(Some("STOP"), &[id(2)]);
//! let rules = SpanRules::new(vec![("action".to_owned(), builder.build()?)], 8)?;
//!
//! let trie = TokenTrieSampler::new(Arc::new(rules), Mode::Sampled);
//! let handle = trie.handle();
//! let mut chain = LlamaSampler::chain([trie.into_llama_sampler(), LlamaSampler::dist(42)], true);
//!
//! // The model likes 7 best, but only 2 and 5 may come, and after 5 only 6.
//! let logits = [0.0, 0.1, 0.2, 0.3, 0.4, 9.0, 0.6, 99.0];
//! for expected in [5, 6] {
//!     let candidates = (0..).zip(logits).map(|(id, logit)| LlamaTokenData::new(LlamaToken(id), logit, 0.0));
//!     let mut candidates = LlamaTokenDataArray::from_iter(candidates, false);
//!     chain.apply(&mut candidates);
//!     let token = candidates.selected_token().unwrap();
//!     chain.accept(token);
//!     assert_eq!(token.0, expected);
//! }
//! assert_eq!(handle.leaf().unwrap().name.as_deref(), Some("THINK"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a model:
//!
//! ```no_run
//! use llama_sampler::{After, GenerateOptions, Model, ModelOptions, Payload, SessionOptions, SpanRules};
//! use std::sync::Arc;
//!
//! let model = Model::load("model.gguf", ModelOptions::default())?;
//! let vocab = model.vocab();
//! let payload = Payload::from_json(&std::fs::read("actions.json")?, Some(vocab.len()))?;
//! let rules = SpanRules::new(payload.spans, vocab.len())?
//!     .with_end_of_generation(vocab.end_of_generation())?
//!     .with_after(After::Stop)?;
//! let prompt = vocab.tokenize("The next action is ", true, true)?;
//! let mut session = model.session(SessionOptions::default())?;
//! let out = session.generate(&prompt, Some(&Arc::new(rules)), &GenerateOptions::default(), &mut ())?;
//! println!("{} in {} forward passes", out.text, out.stats.forward_passes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! One sequence a session; device-side sampling is not provided yet. Set `TOKENTRIE_LLAMA_LOG` to see llama.cpp's log.

mod plug;
mod runtime;

pub use plug::{SamplerCounts, SamplerHandle, SamplerStatus, TokenTrieSampler};
pub use runtime::{
    Choice, ChooseOptions, ChooseStats, Engine, Field, FillOptions, Filled, Finish, Form, FormError, GenerateOptions,
    GenerateStats, Generated, Model, ModelOptions, Part, Progress, RuntimeError, Session, SessionOptions, SlotValues,
    Spelling, Step, TextError, TextReport, TextStream, TextTrie, Texts, TokenKind, Tokenizer, TokenizerError,
    TokenizerJson, Vocab, Watch, default_threads, end_of_generation_by_name, supports_graphics_cards,
};
pub use trie_core::{
    After, BuildError, ByteTrie, DrawSettings, ExternalBuilder, ExternalError, Leaf, LeafId, Mode, Payload,
    SamplerOptions, Span, SpanError, SpanRules, State, TokenId, Trie,
};
