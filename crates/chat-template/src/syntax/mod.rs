//! Jinja2's grammar: text to tokens to a tree.
//!
//! The code follows Jinja2's own lexer and parser line by line, because small details decide which text a model reads:
//! which blank is stripped, and which template is refused. Two things differ on purpose. Depth is counted, so that no
//! template overflows a stack. Chains (`a ~ b ~ c`, `x|f|g`) are flat, so that a long chain is not a deep one.

pub(crate) mod ast;
mod expressions;
mod lexer;
mod numbers;
mod statements;

use crate::error::{Fault, Kind, Res, too_much};
use crate::meter::{NESTING, SOURCE};
use ast::Block;
use lexer::{Token, TokenKind};
use std::collections::HashSet;
use std::sync::Arc;

/// Reads a template. Also returns those of its string literals that could be roles: words of letters, `_`, `-` and
/// blanks.
pub(crate) fn parse(source: &str) -> Res<(Block, HashSet<Arc<str>>)> {
    if source.len() > SOURCE {
        return too_much(format!("the template has {} bytes: at most {SOURCE} are read", source.len()));
    }
    let mut parser = Parser { tokens: lexer::tokenize(source)?, at: 0, depth: 0, loops: 0, unknown: Vec::new() };
    let read = parser.template()?;
    match parser.unknown.pop() {
        Some((line, reason)) => Err(Fault::new(Kind::Syntax, reason).with_line(line)),
        None => Ok((read, parser.words())),
    }
}

/// Reads tokens one after the other.
struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Number of loops that `break` could leave here.
    loops: usize,
    /// Filters and tests that do not exist, with their lines. Inside conditions they are no error until they are
    /// reached.
    unknown: Vec<(u32, String)>,
}

impl Parser {
    fn words(&self) -> HashSet<Arc<str>> {
        let literals = self.tokens.iter().filter_map(|token| match &token.what {
            TokenKind::Str(text) => Some(text),
            _ => None,
        });
        let in_word = |character: char| character.is_alphabetic() || matches!(character, '_' | '-' | ' ');
        literals.filter(|text| !text.is_empty() && text.chars().all(in_word)).map(|text| text.as_ref().into()).collect()
    }

    fn current(&self) -> &TokenKind {
        self.tokens.get(self.at).map_or(&TokenKind::End, |token| &token.what)
    }

    fn next_is(&self, wanted: &TokenKind) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| token.what == *wanted)
    }

    fn line(&self) -> u32 {
        let last = self.tokens.last();
        self.tokens.get(self.at).or(last).map_or(1, |token| token.line)
    }

    fn is(&self, wanted: &TokenKind) -> bool {
        self.current() == wanted
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.current(), TokenKind::Name(found) if &**found == name)
    }

    fn skip(&mut self, wanted: &TokenKind) -> bool {
        let found = self.is(wanted);
        self.at += usize::from(found);
        found
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        self.at += usize::from(found);
        found
    }

    fn advance(&mut self) -> TokenKind {
        let what = self.current().clone();
        self.at += 1;
        what
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Res<T> {
        Err(Fault::new(Kind::Syntax, reason).with_line(self.line()))
    }

    fn expected_error<T>(&self, wanted: &str) -> Res<T> {
        match self.current() {
            TokenKind::End => self.fail(format!("unexpected end of template, expected {wanted}")),
            other => self.fail(format!("expected {wanted}, got {}", other.describe())),
        }
    }

    fn expect(&mut self, wanted: &TokenKind) -> Res<()> {
        if self.skip(wanted) { Ok(()) } else { self.expected_error(&wanted.describe()) }
    }

    fn expect_name(&mut self) -> Res<ast::Ident> {
        match self.current() {
            TokenKind::Name(name) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.expected_error("a name"),
        }
    }

    /// Reads with `read`, one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        self.depth += 1;
        if self.depth > NESTING {
            let line = self.line();
            return too_much(format!("more than {NESTING} levels inside each other"))
                .map_err(|fault| fault.with_line(line));
        }
        let read = read(self);
        self.depth -= 1;
        read
    }

    /// Reads a part in which `break` could leave this many loops.
    fn in_loops<T>(&mut self, loops: usize, read: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let before = std::mem::replace(&mut self.loops, loops);
        let read = read(self);
        self.loops = before;
        read
    }
}
