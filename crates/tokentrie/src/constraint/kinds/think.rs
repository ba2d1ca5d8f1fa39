//! Thinking before another constraint.

use crate::constraint::build::Over;
use crate::constraint::error::{SpecError, SpecProblem};
use crate::constraint::{Host, Spec};
use crate::json::place::Place;
use crate::json::with::{Ids, is_true, is_usual, maybe_ids, text, yes};
use crate::json::{inner, refused_at, type_error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use trie_core::{AnyConstraint, Budget, Opening, ThinkGate, ThinkOptions, TokenId};
use trie_text::Vocab;

/// Free text up to a marker or a budget, and then another constraint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ThinkSpec {
    /// Marker that begins thinking; may be empty.
    pub begin: Marker,
    /// Marker that ends thinking.
    pub end: Marker,
    /// The most tokens of thinking.
    pub budget: Option<Budget>,
    /// Tokens inserted before the end marker when the budget is used up.
    pub message: Marker,
    /// Writer of the begin marker.
    pub opening: Opening,
    /// Forces the rest of the end marker once its first token has come.
    pub at_once: bool,
    /// Tokens forbidden while thinking; `None` is those that end a generation.
    pub masked: Option<Vec<TokenId>>,
    /// Constraint after the thinking.
    pub then: Spec,
    /// Vocabulary that the host gave for this gate only. It has no JSON form.
    pub vocab: Option<OwnVocabulary>,
}

/// Tokens that begin or end thinking.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Marker {
    /// Their text; control tokens are meant by their names.
    Text(#[serde(with = "text")] Arc<str>),
    /// Token ids of it.
    Ids(Vec<TokenId>),
}

/// A vocabulary, compared by its fingerprint.
#[derive(Debug, Clone)]
pub struct OwnVocabulary(pub Arc<Vocab>);

impl PartialEq for OwnVocabulary {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.fingerprint() == other.0.fingerprint()
    }
}

impl Eq for OwnVocabulary {}

impl Hash for OwnVocabulary {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.len().hash(state);
    }
}

/// Thinking as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThinkFields {
    #[serde(default, skip_serializing_if = "Marker::is_none")]
    begin: Marker,
    end: Marker,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<u32>,
    #[serde(default, skip_serializing_if = "is_usual")]
    budget_from: BudgetStart,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    started: bool,
    #[serde(default, skip_serializing_if = "is_usual")]
    optional: bool,
    #[serde(default, skip_serializing_if = "Marker::is_none")]
    message: Marker,
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    at_once: bool,
    #[serde(default, deserialize_with = "maybe_ids", skip_serializing_if = "Option::is_none")]
    masked: Option<Vec<TokenId>>,
    #[serde(default = "any")]
    then: Spec,
}

/// Start of the budget: at a begin marker or after it.
#[derive(Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BudgetStart {
    #[default]
    Start,
    Begin,
}

const fn any() -> Spec {
    Spec::Any
}

impl<'de> Deserialize<'de> for ThinkSpec {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = ThinkFields::deserialize(from)?;
        let opening = match (written.started, written.optional) {
            (true, true) => {
                let reason = "it goes with \"started\": false: a begin marker in the prompt is not optional";
                return Err(refused_at("optional", SpecProblem::Value(reason.to_owned())));
            }
            (true, false) => Opening::Written,
            (false, false) => Opening::Forced,
            (false, true) => Opening::Optional,
        };
        let with_begin = written.budget_from == BudgetStart::Start;
        let ThinkFields { begin, end, message, at_once, masked, then, .. } = written;
        let budget = written.budget.map(|tokens| Budget { tokens, with_begin });
        Ok(Self { begin, end, budget, message, opening, at_once, masked, then, vocab: None })
    }
}

impl Serialize for ThinkSpec {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { begin, end, budget, message, opening, at_once, masked, then, vocab: _ } = self.clone();
        let budget_from =
            if budget.is_none_or(|budget| budget.with_begin) { BudgetStart::Start } else { BudgetStart::Begin };
        let budget = budget.map(|budget| budget.tokens);
        let (started, optional) = (opening == Opening::Written, opening == Opening::Optional);
        let written =
            ThinkFields { begin, end, budget, budget_from, started, optional, message, at_once, masked, then };
        written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Marker {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(text) => Ok(Self::Text(text.into())),
            ids @ Value::Array(_) => Ok(Self::Ids(inner::<Ids, _>(&ids)?.0)),
            other => Err(type_error("a string or an array of token ids", &other)),
        }
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self::none()
    }
}

impl Marker {
    /// Returns an empty marker.
    pub fn none() -> Self {
        Self::Ids(Vec::new())
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.is_empty())
    }

    /// Its tokens. `what` is its name.
    fn ids(&self, what: &str, vocab: Option<&Arc<Vocab>>) -> Result<Vec<TokenId>, SpecProblem> {
        let text = match self {
            Self::Ids(ids) => return Ok(ids.clone()),
            Self::Text(text) => text,
        };
        let Some(vocab) = vocab else {
            let message = format!("{what} is the str {text:?}: it needs a Vocab that can tokenize, or give its ids");
            return Err(SpecProblem::Marker(message));
        };
        let none = || SpecProblem::Marker(format!("{what}: the vocabulary has no tokens for {text:?}"));
        vocab.tokenize_marker(text).ok_or_else(none)
    }
}

impl ThinkSpec {
    /// Returns the options with markers in tokens. If the vocabulary is not known, `ends` are the tokens that may not
    /// come while thinking.
    ///
    /// # Errors
    /// A text marker for which the vocabulary has no tokens.
    pub fn options(&self, vocab: Option<&Arc<Vocab>>, ends: &[TokenId]) -> Result<ThinkOptions, SpecProblem> {
        let vocab = self.vocab.as_ref().map(|own| &own.0).or(vocab);
        let masked = match (&self.masked, vocab) {
            (Some(masked), _) => masked.clone(),
            (None, Some(vocab)) => vocab.end_of_generation().to_vec(),
            (None, None) => ends.to_vec(),
        };
        Ok(ThinkOptions {
            begin: self.begin.ids("begin", vocab)?,
            end: self.end.ids("end", vocab)?,
            budget: self.budget,
            message: self.message.ids("message", vocab)?,
            opening: self.opening,
            at_once: self.at_once,
            masked,
        })
    }

    pub(in crate::constraint) fn spans(
        &self,
        place: &Place<'_>,
        over: &Over<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<crate::constraint::Spans, SpecError> {
        let over = match &self.vocab {
            Some(own) => Over { vocab: Some(&own.0), ..*over },
            None => *over,
        };
        let then = self.then.spans(&place.field("then"), &over, host, deeper)?;
        let options = self.options(over.vocab, &[]).map_err(|problem| SpecError::new(place, problem))?;
        let gate = |(path, then): &(String, AnyConstraint)| {
            let gate = ThinkGate::new(options.clone(), then.clone());
            Ok((path.clone(), AnyConstraint::new(gate.map_err(|error| SpecError::new(place, error))?)))
        };
        then.iter().map(gate).collect::<Result<Vec<_>, _>>().map(Into::into)
    }
}
