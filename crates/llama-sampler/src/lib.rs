//! A safe runtime on llama.cpp: load a GGUF, feed a prompt, choose one of a finite set, generate inside a constraint.
//!
//! A [`TokenTrieSampler`](llama_callbacks::TokenTrieSampler) goes into the chains of any llama.cpp; here it is an
//! ordinary sampler for `llama_cpp_2`'s chains too ([`IntoLlamaSampler`]).
//!
//! ```
//! use llama_callbacks::TokenTrieSampler;
//! use llama_cpp_2::sampling::LlamaSampler;
//! use llama_cpp_2::token::{LlamaToken, data::LlamaTokenData, data_array::LlamaTokenDataArray};
//! use llama_sampler::IntoLlamaSampler as _;
//! use std::sync::Arc;
//! use trie_core::{Mode, SpanRules, TokenId, Trie};
//!
//! let id = |id| TokenId::new(id).unwrap();
//! let mut builder = Trie::builder();
//! builder.push(Some("THINK"), &[id(5), id(6)]);
//! builder.push(Some("STOP"), &[id(2)]);
//! let rules = SpanRules::for_constraint(builder.build()?, 8)?;
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
//! use llama_sampler::{ContextOptions, GenerateOptions, Model, ModelOptions};
//! use std::sync::Arc;
//! use trie_core::{After, SpanRules};
//! use trie_formats::Payload;
//!
//! let model = Model::load("model.gguf", ModelOptions::default())?;
//! let vocab = model.vocab();
//! let payload = Payload::from_json(&std::fs::read("actions.json")?, Some(vocab.len()))?;
//! let rules = SpanRules::new(payload.constraints, vocab.len())?
//!     .with_end_of_generation(vocab.end_of_generation())?
//!     .with_after(After::Stop)?;
//! let prompt = vocab.tokenize("The next action is ", true, true)?;
//! let mut context = model.context(ContextOptions::default())?;
//! let out = context.generate(&prompt, Some(&Arc::new(rules)), &GenerateOptions::default(), &mut ())?;
//! println!("{} in {} forward passes", out.text, out.stats.forward_passes);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Limits
//!
//! One sequence a context. Calls choose on the host; chains of llama.cpp's can run in its compute graph
//! ([`AttachedChains`]). Set `TOKENTRIE_LLAMA_LOG` to see llama.cpp's log.

mod linked;
mod runtime;

pub use linked::{IntoLlamaSampler, linked_init};
pub use runtime::{
    Answers, AttachedChains, Bounds, Branch, CacheType, CompletedJob, Completion, Context, ContextOptions, DeviceChain,
    DeviceError, Draft, Embedder, Field, Finish, GenerateOptions, GenerateStats, GenerateTask, Generated,
    GenerationConstraint, Model, ModelOptions, PlacedToken, PlannedWave, Pooling, Prefix, Progress, Question,
    QuestionScorer, ReadingTask, RuntimeError, Scorer, ScoringTask, Step, Task, TokenLogprob, TrailStep, Watch,
    chat_from_gguf, default_threads, form_of, linked_graph, model_digest, place_branches, plan, plan_draft,
    supports_graphics_cards, vocab_from_gguf,
};
