//! Thinking before something else.

use crate::spec::build::Over;
use crate::spec::error::{SpecError, SpecProblem};
use crate::spec::fields::{Fields, text, token_ids, wrong_type};
use crate::spec::place::Place;
use crate::spec::read::Reader;
use crate::spec::{Host, Spec};
use serde_json::{Map, Value, json};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use trie_core::{AnyConstraint, Budget, Opening, ThinkGate, ThinkOptions, TokenId};
use trie_text::Vocab;

/// Free text up to a marker or a budget, and then something else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Think {
    /// What thinking begins with; may be empty.
    pub begin: Marker,
    /// What it ends with.
    pub end: Marker,
    /// The most tokens of it.
    pub budget: Option<Budget>,
    /// What is said before the end marker when the budget is used up.
    pub message: Marker,
    /// Who writes the begin marker.
    pub opening: Opening,
    /// Whether the rest of the end marker is forced once its first token came.
    pub at_once: bool,
    /// What may not come while thinking; `None` is what ends a generation.
    pub masked: Option<Vec<TokenId>>,
    /// What follows.
    pub then: Spec,
    /// A vocabulary that the host gave to this gate alone. It is no data.
    pub vocab: Option<OwnVocabulary>,
}

/// Tokens around thinking.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Marker {
    /// Their text; control tokens are meant by their names.
    Text(Arc<str>),
    /// Their ids.
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

const FIELDS: [&str; 10] =
    ["begin", "end", "budget", "then", "started", "optional", "message", "budget_from", "at_once", "masked"];

impl Marker {
    /// No tokens.
    pub fn none() -> Self {
        Self::Ids(Vec::new())
    }

    fn read(place: &Place<'_>, value: &Value) -> Result<Self, SpecError> {
        match value {
            Value::String(text) => Ok(Self::Text(text.as_str().into())),
            Value::Array(_) => token_ids(place, value).map(Self::Ids),
            other => Err(wrong_type(place, "a string or an array of token ids", other)),
        }
    }

    fn is_none(&self) -> bool {
        matches!(self, Self::Ids(ids) if ids.is_empty())
    }

    fn write(&self) -> Value {
        match self {
            Self::Text(text) => Value::String((**text).to_owned()),
            Self::Ids(ids) => ids.iter().map(|id| json!(id.get())).collect(),
        }
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

impl Think {
    pub(in crate::spec) fn read(place: &Place<'_>, value: &Value, reader: Reader<'_>) -> Result<Self, SpecError> {
        let fields = Fields::of(place, value, &FIELDS)?;
        let (started, optional) = (fields.flag("started", true)?, fields.flag("optional", false)?);
        let opening = match (started, optional) {
            (true, true) => {
                let reason = "it goes with \"started\": false: a begin marker in the prompt is no choice any more";
                return Err(SpecError::new(&place.field("optional"), SpecProblem::Value(reason.to_owned())));
            }
            (true, false) => Opening::Written,
            (false, false) => Opening::Forced,
            (false, true) => Opening::Optional,
        };
        let with_begin = fields.read("budget_from", |place, value| match text(place, value)? {
            "start" => Ok(true),
            "begin" => Ok(false),
            _ => Err(wrong_type(place, "\"start\" or \"begin\"", value)),
        })?;
        let budget = fields.count("budget")?;
        let marker = |name| Ok::<_, SpecError>(fields.read(name, Marker::read)?.unwrap_or_else(Marker::none));
        Ok(Self {
            begin: marker("begin")?,
            end: fields.need("end", Marker::read)?,
            budget: budget.map(|tokens| Budget { tokens, with_begin: with_begin.unwrap_or(true) }),
            message: marker("message")?,
            opening,
            at_once: fields.flag("at_once", true)?,
            masked: fields.read("masked", token_ids)?,
            then: fields.read("then", |place, value| Spec::read(place, value, reader))?.unwrap_or(Spec::Any),
            vocab: None,
        })
    }

    pub(in crate::spec) fn write(&self, place: &Place<'_>, deeper: usize) -> Result<Value, SpecError> {
        if self.vocab.is_some() {
            let kind = "gate with a vocabulary of its own".to_owned();
            return Err(SpecError::new(place, SpecProblem::NoData { kind }));
        }
        let mut fields = Map::new();
        if !self.begin.is_none() {
            fields.insert("begin".to_owned(), self.begin.write());
        }
        fields.insert("end".to_owned(), self.end.write());
        if let Some(budget) = self.budget {
            fields.insert("budget".to_owned(), budget.tokens.into());
            if !budget.with_begin {
                fields.insert("budget_from".to_owned(), "begin".into());
            }
        }
        if self.opening != Opening::Written {
            fields.insert("started".to_owned(), false.into());
        }
        if self.opening == Opening::Optional {
            fields.insert("optional".to_owned(), true.into());
        }
        if !self.message.is_none() {
            fields.insert("message".to_owned(), self.message.write());
        }
        if !self.at_once {
            fields.insert("at_once".to_owned(), false.into());
        }
        if let Some(masked) = &self.masked {
            fields.insert("masked".to_owned(), masked.iter().map(|id| json!(id.get())).collect());
        }
        fields.insert("then".to_owned(), self.then.write(&place.field("then"), deeper)?);
        Ok(Value::Object(fields))
    }

    /// In tokens. Where the vocabulary is not known, `ends` may not come while thinking.
    ///
    /// # Errors
    /// A marker that is text and has no tokens.
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

    pub(in crate::spec) fn spans(
        &self,
        place: &Place<'_>,
        over: &Over<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<crate::spec::Spans, SpecError> {
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
