//! Evaluates the expressions of a template.

use super::{Eval, attributes};
use crate::builtins::args::Args;
use crate::builtins::{functions, methods};
use crate::error::{Res, wrong};
use crate::syntax::ast::{CallArgs, Expr, ExprKind, Postfix, PostfixKind};
use crate::value::{Buffer, Dict, Key, Text, Value, ops};
use indexmap::IndexMap;
use std::rc::Rc;

impl Eval<'_> {
    pub(crate) fn eval(&mut self, expression: &Expr) -> Res<Value> {
        self.deeper(|eval| eval.expression(expression)).map_err(|fault| fault.with_line(expression.line))
    }

    fn eval_all(&mut self, expressions: &[Expr]) -> Res<Vec<Value>> {
        expressions.iter().map(|expression| self.eval(expression)).collect()
    }

    fn expression(&mut self, expression: &Expr) -> Res<Value> {
        match &expression.kind {
            ExprKind::None => Ok(Value::None),
            ExprKind::Bool(value) => Ok(Value::Bool(*value)),
            ExprKind::Int(value) => Ok(Value::Int(*value)),
            ExprKind::Float(value) => Ok(Value::Float(*value)),
            ExprKind::Str(text) => Value::own_str(&**text),
            ExprKind::Name(name) => {
                let found = self.scope.get(name);
                Ok(found.unwrap_or_else(|| Value::undefined(format!("'{name}' is undefined"))))
            }
            ExprKind::List(items) => Value::list(self.eval_all(items)?),
            ExprKind::Tuple(items) => Value::tuple(self.eval_all(items)?),
            ExprKind::Dict(pairs) => {
                let mut entries = IndexMap::new();
                for (key, value) in pairs {
                    let key = Key::new(self.eval(key)?)?;
                    let value = self.eval(value)?;
                    entries.insert(key, value);
                }
                Dict::new(entries).map(Value::Dict)
            }
            ExprKind::Not(inner) => Ok(Value::Bool(!self.eval(inner)?.is_true())),
            ExprKind::Neg(inner) => ops::negate(&self.eval(inner)?, true),
            ExprKind::Pos(inner) => ops::negate(&self.eval(inner)?, false),
            ExprKind::Chain(first, rest) => {
                let mut value = self.eval(first)?;
                for (operator, right) in rest {
                    let right = self.eval(right)?;
                    value = ops::apply(*operator, &value, &right)?;
                }
                Ok(value)
            }
            ExprKind::Concat(parts) => {
                let mut text = Buffer::default();
                for part in parts {
                    self.eval(part)?.print(&mut text)?;
                }
                text.into_value()
            }
            ExprKind::And(parts) => self.first_that(parts, false),
            ExprKind::Or(parts) => self.first_that(parts, true),
            ExprKind::Compare(first, rest) => {
                let mut left = self.eval(first)?;
                for (comparison, right) in rest {
                    let right = self.eval(right)?;
                    if !ops::compare(*comparison, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            ExprKind::Conditional(first, rest) => self.conditional(first, rest),
            ExprKind::Postfix(base, rest) => {
                if let Some(done) = self.grow(base, rest) {
                    return done;
                }
                let value = self.eval(base)?;
                self.postfix(value, rest, None)
            }
        }
    }

    /// The first part that is true, or the first that is false; if there is none, the last part.
    fn first_that(&mut self, parts: &[Expr], wanted: bool) -> Res<Value> {
        let mut value = Value::None;
        for part in parts {
            value = self.eval(part)?;
            if value.is_true() == wanted {
                break;
            }
        }
        Ok(value)
    }

    /// `first if a else second if b …`: each condition chooses between all before it and what follows it.
    fn conditional(&mut self, first: &Expr, rest: &[(Expr, Option<Expr>)]) -> Res<Value> {
        for (condition, otherwise) in rest.iter().rev() {
            if self.eval(condition)?.is_true() {
                continue;
            }
            return match otherwise {
                Some(otherwise) => self.eval(otherwise),
                None => {
                    Ok(Value::undefined("the inline if-expression evaluated to false and no else section was defined."))
                }
            };
        }
        self.eval(first)
    }

    fn postfix(&mut self, base: Value, rest: &[Postfix], caller: Option<Value>) -> Res<Value> {
        let mut value = base;
        let mut rest = rest.iter().peekable();
        let mut caller = caller;
        while let Some(postfix) = rest.next() {
            let next = rest.peek().map(|next| &next.kind);
            let applied = match (&postfix.kind, next) {
                (PostfixKind::Attribute(name), Some(PostfixKind::Call(args)))
                    if methods::method_access(&value, name) == methods::AttributeAccess::Safe
                        && !has_item(&value, name) =>
                {
                    rest.next();
                    let args = self.arguments(args)?;
                    self.deeper(|eval| methods::call(eval, &value, name, args))
                }
                (PostfixKind::Call(args), next) => {
                    let mut args = self.arguments(args)?;
                    if next.is_none() {
                        args.named.extend(caller.take().map(|caller| ("caller".into(), caller)));
                    }
                    self.call(&value, args)
                }
                (kind, _) => self.one_postfix(&value, kind),
            };
            value = applied.map_err(|fault| fault.with_line(postfix.line))?;
        }
        Ok(value)
    }

    fn one_postfix(&mut self, value: &Value, kind: &PostfixKind) -> Res<Value> {
        match kind {
            PostfixKind::Attribute(name) => attributes::attribute(value, name),
            PostfixKind::Item(key) => {
                let key = self.eval(key)?;
                attributes::item(value, &key)
            }
            PostfixKind::Slice(bounds) => {
                let mut found = [None, None, None];
                for (slot, bound) in found.iter_mut().zip(bounds.iter()) {
                    *slot = bound.as_ref().map(|bound| self.eval(bound)).transpose()?;
                }
                attributes::slice(value, found)
            }
            PostfixKind::Call(args) => {
                let args = self.arguments(args)?;
                self.call(value, args)
            }
            PostfixKind::Filter { name, apply, args } => {
                let args = self.arguments(args)?;
                self.filter(name, *apply, value.clone(), args)
            }
            PostfixKind::Test { name, holds, args, negated } => {
                let args = self.arguments(args)?;
                let Some(holds) = holds else { return wrong(format!("No test named '{name}'.")) };
                Ok(Value::Bool(holds(value, &args)? != *negated))
            }
        }
    }

    pub(super) fn arguments(&mut self, args: &CallArgs) -> Res<Args> {
        let mut positional = self.eval_all(&args.positional)?;
        let mut named = Vec::with_capacity(args.named.len());
        for (name, value) in &args.named {
            named.push((name.clone(), self.eval(value)?));
        }
        if let Some(more) = &args.more_positional {
            positional.extend(self.eval(more)?.iterate()?);
        }
        if let Some(more) = &args.more_named {
            let Value::Dict(dict) = self.eval(more)? else { return wrong("argument after ** must be a mapping") };
            for (Key(key), value) in dict.entries() {
                let Value::Str(name) = key else { return wrong("keywords must be strings") };
                if named.iter().any(|(other, _): &(crate::syntax::ast::Ident, Value)| &**other == name.as_str()) {
                    return wrong(format!("got multiple values for keyword argument '{}'", name.as_str()));
                }
                crate::meter::spend(named.len() as u64 / 8)?;
                named.push((name.as_str().into(), value.clone()));
            }
        }
        Ok(Args { positional, named })
    }

    /// Calls a value with arguments.
    pub(crate) fn call(&mut self, called: &Value, args: Args) -> Res<Value> {
        self.deeper(|eval| match called {
            Value::Macro(found) => eval.call_macro(found, args),
            Value::Function(function) => functions::call(eval, *function, args),
            Value::Method(method) => methods::call(eval, &method.of, &method.name, args),
            Value::Loop(state) => {
                let Some(again) = &state.again else {
                    return wrong("The loop must have the 'recursive' marker to be called recursively.");
                };
                let items = args.one("loop")?;
                let level = state.level() + 1;
                let (text, _) = eval.capture(|eval| eval.go_over(again, &items, level))?;
                Text::traced_text(text, false).map(Value::Str)
            }
            Value::Joiner(joiner) => {
                Ok(if joiner.1.replace(true) { Value::Str(Rc::clone(&joiner.0)) } else { Value::str("")? })
            }
            other => match other.missing() {
                Some(missing) => Err(missing),
                None => wrong(format!("'{}' object is not callable", other.type_name())),
            },
        })
    }

    /// A call with the block that surrounds its `caller`.
    pub(super) fn eval_with_caller(&mut self, call: &Expr, caller: Value) -> Res<Value> {
        match &call.kind {
            ExprKind::Postfix(base, rest) => {
                if let Some(done) = self.grow(base, rest) {
                    return done;
                }
                let value = self.eval(base)?;
                self.postfix(value, rest, Some(caller)).map_err(|fault| fault.with_line(call.line))
            }
            _ => self.eval(call),
        }
    }
}

/// Attributes that were set hide methods; only namespaces have any.
fn has_item(value: &Value, name: &str) -> bool {
    matches!(value, Value::Namespace(namespace) if namespace.attributes.borrow().contains_key(name))
}
