//! Blocks: `{% if %}`, `{% for %}`, `{% macro %}` and the others.

use super::Parser;
use super::ast::{
    Block, Expr, ExprKind, ForLoop, Ident, ImplicitArguments, Macro, PostfixKind, Stmt, StmtKind, Target,
};
use super::lexer::TokenKind;
use crate::error::Res;
use std::sync::Arc;

impl Parser {
    pub(super) fn template(&mut self) -> Res<Block> {
        let body = self.block(&[])?;
        if self.is(&TokenKind::End) { Ok(body) } else { self.fail("unexpected end of block") }
    }

    /// Statements up to one of these words, where the parser stops. Without such words, statements up to the end.
    fn block(&mut self, ends: &[&str]) -> Res<Block> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            match self.current().clone() {
                TokenKind::End if ends.is_empty() => return Ok(body),
                TokenKind::End => {
                    return self.fail(format!("unexpected end of template, expected '{}'", ends.join("' or '")));
                }
                TokenKind::Data(text) => {
                    self.at += 1;
                    body.push(Stmt { line, kind: StmtKind::Text(text) });
                }
                TokenKind::PrintBegin => {
                    self.at += 1;
                    let value = self.deeper(|parser| parser.tuple(true, None, false))?;
                    self.expect(&TokenKind::PrintEnd)?;
                    body.push(Stmt { line, kind: StmtKind::Print(vec![value]) });
                }
                TokenKind::BlockBegin => {
                    self.at += 1;
                    if ends.iter().any(|end| self.is_name(end)) {
                        return Ok(body);
                    }
                    let kind = self.deeper(|parser| parser.statement(ends))?;
                    self.expect(&TokenKind::BlockEnd)?;
                    body.push(Stmt { line, kind });
                }
                other => return self.fail(format!("unexpected {}", other.describe())),
            }
        }
    }

    /// The rest of a tag and what it surrounds, up to one of these words.
    fn body(&mut self, ends: &[&str]) -> Res<Block> {
        self.skip(&TokenKind::Op(":"));
        self.expect(&TokenKind::BlockEnd)?;
        self.block(ends)
    }

    /// As [`Parser::body`], and reads the only word that can end it.
    fn whole_body(&mut self, end: &str) -> Res<Block> {
        let body = self.body(&[end])?;
        self.at += 1;
        Ok(body)
    }

    /// A body that is a function of its own in Jinja2: no `break` leaves it.
    fn function_body(&mut self, end: &str) -> Res<Block> {
        self.in_loops(0, |parser| parser.whole_body(end))
    }

    fn statement(&mut self, ends: &[&str]) -> Res<StmtKind> {
        let name = match self.current() {
            TokenKind::Name(name) => name.clone(),
            _ => return self.expected_error("the name of a tag"),
        };
        self.at += 1;
        match &*name {
            "for" => self.for_loop(),
            "if" => self.if_block(),
            "set" => self.set(),
            "with" => self.with(),
            "macro" => {
                let name = self.expect_name()?;
                Ok(StmtKind::Macro(self.function(Some(name), "endmacro", true)?))
            }
            "call" => self.call(),
            "generation" => Ok(StmtKind::Generation(self.function_body("endgeneration")?)),
            "filter" => {
                let filters = self.filters()?;
                Ok(StmtKind::FilterBlock { filters, body: self.whole_body("endfilter")? })
            }
            "print" => {
                let mut values = Vec::new();
                while !self.is(&TokenKind::BlockEnd) {
                    if !values.is_empty() {
                        self.expect(&TokenKind::Op(","))?;
                    }
                    values.push(self.expression()?);
                }
                Ok(StmtKind::Print(values))
            }
            "autoescape" => {
                let enabled = self.expression()?;
                let body = self.whole_body("endautoescape")?;
                match enabled.kind {
                    ExprKind::Bool(false) => Ok(StmtKind::Scope(body)),
                    _ => Ok(StmtKind::NotHere("autoescape: a prompt is not HTML")),
                }
            }
            "block" => {
                let name = self.expect_name()?;
                self.skip_name("scoped");
                self.skip_name("required");
                let body = self.function_body("endblock")?;
                self.skip_name(&name);
                Ok(StmtKind::Scope(body))
            }
            "break" | "continue" if self.loops == 0 => self.fail(format!("'{name}' outside of a loop")),
            "break" => Ok(StmtKind::Break),
            "continue" => Ok(StmtKind::Continue),
            "include" | "import" | "from" | "extends" => {
                while !self.is(&TokenKind::BlockEnd) && !self.is(&TokenKind::End) {
                    self.at += 1;
                }
                Ok(StmtKind::NotHere("include, import, from, extends: a chat template has no other templates"))
            }
            _ if ends.is_empty() => self.fail(format!("unknown tag '{name}'")),
            _ => self.fail(format!("unknown tag '{name}', expected '{}'", ends.join("' or '"))),
        }
    }

    fn for_loop(&mut self) -> Res<StmtKind> {
        let target = self.target(false, Some("in"))?;
        if !self.skip_name("in") {
            return self.expected_error("'in'");
        }
        let items = self.tuple(false, Some("recursive"), false)?;
        let only_if = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let loops = self.loops;
        let body = self.in_loops(loops + 1, |parser| parser.body(&["endfor", "else"]))?;
        let otherwise = if self.is_name("else") {
            self.at += 1;
            self.body(&["endfor"])?
        } else {
            Vec::new()
        };
        self.at += 1;
        Ok(StmtKind::For(Arc::new(ForLoop { target, items, only_if, recursive, body, otherwise })))
    }

    fn if_block(&mut self) -> Res<StmtKind> {
        let known = self.unknown.len();
        let mut branches = Vec::new();
        loop {
            let condition = self.tuple(false, None, false)?;
            branches.push((condition, self.body(&["elif", "else", "endif"])?));
            if !self.skip_name("elif") {
                break;
            }
        }
        let otherwise = if self.skip_name("else") { self.body(&["endif"])? } else { Vec::new() };
        self.at += 1;
        self.unknown.truncate(known);
        Ok(StmtKind::If { branches, otherwise })
    }

    fn set(&mut self) -> Res<StmtKind> {
        let target = self.target(true, None)?;
        if self.skip(&TokenKind::Op("=")) {
            return Ok(StmtKind::Set { target, value: self.tuple(true, None, false)? });
        }
        let filters = if self.skip(&TokenKind::Op("|")) { self.filters()? } else { Vec::new() };
        Ok(StmtKind::SetBlock { target, filters, body: self.whole_body("endset")? })
    }

    fn with(&mut self) -> Res<StmtKind> {
        let mut assignments = Vec::new();
        while !self.is(&TokenKind::BlockEnd) {
            if !assignments.is_empty() {
                self.expect(&TokenKind::Op(","))?;
            }
            let target = self.target(false, None)?;
            self.expect(&TokenKind::Op("="))?;
            assignments.push((target, self.expression()?));
        }
        Ok(StmtKind::With { assignments, body: self.whole_body("endwith")? })
    }

    fn call(&mut self) -> Res<StmtKind> {
        let start = self.at;
        // The parameters of `caller` come first, and the call after them; its body is read with the parameters.
        let parameters = if self.is(&TokenKind::Op("(")) { self.parameters()? } else { Vec::new() };
        let call = self.expression()?;
        let is_call = match &call.kind {
            ExprKind::Postfix(_, rest) => matches!(rest.last().map(|last| &last.kind), Some(PostfixKind::Call(_))),
            _ => false,
        };
        if !is_call {
            self.at = start;
            return self.fail("expected call");
        }
        let caller = self.function_of(None, parameters, "endcall")?;
        Ok(StmtKind::Call { call, caller })
    }

    fn parameters(&mut self) -> Res<Vec<(Ident, Option<Expr>)>> {
        self.expect(&TokenKind::Op("("))?;
        let mut parameters: Vec<(Ident, Option<Expr>)> = Vec::new();
        while !self.is(&TokenKind::Op(")")) {
            if !parameters.is_empty() {
                self.expect(&TokenKind::Op(","))?;
            }
            let name = self.expect_name()?;
            let default = if self.skip(&TokenKind::Op("=")) { Some(self.expression()?) } else { None };
            if default.is_none() && parameters.last().is_some_and(|(_, default)| default.is_some()) {
                return self.fail("non-default argument follows default argument");
            }
            if parameters.iter().any(|(other, _)| *other == name) {
                return self.fail(format!("duplicate argument '{name}'"));
            }
            parameters.push((name, default));
        }
        self.expect(&TokenKind::Op(")"))?;
        Ok(parameters)
    }

    fn function(&mut self, name: Option<Ident>, end: &str, parameters: bool) -> Res<Arc<Macro>> {
        let parameters = if parameters { self.parameters()? } else { Vec::new() };
        self.function_of(name, parameters, end)
    }

    fn function_of(
        &mut self,
        name: Option<Ident>,
        parameters: Vec<(Ident, Option<Expr>)>,
        end: &str,
    ) -> Res<Arc<Macro>> {
        let from = self.at;
        let body = self.function_body(end)?;
        let names = |wanted: &str| {
            let named = |what: &TokenKind| matches!(what, TokenKind::Name(name) if &**name == wanted);
            self.tokens[from..self.at].iter().any(|token| named(&token.what))
        };
        let takes = ImplicitArguments { varargs: names("varargs"), kwargs: names("kwargs"), caller: names("caller") };
        Ok(Arc::new(Macro { name, parameters, body, takes }))
    }

    /// Parses the target of an assignment, up to this word.
    fn target(&mut self, attributes: bool, end: Option<&str>) -> Res<Target> {
        let mut targets = Vec::new();
        let mut is_tuple = false;
        loop {
            let ends = matches!(self.current(), TokenKind::BlockEnd | TokenKind::Op(")"));
            if !targets.is_empty() && (ends || end.is_some_and(|end| self.is_name(end))) {
                break;
            }
            targets.push(self.one_target(attributes)?);
            if !self.skip(&TokenKind::Op(",")) {
                break;
            }
            is_tuple = true;
        }
        match targets.pop() {
            Some(only) if !is_tuple => Ok(only),
            last => {
                targets.extend(last);
                Ok(Target::Tuple(targets))
            }
        }
    }

    fn one_target(&mut self, attributes: bool) -> Res<Target> {
        if self.skip(&TokenKind::Op("(")) {
            let inner = self.deeper(|parser| parser.target(attributes, None))?;
            self.expect(&TokenKind::Op(")"))?;
            return Ok(inner);
        }
        let name = self.expect_name()?;
        if ["true", "false", "none", "True", "False", "None"].contains(&&*name) {
            return self.fail(format!("can't assign to '{name}'"));
        }
        if attributes && self.skip(&TokenKind::Op(".")) {
            return Ok(Target::Attribute(name, self.expect_name()?));
        }
        Ok(Target::Name(name))
    }
}
