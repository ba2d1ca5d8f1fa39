//! Context-free grammars over characters, in two notations: GBNF and Lark.

mod compile;
mod cursor;
mod embedded;
mod gbnf;
mod lark;
mod left;
mod machine;
mod order;
mod parts;
mod substrings;

use crate::automaton::{Automaton, AutomatonLimits, AutomatonWalk};
use crate::grammar::{GrammarError, GrammarProblem};
use crate::rule::{Rule, Walker};
use crate::tokens::token_bytes::TokenBytes;
pub use embedded::EmbeddedRule;
pub use lark::SchemaReader;
use machine::{Machine, MachineWalk, Places};
use parts::{RuleSet, check_budget};
use std::fmt;
use std::sync::Arc;
use trie_core::Problem;
use trie_core::work::{Limits, Work, look};

/// A context-free grammar as a rule, in GBNF ([`ContextFree::gbnf`]) or in Lark ([`ContextFree::lark`]).
///
/// A text is legal if the grammar derives it in some way, character by character. A grammar may be ambiguous, and its
/// rules may begin with themselves. A grammar without recursion is one finite automaton. Otherwise each recursive rule
/// is an automaton, and the automata call each other. A clone costs one reference count.
///
/// ```
/// use trie_core::work::Limits;
/// use trie_rules::{ContextFree, Rule};
///
/// let text = "root ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= [0-9]+ | root";
/// let lists = ContextFree::gbnf(text, Limits::default())?;
/// let after = |text: &str| text.bytes().try_fold(lists.start(), |state, byte| lists.step(&state, byte));
/// assert!(lists.is_end(&after("[1,[],[23]]").unwrap()));
/// assert!(after("[1,[2").is_some_and(|state| !lists.is_end(&state)));
/// assert!(after("[1,,").is_none());
///
/// let error = ContextFree::gbnf("root ::= \"a\" other", Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 14: no rule or terminal is named other");
/// # Ok::<(), trie_rules::GrammarError>(())
/// ```
#[derive(Clone)]
pub struct ContextFree(Way);

#[derive(Clone)]
enum Way {
    Finite(Automaton),
    Recursive(Arc<Machine>),
}

/// State of a text in a grammar. A clone is one reference count.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ContextFreeState(Position);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Position {
    Finite(u32),
    Recursive(Places),
}

impl fmt::Debug for ContextFreeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Position::Finite(state) => write!(f, "ContextFreeState({state})"),
            Position::Recursive(places) => write!(f, "ContextFreeState({places:?})"),
        }
    }
}

impl fmt::Debug for ContextFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextFree").field("states", &self.states()).field("is_finite", &self.is_finite()).finish()
    }
}

impl ContextFree {
    /// Reads a grammar in GBNF, the notation of llama.cpp's `--grammar`. The start rule is `root`.
    ///
    /// The syntax is that of [llama.cpp](https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md), and so
    /// is what is allowed. Unused rules are ignored. These are refused, each with its place:
    ///
    /// - tokens, as `<think>` or `<[7]>`: a constraint is a set of texts;
    /// - rules that match no finite text, and a second rule of the same name, where llama.cpp takes the last one;
    /// - empty classes, ranges in descending order, and code points that are not characters;
    /// - a part that is repeated more than 100,000 times by one number: llama.cpp takes 2000, and reads a larger upper
    ///   bound as none.
    ///
    /// # Errors
    /// [`GrammarError`] with its place; a grammar that takes more than `limits`.
    pub fn gbnf(text: &str, limits: Limits) -> Result<Self, GrammarError> {
        Self::read(text, limits, gbnf::read)
    }

    /// Reads a grammar in Lark. The start rule is `start`.
    ///
    /// Rules in small letters, terminals in capitals; strings (`"a"`, `"a"i`), regular expressions (`/a+/i`), ranges
    /// (`"a".."z"`), groups, `[optional]`, `?`, `*`, `+`, `~2..5`, `{2,5}`; `%ignore`, and `%import common` of the
    /// terminals that come with Lark. `%json {...}` is a JSON Schema, which `schemas` reads. Aliases (`-> name`) and
    /// priorities do not change the texts and are ignored. Where several ways split a text into terminals, each counts,
    /// as with Lark's `lexer="dynamic_complete"`.
    ///
    /// These are refused, with their names: tokens (`<|name|>`, `max_tokens=`), `stop=`, `lazy`, templates, imports of
    /// files, look-arounds in a regular expression.
    ///
    /// ```
    /// use trie_rules::{AnyRule, ContextFree, Read};
    ///
    /// let text = "start: sum\nsum: NUMBER | sum \"+\" NUMBER\nNUMBER: /[0-9]+/\n%ignore \" \"";
    /// let sums = ContextFree::lark(text, Default::default(), None)?;
    /// assert_eq!(sums.read(b"1 + 20"), Read::Whole);
    /// assert_eq!(sums.read(b"1 +"), Read::Begun);
    /// assert_eq!(sums.read(b"1 2"), Read::Refused { at: 2 });
    /// # Ok::<(), trie_rules::GrammarError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`ContextFree::gbnf`].
    pub fn lark(text: &str, limits: Limits, schemas: Option<SchemaReader<'_>>) -> Result<Self, GrammarError> {
        Self::read(text, limits, |text| lark::read(text, AutomatonLimits::bytes(limits.bytes), schemas))
    }

    fn read<'t>(
        text: &'t str,
        limits: Limits,
        read: impl FnOnce(&'t str) -> Result<RuleSet<'t>, GrammarError>,
    ) -> Result<Self, GrammarError> {
        /// Bytes that reading may take for each byte of a grammar's text, about.
        const BYTES_OF_A_BYTE: usize = 64;
        Work::run_bounded(limits, || {
            check_budget(text, limits.bytes / BYTES_OF_A_BYTE, limits.bytes)?;
            let rules = read(text)?;
            let machine = compile::compile(&rules, limits)?;
            if let Err(over) = look(0, 0) {
                return Err(rules.wrong_with(rules.root, GrammarProblem::TooMuch { over }));
            }
            Ok(Self(match machine.into_single_table() {
                Ok(table) => Way::Finite(Automaton::of_exact(table)),
                Err(machine) => Way::Recursive(Arc::new(machine)),
            }))
        })
    }

    /// Returns the one automaton that the grammar is, if nothing in it is recursive.
    pub fn automaton(&self) -> Option<&Automaton> {
        if let Way::Finite(automaton) = &self.0 { Some(automaton) } else { None }
    }

    /// Returns the number of states of all its automata.
    pub fn states(&self) -> usize {
        match &self.0 {
            Way::Finite(automaton) => automaton.states(),
            Way::Recursive(machine) => machine.states(),
        }
    }
}

impl Rule for ContextFree {
    type State = ContextFreeState;

    fn start(&self) -> ContextFreeState {
        ContextFreeState(match &self.0 {
            Way::Finite(automaton) => Position::Finite(automaton.start()),
            Way::Recursive(machine) => Position::Recursive(machine.start()),
        })
    }

    fn step(&self, state: &ContextFreeState, byte: u8) -> Option<ContextFreeState> {
        match (&self.0, &state.0) {
            (Way::Finite(automaton), Position::Finite(state)) => automaton.step(state, byte).map(Position::Finite),
            (Way::Recursive(machine), Position::Recursive(places)) => {
                machine.step(places, byte).map(Position::Recursive)
            }
            _ => None,
        }
        .map(ContextFreeState)
    }

    fn is_end(&self, state: &ContextFreeState) -> bool {
        match (&self.0, &state.0) {
            (Way::Finite(automaton), Position::Finite(state)) => automaton.is_end(state),
            (Way::Recursive(machine), Position::Recursive(places)) => machine.is_end(places),
            _ => false,
        }
    }

    fn failure(&self) -> Option<Problem> {
        match &self.0 {
            Way::Finite(automaton) => automaton.failure(),
            Way::Recursive(machine) => machine.failure(),
        }
    }

    fn failing(&self) -> bool {
        match &self.0 {
            Way::Finite(automaton) => automaton.failing(),
            Way::Recursive(machine) => machine.failing(),
        }
    }

    fn is_finite(&self) -> bool {
        matches!(self.0, Way::Finite(_))
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<ContextFreeState>>> {
        let tokens = Arc::clone(tokens);
        Some(Arc::new(match &self.0 {
            Way::Finite(automaton) => Walk::Finite(AutomatonWalk::new(automaton.clone(), tokens)),
            Way::Recursive(machine) => Walk::Recursive(MachineWalk::new(Arc::clone(machine), tokens)),
        }))
    }
}

#[derive(Debug)]
enum Walk {
    Finite(AutomatonWalk),
    Recursive(MachineWalk),
}

impl Walker<ContextFreeState> for Walk {
    fn tokens(&self, state: &ContextFreeState, words: &mut [u32]) {
        match (self, &state.0) {
            (Self::Finite(walk), Position::Finite(state)) => walk.tokens(state, words),
            (Self::Recursive(walk), Position::Recursive(places)) => walk.tokens(places, words),
            _ => {}
        }
    }

    fn nbytes(&self) -> usize {
        match self {
            Self::Finite(walk) => walk.nbytes(),
            Self::Recursive(walk) => walk.nbytes(),
        }
    }

    fn limit(&self, bytes: usize) {
        match self {
            Self::Finite(walk) => walk.limit(bytes),
            Self::Recursive(walk) => walk.limit(bytes),
        }
    }

    fn forget(&self) {
        match self {
            Self::Finite(walk) => walk.forget(),
            Self::Recursive(walk) => walk.forget(),
        }
    }
}
