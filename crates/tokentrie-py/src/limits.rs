//! Limits of one piece of work, from Python.

use crate::convert::pickled::pickled;
use crate::errors::{Class, Result};
use pyo3::prelude::*;

/// Limits on the work of making a rule. The defaults are meant for what strangers send to a server.
///
/// All three hold together; what meets one of them ends in a RuleError that says which. The same rule takes the same
/// steps everywhere, so a limit of steps does not depend on how busy a machine is. Ctrl-C ends the work at any time.
///
/// Args:
///     bytes: of what is made and of the memory in which it is made, about; 0 to 2**62.
///     steps: turns of loops, each of some ten to some hundred nanoseconds; 0 to 2**62.
///     seconds: processor time, of all threads that work for it together; from 0 up.
///
/// Raises:
///     OptionError: a number is out of range.
///
/// Example:
///     >>> small = tokentrie.Limits(seconds=1.0, steps=1_000_000)
///     >>> tokentrie.rules.Grammar('list : "a" | list "a" ;', limits=small).matches("aaa")
///     True
#[pyclass(frozen, get_all, module = "tokentrie")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// int: number of bytes.
    bytes: usize,
    /// int: number of steps.
    steps: u64,
    /// float: number of seconds.
    seconds: f64,
}

#[pymethods]
impl Limits {
    #[new]
    #[pyo3(signature = (*, bytes=268_435_456, steps=100_000_000, seconds=10.0))]
    fn new(bytes: u64, steps: u64, seconds: f64) -> Result<Self> {
        const MOST: u64 = 1 << 62;
        for (name, number) in [("bytes", bytes), ("steps", steps)] {
            if number > MOST {
                return Err(Class::Option.error(format!("{name} is {number}: it must be at most 2**62")));
            }
        }
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Class::Option.error(format!("seconds is {seconds}: it must be a number, from 0 up")));
        }
        Ok(Self { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), steps, seconds })
    }

    fn __repr__(&self) -> String {
        let Self { bytes, steps, seconds } = self;
        format!("Limits(bytes={bytes}, steps={steps}, seconds={seconds:?})")
    }
}

pickled!(Limits { bytes, steps, seconds });
