//! Generation inside a span: prompt, then token after token until the span, the model or a limit ends it.
//!
//! Two loops give the same tokens (in a set with several tokenizations of a value, only the first takes text that must
//! come in the tokenizer's tokens). The one that skips ahead owns the row of logits: a token that is forced is never
//! asked for, it is decoded together with whatever is next needed. The other puts the span into llama.cpp's own chain
//! and takes one forward pass a token.

use super::ahead::{ChainOverSpan, Chooser, SpanThenFree};
use super::fill::form_of;
use super::generated::{Finish, GenerateOptions, Generated};
use super::{Generation, chain};
use crate::callbacks::SamplerHandle;
use crate::runtime::context::{Context, in_range};
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use llama_cpp_2::sampling::LlamaSampler;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{Allowed, Constraint, Observed, Role, Sampler, Scratch, Span, SpanRules, Status, TokenId};

impl Context {
    /// Generates after `prompt`. What the context holds of its beginning is not computed again.
    ///
    /// Ends with the span under [`After::Stop`](trie_core::After::Stop); a token that ends an open leaf is left out.
    /// Without rules, or under [`After::Free`](trie_core::After::Free), it goes on until the model ends its output. A
    /// first set that begins inside the prompt ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)) comes after what it
    /// leaves of it. A form that stands alone is filled to its end: see [`Context::fill`].
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, one that does not fit, or a failed
    /// forward pass. The context can be used afterwards.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.check_rules(rules, options)?;
        if let Some(form) = rules.and_then(|rules| form_of(rules)).filter(|_| options.skip_ahead) {
            return self.fill(prompt, form, options, watch);
        }
        let mut generation = Generation::before(self, prompt, rules.and_then(|rules| rules.first_set()), watch)?;
        generation.heal(options.healed_bytes);
        let (finish, span) = match rules {
            Some(rules) if options.skip_ahead => {
                let mut sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
                generation.stats.seed = sampler.seed();
                if let Some(free) = &options.free {
                    let mut chooser = SpanThenFree::new(sampler, chain::build(None, free)?.sampler);
                    let finish = or_stopped(ahead(&mut generation, &mut chooser, options.max_tokens))?;
                    generation.stats.starved = chooser.sampler().starved();
                    return generated(generation, finish, Some(chooser.span()));
                }
                let finish = or_stopped(ahead(&mut generation, &mut sampler, options.max_tokens))?;
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
        let mut generation = Generation::before(self, prompt, rules.first_set(), watch)?;
        generation.heal(options.healed_bytes);
        let mut chooser = ChainOverSpan::new(Arc::clone(rules), chain);
        let finish = or_stopped(ahead(&mut generation, &mut chooser, options.max_tokens))?;
        generated(generation, finish, Some(chooser.span()))
    }

    fn check_rules(&self, rules: Option<&Arc<SpanRules>>, options: &GenerateOptions) -> Result<(), RuntimeError> {
        let n_vocab = self.vocab().len();
        let constraints = rules.map(|rules| rules.constraints()).unwrap_or_default();
        let mut sets = constraints.iter().flat_map(|(_, constraint)| constraint.sets());
        sets.try_for_each(|set| self.vocab().check_set(set))?;
        if let Some(rules) = rules.map(|rules| rules.n_vocab()).filter(|&rules| rules > n_vocab) {
            return Err(RuntimeError::VocabularyMismatch { rules, n_vocab });
        }
        in_range("max_tokens", options.max_tokens as u64, 1, i32::MAX as u64)
    }
}

fn generated(generation: Generation<'_>, finish: Finish, span: Option<&Span>) -> Result<Generated, RuntimeError> {
    let vocab = Arc::clone(&generation.vocab);
    let value = span.is_some_and(|span| span.status() == Status::Complete).then(|| generation.value_text());
    let value_tokens = generation.value_tokens;
    let (tokens, text, mut stats) = generation.finish()?;
    stats.thinking_tokens = span.map_or(0, |span| span.thought().tokens);
    let leaves = span.map_or_else(Vec::new, Span::leaves);
    let leaf = leaves.last().cloned();
    let set = span.and_then(|span| span.constraint().as_trie()).filter(|set| !set.is_tree());
    let mut partial_token = Vec::new();
    if let (Some(span), Some(_), Some(leaf)) = (span, set, &leaf) {
        let walked = vocab.join(&tokens[..span.depth().min(tokens.len())])?;
        partial_token = walked.get(vocab.join(&leaf.tokens)?.len()..).unwrap_or_default().to_vec();
    }
    let fields = Vec::new();
    Ok(Generated {
        tokens,
        text,
        leaf,
        leaves,
        fields,
        value,
        value_tokens,
        partial_token,
        canonical: true,
        finish,
        stats,
    })
}

/// Being stopped is one way to end.
fn or_stopped(ended: Result<Finish, RuntimeError>) -> Result<Finish, RuntimeError> {
    match ended {
        Err(RuntimeError::Stopped { .. }) => Ok(Finish::Stopped),
        ended => ended,
    }
}

/// A token that was accepted.
struct Taken {
    token: TokenId,
    /// What it was.
    role: Role,
    /// Whether no other could come.
    forced: bool,
    /// Tokens walked before it.
    depth: usize,
}

/// Owns the row: nothing is decoded until logits are needed, and then everything since the last time at once.
fn ahead(
    generation: &mut Generation<'_>,
    chooser: &mut dyn Chooser,
    max_tokens: usize,
) -> Result<Finish, RuntimeError> {
    let mut scratch = Scratch::default();
    loop {
        let depth = chooser.span().depth();
        let must = chooser.span().forced_token(&mut scratch);
        let (token, role) = if let Some(token) = must {
            generation.consider(&Allowed::All, must)?;
            generation.stats.forward_passes_saved += 1;
            (token, chooser.accept_forced(token)?)
        } else {
            generation.ready()?;
            generation.consider(&chooser.span().allowed(&mut scratch), None)?;
            let started = Instant::now();
            let token = chooser.choose(generation.context.logits()?)?;
            let role = chooser.accept(token)?;
            generation.stats.sample_seconds += started.elapsed().as_secs_f64();
            (token, role)
        };
        let accepted = Taken { token, role, forced: must.is_some(), depth };
        if let Some(finish) = take(generation, &accepted, chooser.span().is_over(), max_tokens) {
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
    let mut scratch = Scratch::default();
    let finish = loop {
        match generation.ready() {
            Err(RuntimeError::Stopped { .. }) => break Finish::Stopped,
            ready => ready?,
        }
        let (forced, depth) = if let Some(span) = chain.handle.as_ref().map(SamplerHandle::span) {
            let allowed = span.allowed(&mut scratch);
            if allowed == Allowed::Nothing {
                return Err(span.problem().map_or(RuntimeError::DamagedSet, RuntimeError::Problem));
            }
            generation.consider(&allowed, None)?;
            (allowed.only().is_some(), span.depth())
        } else {
            generation.consider(&Allowed::All, None)?;
            (false, 0)
        };
        let started = Instant::now();
        let token = generation.context.sample(&mut chain.sampler)?;
        generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        let role = match chain.handle.as_ref().and_then(SamplerHandle::last_token) {
            Some(Observed::Accepted(role)) => role,
            _ => Role::Free,
        };
        let over = chain.handle.as_ref().is_some_and(|handle| handle.span().is_over());
        if let Some(finish) = take(generation, &Taken { token, role, forced, depth }, over, max_tokens) {
            break finish;
        }
    };
    generation.stats.starved = chain.handle.as_ref().map_or(0, |handle| handle.counts().starved);
    Ok((finish, chain.handle.map(|handle| handle.span())))
}

/// Writes a token that was accepted. Gives the reason if it is the last; `over` tells that nothing shall follow the
/// span.
fn take(generation: &mut Generation<'_>, taken: &Taken, over: bool, max_tokens: usize) -> Option<Finish> {
    let &Taken { token, role, forced, depth } = taken;
    let ends_output = !matches!(role, Role::Value | Role::Marker) && generation.vocab.is_end_of_generation(token);
    if role == Role::Value {
        generation.add_value(token);
    }
    generation.write(token, forced, depth, !ends_output && (!over || role != Role::Free));
    if over {
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
