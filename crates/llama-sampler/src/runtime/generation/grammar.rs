//! Generation under a grammar of llama.cpp's: what a trie is compared with.

use super::Generation;
use super::ahead::select;
use super::generated::{Finish, Generated};
use crate::runtime::context::{Context, in_range};
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use std::time::Instant;
use trie_core::{Allowed, TokenId};

/// An engine that constrains text and not tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// llama.cpp's own grammars, in GBNF.
    Gbnf,
    /// The llguidance library, with a grammar in its dialect of Lark. Only in builds with the feature `llguidance`.
    Llguidance,
}

impl Context {
    /// Generates greedily after `prompt` under a grammar whose root rule is `root` (GBNF) or `start` (llguidance), one
    /// forward pass a token. A [`Context::generate`] with a trie of the same values gives the same text at far lower
    /// cost; this is for comparison.
    ///
    /// # Errors
    /// As [`Context::generate`], a grammar that cannot be read, or an engine that is not in this build.
    pub fn generate_with_grammar(
        &mut self,
        prompt: &[TokenId],
        engine: Engine,
        grammar: &str,
        max_tokens: usize,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        in_range("max_tokens", max_tokens as u64, 1, i32::MAX as u64)?;
        let constraint = sampler(self.llama(), engine, grammar)?;
        let mut chain = LlamaSampler::chain([constraint, LlamaSampler::greedy()], true);
        let mut generation = Generation::new(self, prompt, watch)?;
        let n_vocab = generation.vocab.len() as u32;
        let finish = loop {
            generation.ready()?;
            generation.consider(&Allowed::All, None)?;
            let started = Instant::now();
            let (token, logit) =
                select(&mut chain, generation.context.logits()?, (0..n_vocab).filter_map(TokenId::new))?;
            // llama.cpp throws where a grammar accepts what it forbids.
            if logit == f32::NEG_INFINITY {
                return Err(RuntimeError::NothingSelected);
            }
            chain.accept(llama_cpp_2::token::LlamaToken(token.as_i32()));
            generation.stats.sample_seconds += started.elapsed().as_secs_f64();
            generation.count(token, false, 0);
            if generation.vocab.is_end_of_generation(token) {
                break Finish::EndOfGeneration;
            }
            generation.tokens.push(token);
            if generation.tokens.len() >= max_tokens {
                break Finish::MaxTokens;
            }
            if generation.is_full() {
                break Finish::ContextFull;
            }
        };
        let (tokens, text, stats) = generation.finish()?;
        Ok(Generated { tokens, text, leaf: None, leaves: Vec::new(), partial_token: Vec::new(), finish, stats })
    }
}

fn sampler(model: &LlamaModel, engine: Engine, grammar: &str) -> Result<LlamaSampler, RuntimeError> {
    let refused = |error: &dyn std::fmt::Display| RuntimeError::Grammar { reason: error.to_string() };
    match engine {
        Engine::Gbnf => LlamaSampler::grammar(model, grammar, "root").map_err(|error| refused(&error)),
        #[cfg(feature = "llguidance")]
        Engine::Llguidance => llguidance_sampler(model, grammar).map_err(|error| refused(&error)),
        #[cfg(not(feature = "llguidance"))]
        Engine::Llguidance => Err(refused(&"this build is without llguidance")),
    }
}

#[cfg(feature = "llguidance")]
fn llguidance_sampler(model: &LlamaModel, grammar: &str) -> Result<LlamaSampler, Box<dyn std::error::Error>> {
    use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar};
    let factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model))?;
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()))?;
    Ok(LlamaSampler::from(Matcher::new(Ok(parser))))
}
