//! Generation inside a span: prompt, then one sampled token a step until the span, the model or a limit ends it.

use super::chain;
use super::error::RuntimeError;
use super::preconditions::in_range;
use super::session::Session;
use crate::plug::SamplerHandle;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{After, Allowed, Leaf, SamplerOptions, Span, SpanRules, State, TokenId};

/// How to generate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GenerateOptions {
    /// How a token is chosen among the allowed ones.
    pub sampling: SamplerOptions,
    /// The most tokens to generate.
    pub max_tokens: usize,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self { sampling: SamplerOptions::default(), max_tokens: 64 }
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
    /// Generates after `prompt`, which replaces what the session held.
    ///
    /// Ends with the span under [`After::Stop`]; a token that ends an open leaf is dropped there. Without rules, or
    /// under [`After::Free`], it goes on until the model ends its output.
    ///
    /// # Errors
    /// A setting out of range, rules for another vocabulary, an empty prompt, one that does not fit, a failed forward
    /// pass, or `watch` asked to stop.
    pub fn generate(
        &mut self,
        prompt: &[TokenId],
        rules: Option<&Arc<SpanRules>>,
        options: &GenerateOptions,
        watch: &mut dyn Watch,
    ) -> Result<Generated, RuntimeError> {
        let n_vocab = self.vocab().len();
        if let Some(rules) = rules.map(|rules| rules.n_vocab()).filter(|&rules| rules > n_vocab) {
            return Err(RuntimeError::VocabularyMismatch { rules, n_vocab });
        }
        in_range("max_tokens", options.max_tokens as u64, 1, i32::MAX as u64)?;
        let mut chain = chain::build(rules, &options.sampling)?;
        let mut stats = GenerateStats { n_threads: self.n_threads(), seed: chain.seed, ..Default::default() };
        let passes_before = self.forward_passes();

        let started = Instant::now();
        self.clear();
        self.feed(prompt, &mut || watch.stop())?;
        stats.prompt_seconds = started.elapsed().as_secs_f64();
        stats.tokens_decoded = prompt.len();

        let mut tokens = Vec::new();
        let mut scratch = Vec::new();
        let finish = loop {
            let before = chain.handle.as_ref().map(SamplerHandle::span);
            let forced = before.as_ref().is_some_and(|span| is_forced(&span.allowed()));
            scratch.clear();
            if let (true, Some(span)) = (watch.wants_steps(), &before) {
                probabilities(self.logits()?, &span.allowed(), &mut scratch);
            }

            let started = Instant::now();
            let token = self.sample(&mut chain.sampler)?;
            stats.sample_seconds += started.elapsed().as_secs_f64();
            *(if forced { &mut stats.forced_tokens } else { &mut stats.sampled_tokens }) += 1;

            let after = chain.handle.as_ref().map(SamplerHandle::span);
            if watch.wants_steps() {
                let depth = before.as_ref().map_or(0, Span::depth);
                watch.step(&Step { index: tokens.len(), depth, allowed: &scratch, token, forced });
            }
            let role = Role::of(token, before.as_ref(), after.as_ref());
            let ends_output = role != Role::Value && self.vocab().is_end_of_generation(token);
            let span_over = after
                .as_ref()
                .is_some_and(|span| span.state() == State::Complete && span.rules().after() == After::Stop);
            let dropped = ends_output || (span_over && role == Role::Other);
            if !dropped {
                tokens.push(token);
            }
            if span_over {
                break Finish::Span;
            }
            if ends_output {
                break Finish::EndOfGeneration;
            }
            if tokens.len() >= options.max_tokens {
                break Finish::MaxTokens;
            }
            if self.room() == 0 {
                break Finish::ContextFull;
            }
            // Skip-ahead goes here: append the forced run to `token` and decode all of it in one pass.
            let started = Instant::now();
            self.feed(&[token], &mut || watch.stop())?;
            stats.decode_seconds += started.elapsed().as_secs_f64();
            stats.tokens_decoded += 1;
        };
        stats.forward_passes = self.forward_passes() - passes_before;
        stats.starved = chain.handle.as_ref().map_or(0, |handle| handle.counts().starved);
        let text = String::from_utf8_lossy(&self.vocab().join(&tokens)?).into_owned();
        Ok(Generated { text, tokens, leaf: chain.handle.and_then(|handle| handle.leaf()), finish, stats })
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

fn is_forced(allowed: &Allowed<'_>) -> bool {
    matches!(allowed, Allowed::Only { .. }) && allowed.iter().nth(1).is_none()
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
