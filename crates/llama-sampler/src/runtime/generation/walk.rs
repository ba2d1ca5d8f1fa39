//! A generation as a task: it walks a span, and asks for a row of logits where more than one token may come.

use super::chooser::Chooser;
use super::deadline::Deadline;
use super::generated::{Field, Finish, Generated};
use super::{Generation, Output};
use crate::runtime::error::RuntimeError;
use crate::runtime::task::Task;
use crate::runtime::watch::Watch;
use std::sync::Arc;
use std::time::Instant;
use trie_core::{
    Allowed, AnyConstraint, AnyState, Constraint, Decoded, Ending, Job, Next, Role, Scratch, Span, SpanState, Status,
    TokenId, Tokens, Want,
};
use trie_text::completion;

/// Tokens that are left up to which it is looked at whether a value that begins can end.
const NEAR_CALL: usize = 64;

/// Whether a value stands here that is not over: something, but not everything, may come.
fn is_in_value(constraint: &AnyConstraint, at: &AnyState) -> bool {
    let (mut scratch, open) = (Scratch::default(), |next: Next<'_>| matches!(next.tokens, Tokens::Except(_)));
    constraint.ending(at) == Ending::No && !open(constraint.next(at, &mut scratch))
}

/// Nothing is decoded until logits are needed, and then everything since the last time at once.
pub(super) struct Walk<W, C> {
    pub(super) generation: Generation<W>,
    chooser: C,
    max_tokens: usize,
    /// Whether no row is asked for where one token alone may come.
    skip: bool,
    finish: Option<Finish>,
    /// Where values end in time.
    deadline: Option<Deadline>,
    completed: bool,
    scratch: Scratch,
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

impl<W: Watch, C: Chooser> Walk<W, C> {
    pub(super) fn new(generation: Generation<W>, chooser: C, max_tokens: usize, skip: bool) -> Self {
        let (finish, deadline, completed, scratch) = (None, None, false, Scratch::default());
        Self { generation, chooser, max_tokens, skip, finish, deadline, completed, scratch }
    }

    /// With values that end in time, where no row is asked for what must come.
    pub(super) fn completing(mut self, complete: bool) -> Self {
        let room = self.max_tokens.min(self.generation.room_left());
        self.deadline = (complete && self.skip).then(|| Deadline::new(room, 0));
        self
    }

    /// How many tokens can be written.
    fn left(&self) -> usize {
        let most = self.max_tokens.saturating_sub(self.generation.tokens().len());
        most.min(self.generation.room_left().saturating_add(1))
    }

    /// Looks how near the end is, before a row is asked for.
    fn look(&mut self) {
        let (left, vocab) = (self.left(), &self.generation.vocab);
        if let (Some(deadline), Some(span)) = (&mut self.deadline, self.chooser.span())
            && is_in_value(span.constraint(), span.state().position())
        {
            let way = || completion(span.constraint(), span.state().position(), vocab);
            deadline.look(left, || way().map(|way| way.len()));
        }
    }

    /// Looks whether the value can still end in time after this token; else it ends by others, or there is no more.
    fn check_in_time(&mut self, token: TokenId) {
        let (left, vocab) = (self.left(), &self.generation.vocab);
        let (Some(deadline), Some(span)) = (&mut self.deadline, self.chooser.span()) else { return };
        let (rules, at) = (span.rules(), span.state());
        if !deadline.is_near() && left > NEAR_CALL || span.status() != Status::Active {
            return;
        }
        let Some(after) = rules.step(at, token).map(|step| step.state) else { return };
        if !is_in_value(rules.constraint(&after), after.position()) {
            return;
        }
        let way = |at: &SpanState<AnyState>| {
            let way = completion(rules.constraint(at), at.position(), vocab)?;
            Some((way.len(), way))
        };
        if deadline.check(left, way(&after).map(|(need, _)| need.saturating_add(1)), || way(at)) {
            self.completed = true;
            if deadline.next().is_none() {
                // It ends here already, and what would come has no room.
                self.finish = Some(Finish::MaxTokens);
            }
        }
    }

    /// The next token that ends the value in time.
    fn way(&self) -> Option<TokenId> {
        self.deadline.as_ref().and_then(Deadline::next)
    }

    /// Writes a token that was accepted, and notes if it is the last.
    fn write(&mut self, taken: &Taken) {
        let &Taken { token, role, forced, depth } = taken;
        let (generation, over) = (&mut self.generation, self.chooser.span().is_some_and(Span::is_over));
        let ends_output = !matches!(role, Role::Value | Role::Marker) && generation.vocab.is_end_of_generation(token);
        if role == Role::Value {
            generation.add_value(token);
        }
        generation.write(token, forced, depth, !ends_output && (!over || role != Role::Free));
        self.finish = if over {
            Some(Finish::Span)
        } else if ends_output {
            Some(Finish::EndOfGeneration)
        } else if generation.tokens().len() >= self.max_tokens {
            Some(Finish::MaxTokens)
        } else if generation.is_full() {
            Some(Finish::ContextFull)
        } else {
            None
        };
    }

    /// What it gave; what there is, where it was stopped.
    pub(super) fn finish(mut self) -> Result<(Generated, W), RuntimeError> {
        self.generation.stats.starved = self.chooser.starved();
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
        let fields = leaves.iter().filter_map(Field::of).collect();
        let (canonical, completed, finish) = (true, self.completed, self.finish.unwrap_or(Finish::Stopped));
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
        };
        Ok((generated, watch))
    }
}

impl<W: Watch, C: Chooser> Job for Walk<W, C> {
    type Error = RuntimeError;

    fn advance(&mut self) -> Result<bool, RuntimeError> {
        while self.finish.is_none() {
            let span = self.chooser.span().filter(|_| self.skip);
            let forced = span.and_then(|span| span.forced_token(&mut self.scratch));
            let way = self.way().filter(|&way| forced == Some(way) || !self.generation.is_watched());
            let Some(token) = way.or_else(|| forced.filter(|_| self.way().is_none())) else {
                if self.way().is_none() {
                    self.look();
                }
                self.generation.ask();
                return Ok(true);
            };
            self.deadline.as_mut().map(Deadline::follow);
            let depth = self.chooser.span().map_or(0, Span::depth);
            self.generation.consider_forced(token);
            self.generation.stats.forward_passes_saved += 1;
            let role = self.chooser.accept_forced(token)?;
            self.write(&Taken { token, role, forced: true, depth });
        }
        Ok(false)
    }

    fn want(&self) -> Want<'_> {
        Want::row_after(&self.generation.text)
    }

    fn take(&mut self, _: Option<usize>, row: &[f32]) -> Result<(), RuntimeError> {
        self.generation.answered();
        let mut bias = std::mem::take(&mut self.generation.bias);
        let row = bias.of(row);
        let span = self.chooser.span();
        let depth = span.map_or(0, Span::depth);
        let allowed = span.map_or(Allowed::All, |span| span.allowed(&mut self.scratch));
        let forced = allowed.only().is_some();
        self.generation.consider(row, &allowed);
        let started = Instant::now();
        let token = match self.way() {
            Some(token) => token,
            None => {
                let token = self.chooser.choose(row)?;
                self.check_in_time(token);
                self.way().unwrap_or(token)
            }
        };
        if self.finish.is_some() {
            self.generation.bias = bias;
            return Ok(());
        }
        self.deadline.as_mut().map(Deadline::follow);
        let role = self.chooser.accept(token)?;
        self.generation.stats.sample_seconds += started.elapsed().as_secs_f64();
        self.generation.bias = bias;
        self.write(&Taken { token, role, forced, depth });
        Ok(())
    }

    fn took(&mut self, decoded: Decoded) {
        // The token that the row gave is written already.
        let wanted = self.generation.text.len().saturating_sub(1);
        self.generation.took(wanted.saturating_sub(decoded.tokens), decoded);
    }
}

impl<W: Watch, C: Chooser> Task for Walk<W, C> {
    fn stop(&mut self) -> bool {
        self.generation.watch.stop()
    }
}
