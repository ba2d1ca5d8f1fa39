//! JSON Schema: text or value in, a constraint out.

mod blame;
mod cost;
mod dead;
mod each;
mod enums;
mod error;
mod listed;
mod nullable;
mod patterns;
mod unheld;

pub use error::SchemaError;

use crate::compiled::{Compiled, Refused, Shared};
use crate::error::GuidedError;
use crate::guided::{Guided, GuidedLimits};
use llguidance::JsonCompileOptions;
use llguidance::api::{ParserLimits, TopLevelGrammar};
use serde_json::Value;
use std::sync::Arc;
use trie_core::work::{Limits, Work};
use trie_rules::schema::{Own, SpelledOut, Unheld, contradictions, spelled_out};
use trie_rules::{Documents, TokenBytes};

/// How deeply a schema may be nested. Text that is deeper is refused when it is parsed already.
const DEEPEST: usize = 128;
/// References in one schema: each may be followed inside the one before.
const MOST_REFERENCES: usize = 20_000;
/// What llguidance reads options from.
const OPTIONS: &str = "x-guidance";

/// Which blanks may stand between the parts of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Whitespace {
    /// Any, any number of them.
    #[default]
    Any,
    /// None.
    None,
    /// What this regular expression matches.
    Pattern(String),
}

impl Whitespace {
    /// The regular expression; `None` for none.
    fn pattern(&self) -> Option<&str> {
        match self {
            Self::Any => Some(r"[ \t\r\n]*"),
            Self::None => None,
            Self::Pattern(pattern) => Some(pattern),
        }
    }
}

/// How a schema is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaOptions {
    /// Blanks between the parts.
    pub whitespace: Whitespace,
    /// Whether any character in a string may be written as `\uXXXX`, not only those that must be.
    pub unicode_escapes: bool,
    /// Whether keywords that are not supported are left out, and listed in [`JsonSchema::unheld`], instead of refused.
    /// Then documents may come that the schema does not allow.
    pub lenient: bool,
}

impl Default for SchemaOptions {
    /// Any blanks, any escapes, nothing left out.
    fn default() -> Self {
        Self { whitespace: Whitespace::Any, unicode_escapes: true, lenient: false }
    }
}

/// A JSON Schema, compiled: every text that it allows is a JSON document that is valid under it. A clone is one
/// reference count.
///
/// Not every valid document can be written. Properties come in the order in which the schema names them, numbers with
/// bounds without exponents, strings with a pattern without escapes that they do not need.
///
/// ```
/// use trie_schema::{JsonSchema, SchemaError, SchemaOptions};
///
/// let schema = r#"{"properties": {"a": {"type": "array", "uniqueItems": true}}}"#;
/// let error = JsonSchema::new(schema, SchemaOptions::default()).unwrap_err();
/// assert_eq!(error.to_string(), "at /properties/a: uniqueItems is not supported");
/// assert!(matches!(error, SchemaError::Unsupported { at, .. } if at == "/properties/a"));
/// ```
#[derive(Debug, Clone)]
pub struct JsonSchema {
    made: Made,
    unheld: Arc<[Unheld]>,
}

/// What a schema has become.
#[derive(Debug, Clone)]
pub(crate) enum Made {
    /// A grammar that llguidance reads.
    Compiled(Shared),
    /// A list of values.
    Listed(Documents),
}

impl JsonSchema {
    /// A schema in JSON.
    ///
    /// # Errors
    /// What is no JSON, no schema, not supported or too large, or allows nothing. [`SchemaError`] has the place.
    pub fn new(schema: &str, options: SchemaOptions) -> Result<Self, SchemaError> {
        let value = serde_json::from_str(schema).map_err(|error| SchemaError::Json {
            line: error.line(),
            column: error.column(),
            reason: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        })?;
        Self::of(value, options)
    }

    /// A schema that was parsed.
    ///
    /// # Errors
    /// As [`JsonSchema::new`].
    pub fn of(schema: Value, options: SchemaOptions) -> Result<Self, SchemaError> {
        check_size(&schema)?;
        match schema {
            Value::Bool(false) => Err(SchemaError::Nothing { at: String::new(), reason: "schema is false".to_owned() }),
            Value::Bool(true) => Self::of(Value::Object(serde_json::Map::new()), options),
            Value::Object(ref members) => Work::bounded(Limits::default(), || {
                let listed = listed::of(members, options.whitespace.pattern())?;
                let listed = listed.map(|list| Self { made: Made::Listed(list), unheld: Arc::default() });
                listed.map_or_else(|| Self::made(&schema, &options), Ok)
            }),
            other => Err(SchemaError::Invalid {
                at: String::new(),
                reason: format!("a schema is an object or a boolean, not {}", error::shown(&other)),
            }),
        }
    }

    fn made(given: &Value, options: &SchemaOptions) -> Result<Self, SchemaError> {
        let mut dropped = Vec::new();
        let mut schema = given.clone();
        if let Value::Object(root) = &mut schema
            && root.shift_remove(OPTIONS).is_some()
        {
            if !options.lenient {
                let reason = format!(
                    "{OPTIONS} is not supported: it would change how all of the schema is read; leave it out, and give \
                     options such as whitespace beside the schema"
                );
                return Err(SchemaError::Invalid { at: String::new(), reason });
            }
            dropped.push(Unheld { at: String::new(), keyword: OPTIONS.to_owned() });
        }
        // What was wrong before references to it were left out: it says more than what comes of that.
        let mut nothing: Option<SchemaError> = None;
        let mut left_out_references = 0;
        loop {
            let mut plain = schema.clone();
            let SpelledOut { schema: fewer, mut unheld, notes, .. } = spelled(&mut plain)?;
            let refused = match unheld.first() {
                Some(first) if !options.lenient => {
                    let here = unheld.iter().filter(|one| one.at == first.at);
                    return Err(SchemaError::Unsupported {
                        at: first.at.clone(),
                        keywords: here.map(|one| one.keyword.clone()).collect(),
                    });
                }
                _ => match measured(given, &fewer).map(|()| compile(fewer.into_owned(), options))? {
                    Ok(mut compiled) => {
                        unheld.append(&mut dropped);
                        for one in &mut unheld {
                            one.at = unheld::place_in(given, &one.at);
                        }
                        let dead = contradictions(given)
                            .into_iter()
                            .map(|one| format!("{}no value comes here: {}", error::place(&one.at), one.reason));
                        let unheld_notes = unheld.iter().map(unheld::said);
                        compiled.warnings.extend(notes.into_iter().chain(unheld_notes).chain(dead));
                        return Ok(Self { made: Made::Compiled(Arc::new(compiled)), unheld: unheld.into() });
                    }
                    Err(refused) => refused,
                },
            };
            let part = |mut part: Value| {
                spelled(&mut part).map_or(Ok(()), |said| compile(said.schema.into_owned(), options).map(drop))
            };
            let mut error = match &refused {
                Refused::Said(text) if blame::multiplies(text) => {
                    let fewer = spelled(&mut schema.clone())?.schema.into_owned();
                    blame::multiplied(given, &cost::Cost::of(&fewer))
                }
                _ => match blame::error(&schema, refused, &part) {
                    SchemaError::Nothing { at, reason } => error::contradicted(given, at, reason),
                    error => error,
                },
            };
            if let SchemaError::Nothing { at, .. } = &error {
                let is_left_out = left_out_references < dead::MOST && dead::leave_out(&mut schema, at, &part);
                left_out_references += 1;
                let first = nothing.get_or_insert_with(|| error.clone());
                if is_left_out {
                    continue;
                }
                error = first.clone();
            }
            // Without what is not supported, as far as there is something.
            let left_out = options.lenient && dropped.len() < unheld::MOST && unheld::leave_out(&mut schema, &error);
            let SchemaError::Unsupported { at, keywords } = &error else { return Err(error) };
            if !left_out {
                return Err(error);
            }
            dropped.extend(keywords.iter().map(|keyword| Unheld { at: at.clone(), keyword: keyword.clone() }));
        }
    }

    /// What is not held, where it was asked to leave that out: keywords and their places.
    pub fn unheld(&self) -> &[Unheld] {
        &self.unheld
    }

    pub(crate) fn parts(&self) -> &Made {
        &self.made
    }

    /// What is not held, what says nothing though it may be meant to, and what llguidance warned of.
    pub fn warnings(&self) -> &[String] {
        match &self.made {
            Made::Compiled(compiled) => &compiled.warnings,
            Made::Listed(_) => &[],
        }
    }

    /// The schema over these tokens: a constraint. What llguidance needs of a vocabulary is made once for each.
    ///
    /// # Errors
    /// A vocabulary that cannot begin any legal document; a schema that is a long enum alone, which llguidance does not
    /// read: [`GuidedRule`](crate::GuidedRule) has all of them.
    pub fn over(&self, tokens: &Arc<TokenBytes>) -> Result<Guided, GuidedError> {
        self.with_limits(tokens, GuidedLimits::default())
    }

    /// [`JsonSchema::over`] that keeps as much as this.
    ///
    /// # Errors
    /// As there.
    pub fn with_limits(&self, tokens: &Arc<TokenBytes>, limits: GuidedLimits) -> Result<Guided, GuidedError> {
        match &self.made {
            Made::Compiled(compiled) => Guided::new(compiled, Arc::clone(tokens), limits),
            Made::Listed(list) => Err(GuidedError::Listed { values: list.count() }),
        }
    }
}

/// The schema in the words that llguidance knows.
fn spelled(schema: &mut Value) -> Result<SpelledOut<'_>, SchemaError> {
    nullable::spell_out(schema);
    patterns::spell_out(schema);
    spelled_out(schema, Own::default()).map_err(|large| SchemaError::TooLarge { reason: large.to_string() })
}

/// Refuses what llguidance would write out at a size that nobody waits for.
fn measured(given: &Value, fewer: &Value) -> Result<(), SchemaError> {
    let cost = cost::Cost::of(fewer);
    if cost.is_too_large() { Err(blame::multiplied(given, &cost)) } else { Ok(()) }
}

fn compile(schema: Value, options: &SchemaOptions) -> Result<Compiled, Refused> {
    let (schema, limits) = prepared(schema, options).map_err(Refused::Said)?;
    Compiled::new(TopLevelGrammar::from_json_schema(schema), limits)
}

/// The schema with what llguidance has to know beside it; in words why that is too much.
fn prepared(mut schema: Value, options: &SchemaOptions) -> Result<(Value, ParserLimits), String> {
    let large = enums::prepare(&mut schema);
    large.check()?;
    let said = JsonCompileOptions {
        whitespace_flexible: options.whitespace != Whitespace::None,
        whitespace_pattern: match &options.whitespace {
            Whitespace::Pattern(pattern) => Some(pattern.clone()),
            Whitespace::Any | Whitespace::None => None,
        },
        json_allow_general_unicode_escapes: options.unicode_escapes,
        ..JsonCompileOptions::default()
    };
    if schema.is_object() {
        said.apply_to(&mut schema);
    }
    Ok((schema, enums::limits(large)))
}

/// Whether it is too deep or too entangled to be followed.
fn check_size(schema: &Value) -> Result<(), SchemaError> {
    let mut left = vec![(schema, 0)];
    let mut references = 0;
    while let Some((value, depth)) = left.pop() {
        if depth > DEEPEST {
            return Err(SchemaError::TooLarge { reason: format!("nested more than {DEEPEST} levels deep") });
        }
        match value {
            Value::Array(items) => left.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(members) => {
                references += usize::from(members.contains_key("$ref"));
                left.extend(members.values().map(|member| (member, depth + 1)));
            }
            _ => {}
        }
    }
    if references > MOST_REFERENCES {
        return Err(SchemaError::TooLarge { reason: format!("more than {MOST_REFERENCES} references") });
    }
    Ok(())
}

impl Refused {
    fn said(&self) -> &str {
        match self {
            Self::Said(text) => text,
            Self::Tokens(what) => what,
            Self::Endless { .. } => "",
        }
    }
}
