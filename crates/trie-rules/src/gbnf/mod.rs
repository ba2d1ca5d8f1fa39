//! GBNF, the language of grammars of llama.cpp.

mod compile;
mod machine;
mod order;
mod text;

use crate::automaton::{Automaton, AutomatonWalk};
use crate::grammar::GrammarError;
use crate::rule::{Rule, Walker};
use crate::tokens::token_bytes::TokenBytes;
use machine::{Machine, MachineWalk, Places};
use std::fmt;
use std::sync::Arc;
use trie_core::work::{Limits, Work};

/// A grammar in GBNF as a rule: the language of llama.cpp's `--grammar`, and of `grammar` in requests to its server.
///
/// All texts follow the rule `root`. The syntax is that of
/// [llama.cpp](https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md), and so is what is allowed: texts
/// are read by characters, with no terminals that the longest match would settle, and a grammar may be ambiguous. Text
/// is UTF-8. Rules that nothing uses are passed over. What is refused, each with its place:
///
/// - tokens, as `<think>` or `<[7]>`: a constraint is a set of texts;
/// - rules that begin with themselves, which llama.cpp refuses, too;
/// - rules that never end, and a second rule of one name, of which llama.cpp takes the last;
/// - empty classes, ranges that go down, and numbers of no character;
/// - a part that is repeated more than 100,000 times by one number: llama.cpp takes 2000, and reads a larger upper
///   bound as none.
///
/// Without recursion a grammar is a finite automaton. With it, each rule that comes again inside itself is one, and the
/// automata call each other. A clone is one reference count.
///
/// ```
/// use trie_rules::{Gbnf, Rule};
///
/// let lists = Gbnf::new("root ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= [0-9]+ | root")?;
/// let after = |text: &str| text.bytes().try_fold(lists.start(), |state, byte| lists.step(&state, byte));
/// assert!(lists.is_end(&after("[1,[],[23]]").unwrap()));
/// assert!(after("[1,[2").is_some_and(|state| !lists.is_end(&state)));
/// assert!(after("[1,,").is_none());
/// let error = Gbnf::new("root ::= \"a\" other").unwrap_err();
/// assert_eq!(error.to_string(), "line 1, column 14: no rule or terminal is named other");
/// # Ok::<(), trie_rules::GrammarError>(())
/// ```
#[derive(Clone)]
pub struct Gbnf(Way);

#[derive(Clone)]
enum Way {
    Finite(Automaton),
    Recursive(Arc<Machine>),
}

/// Where in a text a grammar is. A clone is one reference count.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct GbnfState(At);

#[derive(Clone, PartialEq, Eq, Hash)]
enum At {
    Finite(u32),
    Recursive(Places),
}

impl fmt::Debug for GbnfState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            At::Finite(state) => write!(f, "GbnfState({state})"),
            At::Recursive(places) => write!(f, "GbnfState({places:?})"),
        }
    }
}

impl fmt::Debug for Gbnf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gbnf").field("states", &self.states()).field("is_finite", &self.is_finite()).finish()
    }
}

/// Bytes that reading may take for each byte of a grammar's text, about.
const BYTES_OF_A_BYTE: usize = 64;

impl Gbnf {
    /// A grammar that begins with the rule `root`.
    ///
    /// # Errors
    /// What is wrong, and where; or it takes more than [`Limits::default`].
    pub fn new(text: &str) -> Result<Self, GrammarError> {
        Self::with_limits(text, Limits::default())
    }

    /// [`Gbnf::new`] with limits of what reading may cost.
    ///
    /// # Errors
    /// As there.
    pub fn with_limits(text: &str, limits: Limits) -> Result<Self, GrammarError> {
        Work::bounded(limits, || Self::made(text, limits))
    }

    fn made(text: &str, limits: Limits) -> Result<Self, GrammarError> {
        text::measured(text, limits.bytes / BYTES_OF_A_BYTE, limits.bytes)?;
        let written = text::Written::parse(text)?;
        let machine = compile::compile(&written, limits)?;
        Ok(Self(match machine.alone() {
            Ok(table) => Way::Finite(Automaton::of_exact(table)),
            Err(machine) => Way::Recursive(Arc::new(machine)),
        }))
    }

    /// States of all its automata.
    pub fn states(&self) -> usize {
        match &self.0 {
            Way::Finite(automaton) => automaton.states(),
            Way::Recursive(machine) => machine.states(),
        }
    }
}

impl Rule for Gbnf {
    type State = GbnfState;

    fn start(&self) -> GbnfState {
        GbnfState(match &self.0 {
            Way::Finite(automaton) => At::Finite(automaton.start()),
            Way::Recursive(machine) => At::Recursive(machine.start()),
        })
    }

    fn step(&self, state: &GbnfState, byte: u8) -> Option<GbnfState> {
        match (&self.0, &state.0) {
            (Way::Finite(automaton), At::Finite(state)) => automaton.step(state, byte).map(At::Finite),
            (Way::Recursive(machine), At::Recursive(places)) => machine.step(places, byte).map(At::Recursive),
            _ => None,
        }
        .map(GbnfState)
    }

    fn is_end(&self, state: &GbnfState) -> bool {
        match (&self.0, &state.0) {
            (Way::Finite(automaton), At::Finite(state)) => automaton.is_end(state),
            (Way::Recursive(machine), At::Recursive(places)) => machine.is_end(places),
            _ => false,
        }
    }

    fn is_finite(&self) -> bool {
        matches!(self.0, Way::Finite(_))
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<GbnfState>>> {
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

impl Walker<GbnfState> for Walk {
    fn tokens(&self, state: &GbnfState, words: &mut [u32]) {
        match (self, &state.0) {
            (Self::Finite(walk), At::Finite(state)) => walk.tokens(state, words),
            (Self::Recursive(walk), At::Recursive(places)) => walk.tokens(places, words),
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
