//! Several results of one call: `n=`.

use crate::call::ended;
use crate::convert::words::unsigned;
use crate::errors::{Class, Error, Result, warn, with_partial};
use pyo3::prelude::*;
use tokentrie::call::Call;

/// Result of a call: one, or a list if a number was requested.
#[derive(IntoPyObject)]
pub(crate) enum Several<T> {
    /// The result, if no number was requested.
    One(T),
    /// The requested number of results.
    All(Vec<T>),
}

impl<T> Several<T> {
    pub(crate) fn of(mut all: Vec<T>, is_list: bool) -> Self {
        match all.pop() {
            Some(only) if !is_list => Self::One(only),
            last => {
                all.extend(last);
                Self::All(all)
            }
        }
    }

    /// Returns the result, or an error that has it as `partial` if the call was stopped or a value was invalid.
    pub(crate) fn unless<'py>(
        self,
        py: Python<'py>,
        call: &Call,
        stopped: Option<usize>,
        refused: Option<Error>,
    ) -> Result<Self>
    where
        Self: IntoPyObject<'py>,
    {
        let stopped = stopped.map(|tokens| ended(call, &format!("after {tokens} generated tokens")));
        match stopped.or(refused) {
            Some(error) => Err(with_partial(py, error, self)),
            None => Ok(self),
        }
    }
}

/// More results of one call than that are a mistake.
const MOST_RESULTS: u32 = 1024;

/// Checks the number of generations.
///
/// # Errors
/// `OptionError` for none, and where a callback could not tell which it hears of.
pub(crate) fn several(n: Option<i64>, is_watched: bool) -> Result<u32> {
    let Some(n) = n else { return Ok(1) };
    if is_watched {
        let message = "n asks for several results, and on_step and streams hear of one: leave n out";
        return Err(Class::Option.error(message));
    }
    match unsigned("n", n)? {
        n @ 1..=MOST_RESULTS => Ok(n),
        n => Err(Class::Option.error(format!("n is {n}: it must be from 1 to {MOST_RESULTS}"))),
    }
}

/// Warns where all results are the same one.
///
/// # Errors
/// What the warning raises.
pub(crate) fn warn_of_same(py: Python<'_>, count: u32, mode: trie_core::Mode) -> Result<()> {
    if count > 1 && mode == trie_core::Mode::Greedy {
        warn(py, &format!("n={count} gives the same {count} times with mode=\"greedy\": use mode=\"sampled\""))?;
    }
    Ok(())
}
