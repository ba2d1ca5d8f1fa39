//! A grammar that llguidance has read: checked once, then put over any vocabulary.

use crate::guard::caught_deep;
use crate::vocab::Vocab;
use llguidance::Logger;
use llguidance::api::{GrammarInit, ParserLimits, TopLevelGrammar};
use llguidance::earley::lexerspec::LexerSpec;
use llguidance::earley::{CGrammar, CSymIdx, Grammar, Parser};
use std::fmt;
use std::sync::Arc;

pub(crate) struct Compiled {
    grammar: Grammar,
    lexer: LexerSpec,
    limits: ParserLimits,
    /// What llguidance warned of.
    pub(crate) warnings: Vec<String>,
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
        f.debug_struct("Compiled").field("symbols", &self.grammar.num_symbols()).finish_non_exhaustive()
    }
}

impl Compiled {
    pub(crate) fn new(grammar: TopLevelGrammar, limits: ParserLimits) -> Result<Self, Refused> {
        let (grammar, lexer, whole) = caught_deep(|| {
            let (grammar, lexer) = GrammarInit::Serialized(grammar).to_internal(None, limits.clone())?;
            let init = GrammarInit::Internal(grammar.clone(), lexer.clone());
            let whole = init.to_cgrammar(None, &mut Logger::new(0, 0), limits.clone(), Vec::new())?;
            Ok((grammar, lexer, whole))
        })
        .map_err(Refused::Said)?;
        if lexer.has_max_tokens || lexer.has_stop {
            return Err(Refused::Tokens("max_tokens= or stop="));
        }
        if !lexer.token_range_lexemes(&lexer.all_lexemes()).is_empty() {
            return Err(Refused::Tokens("a special token, such as <|name|> or <[7]>"));
        }
        productive(&whole)?;
        let warnings = lexer.render_warnings();
        Ok(Self { grammar, lexer, limits, warnings })
    }

    /// A parser that has read nothing.
    pub(crate) fn parser(&self, vocab: &Vocab) -> Result<Parser, String> {
        caught_deep(|| {
            let init = GrammarInit::Internal(self.grammar.clone(), self.lexer.clone());
            let factory = &vocab.factory;
            let caps = llguidance::toktrie::InferenceCapabilities::default();
            Ok(factory.create_parser_from_init_ext(init, Logger::new(0, 0), caps, self.limits.clone())?.parser)
        })
    }
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
