//! `list.append(item)`: what Jinja2's sandbox refuses, and others render.
//!
//! Values do not change. The name, or the attribute of a namespace, gets a longer list, so nothing can contain itself
//! and no list that was given elsewhere changes.

use super::Eval;
use crate::jinja::error::Res;
use crate::jinja::meter;
use crate::jinja::syntax::ast::{CallArgs, Expr, ExprKind, Ident, Postfix, PostfixKind};
use crate::jinja::value::Value;

/// Where a list has its name.
enum Place<'e> {
    Name(&'e Ident),
    Attribute(&'e Ident, &'e Ident),
}

impl Eval<'_> {
    /// Makes a list longer where `name.append(item)` or `namespace.name.append(item)` is written and may be.
    pub(super) fn grow(&mut self, base: &Expr, rest: &[Postfix]) -> Option<Res<Value>> {
        let (place, args) = appended(base, rest)?;
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
        Some(self.longer(place, list.items(), args))
    }

    fn longer(&mut self, place: Place<'_>, items: &[Value], args: &CallArgs) -> Res<Value> {
        let item = self.arguments(args)?.one("append")?;
        meter::spend(1 + items.len() as u64 / 8)?;
        let longer = Value::list(items.iter().cloned().chain([item]).collect())?;
        match place {
            Place::Name(name) => self.scope.replace(name, longer),
            Place::Attribute(name, attribute) => {
                if let Some(Value::Namespace(namespace)) = self.scope.get(name) {
                    let before = namespace.attributes.borrow_mut().insert((&**attribute).into(), longer);
                    drop(before);
                }
            }
        }
        Ok(Value::None)
    }
}

fn appended<'e>(base: &'e Expr, rest: &'e [Postfix]) -> Option<(Place<'e>, &'e CallArgs)> {
    let ExprKind::Name(name) = &base.kind else { return None };
    let is_append = |postfix: &Postfix| matches!(&postfix.kind, PostfixKind::Attribute(name) if **name == *"append");
    match rest {
        [append, Postfix { kind: PostfixKind::Call(args), .. }] if is_append(append) => Some((Place::Name(name), args)),
        [
            Postfix { kind: PostfixKind::Attribute(attribute), .. },
            append,
            Postfix { kind: PostfixKind::Call(args), .. },
        ] if is_append(append) => Some((Place::Attribute(name, attribute), args)),
        _ => None,
    }
}
