//! The exact probability of every value: what a greedy walk cannot know.
//!
//! `log P(value)` is the sum of the log-softmax, over the whole vocabulary, along its tokens; then, where end tokens are
//! given, that any of them follows, and at a leaf that is a prefix of others without end tokens, that none of its
//! children follows. Where several sequences stand for one value, it is the sum over them. Small sets are scored as one tree of
//! tokens, large ones best first (`search.rs`).

use super::scores::{Scores, positions};
use super::tree::TokenTree;
use crate::runtime::context::{Context, fits, in_range, not_empty};
use crate::runtime::error::RuntimeError;
use crate::runtime::watch::Watch;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{Cursor, LeafId, TokenId, Trie, log_add};

/// How to choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChooseOptions<'a> {
    /// Tokens of which one must follow the value.
    pub end_tokens: &'a [TokenId],
    /// Score only as much as the best so many values need. `None` scores every value of a set that needs at most
    /// [`ChooseOptions::MAX_ROWS`] rows of logits, and of a larger one what the best value needs.
    pub top: Option<usize>,
    /// Rows of logits to read at most, about; then the search ends with bounds. `None`: what the best values need, and
    /// [`ChooseOptions::MAX_ROWS`] where several sequences stand for one value.
    pub max_rows: Option<usize>,
}

impl ChooseOptions<'_> {
    /// Rows of logits up to which every value is scored.
    pub const MAX_ROWS: usize = 4096;

    /// Whether the best values are searched for, instead of scoring all.
    fn searches(&self, trie: &Trie, room: usize) -> bool {
        let most = self.max_rows.unwrap_or(Self::MAX_ROWS).min(Self::MAX_ROWS);
        // Of many sequences of one value the longest need not fit: it is improbable.
        let too_long = !trie.is_tree() && trie.max_depth() > room;
        self.top.is_some() || too_long || positions(trie, self.end_tokens).nth(most - 1).is_some()
    }

    /// Rows that a search may read.
    pub(super) fn budget(&self, trie: &Trie) -> usize {
        let usual = if trie.is_tree() { usize::MAX } else { Self::MAX_ROWS };
        self.max_rows.unwrap_or(usual)
    }
}

/// What a choice gave. Values are leaves of the trie, by number.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Log of each value's probability under the whole vocabulary; NaN for a value that was not scored. Where several sequences
    /// stand for a value, of all that were scored together: a lower bound unless all were.
    pub logprobs: Vec<f64>,
    /// Then the upper bounds; `None` where there are no others than `logprobs`.
    pub logprobs_high: Option<Vec<f64>>,
    /// The most probable values, best first, ties by number: all of them, or `top`.
    pub ranking: Vec<LeafId>,
    /// Whether no value can be more probable than the first of them.
    pub is_certain: bool,
    /// Lower bound of the probability that the output is any of the values.
    pub mass_low: f64,
    /// Upper bound; the same where every value was scored.
    pub mass_high: f64,
    /// What it took.
    pub stats: ChooseStats,
}

impl Choice {
    /// Probabilities among the values: they add up to 1 where all were scored. Where not, the share is a lower bound, taken of
    /// the upper bound of the mass, and NaN for what was not scored.
    pub fn probabilities(&self) -> Vec<f64> {
        let known = self.logprobs.iter().copied().filter(|logprob| !logprob.is_nan()).fold(f64::NEG_INFINITY, log_add);
        // The mass of all values can be too small for a double where its log is not.
        let log_mass = if self.mass_high > self.mass_low { known.max(self.mass_high.ln()) } else { known };
        let share = |logprob: &f64| match log_mass {
            // Every value is impossible: none is preferred.
            f64::NEG_INFINITY => 1.0 / self.logprobs.len() as f64,
            _ => (logprob - log_mass).exp(),
        };
        self.logprobs.iter().map(share).collect()
    }
}

/// What a choice took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ChooseStats {
    /// Calls of `llama_decode`, the prompt included.
    pub forward_passes: u64,
    /// Tokens in them.
    pub tokens_decoded: usize,
    /// Rows of logits that were read.
    pub rows: usize,
    /// Bytes at the end of the prompt that the values spell again, so that it was decoded without them.
    pub healed_bytes: usize,
    /// Seconds in all.
    pub seconds: f64,
    /// Threads in use.
    pub n_threads: u32,
}

impl Context {
    /// The probabilities of the values of `trie` after `prompt`. A set that begins inside the prompt ([`Trie::heal_bytes`]) comes
    /// after what it leaves of it.
    ///
    /// # Errors
    /// An empty prompt, one that the set does not begin in, or that does not fit together with the longest value, a trie or end token outside the
    /// vocabulary, `top` of 0, a failed forward pass, or `watch` asked to stop. The session can be used afterwards.
    pub fn choose(
        &mut self,
        prompt: &[TokenId],
        trie: &Trie,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Choice, RuntimeError> {
        let vocab = Arc::clone(self.vocab());
        let prompt = vocab.before_set(prompt, trie)?;
        self.check_choice(&[prompt], trie, options).map_err(RuntimeError::of_the_only_prompt)?;
        if options.searches(trie, self.n_ctx().saturating_sub(prompt.len())) {
            return self.best_first(prompt, trie, options, watch);
        }
        let mut choices = self.score_all(&[prompt], trie, options, watch)?;
        choices.pop().ok_or(RuntimeError::EmptyPrompt)
    }

    /// [`Context::choose`] for several prompts, in order. What all of them begin with is decoded once, the rest in
    /// common forward passes.
    ///
    /// # Errors
    /// As [`Context::choose`]; nothing is given for any prompt then.
    pub fn choose_many(
        &mut self,
        prompts: &[&[TokenId]],
        trie: &Trie,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let vocab = Arc::clone(self.vocab());
        let healed = prompts.iter().enumerate().map(|(number, prompt)| {
            vocab
                .before_set(prompt, trie)
                .map_err(|error| RuntimeError::Prompt { number, error: Box::new(error.into()) })
        });
        let healed: Vec<&[TokenId]> = healed.collect::<Result<_, _>>()?;
        self.check_choice(&healed, trie, options)?;
        if prompts.is_empty() {
            // What is held stays: it may be the beginning of the next ones.
            return Ok(Vec::new());
        }
        let longest = healed.iter().map(|prompt| prompt.len()).max().unwrap_or(0);
        if options.searches(trie, self.n_ctx().saturating_sub(longest)) {
            return prompts.iter().map(|prompt| self.choose(prompt, trie, options, watch)).collect();
        }
        self.score_all(&healed, trie, options, watch)
    }

    /// Everything that can be refused before the first forward pass.
    fn check_choice(
        &self,
        prompts: &[&[TokenId]],
        trie: &Trie,
        options: &ChooseOptions<'_>,
    ) -> Result<(), RuntimeError> {
        let n_vocab = self.vocab().len();
        self.vocab().check_set(trie)?;
        self.vocab().check_tokens(options.end_tokens).map_err(|error| RuntimeError::from(error).of("end_tokens"))?;
        if trie.max_token().index() >= n_vocab {
            return Err(RuntimeError::VocabularyMismatch { rules: trie.max_token().index() + 1, n_vocab });
        }
        in_range("top", options.top.unwrap_or(1) as u64, 1, u32::MAX.into())?;
        in_range("max_rows", options.max_rows.unwrap_or(1) as u64, 1, u64::MAX)?;
        let longest = if trie.is_tree() {
            trie.max_depth()
        } else {
            trie.leaves().map(|leaf| leaf.tokens.len()).max().unwrap_or(1)
        };
        // The row after a value matters only where an end token must follow.
        let needed = longest.saturating_sub(usize::from(options.end_tokens.is_empty()));
        for (number, prompt) in prompts.iter().enumerate() {
            let checked = not_empty(prompt)
                .and_then(|()| Ok(self.vocab().check_tokens(prompt)?))
                .and_then(|()| fits(0, prompt.len(), self.n_ctx()))
                .and_then(|()| self.value_fits(prompt.len(), needed, trie));
            checked.map_err(|error| RuntimeError::Prompt { number, error: Box::new(error) })?;
        }
        Ok(())
    }

    fn value_fits(&self, prompt: usize, needed: usize, trie: &Trie) -> Result<(), RuntimeError> {
        if prompt + needed <= self.n_ctx() {
            return Ok(());
        }
        let longest = trie.leaves().max_by_key(|leaf| leaf.tokens.len());
        let (value, tokens) =
            longest.map(|leaf| (leaf.name.unwrap_or_default(), leaf.tokens.len())).unwrap_or_default();
        Err(RuntimeError::ValueTooLong { value, tokens, prompt, n_ctx: self.n_ctx() })
    }

    /// Every value of every prompt, in one tree.
    fn score_all(
        &mut self,
        prompts: &[&[TokenId]],
        trie: &Trie,
        options: &ChooseOptions<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Vec<Choice>, RuntimeError> {
        let started = Instant::now();
        let before = self.forward_passes();
        let common = common_prefix(prompts)?;

        let mut token_tree = TokenTree::default();
        let mut places: Vec<Option<(usize, Cursor)>> = Vec::new();
        // The same position may be reached on several ways: what is known belongs to the node of the tree.
        let mut logprobs: Vec<f64> = Vec::new();
        let mut below: HashMap<(usize, TokenId), usize> = HashMap::new();
        let mut scores: Vec<Scores<'_>> = Vec::new();
        for (number, prompt) in prompts.iter().enumerate() {
            let mut parent = None;
            for (index, &token) in prompt.iter().enumerate().skip(common) {
                let last = index + 1 == prompt.len();
                parent = Some(token_tree.push(parent, token, last));
                places.push(last.then_some((number, Cursor::ROOT)));
                logprobs.push(0.0);
            }
            let mut path: Vec<usize> = parent.into_iter().collect();
            for (token, at) in positions(trie, options.end_tokens) {
                path.truncate(at.depth());
                let node = token_tree.push(path.last().copied(), token, true);
                below.extend(path.last().map(|&parent| ((parent, token), node)));
                path.push(node);
                places.push(Some((number, at)));
                logprobs.push(f64::NEG_INFINITY);
            }
            scores.push(Scores::new(trie, options.end_tokens));
        }

        let fed = self.hold(prompts.first().map_or(&[][..], |prompt| &prompt[..common]), &mut || watch.stop())?;
        let decoded = self.decode_tree(&token_tree, &mut || watch.stop(), &mut |node, row| {
            let Some((prompt, at)) = places[node] else { return };
            let logprob = logprobs[node];
            scores[prompt].expand(at, logprob, row, |token, _, logprob| {
                if let Some(&child) = below.get(&(node, token)) {
                    logprobs[child] = logprob;
                }
            });
        })?;
        let stats = ChooseStats {
            forward_passes: self.forward_passes() - before,
            tokens_decoded: fed + decoded,
            seconds: started.elapsed().as_secs_f64(),
            n_threads: self.n_threads(),
            ..ChooseStats::default()
        };
        Ok(scores.into_iter().map(|set| set.into_choice(usize::MAX, &[], true, stats)).collect())
    }
}

/// How many tokens all prompts begin with; the last token of each stays out, because its row is wanted.
fn common_prefix(prompts: &[&[TokenId]]) -> Result<usize, RuntimeError> {
    let Some((first, others)) = prompts.split_first() else { return Ok(0) };
    let mut common = first.len();
    for prompt in others {
        common = first.iter().zip(*prompt).take(common).take_while(|(a, b)| a == b).count();
    }
    let shortest = prompts.iter().map(|prompt| prompt.len()).min().unwrap_or(0);
    Ok(common.min(shortest.checked_sub(1).ok_or(RuntimeError::EmptyPrompt)?))
}
