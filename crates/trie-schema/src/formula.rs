//! Schemas as formulas: keywords that constrain one value, and combinations of them.

use crate::json::Json;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use trie_rules::{Decimal, TextSet};

/// A schema, by its number.
pub(crate) type NodeId = u32;

/// The schema `true`.
pub(crate) const ANY: NodeId = 0;
/// The schema `false`.
pub(crate) const NONE: NodeId = 1;

/// A kind of values, which are written alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

/// A set of the types of JSON.
///
/// ```
/// use trie_schema::Types;
///
/// let scalar = Types::named("string").unwrap().or(Types::INTEGER);
/// assert!(scalar.meets(Types::NUMBER) && !scalar.meets(Types::ARRAY.or(Types::OBJECT)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Types(u8);

impl Types {
    /// The empty set of types.
    pub const NONE: Self = Self(0);
    /// `null`.
    pub const NULL: Self = Self(1);
    /// `true` and `false`.
    pub const BOOLEAN: Self = Self(2);
    /// Numbers without a fraction.
    pub const INTEGER: Self = Self(64);
    /// All numbers, integers too.
    pub const NUMBER: Self = Self(4 | 64);
    /// Strings.
    pub const STRING: Self = Self(8);
    /// Arrays.
    pub const ARRAY: Self = Self(16);
    /// Objects.
    pub const OBJECT: Self = Self(32);
    /// All types.
    pub const ALL: Self = Self(127);

    /// Returns the type with this name in JSON Schema.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    /// Returns the type with this name in JSON Schema or in a programming language, such as `int` and `dict`.
    pub fn named_anyhow(name: &str) -> Option<Self> {
        Self::named(name).or_else(|| {
            Some(match name {
                "none" | "None" => Self::NULL,
                "bool" => Self::BOOLEAN,
                "int" => Self::INTEGER,
                "float" => Self::NUMBER,
                "str" => Self::STRING,
                "list" => Self::ARRAY,
                "dict" => Self::OBJECT,
                "any" => Self::ALL,
                _ => return None,
            })
        })
    }

    /// Returns the union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the types of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether the sets have a type in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(crate) fn has_integer(self) -> bool {
        self.meets(Self::INTEGER)
    }
}

/// A pattern or a format, and the texts in which it is found.
#[derive(Debug)]
pub(crate) struct Texts {
    pub(crate) name: String,
    pub(crate) set: TextSet,
    /// Texts that certainly do not match, if these are not simply all others: for a format that is enforced in part.
    pub(crate) others: Option<TextSet>,
}

impl Texts {
    /// Returns whether a text is one of them, or is not.
    pub(crate) fn holds(&self, text: &str, sign: bool) -> bool {
        match (&self.others, sign) {
            (Some(others), false) => others.is_match(text),
            _ => self.set.is_match(text) == sign,
        }
    }
}

/// Values of an `enum`, a `const`, or that were written before; each once, in order.
#[derive(Debug)]
pub(crate) struct Values {
    /// As they were given.
    pub(crate) all: Vec<Json>,
    /// Their places in order, of many.
    order: OnceLock<Vec<u32>>,
    hash: OnceLock<u64>,
}

/// Values from which on one is looked up.
const MANY: usize = 16;

impl Values {
    pub(crate) fn new(all: Vec<Json>) -> Self {
        Self { all, order: OnceLock::new(), hash: OnceLock::new() }
    }

    fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let mut hash = std::collections::hash_map::DefaultHasher::new();
            self.all.hash(&mut hash);
            hash.finish()
        })
    }

    pub(crate) fn has(&self, value: &Json) -> bool {
        if self.all.len() < MANY {
            return self.all.contains(value);
        }
        let order = self.order.get_or_init(|| {
            let mut order: Vec<u32> = (0..self.all.len() as u32).collect();
            order.sort_by(|&one, &other| self.all[one as usize].cmp(&self.all[other as usize]));
            order
        });
        order.binary_search_by(|&at| self.all[at as usize].cmp(value)).is_ok()
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other) || self.hash() == other.hash() && self.all == other.all
    }
}

impl Eq for Values {}

impl Hash for Values {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash());
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NumberSaid {
    /// At least this; whether it is left out itself.
    Least(Decimal, bool),
    Most(Decimal, bool),
    Multiple(Decimal),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TextSaid {
    Least(u32),
    Most(u32),
    In(Arc<Texts>),
}

/// Some names of members.
#[derive(Debug, Clone)]
pub(crate) enum Names {
    Exact(Arc<str>),
    Matching(Arc<Texts>),
    /// All but these, and but those that match these.
    Outside(Arc<Outside>),
    /// Names that a schema does not allow, and whether that is certain for a schema that is enforced in part.
    Denied(NodeId, bool),
}

#[derive(Debug, PartialEq, Eq, Hash, Default)]
pub(crate) struct Outside {
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) matching: Vec<Arc<Texts>>,
}

impl PartialEq for Texts {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Texts {}

impl Hash for Texts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) => one == other,
            (Self::Matching(one), Self::Matching(other)) => one == other,
            (Self::Outside(one), Self::Outside(other)) => one == other,
            (Self::Denied(one, sign), Self::Denied(other, with)) => (one, sign) == (other, with),
            _ => false,
        }
    }
}

impl Eq for Names {}

#[derive(Debug, Clone)]
pub(crate) enum ObjectSaid {
    /// Every member with one of these names has a value of this schema; whether it says where the name comes.
    Each {
        names: Names,
        value: NodeId,
        declares: bool,
    },
    Has(Arc<str>),
    Least(usize),
    Most(usize),
}

#[derive(Debug, Clone)]
pub(crate) enum ArraySaid {
    /// Every item from one place to before another.
    Each {
        from: usize,
        to: usize,
        value: NodeId,
    },
    /// So many items are of this schema.
    Contains {
        value: NodeId,
        least: usize,
        most: usize,
    },
    Least(usize),
    Most(usize),
    Unique,
}

/// Formula of a schema: the values that it allows. A keyword for one kind of value allows all other kinds.
#[derive(Debug, Clone)]
pub(crate) enum Formula {
    True,
    False,
    /// A keyword that is not enforced: neither the keyword nor its negation refuses a value.
    Unheld,
    Types(Types),
    OneOf(Arc<Values>),
    Number(NumberSaid),
    Text(TextSaid),
    Object(ObjectSaid),
    Array(ArraySaid),
    All(Vec<Self>),
    Any(Vec<Self>),
    /// Exactly one.
    One(Vec<Self>),
    Not(Box<Self>),
    /// A constraint beyond the standard: a negation ignores it.
    AssertOnly(Box<Self>),
    Schema(NodeId),
}

/// A schema that is compiled.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// JSON pointer.
    pub(crate) at: Arc<str>,
    pub(crate) formula: Formula,
    /// Keyword whose alternatives this formula is, if they are not written as branches in the schema.
    pub(crate) keyword: Option<&'static str>,
    /// The text of a leaf: leaves with the same text are the same, in all schemas with the same options.
    pub(crate) leaf: Option<Arc<str>>,
}

impl Node {
    pub(crate) fn new(at: Arc<str>, formula: Formula) -> Self {
        Self { at, formula, keyword: None, leaf: None }
    }
}

/// Constraint of a goal: a schema or a list of values that must, or must not, match.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Literal {
    Is(NodeId),
    IsNot(NodeId),
    NotIn(Arc<Values>),
    In(Arc<Values>),
}

impl PartialOrd for Values {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Values {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.hash().cmp(&other.hash()).then_with(|| self.all.cmp(&other.all))
    }
}

impl Literal {
    pub(crate) fn negated(&self) -> Self {
        match self {
            Self::Is(node) => Self::IsNot(*node),
            Self::IsNot(node) => Self::Is(*node),
            Self::NotIn(values) => Self::In(Arc::clone(values)),
            Self::In(values) => Self::NotIn(Arc::clone(values)),
        }
    }
}
