//! Execution of statements and blocks.

use super::Eval;
use super::loops::LoopState;
use super::macros::MacroValue;
use crate::builtins::args::Args;
use crate::error::{Fault, Kind, Res, wrong};
use crate::meter::spend;
use crate::syntax::ast::{ForLoop, Ident, Postfix, PostfixKind, Stmt, StmtKind, Target};
use crate::value::{Text, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Control flow at the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Break,
    Continue,
}

impl Eval<'_> {
    pub(crate) fn run(&mut self, body: &[Stmt]) -> Res<Flow> {
        for statement in body {
            let flow =
                self.deeper(|eval| eval.statement(statement)).map_err(|fault| fault.with_line(statement.line))?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn statement(&mut self, statement: &Stmt) -> Res<Flow> {
        match &statement.kind {
            StmtKind::Text(text) => self.output().push_own(text)?,
            StmtKind::Print(values) => {
                for value in values {
                    let value = self.eval(value)?;
                    value.print(self.output())?;
                }
            }
            StmtKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.eval(condition)?.is_true() {
                        return self.run(body);
                    }
                }
                return self.run(otherwise);
            }
            StmtKind::For(found) => return self.for_loop(found),
            StmtKind::Set { target, value } => {
                let value = self.eval(value)?;
                self.assign(target, value)?;
            }
            StmtKind::SetBlock { target, filters, body } => {
                let (text, flow) = self.block_text(body)?;
                if flow != Flow::On {
                    return Ok(flow);
                }
                let value = self.apply_filters(Value::Str(text), filters)?;
                self.assign(target, value)?;
            }
            StmtKind::FilterBlock { filters, body } => {
                let (text, flow) = self.block_text(body)?;
                if flow != Flow::On {
                    return Ok(flow);
                }
                let value = self.apply_filters(Value::Str(text), filters)?;
                value.print(self.output())?;
            }
            StmtKind::With { assignments, body } => {
                let values: Vec<Value> = assignments.iter().map(|(_, value)| self.eval(value)).collect::<Res<_>>()?;
                let parent = Rc::clone(&self.scope);
                return self.in_scope(parent, |eval| {
                    for ((target, _), value) in assignments.iter().zip(values) {
                        eval.assign(target, value)?;
                    }
                    eval.run(body)
                });
            }
            StmtKind::Scope(body) => {
                let parent = Rc::clone(&self.scope);
                return self.in_scope(parent, |eval| eval.run(body));
            }
            StmtKind::Generation(body) => {
                let (text, _) = self.block_text(body)?;
                self.output().push_text(&text)?;
            }
            StmtKind::Macro(definition) => {
                let made = self.make_macro(definition)?;
                if let Some(name) = &definition.name {
                    self.scope.set(name, made)?;
                }
            }
            StmtKind::Call { call, caller } => {
                let caller = self.make_macro(caller)?;
                let printed = self.eval_with_caller(call, caller)?;
                printed.print(self.output())?;
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::NotHere(reason) => return Err(Fault::new(Kind::Unsupported, *reason)),
        }
        Ok(Flow::On)
    }

    fn block_text(&mut self, body: &[Stmt]) -> Res<(Rc<Text>, Flow)> {
        let parent = Rc::clone(&self.scope);
        let (text, flow) = self.capture(|eval| eval.in_scope(parent, |eval| eval.run(body)))?;
        Ok((Text::traced_text(text, false)?, flow))
    }

    fn make_macro(&mut self, definition: &Arc<crate::syntax::ast::Macro>) -> Res<Value> {
        crate::meter::hold(64)?;
        let scope = Rc::downgrade(&self.scope);
        Ok(Value::Macro(Rc::new(MacroValue { definition: Arc::clone(definition), scope })))
    }

    fn apply_filters(&mut self, mut value: Value, filters: &[Postfix]) -> Res<Value> {
        for filter in filters {
            if let PostfixKind::Filter { name, apply, args } = &filter.kind {
                let args = self.arguments(args)?;
                value = self.filter(name, *apply, value, args).map_err(|fault| fault.with_line(filter.line))?;
            }
        }
        Ok(value)
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value) -> Res<()> {
        match target {
            Target::Name(name) => self.scope.set(name, value),
            Target::Attribute(name, attribute) => self.set_attribute(name, attribute, value),
            Target::Tuple(targets) => {
                let values = value.iterate()?;
                if values.len() != targets.len() {
                    let (wanted, found) = (targets.len(), values.len());
                    let what = if found > wanted { "too many" } else { "not enough" };
                    return wrong(format!("{what} values to unpack: expected {wanted}, got {found}"));
                }
                targets.iter().zip(values).try_for_each(|(target, value)| self.assign(target, value))
            }
        }
    }

    fn set_attribute(&mut self, name: &Ident, attribute: &Ident, value: Value) -> Res<()> {
        match self.scope.get(name) {
            Some(Value::Namespace(namespace)) => {
                let key: Rc<str> = Rc::from(&**attribute);
                let before = namespace.attributes.borrow_mut().insert(key, value);
                if before.is_none() {
                    crate::meter::hold(128)?;
                }
                Ok(())
            }
            _ => wrong("cannot assign attribute on non-namespace object"),
        }
    }

    fn for_loop(&mut self, found: &Arc<ForLoop>) -> Res<Flow> {
        let items = self.eval(&found.items)?;
        self.go_over(found, &items, 0)
    }

    /// Runs a loop over these items. `depth` is the number of levels of the same loop around it.
    pub(super) fn go_over(&mut self, found: &Arc<ForLoop>, items: &Value, depth: usize) -> Res<Flow> {
        let mut items = items.iterate()?;
        if let Some(condition) = &found.only_if {
            let mut kept = Vec::new();
            for item in items {
                let parent = Rc::clone(&self.scope);
                let holds = self.in_scope(parent, |eval| {
                    eval.assign(&found.target, item.clone())?;
                    eval.eval(condition)
                })?;
                if holds.is_true() {
                    kept.push(item);
                }
            }
            items = kept;
        }
        let state = LoopState::new(items, depth, found.recursive.then(|| Arc::clone(found)))?;
        let mut finished = false;
        while let Some(item) = state.next() {
            spend(1)?;
            let parent = Rc::clone(&self.scope);
            let flow = self.in_scope(parent, |eval| {
                eval.assign(&found.target, item)?;
                let name = eval.loop_name.clone();
                eval.scope.set(&name, Value::Loop(Rc::clone(&state)))?;
                eval.run(&found.body)
            })?;
            match flow {
                Flow::Break => break,
                Flow::Continue => {}
                Flow::On => finished = true,
            }
        }
        // Jinja2 notes that a loop ran at the end of its body: one that always continues or breaks did not.
        if !finished && !found.otherwise.is_empty() {
            let parent = Rc::clone(&self.scope);
            return self.in_scope(parent, |eval| eval.run(&found.otherwise));
        }
        Ok(Flow::On)
    }

    /// Calls a filter that may not exist.
    pub(crate) fn filter(
        &mut self,
        name: &str,
        apply: Option<crate::builtins::filters::FilterFn>,
        value: Value,
        args: Args,
    ) -> Res<Value> {
        match apply {
            Some(apply) => self.deeper(|eval| apply(eval, value, args)),
            None => Err(Fault::new(Kind::Unsupported, format!("no filter named '{name}'"))),
        }
    }

    /// Calls a filter from inside another.
    pub(crate) fn apply_filter(
        &mut self,
        apply: crate::builtins::filters::FilterFn,
        value: Value,
        args: Args,
    ) -> Res<Value> {
        self.deeper(|eval| apply(eval, value, args))
    }
}
