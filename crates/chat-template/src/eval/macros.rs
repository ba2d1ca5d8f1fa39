//! Macros: functions of a template, and the `caller` of a call block.

use super::Eval;
use super::scope::Scope;
use crate::builtins::args::Args;
use crate::error::{Res, wrong};
use crate::meter::release;
use crate::syntax::ast::Macro;
use crate::value::{Dict, Key, Text, Value};
use std::rc::{Rc, Weak};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct MacroValue {
    pub(crate) definition: Arc<Macro>,
    /// Defining scope; weak, because that scope holds the macro.
    pub(crate) scope: Weak<Scope>,
}

impl Drop for MacroValue {
    fn drop(&mut self) {
        release(64);
    }
}

impl Eval<'_> {
    pub(super) fn call_macro(&mut self, called: &MacroValue, args: Args) -> Res<Value> {
        let parent = called.scope.upgrade().unwrap_or_else(|| Rc::clone(&self.root));
        let definition = Arc::clone(&called.definition);
        let name = definition.name.as_deref().unwrap_or("caller");
        let Args { mut positional, mut named } = args;
        let more = positional.split_off(positional.len().min(definition.parameters.len()));
        if !more.is_empty() && !definition.takes.varargs {
            let most = definition.parameters.len();
            return wrong(format!("macro '{name}' takes not more than {most} argument(s)"));
        }
        let mut given: Vec<Option<Value>> = positional.into_iter().map(Some).collect();
        for (parameter, _) in definition.parameters.iter().skip(given.len()) {
            let at = named.iter().position(|(name, _)| name == parameter);
            given.push(at.map(|at| named.remove(at).1));
        }
        let caller = named.iter().position(|(name, _)| &**name == "caller").map(|at| (at, definition.takes.caller));
        let caller = match caller {
            Some((at, true)) => Some(named.remove(at).1),
            _ => None,
        };
        if let (Some((extra, _)), false) = (named.first(), definition.takes.kwargs) {
            return wrong(format!("macro '{name}' takes no keyword argument '{extra}'"));
        }
        let run = |eval: &mut Self| {
            // In Jinja2 these are set before the parameters are.
            if definition.takes.caller && !definition.parameters.iter().any(|(name, _)| &**name == "caller") {
                let caller = caller.unwrap_or_else(|| Value::undefined("No caller defined"));
                eval.scope.set(&"caller".into(), caller)?;
            }
            if definition.takes.kwargs {
                let mut entries = indexmap::IndexMap::new();
                for (name, value) in named {
                    entries.insert(Key::new(Value::str(&*name)?)?, value);
                }
                eval.scope.set(&"kwargs".into(), Value::Dict(Dict::new(entries)?))?;
            }
            if definition.takes.varargs {
                eval.scope.set(&"varargs".into(), Value::tuple(more)?)?;
            }
            for ((parameter, default), value) in definition.parameters.iter().zip(given) {
                let value = match (value, default) {
                    (Some(value), _) => value,
                    (None, Some(default)) => eval.eval(default)?,
                    (None, None) => Value::undefined(format!("parameter '{parameter}' was not provided")),
                };
                eval.scope.set(parameter, value)?;
            }
            eval.run(&definition.body)
        };
        let (text, _) = self.capture(|eval| eval.in_scope(parent, run))?;
        Text::traced_text(text, false).map(Value::Str)
    }
}
