//! A message, and the events by which it comes.

/// Reply of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// Text for the user.
    pub content: String,
    /// Text of the reasoning.
    pub reasoning: String,
    /// Tool calls in order.
    pub tool_calls: Vec<ToolCall>,
    /// Deviations of the text from the format.
    pub warnings: Vec<String>,
}

/// Kind of the tool that a call names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// A function, whose arguments are JSON.
    #[default]
    Function,
    /// A custom tool, whose input is text.
    Custom,
}

impl CallKind {
    /// Returns the name of the kind: `function` or `custom`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
        }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Id of the call, if the format has one; else empty.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Its arguments, whole once the call ended: JSON text, or the input of a custom tool as it is.
    pub arguments: String,
    /// Kind of the tool.
    pub kind: CallKind,
}

/// A part of a message, reported as soon as it is certain. No event is taken back: all events together are the message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// More text of the reasoning.
    Reasoning(String),
    /// More text of the content.
    Content(String),
    /// Beginning of a call.
    CallBegins {
        /// Its place among the calls of the message.
        index: usize,
        /// Id of the call, if it is written before the arguments; else empty.
        id: String,
        /// Full name of the tool.
        name: String,
        /// Kind of the tool.
        kind: CallKind,
    },
    /// More of the arguments of a call: JSON text, or the input of a custom tool as it is.
    Arguments {
        /// Number of the call.
        index: usize,
        /// Text of the event.
        text: String,
    },
    /// End of a call.
    CallEnds {
        /// Number of the call.
        index: usize,
        /// Id of the call, if the format has one.
        id: String,
    },
    /// Deviation of the text from the format.
    Warning(String),
    /// End of the message.
    MessageEnds,
}

impl Message {
    /// Adds an event. All events of a reply together make its message.
    ///
    /// ```
    /// use chat_format::{Event, Message};
    ///
    /// let mut message = Message::default();
    /// message.add(&Event::Content("Hel".into()));
    /// message.add(&Event::Content("lo".into()));
    /// assert_eq!(message.content, "Hello");
    /// ```
    pub fn add(&mut self, event: &Event) {
        match event {
            Event::Reasoning(text) => self.reasoning.push_str(text),
            Event::Content(text) => self.content.push_str(text),
            Event::CallBegins { id, name, kind, .. } => {
                let (id, name, arguments) = (id.clone(), name.clone(), String::new());
                self.tool_calls.push(ToolCall { id, name, arguments, kind: *kind });
            }
            Event::Arguments { index, text } => {
                if let Some(call) = self.tool_calls.get_mut(*index) {
                    call.arguments.push_str(text);
                }
            }
            Event::CallEnds { index, id } => {
                if let Some(call) = self.tool_calls.get_mut(*index) {
                    call.id.clone_from(id);
                }
            }
            Event::Warning(warning) => self.warnings.push(warning.clone()),
            Event::MessageEnds => {}
        }
    }
}

/// Part of the message that receives the reasoning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReasoningFormat {
    /// The reasoning of the message.
    #[default]
    Auto,
    /// The content, where the reasoning stays with its markers.
    None,
}
