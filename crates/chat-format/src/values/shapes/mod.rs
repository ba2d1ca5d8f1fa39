//! JSON Schemas, compiled to what may stand where: alternatives, each of one type.

pub(super) mod bounded;
pub(super) mod limits;
pub(super) mod listed;
pub(super) mod numbers;
pub(super) mod strings;

use crate::values::schema::compile;
use crate::values::shapes::limits::Limits;
use crate::values::shapes::numbers::NumberShape;
use crate::values::shapes::strings::TextShape;
use crate::values::types::Types;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::Hash;

/// Schemas, compiled. Equal ones are one.
#[derive(Debug)]
pub(crate) struct Shapes {
    all: Vec<Shape>,
    known: HashMap<Shape, ShapeId>,
    pub(super) objects: Arena<ObjectShape>,
    pub(super) arrays: Arena<ArrayShape>,
    pub(super) numbers: Arena<NumberShape>,
    pub(super) texts: Arena<TextShape>,
    pub(super) limits: Limits,
    /// For each shape how many levels its shallowest value has; [`NEVER`] where there is none.
    levels: Vec<u8>,
    types: Vec<Types>,
}

/// Levels of a shape that nothing has.
pub(super) const NEVER: u8 = u8::MAX;

/// One of [`Shapes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ShapeId(pub(super) u32);

/// What of a schema is not held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeWarning {
    /// JSON pointer of the schema in which it stands.
    pub(crate) pointer: String,
    /// The keyword.
    pub(crate) keyword: String,
    /// What holds instead.
    pub(crate) instead: String,
}

/// A schema that nothing satisfies, or no schema at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("schema at {pointer:?}: {problem}")]
#[non_exhaustive]
pub struct ShapeError {
    /// JSON pointer of the schema.
    pub pointer: String,
    /// Why, and what to do.
    pub problem: String,
}

trie_core::error_kind!(ShapeError, Rule);

/// What a value may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Anything at all.
    pub(super) any: bool,
    pub(super) alternatives: Box<[Alternative]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Alternative {
    Null,
    /// Bit 0: false. Bit 1: true.
    Boolean(u8),
    Number(u32),
    Text(u32),
    Array(u32),
    Object(u32),
    /// All of another shape: recursion goes through this.
    Same(ShapeId),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ObjectShape {
    /// In the order of their bytes.
    pub(super) keys: Box<[(Box<str>, ShapeId)]>,
    /// The places in `keys` of those that must come.
    pub(super) required: Box<[u32]>,
    /// What other keys hold; without it there are none.
    pub(super) others: Option<ShapeId>,
    /// The text shape that the names of other keys have; without it any.
    pub(super) names: Option<u32>,
    /// The fewest keys and the most.
    pub(super) counts: (u32, u32),
}

impl ObjectShape {
    /// Any number of keys.
    pub(super) const ANY_COUNT: (u32, u32) = (0, u32::MAX);
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ArrayShape {
    pub(super) first: Box<[ShapeId]>,
    /// What comes after those; without it nothing.
    pub(super) others: Option<ShapeId>,
    pub(super) min: u32,
    pub(super) max: u32,
}

/// Values; equal ones are kept once.
#[derive(Debug)]
pub(super) struct Arena<T> {
    all: Vec<T>,
    known: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Arena<T> {
    fn new() -> Self {
        Self { all: Vec::new(), known: HashMap::new() }
    }

    pub(super) fn get(&self, id: u32) -> &T {
        &self.all[id as usize]
    }

    pub(super) fn add(&mut self, one: T) -> u32 {
        if let Some(&id) = self.known.get(&one) {
            return id;
        }
        let id = self.all.len() as u32;
        self.all.push(one.clone());
        self.known.insert(one, id);
        id
    }
}

impl Default for Shapes {
    fn default() -> Self {
        Self::new()
    }
}

impl Shapes {
    /// Any JSON value; as arguments any object.
    pub(crate) const ANY: ShapeId = ShapeId(0);
    /// No value.
    pub(super) const NOTHING: ShapeId = ShapeId(1);

    pub(crate) fn new() -> Self {
        let any = Shape { any: true, alternatives: Box::default() };
        let nothing = Shape { any: false, alternatives: Box::default() };
        Self {
            known: [(any.clone(), Self::ANY), (nothing.clone(), Self::NOTHING)].into(),
            all: vec![any, nothing],
            objects: Arena::new(),
            arrays: Arena::new(),
            numbers: Arena::new(),
            texts: Arena::new(),
            limits: Limits::default(),
            levels: vec![0, NEVER],
            types: vec![Types::ALL, Types::NONE],
        }
    }

    /// Without what cannot be written: such values are left out with a warning, and what needs them is refused.
    pub(crate) fn within(limits: Limits) -> Self {
        Self { limits, ..Self::new() }
    }

    /// Adds the schema of the arguments of one tool.
    ///
    /// # Errors
    /// A schema that nothing satisfies, or no schema at all.
    pub(crate) fn add(&mut self, schema: &Value) -> Result<(ShapeId, Vec<ShapeWarning>), ShapeError> {
        let from = self.all.len();
        let compiled = compile(self, schema);
        self.settle(from);
        let (id, warnings, nothing) = compiled?;
        if self.levels(id) == NEVER {
            return Err(nothing.unwrap_or_else(|| ShapeError {
                pointer: String::new(),
                problem: "no value satisfies it: relax what contradicts itself".to_owned(),
            }));
        }
        if !self.types(id).meets(Types::OBJECT) {
            let problem = "arguments are an object: allow that type".to_owned();
            return Err(ShapeError { pointer: String::new(), problem });
        }
        Ok((id, warnings))
    }

    pub(super) fn get(&self, id: ShapeId) -> &Shape {
        &self.all[id.0 as usize]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The types that its values have.
    pub(super) fn types(&self, id: ShapeId) -> Types {
        self.types[id.0 as usize]
    }

    /// The levels of its shallowest value.
    pub(super) fn levels(&self, id: ShapeId) -> u8 {
        self.levels[id.0 as usize]
    }

    /// A shape of these alternatives.
    pub(super) fn of(&mut self, mut alternatives: Vec<Alternative>) -> ShapeId {
        alternatives.sort_unstable();
        alternatives.dedup();
        if let [Alternative::Same(id)] = alternatives[..] {
            return id;
        }
        let shape = Shape { any: false, alternatives: alternatives.into() };
        if let Some(&id) = self.known.get(&shape) {
            return id;
        }
        let id = self.reserve();
        self.known.insert(shape.clone(), id);
        self.all[id.0 as usize] = shape;
        id
    }

    /// A shape to be set later.
    pub(super) fn reserve(&mut self) -> ShapeId {
        self.all.push(self.all[Self::NOTHING.0 as usize].clone());
        self.levels.push(NEVER);
        self.types.push(Types::NONE);
        ShapeId(self.all.len() as u32 - 1)
    }

    pub(super) fn set(&mut self, id: ShapeId, same: ShapeId) {
        self.all[id.0 as usize] = match self.get(same) {
            Shape { any: true, .. } => self.get(same).clone(),
            _ if same == id => return,
            _ => Shape { any: false, alternatives: [Alternative::Same(same)].into() },
        };
    }

    /// Finds levels and types of the shapes from this one on: least ones, so that recursion without an end is nothing.
    fn settle(&mut self, from: usize) {
        let mut changed = true;
        while changed {
            changed = false;
            for id in (from..self.all.len()).rev().chain(from..self.all.len()) {
                let shape = &self.all[id];
                let (mut levels, mut types) = if shape.any { (0, Types::ALL) } else { (NEVER, Types::NONE) };
                for &alternative in &shape.alternatives {
                    let needs = self.levels_of(alternative);
                    if needs != NEVER {
                        levels = levels.min(needs);
                        types = types.or(self.types_of(alternative));
                    }
                }
                if (levels, types) != (self.levels[id], self.types[id]) {
                    (self.levels[id], self.types[id]) = (levels, types);
                    changed = true;
                }
            }
        }
    }

    /// The levels of the shallowest value of an alternative.
    pub(super) fn levels_of(&self, alternative: Alternative) -> u8 {
        let deepest = |levels: u8| if levels >= crate::values::syntax::MOST_LEVELS { NEVER } else { levels + 1 };
        match alternative {
            Alternative::Same(id) => self.levels(id),
            Alternative::Object(id) => {
                let object = self.objects.get(id);
                let of_key = |key: u32| self.levels(object.keys[key as usize].1);
                let required = object.required.iter().map(|&key| of_key(key)).max().unwrap_or(0);
                let missing = (object.counts.0 as usize).saturating_sub(object.required.len());
                if missing == 0 {
                    return deepest(required);
                }
                // Of those that may come the shallowest.
                let is_free = |key: &u32| !object.required.contains(key);
                let mut free: Vec<u8> = (0..object.keys.len() as u32).filter(is_free).map(of_key).collect();
                free.sort_unstable();
                let other = object.others.map_or(NEVER, |others| self.levels(others));
                deepest(required.max(free.get(missing - 1).copied().unwrap_or(NEVER).min(other)))
            }
            Alternative::Array(id) => {
                let array = self.arrays.get(id);
                let first = array.first.iter().take(array.min as usize).map(|&id| self.levels(id));
                let others = if array.min as usize <= array.first.len() {
                    0
                } else {
                    array.others.map_or(NEVER, |id| self.levels(id))
                };
                deepest(first.max().unwrap_or(0).max(others))
            }
            _ => 0,
        }
    }

    fn types_of(&self, alternative: Alternative) -> Types {
        match alternative {
            Alternative::Null => Types::NULL,
            Alternative::Boolean(_) => Types::BOOLEAN,
            Alternative::Number(id) => self.numbers.get(id).types(),
            Alternative::Text(_) => Types::STRING,
            Alternative::Array(_) => Types::ARRAY,
            Alternative::Object(_) => Types::OBJECT,
            Alternative::Same(id) => self.types(id),
        }
    }

    /// All alternatives, those of others among them.
    pub(super) fn alternatives(&self, id: ShapeId) -> Vec<Alternative> {
        let (mut all, mut seen, mut open) = (Vec::new(), vec![id], vec![id]);
        while let Some(id) = open.pop() {
            for &alternative in &self.get(id).alternatives {
                match alternative {
                    Alternative::Same(other) if !seen.contains(&other) => {
                        seen.push(other);
                        open.push(other);
                    }
                    Alternative::Same(_) => {}
                    other => all.push(other),
                }
            }
        }
        all
    }

    /// Whether anything goes.
    pub(super) fn is_any(&self, id: ShapeId) -> bool {
        let shape = self.get(id);
        let same = |alternative: &Alternative| matches!(alternative, Alternative::Same(id) if self.get(*id).any);
        shape.any || shape.alternatives.iter().any(same)
    }

    /// The only kind of object that a shape has; `None` where there are several or none.
    pub(super) fn only_object(&self, id: ShapeId) -> Option<u32> {
        let alternatives = self.alternatives(id);
        let mut objects = alternatives.iter().filter_map(|alternative| match alternative {
            Alternative::Object(id) => Some(*id),
            _ => None,
        });
        objects.next().filter(|_| objects.next().is_none())
    }

    /// What an item of a list is, and how many items have a shape of their own.
    pub(super) fn item(&self, id: ShapeId, index: u32) -> (ShapeId, u32) {
        let alternatives = self.alternatives(id);
        let mut arrays = alternatives.iter().filter_map(|alternative| match alternative {
            Alternative::Array(id) => Some(self.arrays.get(*id)),
            _ => None,
        });
        match (arrays.next(), arrays.next()) {
            (Some(array), None) => {
                let shape = array.first.get(index as usize).copied().or(array.others);
                (shape.unwrap_or(Self::ANY), array.first.len() as u32)
            }
            _ => (Self::ANY, 0),
        }
    }
}
