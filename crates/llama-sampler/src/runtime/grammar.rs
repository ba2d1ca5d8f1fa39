//! Generation under a grammar of llama.cpp's: what a trie is compared with.

use super::ahead::select;
use super::error::RuntimeError;
use super::generate::{Finish, Generated, Watch};
use super::preconditions::in_range;
use super::run::Run;
use super::session::Session;
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

impl Session {
    /// Generates greedily after `prompt` under a grammar whose root rule is `root` (GBNF) or `start` (llguidance), one forward pass a
    /// token. A [`Session::generate`] with a trie of the same values gives the same text at far lower cost; this is for
    /// comparison.
    ///
    /// # Errors
    /// As [`Session::generate`], a grammar that cannot be read, or an engine that is not in this build.
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
        let mut run = Run::new(self, prompt, watch)?;
        let n_vocab = run.vocab.len() as u32;
        let finish = loop {
            run.ready()?;
            run.consider(&Allowed::All, None)?;
            let started = Instant::now();
            let (token, logit) = select(&mut chain, run.session.logits()?, (0..n_vocab).filter_map(TokenId::new))?;
            // llama.cpp throws where a grammar accepts what it forbids.
            if logit == f32::NEG_INFINITY {
                return Err(RuntimeError::NothingSelected);
            }
            chain.accept(llama_cpp_2::token::LlamaToken(token.as_i32()));
            run.stats.sample_seconds += started.elapsed().as_secs_f64();
            run.count(token, false, 0);
            if run.vocab.is_end_of_generation(token) {
                break Finish::EndOfGeneration;
            }
            run.tokens.push(token);
            if run.tokens.len() >= max_tokens {
                break Finish::MaxTokens;
            }
            if run.is_full() {
                break Finish::ContextFull;
            }
        };
        let (tokens, text, stats) = run.finish()?;
        Ok(Generated { tokens, text, leaf: None, overrun: Vec::new(), finish, stats })
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
