//! A generation as a task: it walks a span, and asks for a row of logits where more than one token may come.

use super::ahead::{FreeAhead, RulesAhead};
use super::chooser::Chooser;
use super::deadline::SpanDeadline;
use super::drafting::Drafting;
use super::generated::{Completion, Field, Finish, GenerateOptions, Generated};
use super::{Generation, Output};
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{Allowed, DecodeCost, Ending, Job, Role, Scratch, Span, Status, TokenId, WantedRows};

/// Remaining tokens from which on it is checked whether a value that begins in free text can end.
const NEAR_BEGIN: usize = 64;

/// Walk of a span. Nothing is decoded until logits are needed; then all tokens since the last pass are decoded at once.
pub(super) struct Walk<W, C> {
    pub(super) generation: Generation<W>,
    chooser: C,
    max_tokens: usize,
    /// The most tokens of free text among them, and those that were written.
    max_free: usize,
    free: usize,
    /// True if no row of logits is requested where only one token is allowed.
    skip: bool,
    finish: Option<Finish>,
    /// Tokens that are written before the model chooses any.
    given: VecDeque<TokenId>,
    /// The limit before which values end; `None` where none does.
    deadline: Option<SpanDeadline>,
    scratch: Scratch,
}

/// A token that was accepted.
struct AcceptedToken {
    token: TokenId,
    role: Role,
    /// True if no other could come.
    forced: bool,
    /// Tokens walked before it.
    depth: usize,
}

impl<W: Watch, C: Chooser> Walk<W, C> {
    pub(super) fn new(generation: Generation<W>, chooser: C, options: &GenerateOptions, skip: bool) -> Self {
        let (max_tokens, max_free) = (options.max_tokens, options.max_free_tokens.unwrap_or(usize::MAX));
        let (finish, deadline, scratch) = (None, None, Scratch::default());
        let given = options.given.iter().copied().collect();
        Self { generation, chooser, max_tokens, max_free, free: 0, skip, finish, given, deadline, scratch }
    }

    /// Adds the deadline before which values end, if the options ask for it.
    pub(super) fn completing(mut self, options: &GenerateOptions) -> Self {
        let wanted = options.complete != Completion::Off;
        let (closes, thought_end) = (options.complete == Completion::Closed, &options.thought_end);
        self.deadline = wanted.then(|| SpanDeadline::new(self.tokens_left(), closes, thought_end.clone()));
        self
    }

    /// Returns the number of tokens that can still be written.
    fn tokens_left(&self) -> usize {
        let most = self.max_tokens.saturating_sub(self.generation.tokens().len());
        most.min(self.generation.room_left().saturating_add(1))
    }

    /// The next token that was given, or that ends the value in time.
    fn way(&self) -> Option<TokenId> {
        let in_time = || self.deadline.as_ref().and_then(|deadline| deadline.of_value.next());
        self.given.front().copied().or_else(in_time)
    }

    /// Notes that the next of these tokens was written.
    fn follow(&mut self) {
        if self.given.pop_front().is_some() {
            return;
        }
        if let Some(deadline) = &mut self.deadline {
            deadline.of_value.follow();
        }
    }

    /// Checks how near the end is, before a row of logits is requested.
    fn look(&mut self) {
        let left = self.tokens_left();
        if let (Some(deadline), Some(span)) = (&mut self.deadline, self.chooser.span()) {
            deadline.look(&self.generation.vocab, span.rules(), span.state(), left);
        }
    }

    /// Checks whether the value can still end in time after a token that the model chose; if not, other tokens end it.
    fn check_in_time(&mut self, token: TokenId) {
        let (left, begun) = (self.tokens_left(), self.generation.value_tokens > 0);
        if let (Some(deadline), Some(span)) = (&mut self.deadline, self.chooser.span())
            && (deadline.of_value.is_near() || left <= NEAR_BEGIN)
        {
            deadline.check(&self.generation.vocab, span.rules(), (span.state(), token), (left, begun));
        }
    }

    /// Returns whether the output is unconstrained from here on.
    fn is_free(&self) -> bool {
        self.chooser.span().is_none_or(|span| span.status() != Status::Active || span.ending() == Ending::Free)
    }

    /// Writes a token that was accepted, and notes if it is the last.
    fn write(&mut self, taken: &AcceptedToken) {
        let &AcceptedToken { token, role, forced, depth } = taken;
        let free = role == Role::Free && self.is_free();
        let (generation, over) = (&mut self.generation, self.chooser.span().is_some_and(Span::is_over));
        let ends_output = !matches!(role, Role::Value | Role::Marker) && generation.vocab.is_end_of_generation(token);
        if role == Role::Value {
            generation.add_value(token);
        }
        generation.free = free;
        self.free += usize::from(free);
        generation.write(token, forced, depth, !ends_output && (!over || role != Role::Free));
        self.finish = if over {
            Some(Finish::Span)
        } else if ends_output {
            Some(Finish::EndOfGeneration)
        } else if generation.tokens().len() >= self.max_tokens || self.free >= self.max_free {
            Some(Finish::MaxTokens)
        } else if generation.is_full() {
            Some(Finish::ContextFull)
        } else {
            None
        };
    }

    /// Drafts what comes after the text.
    pub(super) fn draft(&mut self, drafting: &mut Drafting) -> Result<(), RuntimeError> {
        let (most, vocab) = (self.tokens_left().saturating_sub(1), Arc::clone(&self.generation.vocab));
        // Tokens that end the value in time follow, whatever the model says.
        if self.way().is_some() || !self.skip {
            return Ok(());
        }
        let Generation { text, watch, .. } = &mut self.generation;
        let mut stop = || watch.stop();
        match self.chooser.span() {
            None => drafting.propose(text, most, &mut FreeAhead(&vocab), &mut stop),
            Some(span) => {
                let mut ahead = RulesAhead::new(&vocab, span.rules(), span.state(), |_| true);
                drafting.propose(text, most, &mut ahead, &mut stop)
            }
        }
    }

    /// Returns the result, partial if the generation was stopped, and the watcher.
    pub(super) fn finish(mut self) -> Result<(Generated, W), RuntimeError> {
        self.generation.stats.starved = self.chooser.starved_count();
        let (generation, span) = (self.generation, self.chooser.span());
        let vocab = Arc::clone(&generation.vocab);
        let value_tokens = generation.value_tokens;
        let value = span.is_some_and(|span| span.status() == Status::Complete).then(|| generation.value_text());
        let Output { tokens, text, logprobs, trail, mut stats, watch } = generation.finish()?;
        stats.thinking_tokens = span.map_or(0, |span| span.thought().tokens);
        let leaves = span.map_or_else(Vec::new, Span::leaves);
        let leaf = leaves.last().cloned();
        let set = span.and_then(|span| span.constraint().as_trie()).filter(|set| !set.is_tree());
        let mut partial_token = Vec::new();
        if let (Some(span), Some(_), Some(leaf)) = (span, set, &leaf) {
            let walked = vocab.join(&tokens[..span.depth().min(tokens.len())])?;
            partial_token = walked.get(vocab.join(&leaf.tokens)?.len()..).unwrap_or_default().to_vec();
        }
        let fields = leaves.iter().filter_map(Field::from_leaf).collect();
        let (canonical, finish) = (true, self.finish.unwrap_or(Finish::Cancelled));
        let completed = self.deadline.is_some_and(|deadline| deadline.has_completed());
        let generated = Generated {
            tokens,
            text,
            leaf,
            leaves,
            fields,
            value,
            value_tokens,
            partial_token,
            canonical,
            completed,
            logprobs,
            trail,
            finish,
            stats,
            correction: None,
        };
        Ok((generated, watch))
    }
}

impl<W: Watch, C: Chooser> Job for Walk<W, C> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        while self.finish.is_none() {
            let span = self.chooser.span().filter(|_| self.skip || self.deadline.is_some());
            let forced = span.and_then(|span| span.forced_token(&mut self.scratch));
            let way = self.way();
            let certain = match way {
                None => forced,
                // Who hears how probable tokens are hears it of those, too.
                Some(_) => way.filter(|_| forced == way || !self.generation.is_watched()),
            };
            if forced.is_none() && way.is_none() {
                self.look();
            }
            let Some(token) = certain.filter(|_| self.skip) else {
                self.generation.ask();
                return Ok(true);
            };
            let is_forced = self.given.is_empty() || forced == way;
            self.follow();
            let depth = self.chooser.span().map_or(0, Span::depth);
            self.generation.consider_forced(token);
            self.generation.stats.forward_passes_saved += usize::from(is_forced);
            let role = self.chooser.accept_forced(token)?;
            self.write(&AcceptedToken { token, role, forced: is_forced, depth });
        }
        Ok(false)
    }

    fn want(&self) -> WantedRows<'_> {
        WantedRows::row_after(&self.generation.text)
    }

    fn take(&mut self, _: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.generation.note_rows_read();
        let mut bias = std::mem::take(&mut self.generation.bias);
        let row = bias.adjust_row(row);
        let span = self.chooser.span();
        let depth = span.map_or(0, Span::depth);
        let allowed = span.map_or(Allowed::All, |span| span.allowed(&mut self.scratch));
        let forced = allowed.single_token().is_some();
        self.generation.consider(row, &allowed);
        let started = Instant::now();
        let (token, role) = if let Some(token) = self.way() {
            self.follow();
            (token, self.chooser.accept_forced(token)?)
        } else {
            let chosen = self.chooser.choose(row)?;
            if !forced {
                self.check_in_time(chosen);
            }
            let token = self.way().unwrap_or(chosen);
            self.follow();
            (token, self.chooser.accept(token)?)
        };
        self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        self.generation.bias = bias;
        self.write(&AcceptedToken { token, role, forced, depth });
        Ok(())
    }

    fn finish_batch(&mut self, decoded: DecodeCost) {
        // The token that the row gave is written already.
        let wanted = self.generation.text.len().saturating_sub(1);
        self.generation.add_cost(wanted.saturating_sub(decoded.tokens), decoded);
    }
}

impl<W: Watch, C: Chooser> Task for Walk<W, C> {
    fn stop(&mut self) -> bool {
        self.generation.watch.stop()
    }

    fn reads_allowed_by(&self) -> Option<&Span> {
        self.chooser.span().filter(|_| self.chooser.reads_allowed() && !self.generation.reads_rows())
    }
}
