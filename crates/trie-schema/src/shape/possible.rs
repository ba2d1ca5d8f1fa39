//! Satisfiability of goals. A goal may be recursive, as that of a tree; then only finite values count.

use super::{Engine, Goal, Refused, lock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use trie_core::work::over;

/// Values that must stand inside each other at most.
const DEEPEST: usize = 200;
/// Texts that are counted at most: more are as good as endless.
pub(super) const TEXTS: usize = 4096;

/// State of a satisfiability search. Results for goals on the way are cached unless they depend on a goal that is still
/// open.
#[derive(Default)]
pub(crate) struct Search {
    open: Vec<Arc<Goal>>,
    /// The outermost open goal that an answer hung on.
    low: usize,
    /// Goals that have no value, provided that the open goals have none.
    unsure: Vec<Arc<Goal>>,
    refused: Option<Refused>,
}

impl Search {
    pub(crate) fn new() -> Self {
        Self { low: usize::MAX, ..Self::default() }
    }

    pub(crate) fn refuse(&mut self, refused: Refused) {
        self.refused.get_or_insert(refused);
    }

    /// Returns whether all was made out.
    pub(crate) fn is_sure(&self) -> bool {
        self.refused.is_none() && over().is_none()
    }

    /// Returns the error that ended the search, if any.
    pub(crate) fn refused(self) -> Result<(), Refused> {
        self.refused.map_or(Ok(()), Err)
    }
}

impl Engine {
    /// Returns whether some value is of a goal.
    pub(crate) fn is_possible(&self, goal: &Arc<Goal>, search: &mut Search) -> bool {
        if let Some(known) = goal.known_possible() {
            return known;
        }
        if search.refused.is_some() {
            return false;
        }
        if let Some(at) = search.open.iter().position(|open| open == goal) {
            search.low = search.low.min(at);
            return false;
        }
        let deep = search.open.len();
        if deep >= DEEPEST {
            let why = format!("more than {DEEPEST} values must stand inside each other");
            search.refuse(Refused::TooLarge { at: "".into(), keyword: "required", why });
            return false;
        }
        let shapes = match self.shapes(goal) {
            Ok(shapes) => shapes,
            Err(refused) => {
                search.refuse(refused);
                return false;
            }
        };
        let is_scalar = shapes.null || shapes.is_true || shapes.is_false || shapes.listed.is_some();
        if is_scalar || !shapes.numbers.is_empty() || !shapes.texts.is_empty() {
            goal.set_possible(true);
            return true;
        }
        search.open.push(Arc::clone(goal));
        let (outer, unsure) = (std::mem::replace(&mut search.low, usize::MAX), search.unsure.len());
        let found = shapes.arrays.iter().any(|shape| self.array_begins(shape, search))
            || shapes.objects.iter().any(|shape| self.object_begins(shape, search));
        search.open.pop();
        let low = std::mem::replace(&mut search.low, outer);
        // What was found while there was no more time for it says nothing.
        if search.refused.is_some() || over().is_some() {
            return found;
        }
        if found {
            goal.set_possible(true);
            search.unsure.truncate(unsure);
        } else if low >= deep {
            goal.set_possible(false);
            search.unsure.drain(unsure..).for_each(|goal| goal.set_possible(false));
        } else {
            search.unsure.push(Arc::clone(goal));
            search.low = outer.min(low);
        }
        found
    }

    /// Returns whether an array may be completed from its beginning.
    pub(crate) fn array_begins(&self, shape: &super::array::ArrayShape, search: &mut Search) -> bool {
        Self::begins(&shape.possible, search, |search| self.array_may_complete(shape, &shape.start(), search))
    }

    /// Returns whether an object may be completed from its beginning.
    pub(crate) fn object_begins(&self, shape: &super::object::ObjectShape, search: &mut Search) -> bool {
        Self::begins(&shape.possible, search, |search| {
            self.may_complete(shape, &super::object::Members::default(), search)
        })
    }

    fn begins(known: &AtomicU8, search: &mut Search, find: impl FnOnce(&mut Search) -> bool) -> bool {
        match known.load(Ordering::Relaxed) {
            1 => return true,
            2 => return false,
            _ => {}
        }
        let found = find(search);
        if search.refused.is_none() && over().is_none() {
            if found {
                known.store(1, Ordering::Relaxed);
            } else if search.open.is_empty() {
                known.store(2, Ordering::Relaxed);
            }
        }
        found
    }

    /// Returns the goals of the items and members of a goal's values.
    #[allow(clippy::unused_self, reason = "beside `shapes`")]
    pub(crate) fn parts(&self, goal: &Goal) -> Vec<Arc<Goal>> {
        let Some(Ok(shapes)) = lock(&goal.shapes).clone() else { return Vec::new() };
        let mut parts = Vec::new();
        for array in &shapes.arrays {
            parts.extend(array.prefix.iter().cloned());
            parts.push(Arc::clone(&array.rest));
        }
        for object in &shapes.objects {
            parts.extend(object.names.iter().map(|named| Arc::clone(&named.goal)));
            parts.extend(object.classes.iter().map(|class| Arc::clone(&class.goal)));
        }
        parts
    }
}
