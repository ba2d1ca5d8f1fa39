//! A reply is read token by token, and told of.

use crate::chat::shares::{CallShares, Shares};
use chat_format::{Event, Message, Parser, Tools};
use llama_sampler::{Step, Watch};
use std::sync::Arc;
use trie_text::Vocab;

/// Who waits for a reply.
pub trait ChatWatch {
    /// Whether the reply is not wanted any more; asked between two forward passes.
    fn stop(&mut self) -> bool;

    /// Whether it still listens.
    fn listens(&self) -> bool {
        true
    }

    /// Hears what became certain, as soon as it is; never nothing.
    fn tell(&mut self, events: Vec<Event>);
}

impl ChatWatch for () {
    fn stop(&mut self) -> bool {
        false
    }

    fn tell(&mut self, _events: Vec<Event>) {}
}

/// Watches a generation.
pub(super) struct Reading<'w> {
    watch: &'w mut dyn ChatWatch,
    parser: Parser,
    vocab: Arc<Vocab>,
    shares: Option<Shares>,
    reasoning_tokens: usize,
    /// Tokens that may become the end marker of the reasoning.
    held_tokens: usize,
    /// Whether the reply said its own end.
    pub(super) over: bool,
}

impl<'w> Reading<'w> {
    pub(super) fn new(watch: &'w mut dyn ChatWatch, parser: Parser, vocab: Arc<Vocab>, with_shares: bool) -> Self {
        let shares = with_shares.then(Shares::default);
        Self { watch, parser, vocab, shares, reasoning_tokens: 0, held_tokens: 0, over: false }
    }

    /// The message, once the reply is over; how probable its calls were; and how many tokens were reasoning.
    pub(super) fn finish(self, partial: bool, tools: &Tools) -> (Message, Vec<CallShares>, usize) {
        let Self { watch, parser, mut shares, reasoning_tokens, .. } = self;
        let (events, message) = parser.finish(partial);
        tell(watch, shares.as_mut(), events);
        let shares = shares.map(|shares| shares.of_calls(&message, tools)).unwrap_or_default();
        (message, shares, reasoning_tokens)
    }
}

fn tell(watch: &mut dyn ChatWatch, shares: Option<&mut Shares>, events: Vec<Event>) {
    if let Some(shares) = shares {
        for event in &events {
            shares.see(event);
        }
    }
    if !events.is_empty() {
        watch.tell(events);
    }
}

impl Watch for Reading<'_> {
    fn stop(&mut self) -> bool {
        self.over || self.watch.stop()
    }

    fn wants_steps(&self) -> bool {
        !self.over && self.watch.listens()
    }

    fn wants_shares(&self) -> bool {
        self.shares.is_some()
    }

    fn step(&mut self, step: &Step<'_>) {
        if self.vocab.is_end_of_generation(step.token) {
            return;
        }
        let vocab = Arc::clone(&self.vocab);
        let bytes = vocab.piece(step.token).unwrap_or_default();
        let thinking = self.parser.is_reasoning();
        if let Some(shares) = &mut self.shares {
            shares.token(bytes, step);
        }
        let events = self.parser.push(bytes);
        // What becomes its end marker is none of it.
        match (thinking && self.parser.is_reasoning(), self.parser.may_be_in_marker()) {
            (true, true) => self.held_tokens += 1,
            (true, false) => self.reasoning_tokens += 1 + std::mem::take(&mut self.held_tokens),
            (false, _) => self.held_tokens = 0,
        }
        self.over = self.parser.is_over();
        tell(self.watch, self.shares.as_mut(), events);
    }
}
