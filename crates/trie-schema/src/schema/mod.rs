//! JSON Schema: text or value in, a rule out.

mod blame;
pub(crate) mod cache;
mod contradictions;
mod error;

pub use cache::SchemaCache;
pub(crate) use contradictions::remove_excluding_types;
pub use error::{SchemaError, SchemaWarning};
pub(crate) use error::{place, shown};

use crate::compile::{compiled, too_much};
use crate::event::MOST_LEVELS;
use crate::formula::{Formula, Literal, NONE, Names, Node, ObjectSaid, Outside, TextSaid, Texts, Types};
use crate::json::Json;
use crate::machine::{DocumentWalk, Place};
use crate::shape::{Blanks, Common, Engine, Goal, Search, Written};
use crate::writable::Writable;
use contradictions::contradictions;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use trie_core::Problem;
use trie_core::work::{Limits, Work, over, spend};
use trie_rules::{ByRule, ByRuleError, Documents, Regex, Rule, TextSet, TokenBytes, Walker};

/// Maximum nesting depth of a schema. Text that is deeper is refused when it is parsed already.
const DEEPEST: usize = 128;
/// Maximum number of goals that are decided before a document is begun, so that impossible ones are refused at that
/// time. Nearly every schema has fewer, and the limit keeps compiling fast.
const FIRST_GOALS: usize = 20_000;

/// Whitespace allowed between the parts of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// One space behind a comma or a colon, or none: `{"a": 1, "b": 2}` and `{"a":1,"b":2}`. No line breaks.
    #[default]
    Compact,
    /// Up to [`Whitespace::MOST_FLEXIBLE`] characters of JSON's whitespace in a row, in each gap; or a line break and
    /// an indentation of up to two spaces for each array and object that is open.
    Flexible,
    /// No whitespace at all.
    None,
    /// Any whitespace, of any length: for texts that are read. A model may write whitespace for ever.
    Any,
    /// Whitespace that this regular expression matches.
    Pattern(String),
}

impl Whitespace {
    /// Maximum number of characters in a row where whitespace is flexible, but for indentation.
    pub const MOST_FLEXIBLE: usize = crate::shape::MOST_FLEXIBLE;
}

/// Treatment of the `format` keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Formats {
    /// Every format that JSON Schema names is asserted.
    #[default]
    Assert,
    /// Formats have no effect.
    Annotate,
}

/// Order of the members of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As `properties` name them; names that no `properties` have come behind those.
    #[default]
    Schema,
    /// In any.
    Any,
}

/// Treatment of members whose names a schema does not mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closing {
    /// Allowed unless `additionalProperties` says otherwise, as in the standard.
    #[default]
    Open,
    /// Disallowed where a schema mentions some names and says nothing of others.
    Closed,
}

/// Options for reading a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[non_exhaustive]
pub struct SchemaOptions {
    /// Whitespace between the parts.
    pub whitespace: Whitespace,
    /// True if any character in a string may be written as `\uXXXX`, not only those that must be.
    pub unicode_escapes: bool,
    /// True to leave out keywords that are not supported, instead of refusing them. They are listed in
    /// [`JsonSchema::unheld`], and documents may then break the schema.
    pub lenient: bool,
    /// True if formats are asserted.
    pub formats: Formats,
    /// The order of members.
    pub order: Order,
    /// True if numbers may be written in any way: a whole one as `1.0` or `1e2`.
    pub any_numerals: bool,
    /// Treatment of members whose names the schema does not mention.
    pub names: Closing,
    /// True if a keyword for one type implies that type where the schema has no `type`.
    pub implied_types: bool,
    /// True if a schema must not allow members that it does not name.
    pub sealed: bool,
    /// Limits on the texts that can be written; `None` if there are none.
    pub(crate) writable: Option<Arc<Writable>>,
}

impl SchemaOptions {
    /// Returns whether something is asked beside the standard.
    pub(crate) fn asks_more(&self) -> bool {
        self.names == Closing::Closed || self.implied_types || self.writable.is_some()
    }
}

impl Default for SchemaOptions {
    /// Compact whitespace, any escapes, nothing left out, formats asserted, the order of the schema, plain numerals.
    fn default() -> Self {
        Self {
            whitespace: Whitespace::Compact,
            unicode_escapes: true,
            lenient: false,
            formats: Formats::Assert,
            order: Order::Schema,
            any_numerals: false,
            names: Closing::Open,
            implied_types: false,
            sealed: false,
            writable: None,
        }
    }
}

/// A compiled JSON Schema: every text that it allows is a JSON document that is valid under the schema. A clone costs a
/// few reference counts.
///
/// It is a [`Rule`]: a state is a position in a document, and states are equal for documents with the same
/// continuations.
///
/// ```
/// use trie_rules::{AnyRule, Read};
/// use trie_schema::{JsonSchema, SchemaError, SchemaOptions};
///
/// let schema = r#"{"type": "array", "items": {"type": "integer", "minimum": 0}, "uniqueItems": true}"#;
/// let schema = JsonSchema::new(schema, SchemaOptions::default())?;
/// assert_eq!(schema.read(b"[1, 12]"), Read::Whole);
/// assert_eq!(schema.read(b"[1, 1]"), Read::Refused { at: 5 });
///
/// let schema = r#"{"properties": {"a": {"minimum": 3, "maximum": 2, "type": "integer"}}, "required": ["a"],
///     "type": "object"}"#;
/// let error = JsonSchema::new(schema, SchemaOptions::default()).unwrap_err();
/// assert!(error.to_string().starts_with("at /properties/a: no document is allowed: minimum, maximum, type exclude"));
/// assert!(error.to_string().ends_with(" each other: minimum is 3, maximum is 2, type is \"integer\""));
/// # Ok::<(), SchemaError>(())
/// ```
#[derive(Clone)]
pub struct JsonSchema {
    engine: Arc<Engine>,
    root: Arc<Goal>,
    unheld: Arc<[SchemaWarning]>,
    warnings: Arc<[String]>,
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonSchema").field("schemas", &self.engine.nodes.len()).finish_non_exhaustive()
    }
}

/// Returns the spelling of documents under some options.
pub(crate) fn written(options: &SchemaOptions) -> Result<Written, SchemaError> {
    let pattern = |pattern: &str| {
        let invalid = |reason: String| SchemaError::Invalid { at: String::new(), reason };
        let regex = Regex::new(pattern)
            .map_err(|error| over().map_or_else(|| invalid(format!("invalid whitespace: {error}")), too_much))?;
        if !Documents::may_be_blanks(&regex) {
            let expected = "expected \"compact\", \"flexible\", \"none\", or a regular expression of spaces, tabs and \
                            line ends alone";
            let reason = format!("invalid whitespace: {expected}, got {pattern:?}");
            return Err(invalid(reason));
        }
        Ok(Blanks::Pattern(regex.automaton().clone()))
    };
    let blanks = match &options.whitespace {
        Whitespace::Compact => Blanks::Compact,
        Whitespace::Flexible => Blanks::Flexible,
        Whitespace::None => Blanks::None,
        Whitespace::Any => Blanks::Any,
        Whitespace::Pattern(given) => pattern(given)?,
    };
    Ok(Written {
        blanks,
        escapes: options.unicode_escapes,
        any_order: options.order == Order::Any,
        any_spelling: options.any_numerals,
        writable: options.writable.clone(),
    })
}

impl JsonSchema {
    /// Compiles a schema from JSON text. Numbers keep all of their digits.
    ///
    /// # Errors
    /// [`SchemaError`], with its place: text that is not JSON or not a schema, a schema that is not supported, is too
    /// large or allows nothing.
    #[allow(clippy::needless_pass_by_value, reason = "they are made for it")]
    pub fn new(schema: &str, options: SchemaOptions) -> Result<Self, SchemaError> {
        let parsed = || serde_json::from_str::<Value>(schema);
        let Some(json) = Json::read(schema) else {
            let unread = |line, column, reason| SchemaError::Json { line, column, reason };
            return Err(match parsed() {
                Err(error) => {
                    let reason = error.to_string().split(" at line ").next().unwrap_or_default().to_owned();
                    unread(error.line(), error.column(), reason)
                }
                Ok(_) => unread(1, 1, format!("nested more than {DEEPEST} levels deep")),
            });
        };
        let given = if lists_values(schema) { parsed().ok() } else { None };
        Work::run_bounded(Limits::default(), || Self::made(&json, given.as_ref(), &options))
    }

    /// Compiles a parsed schema. Numbers have the digits that its parser kept.
    ///
    /// # Errors
    /// As [`JsonSchema::new`].
    #[allow(clippy::needless_pass_by_value, reason = "they are made for it")]
    pub fn of(schema: Value, options: SchemaOptions) -> Result<Self, SchemaError> {
        check_depth(&schema)?;
        Work::run_bounded(Limits::default(), || Self::made(&Json::of(&schema), Some(&schema), &options))
    }

    fn made(json: &Json, given: Option<&Value>, options: &SchemaOptions) -> Result<Self, SchemaError> {
        let made = Made::new(json, given, options, None)?;
        let mut warnings: Vec<String> =
            made.notes.iter().map(|note| format!("{}{}", place(&note.at), note.reason)).collect();
        let unheld = made.unheld;
        warnings.extend(unheld.iter().map(|one| format!("{}{} is not held", place(&one.at), one.keyword)));
        let dead = made.dead.iter();
        warnings.extend(dead.map(|one| format!("{}no value comes here: {}", place(&one.at), one.reason)));
        Ok(Self { engine: Arc::new(made.engine), root: made.root, unheld: unheld.into(), warnings: warnings.into() })
    }

    /// Returns the keywords that are not enforced, with their places: only [`SchemaOptions::lenient`] leaves any out.
    pub fn unheld(&self) -> &[SchemaWarning] {
        &self.unheld
    }

    /// Returns warnings: keywords that are not enforced or have no effect, and places where no value is allowed.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the schema as a constraint over these tokens.
    ///
    /// # Errors
    /// A vocabulary that cannot begin any legal document.
    pub fn over(&self, tokens: &Arc<TokenBytes>) -> Result<ByRule<Self>, ByRuleError> {
        ByRule::new(self.clone(), Arc::clone(tokens))
    }
}

/// Returns whether the text of a schema may have a keyword that lists values: only what is listed may contradict the
/// keywords beside it.
pub(crate) fn lists_values(schema: &str) -> bool {
    schema.contains("\"enum\"") || schema.contains("\"const\"")
}

/// A schema that was read and allows something.
pub(crate) struct Made {
    pub(crate) engine: Engine,
    pub(crate) root: Arc<Goal>,
    /// Keywords that were left out.
    pub(crate) unheld: Vec<SchemaWarning>,
    /// Warnings about keywords that have no effect, and about values that the format cannot write.
    pub(crate) notes: Vec<SchemaWarning>,
    /// Places where no value can come.
    pub(crate) dead: Vec<SchemaWarning>,
}

impl Made {
    /// Reads a schema of objects, whose engine shares what others have.
    pub(crate) fn of_objects(
        json: &Json,
        given: Option<&Value>,
        options: &SchemaOptions,
        common: &Arc<Common>,
    ) -> Result<Self, SchemaError> {
        Self::new(json, given, options, Some(common))
    }

    /// Makes the schema of objects with one member, a string of a set that has this name.
    pub(crate) fn of_text(
        member: &str,
        name: &str,
        set: &TextSet,
        options: &SchemaOptions,
        common: &Arc<Common>,
    ) -> Result<Self, SchemaError> {
        // No pattern begins so.
        let texts = Texts { name: format!("\0{name}"), set: set.clone(), others: None };
        let member: Arc<str> = member.into();
        let names = Names::Exact(Arc::clone(&member));
        let outside = Outside { names: vec![Arc::clone(&member)], matching: Vec::new() };
        let others = Names::Outside(Arc::new(outside));
        let (text, object) = (2, 3);
        let nodes = [
            Formula::True,
            Formula::False,
            Formula::All(vec![Formula::Types(Types::STRING), Formula::Text(TextSaid::In(Arc::new(texts)))]),
            Formula::All(vec![
                Formula::Types(Types::OBJECT),
                Formula::Object(ObjectSaid::Each { names, value: text, declares: true }),
                Formula::Object(ObjectSaid::Each { names: others, value: NONE, declares: false }),
                Formula::Object(ObjectSaid::Has(member)),
            ]),
        ];
        let nodes = nodes.into_iter().map(|formula| Node::new("".into(), formula)).collect();
        let engine = Engine::sharing(nodes, written(options)?, common);
        let root = engine.goal([Literal::Is(object)]);
        let mut search = Search::new();
        let is_possible = engine.is_possible(&root, &mut search);
        search.refused()?;
        over().map_or(Ok(()), |over| Err(too_much(over)))?;
        if !is_possible {
            let reason = "no text of it can be written in this format".to_owned();
            return Err(SchemaError::Nothing { at: String::new(), reason });
        }
        look_ahead(&engine, &root)?;
        Ok(Self { engine, root, unheld: Vec::new(), notes: Vec::new(), dead: Vec::new() })
    }

    fn new(
        json: &Json,
        given: Option<&Value>,
        options: &SchemaOptions,
        of_objects: Option<&Arc<Common>>,
    ) -> Result<Self, SchemaError> {
        if !matches!(json, Json::Object(_) | Json::Bool(_)) {
            let reason = format!("a schema is an object or a boolean, not {}", shown(json));
            return Err(SchemaError::Invalid { at: String::new(), reason });
        }
        let written = written(options)?;
        let mut compiled = compiled(json, options)?;
        let object = compiled.nodes.len() as u32;
        compiled.nodes.push(Node::new("".into(), Formula::Types(Types::OBJECT)));
        let engine = match of_objects {
            Some(common) => Engine::sharing(compiled.nodes, written, common),
            None => Engine::new(compiled.nodes, written),
        };
        let any = engine.goal([Literal::Is(compiled.root)]);
        let root = of_objects.map_or_else(|| Arc::clone(&any), |_| engine.with(&any, Literal::Is(object)));
        let mut search = Search::new();
        let is_possible = engine.is_possible(&root, &mut search);
        let is_other = !is_possible && of_objects.is_some() && engine.is_possible(&any, &mut search);
        search.refused()?;
        over().map_or(Ok(()), |over| Err(too_much(over)))?;
        if is_other {
            let reason = "arguments are an object: allow that type".to_owned();
            return Err(SchemaError::Nothing { at: String::new(), reason });
        }
        if !is_possible {
            let blamed = blame::blamed(json, options, given);
            let unwritten = |at: &str| compiled.unwritten.iter().find(|one| one.at == at);
            return Err(match blamed {
                SchemaError::Nothing { at, reason } => {
                    let reason = unwritten(&at).map_or(reason, |one| one.reason.clone());
                    SchemaError::Nothing { at, reason }
                }
                other => other,
            });
        }
        look_ahead(&engine, &root)?;
        // Documents have no such limit.
        if of_objects.is_some() && !engine.has_room(&root)? {
            let reason = format!("each of its values has more than {MOST_LEVELS} objects and arrays inside each other");
            return Err(SchemaError::TooLarge { reason });
        }
        let dead = given.map_or_else(Vec::new, contradictions);
        let notes = compiled.notes.into_iter().chain(compiled.unwritten).collect();
        Ok(Self { engine, root, unheld: compiled.unheld, notes, dead })
    }
}

/// Makes out what may be asked of the parts of a document, so that what cannot be is refused before one is begun.
fn look_ahead(engine: &Engine, root: &Arc<Goal>) -> Result<(), SchemaError> {
    let (mut open, mut seen) = (VecDeque::from([Arc::clone(root)]), HashSet::from([Arc::clone(root)]));
    while let Some(goal) = open.pop_front() {
        spend(8).map_err(too_much)?;
        engine.shapes(&goal)?;
        for part in engine.parts(&goal) {
            if seen.len() >= FIRST_GOALS {
                return Ok(());
            }
            if seen.insert(Arc::clone(&part)) {
                open.push_back(part);
            }
        }
    }
    Ok(())
}

pub(crate) fn check_depth(schema: &Value) -> Result<(), SchemaError> {
    let mut left = vec![(schema, 0)];
    while let Some((value, depth)) = left.pop() {
        if depth > DEEPEST {
            return Err(SchemaError::TooLarge { reason: format!("nested more than {DEEPEST} levels deep") });
        }
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => left.extend(members.values().map(|member| (member, depth + 1))),
            _ => {}
        }
    }
    Ok(())
}

impl Rule for JsonSchema {
    type State = Place;

    fn start(&self) -> Place {
        Place::of_value(&self.root)
    }

    fn step(&self, state: &Place, byte: u8) -> Option<Place> {
        self.engine.steps(state, &[byte])
    }

    fn steps(&self, state: &Place, bytes: &[u8]) -> Option<Place> {
        self.engine.steps(state, bytes)
    }

    fn is_end(&self, state: &Place) -> bool {
        self.engine.may_end(state)
    }

    fn failure(&self) -> Option<Problem> {
        let failed = self.engine.take_failure().map(|refused| Problem::new(SchemaError::from(refused)));
        failed.or_else(|| over().map(Problem::new))
    }

    fn failing(&self) -> bool {
        self.engine.is_failing() || over().is_some()
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<Place>>> {
        Some(Arc::new(DocumentWalk::new(self, tokens)))
    }
}
