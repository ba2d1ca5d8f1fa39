//! Parts of forms.

use crate::spec::build::Over;
use crate::spec::error::{SpecError, SpecProblem};
use crate::spec::fields::{Fields, text, texts, wrong_type};
use crate::spec::json::MOST_DEPTH;
use crate::spec::object::Object;
use crate::spec::place::Place;
use crate::spec::read::Reader;
use crate::spec::{Host, Spec, values_are_plain};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use trie_text::SlotValues;

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// Text that stands there whatever the model says.
    Literal(Arc<str>),
    /// One value of what a spec says.
    Slot {
        /// What the value is called.
        name: Arc<str>,
        /// The values.
        value: Spec,
    },
    /// Text that the model writes freely.
    Text {
        /// What it is called.
        name: Arc<str>,
        /// What ends it: the first of these that is written. None beside a reply, which the model ends.
        stops: Vec<Arc<str>>,
        /// The most tokens of it.
        max_tokens: u32,
        /// Characters that may not occur in it; `None` are the usual ones.
        exclude: Option<Arc<str>>,
        /// What it must be as a whole.
        pattern: Option<Spec>,
    },
}

/// The tokens of a text where nothing is said.
const USUAL_TOKENS: u32 = 64;

type Result<T> = std::result::Result<T, SpecError>;

impl Part {
    pub(in crate::spec) fn read(place: &Place<'_>, value: &Value, reader: Reader<'_>) -> Result<Self> {
        if let Value::String(text) = value {
            return Ok(Self::Literal(text.as_str().into()));
        }
        let expected = "a string, or an object with \"slot\", \"text\" or \"form\"";
        let Some(object) = value.as_object() else { return Err(wrong_type(place, expected, value)) };
        let spec = |place: &Place<'_>, value| Spec::read(place, value, reader);
        let name = |place: &Place<'_>, value| Ok(text(place, value)?.into());
        if object.contains_key("slot") {
            let fields = Fields::over(place, object, &["slot", "value"])?;
            return Ok(Self::Slot { name: fields.need("slot", name)?, value: fields.need("value", spec)? });
        }
        if !object.contains_key("text") {
            return Err(wrong_type(place, expected, value));
        }
        let fields = Fields::over(place, object, &["text", "stop", "max_tokens", "exclude", "pattern"])?;
        let stops = texts(&fields, "stop")?;
        let (exclude, pattern) = (fields.text("exclude")?, fields.read("pattern", spec)?);
        if pattern.is_some() && exclude.is_some() {
            let reason = "it has no effect beside a pattern: leave those characters out of the pattern";
            return Err(SpecError::new(&place.field("exclude"), SpecProblem::Value(reason.to_owned())));
        }
        let is_reply = matches!(pattern, Some(Spec::Reply(_) | Spec::Object(Object::Constraint(_))));
        if is_reply && !stops.is_empty() {
            let reason = "a reply ends when the model ends it: leave stop out beside it";
            return Err(SpecError::new(&place.field("stop"), SpecProblem::Value(reason.to_owned())));
        }
        if !is_reply && stops.is_empty() {
            return Err(SpecError::new(place, SpecProblem::Missing { name: "stop" }));
        }
        let max_tokens = fields.count("max_tokens")?.unwrap_or(USUAL_TOKENS);
        Ok(Self::Text { name: fields.need("text", name)?, stops, max_tokens, exclude, pattern })
    }

    pub(in crate::spec) fn write(&self, place: &Place<'_>, deeper: usize) -> Result<Value> {
        Ok(match self {
            Self::Literal(text) => Value::String((**text).to_owned()),
            Self::Slot { name, value } => {
                json!({"slot": &**name, "value": value.write(&place.field("value"), deeper)?})
            }
            Self::Text { name, stops, max_tokens, exclude, pattern } => {
                let mut fields = Map::from_iter([("text".to_owned(), Value::from(&**name))]);
                let stop = match &stops[..] {
                    [] => None,
                    [one] => Some(Value::from(&**one)),
                    several => Some(several.iter().map(|stop| Value::from(&**stop)).collect()),
                };
                fields.extend(stop.map(|stop| ("stop".to_owned(), stop)));
                if *max_tokens != USUAL_TOKENS {
                    fields.insert("max_tokens".to_owned(), (*max_tokens).into());
                }
                if let Some(exclude) = exclude {
                    fields.insert("exclude".to_owned(), (&**exclude).into());
                }
                if let Some(pattern) = pattern {
                    fields.insert("pattern".to_owned(), pattern.write(&place.field("pattern"), deeper)?);
                }
                Value::Object(fields)
            }
        })
    }

    /// The part over a vocabulary.
    pub(in crate::spec) fn over(
        &self,
        place: &Place<'_>,
        over: &Over<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<trie_text::Part> {
        Ok(match self {
            Self::Literal(text) => trie_text::Part::Literal((**text).to_owned()),
            Self::Slot { name, value } => {
                let values = value.slot_values(&place.field("value"), name, over, host, deeper)?;
                trie_text::Part::Slot { name: (**name).to_owned(), values }
            }
            Self::Text { name, stops, max_tokens, exclude, pattern } => {
                let tokens = *max_tokens as usize;
                let at = place.field("pattern");
                if let Some(reply @ (Spec::Reply(_) | Spec::Object(Object::Constraint(_)))) = pattern {
                    let spans = reply.spans(&at, over, host, deeper)?;
                    let constraint = spans[0].1.clone();
                    return Ok(trie_text::Part::Held { name: (**name).to_owned(), constraint, max_tokens: tokens });
                }
                let part = trie_text::Part::text(&**name, stops.iter().map(|stop| &**stop), tokens);
                let trie_text::Part::Text { name, stops, max_tokens, exclude: usual, .. } = part else {
                    return Ok(part);
                };
                let rule = |pattern: &Spec| {
                    pattern.rule_at(&at, host, deeper)?.ok_or_else(|| {
                        let reason = "the pattern of a text is a rule over bytes, such as a regex, or a reply";
                        SpecError::new(
                            &at,
                            SpecProblem::NotHere { kind: pattern.kind().to_owned(), here: "here", reason },
                        )
                    })
                };
                let pattern = pattern.as_ref().map(rule).transpose()?;
                let exclude = exclude.as_ref().map_or(usual, |exclude| exclude.chars().collect());
                trie_text::Part::Text { name, stops, max_tokens, exclude, pattern }
            }
        })
    }
}

fn is_choice(spec: &Spec) -> bool {
    matches!(spec, Spec::Choice(_))
}

impl Spec {
    /// What may stand in a slot of this name. Of a payload it is the descriptor with the name as its path.
    ///
    /// # Errors
    /// [`SpecError`]: what cannot stand in a slot, and as [`Spec::build`].
    pub fn slot(&self, name: &str, over: &Over<'_>, host: &dyn Host) -> Result<SlotValues> {
        self.slot_values(&Place::ROOT, name, over, host, MOST_DEPTH)
    }

    fn slot_values(
        &self,
        place: &Place<'_>,
        name: &str,
        over: &Over<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<SlotValues> {
        let refused = |reason| {
            let kind = match self {
                Self::Object(Object::Constraint(constraint)) => constraint.name(),
                other => other.kind().to_owned(),
            };
            Err(SpecError::new(place, SpecProblem::NotHere { kind, here: "in a slot", reason }))
        };
        match self {
            Self::Think(_) => refused("let the model think in a text with the end marker as its stop, before the slot"),
            Self::Reply(_) => refused("a reply is free text: give it to a text as its pattern"),
            Self::Form(_) => refused("put it into this form as a part, without a slot"),
            Self::Choice(values) if values_are_plain(values) => Ok(SlotValues::Texts(values.values.to_vec())),
            Self::Object(Object::Compiled(compiled)) => match compiled.made_at(place, host, deeper)? {
                Some(made) => Ok(SlotValues::Rule(Arc::clone(&made.rule))),
                None => compiled.spec().slot_values(place, name, over, host, deeper),
            },
            Self::Name(_) => {
                let (spec, deeper) = self.named(place, host, deeper)?;
                spec.slot_values(place, name, over, host, deeper)
            }
            Self::Object(Object::Constraint(_)) => refused("it is free text that ends when the model ends it"),
            Self::Payload { text, path: None } => {
                let payload = host.payload(text, Some(over.n_vocab));
                let payload = payload.map_err(|error| SpecError::new(place, error))?;
                host.dropped(&payload.report);
                let set = payload.trie(Some(name)).map_err(|error| SpecError::new(place, error))?;
                Ok(SlotValues::from(set.clone()))
            }
            other => {
                if let Some(rule) = other.rule_at(place, host, deeper)? {
                    return Ok(SlotValues::Rule(rule));
                }
                if over.vocab.is_none() && matches!(other, Self::Sequence(parts) if parts.iter().any(is_choice)) {
                    let reason = "a Sequence in a slot must be made of tries: Trie.from_strings(vocab, ...) makes one \
                                  of a list of str";
                    return Err(SpecError::new(place, SpecProblem::Value(reason.to_owned())));
                }
                let spans = other.spans(place, over, host, deeper)?;
                Ok(SlotValues::Tokens(spans[0].1.clone()))
            }
        }
    }
}
