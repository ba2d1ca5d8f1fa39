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

/// Blanks as people write them. Of any number a model may write more and more, and never go on.
pub const FEW_BLANKS: &str = r" |\r?\n[ \t]{0,40}";

type Result<T> = std::result::Result<T, SpecError>;

impl Spec {
    /// The rule that a spec says; `None` where its values are no texts of a rule.
    ///
    /// # Errors
    /// [`SpecError`]: a rule that cannot be made, or what is not a finite automaton where one is needed.
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
                let grammar = limits.within(&place.field("grammar"), || Grammar::with_options(text, options))?;
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
                let grammar = limits.within(&place.field("lark"), made)?;
                let facts = RuleFacts { states: Some(grammar.states()), ..RuleFacts::default() };
                MadeRule::new(grammar, facts)
            }
            Self::Gbnf { text, limits } => {
                let made = || ContextFree::gbnf(text, limits.limits());
                let grammar = limits.within(&place.field("gbnf"), made)?;
                let facts = RuleFacts { states: Some(grammar.states()), ..RuleFacts::default() };
                MadeRule::new(grammar, facts)
            }
            Self::Wasm { module, limits } => wasm(&place.field("wasm"), module, *limits)?.into(),
            Self::JsonSchema(schema) => json_schema(&place.field("json_schema"), schema, host)?,
            Self::Object(Object::Rule(rule)) => rule.rule().map_err(|problem| SpecError::new(place, problem))?.into(),
            Self::Object(Object::Compiled(compiled)) => return Ok(compiled.made_at(place, host, deeper)?.cloned()),
            Self::Name(_) => {
                let (spec, deeper) = self.named(place, host, deeper)?;
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
    pub(in crate::constraint) fn named(
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
        let found = host.named(name).map_err(|problem| SpecError::new(&at, problem))?;
        let none = || SpecError::new(&at, SpecProblem::NotGiven(format!("nothing is registered here as {name:?}")));
        Ok((found.ok_or_else(none)?, deeper))
    }

    /// Returns whether its values are texts of a rule, by its kind.
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

    /// Returns whether it is a finite automaton by its kind.
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
                let regex = limits.within(&at, || Regex::with_limits(pattern, most))?;
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
                let (spec, deeper) = self.named(place, host, deeper)?;
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

    /// Reads the value of a text, if it is a finite automaton and matches the text.
    ///
    /// # Errors
    /// As [`Spec::rule`].
    pub fn value(&self, text: &str, host: &dyn Host) -> Result<Option<Value>> {
        let (spec, deeper) = self.named(&Place::ROOT, host, MOST_DEPTH)?;
        if let Self::Object(Object::Compiled(compiled)) = &spec {
            return compiled.value(text, host);
        }
        if !spec.is_regular() {
            return Ok(None);
        }
        Ok(spec.regular(&Place::ROOT, host, deeper)?.value(text.as_bytes()))
    }

    /// All values, where they are texts and not more than this.
    ///
    /// # Errors
    /// [`SpecError`]: a rule with more texts, or with texts that are no UTF-8.
    pub fn texts(&self, host: &dyn Host, most: usize) -> Result<Option<Vec<String>>> {
        let place = Place::ROOT;
        match self {
            Self::Choice(values) if values_are_plain(values) => return Ok(Some(values.values.to_vec())),
            Self::Name(_) => return self.named(&place, host, MOST_DEPTH)?.0.texts(host, most),
            _ => {}
        }
        let Some(rule) = self.rule(host)? else { return Ok(None) };
        let texts = rule.texts(most);
        if let Some(problem) = rule.failed() {
            return Err(SpecError::new(&place, problem));
        }
        let texts = texts.map_err(|error| SpecError::new(&place, error))?;
        let utf8 = |text| {
            String::from_utf8(text)
                .map_err(|error| SpecError::new(&place, SpecProblem::Value(format!("a text is no UTF-8: {error}"))))
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
    Ok(Arc::new(limits.within(place, || trie_rules::Wasm::with_limits(module, limits.limits()))?))
}

#[cfg(not(feature = "wasm"))]
fn wasm(place: &Place<'_>, _module: &[u8], _limits: LimitsSpec) -> Result<Arc<dyn AnyRule>> {
    Err(SpecError::new(place, SpecProblem::NotBuilt { kind: "wasm", feature: "wasm" }))
}

/// Reads a grammar in Lark, whose `%json` is decided as a document is.
#[cfg(feature = "schema")]
fn lark(text: &str, limits: Limits, host: &dyn Host) -> std::result::Result<ContextFree, GrammarError> {
    let schemas = |schema: &str| {
        let mut options = trie_schema::SchemaOptions::default();
        options.whitespace = trie_schema::Whitespace::Pattern(FEW_BLANKS.to_owned());
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
    use crate::constraint::{Blanks, Closing, Formats, Order};
    use trie_schema::{JsonSchema, SchemaOptions, Whitespace};

    let mut options = SchemaOptions::default();
    options.whitespace = match &spec.whitespace {
        Blanks::Few => Whitespace::Pattern(FEW_BLANKS.to_owned()),
        Blanks::Any => Whitespace::Any,
        Blanks::None => Whitespace::None,
        Blanks::Pattern(pattern) => Whitespace::Pattern((**pattern).to_owned()),
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
    let schema = spec.limits.within(place, || JsonSchema::new(&spec.schema, options).map_err(refused))?;
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
