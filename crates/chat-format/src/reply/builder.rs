//! Builds the message: turns the machine's reports on the bytes into events.

mod texts;

use super::message::{CallKind, Event, Message, ReasoningFormat};
use super::repeated::repeated_key;
use super::text_out::TextOut;
use crate::custom::InputText;
use crate::machine::{CallDecision, Listener, Outcome, Region, Seq};
use crate::tools::Tools;
use crate::values::{JsonOut, Out};
use std::sync::Arc;
use trie_schema::{Types, ValueId, Values};

/// Longest header in bytes: longer text is not a header.
const LONGEST_HEADER: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct Builder {
    tools: Option<Tools>,
    values: Arc<Values>,
    format: ReasoningFormat,
    /// Bytes whose meaning is still unknown.
    held: Vec<u8>,
    /// Number of held bytes that belong to the prompt. They may be part of a marker, but are no text of the reply.
    prompted: usize,
    /// Number of bytes of the reply that were read.
    read: usize,
    /// True in the prompt's text before the reply: its markers count, but its text does not.
    pub(super) prelude: bool,
    reasoning: TextOut,
    content: TextOut,
    /// A header whose meaning is still unknown.
    header: Vec<u8>,
    /// True if the header was too long: all of it is text.
    header_is_text: bool,
    /// Text that is reasoning if the end marker follows, and content otherwise.
    unsure: Option<Vec<u8>>,
    /// Opening marker of reasoning that stays in the content; held until the reasoning has text.
    opened: Option<Vec<u8>>,
    call: Option<Call>,
    pub(super) events: Vec<Event>,
    pub(super) message: Message,
}

/// A call that is being written.
#[derive(Debug, Clone)]
struct Call {
    index: usize,
    /// True if the name was reported. Until then the arguments wait.
    begun: bool,
    id: String,
    json: JsonOut<Arc<Values>>,
    /// Input of a custom tool.
    input: Option<InputText>,
    /// Number of JSON bytes that were reported, or that are the white space before the JSON.
    said: usize,
    /// True if these bytes are more than white space.
    any: bool,
    /// All bytes of the call as long as it has no name, because it may still be text.
    raw: Vec<u8>,
}

impl Builder {
    pub(super) fn new(tools: Option<Tools>, values: Arc<Values>, format: ReasoningFormat, fenced: bool) -> Self {
        let content = if fenced { TextOut::without_fence() } else { TextOut::default() };
        let (held, header, events, message) = (Vec::new(), Vec::new(), Vec::new(), Message::default());
        let (reasoning, unsure, opened, call) = (TextOut::default(), None, None, None);
        Self {
            tools,
            values,
            format,
            held,
            prompted: 0,
            read: 0,
            prelude: false,
            reasoning,
            content,
            header,
            header_is_text: false,
            unsure,
            opened,
            call,
            events,
            message,
        }
    }

    pub(super) fn hold(&mut self, byte: u8) {
        self.read += usize::from(!self.prelude);
        if self.held.is_empty() {
            self.prompted = 0;
        }
        self.prompted += usize::from(self.prelude);
        self.held.push(byte);
    }

    /// More of a string in arguments.
    pub(super) fn string(&mut self, text: &[u8]) {
        if !text.is_empty() {
            self.read += text.len();
            self.held.extend_from_slice(text);
            self.arguments();
        }
    }

    /// Text of a region that was never held.
    pub(super) fn plain(&mut self, region: Region, text: &[u8]) {
        self.read += text.len();
        self.text_of(region, text);
    }

    fn say(&mut self, event: Event) {
        self.message.add(&event);
        self.events.push(event);
    }

    fn warn(&mut self, warning: String) {
        self.say(Event::Warning(warning));
    }

    /// Reports new JSON of the open call.
    fn say_json(&mut self) {
        let Some(call) = &mut self.call else { return };
        if !call.begun {
            return;
        }
        let (index, text) = (call.index, call.json.text());
        if let Some(input) = &mut call.input {
            let text = input.take(text);
            if !text.is_empty() {
                self.say(Event::Arguments { index, text });
            }
            return;
        }
        let mut rest = &text[call.said..];
        call.said = text.len();
        if !call.any {
            // Blanks before the arguments are none of them.
            rest = rest.trim_ascii_start();
            call.any = !rest.is_empty();
        }
        let text = rest.to_owned();
        if !text.is_empty() {
            self.say(Event::Arguments { index, text });
        }
    }

    /// Reports arguments of a custom tool that are not its input as they are: only who reads freely meets them.
    fn say_other_input(&mut self) {
        let Some(call) = &self.call else { return };
        if call.input.as_ref().is_some_and(InputText::is_other) {
            let (index, text) = (call.index, call.json.text().trim().to_owned());
            let name = self.message.tool_calls.get(index).map_or("", |call| &call.name);
            self.warn(format!("the input of {name:?} is not a text: all of its arguments are given"));
            self.say(Event::Arguments { index, text });
        }
    }

    fn begin(&mut self, name: String, id: String) {
        let index = self.message.tool_calls.len();
        let is_custom = |tools: &Tools| tools.position(&name).and_then(|at| tools.get(at)?.input.as_ref()).is_some();
        let kind = if self.tools.as_ref().is_some_and(is_custom) { CallKind::Custom } else { CallKind::Function };
        if let Some(call) = &mut self.call {
            call.begun = true;
            call.index = index;
            call.id.clone_from(&id);
            call.input = (kind == CallKind::Custom).then(InputText::default);
        }
        self.say(Event::CallBegins { index, id, name, kind });
    }

    /// Treats a call that ended before its name was written as text.
    fn nameless_was_text(&mut self) {
        let Some(call) = self.call.as_mut().filter(|call| !call.begun) else { return };
        let raw = std::mem::take(&mut call.raw);
        if !raw.is_empty() {
            self.warn(format!("what looks like a call was left as text, at byte {}: it has no name", self.read));
            self.say_content(&raw);
        }
    }

    /// Treats a call as text if its name comes last and no tool has that name.
    fn tail_was_text(&mut self, name: &str, tail: &[u8]) {
        let Some(call) = &mut self.call else { return };
        let raw = [&std::mem::take(&mut call.raw)[..], tail].concat();
        self.warn_of_no_tool(name);
        self.say_content(&raw);
    }

    fn warn_of_no_tool(&mut self, name: &str) {
        self.warn(format!("a call of {name:?} was left as text, at byte {}: there is no such tool", self.read));
    }

    /// Warns that the reply breaks off where a call begins.
    pub(super) fn breaks_off_in_header(&mut self) {
        let shown: String = String::from_utf8_lossy(&self.held).chars().take(80).collect();
        self.warn(format!("the reply ends where a call begins, and {shown:?} is left as text"));
    }

    /// Begins the call whose name is written, where the reply breaks off before the arguments.
    pub(super) fn breaks_off_at(&mut self, seq: &Seq) -> bool {
        let captured = seq.capture(&self.held);
        let Some(name) = captured.name.filter(|name| self.is_known(name)) else { return false };
        self.header_was_text();
        self.unsure_was_content();
        self.begin(name, captured.id.unwrap_or_default());
        self.held.clear();
        true
    }

    /// Returns whether a call is open whose name is known.
    pub(super) fn is_calling(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.begun)
    }

    fn is_known(&self, name: &str) -> bool {
        !name.is_empty() && self.tools.as_ref().is_none_or(|tools| tools.position(name).is_some())
    }

    /// Ends the reply. `partial`: more of the reply may follow later.
    pub(super) fn finish(&mut self, region: Region, partial: bool) {
        if let Some(call) = &self.call {
            if !partial {
                let name = self.message.tool_calls.get(call.index).map_or("", |call| &call.name);
                let whole = serde_json::from_str::<serde_json::Value>(call.json.text()).is_ok();
                let what = if whole { "what ends it is missing" } else { "its arguments are not whole" };
                let warning = format!("the reply ends in the middle of a call of {name:?}: {what}");
                if call.begun {
                    self.warn(warning);
                }
                self.nameless_was_text();
            }
            self.say_json();
            self.say_other_input();
            self.call = None;
        }
        if !(partial && self.held.iter().any(|byte| !byte.is_ascii_whitespace())) {
            self.text(region, 0);
        }
        if !partial {
            self.header_was_text();
        }
        self.unsure_was_content();
        let (mut reasoning, mut content) = (String::new(), String::new());
        let cut = region != Region::Outside && region != Region::Fresh;
        self.reasoning.finish(true, partial, &mut reasoning);
        self.content.finish(cut, partial, &mut content);
        if !reasoning.is_empty() {
            self.say(Event::Reasoning(reasoning));
        }
        if !content.is_empty() {
            self.say(Event::Content(content));
        }
        self.say(Event::MessageEnds);
    }
}

impl Out for Builder {
    fn json(&mut self, text: &[u8]) {
        if let Some(call) = &mut self.call {
            call.json.json(text);
        }
    }

    fn raw_begin(&mut self, id: ValueId, types: Types) {
        if let Some(call) = &mut self.call {
            call.json.raw_begin(id, types);
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        if let Some(call) = &mut self.call {
            call.json.raw(bytes);
        }
    }

    fn raw_end(&mut self) {
        if let Some(call) = &mut self.call {
            call.json.raw_end();
        }
    }
}

impl Listener for Builder {
    fn text(&mut self, region: Region, keep: usize) {
        let count = self.held.len().saturating_sub(keep);
        if count == 0 {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        let prompted = self.prompted.min(count);
        self.prompted -= prompted;
        // What the prompt thinks counts where reasoning stays in the content.
        let from = if region == Region::Reasoning { 0 } else { prompted };
        self.text_of(region, &held[from..count]);
        held.drain(..count);
        self.held = held;
    }

    fn marker(&mut self, outcome: Outcome) {
        let held = std::mem::take(&mut self.held);
        self.header_is_text = false;
        match self.unsure.take() {
            Some(text) if outcome == Outcome::ReasoningOver => self.say_reasoning(&text),
            Some(text) => self.say_content(&text),
            None => {}
        }
        if outcome == Outcome::Elsewhere {
            let header = String::from_utf8_lossy(&std::mem::take(&mut self.header)).trim().to_owned();
            return self.warn(format!("a message for {header:?}, which is nobody known, was left out"));
        }
        self.header_was_text();
        match (outcome, self.format) {
            (Outcome::Reasoning, ReasoningFormat::None) => self.opened = Some(held),
            (Outcome::ReasoningOver, ReasoningFormat::None) => {
                let opened = self.opened.take();
                if opened.is_some() || self.content.any() {
                    self.say_content(&opened.unwrap_or_default());
                    self.say_content(&held);
                }
                return;
            }
            (Outcome::Content, ReasoningFormat::None) => self.opened = None,
            (Outcome::Reasoning, ReasoningFormat::Auto) => self.reasoning.after_marker(),
            _ => {}
        }
        self.content.after_marker();
    }

    fn call(&mut self, seq: &Seq, _tool: Option<u32>) -> CallDecision {
        let captured = seq.capture(&self.held);
        let number = match (&captured.name, &self.tools) {
            (Some(name), _) if !self.is_known(name) => {
                let name = name.clone();
                if !name.is_empty() {
                    self.warn_of_no_tool(&name);
                }
                return CallDecision::Text;
            }
            (Some(name), Some(tools)) => tools.position(name),
            _ => None,
        };
        self.header_was_text();
        self.unsure_was_content();
        self.content.after_marker();
        let (id, json) = (captured.id.unwrap_or_default(), JsonOut::new(Arc::clone(&self.values)));
        let index = self.message.tool_calls.len();
        self.call =
            Some(Call { index, begun: false, id: id.clone(), json, input: None, said: 0, any: false, raw: Vec::new() });
        match (captured.name, &mut self.call) {
            (Some(name), _) => self.begin(name, id),
            (None, Some(call)) => call.raw.clone_from(&self.held),
            (None, None) => {}
        }
        self.held.clear();
        number.map_or(CallDecision::Unknown, |tool| CallDecision::Tool(tool as u32))
    }

    fn broke(&mut self, what: &str) {
        if let Some(call) = self.call.as_ref().filter(|call| call.begun) {
            let name = self.message.tool_calls.get(call.index).map_or("", |call| &call.name);
            self.warn(format!("the call of {name:?}: {what}, at byte {} of the reply", self.read));
        }
    }

    fn no_call(&mut self) {
        self.warn(format!("what begins like a call was left as text, at byte {}: it goes on as none", self.read));
    }

    fn arguments(&mut self) {
        if let Some(call) = self.call.as_mut().filter(|call| !call.begun) {
            call.raw.extend_from_slice(&self.held);
        }
        self.held.clear();
        self.say_json();
    }

    fn call_over(&mut self, tail: Option<&Seq>) {
        if let Some(tail) = tail {
            let captured = tail.capture(&self.held);
            let tail_text = std::mem::take(&mut self.held);
            if let Some(call) = &mut self.call {
                if let Some(id) = captured.id {
                    call.id = id;
                }
                if !call.begun {
                    let (id, name) = (call.id.clone(), captured.name.unwrap_or_default());
                    if self.is_known(&name) {
                        self.begin(name, id);
                    } else {
                        self.tail_was_text(&name, &tail_text);
                    }
                }
            }
        }
        self.say_json();
        self.say_other_input();
        self.nameless_was_text();
        if let Some(call) = self.call.take().filter(|call| call.begun) {
            if let Some(key) = repeated_key(call.json.text()) {
                let name = self.message.tool_calls.get(call.index).map_or("", |call| &call.name);
                self.warn(format!("the call of {name:?} has the argument {key:?} twice: the last one counts"));
            }
            self.say(Event::CallEnds { index: call.index, id: call.id });
        }
    }
}
