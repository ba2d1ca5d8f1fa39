//! Python's values, as far as templates see them. Only namespaces can be changed, so only they can contain themselves.

mod buffer;
pub(crate) mod json;
pub(crate) mod number;
pub(crate) mod ops;
pub(crate) mod origin;
pub(crate) mod printf;
pub(crate) mod repr;
pub(crate) mod str_format;
pub(crate) mod text;

use crate::builtins::functions::{Cycler, Function};
use crate::error::{Fault, Kind, Res, too_much};
use crate::eval::loops::LoopState;
use crate::eval::macros::MacroValue;
use crate::meter::{DEPTH, hold, release};
pub(crate) use buffer::Buffer;
use indexmap::{Equivalent, IndexMap};
pub use origin::TracedText;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
pub(crate) use text::{Text, is_space};

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Undefined(Rc<Missing>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<Text>),
    List(Rc<List>),
    Tuple(Rc<List>),
    Dict(Rc<Dict>),
    View(View, Rc<Dict>),
    Range(Rc<Range>),
    Stream(Rc<Stream>),
    Namespace(Rc<Namespace>),
    Macro(Rc<MacroValue>),
    Function(Function),
    Method(Rc<Method>),
    Loop(Rc<LoopState>),
    Cycler(Rc<Cycler>),
    Joiner(Rc<(Rc<Text>, std::cell::Cell<bool>)>),
}

/// Undefined value of Jinja2, which is an error when used.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) kind: Kind,
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Keys,
    Values,
    Items,
}

#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) start: i128,
    pub(crate) step: i128,
    pub(crate) length: usize,
    /// As it was written, for printing.
    pub(crate) stop: i128,
}

impl Range {
    pub(crate) fn get(&self, index: usize) -> Value {
        Value::Int(self.start + self.step * index as i128)
    }
}

/// A method of a value, taken without being called.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) of: Value,
    pub(crate) name: Rc<str>,
}

/// Iterator like Python's generators: consumed once.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) items: RefCell<VecDeque<Value>>,
    depth: u32,
    held: usize,
}

impl Drop for Stream {
    fn drop(&mut self) {
        release(self.held);
    }
}

#[derive(Debug)]
pub(crate) struct List {
    items: Vec<Value>,
    depth: u32,
    /// True for the result of `groupby`: a tuple whose two items have names.
    group: bool,
    /// True if a tuple of these can be a key.
    hashable: bool,
}

const ITEM: usize = size_of::<Value>();
const ENTRY: usize = 2 * ITEM + 48;

impl List {
    pub(crate) fn new(items: Vec<Value>) -> Res<Rc<Self>> {
        Self::make(items, false)
    }

    pub(crate) fn group(key: Value, values: Value) -> Res<Rc<Self>> {
        Self::make(vec![key, values], true)
    }

    fn make(items: Vec<Value>, group: bool) -> Res<Rc<Self>> {
        hold(items.len() * ITEM + 64)?;
        let mut list = Self { items, depth: 0, group, hashable: true };
        list.hashable = list.items.iter().all(Value::is_hashable);
        list.depth = deepest(&list.items)?;
        Ok(Rc::new(list))
    }

    pub(crate) fn items(&self) -> &[Value] {
        &self.items
    }

    /// An item by its name.
    pub(crate) fn get_named(&self, name: &str) -> Option<&Value> {
        let number = ["grouper", "list"].iter().position(|known| *known == name)?;
        self.items.get(number).filter(|_| self.group)
    }
}

impl Drop for List {
    fn drop(&mut self) {
        release(self.items.len() * ITEM + 64);
    }
}

/// Returns one more than the depth of the deepest value.
pub(crate) fn deepest<'v>(values: impl IntoIterator<Item = &'v Value>) -> Res<u32> {
    let depth = values.into_iter().map(Value::depth).max().unwrap_or(0) + 1;
    if depth > DEPTH {
        return too_much(format!("lists and dicts inside each other, more than {DEPTH} deep"));
    }
    Ok(depth)
}

#[derive(Debug, Default)]
pub(crate) struct Dict {
    entries: IndexMap<Key, Value>,
    depth: u32,
    held: usize,
}

impl Dict {
    pub(crate) fn new(entries: IndexMap<Key, Value>) -> Res<Rc<Self>> {
        let held = entries.len() * ENTRY + 96;
        hold(held)?;
        let mut dict = Self { entries, depth: 0, held };
        dict.depth = deepest(dict.entries.values())?.max(deepest(dict.entries.keys().map(|key| &key.0))?);
        Ok(Rc::new(dict))
    }

    pub(crate) fn entries(&self) -> &IndexMap<Key, Value> {
        &self.entries
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(&KeyRef(key))
    }

    pub(crate) fn get_value(&self, key: &Value) -> Res<Option<&Value>> {
        if let Value::Str(text) = key {
            crate::meter::spend_bytes(text.len())?;
        }
        Ok(self.entries.get(&Key::new(key.clone())?))
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        release(self.held);
    }
}

/// Result of Jinja2's `namespace()`: the only value with assignable attributes.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) attributes: RefCell<IndexMap<Rc<str>, Value>>,
}

/// A value that Python can hash.
#[derive(Debug, Clone)]
pub(crate) struct Key(pub(crate) Value);

impl Key {
    pub(crate) fn new(value: Value) -> Res<Self> {
        if value.is_hashable() {
            return Ok(Self(value));
        }
        crate::error::wrong(format!("unhashable type: '{}'", value.type_name()))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        // Depth is bounded, so nothing but the budget of steps can fail; then nothing more is compared.
        ops::equal(&self.0, &other.0).unwrap_or(false)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Value::Str(text) => text.as_str().hash(state),
            Value::Bool(value) => i128::from(*value).hash(state),
            Value::Int(value) => value.hash(state),
            // As an integer where it is one: 1 and 1.0 are one key.
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e18 => (*value as i128).hash(state),
            Value::Float(value) => value.to_bits().hash(state),
            Value::Tuple(list) => {
                list.items().len().hash(state);
                // Not what is inside of tuples inside: they can share their parts, and so be endless to go through.
                let plain = list.items().iter().filter(|item| !matches!(item, Value::Tuple(_)));
                plain.take(8).for_each(|item| Self(item.clone()).hash(state));
            }
            _ => 0u8.hash(state),
        }
    }
}

/// Looks a key up without making one.
struct KeyRef<'k>(&'k str);

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        matches!(&key.0, Value::Str(text) if text.as_str() == self.0)
    }
}

impl Value {
    /// A text that the template did not write.
    pub(crate) fn str(text: impl Into<String>) -> Res<Self> {
        Text::new(text.into()).map(Self::Str)
    }

    /// A text that stands in the template.
    pub(crate) fn own_str(text: impl Into<String>) -> Res<Self> {
        Text::traced_text(TracedText::own_text(text), false).map(Self::Str)
    }

    pub(crate) fn list(items: Vec<Self>) -> Res<Self> {
        List::new(items).map(Self::List)
    }

    pub(crate) fn tuple(items: Vec<Self>) -> Res<Self> {
        List::new(items).map(Self::Tuple)
    }

    pub(crate) fn stream(items: Vec<Self>) -> Res<Self> {
        let held = items.len() * ITEM + 96;
        hold(held)?;
        let mut stream = Stream { depth: 0, items: RefCell::default(), held };
        stream.depth = deepest(&items)?;
        stream.items = RefCell::new(items.into());
        Ok(Self::Stream(Rc::new(stream)))
    }

    pub(crate) fn undefined(reason: impl Into<String>) -> Self {
        Self::Undefined(Rc::new(Missing { kind: Kind::Undefined, reason: reason.into() }))
    }

    /// Builds the error for attributes that the sandbox hides.
    pub(crate) fn forbidden(reason: impl Into<String>) -> Self {
        Self::Undefined(Rc::new(Missing { kind: Kind::Forbidden, reason: reason.into() }))
    }

    /// Levels of values inside this one, which is how deep dropping it recurses.
    pub(crate) fn depth(&self) -> u32 {
        match self {
            Self::List(list) | Self::Tuple(list) => list.depth,
            Self::Dict(dict) | Self::View(_, dict) => dict.depth,
            Self::Stream(stream) => stream.depth,
            Self::Method(method) => method.of.depth(),
            Self::Loop(state) => state.depth(),
            Self::Cycler(cycler) => cycler.depth(),
            // Emptied one after the other when the rendering ends.
            Self::Namespace(_) => 1,
            _ => 0,
        }
    }

    fn is_hashable(&self) -> bool {
        match self {
            Self::List(_) | Self::Dict(_) => false,
            Self::Tuple(list) => list.hashable,
            _ => true,
        }
    }

    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(text) if text.is_markup() => "Markup",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(_) => "dict",
            Self::View(View::Keys, _) => "dict_keys",
            Self::View(View::Values, _) => "dict_values",
            Self::View(View::Items, _) => "dict_items",
            Self::Range(_) => "range",
            Self::Stream(_) => "generator",
            Self::Namespace(_) => "Namespace",
            Self::Macro(_) => "Macro",
            Self::Function(_) => "function",
            Self::Method(_) => "builtin_function_or_method",
            Self::Loop(_) => "LoopContext",
            Self::Cycler(_) => "Cycler",
            Self::Joiner(_) => "Joiner",
        }
    }

    /// The error of using something that is not there.
    pub(crate) fn missing(&self) -> Option<Fault> {
        match self {
            Self::Undefined(missing) => Some(Fault::new(missing.kind, missing.reason.clone())),
            _ => None,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) | Self::Tuple(list) => !list.items().is_empty(),
            Self::Dict(dict) | Self::View(_, dict) => !dict.entries().is_empty(),
            Self::Range(range) => range.length > 0,
            Self::Loop(state) => state.length() > 0,
            _ => true,
        }
    }

    /// Returns the length as Python's `len`.
    pub(crate) fn length(&self) -> Res<usize> {
        match self {
            Self::Undefined(_) => Ok(0),
            Self::Str(text) => text.count(),
            Self::List(list) | Self::Tuple(list) => Ok(list.items().len()),
            Self::Dict(dict) | Self::View(_, dict) => Ok(dict.entries().len()),
            Self::Range(range) => Ok(range.length),
            Self::Loop(state) => Ok(state.length()),
            _ => crate::error::wrong(format!("object of type '{}' has no len()", self.type_name())),
        }
    }

    /// Collects all items of an iteration over this value.
    pub(crate) fn iterate(&self) -> Res<Vec<Self>> {
        let items: Vec<Self> = match self {
            Self::Undefined(_) => Vec::new(),
            Self::Str(text) => {
                let length = text.count()?;
                crate::meter::spend(length as u64)?;
                crate::meter::room(length.saturating_mul(96))?;
                let whole = text.as_str();
                let ends = whole.char_indices().map(|(at, character)| (at, at + character.len_utf8()));
                ends.map(|(from, to)| text.part(&whole[from..to])).collect::<Res<_>>()?
            }
            Self::List(list) | Self::Tuple(list) => {
                crate::meter::room(list.items().len() * ITEM)?;
                list.items().to_vec()
            }
            Self::Dict(dict) | Self::View(View::Keys, dict) => dict.entries().keys().map(|key| key.0.clone()).collect(),
            Self::View(View::Values, dict) => dict.entries().values().cloned().collect(),
            Self::View(View::Items, dict) => {
                let pair = |(key, value): (&Key, &Self)| Self::tuple(vec![key.0.clone(), value.clone()]);
                dict.entries().iter().map(pair).collect::<Res<_>>()?
            }
            Self::Range(range) => {
                crate::meter::room(range.length * ITEM)?;
                (0..range.length).map(|index| range.get(index)).collect()
            }
            Self::Stream(stream) => stream.items.borrow_mut().drain(..).collect(),
            Self::Loop(state) => state.remaining_items(),
            _ => return crate::error::wrong(format!("'{}' object is not iterable", self.type_name())),
        };
        crate::meter::spend(items.len() as u64)?;
        Ok(items)
    }

    pub(crate) fn is_iterable(&self) -> bool {
        matches!(
            self,
            Self::Undefined(_)
                | Self::Str(_)
                | Self::List(_)
                | Self::Tuple(_)
                | Self::Dict(_)
                | Self::View(..)
                | Self::Range(_)
                | Self::Stream(_)
                | Self::Loop(_)
        )
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(value as i128)
    }
}
