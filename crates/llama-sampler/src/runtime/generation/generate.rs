//! Generation inside a span: prompt, then token after token until the span, the model or a limit ends it.
//!
//! Two loops give the same tokens (in a set with several tokenizations of a value, only the first takes text that must
//! come in the tokenizer's tokens). The one that skips ahead owns the row of logits: a token that is forced is never
//! asked for, it is decoded together with whatever is next needed. The other puts the span into llama.cpp's own chain
//! and takes one forward pass a token.

use super::ahead::{ChainOverSpan, Chooser, only};
use super::generated::{Finish, GenerateOptions, Generated};
use super::{Generation, chain};
use crate::plug::SamplerHandle;
use crate::runtime::context::{Context, in_range};
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use llama_cpp_2::sampling::LlamaSampler;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{After, Allowed, Sampler, Span, SpanRules, State, TokenId};

impl Context {
    /// Generates after `prompt`. What the context holds of its beginning is not computed again.
    ///
    /// Ends with the span under [`After::Stop`]; a token that ends an open leaf is dropped there. Without rules, or
    /// under [`After::Free`], it goes on until the model ends its output. A first set that begins inside the prompt
    /// ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)) comes after what it leaves of it.
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, one that does not fit, a failed forward
    /// pass, or `watch` asked to stop. The context can be used afterwards.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.check_rules(rules, options)?;
        let mut generation = Generation::before(self, prompt, rules.map(|rules| &rules.spans()[0].1), watch)?;
        let (finish, span) = match rules {
            Some(rules) if options.skip_ahead => {
                let mut sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
                generation.stats.seed = sampler.seed();
                let finish = ahead(&mut generation, &mut sampler, options.max_tokens)?;
                generation.stats.starved = sampler.starved();
                (finish, Some(sampler.span().clone()))
            }
            _ => chained(&mut generation, chain::build(rules, &options.sampling)?, options.max_tokens)?,
        };
        generated(generation, finish, span.as_ref())
    }

    /// As [`Context::generate`] with samplers of llama.cpp's after the trie: `chain` gets the allowed candidates alone,
    /// hears of every token, and must select. `options.sampling` is not used.
    ///
    /// # Errors
    /// As [`Context::generate`], and a chain that selects no token.
    pub fn generate_with_chain(
        &mut self,
        prompt: &[TokenId],
        rules: &Arc<SpanRules>,
        chain: LlamaSampler,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.check_rules(Some(rules), options)?;
        let mut generation = Generation::before(self, prompt, Some(&rules.spans()[0].1), watch)?;
        let mut chooser = ChainOverSpan::new(Arc::clone(rules), chain);
        let finish = ahead(&mut generation, &mut chooser, options.max_tokens)?;
        generated(generation, finish, Some(chooser.span()))
    }

    fn check_rules(&self, rules: Option<&Arc<SpanRules>>, options: &GenerateOptions) -> Result<(), RuntimeError> {
        let n_vocab = self.vocab().len();
        let spans = rules.map(|rules| rules.spans()).unwrap_or_default();
        spans.iter().try_for_each(|(_, trie)| self.vocab().check_set(trie))?;
        if let Some(rules) = rules.map(|rules| rules.n_vocab()).filter(|&rules| rules > n_vocab) {
            return Err(RuntimeError::VocabularyMismatch { rules, n_vocab });
        }
        in_range("max_tokens", options.max_tokens as u64, 1, i32::MAX as u64)
    }
}

fn generated(generation: Generation<'_>, finish: Finish, span: Option<&Span>) -> Result<Generated, RuntimeError> {
    let vocab = Arc::clone(&generation.vocab);
    let (tokens, text, stats) = generation.finish()?;
    let leaf = span.and_then(Span::leaf);
    if leaf.is_none() && span.is_some_and(|span| span.state() == State::Complete) {
        return Err(RuntimeError::DamagedSet);
    }
    let mut partial_token = Vec::new();
    if let (Some(span), Some(leaf)) = (span.filter(|span| !span.trie().is_tree()), &leaf) {
        let walked = vocab.join(&tokens[..span.depth().min(tokens.len())])?;
        partial_token = walked.get(vocab.join(&leaf.tokens)?.len()..).unwrap_or_default().to_vec();
    }
    Ok(Generated { tokens, text, leaf, partial_token, finish, stats })
}

/// Owns the row: nothing is decoded until logits are needed, and then everything since the last time at once.
fn ahead(
    generation: &mut Generation<'_>,
    chooser: &mut dyn Chooser,
    max_tokens: usize,
) -> Result<Finish, RuntimeError> {
    loop {
        let before = chooser.span().clone();
        // In a set with several tokenizations of a value, text that must come is not asked for either.
        let forced = only(&before.allowed()).or_else(|| before.forced().next());
        let token = if let Some(token) = forced {
            generation.consider(&before.allowed(), forced)?;
            generation.stats.forward_passes_saved += 1;
            chooser.accept_forced(token)?;
            token
        } else {
            generation.ready()?;
            generation.consider(&before.allowed(), None)?;
            let started = Instant::now();
            let token = chooser.choose(generation.context.logits()?)?;
            chooser.accept(token)?;
            generation.stats.sample_seconds += started.elapsed().as_secs_f64();
            token
        };
        if let Some(finish) = take(generation, token, forced.is_some(), Some(&before), Some(chooser.span()), max_tokens)
        {
            return Ok(finish);
        }
    }
}

/// Leaves the choice to a chain that holds the span, one forward pass a token.
fn chained(
    generation: &mut Generation<'_>,
    mut chain: chain::Chain,
    max_tokens: usize,
) -> Result<(Finish, Option<Span>), RuntimeError> {
    generation.stats.seed = chain.seed;
    let finish = loop {
        generation.ready()?;
        let before = chain.handle.as_ref().map(SamplerHandle::span);
        let forced = before.as_ref().is_some_and(|span| only(&span.allowed()).is_some());
        generation.consider(&before.as_ref().map_or(Allowed::All, Span::allowed), None)?;
        let started = Instant::now();
        let token = generation.context.sample(&mut chain.sampler)?;
        generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        let after = chain.handle.as_ref().map(SamplerHandle::span);
        if let Some(finish) = take(generation, token, forced, before.as_ref(), after.as_ref(), max_tokens) {
            break finish;
        }
    };
    generation.stats.starved = chain.handle.as_ref().map_or(0, |handle| handle.counts().starved);
    Ok((finish, chain.handle.map(|handle| handle.span())))
}

/// Takes a token that was accepted. Gives the reason if it is the last.
fn take(
    generation: &mut Generation<'_>,
    token: TokenId,
    forced: bool,
    before: Option<&Span>,
    after: Option<&Span>,
    max_tokens: usize,
) -> Option<Finish> {
    generation.count(token, forced, before.map_or(0, Span::depth));
    let role = Role::of(token, before, after);
    let ends_output = role != Role::Value && generation.vocab.is_end_of_generation(token);
    let span_over = after.is_some_and(|span| span.state() == State::Complete && span.rules().after() == After::Stop);
    if !ends_output && (!span_over || role != Role::Other) {
        generation.tokens.push(token);
    }
    if span_over {
        Some(Finish::Span)
    } else if ends_output {
        Some(Finish::EndOfGeneration)
    } else if generation.tokens.len() >= max_tokens {
        Some(Finish::MaxTokens)
    } else if generation.is_full() {
        Some(Finish::ContextFull)
    } else {
        None
    }
}

/// What a token is to its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Part of the value.
    Value,
    /// An end token of the span.
    End,
    /// Anything else: free text.
    Other,
}

impl Role {
    fn of(token: TokenId, before: Option<&Span>, after: Option<&Span>) -> Self {
        match (before, after) {
            (Some(before), Some(after)) if after.depth() > before.depth() => Self::Value,
            (Some(before), _) if before.state() == State::Active && before.rules().end_tokens().contains(&token) => {
                Self::End
            }
            _ => Self::Other,
        }
    }
}
