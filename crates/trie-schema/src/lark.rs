//! Grammars in llguidance's variant of Lark.

use crate::compiled::{Compiled, Refused, Shared};
use crate::error::GuidedError;
use crate::guided::{Guided, GuidedLimits};
use llguidance::api::{ParserLimits, TopLevelGrammar};
use std::sync::Arc;
use trie_core::work::{Limits, Work};
use trie_rules::TokenBytes;

/// A grammar in Lark, compiled. A clone is one reference count.
///
/// The syntax is [llguidance's](https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md): rules in small
/// letters, terminals in capitals, `%ignore`, `%import common.INT`, `%json {...}`, and terminals by regular expression
/// with `&` and `~`. What counts tokens or names them is refused: `max_tokens=`, `stop=`, special tokens.
///
/// Terminals are read by the longest match, as lexers do. A grammar whose terminals run into each other may so have
/// texts that can be begun and never completed.
///
/// ```
/// use trie_schema::{Lark, LarkError};
///
/// assert!(Lark::new("start: \"a\" NUMBER\nNUMBER: /[0-9]+/").is_ok());
/// let error = Lark::new("start: \"a\"\nb ( \"b\" )").unwrap_err();
/// assert!(matches!(error, LarkError::Syntax { line: 2, .. }), "{error}");
/// ```
#[derive(Debug, Clone)]
pub struct Lark {
    compiled: Shared,
}

/// A grammar that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LarkError {
    /// The text is no grammar.
    #[error("line {line}, column {column}: {reason}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// The grammar does not fit together.
    #[error("{reason}")]
    Invalid {
        /// What is wrong.
        reason: String,
    },
    /// Something that is no set of texts.
    #[error("{what} is not supported: it is about tokens, and a constraint is a set of texts")]
    Unsupported {
        /// What it is.
        what: String,
    },
    /// No text is allowed.
    #[error("no text completes {}: it needs itself, without end", if *.all { "rule start" } else { "a rule" })]
    Endless {
        /// Whether it is all of the grammar; else one of the rules that it uses.
        all: bool,
    },
    /// It is larger than can be compiled.
    #[error("the grammar is too large: {reason}")]
    TooLarge {
        /// What is.
        reason: String,
    },
}

trie_core::error_kind!(LarkError, Rule);

impl Lark {
    /// A grammar that begins with the rule `start`.
    ///
    /// # Errors
    /// [`LarkError`], with the place where there is one.
    pub fn new(text: &str) -> Result<Self, LarkError> {
        Work::bounded(Limits::default(), || Self::made(text))
    }

    fn made(text: &str) -> Result<Self, LarkError> {
        measured(text)?;
        let limits = ParserLimits { verbose_errors: false, ..ParserLimits::default() };
        let compiled = Compiled::new(TopLevelGrammar::from_lark(text.to_owned()), limits);
        compiled.map(|compiled| Self { compiled: Arc::new(compiled) }).map_err(|refused| typed(text, refused))
    }

    pub(crate) fn compiled(&self) -> &Shared {
        &self.compiled
    }

    /// What llguidance warned of.
    pub fn warnings(&self) -> &[String] {
        &self.compiled.warnings
    }

    /// The grammar over these tokens: a constraint. What llguidance needs of a vocabulary is made once for each.
    ///
    /// # Errors
    /// A vocabulary that cannot begin any legal text.
    pub fn over(&self, tokens: &Arc<TokenBytes>) -> Result<Guided, GuidedError> {
        self.with_limits(tokens, GuidedLimits::default())
    }

    /// [`Lark::over`] that keeps as much as this.
    ///
    /// # Errors
    /// As there.
    pub fn with_limits(&self, tokens: &Arc<TokenBytes>, limits: GuidedLimits) -> Result<Guided, GuidedError> {
        Guided::new(&self.compiled, Arc::clone(tokens), limits)
    }
}

/// Whether there is room, and stack, for what llguidance makes of a text: some bytes for each of its bytes, thousands
/// for a class of Unicode, and a call inside a call for each rule.
fn measured(text: &str) -> Result<(), LarkError> {
    const MOST_RULES: usize = 10_000;
    const BYTE: usize = 64;
    const CLASS: usize = 10_000;
    let most = Work::current().map_or(Limits::default(), |work| work.limits()).bytes;
    let classes =
        text.as_bytes().windows(2).filter(|pair| pair[0] == b'\\' && b"pPwWdDsSbB".contains(&pair[1])).count();
    if BYTE.saturating_mul(text.len()).saturating_add(CLASS.saturating_mul(classes)) > most {
        let reason = format!(
            "{} bytes of text with {classes} classes of characters take more than the {most} bytes that they may: \
             raise the limit (bytes)",
            text.len()
        );
        return Err(LarkError::TooLarge { reason });
    }
    let begins = |line: &&str| line.starts_with(|first: char| first.is_alphabetic() || "_?!".contains(first));
    let rules = text.lines().map(str::trim_start).filter(begins).filter(|line| line.contains(':')).count();
    if rules > MOST_RULES {
        let reason = format!("{rules} rules and terminals; at most {MOST_RULES} are taken");
        return Err(LarkError::TooLarge { reason });
    }
    Ok(())
}

fn typed(text: &str, refused: Refused) -> LarkError {
    let said = match refused {
        Refused::Tokens(what) => return LarkError::Unsupported { what: what.to_owned() },
        Refused::Endless { all } => return LarkError::Endless { all },
        Refused::Said(said) => said,
    };
    let large = ["too big", "too large", "too many", "too deeply", "lexer precomputation failed"];
    if large.iter().any(|words| said.contains(words)) {
        return LarkError::TooLarge { reason: first_line(&said) };
    }
    if let Some(reason) = said.strip_prefix("at EOF: ") {
        let line = text.lines().count().max(1);
        let column = text.lines().last().map_or(0, |line| line.chars().count()) + 1;
        return LarkError::Syntax { line, column, reason: first_line(reason) };
    }
    // "at 3(7): what", or "3(7): what".
    let place = said.strip_prefix("at ").unwrap_or(&said);
    let parsed = place.split_once("): ").and_then(|(place, reason)| {
        let (line, column) = place.split_once('(')?;
        Some((line.parse().ok()?, column.parse().ok()?, reason))
    });
    match parsed {
        Some((line, column, reason)) => LarkError::Syntax { line, column, reason: first_line(reason) },
        None => LarkError::Invalid { reason: first_line(&said) },
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
