//! Probabilities of the names and the enum values of calls.

use chat_format::{Event, Message, ToolCall, Tools};
use llama_sampler::TokenLogprob;
use serde_json::Value;
use std::ops::Range;
use trie_text::Vocab;

/// Probabilities of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallShares {
    /// Probability of the name among the allowed tokens; `None` if the name began inside a token of free text.
    pub name: Option<f64>,
    /// Probabilities of the arguments with an enum or a boolean, by name.
    pub values: Vec<(String, f64)>,
}

/// The tokens of a reply with their probabilities among what was legal.
#[derive(Debug, Default)]
pub(super) struct Shares {
    text: Vec<u8>,
    /// End and probability of each token; `None` if everything was allowed.
    tokens: Vec<(usize, Option<f64>)>,
    /// For each call, the range of the name in the text, and the start of its arguments.
    calls: Vec<(Range<usize>, usize)>,
    /// End of each call.
    ends: Vec<usize>,
}

impl Shares {
    /// Sees a token before it is read.
    pub(super) fn token(&mut self, bytes: &[u8], step: &llama_sampler::Step) {
        self.text.extend_from_slice(bytes);
        let listed = step.allowed.iter().find(|(token, _)| *token == step.token);
        let share = if step.forced { Some(1.0) } else { listed.map(|&(_, share)| f64::from(share)) };
        self.tokens.push((self.text.len(), share));
    }

    /// Sees an event of what was read last.
    pub(super) fn see(&mut self, event: &Event) {
        match event {
            Event::CallBegins { name, .. } => {
                let from = self.calls.last().map_or(0, |(name, _)| name.end);
                let place = last_in(&self.text[from..], name.as_bytes()).map(|at| from + at);
                let place = place.map_or(from..from, |at| at..at + name.len());
                self.calls.push((place.clone(), place.end));
            }
            Event::CallEnds { .. } => self.ends.push(self.text.len()),
            _ => {}
        }
    }

    /// The product over the tokens that hold a byte of this place.
    fn share_at(&self, place: &Range<usize>) -> Option<f64> {
        if place.is_empty() {
            return None;
        }
        let first = self.tokens.partition_point(|&(end, _)| end <= place.start);
        let last = self.tokens.partition_point(|&(end, _)| end < place.end);
        self.tokens.get(first..=last)?.iter().map(|&(_, share)| share).product()
    }

    /// Returns the probabilities of the calls of a message.
    pub(super) fn of_calls(&self, message: &Message, tools: &Tools) -> Vec<CallShares> {
        let of_call = |(number, call): (usize, &ToolCall)| {
            let Some((name, arguments)) = self.calls.get(number) else { return CallShares::default() };
            let end = self.ends.get(number).copied().unwrap_or(self.text.len());
            let tool = tools.position(&call.name).and_then(|number| tools.get(number));
            let values = tool.map(|tool| self.of_values(call, &tool.parameters, *arguments..end.max(*arguments)));
            CallShares { name: self.share_at(name), values: values.unwrap_or_default() }
        };
        message.tool_calls.iter().enumerate().map(of_call).collect()
    }

    /// Computes the probabilities of arguments with an enum or a boolean: each is searched after its name, in their
    /// order.
    fn of_values(&self, call: &ToolCall, schema: &Value, mut rest: Range<usize>) -> Vec<(String, f64)> {
        let Ok(Value::Object(arguments)) = serde_json::from_str::<Value>(&call.arguments) else { return Vec::new() };
        let mut found = Vec::new();
        for (key, value) in &arguments {
            let Some(after) = first_in(&self.text[rest.clone()], key.as_bytes()) else { continue };
            rest.start += after + key.len();
            let places = spellings(value).into_iter().filter_map(|text| {
                let at = rest.start + first_in(&self.text[rest.clone()], text.as_bytes())?;
                Some(at..at + text.len())
            });
            let Some(place) = places.min_by_key(|place| (place.start, usize::MAX - place.end)) else { continue };
            rest.start = place.end;
            if is_choice(schema, &schema["properties"][key], MOST_REFERENCES)
                && let Some(share) = self.share_at(&place)
            {
                found.push((key.clone(), share));
            }
        }
        found
    }
}

/// Returns the log probabilities of the tokens that contain a byte of the content; all of them if the reply does not
/// contain it verbatim.
pub(super) fn of_content(known: &[TokenLogprob], content: &str, vocab: &Vocab) -> Vec<TokenLogprob> {
    if known.is_empty() || content.is_empty() {
        return Vec::new();
    }
    let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(known.len()));
    for one in known {
        text.extend_from_slice(vocab.piece(one.token).unwrap_or_default());
        ends.push(text.len());
    }
    // What was thought may say the same before.
    let Some(at) = last_in(&text, content.as_bytes()) else { return known.to_vec() };
    let first = ends.partition_point(|&end| end <= at);
    let last = ends.partition_point(|&end| end < at + content.len());
    known.get(first..=last).unwrap_or(known).to_vec()
}

/// References that lead from one to the next.
const MOST_REFERENCES: u32 = 16;

/// Returns whether a schema allows few values only, by whatever keywords: `root` contains its references.
fn is_choice(root: &Value, schema: &Value, deeper: u32) -> bool {
    let Some(deeper) = deeper.checked_sub(1) else { return false };
    let is_choice = |schema: &Value| self::is_choice(root, schema, deeper);
    let few = |kind: &Value| kind == "boolean" || kind == "null";
    let referred = schema["$ref"].as_str().and_then(|place| place.strip_prefix('#'));
    schema.get("enum").is_some()
        || schema.get("const").is_some()
        || few(&schema["type"])
        || schema["type"].as_array().is_some_and(|kinds| kinds.iter().all(few))
        || referred.and_then(|place| root.pointer(place)).is_some_and(is_choice)
        || ["anyOf", "oneOf"].iter().any(|of| schema[*of].as_array().is_some_and(|of| of.iter().all(is_choice)))
        || schema["allOf"].as_array().is_some_and(|of| of.iter().any(is_choice))
}

/// Returns the spellings of a value in a call: as its text, as JSON, as Python has it.
fn spellings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone(), value.to_string()],
        Value::Bool(true) => vec!["true".into(), "True".into()],
        Value::Bool(false) => vec!["false".into(), "False".into()],
        Value::Null => vec!["null".into(), "None".into()],
        other => vec![other.to_string()],
    }
}

fn first_in(text: &[u8], part: &[u8]) -> Option<usize> {
    (!part.is_empty()).then(|| text.windows(part.len()).position(|window| window == part)).flatten()
}

fn last_in(text: &[u8], part: &[u8]) -> Option<usize> {
    (!part.is_empty()).then(|| text.windows(part.len()).rposition(|window| window == part)).flatten()
}
