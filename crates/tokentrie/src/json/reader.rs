//! Reader from a JSON tree to types that derive `Deserialize`.
//!
//! A field with `null` counts as left out, because hosts write `null` for fields that are not set. An enum is read from
//! an object that has the name of a variant as a field. If the variant itself has a field of that name, the whole
//! object is read as the variant, as in `{"regex": "a", "limits": {}}`. Every other variant is read from the value of
//! that field. The enums of [`BY_TYPE`] are objects whose field `type` names the variant.

use super::place::Place;
use crate::constraint::foreign::{is_schema, meant_kind, near_name};
use crate::constraint::{SpecError, SpecProblem, objects};
use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::fmt;

/// Returns what a value says as a type, or what is wrong with it and where.
///
/// # Errors
/// [`SpecError`] with the place inside `place`.
pub(crate) fn read<'v, T: Deserialize<'v>>(place: &Place<'_>, value: &'v Value) -> Result<T, SpecError> {
    T::deserialize(Reader(value)).map_err(|error| error.into_spec_error(place))
}

/// Returns a value as another type, from inside the `Deserialize` of a type that took the value unread.
///
/// # Errors
/// As [`read`]; the place goes on from where the type is read.
pub(crate) fn inner<T: for<'v> Deserialize<'v>, E: Error>(value: &Value) -> Result<T, E> {
    T::deserialize(Reader(value)).map_err(carry_error)
}

/// Returns the error of a type whose value cannot be.
pub(crate) fn value_error<E: Error>(problem: impl Into<SpecProblem>) -> E {
    carry_error(ReadError { steps: Vec::new(), problem: Box::new(problem.into()) })
}

/// Returns the error of a type with a field whose value cannot be.
pub(crate) fn refused_at<E: Error>(field: &str, problem: impl Into<SpecProblem>) -> E {
    carry_error(ReadError { steps: vec![Step::Field(field.to_owned())], problem: Box::new(problem.into()) })
}

/// Returns the error of a value that is of another type than it must be.
pub(crate) fn type_error<E: Error>(expected: &str, value: &Value) -> E {
    value_error(SpecProblem::Type { expected: expected.to_owned(), given: shorten_value(value) })
}

/// Returns a value for a message, shortened.
pub(crate) fn shorten_value(value: &Value) -> String {
    const SHOWN: usize = 60;
    let text = match value {
        Value::Array(items) => return format!("an array of {}", items.len()),
        Value::Object(fields) if fields.is_empty() => return "an empty object".to_owned(),
        Value::Object(fields) => {
            return format!("an object with {:?}", fields.keys().next().map(String::as_str).unwrap_or_default());
        }
        other => other.to_string(),
    };
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut}…") } else { cut }
}

/// A problem and the way to it, innermost step first.
#[derive(Debug)]
pub(crate) struct ReadError {
    steps: Vec<Step>,
    problem: Box<SpecProblem>,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Item(usize),
}

thread_local! {
    /// The error that the text [`CARRIED`] stands for: serde's errors carry text alone.
    static WAITING: RefCell<Option<ReadError>> = const { RefCell::new(None) };
}

const CARRIED: &str = "\u{1f}the error that waits";

pub(crate) fn carry_error<E: Error>(error: ReadError) -> E {
    WAITING.set(Some(error));
    E::custom(CARRIED)
}

impl ReadError {
    pub(crate) fn new(problem: SpecProblem) -> Self {
        Self { steps: Vec::new(), problem: Box::new(problem) }
    }

    /// Returns the error of the object around the field that it is about.
    pub(crate) fn in_field(self, name: &str) -> Self {
        self.with_step(Step::Field(name.to_owned()))
    }

    /// Returns the error of the array around the item that it is about.
    #[cfg(feature = "chat")]
    pub(crate) fn in_item(self, index: usize) -> Self {
        self.with_step(Step::Item(index))
    }

    fn with_step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The same with the value that it is about, where it is about this one.
    fn with_value(mut self, value: &Value) -> Self {
        if let (true, SpecProblem::Type { given, .. }) = (self.steps.is_empty(), &mut *self.problem)
            && given.is_empty()
        {
            *given = shorten_value(value);
        }
        self
    }

    fn into_spec_error(self, place: &Place<'_>) -> SpecError {
        fn walk(steps: &[Step], place: &Place<'_>, problem: SpecProblem) -> SpecError {
            match steps {
                [] => SpecError::new(place, problem),
                [before @ .., Step::Field(name)] => walk(before, &place.field(name), problem),
                [before @ .., Step::Item(index)] => walk(before, &place.item(*index), problem),
            }
        }
        walk(&self.steps, place, *self.problem)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for ReadError {}

/// Translates serde's name of a type to JSON's.
fn in_json(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u8" => "an integer from 0 to 255".to_owned(),
        "u32" => format!("an integer from 0 to {}", u32::MAX),
        "i32" => format!("an integer from {} to {}", i32::MIN, i32::MAX),
        "u64" | "usize" => format!("an integer from 0 to {}", u64::MAX),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => "an object".to_owned(),
        rust if rust.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    }
}

impl Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let message = message.to_string();
        let waiting = (message == CARRIED).then(|| WAITING.take()).flatten();
        waiting.unwrap_or_else(|| Self::new(SpecProblem::Value(message)))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(SpecProblem::Type { expected: in_json(expected), given: String::new() })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(unexpected, expected)
    }

    fn unknown_variant(_: &str, words: &'static [&'static str]) -> Self {
        let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        let expected = match &quoted[..] {
            [before @ .., last] if !before.is_empty() => format!("{} or {last}", before.join(", ")),
            one => one.concat(),
        };
        Self::new(SpecProblem::Type { expected, given: String::new() })
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> Self {
        let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
        let meant = near_name(field, &known);
        Self::new(SpecProblem::Unknown { known, meant }).with_step(Step::Field(field.to_owned()))
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(SpecProblem::Missing { name })
    }
}

/// Reader of a value.
#[derive(Clone, Copy)]
struct Reader<'v>(&'v Value);

impl<'v> Deserializer<'v> for Reader<'v> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let read = match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items, next: 0 }),
            Value::Object(fields) => visitor.visit_map(Fields::all_fields(fields)),
        };
        read.map_err(|error| error.with_value(self.0))
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0.as_object() {
            Some(fields) => visitor.visit_map(Fields::given_fields(fields)),
            None => Err(type_error("an object", self.0)),
        }
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        name: &'static str,
        kinds: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if BY_TYPE.contains(&name) {
            return visitor.visit_enum(TypedObject::new(self, kinds)?);
        }
        let is_by_kind = BY_KIND.iter().find(|(of, _)| *of == name).map(|(_, expected)| *expected);
        let object = match (is_by_kind, self.0) {
            (Some(_), Value::Object(object)) => object,
            (Some(kinds), other) => return Err(type_error(kinds, other)),
            (None, Value::String(word)) => {
                let word: StrDeserializer<'_, ReadError> = word.as_str().into_deserializer();
                return word.deserialize_enum(name, kinds, visitor).map_err(|error| error.with_value(self.0));
            }
            (None, other) => return Err(ReadError::unknown_variant("", kinds).with_value(other)),
        };
        let is_known = |kind: &&str| *kind != OBJECT || objects::are_given();
        let mut found = kinds.iter().copied().filter(is_known).filter(|kind| object.contains_key(*kind));
        let variant = match (found.next(), found.next()) {
            (Some(kind), None) => Variant { object: Some(object), kind, inner: &object[kind] },
            (Some(kind), Some(second)) => {
                let kinds = [kind, second].into_iter().chain(found).map(str::to_owned).collect();
                return Err(ReadError::new(SpecProblem::Kinds { kinds }));
            }
            (None, _) if name == SPEC && is_schema(object) => Variant { object: None, kind: SCHEMA, inner: self.0 },
            (None, _) if name == SPEC => {
                let known: Vec<String> =
                    kinds.iter().filter(|kind| **kind != OBJECT).map(|&kind| kind.to_owned()).collect();
                let given = object.keys().cloned().collect();
                let meant = meant_kind(object, &known);
                return Err(ReadError::new(SpecProblem::NoKind { given, known, meant }));
            }
            (None, _) => return Err(type_error(is_by_kind.unwrap_or_default(), self.0)),
        };
        visitor.visit_enum(variant)
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'v>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

/// Enums whose values are objects with the name of a variant, and what they are called.
const BY_KIND: [(&str, &str); 2] = [
    (SPEC, "an object with the kind of a spec"),
    ("FilledPart", "a string, or an object with \"slot\", \"text\" or \"form\""),
];
/// Enums whose values are objects with the name of a variant in the field [`TYPE`].
const BY_TYPE: [&str; 2] = ["ReplyFormat", "TagFormat"];
const TYPE: &str = "type";
const SPEC: &str = "Spec";
/// Objects of a host, by number: see [`objects`].
const OBJECT: &str = "object";
/// The kind that an object without one may be.
const SCHEMA: &str = "json_schema";

/// An object that is read as several types, each of which knows some of its fields.
#[cfg(feature = "llama")]
pub(crate) struct Parts<'v> {
    object: &'v Map<String, Value>,
    known: RefCell<Vec<&'static str>>,
}

#[cfg(feature = "llama")]
impl<'v> Parts<'v> {
    /// Takes the object of a request.
    ///
    /// # Errors
    /// A value that is none.
    pub(crate) fn from_value(value: &'v Value) -> Result<Self, SpecError> {
        let object = value.as_object();
        let object = object.ok_or_else(|| type_error::<ReadError>("an object", value).into_spec_error(&Place::ROOT))?;
        Ok(Self { object, known: RefCell::default() })
    }

    /// Reads the fields that a type knows.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn read<T: Deserialize<'v>>(&self) -> Result<T, SpecError> {
        T::deserialize(self).map_err(|error| error.into_spec_error(&Place::ROOT))
    }

    /// Returns the names of the fields that a type knows.
    pub(crate) fn names<T: serde::de::DeserializeOwned>() -> Vec<&'static str> {
        let nothing = Map::new();
        let parts = Parts { object: &nothing, known: RefCell::default() };
        // What it must have besides is another question.
        let _ = T::deserialize(&parts);
        parts.known.take()
    }

    /// Checks that each field was known to a type.
    ///
    /// # Errors
    /// The first that was not.
    pub(crate) fn finish(self) -> Result<(), SpecError> {
        let known: Vec<String> = self.known.take().into_iter().map(str::to_owned).collect();
        let Some(name) = self.object.keys().find(|name| !known.contains(name)) else { return Ok(()) };
        let meant = near_name(name, &known);
        Err(SpecError::new(&Place::ROOT.field(name), SpecProblem::Unknown { known, meant }))
    }
}

/// A tuple of types that share one object: each type reads its own fields.
#[cfg(feature = "llama")]
pub trait ReadParts: Sized {
    /// Reads each from the object.
    ///
    /// # Errors
    /// [`SpecError`] with the place; a field that none of them knows.
    fn read_parts(object: &Value) -> Result<Self, SpecError>;
}

#[cfg(feature = "llama")]
macro_rules! read_parts {
    ($($part:ident),+) => {
        impl<$($part: serde::de::DeserializeOwned),+> ReadParts for ($($part,)+) {
            fn read_parts(object: &Value) -> Result<Self, SpecError> {
                let parts = Parts::from_value(object)?;
                let read = ($(parts.read::<$part>()?,)+);
                parts.finish().map(|()| read)
            }
        }
    };
}

#[cfg(feature = "llama")]
read_parts!(A, B);
#[cfg(feature = "llama")]
read_parts!(A, B, C);

#[cfg(feature = "llama")]
impl<'v> Deserializer<'v> for &Parts<'v> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'v>>(self, _: V) -> Result<V::Value, ReadError> {
        Err(ReadError::custom("a part of an object is a struct"))
    }

    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.known.borrow_mut().extend(fields);
        visitor.visit_map(Fields { of: Some(fields), ..Fields::given_fields(self.object) })
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'v>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The items of an array.
struct Items<'v> {
    items: &'v [Value],
    next: usize,
}

impl<'v> SeqAccess<'v> for Items<'v> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'v>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|error| error.with_step(Step::Item(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

/// The fields of an object.
struct Fields<'v> {
    listed: Option<serde_json::map::Iter<'v>>,
    /// A field without an object around it.
    alone: Option<(&'v str, &'v Value)>,
    /// `true` where `null` is left out.
    only_given: bool,
    /// Keys that are read, if others are left to other types.
    of: Option<&'static [&'static str]>,
    /// A key that is not read, because it names the variant.
    without: Option<&'static str>,
    current: Option<(&'v str, &'v Value)>,
}

impl<'v> Fields<'v> {
    fn all_fields(fields: &'v Map<String, Value>) -> Self {
        Self { listed: Some(fields.iter()), alone: None, only_given: false, of: None, without: None, current: None }
    }

    fn given_fields(fields: &'v Map<String, Value>) -> Self {
        Self { only_given: true, ..Self::all_fields(fields) }
    }
}

impl<'v> MapAccess<'v> for Fields<'v> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'v>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let (only_given, of, without) = (self.only_given, self.of, self.without);
        let is_read = |name: &str, value: &Value| {
            !(only_given && value.is_null()) && of.is_none_or(|of| of.contains(&name)) && without != Some(name)
        };
        let mut fields = self.listed.iter_mut().flatten().map(|(name, value)| (name.as_str(), value));
        let next = self.alone.take().or_else(|| fields.find(|(name, value)| is_read(name, value)));
        self.current = next;
        let Some((name, _)) = next else { return Ok(None) };
        let name: StrDeserializer<'_, ReadError> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'v>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let (name, value) = self.current.take().ok_or_else(|| ReadError::custom("a value without its name"))?;
        seed.deserialize(Reader(value)).map_err(|error| error.with_step(Step::Field(name.to_owned())))
    }
}

/// An object of a kind.
#[derive(Clone, Copy)]
struct Variant<'v> {
    /// `None` where the kind was not named.
    object: Option<&'v Map<String, Value>>,
    kind: &'static str,
    inner: &'v Value,
}

impl<'v> Variant<'v> {
    /// The object itself, as the fields of the kind.
    fn fields(self) -> Fields<'v> {
        let Some(object) = self.object else {
            let alone = Some((self.kind, self.inner));
            return Fields { listed: None, alone, only_given: true, of: None, without: None, current: None };
        };
        Fields::given_fields(object)
    }

    /// Reads the value of the kind, beside which nothing may stand.
    fn read_alone<T>(self, read: impl FnOnce(Reader<'v>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        self.check_alone()?;
        read(Reader(self.inner)).map_err(|error| self.add_kind(error))
    }

    fn check_alone(self) -> Result<(), ReadError> {
        let Some(other) = self.object.and_then(|object| object.keys().find(|name| *name != self.kind)) else {
            return Ok(());
        };
        let known = vec![self.kind.to_owned()];
        let problem = SpecProblem::Unknown { meant: near_name(other, &known), known };
        Err(ReadError::new(problem).with_step(Step::Field(other.clone())))
    }

    /// The error of what stands in the field of the kind.
    fn add_kind(self, error: ReadError) -> ReadError {
        match self.object {
            Some(_) => error.with_step(Step::Field(self.kind.to_owned())),
            None => error,
        }
    }
}

impl<'v> EnumAccess<'v> for Variant<'v> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<(T::Value, Self), ReadError> {
        let kind: StrDeserializer<'_, ReadError> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, self))
    }
}

impl<'v> VariantAccess<'v> for Variant<'v> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct NoFields {}

        self.read_alone(NoFields::deserialize).map(|NoFields {}| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<T::Value, ReadError> {
        // What a type refuses once its fields are read is not said inside of one of them.
        let is_object = Cell::new(false);
        let read = seed.deserialize(VariantContent { variant: self, is_object: &is_object });
        read.map_err(|error| if is_object.get() { error } else { self.add_kind(error) })
    }

    fn tuple_variant<V: Visitor<'v>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.read_alone(|reader| reader.deserialize_any(visitor))
    }

    fn struct_variant<V: Visitor<'v>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(self.fields())
    }
}

/// An object whose field `type` names the variant. A struct variant has the other fields; a variant that wraps a type
/// is read from the whole object.
#[derive(Clone, Copy)]
struct TypedObject<'v> {
    reader: Reader<'v>,
    object: &'v Map<String, Value>,
    kind: &'static str,
}

impl<'v> TypedObject<'v> {
    fn new(reader: Reader<'v>, kinds: &'static [&'static str]) -> Result<Self, ReadError> {
        let object = reader.0.as_object().ok_or_else(|| type_error::<ReadError>("an object", reader.0))?;
        let given = object.get(TYPE).ok_or_else(|| ReadError::missing_field(TYPE))?;
        let kind = kinds.iter().find(|kind| given == **kind);
        let unknown = || ReadError::unknown_variant("", kinds).with_value(given).in_field(TYPE);
        Ok(Self { reader, object, kind: kind.ok_or_else(unknown)? })
    }
}

impl<'v> EnumAccess<'v> for TypedObject<'v> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<(T::Value, Self), ReadError> {
        let kind: StrDeserializer<'_, ReadError> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, self))
    }
}

impl<'v> VariantAccess<'v> for TypedObject<'v> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'v>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.reader.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'v>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_map(Fields { without: Some(TYPE), ..Fields::given_fields(self.object) })
    }
}

/// Reads what a variant holds.
#[derive(Clone, Copy)]
struct VariantContent<'v, 'h> {
    variant: Variant<'v>,
    /// `true` once places begin at the object of the kind, not at its field.
    is_object: &'h Cell<bool>,
}

impl<'v> VariantContent<'v, '_> {
    fn into_reader(self) -> Result<Reader<'v>, ReadError> {
        self.variant.check_alone().inspect_err(|_| self.is_object.set(true))?;
        Ok(Reader(self.variant.inner))
    }
}

impl<'v> Deserializer<'v> for VariantContent<'v, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.into_reader()?.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'v>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if fields.contains(&self.variant.kind) {
            self.is_object.set(true);
            return visitor.visit_map(self.variant.fields());
        }
        self.into_reader()?.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    serde::forward_to_deserialize_any! {
        <V: Visitor<'v>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}
