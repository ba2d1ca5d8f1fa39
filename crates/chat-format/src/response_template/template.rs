//! A response template: its fields, and where they begin and end.

use super::content::Content;
use super::error::ResponseError;
use super::pattern::{Pattern, PatternMatch};
use super::transform::Transform;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A response template: JSON by which the author of a model says how its replies are read, as `transformers` keeps it
/// in `tokenizer_config.json`. Cheap to clone.
///
/// ```
/// use chat_format::response_template::ResponseTemplate;
/// use serde_json::json;
///
/// let template = ResponseTemplate::new(&json!({
///     "start_anchor": "<|bot|>",
///     "fields": {
///         "reasoning_content": {"open": "<think>", "close": "</think>"},
///         "content": {"close": "<|end|>"},
///     },
/// }))?;
/// let message = template.parse("<|bot|>", "<think>A bell.</think>Ding.<|end|>", &[])?;
/// assert_eq!(message, json!({"reasoning_content": "A bell.", "content": "Ding."}));
/// # Ok::<(), chat_format::response_template::ResponseError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ResponseTemplate(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    source: Value,
    pub(super) defaults: Map<String, Value>,
    pub(super) fields: Vec<Field>,
    /// The field of the text that no other field holds.
    pub(super) implicit: Option<usize>,
    start: Anchor,
}

/// A field of the message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) open: Option<Anchor>,
    pub(super) close: Option<Anchor>,
    pub(super) content: Content,
    pub(super) repeats: bool,
    pub(super) join: Option<String>,
    pub(super) optional: bool,
    pub(super) transform: Option<Transform>,
}

/// The text that begins or ends a region.
#[derive(Debug)]
pub(super) struct Anchor {
    pub(super) pattern: Pattern,
    /// The texts, unless it is a pattern.
    pub(super) texts: Option<Vec<String>>,
    /// True if one of the texts begins another.
    extends: bool,
}

impl Anchor {
    /// Returns whether a match could still change with more text.
    pub(super) fn may_change(&self, found: &PatternMatch, text: &mut Vec<char>) -> bool {
        if found.end != text.len() {
            if self.texts.is_some() {
                return false;
            }
            // A sign that ends neither the text nor a line shows what leant on the end.
            text.push('\0');
            let again = self.pattern.match_at(text, found.start);
            text.pop();
            return again.is_none_or(|again| !again.is_same(found));
        }
        found.start == found.end || self.texts.is_none() || self.extends
    }
}

impl ResponseTemplate {
    /// Reads a response template.
    ///
    /// # Errors
    /// The value is none: it has an unknown key, a pattern or content parser that cannot be used, or no `fields` or
    /// `start_anchor`.
    pub fn new(source: &Value) -> Result<Self, ResponseError> {
        let wrong = |reason: String| ResponseError::Template { at: String::new(), reason };
        let Some(keys) = source.as_object() else { return Err(wrong(format!("expected an object, got {source}"))) };
        known_keys(keys, &["version", "defaults", "fields", "start_anchor", "start_anchor_pattern"]).map_err(wrong)?;
        if let Some(version) = keys.get("version").filter(|version| version.as_f64() != Some(1.0)) {
            return Err(wrong(format!("version {version} is not supported: it must be 1")));
        }
        let defaults = match keys.get("defaults") {
            None => Map::new(),
            Some(Value::Object(defaults)) => defaults.clone(),
            Some(other) => return Err(wrong(format!("invalid defaults: expected an object, got {other}"))),
        };
        let given = keys.get("fields").and_then(Value::as_object).filter(|fields| !fields.is_empty());
        let Some(given) = given else {
            return Err(wrong("invalid fields: expected an object with at least one field".into()));
        };
        let field = |(name, field): (&String, &Value)| {
            let at = format!("field {name:?}: ");
            Field::new(name, field).map_err(|reason| ResponseError::Template { at, reason })
        };
        let fields: Vec<Field> = given.iter().map(field).collect::<Result<_, _>>()?;
        let open: Vec<usize> = (0..fields.len()).filter(|&number| fields[number].open.is_none()).collect();
        if let [first, second, ..] = open[..] {
            let (first, second) = (&fields[first].name, &fields[second].name);
            let reason = format!("fields {first:?} and {second:?} have no open: one at most holds the text between");
            return Err(wrong(reason));
        }
        let start = anchor(keys, "start_anchor", "start_anchor_pattern").map_err(wrong)?;
        let start = start.ok_or_else(|| wrong("it needs start_anchor or start_anchor_pattern".into()))?;
        let implicit = open.first().copied();
        Ok(Self(Arc::new(Inner { source: source.clone(), defaults, fields, implicit, start })))
    }

    /// Reads the text of a JSON file: a response template, or a `tokenizer_config.json` that holds one.
    ///
    /// # Errors
    /// As [`ResponseTemplate::new`], and for a text that is not JSON.
    pub fn from_json(text: &str) -> Result<Self, ResponseError> {
        let wrong = |reason: String| ResponseError::Template { at: String::new(), reason };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(format!("it is not JSON: {error}")))?;
        Self::new(value.get("response_template").unwrap_or(&value))
    }

    /// Returns the JSON of the response template.
    pub fn source(&self) -> &Value {
        &self.0.source
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }

    /// The texts that begin the reply in a prompt, if they are no pattern.
    pub(super) fn start_texts(&self) -> Option<&[String]> {
        self.0.start.texts.as_deref()
    }

    /// The syntax of the text that begins the reply in a prompt.
    pub(super) fn start(&self) -> &Anchor {
        &self.0.start
    }
}

impl Inner {
    /// The part of a prompt after the last text that begins a reply; the whole prompt if there is none.
    pub(super) fn reply_in(&self, prompt: &[char]) -> usize {
        let (mut at, mut last) = (0, 0);
        while at <= prompt.len() {
            let Some(found) = self.start.pattern.search(prompt, at, false) else { break };
            last = found.end;
            at = if found.end == found.start { found.end + 1 } else { found.end };
        }
        last
    }
}

impl Field {
    fn new(name: &str, field: &Value) -> Result<Self, String> {
        const KEYS: [&str; 11] = [
            "open",
            "open_pattern",
            "close",
            "close_pattern",
            "content",
            "content_args",
            "repeats",
            "join",
            "optional",
            "transform",
            "transform_each",
        ];
        let Some(keys) = field.as_object() else { return Err(format!("expected an object, got {field}")) };
        known_keys(keys, &KEYS)?;
        let content = match keys.get("content") {
            None => "text",
            Some(Value::String(content)) => content,
            Some(other) => return Err(format!("invalid content: expected a text, got {other}")),
        };
        let content = Content::new(content, keys.get("content_args"))?;
        let open = anchor(keys, "open", "open_pattern")?;
        let close = anchor(keys, "close", "close_pattern")?;
        let flag = |key: &str, default: bool| match keys.get(key) {
            None => Ok(default),
            Some(Value::Bool(value)) => Ok(*value),
            Some(other) => Err(format!("invalid {key}: expected true or false, got {other}")),
        };
        let repeats = flag("repeats", false)?;
        let join = match keys.get("join") {
            None | Some(Value::Null) => None,
            Some(Value::String(_)) if !repeats => return Err("join needs \"repeats\": true".into()),
            Some(Value::String(join)) => Some(join.clone()),
            Some(other) => return Err(format!("invalid join: expected a text, got {other}")),
        };
        let each = flag("transform_each", false)?;
        let given = keys.get("transform").filter(|transform| !transform.is_null());
        let transform = given.map(|transform| Transform::new(transform, each)).transpose()?;
        if transform.is_none() {
            if each {
                return Err("transform_each needs a transform".into());
            }
            let mut names = open.iter().chain(&close).flat_map(|anchor| anchor.pattern.names());
            if let Some(name) = names.next() {
                return Err(format!("the group {name:?} of a pattern needs a transform that uses it"));
            }
        }
        let optional = flag("optional", true)?;
        Ok(Self { name: name.to_owned(), open, close, content, repeats, join, optional, transform })
    }
}

fn known_keys(given: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    match given.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!("unknown key {key:?}: there are {}", known.join(", "))),
    }
}

/// The anchor under one of two keys: texts, or a pattern.
fn anchor(keys: &Map<String, Value>, texts: &str, pattern: &str) -> Result<Option<Anchor>, String> {
    match (keys.get(texts), keys.get(pattern)) {
        (Some(_), Some(_)) => Err(format!("it has both {texts} and {pattern}")),
        (None, None) => Ok(None),
        (None, Some(Value::String(text))) => {
            let made = Pattern::new(text).map_err(|reason| format!("invalid {pattern} {text:?}: {reason}"))?;
            Ok(Some(Anchor { pattern: made, texts: None, extends: false }))
        }
        (None, Some(other)) => Err(format!("invalid {pattern}: expected a text, got {other}")),
        (Some(given), None) => {
            let wrong = || format!("invalid {texts}: expected a text or a list of texts, none empty, got {given}");
            let one = std::slice::from_ref(given);
            let list = if given.is_string() { one } else { given.as_array().map_or(&[][..], Vec::as_slice) };
            let mut found: Vec<String> = Vec::new();
            for text in list {
                let text = text.as_str().filter(|text| !text.is_empty()).ok_or_else(wrong)?;
                if !found.iter().any(|known| known == text) {
                    found.push(text.to_owned());
                }
            }
            if found.is_empty() {
                return Err(wrong());
            }
            let begins = |one: &String| found.iter().any(|other| other != one && other.starts_with(&one[..]));
            let extends = found.iter().any(begins);
            let made = Pattern::of_texts(&found).map_err(|reason| format!("invalid {texts}: {reason}"))?;
            Ok(Some(Anchor { pattern: made, texts: Some(found), extends }))
        }
    }
}
