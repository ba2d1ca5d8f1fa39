//! A position in the text of a grammar, which the readers of both notations share.

use super::parts::{RuleSet, times};
use crate::grammar::{GrammarError, GrammarProblem};

/// The rules that were read, and the byte at which reading goes on.
pub(super) struct Cursor<'t> {
    pub(super) rules: RuleSet<'t>,
    pub(super) at: usize,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { rules: RuleSet::new(text), at: 0 }
    }

    /// Returns the text that is not read yet.
    pub(super) fn unread(&self) -> &'t str {
        &self.rules.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.unread().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads a text if it comes next.
    pub(super) fn takes(&mut self, text: &str) -> bool {
        let found = self.unread().starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Reads characters as long as they are of a kind.
    pub(super) fn while_is(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let rest = self.unread();
        let taken = &rest[..rest.find(|character| !is(character)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Reads the hexadecimal digits of an escaped character; errors point at byte `at`.
    pub(super) fn code(&mut self, at: usize, digits: usize) -> Result<char, GrammarError> {
        let hex = self.unread().get(..digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(hex) = hex else {
            return self.wrong(at, format!("{digits} digits of 0-9, a-f, A-F must follow"));
        };
        self.at += digits;
        match u32::from_str_radix(hex, 16).ok().and_then(char::from_u32) {
            Some(character) => Ok(character),
            None => self.wrong(at, format!("{hex} is the number of no character")),
        }
    }

    /// Reads a number of repetitions; `None` where no digit comes next.
    pub(super) fn times(&mut self) -> Result<Option<u32>, GrammarError> {
        let at = self.at;
        let digits = self.while_is(|next| next.is_ascii_digit());
        if digits.is_empty() {
            return Ok(None);
        }
        times(digits).map(Some).map_err(|problem| self.rules.wrong(at, problem))
    }

    pub(super) fn wrong<T>(&self, at: usize, problem: impl Into<String>) -> Result<T, GrammarError> {
        Err(self.rules.wrong(at, GrammarProblem::Syntax { problem: problem.into() }))
    }
}
