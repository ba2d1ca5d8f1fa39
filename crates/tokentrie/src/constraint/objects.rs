//! Reading of constraints: from untrusted input, or with references to objects of a host.

use super::{Object, Spec, SpecProblem};
use crate::json::{type_error, value_error};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use trie_rules::{Regular, RegularError};

thread_local! {
    /// Objects that the host gives beside its JSON text; `None` for untrusted input.
    static GIVEN: RefCell<Option<Vec<Spec>>> = const { RefCell::new(None) };
    /// Nesting depth of the specs being read.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The object that was read last, which may be data.
    static FOUND: Cell<Option<Spec>> = const { Cell::new(None) };
}

/// Reads with access to objects.
pub(super) fn with_objects<T>(objects: &[Spec], read: impl FnOnce() -> T) -> T {
    struct RestoreGuard(Option<Vec<Spec>>);

    impl Drop for RestoreGuard {
        fn drop(&mut self) {
            GIVEN.set(self.0.take());
        }
    }

    let _restored = RestoreGuard(GIVEN.replace(Some(objects.to_vec())));
    read()
}

/// Reads one more spec inside those that are being read; `None` where they are too many.
pub(super) fn deeper<T>(most: usize, read: impl FnOnce() -> T) -> Option<T> {
    struct DepthGuard;

    impl Drop for DepthGuard {
        fn drop(&mut self) {
            DEPTH.set(DEPTH.get() - 1);
        }
    }

    if DEPTH.get() >= most {
        return None;
    }
    DEPTH.set(DEPTH.get() + 1);
    let _left = DepthGuard;
    Some(read())
}

/// Returns whether objects stand beside the text.
pub(crate) fn are_given() -> bool {
    GIVEN.with_borrow(Option::is_some)
}

/// Returns whether values are checked that making a rule would refuse: a host makes it at once.
pub(super) fn are_checked() -> bool {
    !are_given()
}

/// Returns the problem of a rule that cannot be built: an error in the text for untrusted input, an error of the rule
/// for a host.
pub(super) fn refusal(error: RegularError) -> SpecProblem {
    if are_checked() { SpecProblem::Value(error.to_string()) } else { error.into() }
}

/// Makes a rule to see whether it can be made, unless its maker will.
///
/// # Errors
/// Why it cannot be made.
pub(super) fn check<E: Error>(make: impl FnOnce() -> Result<Regular, RegularError>) -> Result<(), E> {
    if are_checked() {
        make().map_err(|error| value_error(refusal(error)))?;
    }
    Ok(())
}

/// Reads the number of an object, which [`take_found`] then gives: the variant of an enum can hold no other variant.
pub(super) fn read_object<'de, D: Deserializer<'de>>(from: D) -> Result<Object, D::Error> {
    let number = Value::deserialize(from)?;
    let index = number.as_u64().and_then(|number| usize::try_from(number).ok());
    let found = GIVEN.with_borrow(|given| given.as_ref()?.get(index?).cloned());
    let found = found.ok_or_else(|| type_error("the number of an object", &number))?;
    FOUND.set(Some(found));
    Ok(Object::Spans(Arc::new([])))
}

/// Returns the object whose number was read last.
pub(super) fn take_found() -> Option<Spec> {
    FOUND.take()
}
