//! Regular expressions: whole values, UTF-8 text.

use crate::automaton::{Automaton, AutomatonError, AutomatonLimits};
use crate::rule::{Rule, Walker};
use crate::tokens::token_bytes::TokenBytes;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use std::fmt;
use std::sync::Arc;
use trie_core::work::{Limits, Work};

/// A regular expression as a rule. The whole text must match, in any way: the order of alternatives has no effect.
/// Syntax of the crate `regex`; text is UTF-8.
///
/// ```
/// use trie_rules::{Regex, Rule};
///
/// let names = Regex::new("foo|foobar")?;
/// let state = b"foo".iter().try_fold(names.start(), |state, &byte| names.step(&state, byte)).unwrap();
/// assert!(names.is_end(&state) && names.step(&state, b'b').is_some() && names.step(&state, b'x').is_none());
/// # Ok::<(), trie_rules::RegexError>(())
/// ```
#[derive(Clone)]
pub struct Regex {
    pattern: String,
    hir: Hir,
    automaton: Automaton,
}

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegexError {
    /// It is not a regular expression.
    #[error("{}, position {position}: {problem}\n{}", shorten_pattern(pattern), pointed_at(pattern, *position))]
    Syntax {
        /// Source of the pattern.
        pattern: String,
        /// Position of the error, in characters from 0.
        position: usize,
        /// Description of the error.
        problem: String,
    },
    /// A regular expression with a construct that no automaton can match.
    #[error("{}, position {position}: {problem}\n{}", shorten_pattern(pattern), pointed_at(pattern, *position))]
    Unsupported {
        /// The pattern that was given.
        pattern: String,
        /// Position of the construct, in characters from 0.
        position: usize,
        /// Description of the construct.
        problem: String,
    },
    /// An expression whose automaton cannot be built.
    #[error("{}: {problem}", shorten_pattern(pattern))]
    Automaton {
        /// Source of the pattern.
        pattern: String,
        /// Reason for the refusal.
        problem: AutomatonError,
    },
}

trie_core::error_kind!(RegexError, Rule);

/// Returns whether the memory budget suffices to parse the patterns: more than a hundred bytes for each byte of them,
/// and some thousand for a class of Unicode.
pub(crate) fn fits<'p>(
    patterns: impl IntoIterator<Item = &'p str>,
    limits: AutomatonLimits,
) -> Result<(), AutomatonError> {
    const BYTE: usize = 100;
    const CLASS: usize = 6000;
    let mut bytes = 0usize;
    for pattern in patterns {
        // Where case is ignored, a class may become a larger one.
        let folds = pattern.contains("(?") && pattern.contains('i');
        let classes = pattern.as_bytes().windows(2).filter(|pair| match pair {
            [b'\\', class] => b"pPwWdDsSbB".contains(class),
            [b'[', _] => folds,
            _ => false,
        });
        bytes = bytes.saturating_add(BYTE * pattern.len() + CLASS * classes.count());
    }
    if bytes > limits.bytes { Err(AutomatonError::TooLarge { limit: limits.bytes }) } else { Ok(()) }
}

/// Ends the error of a property that only other builds know.
const BUILT: &str = ": this build knows general categories such as \\p{Lu} alone";

/// Parses a pattern of UTF-8 text.
///
/// # Errors
/// The position of the error, in characters from 0, and its description.
pub(crate) fn parse(builder: &ParserBuilder, pattern: &str) -> Result<Hir, (usize, String)> {
    builder.clone().utf8(true).nest_limit(200).build().parse(pattern).map_err(|error| {
        let (position, problem) = match &error {
            regex_syntax::Error::Parse(error) => (error.span().start.offset, error.kind().to_string()),
            regex_syntax::Error::Translate(error) => {
                let unknown = matches!(error.kind(), regex_syntax::hir::ErrorKind::UnicodePropertyNotFound);
                let built = if unknown && !cfg!(feature = "properties") { BUILT } else { "" };
                (error.span().start.offset, format!("{}{built}", error.kind()))
            }
            other => (0, other.to_string()),
        };
        (pattern.get(..position).map_or(0, |before| before.chars().count()), problem)
    })
}

/// Characters of a pattern that messages show.
const SHOWN: usize = 80;

/// Returns the pattern for a message, shortened if it is long.
fn shorten_pattern(pattern: &str) -> String {
    let some: String = pattern.chars().take(SHOWN).collect();
    if some.len() == pattern.len() { format!("{pattern:?}") } else { format!("{some:?} and more") }
}

/// Returns an excerpt around a position, with a mark below it.
fn pointed_at(pattern: &str, position: usize) -> String {
    const AROUND: usize = 30;
    let skipped = position.saturating_sub(AROUND);
    let plain = |char: char| if char.is_control() { ' ' } else { char };
    let some: String = pattern.chars().skip(skipped).take(2 * AROUND).map(plain).collect();
    let (before, after) = (skipped > 0, pattern.chars().count() > skipped + 2 * AROUND);
    let [before, after] = [before, after].map(|cut| if cut { "..." } else { "" });
    let blank = " ".repeat(before.len() + position - skipped);
    format!("  {before}{some}{after}\n  {blank}^")
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regex").field(&self.pattern).field(&self.automaton).finish()
    }
}

impl PartialEq for Regex {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

impl Eq for Regex {}

impl Regex {
    /// Parses a pattern and builds its automaton.
    ///
    /// # Errors
    /// A pattern that is invalid, has a look-around or a back reference, needs too large an automaton, or matches no
    /// text.
    pub fn new(pattern: &str) -> Result<Self, RegexError> {
        Self::with_limits(pattern, AutomatonLimits::default())
    }

    /// [`Regex::new`] with other limits.
    ///
    /// # Errors
    /// As [`Regex::new`].
    pub fn with_limits(pattern: &str, limits: AutomatonLimits) -> Result<Self, RegexError> {
        Work::run_bounded(Limits::default(), || Self::compile(pattern, limits))
    }

    fn compile(pattern: &str, limits: AutomatonLimits) -> Result<Self, RegexError> {
        if let Err(problem) = fits([pattern], limits) {
            let pattern = pattern.chars().take(2 * SHOWN).collect();
            return Err(RegexError::Automaton { pattern, problem });
        }
        let hir = parse(&ParserBuilder::new(), pattern).map_err(|(position, problem)| RegexError::Syntax {
            pattern: pattern.to_owned(),
            position,
            problem,
        })?;
        Self::from_hir(pattern.to_owned(), hir, limits)
    }

    fn from_hir(pattern: String, hir: Hir, limits: AutomatonLimits) -> Result<Self, RegexError> {
        match Automaton::from_hir(&hir, limits) {
            Ok(automaton) => Ok(Self { pattern, hir, automaton }),
            Err(problem) => Err(RegexError::Automaton { pattern, problem }),
        }
    }

    /// Returns the source of the pattern.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the compiled automaton.
    pub fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// Returns the concatenation of two expressions.
    ///
    /// # Errors
    /// An automaton that is too large.
    pub fn followed_by(&self, other: &Self) -> Result<Self, RegexError> {
        let hir = Hir::concat(vec![self.hir.clone(), other.hir.clone()]);
        Self::from_hir(format!("(?:{})(?:{})", self.pattern, other.pattern), hir, AutomatonLimits::default())
    }

    /// Returns the alternation of two expressions.
    ///
    /// # Errors
    /// An automaton that is too large.
    pub fn or(&self, other: &Self) -> Result<Self, RegexError> {
        let hir = Hir::alternation(vec![self.hir.clone(), other.hir.clone()]);
        Self::from_hir(format!("(?:{})|(?:{})", self.pattern, other.pattern), hir, AutomatonLimits::default())
    }
}

impl Rule for Regex {
    type State = u32;

    #[inline]
    fn start(&self) -> u32 {
        self.automaton.start()
    }

    #[inline]
    fn step(&self, state: &u32, byte: u8) -> Option<u32> {
        self.automaton.step(state, byte)
    }

    #[inline]
    fn is_end(&self, state: &u32) -> bool {
        self.automaton.is_end(state)
    }

    fn is_finite(&self) -> bool {
        true
    }

    fn walker(&self, tokens: &Arc<TokenBytes>) -> Option<Arc<dyn Walker<u32>>> {
        self.automaton.walker(tokens)
    }
}
