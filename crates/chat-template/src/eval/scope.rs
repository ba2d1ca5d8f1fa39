//! Names and their values, in scopes inside each other.

use crate::error::Res;
use crate::meter::hold;
use crate::syntax::ast::Ident;
use crate::value::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Debug, Default)]
pub(crate) struct Scope {
    names: RefCell<HashMap<Ident, Value>>,
    parent: Option<Rc<Scope>>,
}

impl Scope {
    pub(crate) fn new_child(parent: Rc<Self>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), parent: Some(parent) })
    }

    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        let mut scope = self;
        loop {
            if let Some(value) = scope.names.borrow().get(name) {
                return Some(value.clone());
            }
            scope = scope.parent.as_deref()?;
        }
    }

    /// Replaces the value of a name in the scope that holds it.
    pub(crate) fn replace(&self, name: &str, value: Value) {
        let mut scope = self;
        loop {
            let before = scope.names.borrow_mut().get_mut(name).map(|slot| std::mem::replace(slot, value.clone()));
            let (None, Some(parent)) = (before, scope.parent.as_deref()) else { return };
            scope = parent;
        }
    }

    pub(crate) fn set(&self, name: &Ident, value: Value) -> Res<()> {
        let before = match self.names.borrow_mut().get_mut(name) {
            Some(slot) => Some(std::mem::replace(slot, value.clone())),
            None => None,
        };
        if before.is_none() {
            hold(96)?;
            self.names.borrow_mut().insert(name.clone(), value);
        }
        Ok(())
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        crate::meter::release(96 * self.names.borrow().len());
    }
}
