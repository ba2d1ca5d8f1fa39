//! `list.append(item)` and `list.pop(index)`, which Jinja2's sandbox refuses and other renderers support.
//!
//! Values do not change. The name, or the attribute of a namespace, gets a new list. So no list can contain itself, and
//! no list in another place changes.

use super::Eval;
use crate::builtins::args::int;
use crate::error::{Res, wrong};
use crate::meter;
use crate::syntax::ast::{CallArgs, Expr, ExprKind, Ident, Postfix, PostfixKind};
use crate::value::Value;

/// Place that names a list.
enum Place<'e> {
    Name(&'e Ident),
    Attribute(&'e Ident, &'e Ident),
}

impl Eval<'_> {
    /// Changes a list at `name.append(item)`, at `namespace.name.append(item)` or at the same with `pop`, if lists may
    /// grow.
    pub(super) fn grow(&mut self, base: &Expr, rest: &[Postfix]) -> Option<Res<Value>> {
        let (place, change, args) = find_change(base, rest)?;
        let list = match place {
            Place::Name(name) => self.scope.get(name)?,
            Place::Attribute(name, attribute) => {
                let Value::Namespace(namespace) = self.scope.get(name)? else { return None };
                namespace.attributes.borrow().get(&**attribute).cloned()?
            }
        };
        let Value::List(list) = list else { return None };
        if !meter::may_grow() {
            return None;
        }
        Some(self.change_place(place, change, list.items(), args))
    }

    fn change_place(&mut self, place: Place<'_>, change: Change, items: &[Value], args: &CallArgs) -> Res<Value> {
        let args = self.arguments(args)?;
        meter::spend(1 + items.len() as u64 / 8)?;
        let mut items = items.to_vec();
        let mut popped = Value::None;
        match change {
            Change::Append => items.push(args.one("append")?),
            Change::Pop => {
                let [index] = args.bind("pop", [""])?;
                let index = int(index.as_ref(), -1, "pop")?;
                let from_end = if index < 0 { index + items.len() as i128 } else { index };
                let at = usize::try_from(from_end).ok().filter(|at| *at < items.len());
                let Some(at) = at else { return wrong("pop index out of range") };
                popped = items.remove(at);
            }
        }
        let list = Value::list(items)?;
        match place {
            Place::Name(name) => self.scope.replace(name, list),
            Place::Attribute(name, attribute) => {
                if let Some(Value::Namespace(namespace)) = self.scope.get(name) {
                    let before = namespace.attributes.borrow_mut().insert((&**attribute).into(), list);
                    drop(before);
                }
            }
        }
        Ok(popped)
    }
}

/// Change of a list.
#[derive(Debug, Clone, Copy)]
enum Change {
    Append,
    Pop,
}

fn find_change<'e>(base: &'e Expr, rest: &'e [Postfix]) -> Option<(Place<'e>, Change, &'e CallArgs)> {
    let ExprKind::Name(name) = &base.kind else { return None };
    let attribute = |postfix: &'e Postfix| match &postfix.kind {
        PostfixKind::Attribute(name) => Some(name),
        _ => None,
    };
    let (place, method, call) = match rest {
        [method, call] => (Place::Name(name), attribute(method)?, call),
        [inner, method, call] => (Place::Attribute(name, attribute(inner)?), attribute(method)?, call),
        _ => return None,
    };
    let PostfixKind::Call(args) = &call.kind else { return None };
    let change = match &**method {
        "append" => Change::Append,
        "pop" => Change::Pop,
        _ => return None,
    };
    Some((place, change, args))
}
