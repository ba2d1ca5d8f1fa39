//! Kinds that are rules over bytes, bound to no vocabulary.

use crate::constraint::compiled::{MadeRule, RuleFacts};
use crate::constraint::error::{SpecError, SpecProblem};
use crate::constraint::{Host, LimitsSpec, Object, Piece, SchemaSpec, Spec, values_are_plain};
use crate::json::MOST_DEPTH;
use crate::json::place::Place;
use std::sync::Arc;
use trie_core::work::Limits;
use trie_rules::{
    AnyRule, AutomatonLimits, ContextFree, Grammar, GrammarError, GrammarOptions, Regex, Regular, StringOptions, Value,
};

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// Returns the rule of the spec; `None` if its values are not the texts of a rule.
    ///
    /// # Errors
    /// [`SpecError`] for a rule that cannot be built, or one that is not a finite automaton where one is needed.
    pub fn rule(&self, host: &dyn Host) -> Result<Option<Arc<dyn AnyRule>>> {
        self.rule_at(&Place::ROOT, host, MOST_DEPTH)
    }

    pub(in crate::constraint) fn rule_at(
        &self,
        place: &Place<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<Option<Arc<dyn AnyRule>>> {
        Ok(self.made_at(place, host, deeper)?.map(|made| made.rule))
    }

    /// The rule with what is known of it.
    pub(in crate::constraint) fn made_at(
        &self,
        place: &Place<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<Option<MadeRule>> {
        Ok(Some(match self {
            Self::Grammar { .. } | Self::Gbnf { .. } | Self::Lark { .. } if !cfg!(feature = "grammar") => {
                return Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "grammar", feature: "grammar" }));
            }
            Self::Grammar { text, lenient, limits } => {
                let options = GrammarOptions::default().lenient(*lenient).limits(limits.limits());
                let grammar = limits.run_limited(&place.field("grammar"), || Grammar::with_options(text, options))?;
                for warning in grammar.warnings() {
                    host.warn(&format!("grammar, {warning}"));
                }
                let facts = RuleFacts {
                    terminals: grammar.terminals().map(str::to_owned).collect(),
                    states: Some(grammar.parser_states()),
                    lexer_states: Some(grammar.lexer_states()),
                    ..RuleFacts::default()
                };
                MadeRule::new(grammar, facts)
            }
            Self::Lark { text, limits } => {
                let made = || lark(text, limits.limits(), host).map_err(SpecProblem::Lark);
                let grammar = limits.run_limited(&place.field("lark"), made)?;
                let facts = RuleFacts { states: Some(grammar.states()), ..RuleFacts::default() };
                MadeRule::new(grammar, facts)
            }
            Self::Gbnf { text, limits } => {
                let made = || ContextFree::gbnf(text, limits.limits());
                let grammar = limits.run_limited(&place.field("gbnf"), made)?;
                let facts = RuleFacts { states: Some(grammar.states()), ..RuleFacts::default() };
                MadeRule::new(grammar, facts)
            }
            Self::Wasm { module, limits } => wasm(&place.field("wasm"), module, *limits)?.into(),
            Self::JsonSchema(schema) => json_schema(&place.field("json_schema"), schema, host)?,
            Self::Object(Object::Rule(rule)) => rule.rule().map_err(|problem| SpecError::new(place, problem))?.into(),
            Self::Object(Object::Compiled(compiled)) => return Ok(compiled.made_at(place, host, deeper)?.cloned()),
            Self::Name(_) => {
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                return spec.made_at(place, host, deeper);
            }
            Self::Number(number) => {
                let made = MadeRule::from(self.regular(place, host, deeper)?);
                let options = number.options();
                let digits = Some([options.integer_digits, options.fraction_digits, options.exponent_digits]);
                MadeRule { facts: Arc::new(RuleFacts { digits, ..(*made.facts).clone() }), ..made }
            }
            regular if regular.is_regular() => regular.regular(place, host, deeper)?.into(),
            _ => return Ok(None),
        }))
    }

    /// Resolves the name that this is, with the remaining depth.
    pub(in crate::constraint) fn resolve_name(
        &self,
        place: &Place<'_>,
        host: &dyn Host,
        deeper: usize,
    ) -> Result<(Self, usize)> {
        let Self::Name(name) = self else { return Ok((self.clone(), deeper)) };
        let at = place.field("name");
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(&at, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        let found = host.named_spec(name).map_err(|problem| SpecError::new(&at, problem))?;
        let none = || SpecError::new(&at, SpecProblem::NotGiven(format!("nothing is registered here as {name:?}")));
        Ok((found.ok_or_else(none)?, deeper))
    }

    /// Returns whether specs of this kind have the texts of a rule as values.
    pub fn is_rule(&self) -> bool {
        match self {
            Self::Grammar { .. }
            | Self::Lark { .. }
            | Self::Gbnf { .. }
            | Self::Wasm { .. }
            | Self::JsonSchema(_)
            | Self::Object(Object::Rule(_)) => true,
            Self::Object(Object::Compiled(compiled)) => compiled.spec().is_rule(),
            regular => regular.is_regular(),
        }
    }

    /// Returns whether specs of this kind are finite automata.
    pub fn is_regular(&self) -> bool {
        matches!(
            self,
            Self::Regex { .. }
                | Self::Integer(_)
                | Self::Number(_)
                | Self::Date(_)
                | Self::Time(_)
                | Self::DateTime(_)
                | Self::String(_)
                | Self::OneOf(_)
                | Self::Then(_)
                | Self::Repeat(_)
        )
    }

    /// Builds the finite automaton.
    pub(in crate::constraint) fn regular(&self, place: &Place<'_>, host: &dyn Host, deeper: usize) -> Result<Regular> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(SpecError::new(place, SpecProblem::TooDeep { most: MOST_DEPTH }));
        };
        let at = place.field(self.kind());
        let made = match self {
            Self::Regex { pattern, max_bytes, limits } => {
                let most = max_bytes.map_or_else(AutomatonLimits::default, AutomatonLimits::bytes);
                let regex = limits.run_limited(&at, || Regex::with_limits(pattern, most))?;
                return Ok(Regular::from(&regex));
            }
            Self::Integer(range) => Regular::integer(range.min, range.max),
            Self::Number(number) => number.rule(),
            Self::Date(moment) | Self::Time(moment) | Self::DateTime(moment) => moment.rule(),
            Self::String(string) => {
                let options = StringOptions::default().quotes(string.quotes).min_chars(string.min_chars);
                Regular::string(string.max_chars.map_or(options, |most| options.max_chars(most)))
            }
            Self::OneOf(pieces) => {
                let (mut rules, mut texts): (Vec<Regular>, Vec<&str>) = (Vec::new(), Vec::new());
                for (index, piece) in pieces.iter().enumerate() {
                    match piece {
                        Piece::Text(text) => texts.push(text),
                        Piece::Spec(Self::Choice(values)) if values_are_plain(values) => {
                            texts.extend(values.values.iter().map(String::as_str));
                        }
                        Piece::Spec(spec) => rules.push(spec.regular(&at.item(index), host, deeper)?),
                    }
                }
                Regular::one_of(rules, &texts)
            }
            Self::Then(pieces) => {
                let part = |(index, piece): (usize, &Piece)| piece.regular(&at.item(index), host, deeper);
                let parts = pieces.iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
                let whole = Regular::sequence(&parts).map_err(|error| SpecError::new(&at, error))?;
                return whole.ok_or_else(|| {
                    let reason = "nothing follows: give at least one part".to_owned();
                    SpecError::new(&at, SpecProblem::Value(reason))
                });
            }
            Self::Repeat(repeat) => {
                let rule = repeat.rule.regular(&at.field("rule"), host, deeper)?;
                rule.repeat(repeat.min, repeat.max, &repeat.separator)
            }
            Self::Choice(values) if values_are_plain(values) => Regular::one_of([], &values.values),
            Self::Object(Object::Compiled(compiled)) => return compiled.regular_at(place, host, deeper),
            Self::Name(_) => {
                let (spec, deeper) = self.resolve_name(place, host, deeper)?;
                return spec.regular(place, host, deeper);
            }
            other => {
                let reason = "only a text, choice, regex, integer, number, date, time, string, one_of, then and repeat \
                              can be put together to a rule; constraints of other kinds follow each other in a \
                              sequence, or stand in a form";
                let kind = other.kind().to_owned();
                return Err(SpecError::new(place, SpecProblem::NotHere { kind, here: "here", reason }));
            }
        };
        made.map_err(|error| SpecError::new(&at, error))
    }

    /// Returns the value of a text, if the spec is a finite automaton and matches the text.
    ///
    /// # Errors
    /// As [`Spec::rule`].
    pub fn value(&self, text: &str, host: &dyn Host) -> Result<Option<Value>> {
        let (spec, deeper) = self.resolve_name(&Place::ROOT, host, MOST_DEPTH)?;
        if let Self::Object(Object::Compiled(compiled)) = &spec {
            return compiled.value(text, host);
        }
        if !spec.is_regular() {
            return Ok(None);
        }
        Ok(spec.regular(&Place::ROOT, host, deeper)?.value(text.as_bytes()))
    }

    /// Returns the value of a text as JSON: a document, a number or a list of values. Days and times are texts in ISO
    /// 8601; an integer of more than 64 bits, an infinite number and all other values are texts, too.
    ///
    /// # Errors
    /// As [`Spec::rule`].
    ///
    /// ```
    /// use tokentrie::constraint::{DataOnly, Spec};
    ///
    /// let spec = Spec::from_json(br#"{"one_of": ["none", {"integer": {"min": 0}}]}"#)?;
    /// assert_eq!(spec.json_value("12", &DataOnly)?, 12);
    /// assert_eq!(spec.json_value("none", &DataOnly)?, "none");
    /// # Ok::<(), tokentrie::constraint::SpecError>(())
    /// ```
    pub fn json_value(&self, text: &str, host: &dyn Host) -> Result<serde_json::Value> {
        fn json(value: Value, text: &str) -> serde_json::Value {
            let number = match value {
                Value::Integer(number) => serde_json::Number::from_i128(number).map(Into::into),
                Value::Number(number) => serde_json::Number::from_f64(number).map(Into::into),
                Value::String(said) | Value::Entry { text: said, .. } => Some(said.into()),
                Value::List(items) => Some(items.into_iter().map(|item| json(item, text)).collect()),
                _ => None,
            };
            number.unwrap_or_else(|| text.into())
        }

        let (spec, _) = self.resolve_name(&Place::ROOT, host, MOST_DEPTH)?;
        match &spec {
            Self::Object(Object::Compiled(compiled)) => compiled.spec().json_value(text, host),
            Self::Think(think) => think.then.json_value(text, host),
            Self::JsonSchema(_) => Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
            // Every text stands for itself.
            Self::Regex { .. } => Ok(text.into()),
            spec => Ok(spec.value(text, host)?.map_or_else(|| text.into(), |value| json(value, text))),
        }
    }

    /// Returns all values, if they are texts and at most `most`.
    ///
    /// # Errors
    /// [`SpecError`] for a rule with more texts, or with texts that are not UTF-8.
    pub fn texts(&self, host: &dyn Host, most: usize) -> Result<Option<Vec<String>>> {
        let place = Place::ROOT;
        match self {
            Self::Choice(values) if values_are_plain(values) => return Ok(Some(values.values.to_vec())),
            Self::Name(_) => return self.resolve_name(&place, host, MOST_DEPTH)?.0.texts(host, most),
            _ => {}
        }
        let Some(rule) = self.rule(host)? else { return Ok(None) };
        let texts = rule.texts(most);
        if let Some(problem) = rule.take_failure() {
            return Err(SpecError::new(&place, problem));
        }
        let texts = texts.map_err(|error| SpecError::new(&place, error))?;
        let utf8 = |text| {
            String::from_utf8(text)
                .map_err(|error| SpecError::new(&place, SpecProblem::Value(format!("a text is not UTF-8: {error}"))))
        };
        texts.into_iter().map(utf8).collect::<Result<_>>().map(Some)
    }
}

impl Piece {
    /// Builds the finite automaton.
    fn regular(&self, place: &Place<'_>, host: &dyn Host, deeper: usize) -> Result<Regular> {
        match self {
            Self::Text(text) => Regular::one_of([], &[&**text]).map_err(|error| SpecError::new(place, error)),
            Self::Spec(spec) => spec.regular(place, host, deeper),
        }
    }
}

#[cfg(feature = "wasm")]
fn wasm(place: &Place<'_>, module: &[u8], limits: LimitsSpec) -> Result<Arc<dyn AnyRule>> {
    Ok(Arc::new(limits.run_limited(place, || trie_rules::Wasm::with_limits(module, limits.limits()))?))
}

#[cfg(not(feature = "wasm"))]
fn wasm(place: &Place<'_>, _module: &[u8], _limits: LimitsSpec) -> Result<Arc<dyn AnyRule>> {
    Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "wasm", feature: "wasm" }))
}

/// Reads a grammar in Lark, whose `%json` is decided as a document is.
#[cfg(feature = "schema")]
fn lark(text: &str, limits: Limits, host: &dyn Host) -> std::result::Result<ContextFree, GrammarError> {
    let schemas = |schema: &str| {
        let options = trie_schema::SchemaOptions::default();
        let schema = trie_schema::JsonSchema::new(schema, options).map_err(|error| error.to_string())?;
        schema.warnings().iter().for_each(|warning| host.warn(&format!("schema: {warning}")));
        Ok(trie_rules::EmbeddedRule::new(schema))
    };
    ContextFree::lark(text, limits, Some(&schemas))
}

#[cfg(not(feature = "schema"))]
fn lark(text: &str, limits: Limits, _host: &dyn Host) -> std::result::Result<ContextFree, GrammarError> {
    ContextFree::lark(text, limits, None)
}

#[cfg(feature = "schema")]
fn json_schema(place: &Place<'_>, spec: &SchemaSpec, host: &dyn Host) -> Result<MadeRule> {
    use crate::constraint::{Closing, Formats, Order, Whitespace};
    use trie_schema::{JsonSchema, SchemaOptions};

    let mut options = SchemaOptions::default();
    options.whitespace = match &spec.whitespace {
        Whitespace::Compact => trie_schema::Whitespace::Compact,
        Whitespace::Flexible => trie_schema::Whitespace::Flexible,
        Whitespace::None => trie_schema::Whitespace::None,
        Whitespace::Pattern(pattern) => trie_schema::Whitespace::Pattern((**pattern).to_owned()),
    };
    (options.unicode_escapes, options.lenient) = (spec.unicode_escapes, spec.lenient);
    options.formats = match spec.formats {
        Formats::Assert => trie_schema::Formats::Assert,
        Formats::Annotate => trie_schema::Formats::Annotate,
    };
    options.order = match spec.order {
        Order::Schema => trie_schema::Order::Schema,
        Order::Any => trie_schema::Order::Any,
    };
    options.any_numerals = spec.any_numerals;
    options.names = match spec.names {
        Closing::Open => trie_schema::Closing::Open,
        Closing::Closed => trie_schema::Closing::Closed,
    };
    options.implied_types = spec.implied_types;
    let refused = |error: trie_schema::SchemaError| {
        let reason = error.reason(&spec.schema);
        SpecProblem::Schema { error, reason }
    };
    let schema = spec.limits.run_limited(place, || JsonSchema::new(&spec.schema, options).map_err(refused))?;
    for warning in schema.warnings() {
        host.warn(&format!("schema: {warning}"));
    }
    let unheld = schema.unheld().iter().map(|one| (one.at.clone(), one.keyword.clone())).collect();
    Ok(MadeRule::new(schema, RuleFacts { unheld, ..RuleFacts::default() }))
}

#[cfg(not(feature = "schema"))]
fn json_schema(place: &Place<'_>, _spec: &SchemaSpec, _host: &dyn Host) -> Result<MadeRule> {
    Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "json_schema", feature: "schema" }))
}
