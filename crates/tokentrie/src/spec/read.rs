//! From JSON to kinds.

use super::error::{SpecError, SpecProblem};
use super::fields::{Fields, array, shown, text, wrong_type};
use super::foreign::{is_schema, meant_kind};
use super::json::{MOST_DEPTH, parse};
use super::kinds::form::Part;
use super::kinds::reply::Reply;
use super::kinds::think::Think;
use super::place::Place;
use super::{Blanks, LimitsSpec, MomentSpec, NumberSpec, Piece, RepeatSpec, SchemaSpec, Spec, StringSpec, VERSION};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::sync::Arc;
use trie_rules::{Moment, Regular, RegularError};
use trie_text::{TextValues, Tokenization};

type Result<T> = std::result::Result<T, SpecError>;

/// The kinds, and the fields that may stand beside each.
const KINDS: [(&str, &[&str]); 24] = [
    ("choice", &["prefix", "suffix", "tokenization"]),
    ("set", &[]),
    ("payload", &["path"]),
    ("regex", &["max_bytes", "limits"]),
    ("grammar", &["lenient", "limits"]),
    ("lark", &["limits"]),
    ("gbnf", &["limits"]),
    ("wasm", &["limits"]),
    ("json_schema", &["whitespace", "unicode_escapes", "lenient", "limits"]),
    ("integer", &[]),
    ("number", &[]),
    ("date", &[]),
    ("time", &[]),
    ("date_time", &[]),
    ("string", &[]),
    ("one_of", &[]),
    ("then", &[]),
    ("repeat", &[]),
    ("sequence", &[]),
    ("any", &[]),
    ("form", &[]),
    ("think", &[]),
    ("reply", &[]),
    ("name", &[]),
];

/// What the outermost object may have besides.
const VERSION_FIELD: &str = "version";

/// The names of the kinds.
pub(super) fn known_kinds() -> Vec<String> {
    KINDS.iter().map(|&(kind, _)| kind.to_owned()).collect()
}

impl Spec {
    /// Reads the JSON form: docs/specs.md. An object that can be nothing but a JSON Schema stands for that.
    ///
    /// # Errors
    /// [`SpecError`] with the place: text that is no JSON, fields that there are not or that come twice, no kind or
    /// several, values of another type or out of range.
    pub fn from_json(text: &[u8]) -> Result<Self> {
        let value = parse(text)?;
        let place = Place::ROOT;
        let Value::Object(mut fields) = value else { return Err(wrong_type(&place, "an object", &value)) };
        match fields.shift_remove(VERSION_FIELD) {
            None => {}
            Some(version) if version.as_u64() == Some(VERSION) => {}
            Some(version) => {
                let reason = format!("it is {}: this library reads version {VERSION}", shown(&version));
                return Err(SpecError::new(&place.field(VERSION_FIELD), SpecProblem::Value(reason)));
            }
        }
        Self::read(&place, &Value::Object(fields), Reader::DATA)
    }

    /// Reads the JSON form that a host writes of its own objects: `{"object": n}` is the object of that number, the
    /// text of a JSON Schema may stand for the schema, and what only shows when a rule is made is left to
    /// [`Compiled::made`](super::Compiled::made).
    ///
    /// # Errors
    /// As [`Spec::from_json`], and a number that no object has.
    pub fn from_host(text: &[u8], objects: &[Self]) -> Result<Self> {
        Self::read(&Place::ROOT, &parse(text)?, Reader { deeper: MOST_DEPTH, objects: Some(objects) })
    }

    /// A list of texts.
    #[cfg(feature = "llama")]
    pub(crate) fn read_choice(place: &Place<'_>, texts: &Value) -> Result<Self> {
        let nothing = Value::Object(serde_json::Map::new());
        choice(place, texts, &Fields::of(place, &nothing, &[])?, Reader::DATA)
    }

    /// Of a value of JSON, with so many more specs inside each other.
    pub(crate) fn read(place: &Place<'_>, value: &Value, reader: Reader<'_>) -> Result<Self> {
        let reader = reader.inside(place)?;
        if let Some(found) = reader.object(place, value)? {
            return Ok(found);
        }
        let object = value.as_object().ok_or_else(|| wrong_type(place, "an object with the kind of a spec", value))?;
        let mut kinds = KINDS.iter().filter(|(kind, _)| object.contains_key(*kind));
        let Some(&(kind, beside)) = kinds.next() else {
            if is_schema(object) {
                return json_schema(place, value, &Fields::over(place, &serde_json::Map::new(), &[])?, reader);
            }
            let (given, known) = (object.keys().cloned().collect::<Vec<String>>(), known_kinds());
            let meant = meant_kind(object, &known);
            return Err(SpecError::new(place, SpecProblem::NoKind { given, known, meant }));
        };
        let others: Vec<String> = kinds.map(|&(kind, _)| kind.to_owned()).collect();
        if !others.is_empty() {
            let kinds = [kind.to_owned()].into_iter().chain(others).collect();
            return Err(SpecError::new(place, SpecProblem::Kinds { kinds }));
        }
        let known: Vec<&str> = [kind].into_iter().chain(beside.iter().copied()).collect();
        let fields = Fields::over(place, object, &known)?;
        let (at, inner) = (place.field(kind), &object[kind]);
        let owned = |at: &Place<'_>| -> Result<Arc<str>> { Ok(text(at, inner)?.into()) };
        Ok(match kind {
            "choice" => choice(&at, inner, &fields, reader)?,
            "set" => Self::Set(owned(&at)?),
            "payload" => {
                let payload = inner.as_object().map(|_| inner.to_string().into_bytes().into());
                let payload = payload.ok_or_else(|| wrong_type(&at, "a payload, an object", inner))?;
                Self::Payload { text: payload, path: fields.text("path")? }
            }
            "regex" => match fields.count("max_bytes")? {
                Some(most) => Self::regex(text(&at, inner)?, most as usize, limits(&fields)?),
                None => Self::Regex { pattern: owned(&at)?, max_bytes: None, limits: limits(&fields)? },
            },
            "grammar" => {
                let (lenient, limits) = (fields.flag("lenient", false)?, limits(&fields)?);
                Self::Grammar { text: owned(&at)?, lenient, limits }
            }
            "lark" => Self::Lark { text: owned(&at)?, limits: limits(&fields)? },
            "gbnf" => Self::Gbnf { text: owned(&at)?, limits: limits(&fields)? },
            "wasm" => Self::Wasm { module: base64(&at, inner)?, limits: limits(&fields)? },
            "json_schema" => json_schema(&at, inner, &fields, reader)?,
            "integer" => integer(&Fields::of(&at, inner, &["min", "max"])?, reader)?,
            "number" => {
                let known = ["min", "max", "integer_digits", "fraction_digits", "exponent_digits"];
                Self::Number(NumberSpec::read(&Fields::of(&at, inner, &known)?, reader)?)
            }
            "date" => {
                let days = Fields::of(&at, inner, &["min", "max", "format"])?;
                Self::Moment(MomentSpec::read(&days, reader, |_, _| Moment::Date)?)
            }
            "time" | "date_time" => {
                let times = Fields::of(&at, inner, &["min", "max", "timespec", "format", "utc"])?;
                Self::Moment(MomentSpec::read(
                    &times,
                    reader,
                    match kind {
                        "time" => |timespec, utc| Moment::Time { timespec, utc },
                        _ => |timespec, utc| Moment::DateTime { timespec, utc },
                    },
                )?)
            }
            "string" => {
                let options = Fields::of(&at, inner, &["min_chars", "max_chars", "quotes"])?;
                Self::String(StringSpec {
                    min_chars: options.count("min_chars")?.unwrap_or_default() as usize,
                    max_chars: options.count("max_chars")?.map(|count| count as usize),
                    quotes: options.flag("quotes", false)?,
                })
            }
            "one_of" => Self::OneOf(pieces(&at, inner, reader)?),
            "then" => Self::Then(pieces(&at, inner, reader)?),
            "repeat" => {
                let fields = Fields::of(&at, inner, &["rule", "min", "max", "separator"])?;
                Self::Repeat(RepeatSpec::read(&fields, reader)?.into())
            }
            "sequence" => {
                let part = |(index, part): (usize, &Value)| Self::read(&at.item(index), part, reader);
                Self::Sequence(filled(&at, inner, reader)?.iter().enumerate().map(part).collect::<Result<_>>()?)
            }
            "any" => Fields::of(&at, inner, &[]).map(|_| Self::Any)?,
            "form" => {
                let mut parts = Vec::new();
                for (index, part) in filled(&at, inner, reader)?.iter().enumerate() {
                    // The parts of a form in a form stand in its place.
                    if part.as_object().is_some_and(|part| part.contains_key("form")) {
                        let Self::Form(inside) = Self::read(&at.item(index), part, reader)? else { continue };
                        parts.extend(inside);
                    } else {
                        parts.push(Part::read(&at.item(index), part, reader)?);
                    }
                }
                Self::Form(parts)
            }
            "think" => Self::Think(Think::read(&at, inner, reader)?.into()),
            "reply" => Self::Reply(Reply::read(&at, inner)?.into()),
            _ => Self::Name(owned(&at)?),
        })
    }
}

/// How specs are read: how much deeper they may be nested, and the objects that a host gives beside its text.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'o> {
    deeper: usize,
    objects: Option<&'o [Spec]>,
}

impl Reader<'_> {
    /// Reads what strangers write: data alone, all of it checked at once.
    pub(crate) const DATA: Self = Self { deeper: MOST_DEPTH, objects: None };

    /// Returns the reader of what stands inside.
    fn inside(self, place: &Place<'_>) -> Result<Self> {
        let too_deep = || SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH });
        Ok(Self { deeper: self.deeper.checked_sub(1).ok_or_else(too_deep)?, ..self })
    }

    /// Returns whether values are checked that making a rule would refuse.
    pub(crate) fn checks(self) -> bool {
        self.objects.is_none()
    }

    /// Returns the object that is named by its number.
    fn object(self, place: &Place<'_>, value: &Value) -> Result<Option<Spec>> {
        let (Some(objects), Some(number)) = (self.objects, value.get("object")) else { return Ok(None) };
        let found = number.as_u64().and_then(|number| objects.get(usize::try_from(number).ok()?));
        let unknown = || wrong_type(&place.field("object"), "the number of an object", number);
        found.cloned().map(Some).ok_or_else(unknown)
    }

    /// Returns the error for a rule that cannot be made.
    pub(crate) fn refusal(self, place: &Place<'_>, error: RegularError) -> SpecError {
        if self.checks() {
            return SpecError::new(place, SpecProblem::Value(error.to_string()));
        }
        SpecError::new(place, error)
    }

    /// Makes a rule to see whether it can be made, unless its maker will.
    pub(crate) fn check(self, place: &Place<'_>, make: impl FnOnce() -> MadeRegular) -> Result<()> {
        if self.checks() {
            make().map_err(|error| self.refusal(place, error))?;
        }
        Ok(())
    }
}

type MadeRegular = std::result::Result<Regular, RegularError>;

/// Bytes in base64.
fn base64(place: &Place<'_>, value: &Value) -> Result<Arc<[u8]>> {
    let bytes = STANDARD.decode(text(place, value)?);
    let reason = |error| SpecProblem::Value(format!("no base64: {error}"));
    bytes.map(Arc::from).map_err(|error| SpecError::new(place, reason(error)))
}

/// What making a rule may cost.
fn limits(fields: &Fields<'_>) -> Result<LimitsSpec> {
    Ok(fields.read("limits", LimitsSpec::read)?.unwrap_or_default())
}

/// An array with at least one item.
fn filled<'v>(place: &Place<'_>, value: &'v Value, reader: Reader<'_>) -> Result<&'v [Value]> {
    let items = array(place, value)?;
    if items.is_empty() && reader.checks() {
        return Err(wrong_type(place, "an array with at least one item", value));
    }
    Ok(items)
}

fn pieces(place: &Place<'_>, value: &Value, reader: Reader<'_>) -> Result<Vec<Piece>> {
    let piece = |(index, piece): (usize, &Value)| Piece::read(&place.item(index), piece, reader);
    filled(place, value, reader)?.iter().enumerate().map(piece).collect()
}

impl Piece {
    pub(super) fn read(place: &Place<'_>, piece: &Value, reader: Reader<'_>) -> Result<Self> {
        match piece {
            Value::String(text) => Ok(Self::Text(text.as_str().into())),
            other => Spec::read(place, other, reader).map(Self::Spec),
        }
    }
}

fn choice(at: &Place<'_>, inner: &Value, fields: &Fields<'_>, reader: Reader<'_>) -> Result<Spec> {
    let value = |(index, value): (usize, &Value)| Ok(text(&at.item(index), value)?.to_owned());
    let values =
        TextValues::new(filled(at, inner, reader)?.iter().enumerate().map(value).collect::<Result<Vec<String>>>()?);
    let tokenization = fields.read("tokenization", |place, value| match text(place, value)? {
        "canonical" => Ok(Tokenization::Canonical),
        "open_end" => Ok(Tokenization::OpenEnd),
        "all" => Ok(Tokenization::All),
        _ => Err(wrong_type(place, "\"canonical\", \"open_end\" or \"all\"", value)),
    })?;
    let around = |name| fields.text(name).map(Option::unwrap_or_default);
    let values = values.with_prefix(&*around("prefix")?).with_suffix(&*around("suffix")?);
    Ok(Spec::Choice(values.with_tokenization(tokenization.unwrap_or_default())))
}

fn integer(bounds: &Fields<'_>, reader: Reader<'_>) -> Result<Spec> {
    let (min, max) = (bounds.integer("min")?, bounds.integer("max")?);
    if let (Some(low), Some(high), true) = (min, max, reader.checks())
        && low > high
    {
        let reason = format!("no integer is in the range: min is {low}, max is {high}");
        return Err(SpecError::new(bounds.place, SpecProblem::Value(reason)));
    }
    Ok(Spec::Integer { min, max })
}

fn json_schema(at: &Place<'_>, inner: &Value, fields: &Fields<'_>, reader: Reader<'_>) -> Result<Spec> {
    let text = inner.as_str().filter(|_| !reader.checks());
    if text.is_none() && !inner.is_object() && !inner.is_boolean() {
        return Err(wrong_type(at, "a JSON Schema: an object, true or false", inner));
    }
    let whitespace = fields.read("whitespace", |place, value| match value {
        Value::Bool(true) => Ok(Blanks::Any),
        Value::Bool(false) => Ok(Blanks::None),
        Value::String(pattern) => Ok(Blanks::Pattern(pattern.as_str().into())),
        other => Err(wrong_type(place, "true, false or a regular expression", other)),
    })?;
    Ok(Spec::JsonSchema(SchemaSpec {
        schema: text.map_or_else(|| inner.to_string().into(), Arc::from),
        whitespace: whitespace.unwrap_or_default(),
        unicode_escapes: fields.flag("unicode_escapes", true)?,
        lenient: fields.flag("lenient", false)?,
        limits: limits(fields)?,
    }))
}
