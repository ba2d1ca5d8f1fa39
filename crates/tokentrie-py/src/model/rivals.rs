//! Samplers of others that constrain text and not tokens: what `benches/generations` compares with.

use crate::errors::{Class, Result};
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use std::fmt::Display;

/// The sampler of an engine for a grammar whose root rule is `root` (GBNF) or `start` (llguidance's dialect of Lark).
///
/// # Errors
/// `OptionError` for a grammar that cannot be read, or an engine that is not in this build.
pub(crate) fn sampler(model: &LlamaModel, engine: &str, grammar: &str) -> Result<LlamaSampler> {
    let refused = |error: &dyn Display| Class::Option.error(format!("the grammar: {error}"));
    match engine {
        "gbnf" => LlamaSampler::grammar(model, grammar, "root").map_err(|error| refused(&error)),
        "llguidance" => llguidance(model, grammar).map_err(|error| refused(&error)),
        _ => Err(Class::Option.error(format!("engine is {engine:?}: it must be \"gbnf\" or \"llguidance\""))),
    }
}

#[cfg(feature = "llguidance")]
fn llguidance(model: &LlamaModel, grammar: &str) -> std::result::Result<LlamaSampler, Box<dyn std::error::Error>> {
    use llguidance::{Matcher, ParserFactory, api::TopLevelGrammar};
    let factory = ParserFactory::new_simple(&LlamaSampler::llguidance_tok_env(model))?;
    let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.to_owned()))?;
    Ok(LlamaSampler::from(Matcher::new(Ok(parser))))
}

#[cfg(not(feature = "llguidance"))]
fn llguidance(_: &LlamaModel, _: &str) -> std::result::Result<LlamaSampler, &'static str> {
    Err("this build is without llguidance")
}
