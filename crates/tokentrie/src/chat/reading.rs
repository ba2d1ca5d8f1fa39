//! Reading of a reply token by token, with reports of its events.

use crate::call::{Hooks, StopFilter, Stops};
use crate::chat::call_ids::CallIds;
use crate::chat::content::{HeldContent, HeldState};
use crate::chat::shares::{CallShares, Shares};
use crate::engine::{JobEvent, Stop};
use chat_format::{Event, Message, Parser, Tools};
use llama_sampler::{Step, TokenLogprob, Watch};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use trie_core::{Constraint, TokenId};
use trie_text::{LossyText, Vocab};

/// A token of a reply, and its alternatives.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ReplyStep {
    /// Id of the token.
    pub token: TokenId,
    /// Part of the reply that contains it.
    pub part: ReplyPart,
    /// True if no other token was allowed.
    pub forced: bool,
    /// Number of allowed tokens; `None` for all, or all but a few.
    pub legal: Option<usize>,
    /// Log probability of the token.
    pub logprob: Option<TokenLogprob>,
}

/// A part of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplyPart {
    /// Text of a thought.
    Reasoning,
    /// Markers of a thought, and other marks between parts.
    Marker,
    /// Text for the user.
    Content,
    /// A call, with its marks.
    Call,
    /// End of the reply.
    End,
}

impl ReplyPart {
    /// Returns the name that hosts use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Marker => "marker",
            Self::Content => "content",
            Self::Call => "call",
            Self::End => "end",
        }
    }
}

/// Relay of a reply from inside an engine to the waiting thread.
pub(super) struct ChatRelay<T> {
    pub(super) stop: Stop,
    pub(super) tell: Sender<JobEvent<Vec<Event>, T>>,
}

impl<T> Watch for ChatRelay<T> {
    fn stop(&mut self) -> bool {
        self.stop.is_stopped()
    }
}

impl<T> Hooks for ChatRelay<T> {
    fn events(&mut self, events: Vec<Event>) {
        // Who does not listen any more has stopped it.
        let _ = self.tell.send(JobEvent::Told(events));
    }
}

/// Observer of a generation.
pub(super) struct Reading<W> {
    parser: Parser,
    vocab: Arc<Vocab>,
    told: EventReporter<W>,
    content: Option<ConstrainedContent>,
    reasoning_tokens: usize,
    /// Tokens that may become the end marker of the reasoning.
    held_tokens: usize,
    /// True if the reply reached its own end.
    over: bool,
    /// Each token, where that is wanted.
    steps: Option<Vec<ReplyStep>>,
}

/// Reported events, and their observer.
struct EventReporter<W> {
    watch: W,
    shares: Option<Shares>,
    stop: StopFilter,
    message: Message,
    ids: CallIds,
}

/// Constrained content. It is reported verbatim, even where the reader would see a marker.
struct ConstrainedContent {
    constraint: HeldContent,
    at: HeldState,
    /// Tokens that may be content, or stand before it.
    open: Vec<TokenId>,
    text: LossyText,
}

impl<W: Hooks> EventReporter<W> {
    /// Reports events: content only up to a stop text.
    fn tell(&mut self, events: Vec<Event>) {
        let mut told = Vec::with_capacity(events.len());
        for event in events {
            if let Some(shares) = &mut self.shares {
                shares.see(&event);
            }
            match event {
                Event::Content(text) => told.push(Event::Content(self.stop.push(&text))),
                Event::CallBegins { index, id, name, kind } => {
                    told.push(Event::CallBegins { index, id: self.ids.id(index, &id), name, kind });
                }
                Event::CallEnds { index, id } => told.push(Event::CallEnds { index, id: self.ids.id(index, &id) }),
                Event::MessageEnds => told.extend([Event::Content(self.stop.finish()), Event::MessageEnds]),
                other => told.push(other),
            }
        }
        told.retain(|event| !matches!(event, Event::Content(text) if text.is_empty()));
        for event in &told {
            self.message.add(event);
        }
        if !told.is_empty() {
            self.watch.events(told);
        }
    }
}

impl ConstrainedContent {
    /// Takes a token, and returns the tokens that certainly come before the content, and new text of the content.
    fn push(&mut self, token: TokenId, vocab: &Vocab) -> (Vec<TokenId>, String) {
        // What ends it is none of it.
        if self.constraint.advance(&mut self.at, token).is_none() {
            return (Vec::new(), String::new());
        }
        self.open.push(token);
        match self.at.content_tokens() {
            None => (std::mem::take(&mut self.open), String::new()),
            Some(_) if self.at.is_certain() => self.settle(vocab),
            Some(_) => (Vec::new(), String::new()),
        }
    }

    /// Settles possible content as content, unless it is a call.
    fn settle(&mut self, vocab: &Vocab) -> (Vec<TokenId>, String) {
        let content = self.at.content_tokens().filter(|_| !self.constraint.has_called(&self.at));
        let of_content = content.unwrap_or_default().min(self.open.len());
        let content = self.open.split_off(self.open.len() - of_content);
        let text = content.iter().map(|&token| self.text.push(vocab.piece(token).unwrap_or_default())).collect();
        (std::mem::take(&mut self.open), text)
    }
}

impl<W: Hooks> Reading<W> {
    pub(super) fn new(
        watch: W,
        (parser, ids, content): (Parser, CallIds, Option<HeldContent>),
        vocab: Arc<Vocab>,
        with_shares: bool,
        stop: &Stops,
    ) -> Self {
        let (shares, stop, message) = (with_shares.then(Shares::default), StopFilter::new(stop), Message::default());
        let held = |constraint: HeldContent| ConstrainedContent {
            at: constraint.start(),
            constraint,
            open: Vec::new(),
            text: LossyText::default(),
        };
        Self {
            parser,
            vocab,
            told: EventReporter { watch, shares, stop, message, ids },
            content: content.map(held),
            reasoning_tokens: 0,
            held_tokens: 0,
            over: false,
            steps: None,
        }
    }

    /// The same, which notes each token.
    pub(super) fn with_steps(self) -> Self {
        Self { steps: Some(Vec::new()), ..self }
    }

    /// The tokens so far, where they are noted.
    pub(super) fn take_steps(&mut self) -> Vec<ReplyStep> {
        self.steps.take().unwrap_or_default()
    }

    /// Returns the part of the reply at the current position.
    fn part(&self) -> ReplyPart {
        if self.content.as_ref().is_some_and(|held| held.at.content_tokens().is_some()) {
            ReplyPart::Content
        } else if self.parser.is_reasoning() {
            ReplyPart::Reasoning
        } else if self.parser.is_calling() {
            ReplyPart::Call
        } else if self.content.is_some() || self.parser.may_be_in_marker() {
            ReplyPart::Marker
        } else {
            ReplyPart::Content
        }
    }

    /// Records a token, and the part of the reply that it belongs to.
    fn note(&mut self, step: &Step, before: ReplyPart) {
        let after = self.part();
        let Some(steps) = &mut self.steps else { return };
        let part = match (before, after) {
            _ if !step.kept || self.vocab.is_end_of_generation(step.token) => ReplyPart::End,
            (ReplyPart::Call, _) | (_, ReplyPart::Call) => ReplyPart::Call,
            (ReplyPart::Reasoning, ReplyPart::Reasoning) => ReplyPart::Reasoning,
            // It begins the thought, or ends it.
            (ReplyPart::Reasoning, _) | (_, ReplyPart::Reasoning) => ReplyPart::Marker,
            (_, after) => after,
        };
        let legal = Some(step.allowed.len()).filter(|&legal| legal > 0);
        let (token, forced, logprob) = (step.token, step.forced, step.logprob.clone());
        steps.push(ReplyStep { token, part, forced, legal, logprob });
    }

    /// Returns whether a stop text came.
    pub(super) fn is_stopped_by_text(&self) -> bool {
        self.told.stop.is_found()
    }

    /// Returns the stop text that came.
    pub(super) fn stop_text(&self) -> Option<String> {
        self.told.stop.found().map(str::to_owned)
    }

    /// Returns whether the reply reached its own end, or a stop text came.
    pub(super) fn is_over(&self) -> bool {
        self.over || self.told.stop.is_found()
    }

    /// Returns whether the reply has calls in place of constrained content.
    pub(super) fn has_called(&self) -> bool {
        self.content.as_ref().is_some_and(|held| held.constraint.has_called(&held.at))
    }

    /// Returns whether constrained content can only end here.
    pub(super) fn content_is_over(&self) -> bool {
        self.content.as_ref().is_some_and(|held| held.constraint.is_over(&held.at))
    }

    /// Returns whether a call is being written.
    pub(super) fn is_calling(&self) -> bool {
        self.parser.is_calling()
    }

    /// The message, once the reply is over; how probable its calls were; and how many tokens were reasoning.
    pub(super) fn finish(mut self, partial: bool, tools: &Tools) -> (Message, Vec<CallShares>, usize) {
        if let Some(mut held) = self.content.take() {
            let (before, mut text) = held.settle(&self.vocab);
            for token in before {
                self.read(token);
            }
            text.push_str(&held.text.finish());
            self.told.tell(vec![Event::Content(text)]);
            let (mut events, _) = self.parser.finish(partial);
            events.retain(|event| !matches!(event, Event::Content(_)));
            self.told.tell(events);
        } else {
            let (events, _) = self.parser.finish(partial);
            self.told.tell(events);
        }
        let EventReporter { shares, message, .. } = self.told;
        let shares = shares.map(|shares| shares.of_calls(&message, tools)).unwrap_or_default();
        (message, shares, self.reasoning_tokens)
    }

    fn read(&mut self, token: TokenId) {
        let thinking = self.parser.is_reasoning();
        let is_control = self.vocab.control().binary_search(&token).is_ok();
        let mut events = self.parser.push_token(self.vocab.piece(token).unwrap_or_default(), is_control);
        if self.content.is_some() {
            events.retain(|event| !matches!(event, Event::Content(_)));
        }
        // What becomes its end marker is none of it.
        match (thinking && self.parser.is_reasoning(), self.parser.may_be_in_marker()) {
            (true, true) => self.held_tokens += 1,
            (true, false) => self.reasoning_tokens += 1 + std::mem::take(&mut self.held_tokens),
            (false, _) => self.held_tokens = 0,
        }
        self.over = self.parser.is_over();
        self.told.tell(events);
    }
}

impl<W: Hooks> Watch for Reading<W> {
    fn stop(&mut self) -> bool {
        self.is_over() || self.told.watch.stop()
    }

    fn priority(&self) -> i32 {
        self.told.watch.priority()
    }

    fn wants_steps(&self) -> bool {
        !self.is_over() && self.told.watch.listens()
    }

    fn wants_shares(&self) -> bool {
        self.told.shares.is_some() || self.steps.is_some()
    }

    fn step(&mut self, step: &Step) {
        let before = self.part();
        self.hear(step);
        self.note(step, before);
    }
}

impl<W: Hooks> Reading<W> {
    fn hear(&mut self, step: &Step) {
        if let Some(held) = &mut self.content {
            if let Some(shares) = &mut self.told.shares {
                shares.token(self.vocab.piece(step.token).unwrap_or_default(), step);
            }
            let (before, text) = held.push(step.token, &self.vocab);
            for token in before {
                self.read(token);
            }
            return self.told.tell(vec![Event::Content(text)]);
        }
        if self.vocab.is_end_of_generation(step.token) {
            return;
        }
        if let Some(shares) = &mut self.told.shares {
            shares.token(self.vocab.piece(step.token).unwrap_or_default(), step);
        }
        self.read(step.token);
    }
}
