//! Expressions, in Jinja2's order of precedence.

use super::Parser;
use super::ast::{CallArgs, Comparison, Expr, ExprKind, Operator, Postfix, PostfixKind};
use super::lexer::TokenKind;
use crate::builtins::{filters, tests};
use crate::error::Res;

fn expr_at(line: u32, kind: ExprKind) -> Expr {
    Expr { line, kind }
}

impl Parser {
    pub(super) fn expression(&mut self) -> Res<Expr> {
        self.deeper(Self::conditional)
    }

    /// An expression, or several with commas between them: a tuple.
    pub(super) fn tuple(&mut self, conditional: bool, end: Option<&str>, parentheses: bool) -> Res<Expr> {
        let line = self.line();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect(&TokenKind::Op(","))?;
            }
            let ends = matches!(self.current(), TokenKind::PrintEnd | TokenKind::BlockEnd | TokenKind::Op(")"));
            if ends || end.is_some_and(|end| self.is_name(end)) {
                break;
            }
            items.push(if conditional { self.expression()? } else { self.deeper(Self::or)? });
            if !self.is(&TokenKind::Op(",")) {
                break;
            }
            is_tuple = true;
        }
        if !is_tuple {
            if let Some(only) = items.pop() {
                return Ok(only);
            }
            if !parentheses {
                return self.expected_error("an expression");
            }
        }
        Ok(expr_at(line, ExprKind::Tuple(items)))
    }

    fn conditional(&mut self) -> Res<Expr> {
        let (line, known) = (self.line(), self.unknown.len());
        let first = self.or()?;
        let mut rest = Vec::new();
        while self.skip_name("if") {
            let condition = self.or()?;
            let otherwise = if self.skip_name("else") { Some(self.expression()?) } else { None };
            rest.push((condition, otherwise));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        self.unknown.truncate(known);
        Ok(expr_at(line, ExprKind::Conditional(Box::new(first), rest)))
    }

    fn or(&mut self) -> Res<Expr> {
        self.list_of("or", Self::and, ExprKind::Or)
    }

    fn and(&mut self) -> Res<Expr> {
        self.list_of("and", Self::not, ExprKind::And)
    }

    fn list_of(&mut self, word: &str, read: fn(&mut Self) -> Res<Expr>, make: fn(Vec<Expr>) -> ExprKind) -> Res<Expr> {
        let line = self.line();
        let first = read(self)?;
        if !self.is_name(word) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip_name(word) {
            all.push(read(self)?);
        }
        Ok(expr_at(line, make(all)))
    }

    fn not(&mut self) -> Res<Expr> {
        let line = self.line();
        if self.skip_name("not") {
            let inner = self.deeper(Self::not)?;
            return Ok(expr_at(line, ExprKind::Not(Box::new(inner))));
        }
        self.compare()
    }

    fn compare(&mut self) -> Res<Expr> {
        let line = self.line();
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            let comparison = match self.current() {
                TokenKind::Op("==") => Comparison::Eq,
                TokenKind::Op("!=") => Comparison::Ne,
                TokenKind::Op("<") => Comparison::Lt,
                TokenKind::Op("<=") => Comparison::Le,
                TokenKind::Op(">") => Comparison::Gt,
                TokenKind::Op(">=") => Comparison::Ge,
                TokenKind::Name(name) if &**name == "in" => Comparison::In,
                TokenKind::Name(name) if &**name == "not" && self.next_is(&TokenKind::Name("in".into())) => {
                    self.at += 1;
                    Comparison::NotIn
                }
                _ => break,
            };
            self.at += 1;
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { expr_at(line, ExprKind::Compare(Box::new(first), rest)) })
    }

    fn chain(&mut self, operators: &[(&str, Operator)], read: fn(&mut Self) -> Res<Expr>) -> Res<Expr> {
        let line = self.line();
        let first = read(self)?;
        let mut rest = Vec::new();
        while let TokenKind::Op(found) = self.current() {
            let Some(&(_, operator)) = operators.iter().find(|(name, _)| name == found) else { break };
            self.at += 1;
            rest.push((operator, read(self)?));
        }
        Ok(if rest.is_empty() { first } else { expr_at(line, ExprKind::Chain(Box::new(first), rest)) })
    }

    fn sum(&mut self) -> Res<Expr> {
        self.chain(&[("+", Operator::Add), ("-", Operator::Sub)], Self::concat)
    }

    fn concat(&mut self) -> Res<Expr> {
        let line = self.line();
        let first = self.product()?;
        if !self.is(&TokenKind::Op("~")) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.skip(&TokenKind::Op("~")) {
            all.push(self.product()?);
        }
        Ok(expr_at(line, ExprKind::Concat(all)))
    }

    fn product(&mut self) -> Res<Expr> {
        let operators = [("*", Operator::Mul), ("/", Operator::Div), ("//", Operator::FloorDiv), ("%", Operator::Mod)];
        self.chain(&operators, Self::power)
    }

    fn power(&mut self) -> Res<Expr> {
        self.chain(&[("**", Operator::Pow)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filter: bool) -> Res<Expr> {
        let line = self.line();
        let base = if self.skip(&TokenKind::Op("-")) {
            expr_at(line, ExprKind::Neg(Box::new(self.deeper(|parser| parser.unary(false))?)))
        } else if self.skip(&TokenKind::Op("+")) {
            expr_at(line, ExprKind::Pos(Box::new(self.deeper(|parser| parser.unary(false))?)))
        } else {
            self.primary()?
        };
        self.postfix(base, with_filter)
    }

    fn primary(&mut self) -> Res<Expr> {
        let line = self.line();
        let kind = match self.current().clone() {
            TokenKind::Name(name) => match &*name {
                "true" | "True" => ExprKind::Bool(true),
                "false" | "False" => ExprKind::Bool(false),
                "none" | "None" => ExprKind::None,
                _ => ExprKind::Name(name),
            },
            TokenKind::Str(text) => {
                self.at += 1;
                let mut text = text.to_string();
                while let TokenKind::Str(more) = self.current() {
                    text.push_str(more);
                    self.at += 1;
                }
                return Ok(expr_at(line, ExprKind::Str(text.into())));
            }
            TokenKind::Int(value) => ExprKind::Int(value),
            TokenKind::Float(value) => ExprKind::Float(value),
            TokenKind::Op("(") => {
                self.at += 1;
                let inner = self.deeper(|parser| parser.tuple(true, None, true))?;
                self.expect(&TokenKind::Op(")"))?;
                return Ok(inner);
            }
            TokenKind::Op("[") => {
                self.at += 1;
                return Ok(expr_at(line, ExprKind::List(self.items("]", Self::expression)?)));
            }
            TokenKind::Op("{") => {
                self.at += 1;
                let pair = |parser: &mut Self| {
                    let key = parser.expression()?;
                    parser.expect(&TokenKind::Op(":"))?;
                    Ok((key, parser.expression()?))
                };
                return Ok(expr_at(line, ExprKind::Dict(self.items("}", pair)?)));
            }
            other => return self.fail(format!("unexpected {}", other.describe())),
        };
        self.at += 1;
        Ok(expr_at(line, kind))
    }

    /// Items up to a closing bracket, which is read too.
    fn items<T>(&mut self, close: &'static str, read: impl Fn(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut items = Vec::new();
        while !self.is(&TokenKind::Op(close)) {
            if !items.is_empty() {
                self.expect(&TokenKind::Op(","))?;
            }
            if self.is(&TokenKind::Op(close)) {
                break;
            }
            items.push(read(self)?);
        }
        self.expect(&TokenKind::Op(close))?;
        Ok(items)
    }

    /// Attributes, subscripts, calls, and then filters and tests.
    pub(super) fn postfix(&mut self, base: Expr, with_filter: bool) -> Res<Expr> {
        let start = base.line;
        let mut rest = Vec::new();
        loop {
            let line = self.line();
            let kind = match self.current() {
                TokenKind::Op(".") => {
                    self.at += 1;
                    match self.advance() {
                        TokenKind::Name(name) => PostfixKind::Attribute(name),
                        TokenKind::Int(index) => PostfixKind::Item(expr_at(line, ExprKind::Int(index))),
                        _ => return self.fail("expected name or number"),
                    }
                }
                TokenKind::Op("[") => {
                    self.at += 1;
                    self.deeper(Self::subscript)?
                }
                TokenKind::Op("(") => PostfixKind::Call(self.call_args()?),
                _ => break,
            };
            rest.push(Postfix { line, kind });
        }
        if with_filter {
            loop {
                let line = self.line();
                let kind = match self.current() {
                    TokenKind::Op("|") => {
                        self.at += 1;
                        self.filter()?
                    }
                    TokenKind::Op("(") => PostfixKind::Call(self.call_args()?),
                    TokenKind::Name(name) if &**name == "is" => {
                        self.at += 1;
                        self.test()?
                    }
                    _ => break,
                };
                rest.push(Postfix { line, kind });
            }
        }
        Ok(if rest.is_empty() { base } else { expr_at(start, ExprKind::Postfix(Box::new(base), rest)) })
    }

    /// Parses a subscript after `[`.
    fn subscript(&mut self) -> Res<PostfixKind> {
        let mut parts = [None, None, None];
        let mut number = 0;
        loop {
            match self.current() {
                TokenKind::Op("]") => break,
                TokenKind::Op(":") if number < 2 => {
                    self.at += 1;
                    number += 1;
                }
                _ if parts[number].is_none() => parts[number] = Some(self.expression()?),
                _ if number == 0 && self.is(&TokenKind::Op(",")) => return self.tuple_subscript(parts[0].take()),
                _ => return self.expected_error("']'"),
            }
        }
        self.expect(&TokenKind::Op("]"))?;
        match (number, parts) {
            (0, [Some(index), ..]) => Ok(PostfixKind::Item(index)),
            (0, _) => Ok(PostfixKind::Item(expr_at(self.line(), ExprKind::Tuple(Vec::new())))),
            (_, parts) => Ok(PostfixKind::Slice(Box::new(parts))),
        }
    }

    fn tuple_subscript(&mut self, first: Option<Expr>) -> Res<PostfixKind> {
        let line = self.line();
        let mut items: Vec<Expr> = first.into_iter().collect();
        while self.skip(&TokenKind::Op(",")) {
            items.push(self.expression()?);
        }
        self.expect(&TokenKind::Op("]"))?;
        Ok(PostfixKind::Item(expr_at(line, ExprKind::Tuple(items))))
    }

    fn dotted_name(&mut self) -> Res<super::ast::Ident> {
        let mut name = self.expect_name()?;
        while self.skip(&TokenKind::Op(".")) {
            name = format!("{name}.{}", self.expect_name()?).into();
        }
        Ok(name)
    }

    /// Parses a filter after `|`.
    fn filter(&mut self) -> Res<PostfixKind> {
        let name = self.dotted_name()?;
        let apply = filters::find(&name);
        if apply.is_none() {
            self.unknown.push((self.line(), format!("no filter named '{name}'")));
        }
        let args = if self.is(&TokenKind::Op("(")) { self.call_args()? } else { CallArgs::default() };
        Ok(PostfixKind::Filter { name, apply, args })
    }

    /// The filters of a block, after its first word: `a|b(1)`.
    pub(super) fn filters(&mut self) -> Res<Vec<Postfix>> {
        let mut filters = Vec::new();
        loop {
            let line = self.line();
            filters.push(Postfix { line, kind: self.filter()? });
            if !self.skip(&TokenKind::Op("|")) {
                return Ok(filters);
            }
        }
    }

    /// Parses a test after `is`.
    fn test(&mut self) -> Res<PostfixKind> {
        let negated = self.skip_name("not");
        let name = self.dotted_name()?;
        let holds = tests::find(&name);
        if holds.is_none() {
            self.unknown.push((self.line(), format!("no test named '{name}'")));
        }
        let ends = ["else", "or", "and"].iter().any(|word| self.is_name(word));
        let begins =
            matches!(self.current(), TokenKind::Name(_) | TokenKind::Str(_) | TokenKind::Int(_) | TokenKind::Float(_))
                || matches!(self.current(), TokenKind::Op("[" | "{"));
        let args = if self.is(&TokenKind::Op("(")) {
            self.call_args()?
        } else if begins && !ends {
            if self.is_name("is") {
                return self.fail("you cannot chain multiple tests with is");
            }
            let argument = self.deeper(|parser| {
                let base = parser.primary()?;
                parser.postfix(base, false)
            })?;
            CallArgs { positional: vec![argument], ..CallArgs::default() }
        } else {
            CallArgs::default()
        };
        Ok(PostfixKind::Test { name, holds, args, negated })
    }

    fn call_args(&mut self) -> Res<CallArgs> {
        self.expect(&TokenKind::Op("("))?;
        let mut args = CallArgs::default();
        let mut first = true;
        while !self.is(&TokenKind::Op(")")) {
            if !first {
                self.expect(&TokenKind::Op(","))?;
                if self.is(&TokenKind::Op(")")) {
                    break;
                }
            }
            first = false;
            let (rest, named_rest) = (args.more_positional.is_some(), args.more_named.is_some());
            let valid = if self.skip(&TokenKind::Op("*")) {
                args.more_positional = Some(Box::new(self.expression()?));
                !rest && !named_rest
            } else if self.skip(&TokenKind::Op("**")) {
                args.more_named = Some(Box::new(self.expression()?));
                !named_rest
            } else if matches!(self.current(), TokenKind::Name(_)) && self.next_is(&TokenKind::Op("=")) {
                let name = self.expect_name()?;
                self.at += 1;
                let repeated = args.named.iter().any(|(other, _)| *other == name);
                args.named.push((name, self.expression()?));
                !named_rest && !repeated
            } else {
                args.positional.push(self.expression()?);
                !rest && !named_rest && args.named.is_empty()
            };
            if !valid {
                return self.fail("invalid syntax for function call expression");
            }
        }
        self.expect(&TokenKind::Op(")"))?;
        Ok(args)
    }
}
