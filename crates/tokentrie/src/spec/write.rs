//! To JSON: one text for one content. Fields that say what holds without them are left out.

use super::error::{SpecError, SpecProblem};
use super::fields::{EXACT, written};
use super::json::MOST_DEPTH;
use super::place::Place;
use super::{Blanks, Object, Piece, Spec};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use trie_text::{TextValues, Tokenization};

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// The JSON form.
    ///
    /// # Errors
    /// [`SpecProblem::NoData`] for what a host holds as an object.
    pub fn to_json(&self) -> Result<String> {
        Ok(self.write(&Place::ROOT, MOST_DEPTH)?.to_string())
    }

    pub(super) fn write(&self, place: &Place<'_>, deeper: usize) -> Result<Value> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        if let Self::Object(Object::Compiled(compiled)) = self {
            return compiled.written().write(place, deeper);
        }
        let kind = self.kind();
        let at = place.field(kind);
        let mut beside = Map::new();
        let inner = match self {
            Self::Any => json!({}),
            Self::Choice(values) => {
                beside_choice(values, &mut beside);
                values.values.iter().map(|value| Value::from(value.as_str())).collect()
            }
            Self::Set(text) | Self::Name(text) => (**text).into(),
            Self::Payload { text, path } => {
                beside.extend(path.as_ref().map(|path| ("path".to_owned(), (**path).into())));
                serde_json::from_slice(text).map_err(|error| {
                    let reason = format!("the payload is no JSON: {error}");
                    SpecError::new(&at, SpecProblem::Value(reason))
                })?
            }
            Self::Lark { text, limits } | Self::Gbnf { text, limits } => {
                beside.extend(limits.write().map(|limits| ("limits".to_owned(), limits)));
                (**text).into()
            }
            Self::Wasm { module, limits } => {
                beside.extend(limits.write().map(|limits| ("limits".to_owned(), limits)));
                STANDARD.encode(module).into()
            }
            Self::Regex { pattern, max_bytes, limits } => {
                beside.extend(max_bytes.map(|bytes| ("max_bytes".to_owned(), bytes.into())));
                beside.extend(limits.write().map(|limits| ("limits".to_owned(), limits)));
                (**pattern).into()
            }
            Self::Grammar { text, lenient, limits } => {
                beside.extend(lenient.then(|| ("lenient".to_owned(), true.into())));
                beside.extend(limits.write().map(|limits| ("limits".to_owned(), limits)));
                (**text).into()
            }
            Self::JsonSchema(schema) => {
                let whitespace: Option<Value> = match &schema.whitespace {
                    Blanks::Few => None,
                    Blanks::Any => Some(true.into()),
                    Blanks::None => Some(false.into()),
                    Blanks::Pattern(pattern) => Some((**pattern).into()),
                };
                beside.extend(whitespace.map(|blanks| ("whitespace".to_owned(), blanks)));
                beside.extend((!schema.unicode_escapes).then(|| ("unicode_escapes".to_owned(), false.into())));
                beside.extend(schema.lenient.then(|| ("lenient".to_owned(), true.into())));
                beside.extend(schema.limits.write().map(|limits| ("limits".to_owned(), limits)));
                serde_json::from_str(&schema.schema).map_err(|error| {
                    let reason = format!("the schema is no JSON: {error}");
                    SpecError::new(&at, SpecProblem::Value(reason))
                })?
            }
            Self::Integer { min, max } => {
                let number = |number: i128| match i64::try_from(number) {
                    Ok(small) if number.abs() <= EXACT => Value::from(small),
                    _ => number.to_string().into(),
                };
                written([("min", min.map(number)), ("max", max.map(number))])
            }
            Self::Moment(moment) => moment.write(),
            Self::Number(number) => number.write(),
            Self::String(string) => written([
                ("min_chars", (string.min_chars > 0).then(|| string.min_chars.into())),
                ("max_chars", string.max_chars.map(Into::into)),
                ("quotes", string.quotes.then_some(Value::Bool(true))),
            ]),
            Self::OneOf(pieces) | Self::Then(pieces) => {
                let piece = |(index, piece): (usize, &Piece)| piece.write(&at.item(index), deeper);
                pieces.iter().enumerate().map(piece).collect::<Result<_>>()?
            }
            Self::Repeat(repeat) => repeat.write(&at, deeper)?,
            Self::Sequence(parts) => {
                let part = |(index, part): (usize, &Self)| part.write(&at.item(index), deeper);
                parts.iter().enumerate().map(part).collect::<Result<_>>()?
            }
            Self::Form(parts) => {
                let part = |(index, part): (usize, &super::Part)| part.write(&at.item(index), deeper);
                parts.iter().enumerate().map(part).collect::<Result<_>>()?
            }
            Self::Think(think) => think.write(&at, deeper)?,
            Self::Reply(reply) => reply.write(),
            Self::Object(object) => {
                return Err(SpecError::new(place, SpecProblem::NoData { kind: object.kind().to_owned() }));
            }
        };
        let mut object = Map::from_iter([(kind.to_owned(), inner)]);
        object.extend(beside);
        Ok(Value::Object(object))
    }
}

impl Piece {
    pub(super) fn write(&self, place: &Place<'_>, deeper: usize) -> Result<Value> {
        match self {
            Self::Text(text) => Ok((**text).into()),
            Self::Spec(spec) => spec.write(place, deeper),
        }
    }
}

fn beside_choice(values: &TextValues, beside: &mut Map<String, Value>) {
    for (name, text) in [("prefix", &values.prefix), ("suffix", &values.suffix)] {
        if !text.is_empty() {
            beside.insert(name.to_owned(), text.as_str().into());
        }
    }
    let tokenization = match values.tokenization {
        Tokenization::Canonical => None,
        Tokenization::OpenEnd => Some("open_end"),
        Tokenization::All => Some("all"),
    };
    beside.extend(tokenization.map(|name| ("tokenization".to_owned(), name.into())));
}
