//! Custom tools: tools whose input is text. A template sees each as a function with one string parameter, `input`.

use crate::tools::{ToolError, shorten_json};
use serde_json::{Map, Value, json};
use std::fmt;
use trie_core::work::Limits;
use trie_rules::{ContextFree, GrammarError, Regex, TextSet};

/// Name of the parameter of the function that a custom tool is.
pub(crate) const INPUT: &str = "input";

/// Texts that a custom tool takes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolInput {
    /// Grammar of the text; `None` is any text.
    pub grammar: Option<InputGrammar>,
}

/// Grammar of the input of a custom tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputGrammar {
    /// Notation of the grammar.
    pub syntax: InputSyntax,
    /// Text of the grammar.
    pub definition: String,
    /// Texts of the grammar.
    pub texts: TextSet,
}

/// Notation of the grammar of a custom tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputSyntax {
    /// A grammar in Lark.
    Lark,
    /// A regular expression, which matches the whole text.
    Regex,
}

impl InputSyntax {
    /// Returns the name of the notation: `lark` or `regex`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lark => "lark",
            Self::Regex => "regex",
        }
    }
}

impl InputGrammar {
    /// Identity of its texts: equal for equal grammars.
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.syntax.name(), self.definition)
    }
}

/// Returns the definition of a custom tool, without what is around it; `None` if the tool is none. A tool with a schema
/// of arguments is a function, whatever its type.
pub(crate) fn custom_definition(tool: &Value) -> Option<&Value> {
    if let Some(inner) = tool.get("custom").filter(|inner| inner.is_object()) {
        return Some(inner);
    }
    let has_schema = ["input_schema", "parameters", "function"].iter().any(|key| tool.get(key).is_some());
    (tool.get("type").is_some_and(|kind| kind == "custom") && !has_schema).then_some(tool)
}

/// Reads the `format` of a custom tool: `{"type": "text"}`, or `{"type": "grammar", "grammar": {"syntax": ...,
/// "definition": ...}}`, where the fields of the grammar may stand beside the type.
///
/// # Errors
/// A format of another shape, and a grammar that cannot be held.
pub(crate) fn read_input(name: &str, format: Option<&Value>) -> Result<ToolInput, ToolError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(ToolInput { grammar: None }) };
    let invalid = |reason: String| ToolError::Format { name: name.to_owned(), reason };
    let expected = |what: &str, given: &Value| invalid(format!("expected {what}, got {}", shorten_json(given)));
    let fields = format.as_object().ok_or_else(|| expected("an object with a \"type\"", format))?;
    let grammar = match fields.get("type").and_then(Value::as_str) {
        Some("text") => {
            known_fields(fields, &["type"]).map_err(invalid)?;
            return Ok(ToolInput { grammar: None });
        }
        Some("grammar") => {
            let (grammar, known): (_, &[&str]) = match fields.get("grammar") {
                Some(grammar) => {
                    known_fields(fields, &["type", "grammar"]).map_err(invalid)?;
                    let grammar = grammar.as_object().ok_or_else(|| expected("an object as \"grammar\"", grammar))?;
                    (grammar, &["syntax", "definition"])
                }
                None => (fields, &["type", "syntax", "definition"]),
            };
            known_fields(grammar, known).map_err(invalid)?;
            grammar
        }
        _ => return Err(expected("\"text\" or \"grammar\" as \"type\"", fields.get("type").unwrap_or(&Value::Null))),
    };
    let syntax = match grammar.get("syntax").and_then(Value::as_str) {
        Some("lark") => InputSyntax::Lark,
        Some("regex") => InputSyntax::Regex,
        _ => {
            return Err(expected("\"lark\" or \"regex\" as \"syntax\"", grammar.get("syntax").unwrap_or(&Value::Null)));
        }
    };
    let given = grammar.get("definition").unwrap_or(&Value::Null);
    let definition = given.as_str().ok_or_else(|| expected("a text as \"definition\"", given))?;
    let texts = match syntax {
        InputSyntax::Lark => texts_of_lark(definition),
        InputSyntax::Regex => Regex::new(definition)
            .map_err(|error| error.to_string())
            .and_then(|regex| TextSet::of_automaton(regex.automaton()).map_err(|error| error.to_string())),
    };
    let texts = texts.map_err(|reason| invalid(format!("{}: {reason}", syntax.name())))?;
    if texts.is_empty() {
        return Err(invalid(format!("{}: no text matches", syntax.name())));
    }
    Ok(ToolInput { grammar: Some(InputGrammar { syntax, definition: definition.to_owned(), texts }) })
}

fn texts_of_lark(definition: &str) -> Result<TextSet, String> {
    let grammar =
        ContextFree::lark(definition, Limits::default(), None).map_err(|error: GrammarError| error.to_string())?;
    let automaton = grammar.automaton().ok_or_else(|| {
        "a rule that contains itself is not supported in the input of a tool: write repetitions with + and *".to_owned()
    })?;
    TextSet::of_automaton(automaton).map_err(|error| error.to_string())
}

fn known_fields(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown field {key:?}; known are {known:?}")),
        None => Ok(()),
    }
}

/// Returns the schema of the arguments of the function that a custom tool is. Its description shows the grammar to the
/// model.
pub(crate) fn input_schema(grammar: Option<(&str, &str)>) -> Value {
    let mut input = json!({"type": "string"});
    if let Some((syntax, definition)) = grammar {
        let what = if syntax == "lark" { "obeys this Lark grammar" } else { "matches this regular expression" };
        input["description"] = format!("Text that {what} as a whole:\n{definition}").into();
    }
    json!({"type": "object", "properties": {INPUT: input}, "required": [INPUT], "additionalProperties": false})
}

/// Returns the function that a custom tool is for templates; other tools are `None`.
pub(crate) fn tool_as_function(tool: &Value) -> Option<Value> {
    let custom = custom_definition(tool)?;
    let format = custom.get("format").unwrap_or(&Value::Null);
    let grammar = format.get("grammar").unwrap_or(format);
    let text = |key: &str| grammar.get(key).and_then(Value::as_str);
    let parameters = input_schema(text("syntax").zip(text("definition")));
    let mut function = json!({"name": custom["name"]});
    if let Some(description) = custom.get("description").filter(|description| !description.is_null()) {
        function["description"] = description.clone();
    }
    function["parameters"] = parameters;
    Some(json!({"type": "function", "function": function}))
}

/// Writes calls of custom tools in messages as calls of functions.
pub(crate) fn calls_as_functions(messages: &mut [Value]) {
    for call in messages.iter_mut().filter_map(|message| message.get_mut("tool_calls")?.as_array_mut()).flatten() {
        let Some(custom) = call.get("custom").filter(|custom| custom.is_object()) else { continue };
        let input = custom.get("input").cloned().unwrap_or_else(|| "".into());
        let function = json!({"name": custom["name"], "arguments": json!({INPUT: input}).to_string()});
        let mut written = json!({"type": "function", "function": function});
        if let Some(id) = call.get("id") {
            written["id"] = id.clone();
        }
        *call = written;
    }
}

/// The text of the member `input`, taken from JSON text as that becomes certain.
#[derive(Clone, Default)]
pub(crate) struct InputText {
    at: InputState,
    /// JSON text that is read.
    read: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum InputState {
    /// Before the text: so much of [`InputText::BEFORE`] is read.
    Before(usize),
    Inside,
    Escape,
    /// In `\u`: so many digits and their value, behind the first half of a pair, which is 0 where there is none.
    Hex(u8, u16, u16),
    /// Behind the first half of a pair, with so many bytes of `\u` of the second.
    Half(u8, u16),
    Over,
    /// The arguments are something else.
    Other,
}

impl Default for InputState {
    fn default() -> Self {
        Self::Before(0)
    }
}

impl fmt::Debug for InputText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputText").field("read", &self.read).finish_non_exhaustive()
    }
}

impl InputText {
    const BEFORE: &str = "{\"input\":\"";

    /// Returns more of the text; `json` is all of the JSON text so far.
    pub(crate) fn take(&mut self, json: &str) -> String {
        let mut text = String::new();
        for char in json[self.read..].chars() {
            self.step(char, &mut text);
        }
        self.read = json.len();
        text
    }

    /// Returns whether the JSON text certainly has no such member alone.
    pub(crate) fn is_other(&self) -> bool {
        self.at == InputState::Other
    }

    fn step(&mut self, char: char, text: &mut String) {
        const LOST: char = char::REPLACEMENT_CHARACTER;
        self.at = match self.at {
            InputState::Before(at) if Self::BEFORE[at..].starts_with(char) => {
                if at + 1 == Self::BEFORE.len() {
                    InputState::Inside
                } else {
                    InputState::Before(at + 1)
                }
            }
            InputState::Before(at) if char.is_ascii_whitespace() && !matches!(at, 2..=7) => InputState::Before(at),
            InputState::Before(_) | InputState::Other => InputState::Other,
            InputState::Inside => match char {
                '"' => InputState::Over,
                '\\' => InputState::Escape,
                _ => {
                    text.push(char);
                    InputState::Inside
                }
            },
            InputState::Escape if char == 'u' => InputState::Hex(0, 0, 0),
            InputState::Escape => {
                text.push(match char {
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                });
                InputState::Inside
            }
            InputState::Hex(digits, value, half) => {
                let value = value << 4 | char.to_digit(16).unwrap_or_default() as u16;
                match (digits, value, half) {
                    (..3, ..) => InputState::Hex(digits + 1, value, half),
                    (_, 0xd800..=0xdbff, 0) => InputState::Half(0, value),
                    _ => {
                        let units = if half == 0 { vec![value] } else { vec![half, value] };
                        text.push_str(&String::from_utf16_lossy(&units));
                        InputState::Inside
                    }
                }
            }
            InputState::Half(0, half) if char == '\\' => InputState::Half(1, half),
            InputState::Half(1, half) if char == 'u' => InputState::Hex(0, 0, half),
            InputState::Half(begun, _) => {
                text.push(LOST);
                self.at = if begun == 1 { InputState::Escape } else { InputState::Inside };
                return self.step(char, text);
            }
            InputState::Over => InputState::Over,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_told_as_its_json_comes() {
        let texts = ["", "a", "\"\\\n\t\u{8}\u{c}\r/", "é😀", "{\"input\":\"x\"}", "\u{0}\u{1f}"];
        for text in texts {
            for json in [json!({INPUT: text}).to_string(), format!("{{ \"input\" : {} }}", json!(text))] {
                let mut input = InputText::default();
                let ends = json.char_indices().map(|(at, char)| at + char.len_utf8());
                let told: String = ends.map(|end| input.take(&json[..end])).collect();
                assert_eq!((told.as_str(), input.is_other()), (text, false), "{json}");
            }
        }
        let mut input = InputText::default();
        assert_eq!(input.take(r#"{"input":"\u00e9\ud83d\ude00\ud83dx\ud83d\n"#), "é😀\u{fffd}x\u{fffd}\n");
        for other in [r#"{"other": 1}"#, r#"{"input": 1}"#, "[]", "{}", r#"{"in put": "a"}"#] {
            let mut input = InputText::default();
            assert_eq!((input.take(other), input.is_other()), (String::new(), true), "{other}");
        }
    }
}
