//! What can be wrong with a grammar, and where.

use crate::automaton::AutomatonError;
use std::fmt;
use trie_core::work::Over;

/// A place in a grammar's text, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Line.
    pub line: usize,
    /// Column, in characters.
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
    /// Where.
    pub place: Place,
    /// What.
    #[source]
    pub problem: GrammarProblem,
}

trie_core::error_kind!(GrammarError, Rule);

/// What is wrong with a grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrammarProblem {
    /// The text is no grammar.
    #[error("{problem}")]
    Syntax {
        /// Why.
        problem: String,
    },
    /// There is no rule to begin with.
    #[error("there is no rule: write name : \"text\" | other ;")]
    NoRule,
    /// The rule is missing that all texts follow: `root` in GBNF, `start` in Lark.
    #[error("there is no rule {root}, which all texts follow: add it")]
    NoRoot {
        /// Its name.
        root: &'static str,
    },
    /// A name that nothing defines.
    #[error("no rule or terminal is named {name}")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// A name that is defined twice.
    #[error("{name} is defined already, at {first}: join the alternatives with |")]
    DefinedTwice {
        /// The name.
        name: String,
        /// Where it was defined first.
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
        /// The rule.
        name: String,
    },
    /// A part that is repeated too often.
    #[error("{times} times are too many: at most {limit} are taken; without a number of times write + or *")]
    TooOften {
        /// How often, as it is written.
        times: String,
        /// The limit.
        limit: u32,
    },
    /// Something that is no set of texts.
    #[error("{what}")]
    Unsupported {
        /// What it is, and why.
        what: String,
    },
    /// A pattern that is no regular expression.
    #[error("{terminal}: position {position} of the pattern: {problem}")]
    Pattern {
        /// The terminal.
        terminal: String,
        /// Where in the pattern, in characters from 0.
        position: usize,
        /// Why.
        problem: String,
    },
    /// A terminal that may be empty: it could come any number of times.
    #[error("{terminal} matches the empty text: a terminal needs a byte; let a rule be empty instead")]
    EmptyTerminal {
        /// The terminal.
        terminal: String,
    },
    /// A terminal that is never read, because others come first wherever it matches.
    #[error("{terminal} is never read: what it matches is read as {instead} (keywords first, then by order)")]
    NeverRead {
        /// The terminal.
        terminal: String,
        /// What is read instead.
        instead: String,
    },
    /// A terminal whose pattern no text matches.
    #[error("{terminal} matches no text")]
    NothingMatches {
        /// The terminal.
        terminal: String,
    },
    /// Two ways to go on, which the next terminal does not tell apart.
    #[error(
        "conflict before {terminal}: either {one} or {other}, at {other_place}, and one terminal does not tell which"
    )]
    Conflict {
        /// The terminal that comes next, or "the end".
        terminal: String,
        /// What may be done with it, as a rule with a dot where the text stands.
        one: String,
        /// The other.
        other: String,
        /// Where the other rule is.
        other_place: Place,
    },
    /// The terminals together make no automaton.
    #[error("the terminals: {problem}")]
    Terminals {
        /// Why.
        problem: AutomatonError,
    },
    /// More than a grammar may have.
    #[error("the grammar has more than {limit} {what}: raise the limit if that is meant")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// It takes more work than it may.
    #[error("the grammar is too large, or too ambiguous: {over}")]
    TooMuch {
        /// What was spent.
        #[source]
        over: Over,
    },
    /// Terminals that stand next to each other cannot be told apart, so that no text is left.
    #[error("no text is legal: neighbouring terminals run into each other; let SKIP match blanks between them")]
    NoText,
}

trie_core::error_kind!(GrammarProblem, Rule);

impl GrammarProblem {
    pub(crate) fn at(self, place: Place) -> GrammarError {
        GrammarError { place, problem: self }
    }
}
