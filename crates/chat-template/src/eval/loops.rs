//! `loop` inside a loop.

use crate::error::{Res, wrong};
use crate::meter::{hold, release};
use crate::syntax::ast::ForLoop;
use crate::value::{Value, deepest, ops};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct LoopState {
    items: Vec<Value>,
    /// Number of items that were given out.
    given: Cell<usize>,
    changed: RefCell<Option<Vec<Value>>>,
    level: usize,
    depth: u32,
    /// The loop itself, where it may be called again.
    pub(crate) again: Option<Arc<ForLoop>>,
}

impl LoopState {
    pub(super) fn new(items: Vec<Value>, level: usize, again: Option<Arc<ForLoop>>) -> Res<Rc<Self>> {
        hold(items.len() * size_of::<Value>() + 128)?;
        let mut state = Self { items, given: Cell::new(0), changed: RefCell::new(None), level, depth: 0, again };
        state.depth = deepest(&state.items)?;
        Ok(Rc::new(state))
    }

    pub(super) fn next(&self) -> Option<Value> {
        let given = self.given.get();
        let item = self.items.get(given)?.clone();
        self.given.set(given + 1);
        Some(item)
    }

    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    pub(crate) fn level(&self) -> usize {
        self.level
    }

    pub(crate) fn length(&self) -> usize {
        self.items.len()
    }

    /// Number of the item, from 1.
    pub(crate) fn index(&self) -> usize {
        self.given.get()
    }

    /// The items that are left, which a loop over `loop` consumes.
    pub(crate) fn remaining_items(&self) -> Vec<Value> {
        let rest = self.items.get(self.given.get()..).unwrap_or_default().to_vec();
        self.given.set(self.items.len());
        rest
    }

    pub(super) fn attribute(&self, name: &str) -> Option<Value> {
        let (index, length) = (self.index(), self.length());
        let neighbour = |at: Option<usize>, what: &str| {
            let found = at.and_then(|at| self.items.get(at)).cloned();
            found.unwrap_or_else(|| Value::undefined(format!("there is no {what} item")))
        };
        Some(match name {
            "index" => index.into(),
            "index0" => index.saturating_sub(1).into(),
            "revindex" => (length - index + 1).into(),
            "revindex0" => (length - index).into(),
            "first" => (index <= 1).into(),
            "last" => (index >= length).into(),
            "length" => length.into(),
            "depth" => (self.level + 1).into(),
            "depth0" => self.level.into(),
            "previtem" => neighbour(index.checked_sub(2), "previous"),
            "nextitem" => neighbour(Some(index), "next"),
            _ => return None,
        })
    }

    pub(crate) fn cycle(&self, values: &[Value]) -> Res<Value> {
        match values.len() {
            0 => wrong("no items for cycling given"),
            count => Ok(values[self.index().saturating_sub(1) % count].clone()),
        }
    }

    pub(crate) fn have_changed(&self, values: Vec<Value>) -> Res<Value> {
        // What is kept could hold the loop itself.
        if values.iter().any(|value| value.depth() >= self.depth.max(2)) {
            return wrong("loop.changed of lists and dicts");
        }
        let same = match &*self.changed.borrow() {
            Some(last) if last.len() == values.len() => {
                let mut same = true;
                for (left, right) in last.iter().zip(&values) {
                    same = same && ops::equal(left, right)?;
                }
                same
            }
            _ => false,
        };
        if !same {
            self.changed.replace(Some(values));
        }
        Ok(Value::Bool(!same))
    }
}

impl Drop for LoopState {
    fn drop(&mut self) {
        release(self.items.len() * size_of::<Value>() + 128);
    }
}
