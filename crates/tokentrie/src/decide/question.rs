//! Questions as data, and how they are read from JSON.

use crate::constraint::SpecProblem;
use crate::json::{inner, refused_at, shorten_value, type_error, value_error};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::HashSet;
use trie_core::work::spend;

/// A question about a state.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Name of the question, and of its answer.
    pub name: String,
    /// Instructions, text or JSON. `None` asks with the name of the question; an empty text asks nothing.
    pub instructions: Option<Value>,
    /// Kind of the answer.
    pub kind: Kind,
}

/// Kind of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Yes or no, with what each of them means, where that is said.
    Predicate {
        /// Meaning of yes, text or JSON.
        yes: Option<Value>,
        /// Meaning of no, text or JSON.
        no: Option<Value>,
    },
    /// One of some options: a text or a boolean, and what it means; `null` is the option that none of them is meant.
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
                let text = |value: &Value| if value.is_null() { NONE_OF_THESE.to_owned() } else { as_text(value) };
                let texts: Vec<String> = options.iter().map(|(value, _)| text(value)).collect();
                // `true` and "true" are two, and look so as JSON.
                let distinct = texts.iter().collect::<HashSet<_>>().len() == texts.len();
                let as_json = |value: &Value| if value.is_null() { text(value) } else { value.to_string() };
                if distinct { texts } else { options.iter().map(|(value, _)| as_json(value)).collect() }
            }
        }
    }

    /// Returns the meaning of each option.
    pub(super) fn meanings(&self) -> Vec<Option<&Value>> {
        match self {
            Self::Predicate { yes, no } => vec![yes.as_ref(), no.as_ref()],
            Self::Choice(all) | Self::Score(all) => all.iter().map(|(_, meaning)| meaning.as_ref()).collect(),
        }
    }
}

/// The text of the option that none of the others is meant.
const NONE_OF_THESE: &str = "none of these";

impl Question {
    /// Adds to a choice the option that none of the others is meant: `null`.
    ///
    /// # Errors
    /// An option has this text already.
    pub(super) fn add_none(&mut self) -> Result<(), SpecProblem> {
        let Kind::Choice(options) = &mut self.kind else { return Ok(()) };
        if options.iter().any(|(value, _)| value == NONE_OF_THESE) {
            let reason = format!("the question {:?} has the option {NONE_OF_THESE:?} already", self.name);
            return Err(SpecProblem::Value(reason));
        }
        options.push((Value::Null, None));
        Ok(())
    }

    /// Returns the index of the right option. `gold` is a boolean, an option or level as it was given, its text, or the
    /// number of a level; for a predicate also `yes`, `true`, `1` and their opposites, as in tables.
    ///
    /// # Errors
    /// It is none of them.
    pub fn right_option(&self, gold: &Value) -> Result<usize, SpecProblem> {
        self.index_of(gold).ok_or_else(|| {
            SpecProblem::Value(format!("{} is not an answer to the question {:?}", shorten_value(gold), self.name))
        })
    }

    fn index_of(&self, gold: &Value) -> Option<usize> {
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

    /// Returns the question with its name.
    ///
    /// # Errors
    /// Nothing to choose from, an option without text, or one that stands there twice.
    pub(super) fn with_name(name: String, asked: UnnamedQuestion) -> Result<Self, SpecProblem> {
        let UnnamedQuestion { instructions, kind } = asked;
        let question = Self { name, instructions, kind };
        let refused = |reason: String| Err(SpecProblem::Value(reason));
        let texts = question.kind.texts();
        if texts.is_empty() {
            return refused("there is nothing to choose from".to_owned());
        }
        if texts.iter().any(String::is_empty) {
            return refused("an option has no text".to_owned());
        }
        let mut seen = HashSet::with_capacity(texts.len());
        if let Kind::Choice(all) | Kind::Score(all) = &question.kind {
            for (value, _) in all {
                spend(1)?;
                if let Some(twice) = seen.replace(value.to_string()) {
                    return refused(format!("{twice} stands there twice"));
                }
            }
        }
        Ok(question)
    }
}

/// A question without its name.
pub(super) struct UnnamedQuestion {
    instructions: Option<Value>,
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Predicate,
    Choice,
    Score,
}

/// The type of a question, beside which its fields stand.
#[derive(Deserialize)]
struct TypeTag {
    #[serde(rename = "type")]
    of: Type,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    #[serde(rename = "type")]
    _of: IgnoredAny,
    instructions: Option<Value>,
    yes: Option<Value>,
    no: Option<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    #[serde(rename = "type")]
    _of: IgnoredAny,
    instructions: Option<Value>,
    #[serde(deserialize_with = "options")]
    options: Vec<(Value, Option<Value>)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Score {
    #[serde(rename = "type")]
    _of: IgnoredAny,
    instructions: Option<Value>,
    levels: Vec<Level>,
}

impl<'de> Deserialize<'de> for UnnamedQuestion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(from)?;
        if value.is_object() && value.get("type").is_none_or(Value::is_null) {
            let types = "\"predicate\", \"choice\" or \"score\"".to_owned();
            return Err(refused_at("type", SpecProblem::Type { expected: types, given: "null".to_owned() }));
        }
        let (instructions, kind) = match inner::<TypeTag, _>(&value)?.of {
            Type::Predicate => {
                let Predicate { instructions, yes, no, .. } = inner(&value)?;
                (instructions, Kind::Predicate { yes, no })
            }
            Type::Choice => {
                let Choice { instructions, options, .. } = inner(&value)?;
                (instructions, Kind::Choice(options))
            }
            Type::Score => {
                let Score { instructions, levels, .. } = inner(&value)?;
                (instructions, Kind::Score(levels.into_iter().map(|level| level.0).collect()))
            }
        };
        Ok(Self { instructions, kind })
    }
}

/// Reads `["a", true, {"value": "b", "description": ...}]`, or `{"a": "what it means", "b": null}`.
fn options<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Value, Option<Value>)>, D::Error> {
    match Value::deserialize(from)? {
        Value::Object(described) => {
            let option = |(name, meaning): (String, Value)| {
                spend(1).map_err(value_error)?;
                Ok((Value::String(name), Some(meaning).filter(|meaning| !meaning.is_null())))
            };
            described.into_iter().map(option).collect()
        }
        listed => Ok(inner::<Vec<Choosable>, _>(&listed)?.into_iter().map(|option| option.0).collect()),
    }
}

/// An option, and what it means.
struct Choosable((Value, Option<Value>));

/// A level, and what it means.
struct Level((Value, Option<Value>));

impl<'de> Deserialize<'de> for Choosable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct DescribedValue {
            #[serde(deserialize_with = "plain")]
            value: Value,
            description: Option<Value>,
        }

        fn plain<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
            let value = Value::deserialize(from)?;
            if is_plain(&value) { Ok(value) } else { Err(type_error("a text", &value)) }
        }

        fn is_plain(value: &Value) -> bool {
            value.is_string() || value.is_boolean()
        }

        spend(1).map_err(value_error)?;
        match Value::deserialize(from)? {
            value if is_plain(&value) => Ok(Self((value, None))),
            described @ Value::Object(_) => {
                let DescribedValue { value, description } = inner(&described)?;
                Ok(Self((value, description)))
            }
            other => Err(type_error("a text, a boolean, or an object with \"value\"", &other)),
        }
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct DescribedLabel {
            label: String,
            description: Option<Value>,
        }

        spend(1).map_err(value_error)?;
        match Value::deserialize(from)? {
            label @ Value::String(_) => Ok(Self((label, None))),
            described @ Value::Object(_) => {
                let DescribedLabel { label, description } = inner(&described)?;
                Ok(Self((label.into(), description)))
            }
            other => Err(type_error("a text, or an object with \"label\"", &other)),
        }
    }
}
