//! What the calls for one answer took, and what went wrong in them: from one `failure` of a thread to the next.

use super::error::WasmError;
use std::cell::RefCell;
use trie_core::Problem;

/// Fuel of each call that does not count: what a rule needs that looks at its state and nothing else.
const FREE: u64 = 256;

#[derive(Default)]
pub(super) struct Question {
    /// Of which rule it is.
    rule: usize,
    fuel: u64,
    failed: Option<Problem>,
}

thread_local! {
    static ASKED: RefCell<Question> = RefCell::default();
}

impl Question {
    /// An answer of a rule and the fuel that it took; nothing where one has failed that nobody heard of yet.
    pub(super) fn answered<T>(
        rule: usize,
        most: u64,
        answer: impl FnOnce() -> Result<(T, u64), WasmError>,
    ) -> Option<T> {
        let open = ASKED.with_borrow_mut(|asked| {
            if asked.rule != rule {
                *asked = Self { rule, ..Self::default() };
            }
            asked.failed.is_none()
        });
        let found = open.then(answer)?;
        ASKED.with_borrow_mut(|asked| {
            let found = found.and_then(|(answer, fuel)| {
                asked.fuel += fuel.saturating_sub(FREE);
                if asked.fuel > most { Err(WasmError::Slow { fuel: most }) } else { Ok(answer) }
            });
            found.map_err(|error| asked.failed = Some(Problem::new(error))).ok()
        })
    }

    pub(super) fn failing(rule: usize) -> bool {
        ASKED.with_borrow(|asked| asked.rule == rule && asked.failed.is_some())
    }

    /// What went wrong. The next question begins anew.
    pub(super) fn end(rule: usize) -> Option<Problem> {
        ASKED.with_borrow_mut(|asked| if asked.rule == rule { std::mem::take(asked).failed } else { None })
    }
}
