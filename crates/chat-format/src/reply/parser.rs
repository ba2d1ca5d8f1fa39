//! Parser of a reply, which reads the text as it arrives.

use super::builder::Builder;
use super::message::{Event, Message, ReasoningFormat};
use crate::constraint::ControlTokens;
use crate::machine::{Listener, Machine, Outcome, Region, State, ToolChoice};
use crate::tools::Tools;
use std::sync::Arc;
use trie_core::work::{LimitExceeded, spend};

/// Parser of a reply, which reads the text as it arrives, in portions of any size.
///
/// No event is taken back. Text that may still become a marker is held until its meaning is certain. Text that fits
/// nothing in the format becomes content, with a warning.
#[derive(Debug, Clone)]
pub struct Parser {
    machine: Arc<Machine>,
    state: State,
    builder: Builder,
}

/// Options of a reply parser.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ParserOptions {
    /// The tools that may be called. Arguments written without types get their types from the tools' schemas. `None`
    /// accepts calls of any name; an empty list accepts none.
    pub tools: Option<Tools>,
    /// Permission or requirement to call tools.
    pub tool_choice: ToolChoice,
    /// Destination of reasoning text.
    pub reasoning: ReasoningFormat,
    /// The prompt from the beginning of the assistant's turn; `None` takes the text that the template writes there.
    pub prompt: Option<String>,
    /// Reads the content as JSON: a code fence around it is left out.
    pub json_content: bool,
    /// The control tokens of the vocabulary, for replies read with [`Parser::push_token`]. If a reasoning marker is one
    /// of these tokens, text with the same spelling is not a marker.
    pub control: ControlTokens,
}

/// Number of bytes between two checks of the work limit.
const PORTION: usize = 1 << 13;

impl Parser {
    /// A parser after a prompt. The first bytes of the prompt, up to `known`, stand before every reply, and end with a
    /// marker of `marker` bytes.
    pub(crate) fn after_prompt(
        machine: Arc<Machine>,
        options: &ParserOptions,
        prompt: &str,
        (known, marker): (usize, usize),
    ) -> Self {
        let values = Arc::clone(machine.values());
        let builder = Builder::new(options.tools.clone(), values, options.reasoning, options.json_content);
        let mut parser = Self { state: State::start(), machine, builder };
        parser.builder.prelude = true;
        parser.state.in_prompt(true);
        for (at, byte) in prompt.bytes().enumerate() {
            if at == known {
                parser.begin(marker);
            }
            parser.byte(byte);
        }
        if known >= prompt.len() {
            parser.begin(marker);
        }
        parser.state.in_prompt(false);
        parser
    }

    fn begin(&mut self, marker: usize) {
        self.machine.after_prelude(&mut self.state, marker);
        if !self.machine.may_be_in_marker(&self.state) {
            self.builder.forget();
        }
        self.builder.prelude = false;
        if self.machine.may_have_thought() && self.state.region() == Region::Reasoning {
            self.builder.is_unsure();
        }
    }

    fn byte(&mut self, byte: u8) {
        self.builder.hold(byte);
        let prelude = self.builder.prelude;
        // A machine that is not strict goes on with every byte.
        let _ = self.machine.step(&mut self.state, byte, prelude, &mut self.builder);
    }

    /// The same as [`Parser::push`] for a part of any length, within the [work](trie_core::work) limit of this thread.
    ///
    /// # Errors
    /// The work limit is exceeded. Some of the part is read then and the rest is lost, so the parser is of no further
    /// use.
    pub fn push_long(&mut self, bytes: &[u8]) -> Result<Vec<Event>, LimitExceeded> {
        let mut events = Vec::new();
        for portion in bytes.chunks(PORTION) {
            spend(portion.len())?;
            events.extend(self.push(portion));
        }
        Ok(events)
    }

    /// Reads a token of the reply; see [`ParserOptions::control`].
    pub fn push_token(&mut self, piece: &[u8], is_control: bool) -> Vec<Event> {
        if is_control {
            self.machine.control_begins(&mut self.state);
        }
        self.push(piece)
    }

    /// Reads more of the reply, and returns the events that became certain.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut rest = bytes;
        while let Some(&byte) = rest.first() {
            // Most of a reply is text in which nothing begins, and strings.
            let taken = if let Some((region, length)) = self.machine.plain(&self.state, rest) {
                self.builder.plain(region, &rest[..length]);
                length
            } else {
                let length = self.machine.in_string(&mut self.state, rest, &mut self.builder);
                self.builder.string(&rest[..length]);
                length
            };
            if taken == 0 {
                self.byte(byte);
            }
            rest = &rest[taken.max(1)..];
        }
        std::mem::take(&mut self.builder.events)
    }

    /// Returns whether the last text belongs to the reasoning.
    pub fn is_reasoning(&self) -> bool {
        self.machine.is_reasoning(&self.state)
    }

    /// Returns whether the last text may have begun a marker.
    pub fn may_be_in_marker(&self) -> bool {
        self.machine.may_be_in_marker(&self.state)
    }

    /// Returns whether a call is being written, up to its end.
    pub fn is_calling(&self) -> bool {
        self.machine.is_calling(&self.state)
    }

    /// Returns whether the reply reached its own end: later text is not part of it.
    pub fn is_over(&self) -> bool {
        self.state.region() == Region::Over
    }

    /// The message so far.
    pub fn message(&self) -> &Message {
        &self.builder.message
    }

    /// Ends the reply, and returns the last events and the message. `partial` means that the reply was cut off: text
    /// that may have become a marker is then left out.
    pub fn finish(mut self, partial: bool) -> (Vec<Event>, Message) {
        if !partial && self.machine.is_marked(&self.state) {
            self.builder.marker(Outcome::Content);
            self.builder.finish(Region::Content, partial);
            return (std::mem::take(&mut self.builder.events), self.builder.message);
        }
        let named = self.machine.unambiguous_call(&self.state).filter(|_| partial);
        let broke_off = named.is_some_and(|seq| self.builder.breaks_off_at(seq));
        if !partial && self.machine.in_header(&self.state) {
            self.builder.breaks_off_in_header();
        }
        // What of a call's end is written belongs to that call.
        let is_over = broke_off || self.state.in_tail() && self.builder.is_calling();
        let region = if is_over { Region::Over } else { self.state.region() };
        self.builder.finish(region, partial);
        (std::mem::take(&mut self.builder.events), self.builder.message)
    }
}
