//! Keywords of one schema, compiled to formulas.

use super::index::escaped;
use super::{Compiler, Draft, Source};
use crate::formula::{
    ArraySaid, Formula, NONE, Names, NodeId, NumberSaid, ObjectSaid, Outside, TextSaid, Texts, Types, Values,
};
use crate::json::{Json, plain};
use crate::schema::{SchemaError, SchemaWarning, shown};
use std::sync::Arc;
use trie_core::work::{look, spend};
use trie_rules::{AutomatonLimits, Decimal, RegexError, TextFormat, TextSet};

type Result<T> = std::result::Result<T, SchemaError>;

/// Patterns of a schema that may be left out because they are too large; later ones may have only so many bytes.
const MOST_TOO_LARGE: usize = 2;
const FEW_BYTES: usize = 1 << 20;

/// Result of compiling a pattern: its texts, or nothing if it is not enforced.
pub(super) enum Held {
    By(Arc<Texts>),
    Not,
}

fn each(names: Names, value: NodeId) -> Formula {
    Formula::Object(ObjectSaid::Each { names, value, declares: false })
}

pub(super) fn invalid<T>(source: &Source<'_>, keyword: &str, expected: &str, got: &Json) -> Result<T> {
    let reason = format!("invalid {keyword}: expected {expected}, got {}", shown(got));
    Err(SchemaError::Invalid { at: source.at.to_string(), reason })
}

/// Reads a count; one that is too large for `usize` becomes `usize::MAX`.
fn count(source: &Source<'_>, keyword: &str, value: &Json) -> Result<usize> {
    let Json::Number(number) = value else { return invalid(source, keyword, "a whole number", value) };
    let digits = plain(number);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return invalid(source, keyword, "a whole number from 0 on", value);
    }
    Ok(digits.parse().unwrap_or(usize::MAX))
}

fn listed<'a>(source: &Source<'_>, keyword: &str, value: &'a Json) -> Result<&'a [Json]> {
    value.as_array().map_or_else(|| invalid(source, keyword, "an array", value), Ok)
}

fn named<'a>(source: &Source<'_>, keyword: &str, value: &'a Json) -> Result<&'a [(Arc<str>, Json)]> {
    value.as_object().map_or_else(|| invalid(source, keyword, "an object", value), Ok)
}

fn names(source: &Source<'_>, keyword: &str, value: &Json) -> Result<Vec<Arc<str>>> {
    let all = listed(source, keyword, value)?.iter();
    all.map(|name| name.as_str().cloned().map_or_else(|| invalid(source, keyword, "names", name), Ok)).collect()
}

fn decimal(source: &Source<'_>, keyword: &str, value: &Json) -> Result<Decimal> {
    let Json::Number(number) = value else { return invalid(source, keyword, "a number", value) };
    Decimal::read(number).map_err(|error| {
        let reason = format!("invalid {keyword}: {error}");
        SchemaError::Invalid { at: source.at.to_string(), reason }
    })
}

impl<'a> Compiler<'a> {
    /// Returns the formula of a schema: all of its keywords.
    pub(super) fn formula(&mut self, node: NodeId, source: &Source<'a>) -> Result<Formula> {
        let json = source.json;
        let Some(members) = json.as_object() else {
            let reason = format!("invalid schema: expected an object or a boolean, got {}", shown(json));
            return Err(SchemaError::Invalid { at: source.at.to_string(), reason });
        };
        let mut all = Vec::new();
        let is_alone = source.draft <= Draft::Old && json.get("$ref").is_some();
        for (keyword, value) in members {
            spend(4).map_err(super::too_much)?;
            if !is_alone || **keyword == *"$ref" {
                self.keyword(source, keyword, value, &mut all)?;
            }
        }
        self.unevaluated(node, source, &mut all)?;
        self.ask_more(source, &mut all)?;
        let whole = all_of(all);
        // As OpenAPI writes it.
        if json.get("nullable").is_some_and(|value| matches!(value, Json::Bool(true))) {
            return Ok(Formula::Any(vec![whole, Formula::Types(Types::NULL)]));
        }
        Ok(whole)
    }

    fn schema(&mut self, source: &Source<'a>, value: &'a Json, way: &str) -> Result<NodeId> {
        match value {
            Json::Object(_) | Json::Bool(_) => Ok(self.child(source, value, way)),
            other => {
                let reason = format!("invalid schema: expected an object or a boolean, got {}", shown(other));
                Err(SchemaError::Invalid { at: format!("{}/{way}", source.at), reason })
            }
        }
    }

    fn schemas(&mut self, source: &Source<'a>, keyword: &str, value: &'a Json) -> Result<Vec<NodeId>> {
        let all = listed(source, keyword, value)?.iter().enumerate();
        all.map(|(nth, one)| self.schema(source, one, &format!("{keyword}/{nth}"))).collect()
    }

    #[allow(clippy::too_many_lines, reason = "one arm for each keyword")]
    fn keyword(&mut self, source: &Source<'a>, keyword: &str, value: &'a Json, all: &mut Vec<Formula>) -> Result<()> {
        let json = source.json;
        let has = |name: &str| json.get(name);
        let number = |said| Formula::Number(said);
        match keyword {
            "type" => all.push(Formula::Types(self.types(source, value)?)),
            "enum" => {
                let values = listed(source, keyword, value)?;
                self.note_unwritten_values(source, keyword, values);
                all.push(Formula::OneOf(Arc::new(Values::new(values.to_vec()))));
            }
            "const" => {
                self.note_unwritten_values(source, keyword, std::slice::from_ref(value));
                all.push(Formula::OneOf(Arc::new(Values::new(vec![value.clone()]))));
            }
            "minimum" | "maximum" => {
                let bound = decimal(source, keyword, value)?;
                let (least, other) =
                    (keyword == "minimum", if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" });
                let excluded = matches!(has(other), Some(Json::Bool(true)));
                all.push(number(if least {
                    NumberSaid::Least(bound, excluded)
                } else {
                    NumberSaid::Most(bound, excluded)
                }));
            }
            "exclusiveMinimum" | "exclusiveMaximum"
                // Draft 4 has it beside `minimum`.
                if !matches!(value, Json::Bool(_)) => {
                    let bound = decimal(source, keyword, value)?;
                    let least = keyword == "exclusiveMinimum";
                    all.push(number(if least {
                        NumberSaid::Least(bound, true)
                    } else {
                        NumberSaid::Most(bound, true)
                    }));
                }
            "multipleOf" => {
                let step = decimal(source, keyword, value)?;
                if step <= zero() {
                    return invalid(source, keyword, "a number above 0", value);
                }
                all.push(number(NumberSaid::Multiple(step)));
            }
            "minLength" => {
                let least = u32::try_from(count(source, keyword, value)?).unwrap_or(u32::MAX);
                all.push(Formula::Text(TextSaid::Least(least)));
            }
            "maxLength" => {
                if let Ok(most) = u32::try_from(count(source, keyword, value)?) {
                    all.push(Formula::Text(TextSaid::Most(most)));
                }
            }
            "pattern" => {
                let Some(pattern) = value.as_str() else { return invalid(source, keyword, "a string", value) };
                match self.pattern(source, keyword, pattern)? {
                    Held::By(texts) => all.push(Formula::Text(TextSaid::In(texts))),
                    Held::Not => all.push(Formula::Unheld),
                }
            }
            "format" => {
                let Some(format) = value.as_str() else { return invalid(source, keyword, "a string", value) };
                if let Some(formula) = self.format(source, format)? {
                    all.push(formula);
                }
            }
            "properties" => {
                for (name, one) in named(source, keyword, value)? {
                    self.note_unwritten_name(source, name, false);
                    let value = self.schema(source, one, &format!("properties/{}", escaped(name)))?;
                    let names = Names::Exact(Arc::clone(name));
                    all.push(Formula::Object(ObjectSaid::Each { names, value, declares: true }));
                }
            }
            "additionalProperties" | "patternProperties"
                if self.options.sealed && !matches!(value, Json::Bool(false)) =>
            {
                return invalid(source, keyword, "false, since the tool is strict", value);
            }
            "patternProperties" => {
                for (pattern, one) in named(source, keyword, value)? {
                    let value = self.schema(source, one, &format!("patternProperties/{}", escaped(pattern)))?;
                    match self.pattern(source, keyword, pattern)? {
                        Held::By(texts) => all.push(each(Names::Matching(texts), value)),
                        Held::Not => all.push(Formula::Unheld),
                    }
                }
            }
            "additionalProperties" => {
                let value = self.schema(source, value, keyword)?;
                if let Some(outside) = self.outside(source)? {
                    all.push(each(Names::Outside(Arc::new(outside)), value));
                }
            }
            "propertyNames" => {
                let value = self.schema(source, value, keyword)?;
                all.push(each(Names::Denied(value, false), NONE));
            }
            "required"
                // Of draft 3.
                if !matches!(value, Json::Bool(_)) => {
                    if self.options.lenient && !matches!(value, Json::Array(_)) {
                        self.leave_out(source, keyword, "expected a list of names");
                        return Ok(());
                    }
                    let names = names(source, keyword, value)?;
                    for name in &names {
                        self.note_unwritten_name(source, name, true);
                    }
                    all.extend(names.into_iter().map(|name| Formula::Object(ObjectSaid::Has(name))));
                }
            "minProperties" => all.push(Formula::Object(ObjectSaid::Least(count(source, keyword, value)?))),
            "maxProperties" => all.push(Formula::Object(ObjectSaid::Most(count(source, keyword, value)?))),
            "dependentRequired" | "dependentSchemas" | "dependencies" => {
                for (name, then) in named(source, keyword, value)? {
                    let needed = match then {
                        Json::Array(_) if keyword != "dependentSchemas" => {
                            let names = names(source, keyword, then)?;
                            all_of(names.into_iter().map(|name| Formula::Object(ObjectSaid::Has(name))).collect())
                        }
                        Json::String(name) if keyword == "dependencies" => {
                            Formula::Object(ObjectSaid::Has(Arc::clone(name)))
                        }
                        then if keyword != "dependentRequired" => {
                            Formula::Schema(self.schema(source, then, &format!("{keyword}/{}", escaped(name)))?)
                        }
                        other => return invalid(source, keyword, "names", other),
                    };
                    let absent = each(Names::Exact(Arc::clone(name)), NONE);
                    let is_object = Formula::Types(Types::OBJECT);
                    let other = Formula::Not(Box::new(is_object));
                    all.push(Formula::Any(vec![other, absent, needed]));
                }
            }
            "prefixItems" => {
                let all_items = self.schemas(source, keyword, value)?.into_iter().enumerate();
                all.extend(
                    all_items.map(|(nth, value)| Formula::Array(ArraySaid::Each { from: nth, to: nth + 1, value })),
                );
            }
            "items" => if let Json::Array(_) = value {
                let all_items = self.schemas(source, keyword, value)?.into_iter().enumerate();
                all.extend(
                    all_items.map(|(nth, value)| Formula::Array(ArraySaid::Each { from: nth, to: nth + 1, value })),
                );
            } else {
                let from = has("prefixItems").and_then(Json::as_array).map_or(0, <[Json]>::len);
                let value = self.schema(source, value, keyword)?;
                all.push(Formula::Array(ArraySaid::Each { from, to: usize::MAX, value }));
            },
            "additionalItems" => {
                if let Some(Json::Array(before)) = has("items") {
                    let value = self.schema(source, value, keyword)?;
                    all.push(Formula::Array(ArraySaid::Each { from: before.len(), to: usize::MAX, value }));
                }
            }
            "contains" => {
                let bound = |name: &str| {
                    has(name).filter(|_| source.draft >= Draft::Draft2019).map(|bound| count(source, name, bound))
                };
                let least = bound("minContains").transpose()?.unwrap_or(1);
                let most = bound("maxContains").transpose()?.unwrap_or(usize::MAX);
                let value = self.schema(source, value, keyword)?;
                all.push(Formula::Array(ArraySaid::Contains { value, least, most }));
            }
            "minItems" => all.push(Formula::Array(ArraySaid::Least(count(source, keyword, value)?))),
            "maxItems" => all.push(Formula::Array(ArraySaid::Most(count(source, keyword, value)?))),
            "uniqueItems" => match value {
                Json::Bool(true) => all.push(Formula::Array(ArraySaid::Unique)),
                Json::Bool(false) => {}
                other => return invalid(source, keyword, "a boolean", other),
            },
            "allOf" => all.extend(self.schemas(source, keyword, value)?.into_iter().map(Formula::Schema)),
            "anyOf" | "oneOf" => {
                let branches = self.schemas(source, keyword, value)?;
                let branches = self.tagged(source, value, branches);
                all.push(if keyword == "anyOf" { Formula::Any(branches) } else { Formula::One(branches) });
            }
            "not" => {
                let value = self.schema(source, value, keyword)?;
                all.push(Formula::Not(Box::new(Formula::Schema(value))));
            }
            "if" => {
                let condition = self.schema(source, value, keyword)?;
                let mut branch = |name: &str| has(name).map(|one| self.schema(source, one, name)).transpose();
                let (then, other) = (branch("then")?, branch("else")?);
                let [is, is_not] = [Formula::Schema(condition), Formula::Not(Box::new(Formula::Schema(condition)))];
                match (then, other) {
                    (None, None) => {}
                    (Some(then), None) => all.push(Formula::Any(vec![is_not, Formula::Schema(then)])),
                    (None, Some(other)) => all.push(Formula::Any(vec![is, Formula::Schema(other)])),
                    (Some(then), Some(other)) => all.push(Formula::Any(vec![
                        Formula::All(vec![is, Formula::Schema(then)]),
                        Formula::All(vec![is_not, Formula::Schema(other)]),
                    ])),
                }
            }
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let Some(to) = value.as_str() else { return invalid(source, keyword, "a string", value) };
                all.push(Formula::Schema(self.referred(source, keyword, to)?));
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the node that a keyword with a reference resolves to.
    pub(super) fn referred(&mut self, source: &Source<'a>, keyword: &str, to: &str) -> Result<NodeId> {
        match keyword {
            "$dynamicRef" => self.dynamic(source, to),
            "$recursiveRef" => self.recursive(source, to),
            _ => self.target(source, keyword, to),
        }
    }

    fn types(&self, source: &Source<'_>, value: &Json) -> Result<Types> {
        const EXPECTED: &str = "null, boolean, integer, number, string, array or object";
        let named = if self.options.lenient { Types::named_anyhow } else { Types::named };
        let one = |name: &Json| match name.as_str().and_then(|name| named(name)) {
            Some(types) => Ok(types),
            None => invalid(source, "type", EXPECTED, name),
        };
        match value {
            Json::Array(all) => all.iter().try_fold(Types::default(), |types, name| Ok(types.or(one(name)?))),
            name => one(name),
        }
    }

    /// Branches of a union that `OpenAPI`'s `discriminator` tells apart: the tag must come, and be theirs.
    fn tagged(&mut self, source: &Source<'a>, branches: &'a Json, nodes: Vec<NodeId>) -> Vec<Formula> {
        let tag = source.json.get("discriminator").and_then(|said| Some((said, said.get("propertyName")?.as_str()?)));
        let Some((said, tag)) = tag else { return nodes.into_iter().map(Formula::Schema).collect() };
        let mapping = said.get("mapping").and_then(Json::as_object).unwrap_or(&[]);
        let mut tagged = Vec::new();
        for (branch, node) in branches.as_array().unwrap_or(&[]).iter().zip(nodes) {
            let to = branch.get("$ref").and_then(Json::as_str);
            let is_to = |value: &Json| value.as_str().is_some() && value.as_str() == to;
            let named = mapping.iter().filter(|(_, value)| is_to(value));
            let tags: Vec<Json> = named.map(|(name, _)| Json::String(Arc::clone(name))).collect();
            let mut all = vec![Formula::Schema(node), Formula::Object(ObjectSaid::Has(Arc::clone(tag)))];
            if !tags.is_empty() {
                let value = self.made(&source.at, Formula::OneOf(Arc::new(Values::new(tags))));
                all.push(each(Names::Exact(Arc::clone(tag)), value));
            }
            tagged.push(Formula::All(all));
        }
        tagged
    }

    /// The names that `additionalProperties` is about; `None` where they cannot be told.
    pub(super) fn outside(&mut self, source: &Source<'a>) -> Result<Option<Outside>> {
        let own = |keyword: &str| source.json.get(keyword).and_then(Json::as_object).unwrap_or(&[]);
        let names = own("properties").iter().map(|(name, _)| Arc::clone(name)).collect();
        let mut matching = Vec::new();
        for (pattern, _) in own("patternProperties") {
            match self.pattern(source, "patternProperties", pattern)? {
                Held::By(texts) => matching.push(texts),
                Held::Not => return Ok(None),
            }
        }
        Ok(Some(Outside { names, matching }))
    }

    /// A pattern that is not held is refused or, where it was asked for, left out.
    pub(super) fn pattern(&mut self, source: &Source<'_>, keyword: &str, pattern: &str) -> Result<Held> {
        match self.texts.get(pattern).cloned() {
            Some(Ok(known)) => return Ok(Held::By(known)),
            Some(Err(why)) => {
                self.leave_out(source, keyword, &why);
                return Ok(Held::Not);
            }
            None => {}
        }
        // Each that is too large takes long to find out.
        let is_late = self.too_large >= MOST_TOO_LARGE;
        let made = if is_late {
            TextSet::pattern_with(pattern, AutomatonLimits::bytes(FEW_BYTES))
        } else {
            TextSet::pattern(pattern)
        };
        self.too_large += usize::from(matches!(made, Err(RegexError::Automaton { .. })));
        look(0, 0).map_err(super::too_much)?;
        let held = match made {
            Ok(set) => Ok(Arc::new(Texts { name: pattern.to_owned(), set, others: None })),
            Err(error) if self.options.lenient && !matches!(error, RegexError::Syntax { .. }) => {
                self.leave_out(source, keyword, &error.to_string());
                Err(error.to_string())
            }
            Err(error) => {
                let reason = format!("invalid {keyword}: {error}");
                return Err(SchemaError::Invalid { at: source.at.to_string(), reason });
            }
        };
        self.texts.insert(pattern.to_owned(), held.clone());
        Ok(held.map_or_else(|_| Held::Not, Held::By))
    }

    fn format(&mut self, source: &Source<'_>, format: &str) -> Result<Option<Formula>> {
        if self.options.formats == crate::schema::Formats::Annotate {
            return Ok(None);
        }
        let place = crate::schema::place(&source.at);
        let made = TextFormat::find_by_name(format)
            .map_err(|error| SchemaError::TooLarge { reason: format!("{place}format is not supported: {error}") })?;
        let Some(made) = made else {
            self.note(&source.at, "format", format!("no format is named {format:?}: it says nothing"));
            return Ok(None);
        };
        // No pattern begins so.
        let name = format!("\0{format}");
        let known = self.texts.get(&name).and_then(|known| known.clone().ok()).unwrap_or_else(|| {
            let (set, others) = (made.texts().clone(), Some(made.complement().clone()));
            Arc::new(Texts { name: name.clone(), set, others })
        });
        self.texts.insert(name, Ok(Arc::clone(&known)));
        let most = made.max_chars().map(|most| Formula::Text(TextSaid::Most(most)));
        Ok(Some(all_of([Formula::Text(TextSaid::In(known))].into_iter().chain(most).collect())))
    }

    pub(super) fn leave_out(&mut self, source: &Source<'_>, keyword: &str, why: &str) {
        self.unheld.insert(SchemaWarning::new(&source.at, keyword, why.to_owned()));
    }

    /// Adds a warning, unless it was given before.
    pub(super) fn note(&mut self, at: &str, keyword: &str, reason: String) {
        let note = SchemaWarning::new(at, keyword, reason);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

fn zero() -> Decimal {
    Decimal::read("0").unwrap_or_else(|_| unreachable!("0 is a number"))
}

pub(super) fn all_of(mut all: Vec<Formula>) -> Formula {
    match all.len() {
        0 => Formula::True,
        1 => all.remove(0),
        _ => Formula::All(all),
    }
}
