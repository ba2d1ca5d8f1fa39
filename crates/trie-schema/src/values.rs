//! Values that are fed as events, whatever their syntax: the interface for the styles of tool calls.

use crate::event::Event;
use crate::formula::Types;
use crate::formula::{Formula, Node};
use crate::json::Json;
use crate::machine::Place;
use crate::schema::cache::{Group, ToolKey, ToolSchema};
use crate::schema::{
    Closing, Made, Order, SchemaCache, SchemaError, SchemaOptions, SchemaWarning, check_depth, lists_values,
    remove_excluding_types, written,
};
use crate::shape::{Engine, Goal, lock};
use crate::writable::Writable;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use trie_core::Problem;
use trie_rules::TextSet;

/// Identifier of the schema of a value, in [`Values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

/// State inside a value. Equal states allow the same continuations.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValueState {
    schema: u32,
    /// The types that the next value may have.
    types: Types,
    place: Place,
}

/// Names of the members of an object, with the schemas of their values.
#[derive(Debug)]
pub struct MemberNames {
    /// Declared names in the order of their bytes, each with its schema.
    pub names: Box<[(Arc<str>, ValueId)]>,
    /// Schema of the members with other names.
    pub others: ValueId,
}

/// Schemas of tool arguments. The machine for documents decides their values, which are fed as events.
///
/// ```
/// use trie_schema::{Event, Values, Types};
///
/// let mut values = Values::new(None);
/// let schema = serde_json::json!({"type": "object", "properties": {"n": {"enum": [12, 15]}}, "required": ["n"]});
/// let (id, warnings) = values.add(&schema)?;
/// let mut state = values.begin(id);
/// for event in [Event::ObjectOpen, Event::TextOpen, Event::Text(b'n'), Event::TextClose, Event::Number(b'1')] {
///     assert!(values.tell(&mut state, event));
/// }
/// assert!(!values.tell(&mut state.clone(), Event::Number(b'3')) && !values.may_number_end(&state));
/// assert!(values.tell(&mut state, Event::Number(b'5')) && values.may_number_end(&state));
/// # assert!(warnings.is_empty());
/// # Ok::<(), trie_schema::SchemaError>(())
/// ```
pub struct Values {
    options: SchemaOptions,
    /// Schemas that are kept for other lists of tools, too.
    kept: Arc<Group>,
    schemas: Vec<Arc<ToolSchema>>,
    ids: Mutex<Ids>,
}

#[derive(Default)]
struct Ids {
    known: HashMap<(u32, Arc<Goal>), ValueId>,
    all: Vec<Arc<ValueGoal>>,
}

/// Constraints on a value.
struct ValueGoal {
    schema: u32,
    goal: Arc<Goal>,
    types: OnceLock<Types>,
    members: OnceLock<Option<Arc<MemberNames>>>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("schemas", &self.schemas.len()).finish_non_exhaustive()
    }
}

impl SchemaOptions {
    /// Returns the options for the schemas of tool arguments: members in any order, undeclared names disallowed, types
    /// implied by keywords, and unsupported keywords left out.
    pub fn of_arguments() -> Self {
        let names = Closing::Closed;
        Self { lenient: true, order: Order::Any, names, implied_types: true, ..Self::default() }
    }
}

impl Values {
    /// The schema that allows any value.
    pub const ANY: ValueId = ValueId(0);

    /// Returns an empty collection. `writable` limits the texts that can be written, if the format cannot write all.
    pub fn new(writable: Option<Writable>) -> Self {
        Self::sharing(writable, &SchemaCache::default())
    }

    /// The same with the schemas of a cache, which keeps those that are added.
    pub fn sharing(writable: Option<Writable>, cache: &SchemaCache) -> Self {
        let mut options = SchemaOptions::of_arguments();
        options.writable = writable.filter(|writable| !writable.is_all()).map(Arc::new);
        let node = |formula: Formula| Node::new("".into(), formula);
        // They have no pattern of blanks, which alone is refused.
        let written = written(&options).unwrap_or_default();
        let kept = cache.group(options.writable.as_ref());
        let engine = Engine::sharing(vec![node(Formula::True), node(Formula::False)], written, &kept.common());
        let root = engine.goal([]);
        let any = Arc::new(ToolSchema { engine, root, warnings: Vec::new() });
        let values = Self { options, kept, schemas: vec![Arc::clone(&any)], ids: Mutex::default() };
        values.id(0, &any.root);
        values
    }

    /// Adds a schema of objects, and returns its id, with warnings about parts that are not enforced or have no effect.
    ///
    /// Where no value of an `enum` or `const` has the `type` beside it, the listed values are allowed, with a warning.
    ///
    /// # Errors
    /// As [`JsonSchema::of`](crate::JsonSchema::of); a schema that allows no object.
    pub fn add(&mut self, schema: &Value) -> Result<(ValueId, Vec<SchemaWarning>), SchemaError> {
        let options = self.options.clone();
        self.add_with(schema, &options)
    }

    /// The same for a schema that must be held as a whole, and must not allow members that it does not name.
    ///
    /// # Errors
    /// As [`Values::add`]; a keyword that is not supported, and `additionalProperties` that are allowed.
    pub fn add_strict(&mut self, schema: &Value) -> Result<(ValueId, Vec<SchemaWarning>), SchemaError> {
        let options = SchemaOptions { lenient: false, sealed: true, ..self.options.clone() };
        self.add_with(schema, &options)
    }

    fn add_with(
        &mut self,
        schema: &Value,
        options: &SchemaOptions,
    ) -> Result<(ValueId, Vec<SchemaWarning>), SchemaError> {
        check_depth(schema)?;
        let text = schema.to_string();
        let lists = lists_values(&text);
        let key = ToolKey::Schema { text: text.into(), sealed: options.sealed };
        let made = self.kept.get_or_make(key, |common| {
            let mut schema = Cow::Borrowed(schema);
            let removed = if lists && options.lenient { remove_excluding_types(&mut schema) } else { Vec::new() };
            let given = lists.then_some(&*schema);
            let mut made = Made::of_objects(&Json::of(&schema), given, options, common)?;
            made.unheld.splice(0..0, removed);
            Ok(made)
        })?;
        Ok((self.push(&made), made.warnings.clone()))
    }

    fn push(&mut self, made: &Arc<ToolSchema>) -> ValueId {
        let number = self.schemas.len() as u32;
        self.schemas.push(Arc::clone(made));
        self.id(number, &made.root)
    }

    /// Adds the schema of objects with one member, a string of a set, and returns its id. `texts` names the set: equal
    /// names are equal sets.
    ///
    /// ```
    /// use trie_rules::TextSet;
    /// use trie_schema::{Event, Values};
    ///
    /// let mut values = Values::new(None);
    /// let id = values.add_text("input", "dates", &TextSet::pattern("^[0-9]{4}-[0-9]{2}$")?)?;
    /// let mut state = values.begin(id);
    /// let events = [Event::ObjectOpen, Event::TextOpen].into_iter().chain("input".bytes().map(Event::Text));
    /// for event in events.chain([Event::TextClose, Event::TextOpen, Event::Text(b'2')]) {
    ///     assert!(values.tell(&mut state, event));
    /// }
    /// assert!(!values.takes(&state, b"x") && values.takes(&state, b"026-11"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// No text of the set can be written.
    pub fn add_text(&mut self, member: &str, texts: &str, set: &TextSet) -> Result<ValueId, SchemaError> {
        let key = ToolKey::Texts { member: member.into(), set: texts.into() };
        let made = self.kept.get_or_make(key, |common| Made::of_text(member, texts, set, &self.options, common))?;
        Ok(self.push(&made))
    }

    fn id(&self, schema: u32, goal: &Arc<Goal>) -> ValueId {
        // What may be anything is that in every schema.
        let schema = if goal.literals.is_empty() { 0 } else { schema };
        let mut ids = lock(&self.ids);
        if let Some(&known) = ids.known.get(&(schema, Arc::clone(goal))) {
            return known;
        }
        let id = ValueId(ids.all.len() as u32);
        let goal = Arc::clone(goal);
        ids.known.insert((schema, Arc::clone(&goal)), id);
        ids.all.push(Arc::new(ValueGoal { schema, goal, types: OnceLock::new(), members: OnceLock::new() }));
        id
    }

    fn asked(&self, id: ValueId) -> Arc<ValueGoal> {
        Arc::clone(&lock(&self.ids).all[id.0 as usize])
    }

    fn engine(&self, state: &ValueState) -> &Engine {
        &self.schemas[state.schema as usize].engine
    }

    /// Returns whether a value may be anything.
    pub fn is_any(&self, id: ValueId) -> bool {
        id == Self::ANY
    }

    /// Returns the types that values of a schema may have.
    pub fn types(&self, id: ValueId) -> Types {
        let asked = self.asked(id);
        *asked.types.get_or_init(|| self.schemas[asked.schema as usize].engine.types_of(&asked.goal))
    }

    /// Returns the names of the members of an object; `None` if the schema allows no objects, or several kinds of
    /// objects.
    pub fn members(&self, id: ValueId) -> Option<Arc<MemberNames>> {
        let asked = self.asked(id);
        let find = || {
            let shapes = self.schemas[asked.schema as usize].engine.shapes(&asked.goal).ok()?;
            let [object] = &shapes.objects[..] else { return None };
            let id = |goal: &Arc<Goal>| self.id(asked.schema, goal);
            let mut names: Vec<(Arc<str>, ValueId)> =
                object.names.iter().map(|named| (Arc::clone(&named.name), id(&named.goal))).collect();
            names.sort_unstable();
            let others = object.classes.first().map_or(Self::ANY, |class| id(&class.goal));
            Some(Arc::new(MemberNames { names: names.into(), others }))
        };
        asked.members.get_or_init(find).clone()
    }

    /// Returns the schema of an item of an array, and the number of leading items that have schemas of their own.
    pub fn item(&self, id: ValueId, index: usize) -> (ValueId, usize) {
        let asked = self.asked(id);
        match self.schemas[asked.schema as usize].engine.shapes(&asked.goal) {
            Ok(shapes) => match &shapes.arrays[..] {
                [array] => (self.id(asked.schema, array.goal(index)), array.prefix.len()),
                _ => (Self::ANY, 0),
            },
            Err(_) => (Self::ANY, 0),
        }
    }

    /// Returns the state before a value.
    pub fn begin(&self, id: ValueId) -> ValueState {
        let asked = self.asked(id);
        ValueState { schema: asked.schema, types: Types::ALL, place: Place::of_value(&asked.goal) }
    }

    /// Takes an event. Returns `false` if no value continues with it; the state must then be discarded.
    #[inline]
    pub fn tell(&self, state: &mut ValueState, event: Event) -> bool {
        if state.types != Types::ALL {
            if !state.types.meets(event.types()) {
                return false;
            }
            state.types = Types::ALL;
        }
        if let (Event::Text(_) | Event::Number(_), Some(fits)) = (event, Engine::tell_byte(&mut state.place, event)) {
            return fits;
        }
        match self.engine(state).tell(&state.place, event) {
            Some(place) => {
                state.place = place;
                true
            }
            None => false,
        }
    }

    /// Returns whether a string, or a name, may end here.
    pub fn may_text_end(&self, state: &ValueState) -> bool {
        self.engine(state).may_text_end(&state.place)
    }

    /// Returns whether a number may end here.
    #[allow(clippy::unused_self, reason = "beside the others")]
    pub fn may_number_end(&self, state: &ValueState) -> bool {
        Engine::may_number_end(&state.place)
    }

    /// Returns whether a string or a name may go on with these bytes.
    pub fn takes(&self, state: &ValueState, bytes: &[u8]) -> bool {
        let mut state = state.clone();
        bytes.iter().all(|&byte| self.tell(&mut state, Event::Text(byte)))
    }

    /// Requires a first item, right after the beginning of an array. Returns `false` if no item is possible.
    pub fn first_item(&self, state: &mut ValueState) -> bool {
        match self.engine(state).first_item(&state.place) {
            Some(place) => {
                state.place = place;
                true
            }
            None => false,
        }
    }

    /// Returns the types of the value that must come next.
    pub fn types_here(&self, state: &ValueState) -> Types {
        self.engine(state).types_at(&state.place).and(state.types)
    }

    /// Returns whether only listed strings and names, with the syntax around them, may come next.
    pub fn leads_to_listed(&self, state: &ValueState) -> bool {
        self.engine(state).leads_to_listed(&state.place)
    }

    /// Takes the error because of which an event could not be decided on this thread.
    pub fn failure(&self) -> Option<Problem> {
        if !Engine::is_any_failing() {
            return None;
        }
        let refused = self.schemas.iter().find_map(|schema| schema.engine.take_failure());
        refused.map(|refused| Problem::new(SchemaError::from(refused)))
    }

    /// Returns whether an event could not be decided on this thread.
    pub fn is_failing(&self) -> bool {
        Engine::is_any_failing() && self.schemas.iter().any(|schema| schema.engine.is_failing())
    }
}

impl ValueState {
    /// Returns the state in which the next value is limited to these types; `None` if no type is left.
    #[must_use]
    pub fn of_types(&self, types: Types) -> Option<Self> {
        let types = self.types.and(types);
        (types != Types::NONE).then(|| Self { types, ..self.clone() })
    }

    /// Returns the union of two states: the continuations of both are allowed.
    #[must_use]
    pub fn or(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => Self { place: self.place.or(&other.place), ..self },
            None => self,
        }
    }

    /// Returns a number of characters that may come in the string of the state, whatever they are: 0 outside of
    /// strings, `u32::MAX` without a limit. A lower bound.
    pub fn free_chars(&self) -> u32 {
        self.place.free_chars()
    }

    /// Returns whether the state is in a string without constraints.
    pub fn is_free_text(&self) -> bool {
        self.place.is_free_text()
    }

    /// Returns whether the state is in a string that is constrained only in its length.
    pub fn is_unlisted_text(&self) -> bool {
        self.place.is_unlisted_text()
    }

    /// Returns whether the state is in a string that must be one of listed texts.
    pub fn is_listed(&self) -> bool {
        self.place.is_listed()
    }

    /// Adds the rests of the texts that are possible here. Returns `false` if they are not listed, or more than `most`.
    pub fn listed(&self, most: usize, to: &mut Vec<crate::RemainingText>) -> bool {
        self.place.listed(most, to)
    }

    /// Drops recorded beginnings of names, except those that may become a name that must not come. This is for walks
    /// over a vocabulary in which no token contains two complete names of one object.
    pub fn forget_names(&mut self) {
        if let Some(place) = self.place.without_names() {
            self.place = place;
        }
    }

    /// Returns an estimate of the parts that are missing, which guides searches for an end.
    #[doc(hidden)]
    pub fn distance(&self) -> u32 {
        self.place.distance()
    }
}
