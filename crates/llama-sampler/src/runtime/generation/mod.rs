//! A generation in progress: the written tokens, how many of them are decoded, and the cost.
//!
//! Two state machines write tokens, and neither is a special case of the other. `walk.rs` follows a span: the tokens
//! that it accepts stay, and it needs one row of logits after the text. `fill.rs` fills a form. It takes tokens back if
//! free text turns out to have ended earlier, holds a token that the model chose beyond the end of a value, draws for
//! each field from a seed of its own, and needs a tree of rows where a slot is weighed as a whole. In one machine, each
//! step of a span would ask four questions that only forms answer. The shared parts are here and in `deadline.rs`: the
//! text, reports, probabilities, trails, room, and values that end in time.
//!
//! Both are a [`Job`](trie_core::Job): they request rows of logits, and never decode. So there are two drivers, too,
//! which know nothing about the jobs. `Context::run` decodes for one job alone. The engine fits the requests of all its
//! jobs into one pass.

mod ahead;
mod chain;
mod chooser;
mod deadline;
mod drafting;
#[cfg(test)]
mod drafting_tests;
mod fill;
mod generate;
mod generated;
mod likely;
mod reading;
mod report;
mod task;
mod trail;
mod walk;

pub use fill::form_of;
pub use generated::{Branch, Completion, Field, Finish, GenerateOptions, GenerateStats, Generated, TrailStep};
pub use reading::ReadingTask;
pub use task::{GenerateTask, GenerationConstraint};

use super::context::{fits, in_range, not_empty};
use super::error::RuntimeError;
use super::watch::{Step, TokenLogprob, Watch};
use likely::Likely;
use report::Report;
use std::sync::Arc;
use std::time::Instant;
use trail::Trail;
use trie_core::{Allowed, DecodeCost, Host, LogitBias, TokenId, Tokens, Trie, logits};
use trie_text::Vocab;

/// Tokens are written at once and decoded when a row of logits is needed, all of them together.
struct Generation<W> {
    watch: W,
    vocab: Arc<Vocab>,
    host: Host,
    /// The prompt, and what is written after it.
    text: Vec<TokenId>,
    /// Tokens of the prompt.
    prompt: usize,
    /// Bytes of the written tokens that are part of values.
    value: Vec<u8>,
    /// Number of tokens up to the last one that is part of a value.
    value_tokens: usize,
    /// Time at which a row of logits was requested.
    asked: Option<Instant>,
    begun: bool,
    stats: GenerateStats,
    /// Probabilities of the next token, for the watcher.
    shares: Vec<(TokenId, f32)>,
    likely: Option<Likely>,
    trail: Option<Trail>,
    bias: BiasedRow,
    report: Report,
    /// True if tokens that are written now may be taken back.
    tentative: bool,
    /// True if tokens that are written now are free text: see [`Step::free`].
    free: bool,
}

impl<W: Watch> Generation<W> {
    fn new(vocab: &Arc<Vocab>, host: Host, prompt: &[TokenId], watch: W) -> Result<Self, RuntimeError> {
        not_empty(prompt)?;
        vocab.check_tokens(prompt)?;
        fits(0, prompt.len(), host.room)?;
        Ok(Self {
            watch,
            vocab: Arc::clone(vocab),
            host,
            text: prompt.to_vec(),
            prompt: prompt.len(),
            value: Vec::new(),
            value_tokens: 0,
            asked: None,
            begun: false,
            stats: GenerateStats { prompt_tokens: prompt.len(), ..GenerateStats::default() },
            shares: Vec::new(),
            likely: None,
            trail: None,
            bias: BiasedRow::default(),
            report: Report::default(),
            tentative: false,
            free: false,
        })
    }

    /// Builds a generation after a prompt whose end the first set spells again.
    fn with_healed_prompt(
        vocab: &Arc<Vocab>,
        host: Host,
        prompt: &[TokenId],
        set: Option<&Trie>,
        watch: W,
    ) -> Result<Self, RuntimeError> {
        let Some(set) = set.filter(|set| set.heal_bytes() > 0) else { return Self::new(vocab, host, prompt, watch) };
        let mut generation = Self::new(vocab, host, vocab.before_set(prompt, set)?, watch)?;
        generation.heal(set.heal_bytes());
        Ok(generation)
    }

    /// Returns the tokens after the prompt.
    fn tokens(&self) -> &[TokenId] {
        &self.text[self.prompt..]
    }

    /// Notes that this many bytes at the beginning already stand in the text before the prompt.
    fn heal(&mut self, bytes: usize) {
        self.stats.healed_bytes += bytes;
        self.report.healed += bytes;
    }

    /// Sets the healed bytes, the log-probabilities and receipt trail to record, and the logit bias.
    fn prepare(&mut self, options: &GenerateOptions) -> Result<(), RuntimeError> {
        self.heal(options.healed_bytes);
        self.likely = options.logprobs.map(Likely::new);
        self.trail = options.trail.then(Trail::default);
        self.add(&options.logit_bias)
    }

    fn add(&mut self, bias: &LogitBias) -> Result<(), RuntimeError> {
        let most = (self.vocab.len() as u64).saturating_sub(1);
        bias.tokens().try_for_each(|token| in_range("logit_bias, a token,", token.get().into(), 0, most))?;
        self.bias = BiasedRow::new(bias.clone());
        Ok(())
    }

    fn add_value(&mut self, token: TokenId) {
        self.value.extend_from_slice(self.vocab.piece(token).unwrap_or_default());
        self.value_tokens = self.tokens().len() + 1;
    }

    fn value_text(&self) -> String {
        String::from_utf8_lossy(self.value.get(self.stats.healed_bytes..).unwrap_or_default()).into_owned()
    }

    /// Requests the row of logits after the last token.
    fn ask(&mut self) {
        self.asked.get_or_insert_with(Instant::now);
    }

    /// Notes that the requested row of logits arrived, or the rows of a choice in between.
    fn note_rows_read(&mut self) {
        let Some(asked) = self.asked.take() else { return };
        let seconds = if self.begun { &mut self.stats.decode_seconds } else { &mut self.stats.prompt_seconds };
        *seconds += asked.elapsed().as_secs_f64();
    }

    /// Adds the cost of decoding, of which `known` tokens were in the KV cache.
    fn add_cost(&mut self, known: usize, decoded: DecodeCost) {
        if !std::mem::replace(&mut self.begun, true) {
            self.stats.prompt_tokens_reused = known.min(self.prompt);
        }
        self.stats.tokens_decoded += decoded.tokens;
        self.stats.forward_passes += decoded.forward_passes;
        self.stats.gathered_rows += decoded.gathered_rows;
    }

    /// Returns whether whole rows are read, for probabilities or for a receipt.
    fn reads_rows(&self) -> bool {
        let wants_shares = self.watch.wants_steps() && self.watch.wants_shares();
        wants_shares || self.likely.is_some() || self.trail.is_some()
    }

    /// Notes, for the watcher, what may come next and how probable it is.
    fn consider(&mut self, row: &[f32], allowed: &Allowed<'_>) {
        self.shares.clear();
        if self.watch.wants_steps() && self.watch.wants_shares() {
            probabilities(row, allowed, &mut self.shares);
        }
        if let Some(likely) = &mut self.likely {
            likely.consider(row, allowed);
        }
        if let Some(trail) = &mut self.trail {
            trail.consider(row, allowed, &self.vocab);
        }
    }

    /// Notes that only this token may come.
    fn consider_forced(&mut self, token: TokenId) {
        self.shares.clear();
        self.shares.push((token, 1.0));
        if let Some(likely) = &mut self.likely {
            likely.note_forced(token);
        }
        if let Some(trail) = &mut self.trail {
            trail.note_forced();
        }
    }

    /// Counts a token and tells the watcher of it; all but those that only end the output are `kept` in it. `depth` is
    /// the position in the trie before it.
    fn write(&mut self, token: TokenId, forced: bool, depth: usize, kept: bool) {
        *(if forced { &mut self.stats.forced_tokens } else { &mut self.stats.sampled_tokens }) += 1;
        let index = self.tokens().len();
        if kept {
            self.text.push(token);
        }
        let logprob = self.likely.as_mut().map(|likely| likely.write(token, kept));
        if let Some(trail) = &mut self.trail {
            trail.write(token);
        }
        if self.watch.wants_steps() {
            let bytes = self.vocab.piece(token).filter(|_| kept).unwrap_or_default().to_vec();
            let (allowed, text) = (self.shares.clone(), String::new());
            self.report.add(Step { index, depth, allowed, token, forced, kept, free: self.free, text, logprob }, bytes);
            if !self.tentative {
                self.settle(index + 1);
            }
        }
    }

    /// Tells the watcher of the tokens before this index, which stay.
    fn settle(&mut self, index: usize) {
        self.report.settle(index, &mut self.watch);
    }

    /// Writes a token that must stand there: no row of logits is needed for it.
    fn write_forced(&mut self, token: TokenId, depth: usize) {
        self.consider_forced(token);
        self.stats.forward_passes_saved += 1;
        self.write(token, true, depth, true);
    }

    /// Takes back all but the first `n` tokens.
    fn take_back(&mut self, n: usize) {
        self.text.truncate(self.prompt + n);
        self.report.take_back(n);
        if let Some(likely) = &mut self.likely {
            likely.take_back(n);
        }
    }

    /// Tokens that can be added before the last row is asked for.
    fn room_left(&self) -> usize {
        self.host.room.saturating_sub(self.text.len())
    }

    /// Returns whether the watcher wants the probabilities of tokens.
    fn is_watched(&self) -> bool {
        self.likely.is_some() || self.trail.is_some() || self.watch.wants_steps() && self.watch.wants_shares()
    }

    /// Returns whether no token can be added after the next.
    fn is_full(&self) -> bool {
        self.text.len() > self.host.room
    }

    fn finish(self) -> Result<Output<W>, RuntimeError> {
        let Self { vocab, mut text, prompt, likely, trail, stats, watch, .. } = self;
        let tokens = text.split_off(prompt);
        let bytes = vocab.join(&tokens)?;
        Ok(Output {
            text: String::from_utf8_lossy(bytes.get(stats.healed_bytes..).unwrap_or_default()).into_owned(),
            logprobs: likely.map(Likely::finish).unwrap_or_default(),
            trail: trail.map(Trail::finish).unwrap_or_default(),
            tokens,
            stats,
            watch,
        })
    }
}

/// Output of a generation: its tokens and text, their log-probabilities and receipt trail, its cost, and its watcher.
struct Output<W> {
    tokens: Vec<TokenId>,
    text: String,
    logprobs: Vec<TokenLogprob>,
    trail: Vec<TrailStep>,
    stats: GenerateStats,
    watch: W,
}

/// Softmax over the allowed tokens, weights included. At an open leaf, where any token is allowed, it is over the whole
/// row. Nothing where all but a few tokens are allowed, as in free text.
fn probabilities(row: &[f32], allowed: &Allowed<'_>, into: &mut Vec<(TokenId, f32)>) {
    if matches!(allowed, Allowed::Only { tokens: Tokens::Except(_), .. }) {
        return;
    }
    let weighed = |token, logit| logits::with_weight(logit, allowed.weight_of(token));
    into.extend(allowed.iter().filter_map(|token| Some((token, weighed(token, *row.get(token.index())?)))));
    let shares = match allowed {
        Allowed::Open { .. } => {
            let shares = match allowed.weights() {
                None => logits::shares(row),
                Some(_) => logits::shares(&allowed.logits(row).map(|(_, logit)| logit).collect::<Vec<_>>()),
            };
            into.iter().map(|(token, _)| shares[token.index()]).collect()
        }
        _ => logits::shares(&into.iter().map(|&(_, logit)| logit).collect::<Vec<_>>()),
    };
    into.iter_mut().zip(shares).for_each(|((_, logit), share)| *logit = share);
}

/// A row of logits that was changed. Its memory is used again.
#[derive(Default)]
struct BiasedRow {
    bias: LogitBias,
    row: Vec<f32>,
}

impl BiasedRow {
    fn new(bias: LogitBias) -> Self {
        Self { bias, row: Vec::new() }
    }

    /// The row after the logit bias is added. `O(vocabulary)`; without a bias it is the row itself.
    fn adjust_row<'r>(&'r mut self, row: &'r [f32]) -> &'r [f32] {
        if self.bias.is_empty() {
            return row;
        }
        self.row.clear();
        self.row.extend_from_slice(row);
        self.bias.add_to(&mut self.row);
        &self.row
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
        let only = Allowed::Only { tokens: Tokens::Ids(&tokens), ends: &[] };
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        assert_eq!(shares(&[1.0, 1.0, nan, 9.0], &only), [0.5, 0.5, 0.0]);
        assert_eq!(shares(&[inf, 1.0, inf, 9.0], &only), [0.5, 0.0, 0.5]);
        assert_eq!(shares(&[nan, -inf, nan, 9.0], &only), [1.0, 0.0, 0.0]);
        assert_eq!(shares(&[1.0, 1.0, 1.0, 1.0], &Allowed::Open { tokens: Tokens::Ids(&tokens[..1]) }), [0.25]);
    }
}
