//! Objects inside objects: reading them takes stack, so they are counted.

use crate::errors::{Class, Result};
use std::cell::Cell;
use tokentrie::constraint::{MOST_DEPTH, SpecProblem};

thread_local! {
    /// Objects in objects that are being read.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, an object inside another is read.
pub(crate) struct Inside;

impl Inside {
    /// # Errors
    /// Objects that are nested deeper than specs may be: reading them would end the stack.
    pub(crate) fn one_more() -> Result<Self> {
        let depth = DEPTH.get();
        if depth > MOST_DEPTH {
            return Err(Class::Option.error(SpecProblem::TooDeep { most: MOST_DEPTH }.to_string()));
        }
        DEPTH.set(depth + 1);
        Ok(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}
