//! Grammars that come with the crate.

use super::{Grammar, GrammarError};

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
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Json, Self::Arithmetic, Self::C, Self::Sql];

    /// Its text.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Json => include_str!("examples/json.y"),
            Self::Arithmetic => include_str!("examples/arithmetic.y"),
            Self::C => include_str!("examples/c.y"),
            Self::Sql => include_str!("examples/sql.y"),
        }
    }

    /// The grammar.
    ///
    /// # Errors
    /// None: the tests make all of them.
    pub fn grammar(self) -> Result<Grammar, GrammarError> {
        Grammar::new(self.text())
    }
}
