//! A generation on its way: what is written, how much of it is decoded, and what it took.

mod ahead;
mod chain;
mod fill;
mod generate;
mod generated;
mod report;

pub use generated::{Field, Finish, GenerateOptions, GenerateStats, Generated};

use super::context::{Context, fits, not_empty};
use super::error::RuntimeError;
use super::watch::Watch;
use report::{Report, Written};
use std::sync::Arc;
use std::time::Instant;
use trie_core::{Allowed, TokenId, Tokens, Trie, logits};
use trie_text::Vocab;

/// Tokens are written at once and decoded when a row of logits is needed, all of them together.
struct Generation<'a> {
    context: &'a mut Context,
    watch: &'a mut dyn Watch,
    vocab: Arc<Vocab>,
    prompt: &'a [TokenId],
    /// What is written after the prompt.
    tokens: Vec<TokenId>,
    /// Those of them that are part of values, as bytes.
    value: Vec<u8>,
    /// How many of the tokens there are up to the last of those.
    value_tokens: usize,
    /// How many of them the context holds.
    decoded: usize,
    begun: bool,
    passes_before: u64,
    stats: GenerateStats,
    /// What the watcher is told of the next token.
    shares: Vec<(TokenId, f32)>,
    report: Report,
    /// Whether tokens that are written now may be taken back.
    tentative: bool,
}

impl<'a> Generation<'a> {
    fn new(context: &'a mut Context, prompt: &'a [TokenId], watch: &'a mut dyn Watch) -> Result<Self, RuntimeError> {
        not_empty(prompt)?;
        context.vocab().check_tokens(prompt)?;
        fits(0, prompt.len(), context.n_ctx())?;
        Ok(Self {
            vocab: Arc::clone(context.vocab()),
            prompt,
            tokens: Vec::new(),
            value: Vec::new(),
            value_tokens: 0,
            decoded: 0,
            begun: false,
            passes_before: context.forward_passes(),
            stats: GenerateStats::default(),
            shares: Vec::new(),
            report: Report::default(),
            tentative: false,
            context,
            watch,
        })
    }

    /// After a prompt whose end the first set spells again.
    fn before(
        context: &'a mut Context,
        prompt: &'a [TokenId],
        set: Option<&Trie>,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, RuntimeError> {
        let Some(set) = set.filter(|set| set.heal_bytes() > 0) else { return Self::new(context, prompt, watch) };
        let prompt = context.vocab().before_set(prompt, set)?;
        let mut generation = Self::new(context, prompt, watch)?;
        generation.heal(set.heal_bytes());
        Ok(generation)
    }

    /// So many bytes that come first stand in the text before the prompt already.
    fn heal(&mut self, bytes: usize) {
        self.stats.healed_bytes += bytes;
        self.report.healed += bytes;
    }

    fn add_value(&mut self, token: TokenId) {
        self.value.extend_from_slice(self.vocab.piece(token).unwrap_or_default());
        self.value_tokens = self.tokens.len() + 1;
    }

    fn value_text(&self) -> String {
        String::from_utf8_lossy(self.value.get(self.stats.healed_bytes..).unwrap_or_default()).into_owned()
    }

    /// Decodes what is not decoded yet: the logits after the last token are there then.
    fn ready(&mut self) -> Result<(), RuntimeError> {
        let started = Instant::now();
        let pending = &self.tokens[self.decoded..];
        let goes_on = self.begun && self.context.tokens().len() == self.prompt.len() + self.decoded;
        let mut stop = || self.watch.stop();
        self.stats.tokens_decoded += if goes_on && !pending.is_empty() {
            self.context.feed(pending, &mut stop)?;
            pending.len()
        } else {
            let all = [self.prompt, &self.tokens].concat();
            let decoded = self.context.prefill(&all, &mut stop)?;
            if !self.begun {
                self.stats.prompt_tokens_reused = (all.len() - decoded).min(self.prompt.len());
            }
            decoded
        };
        let seconds = if self.begun { &mut self.stats.decode_seconds } else { &mut self.stats.prompt_seconds };
        *seconds += started.elapsed().as_secs_f64();
        self.begun = true;
        self.decoded = self.tokens.len();
        Ok(())
    }

    /// Notes, for the watcher, what may come next and how probable it is; forced tokens have no row.
    fn consider(&mut self, allowed: &Allowed<'_>, forced: Option<TokenId>) -> Result<(), RuntimeError> {
        self.shares.clear();
        if let Some(token) = forced {
            self.shares.push((token, 1.0));
        } else if self.watch.wants_steps() && self.watch.wants_shares() {
            probabilities(self.context.logits()?, allowed, &mut self.shares);
        }
        Ok(())
    }

    /// Counts a token and tells the watcher of it; all but those that only end the output are `kept` in it. `depth` is
    /// the position in the trie before it.
    fn write(&mut self, token: TokenId, forced: bool, depth: usize, kept: bool) {
        *(if forced { &mut self.stats.forced_tokens } else { &mut self.stats.sampled_tokens }) += 1;
        let index = self.tokens.len();
        if kept {
            self.tokens.push(token);
        }
        if self.watch.wants_steps() {
            let bytes = self.vocab.piece(token).filter(|_| kept).unwrap_or_default().to_vec();
            let allowed = self.shares.clone();
            self.report.add(Written { index, depth, allowed, token, forced, kept, bytes });
            if !self.tentative {
                self.settle(index + 1);
            }
        }
    }

    /// Tells the watcher of the tokens before this index, which stay.
    fn settle(&mut self, index: usize) {
        self.report.settle(index, self.watch);
    }

    /// Writes a token that must stand there: no row of logits is needed for it.
    fn write_forced(&mut self, token: TokenId, depth: usize) -> Result<(), RuntimeError> {
        self.consider(&Allowed::All, Some(token))?;
        self.stats.forward_passes_saved += 1;
        self.write(token, true, depth, true);
        Ok(())
    }

    /// Takes back all but the first `n` tokens.
    fn take_back(&mut self, n: usize) {
        self.tokens.truncate(n);
        self.report.take_back(n);
        if self.decoded > n {
            self.context.keep(self.prompt.len() + n);
            self.decoded = n;
        }
    }

    /// Whether no token can be added after the next.
    fn is_full(&self) -> bool {
        self.prompt.len() + self.tokens.len() > self.context.n_ctx()
    }

    /// Tokens, their text and what they took.
    fn finish(self) -> Result<(Vec<TokenId>, String, GenerateStats), RuntimeError> {
        let Self { context, vocab, tokens, mut stats, passes_before, .. } = self;
        stats.forward_passes = context.forward_passes() - passes_before;
        stats.n_threads = context.n_threads();
        let bytes = vocab.join(&tokens)?;
        let text = String::from_utf8_lossy(bytes.get(stats.healed_bytes..).unwrap_or_default()).into_owned();
        Ok((tokens, text, stats))
    }
}

/// Softmax over the allowed tokens, weights included; at an open leaf, where any token may come, over the whole row.
/// Nothing where all but a few may come, as in free text.
fn probabilities(row: &[f32], allowed: &Allowed<'_>, into: &mut Vec<(TokenId, f32)>) {
    if matches!(allowed, Allowed::Only { tokens: Tokens::Except(_), .. }) {
        return;
    }
    let weighed = |token, logit| logits::with_weight(logit, allowed.weight_of(token));
    into.extend(allowed.iter().filter_map(|token| Some((token, weighed(token, *row.get(token.index())?)))));
    let shares = match allowed {
        Allowed::Open { .. } => {
            let shares = match allowed.weighted() {
                None => logits::shares(row),
                Some(_) => logits::shares(&allowed.logits(row).map(|(_, logit)| logit).collect::<Vec<_>>()),
            };
            into.iter().map(|(token, _)| shares[token.index()]).collect()
        }
        _ => logits::shares(&into.iter().map(|&(_, logit)| logit).collect::<Vec<_>>()),
    };
    into.iter_mut().zip(shares).for_each(|((_, logit), share)| *logit = share);
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
        let only = Allowed::Only { tokens: Tokens::Ids(&tokens), ends: &[] };
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(shares(&[1.0, 1.0, nan, 9.0], &only), [0.5, 0.5, 0.0]);
        assert_eq!(shares(&[inf, 1.0, inf, 9.0], &only), [0.5, 0.0, 0.5]);
        assert_eq!(shares(&[nan, -inf, nan, 9.0], &only), [1.0, 0.0, 0.0]);
        assert_eq!(shares(&[1.0, 1.0, 1.0, 1.0], &Allowed::Open { tokens: Tokens::Ids(&tokens[..1]) }), [0.25]);
    }
}
