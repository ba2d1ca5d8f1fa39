//! Parts of a form.

use crate::constraint::build::Over;
use crate::constraint::error::{SpecError, SpecProblem};
use crate::constraint::object::Object;
use crate::constraint::{Host, Spec, non_empty, values_are_plain};
use crate::json::MOST_DEPTH;
use crate::json::place::Place;
use crate::json::with::texts;
use crate::json::{inner, refused_at};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::sync::Arc;
use trie_text::SlotValues;

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// Fixed text, which the model does not choose.
    Literal(Arc<str>),
    /// A slot: one value of a spec.
    Slot {
        /// Name of the value.
        name: Arc<str>,
        /// Values of the slot.
        value: Spec,
    },
    /// Text that the model writes freely.
    Text {
        /// Name of the text.
        name: Arc<str>,
        /// Stop texts: the first one that is written ends the text. A reply has none, because the model ends it.
        stops: Vec<Arc<str>>,
        /// The most tokens of it.
        max_tokens: u32,
        /// Characters that may not occur in it; `None` are the usual ones.
        exclude: Option<Arc<str>>,
        /// Pattern of the whole text.
        pattern: Option<Spec>,
    },
}

/// The tokens of a text where nothing is said.
const USUAL_TOKENS: u32 = 64;

type Result<T> = std::result::Result<T, SpecError>;

/// A part that is filled, or a form whose parts stand in its place.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum FilledPart {
    #[serde(deserialize_with = "read_parts")]
    Form(Vec<Part>),
    Slot(Slot),
    Text(FreeText),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Slot {
    slot: String,
    value: Spec,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FreeText {
    text: String,
    #[serde(default, with = "texts", skip_serializing_if = "Vec::is_empty")]
    stop: Vec<Arc<str>>,
    #[serde(default = "usual_tokens", skip_serializing_if = "is_usual_tokens")]
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<Spec>,
}

const fn usual_tokens() -> u32 {
    USUAL_TOKENS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_usual_tokens(tokens: &u32) -> bool {
    *tokens == USUAL_TOKENS
}

impl FreeText {
    fn part<E: Error>(self) -> std::result::Result<Part, E> {
        let Self { text, stop, max_tokens, exclude, pattern } = self;
        if pattern.is_some() && exclude.is_some() {
            let reason = "it has no effect beside a pattern: leave those characters out of the pattern";
            return Err(refused_at("exclude", SpecProblem::Value(reason.to_owned())));
        }
        let is_reply = matches!(pattern, Some(Spec::Reply(_) | Spec::Object(Object::Constraint(_))));
        if is_reply && !stop.is_empty() {
            let reason = "a reply ends when the model ends it: leave stop out beside it";
            return Err(refused_at("stop", SpecProblem::Value(reason.to_owned())));
        }
        if !is_reply && stop.is_empty() {
            return Err(E::missing_field("stop"));
        }
        Ok(Part::Text { name: text.into(), stops: stop, max_tokens, exclude: exclude.map(Into::into), pattern })
    }
}

/// Reads parts; those of a form in a form stand in its place.
pub(in crate::constraint) fn read_parts<'de, D: Deserializer<'de>>(
    from: D,
) -> std::result::Result<Vec<Part>, D::Error> {
    struct Parts(Vec<Part>);

    impl<'de> Deserialize<'de> for Parts {
        fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
            let part = match Value::deserialize(from)? {
                Value::String(text) => Part::Literal(text.into()),
                other => match inner(&other)? {
                    FilledPart::Form(parts) => return Ok(Self(parts)),
                    FilledPart::Slot(Slot { slot, value }) => Part::Slot { name: slot.into(), value },
                    FilledPart::Text(text) => text.part()?,
                },
            };
            Ok(Self(vec![part]))
        }
    }

    Ok(non_empty::<Parts, _>(from)?.into_iter().flat_map(|Parts(parts)| parts).collect())
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        match self.clone() {
            Self::Literal(text) => to.serialize_str(&text),
            Self::Slot { name, value } => Slot { slot: (*name).to_owned(), value }.serialize(to),
            Self::Text { name, stops: stop, max_tokens, exclude, pattern } => {
                let exclude = exclude.map(|exclude| (*exclude).to_owned());
                FreeText { text: (*name).to_owned(), stop, max_tokens, exclude, pattern }.serialize(to)
            }
        }
    }
}

impl Part {
    /// The part over a vocabulary.
    pub(in crate::constraint) fn build_part(
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
    /// Returns the values of a slot with this name. In a payload they are the descriptor whose path is the name.
    ///
    /// # Errors
    /// [`SpecError`] for a spec that cannot stand in a slot, and as [`Spec::build`].
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
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                spec.slot_values(place, name, over, host, deeper)
            }
            Self::Object(Object::Constraint(_)) => refused("it is free text that ends when the model ends it"),
            Self::Payload { text, path: None } => {
                let payload = host.payload(text, Some(over.n_vocab));
                let payload = payload.map_err(|error| SpecError::new(place, error))?;
                host.report_dropped(&payload.report);
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
