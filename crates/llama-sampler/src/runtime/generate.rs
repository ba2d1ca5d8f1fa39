//! Generation inside a span: prompt, then token after token until the span, the model or a limit ends it.
//!
//! Two loops give the same tokens. The one that skips ahead owns the row of logits: a token that is forced is never
//! asked for, it is decoded together with whatever is next needed. The other puts the span into llama.cpp's own chain
//! and takes one forward pass a token.

use super::ahead::{ChainOverSpan, Chooser};
use super::chain;
use super::error::RuntimeError;
use super::preconditions::{fits, in_range, inside_vocabulary, not_empty};
use super::session::Session;
use super::vocab::Vocab;
use crate::plug::SamplerHandle;
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
    /// The tokens, end tokens of the span included, end of generation excluded.
    pub tokens: Vec<TokenId>,
    /// Their text; bytes that are no UTF-8 became U+FFFD.
    pub text: String,
    /// The value, if the span was completed.
    pub leaf: Option<Leaf>,
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
    /// under [`After::Free`], it goes on until the model ends its output.
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
        let mut run = Run::new(self, prompt, rules, options, watch)?;
        let finish = match rules {
            Some(rules) if options.skip_ahead => {
                let mut sampler = Sampler::new(Arc::clone(rules), options.sampling)?;
                run.stats.seed = sampler.seed();
                let finish = run.ahead(&mut sampler)?;
                run.stats.starved = sampler.starved();
                run.leaf = sampler.span().leaf();
                finish
            }
            _ => run.chained(chain::build(rules, &options.sampling)?)?,
        };
        run.finish(finish)
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
        let mut run = Run::new(self, prompt, Some(rules), options, watch)?;
        let mut chooser = ChainOverSpan::new(Arc::clone(rules), chain);
        let finish = run.ahead(&mut chooser)?;
        run.leaf = chooser.span().leaf();
        run.finish(finish)
    }
}

/// One generation on its way.
struct Run<'a> {
    session: &'a mut Session,
    watch: &'a mut dyn Watch,
    vocab: Arc<Vocab>,
    prompt: &'a [TokenId],
    max_tokens: usize,
    passes_before: u64,
    tokens: Vec<TokenId>,
    leaf: Option<Leaf>,
    stats: GenerateStats,
    scratch: Vec<(TokenId, f32)>,
}

impl<'a> Run<'a> {
    fn new(
        session: &'a mut Session,
        prompt: &'a [TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, RuntimeError> {
        let n_vocab = session.vocab().len();
        if let Some(rules) = rules.map(|rules| rules.n_vocab()).filter(|&rules| rules > n_vocab) {
            return Err(RuntimeError::VocabularyMismatch { rules, n_vocab });
        }
        in_range("max_tokens", options.max_tokens as u64, 1, i32::MAX as u64)?;
        not_empty(prompt)?;
        inside_vocabulary(prompt, n_vocab)?;
        fits(0, prompt.len(), session.n_ctx())?;
        Ok(Self {
            vocab: Arc::clone(session.vocab()),
            prompt,
            max_tokens: options.max_tokens,
            passes_before: session.forward_passes(),
            tokens: Vec::new(),
            leaf: None,
            stats: GenerateStats { n_threads: session.n_threads(), ..Default::default() },
            scratch: Vec::new(),
            session,
            watch,
        })
    }

    /// Owns the row: nothing is decoded until logits are needed, and then everything since the last time at once.
    fn ahead(&mut self, chooser: &mut dyn Chooser) -> Result<Finish, RuntimeError> {
        let mut pending = Vec::new();
        let mut begun = false;
        loop {
            let before = chooser.span().clone();
            let forced = only(&before.allowed());
            self.scratch.clear();
            let token = if let Some(token) = forced {
                self.scratch.push((token, 1.0));
                self.stats.forward_passes_saved += 1;
                chooser.accept_forced(token)?;
                token
            } else {
                if begun {
                    self.feed(&pending)?;
                } else {
                    self.begin(&pending)?;
                }
                begun = true;
                pending.clear();
                if self.watch.wants_steps() {
                    probabilities(self.session.logits()?, &before.allowed(), &mut self.scratch);
                }
                let started = Instant::now();
                let token = chooser.choose(self.session.logits()?)?;
                chooser.accept(token)?;
                self.stats.sample_seconds += started.elapsed().as_secs_f64();
                token
            };
            pending.push(token);
            if let Some(finish) = self.take(token, forced.is_some(), Some(&before), Some(chooser.span())) {
                return Ok(finish);
            }
        }
    }

    /// Leaves the choice to a chain that holds the span, one forward pass a token.
    fn chained(&mut self, mut chain: chain::Chain) -> Result<Finish, RuntimeError> {
        self.stats.seed = chain.seed;
        self.begin(&[])?;
        let finish = loop {
            let before = chain.handle.as_ref().map(SamplerHandle::span);
            let forced = before.as_ref().is_some_and(|span| only(&span.allowed()).is_some());
            self.scratch.clear();
            if let (true, Some(span)) = (self.watch.wants_steps(), &before) {
                probabilities(self.session.logits()?, &span.allowed(), &mut self.scratch);
            }
            let started = Instant::now();
            let token = self.session.sample(&mut chain.sampler)?;
            self.stats.sample_seconds += started.elapsed().as_secs_f64();
            let after = chain.handle.as_ref().map(SamplerHandle::span);
            if let Some(finish) = self.take(token, forced, before.as_ref(), after.as_ref()) {
                break finish;
            }
            self.feed(&[token])?;
        };
        self.stats.starved = chain.handle.as_ref().map_or(0, |handle| handle.counts().starved);
        self.leaf = chain.handle.and_then(|handle| handle.leaf());
        Ok(finish)
    }

    /// Decodes what the session does not hold of the prompt, and the tokens forced after it.
    fn begin(&mut self, forced: &[TokenId]) -> Result<(), RuntimeError> {
        let started = Instant::now();
        let tokens = [self.prompt, forced].concat();
        self.stats.tokens_decoded += self.session.prefill(&tokens, &mut || self.watch.stop())?;
        self.stats.prompt_seconds = started.elapsed().as_secs_f64();
        Ok(())
    }

    fn feed(&mut self, tokens: &[TokenId]) -> Result<(), RuntimeError> {
        let started = Instant::now();
        self.session.feed(tokens, &mut || self.watch.stop())?;
        self.stats.decode_seconds += started.elapsed().as_secs_f64();
        self.stats.tokens_decoded += tokens.len();
        Ok(())
    }

    /// Takes a token that was accepted. Gives the reason if it is the last.
    fn take(&mut self, token: TokenId, forced: bool, before: Option<&Span>, after: Option<&Span>) -> Option<Finish> {
        *(if forced { &mut self.stats.forced_tokens } else { &mut self.stats.sampled_tokens }) += 1;
        if self.watch.wants_steps() {
            let depth = before.map_or(0, Span::depth);
            self.watch.step(&Step { index: self.tokens.len(), depth, allowed: &self.scratch, token, forced });
        }
        let role = Role::of(token, before, after);
        let ends_output = role != Role::Value && self.vocab.is_end_of_generation(token);
        let span_over =
            after.is_some_and(|span| span.state() == State::Complete && span.rules().after() == After::Stop);
        if !ends_output && (!span_over || role != Role::Other) {
            self.tokens.push(token);
        }
        if span_over {
            Some(Finish::Span)
        } else if ends_output {
            Some(Finish::EndOfGeneration)
        } else if self.tokens.len() >= self.max_tokens {
            Some(Finish::MaxTokens)
        } else if self.prompt.len() + self.tokens.len() > self.session.n_ctx() {
            Some(Finish::ContextFull)
        } else {
            None
        }
    }

    fn finish(self, finish: Finish) -> Result<Generated, RuntimeError> {
        let Self { session, vocab, tokens, leaf, mut stats, passes_before, .. } = self;
        stats.forward_passes = session.forward_passes() - passes_before;
        let text = String::from_utf8_lossy(&vocab.join(&tokens)?).into_owned();
        Ok(Generated { tokens, text, leaf, finish, stats })
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
fn only(allowed: &Allowed<'_>) -> Option<TokenId> {
    let mut tokens = allowed.iter();
    match (allowed, tokens.next(), tokens.next()) {
        (Allowed::Only { .. }, only, None) => only,
        _ => None,
    }
}

/// Softmax over the allowed tokens; at an open leaf, where any token may come, over the whole row. NaN and −inf count as
/// impossible, +inf as certain.
fn probabilities(logits: &[f32], allowed: &Allowed<'_>, into: &mut Vec<(TokenId, f32)>) {
    into.extend(allowed.iter().filter_map(|token| Some((token, *logits.get(token.index())?))));
    let pool: &mut dyn Iterator<Item = f32> = match allowed {
        Allowed::Open { .. } => &mut logits.iter().copied(),
        _ => &mut into.iter().map(|&(_, logit)| logit),
    };
    let pool: Vec<f32> = pool.collect();
    let best = pool.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| match best {
        _ if logit.is_nan() || logit == f32::NEG_INFINITY => 0.0,
        f32::INFINITY => f32::from(u8::from(logit == f32::INFINITY)),
        _ => (logit - best).exp(),
    };
    let sum: f32 = pool.iter().copied().map(weight).sum();
    for (index, (_, share)) in into.iter_mut().enumerate() {
        // Without any usable logit the lowest id is put back.
        *share = if sum > 0.0 { weight(*share) / sum } else { f32::from(u8::from(index == 0)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_odd_logits() {
        let tokens: Vec<TokenId> = (0..3).map(|id| TokenId::new(id).unwrap()).collect();
        let shares = |logits: &[f32], allowed: &Allowed<'_>| {
            let mut into = Vec::new();
            probabilities(logits, allowed, &mut into);
            into.into_iter().map(|(_, share)| share).collect::<Vec<_>>()
        };
        let only = Allowed::Only { tokens: &tokens, ends: &[] };
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(shares(&[1.0, 1.0, nan, 9.0], &only), [0.5, 0.5, 0.0]);
        assert_eq!(shares(&[inf, 1.0, inf, 9.0], &only), [0.5, 0.0, 0.5]);
        assert_eq!(shares(&[nan, -inf, nan, 9.0], &only), [1.0, 0.0, 0.0]);
        assert_eq!(shares(&[1.0, 1.0, 1.0, 1.0], &Allowed::Open { children: &tokens[..1] }), [0.25]);
    }
}
