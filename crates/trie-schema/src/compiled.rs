//! A grammar that llguidance has read: checked once, then put over any vocabulary.

use crate::guard::caught_apart;
use crate::vocab::Vocab;
use llguidance::Logger;
use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::earley::{CGrammar, CSymIdx, Parser, SlicedBiasComputer};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use trie_core::work::{Limits, Work};

pub(crate) struct Compiled {
    /// With what slices of a vocabulary ask of the lexer; it is the same for all.
    grammar: Arc<CGrammar>,
    limits: ParserLimits,
    /// What llguidance warned of.
    pub(crate) warnings: Vec<String>,
    /// Whether llguidance may take longer for a mask than its fuel says.
    pub(crate) is_slow: bool,
}

/// Why nothing can be compiled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// In llguidance's words.
    Said(String),
    /// Something in it counts tokens or names them.
    Tokens(&'static str),
    /// Something in it no text can ever complete; whether that is all of it.
    Endless { all: bool },
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled").finish_non_exhaustive()
    }
}

impl Compiled {
    pub(crate) fn new(grammar: TopLevelGrammar, limits: ParserLimits) -> Result<Self, Refused> {
        Work::bounded(Limits::default(), || Self::made(grammar, limits))
    }

    fn made(grammar: TopLevelGrammar, limits: ParserLimits) -> Result<Self, Refused> {
        let is_slow = is_slow(&grammar);
        let own = limits.clone();
        caught_apart(move || {
            let (grammar, lexer) = GrammarInit::Serialized(grammar).to_internal(None, limits.clone())?;
            if lexer.has_max_tokens || lexer.has_stop {
                return Ok(Err(Refused::Tokens("max_tokens= or stop=")));
            }
            if !lexer.token_range_lexemes(&lexer.all_lexemes()).is_empty() {
                return Ok(Err(Refused::Tokens("a special token, such as <|name|> or <[7]>")));
            }
            let warnings = lexer.render_warnings();
            let slices = SlicedBiasComputer::general_slices();
            let init = GrammarInit::Internal(grammar, lexer);
            let grammar = init.to_cgrammar(None, &mut Logger::new(0, 0), limits, slices)?;
            Ok(productive(&grammar).map(|()| Self { grammar, limits: own, warnings, is_slow }))
        })
        .map_err(Refused::Said)?
    }

    /// A parser that has read nothing.
    pub(crate) fn parser(&self, vocab: &Arc<Vocab>) -> Result<Parser, String> {
        let (grammar, vocab, limits) = (Arc::clone(&self.grammar), Arc::clone(vocab), self.limits.clone());
        caught_apart(move || {
            let factory = &vocab.factory;
            Parser::new(factory.tok_env().clone(), grammar, limits, factory.perf_counters())
        })
    }
}

/// Whether it has terminals whose automata may explode: without `a & ~b` and remainders, fuel bounds them.
fn is_slow(grammar: &TopLevelGrammar) -> bool {
    const KEYS: [&str; 3] = ["multipleOf", "pattern", "patternProperties"];
    grammar.grammars.iter().any(|grammar| {
        let text = grammar.lark_grammar.as_deref().unwrap_or_default();
        let of_lark = text.contains(['&', '~']) || KEYS.iter().any(|key| text.contains(key));
        // Not the options beside it: `whitespace_pattern` is one.
        of_lark || grammar.json_schema.as_ref().is_some_and(|schema| has_key(schema, &KEYS))
    })
}

/// Whether an object in it has one of these keys.
fn has_key(value: &Value, keys: &[&str]) -> bool {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) if keys.iter().any(|key| members.contains_key(*key)) => return true,
            Value::Object(members) => left.extend(members.values()),
            _ => {}
        }
    }
    false
}

/// Whether every symbol that can be reached can be completed by some text. A parser would follow one that cannot, such
/// as an object that must hold itself, for ever.
fn productive(grammar: &CGrammar) -> Result<(), Refused> {
    let rules = |symbol: CSymIdx| grammar.rules_of(symbol).iter().map(|&rule| grammar.rule_rhs(rule).0);
    let mut reached = vec![grammar.start()];
    let mut known = std::collections::HashSet::from([grammar.start().as_index()]);
    let mut at = 0;
    while let Some(&symbol) = reached.get(at) {
        at += 1;
        for &symbol in rules(symbol).flatten() {
            if known.insert(symbol.as_index()) {
                reached.push(symbol);
            }
        }
    }
    let mut done = std::collections::HashSet::new();
    let mut before = usize::MAX;
    while before != done.len() {
        before = done.len();
        for &symbol in &reached {
            let data = grammar.sym_data(symbol);
            let whole = |rule: &[CSymIdx]| rule.iter().all(|symbol| done.contains(&symbol.as_index()));
            // What depends on parameters is taken to be possible.
            let given = data.is_terminal || data.is_nullable || !data.cond_nullable.is_empty();
            if !done.contains(&symbol.as_index()) && (given || rules(symbol).any(whole)) {
                done.insert(symbol.as_index());
            }
        }
    }
    let all = !done.contains(&grammar.start().as_index());
    if all || done.len() < reached.len() { Err(Refused::Endless { all }) } else { Ok(()) }
}

/// The shared parts of a grammar. A clone is one reference count.
pub(crate) type Shared = Arc<Compiled>;
