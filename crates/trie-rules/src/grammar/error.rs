//! Errors of grammars, with their positions.

use crate::automaton::AutomatonError;
use std::fmt;
use trie_core::work::LimitExceeded;

/// A place in a grammar's text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A grammar that cannot be used: what is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
#[non_exhaustive]
pub struct GrammarError {
    /// Position of the problem.
    pub place: Place,
    /// Description of the problem.
    #[source]
    pub problem: GrammarProblem,
}

trie_core::error_kind!(GrammarError, Rule);

/// Problem of a grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrammarProblem {
    /// The text is not a grammar.
    #[error("{problem}")]
    Syntax {
        /// Description of the error.
        problem: String,
    },
    /// The grammar has no rules.
    #[error("the grammar has no rules: write name : \"text\" | other ;")]
    NoRule,
    /// The rule that all texts follow is missing: `root` in GBNF, `start` in Lark.
    #[error("missing rule {root}: all texts follow it")]
    NoRoot {
        /// Name of the rule.
        root: &'static str,
    },
    /// A name that nothing defines.
    #[error("no rule or terminal is named {name}")]
    UnknownName {
        /// Name that is undefined.
        name: String,
    },
    /// A name that is defined twice.
    #[error("{name} is defined already, at {first}: join the alternatives with |")]
    DefinedTwice {
        /// Name that is defined twice.
        name: String,
        /// Position of the first definition.
        first: Place,
    },
    /// A rule or terminal that no text of the grammar uses.
    #[error("{name} cannot be reached from the start {start}: use it or remove it")]
    Unreachable {
        /// The rule or terminal.
        name: String,
        /// The rule that the grammar begins with.
        start: String,
    },
    /// A rule that no finite text follows.
    #[error("{name} never ends: each of its alternatives needs itself again")]
    Endless {
        /// Name of the rule.
        name: String,
    },
    /// A part that is repeated too often.
    #[error("{times} times are too many: at most {limit} are taken; without a number of times write + or *")]
    TooOften {
        /// The quantifier, as it is written.
        times: String,
        /// Limit that was exceeded.
        limit: u32,
    },
    /// Something that is not a set of texts.
    #[error("{what}")]
    Unsupported {
        /// Unsupported construct, with the reason.
        what: String,
    },
    /// A pattern that is not a regular expression.
    #[error("{terminal}: position {position} of the pattern: {problem}")]
    Pattern {
        /// Name of the terminal.
        terminal: String,
        /// Position in the pattern, in characters from 0.
        position: usize,
        /// Description of the error.
        problem: String,
    },
    /// A terminal that may be empty: it could come any number of times.
    #[error("{terminal} matches the empty text: a terminal needs a byte; let a rule be empty instead")]
    EmptyTerminal {
        /// Name of the terminal.
        terminal: String,
    },
    /// A terminal that is never read, because others come first wherever it matches.
    #[error("{terminal} is never read: what it matches is read as {instead} (keywords first, then by order)")]
    NeverRead {
        /// Name of the terminal.
        terminal: String,
        /// Terminal that is read instead.
        instead: String,
    },
    /// A terminal whose pattern no text matches.
    #[error("{terminal} matches no text")]
    NothingMatches {
        /// Name of the terminal.
        terminal: String,
    },
    /// Two ways to go on, which the next terminal does not tell apart.
    #[error(
        "conflict before {terminal}: either {one} or {other}, at {other_place}, and one terminal does not tell which"
    )]
    Conflict {
        /// The terminal that comes next, or "the end".
        terminal: String,
        /// One of the two actions, as a rule with a dot at the position of the text.
        one: String,
        /// The other of the two actions.
        other: String,
        /// Position of the other rule.
        other_place: Place,
    },
    /// The terminals together make no automaton.
    #[error("the terminals: {problem}")]
    Terminals {
        /// Reason for the refusal.
        problem: AutomatonError,
    },
    /// More than a grammar may have.
    #[error("the grammar has more than {limit} {what}: raise the limit if that is meant")]
    TooLarge {
        /// Name of the quantity.
        what: &'static str,
        /// Limit that was exceeded.
        limit: usize,
    },
    /// It takes more work than it may.
    #[error("the grammar is too large, or too ambiguous: {over}")]
    TooMuch {
        /// Budget that was exceeded.
        #[source]
        over: LimitExceeded,
    },
    /// Terminals that stand next to each other cannot be told apart, so that no text is left.
    #[error("no text is legal: neighbouring terminals run into each other; let SKIP match blanks between them")]
    NoText,
}

trie_core::error_kind!(GrammarProblem, Rule);

impl GrammarProblem {
    pub(crate) fn into_error(self, place: Place) -> GrammarError {
        GrammarError { place, problem: self }
    }
}
