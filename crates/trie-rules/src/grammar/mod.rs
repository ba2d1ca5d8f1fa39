//! Grammars: LR(1), with terminals that are read byte by byte.

mod bits;
mod error;
mod joints;
mod lexer;
mod names;
mod parser;
mod sets;
mod stack;
mod states;
mod tables;
mod text;
mod walk;

pub use error::{GrammarError, GrammarProblem, Place};

use crate::automaton::AutomatonLimits;
use crate::rule::{Rule, Walker};
use crate::tokens::token_bytes::TokenBytes;
use joints::Neighbours;
use lexer::Lexer;
use parser::Parser;
use stack::Stack;
use std::fmt;
use std::sync::Arc;
use trie_core::work::{LimitExceeded, Limits, Work, over};

/// Bytes that reading may take for each byte of a grammar's text, about.
const BYTES_OF_A_BYTE: usize = 32;

/// An LR(1) grammar as a rule, in the notation of yacc. `%start` names the start rule (by default the first rule), a
/// rule is `name : first | "(" second ")" | ;`, comments are `//` and `/* */`.
///
/// - `"text"` or `'text'` is a keyword, taken verbatim: a backslash is a backslash.
/// - `"/pattern/"` or `'/pattern/'` is a regular expression in the syntax of the crate `regex`.
/// - A name in capitals whose alternatives are only such keywords and patterns is a terminal: `NUMBER : "/[0-9]+/" |
///   "zero" ;`
/// - `SKIP` is the terminal that may stand between all others: blanks, comments.
///
/// Terminals are read byte by byte. The longest match wins; among matches of equal length keywords come before
/// patterns, then the terminal that comes first. The first byte that does not belong to a terminal ends it; the lexer
/// never goes back to a shorter match. The check of a byte is exact: a byte is allowed if and only if it continues some
/// legal text. Pending reductions of the parser are included, and so are neighbouring terminals that would run into
/// each other.
///
/// A clone is one reference count.
///
/// ```
/// use trie_rules::{Grammar, Rule};
///
/// let sums = Grammar::new(
///     r#"
///     SKIP : "/ +/" ;
///     NUMBER : "/[0-9]+/" ;
///     sum : term | sum "+" term ;
///     term : NUMBER | "(" sum ")" ;
///     "#,
/// )?;
/// let after = |text: &str| text.bytes().try_fold(sums.start(), |state, byte| sums.step(&state, byte));
/// assert!(sums.is_end(&after("1 + (2 + 3)").unwrap()));
/// assert!(after("1 + (2").is_some_and(|state| !sums.is_end(&state)));
/// assert!(after("1 + 2)").is_none());
/// # Ok::<(), trie_rules::GrammarError>(())
/// ```
#[derive(Clone)]
pub struct Grammar(Arc<GrammarTables>);

#[derive(Debug)]
struct GrammarTables {
    lexer: Lexer,
    /// State of the lexer before the first byte.
    begin: u32,
    parser: Parser,
    skip: Option<u32>,
    neighbours: Neighbours,
    terminals: Vec<String>,
    rules: usize,
    warnings: Vec<GrammarError>,
}

/// Alphabet of the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextOf {
    /// Characters in UTF-8: `.` is one of them.
    #[default]
    Utf8,
    /// Bytes: `.` is any byte but a line feed. What is written need not be text.
    Bytes,
}

/// Options for reading a grammar.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct GrammarOptions {
    /// Alphabet of the patterns.
    pub text_of: TextOf,
    /// Resolves conflicts as yacc does: shift before reduce, then the rule that comes first. Conflicts and unused
    /// symbols become [`Grammar::warnings`]. After a resolved conflict a text is allowed if the parser accepts its next
    /// terminal; it may still be a dead end.
    pub lenient: bool,
    /// Begins the text as if SKIP had read a line feed before it, so that a pattern such as `\n#.*` matches on the
    /// first line, too.
    pub after_newline: bool,
    /// Size limits of the automaton of the terminals.
    pub automaton: AutomatonLimits,
    /// Maximum number of parts of all rules together.
    pub parts: usize,
    /// Budget for reading the grammar.
    pub limits: Limits,
}

impl Default for GrammarOptions {
    /// UTF-8, strict, after a line feed, 32 MiB, 100,000 parts, [`Limits::default`].
    fn default() -> Self {
        let automaton = AutomatonLimits::default();
        Self {
            text_of: TextOf::Utf8,
            lenient: false,
            after_newline: true,
            automaton,
            parts: 100_000,
            limits: Limits::default(),
        }
    }
}

impl GrammarOptions {
    /// Sets the field `text_of`: patterns of characters or of bytes.
    #[must_use]
    pub const fn text_of(self, text_of: TextOf) -> Self {
        Self { text_of, ..self }
    }

    /// Sets the field `lenient`: warnings for conflicts that yacc resolves.
    #[must_use]
    pub const fn lenient(self, lenient: bool) -> Self {
        Self { lenient, ..self }
    }

    /// Sets the field `after_newline`: a text that begins as if after a line feed.
    #[must_use]
    pub const fn after_newline(self, after_newline: bool) -> Self {
        Self { after_newline, ..self }
    }

    /// Sets the field `automaton`, the size limits of the automaton.
    #[must_use]
    pub const fn automaton(self, automaton: AutomatonLimits) -> Self {
        Self { automaton, ..self }
    }

    /// Sets the field `limits`, the budget for reading the grammar.
    #[must_use]
    pub const fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the field `parts`, the limit on parts.
    #[must_use]
    pub const fn parts(self, parts: usize) -> Self {
        Self { parts, ..self }
    }
}

/// State of a text in a grammar: the terminal that is being read, and the parser's stack. Stacks share their common
/// part; a clone costs one reference count, and comparing and hashing are as cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GrammarState {
    lexer: u32,
    stack: Stack,
}

impl GrammarState {
    /// Returns the number of states on the parser's stack. `O(depth)`.
    pub fn depth(&self) -> usize {
        std::iter::successors(Some(&self.stack), |stack| stack.parent()).count()
    }
}

impl fmt::Debug for GrammarState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GrammarState({}, {:?})", self.lexer, self.stack)
    }
}

impl fmt::Debug for Grammar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lexer, parser) = (self.0.lexer.states(), self.0.parser.states());
        let terminals = self.0.terminals.len();
        f.debug_struct("Grammar")
            .field("rules", &self.0.rules)
            .field("terminals", &terminals)
            .field("lexer_states", &lexer)
            .field("parser_states", &parser)
            .finish()
    }
}

impl Grammar {
    /// Reads a grammar and builds its tables.
    ///
    /// # Errors
    /// [`GrammarError`] with the place: a syntax error; undefined names; rules that are never used or match no finite
    /// text; conflicts; terminals that match the empty text, no text, or only texts that other terminals match first.
    pub fn new(text: &str) -> Result<Self, GrammarError> {
        Self::with_options(text, GrammarOptions::default())
    }

    /// [`Grammar::new`] with options.
    ///
    /// # Errors
    /// As [`Grammar::new`].
    pub fn with_options(text: &str, options: GrammarOptions) -> Result<Self, GrammarError> {
        Work::run_bounded(options.limits, || Self::compile(text, options))
    }

    fn compile(text: &str, options: GrammarOptions) -> Result<Self, GrammarError> {
        let too_much = |over| GrammarProblem::TooMuch { over }.into_error(Place { line: 1, column: 1 });
        if text.len() > options.limits.bytes / BYTES_OF_A_BYTE {
            return Err(too_much(LimitExceeded::Bytes(options.limits.bytes)));
        }
        let written = text::ParsedGrammar::parse(text)?;
        let parts: usize = written.rules.iter().flat_map(|rule| &rule.alternatives).map(|parts| parts.len() + 1).sum();
        if parts > options.parts {
            let problem = GrammarProblem::TooLarge { what: "parts of rules", limit: options.parts };
            return Err(problem.into_error(Place { line: 1, column: 1 }));
        }
        let mut resolved = names::ResolvedGrammar::resolve(&written)?;
        let mut warnings = resolved.warnings.clone();
        let checked = |found: Vec<GrammarError>, warnings: &mut Vec<GrammarError>| {
            if options.lenient {
                warnings.extend(found);
                return Ok(());
            }
            found.into_iter().next().map_or(Ok(()), Err)
        };
        checked(std::mem::take(&mut warnings), &mut warnings)?;
        let (mut lexer, never_read) = Lexer::build(&resolved, &options)?;
        checked(never_read, &mut warnings)?;
        let (tables, conflicts) = tables::Tables::build(&resolved)?;
        checked(conflicts, &mut warnings)?;
        let neighbours = joints::neighbours(&resolved).map_err(too_much)?;
        let joints = joints::Joints::from_grammar(&resolved, &tables, &mut lexer, &neighbours).map_err(too_much)?;
        let start = resolved.rules[resolved.start as usize].place;
        let parser = Parser::new(tables, resolved.terminals.len(), resolved.skip, joints);
        let begin = lexer.begin(resolved.skip.filter(|_| options.after_newline));
        let live = parser.live(parser.bottom());
        if let Some(over) = over() {
            return Err(too_much(over));
        }
        if !live.end && !lexer.meets(lexer.reach(begin), &live.kinds) {
            return Err(GrammarProblem::NoText.into_error(start));
        }
        let terminals = resolved.terminals.drain(..).map(|terminal| terminal.name).collect();
        let (skip, rules) = (resolved.skip, resolved.rules.len());
        Ok(Self(Arc::new(GrammarTables { lexer, begin, parser, skip, neighbours, terminals, rules, warnings })))
    }

    /// Returns the problems that a lenient reading ignored.
    pub fn warnings(&self) -> &[GrammarError] {
        &self.0.warnings
    }

    /// Returns the terminals as written, in the order of the grammar.
    pub fn terminals(&self) -> impl Iterator<Item = &str> {
        self.0.terminals.iter().map(String::as_str)
    }

    /// Returns the number of states of the parser.
    pub fn parser_states(&self) -> usize {
        self.0.parser.states()
    }

    /// Returns the number of states of the automaton that reads terminals.
    pub fn lexer_states(&self) -> usize {
        self.0.lexer.states()
    }

    /// The stack after the terminal that is being read, if it may end here.
    fn end_terminal(&self, state: &GrammarState) -> Option<Stack> {
        let terminal = self.0.lexer.reads(state.lexer)?;
        if self.0.skip == Some(terminal) {
            return Some(state.stack.clone());
        }
        self.0.parser.shift(&state.stack, terminal)
    }
}

impl Rule for Grammar {
    type State = GrammarState;

    fn start(&self) -> GrammarState {
        GrammarState { lexer: self.0.begin, stack: self.0.parser.bottom().clone() }
    }

    fn step(&self, state: &GrammarState, byte: u8) -> Option<GrammarState> {
        let lexer = &self.0.lexer;
        let (next, stack) = match lexer.step(state.lexer, byte) {
            Some(next) => (next, state.stack.clone()),
            None => (lexer.step(lexer.start(), byte)?, self.end_terminal(state)?),
        };
        let live = self.0.parser.live(&stack);
        lexer.meets(lexer.reach(next), &live.kinds).then_some(GrammarState { lexer: next, stack })
    }

    fn is_end(&self, state: &GrammarState) -> bool {
        if state.lexer == self.0.lexer.start() {
            return self.0.parser.live(&state.stack).end;
        }
        self.end_terminal(state).is_some_and(|stack| self.0.parser.live(&stack).end)
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<GrammarState>>> {
        Some(Arc::new(walk::GrammarWalk::new(self.clone(), Arc::clone(tokens))))
    }
}

/// A grammar that comes with the crate.
///
/// ```
/// use trie_rules::{Example, Rule};
///
/// let json = Example::Json.grammar()?;
/// let text = br#"{"list": [1, 2.5e3, "\u00e9"]}"#;
/// let end = text.iter().try_fold(json.start(), |state, &byte| json.step(&state, byte)).unwrap();
/// assert!(json.is_end(&end));
/// # Ok::<(), trie_rules::GrammarError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Example {
    /// JSON as in RFC 8259: any value, blanks where they may be.
    Json,
    /// Sums, products, powers, signs and calls of functions, over decimal numbers.
    Arithmetic,
    /// A part of C: declarations of variables and functions, statements and expressions over numbers and names.
    C,
    /// SELECT of SQL: columns, joins, conditions, groups, order and limits. Keywords in capitals.
    Sql,
}

impl Example {
    /// All grammars of the library.
    pub const ALL: [Self; 4] = [Self::Json, Self::Arithmetic, Self::C, Self::Sql];

    /// Returns the source of the grammar.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Json => include_str!("examples/json.y"),
            Self::Arithmetic => include_str!("examples/arithmetic.y"),
            Self::C => include_str!("examples/c.y"),
            Self::Sql => include_str!("examples/sql.y"),
        }
    }

    /// Returns the compiled grammar.
    ///
    /// # Errors
    /// None: the tests compile every example.
    pub fn grammar(self) -> Result<Grammar, GrammarError> {
        Grammar::new(self.text())
    }
}
