//! Generation inside a span: prompt, then token after token until the span, the model or a limit ends it.
//!
//! Two loops give the same tokens (in a set of spellings, only the first takes text that must come in the tokenizer's tokens). The one that skips ahead owns the row of logits: a token that is forced is never
//! asked for, it is decoded together with whatever is next needed. The other puts the span into llama.cpp's own chain
//! and takes one forward pass a token.

use super::ahead::{ChainOverSpan, Chooser};
use super::chain;
use super::error::RuntimeError;
use super::preconditions::in_range;
use super::run::Run;
use super::session::Session;
use crate::callbacks::SamplerHandle;
use llama_cpp_2::sampling::LlamaSampler;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{After, Allowed, Leaf, Sampler, SamplerOptions, Span, SpanRules, State, TokenId};

/// How to generate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GenerateOptions {
    /// How a token is chosen among the allowed ones.
    pub sampling: SamplerOptions,
    /// The most tokens to generate.
    pub max_tokens: usize,
    /// Whether forced tokens are decoded together with what follows them, instead of one by one.
    pub skip_ahead: bool,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self { sampling: SamplerOptions::default(), max_tokens: 64, skip_ahead: true }
    }
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The span was over, and nothing shall follow it.
    Span,
    /// The model ended its output.
    EndOfGeneration,
    /// The limit was reached.
    MaxTokens,
    /// The context was full.
    ContextFull,
}

/// What a generation gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The tokens, end tokens of the span included, end of generation excluded. They follow the prompt, without its healed bytes.
    pub tokens: Vec<TokenId>,
    /// Their text after the prompt, healed bytes excluded: they stand in it already. Bytes that are no UTF-8 became U+FFFD.
    pub text: String,
    /// The value, if the span was completed.
    pub leaf: Option<Leaf>,
    /// What the last token of the value spells beyond it: the beginning of the free text. Empty unless the set lets values be
    /// overrun ([`Spelling::OpenEnd`](super::Spelling::OpenEnd)).
    pub overrun: Vec<u8>,
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub stats: GenerateStats,
}

/// What a generation took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GenerateStats {
    /// Calls of `llama_decode`.
    pub forward_passes: u64,
    /// Tokens in them, prompt included.
    pub tokens_decoded: usize,
    /// Tokens of which exactly one was allowed.
    pub forced_tokens: usize,
    /// Tokens with a choice.
    pub sampled_tokens: usize,
    /// Tokens that needed no row of logits of their own: forward passes that were not made.
    pub forward_passes_saved: usize,
    /// Times that no legal token had a usable logit.
    pub starved: u64,
    /// Bytes at the end of the prompt that the set spells again, so that it was decoded without them.
    pub healed_bytes: usize,
    /// Seconds for the prompt.
    pub prompt_seconds: f64,
    /// Seconds in the forward passes after it.
    pub decode_seconds: f64,
    /// Seconds in the sampler chain.
    pub sample_seconds: f64,
    /// Threads in use.
    pub n_threads: u32,
    /// Seed of the draw.
    pub seed: u32,
}

/// One step, as an observer sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<'a> {
    /// Its number, from 0.
    pub index: usize,
    /// Position in the trie before the step.
    pub depth: usize,
    /// The allowed tokens with their probabilities among each other, ascending by id; empty where all tokens are.
    /// At an open leaf these are the tokens that go on, with their probabilities among all tokens.
    pub allowed: &'a [(TokenId, f32)],
    /// The token that was taken.
    pub token: TokenId,
    /// Whether no other could come.
    pub forced: bool,
}

/// Watches a generation. `()` watches nothing.
pub trait Watch {
    /// Asked before every forward pass; `true` ends the generation with [`RuntimeError::Stopped`].
    fn stop(&mut self) -> bool {
        false
    }

    /// Whether [`Watch::step`] wants to be called: the probabilities cost `O(allowed)` a step.
    fn wants_steps(&self) -> bool {
        false
    }

    /// Sees each step.
    fn step(&mut self, _step: &Step<'_>) {}
}

impl Watch for () {}

impl Session {
    /// Generates after `prompt`. What the session holds of its beginning is not computed again.
    ///
    /// Ends with the span under [`After::Stop`]; a token that ends an open leaf is dropped there. Without rules, or
    /// under [`After::Free`], it goes on until the model ends its output. A first set that begins inside the prompt
    /// ([`Trie::heal_bytes`](trie_core::Trie::heal_bytes)) comes after what it leaves of it.
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, one that does not fit, a failed forward
    /// pass, or `watch` asked to stop. The session can be used afterwards.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.check_rules(rules, options)?;
        let mut run = Run::before(self, prompt, rules.map(|rules| &rules.spans()[0].1), watch)?;
        let (finish, span) = match rules {
            Some(rules) if options.skip_ahead => {
                let mut sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
                run.stats.seed = sampler.seed();
                let finish = ahead(&mut run, &mut sampler, options.max_tokens)?;
                run.stats.starved = sampler.starved();
                (finish, Some(sampler.span().clone()))
            }
            _ => chained(&mut run, chain::build(rules, &options.sampling)?, options.max_tokens)?,
        };
        generated(run, finish, span.as_ref())
    }

    /// As [`Session::generate`] with samplers of llama.cpp's after the trie: `chain` gets the allowed candidates alone, hears of
    /// every token, and must select. `options.sampling` is not used.
    ///
    /// # Errors
    /// As [`Session::generate`], and a chain that selects no token.
    pub fn generate_with_chain(
        &mut self,
        prompt: &[TokenId],
        rules: &Arc<SpanRules>,
        chain: LlamaSampler,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        self.check_rules(Some(rules), options)?;
        let mut run = Run::before(self, prompt, Some(&rules.spans()[0].1), watch)?;
        let mut chooser = ChainOverSpan::new(Arc::clone(rules), chain);
        let finish = ahead(&mut run, &mut chooser, options.max_tokens)?;
        generated(run, finish, Some(chooser.span()))
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

fn generated(run: Run<'_>, finish: Finish, span: Option<&Span>) -> Result<Generated, RuntimeError> {
    let vocab = Arc::clone(&run.vocab);
    let (tokens, text, stats) = run.finish()?;
    let leaf = span.and_then(Span::leaf);
    if leaf.is_none() && span.is_some_and(|span| span.state() == State::Complete) {
        return Err(RuntimeError::DamagedSet);
    }
    let mut overrun = Vec::new();
    if let (Some(span), Some(leaf)) = (span.filter(|span| !span.trie().is_tree()), &leaf) {
        let walked = vocab.join(&tokens[..span.depth().min(tokens.len())])?;
        overrun = walked.get(vocab.join(&leaf.tokens)?.len()..).unwrap_or_default().to_vec();
    }
    Ok(Generated { tokens, text, leaf, overrun, finish, stats })
}

/// Owns the row: nothing is decoded until logits are needed, and then everything since the last time at once.
fn ahead(run: &mut Run<'_>, chooser: &mut dyn Chooser, max_tokens: usize) -> Result<Finish, RuntimeError> {
    loop {
        let before = chooser.span().clone();
        // In a set of spellings, text that must come is not asked for either.
        let forced = only(&before.allowed()).or_else(|| before.forced().next());
        let token = if let Some(token) = forced {
            run.consider(&before.allowed(), forced)?;
            run.stats.forward_passes_saved += 1;
            chooser.accept_forced(token)?;
            token
        } else {
            run.ready()?;
            run.consider(&before.allowed(), None)?;
            let started = Instant::now();
            let token = chooser.choose(run.session.logits()?)?;
            chooser.accept(token)?;
            run.stats.sample_seconds += started.elapsed().as_secs_f64();
            token
        };
        if let Some(finish) = take(run, token, forced.is_some(), Some(&before), Some(chooser.span()), max_tokens) {
            return Ok(finish);
        }
    }
}

/// Leaves the choice to a chain that holds the span, one forward pass a token.
fn chained(
    run: &mut Run<'_>,
    mut chain: chain::Chain,
    max_tokens: usize,
) -> Result<(Finish, Option<Span>), RuntimeError> {
    run.stats.seed = chain.seed;
    let finish = loop {
        run.ready()?;
        let before = chain.handle.as_ref().map(SamplerHandle::span);
        let forced = before.as_ref().is_some_and(|span| only(&span.allowed()).is_some());
        run.consider(&before.as_ref().map_or(Allowed::All, Span::allowed), None)?;
        let started = Instant::now();
        let token = run.session.sample(&mut chain.sampler)?;
        run.stats.sample_seconds += started.elapsed().as_secs_f64();
        let after = chain.handle.as_ref().map(SamplerHandle::span);
        if let Some(finish) = take(run, token, forced, before.as_ref(), after.as_ref(), max_tokens) {
            break finish;
        }
    };
    run.stats.starved = chain.handle.as_ref().map_or(0, |handle| handle.counts().starved);
    Ok((finish, chain.handle.map(|handle| handle.span())))
}

/// Takes a token that was accepted. Gives the reason if it is the last.
fn take(
    run: &mut Run<'_>,
    token: TokenId,
    forced: bool,
    before: Option<&Span>,
    after: Option<&Span>,
    max_tokens: usize,
) -> Option<Finish> {
    run.count(token, forced, before.map_or(0, Span::depth));
    let role = Role::of(token, before, after);
    let ends_output = role != Role::Value && run.vocab.is_end_of_generation(token);
    let span_over = after.is_some_and(|span| span.state() == State::Complete && span.rules().after() == After::Stop);
    if !ends_output && (!span_over || role != Role::Other) {
        run.tokens.push(token);
    }
    if span_over {
        Some(Finish::Span)
    } else if ends_output {
        Some(Finish::EndOfGeneration)
    } else if run.tokens.len() >= max_tokens {
        Some(Finish::MaxTokens)
    } else if run.is_full() {
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

/// The token that must come, if there is just one.
pub(super) fn only(allowed: &Allowed<'_>) -> Option<TokenId> {
    let mut tokens = allowed.iter();
    match (allowed, tokens.next(), tokens.next()) {
        (Allowed::Only { .. }, only, None) => only,
        _ => None,
    }
}
