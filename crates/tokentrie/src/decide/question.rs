//! What is asked, as data.

use crate::constraint::{SpecError, SpecProblem};
use crate::json::fields::{Fields, array, wrong_type};
use crate::json::place::Place;
use serde_json::Value;
use std::collections::HashSet;

type Result<T> = std::result::Result<T, SpecError>;

/// A question about a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// By which its answer is known.
    pub name: String,
    /// What is asked, text or JSON; `None` asks the name, an empty text nothing.
    pub instructions: Option<Value>,
    /// What may be answered.
    pub kind: Kind,
}

/// What may be answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Yes or no, with what each of them means, where that is said.
    Predicate {
        /// Text or JSON.
        yes: Option<Value>,
        /// Text or JSON.
        no: Option<Value>,
    },
    /// One of some options: a text or a boolean, and what it means.
    Choice(Vec<(Value, Option<Value>)>),
    /// One of some levels, lowest first: a text, or JSON, and what it means.
    Score(Vec<(Value, Option<Value>)>),
}

/// JSON as the text that a model reads.
pub(super) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Kind {
    /// The text of each thing that may be answered.
    pub(super) fn texts(&self) -> Vec<String> {
        match self {
            Self::Predicate { .. } => vec!["yes".to_owned(), "no".to_owned()],
            Self::Score(levels) => levels.iter().map(|(label, _)| as_text(label)).collect(),
            Self::Choice(options) => {
                let texts: Vec<String> = options.iter().map(|(value, _)| as_text(value)).collect();
                // `true` and "true" are two, and look so as JSON.
                let distinct = texts.iter().collect::<HashSet<_>>().len() == texts.len();
                if distinct { texts } else { options.iter().map(|(value, _)| value.to_string()).collect() }
            }
        }
    }

    /// What each of them means.
    pub(super) fn meanings(&self) -> Vec<Option<&Value>> {
        match self {
            Self::Predicate { yes, no } => vec![yes.as_ref(), no.as_ref()],
            Self::Choice(all) | Self::Score(all) => all.iter().map(|(_, meaning)| meaning.as_ref()).collect(),
        }
    }
}

impl Question {
    pub(super) fn read(place: &Place<'_>, name: &str, value: &Value) -> Result<Self> {
        let kind = value.get("type").and_then(Value::as_str);
        let known: &[&str] = match kind {
            Some("predicate") => &["type", "instructions", "yes", "no"],
            Some("choice") => &["type", "instructions", "options"],
            Some("score") => &["type", "instructions", "levels"],
            _ => &["type"],
        };
        if kind.is_none_or(|_| known.len() == 1) {
            let kind = value.get("type").unwrap_or(&Value::Null);
            return Err(wrong_type(&place.field("type"), "\"predicate\", \"choice\" or \"score\"", kind));
        }
        let fields = Fields::of(place, value, known)?;
        let of = |name: &str| fields.get(name).cloned();
        let kind = match kind {
            Some("predicate") => Kind::Predicate { yes: of("yes"), no: of("no") },
            Some("choice") => Kind::Choice(fields.need("options", options)?),
            _ => Kind::Score(fields.need("levels", levels)?),
        };
        let question = Self { name: name.to_owned(), instructions: of("instructions"), kind };
        question.check(place)?;
        Ok(question)
    }

    /// The number of the option that is right: a boolean, an option or level as it was given or its text, the number of
    /// a level; of a predicate also `yes`, `true`, `1` and their opposites, as tables have them.
    pub fn index_of(&self, gold: &Value) -> Option<usize> {
        let text = as_text(gold);
        let by_text = |values: &[(Value, Option<Value>)]| {
            let same = values.iter().position(|(value, _)| value == gold);
            same.or_else(|| values.iter().position(|(value, _)| as_text(value) == text))
        };
        match &self.kind {
            Kind::Predicate { .. } => match text.trim().to_lowercase().as_str() {
                "yes" | "true" | "1" => Some(0),
                "no" | "false" | "0" => Some(1),
                _ => None,
            },
            Kind::Choice(options) => by_text(options),
            Kind::Score(levels) => {
                by_text(levels).or_else(|| text.trim().parse().ok().filter(|level| *level < levels.len()))
            }
        }
    }

    fn check(&self, place: &Place<'_>) -> Result<()> {
        let refused = |reason: String| Err(SpecError::new(place, SpecProblem::Value(reason)));
        let texts = self.kind.texts();
        if texts.is_empty() {
            return refused("there is nothing to choose from".to_owned());
        }
        if texts.iter().any(String::is_empty) {
            return refused("an option has no text".to_owned());
        }
        let mut seen = HashSet::with_capacity(texts.len());
        if let Kind::Choice(all) | Kind::Score(all) = &self.kind {
            for (value, _) in all {
                SpecError::step(place)?;
                if let Some(twice) = seen.replace(value.to_string()) {
                    return refused(format!("{twice} stands there twice"));
                }
            }
        }
        Ok(())
    }
}

/// `["a", true, {"value": "b", "description": ...}]`, or `{"a": "what it means", "b": null}`.
fn options(place: &Place<'_>, value: &Value) -> Result<Vec<(Value, Option<Value>)>> {
    if let Some(described) = value.as_object() {
        let option = |(name, meaning): (&String, &Value)| {
            SpecError::step(place)?;
            Ok((Value::String(name.clone()), Some(meaning.clone()).filter(|meaning| !meaning.is_null())))
        };
        return described.iter().map(option).collect();
    }
    let is_option = |value: &Value| value.is_string() || value.is_boolean();
    parts(place, value, "value", "a text, a boolean, or an object with \"value\"", is_option)
}

/// `["low", {"label": "high", "description": ...}]`.
fn levels(place: &Place<'_>, value: &Value) -> Result<Vec<(Value, Option<Value>)>> {
    parts(place, value, "label", "a text, or an object with \"label\"", Value::is_string)
}

fn parts(
    place: &Place<'_>,
    value: &Value,
    name: &'static str,
    expected: &'static str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Vec<(Value, Option<Value>)>> {
    let part =
        |(number, value): (usize, &Value)| {
            let place = place.item(number);
            SpecError::step(&place)?;
            if fits(value) {
                return Ok((value.clone(), None));
            }
            if !value.is_object() {
                return Err(wrong_type(&place, expected, value));
            }
            let fields = Fields::of(&place, value, &[name, "description"])?;
            let said = fields.need(name, |place, value| {
                if fits(value) { Ok(value.clone()) } else { Err(wrong_type(place, "a text", value)) }
            })?;
            Ok((said, fields.get("description").cloned()))
        };
    array(place, value)?.iter().enumerate().map(part).collect()
}
