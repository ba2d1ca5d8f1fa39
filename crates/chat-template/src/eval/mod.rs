//! Evaluation of a template: walks its tree with Python's values and rules.

pub(crate) mod attributes;
mod expressions;
mod growing;
pub(crate) mod loops;
pub(crate) mod macros;
pub(crate) mod scope;
mod statements;

use crate::clock::Clock;
use crate::error::{Res, too_much};
use crate::meter::{CALLS, spend};
use crate::syntax::ast::Ident;
use crate::value::{Buffer, Namespace, TracedText};
use scope::Scope;
use std::rc::Rc;

/// State of one rendering.
pub(crate) struct Eval<'c> {
    /// Output buffers: the output, and inside of it the captured blocks.
    output: Vec<Buffer>,
    scope: Rc<Scope>,
    /// Scope for name lookups of macros whose own scope is gone.
    root: Rc<Scope>,
    depth: usize,
    loop_name: Ident,
    pub(crate) clock: &'c Clock,
    /// All namespaces, which can contain themselves and are emptied at the end.
    namespaces: Vec<Rc<Namespace>>,
}

impl<'c> Eval<'c> {
    pub(crate) fn new(root: Rc<Scope>, clock: &'c Clock) -> Self {
        let scope = Rc::clone(&root);
        Self {
            output: vec![Buffer::default()],
            scope,
            root,
            depth: 0,
            loop_name: "loop".into(),
            clock,
            namespaces: Vec::new(),
        }
    }

    /// Everything that was printed.
    pub(crate) fn finish(mut self) -> TracedText {
        self.output.pop().unwrap_or_default().into_traced()
    }

    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        spend(1)?;
        self.depth += 1;
        if self.depth > CALLS {
            return too_much(format!("macros, blocks and expressions inside each other, more than {CALLS} deep"));
        }
        let done = run(self);
        self.depth -= 1;
        done
    }

    /// The buffer to which output goes now.
    fn output(&mut self) -> &mut Buffer {
        if self.output.is_empty() {
            self.output.push(Buffer::default());
        }
        let last = self.output.len() - 1;
        &mut self.output[last]
    }

    /// Runs code and returns its output as a text.
    fn capture<T>(&mut self, run: impl FnOnce(&mut Self) -> Res<T>) -> Res<(TracedText, T)> {
        self.output.push(Buffer::default());
        let done = run(self);
        let text = self.output.pop().unwrap_or_default().into_traced();
        Ok((text, done?))
    }

    /// Runs in a scope of its own inside this one.
    fn in_scope<T>(&mut self, parent: Rc<Scope>, run: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        let before = std::mem::replace(&mut self.scope, Scope::new_child(parent));
        let done = run(self);
        self.scope = before;
        done
    }

    pub(crate) fn keep(&mut self, namespace: &Rc<Namespace>) -> Res<()> {
        crate::meter::hold(200)?;
        self.namespaces.push(Rc::clone(namespace));
        Ok(())
    }
}

impl Drop for Eval<'_> {
    fn drop(&mut self) {
        // Each alone, while all are still held: so nothing recurses from one into the next.
        for namespace in &self.namespaces {
            let attributes = std::mem::take(&mut *namespace.attributes.borrow_mut());
            drop(attributes);
        }
    }
}
