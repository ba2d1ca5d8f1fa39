//! Numbers with fractions.

use crate::convert::gil::asked;
use crate::convert::ids::{shown, type_name};
use crate::errors::{Class, Result};
use crate::exit::module;
use crate::rule::Rule;
use crate::rule::regular::{hash_of, value_of};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};
use tokentrie::spec::NumberSpec;
use trie_core::work::Limits;
use trie_rules::{NumberBound, Value};

/// Numbers as JSON writes them: "-1.5", "2e10", "0". Its values are float. Compares by its settings; can be pickled.
///
/// With bounds they are written without exponents and without "-0".
///
/// Args:
///     lo, hi: the smallest and the largest, both included: int, float or decimal.Decimal, to the last digit that is
///         shown of it. None: no bound.
///     integer_digits: the most digits before the point, at least 1. None: 20, or as many as a bound has.
///     fraction_digits: the most after it; 0 for numbers without a point. None: 17, or as many as a bound has.
///     exponent_digits: the most of the exponent; 0 for numbers without one. None: 2, or 0 with bounds.
///
/// Raises:
///     RuleError: no number is in the range, or none with so few digits; no digit may come before the point; an
///         exponent with bounds.
///     OptionError: a bound is not finite, or beyond 1e400.
///
/// Example:
///     >>> price = tokentrie.Number(0, 99.5, fraction_digits=2)
///     >>> (price.matches("12.50"), price.matches("12.505"), price.matches("99.51"), price.parse("12.50"))
///     (True, False, False, 12.5)
///     >>> tokentrie.Number(integer_digits=4, fraction_digits=2, exponent_digits=0).matches("-12.5")
///     True
#[pyclass(frozen, extends = Rule, module = "tokentrie")]
pub(crate) struct Number {
    spec: NumberSpec,
    lo: Option<Py<PyAny>>,
    hi: Option<Py<PyAny>>,
}

/// A bound as its digits.
fn bound(name: &str, given: Option<&Bound<'_, PyAny>>) -> Result<Option<NumberBound>> {
    let Some(given) = given else { return Ok(None) };
    let py = given.py();
    let wrong = || -> crate::errors::Error {
        let (shown, name_of) = (shown(given), type_name(given));
        let message =
            format!("{name} must be an int, a float, a decimal.Decimal or None, not {shown} of type {name_of}");
        PyTypeError::new_err(message).into()
    };
    // A float of numpy says which number it is by repr as Python's own does; other numbers are floats first.
    let text = if given.is_instance_of::<PyInt>() {
        given.call_method1("__format__", ("d",))?
    } else if given.is_instance(&module(py, "decimal")?.getattr("Decimal")?)? {
        given.str()?.into_any()
    } else if given.is_instance_of::<PyString>() {
        return Err(wrong());
    } else {
        PyFloat::new(py, given.extract().map_err(|_| wrong())?).repr()?.into_any()
    };
    let text: String = text.extract()?;
    let read = NumberBound::read(&text, false);
    read.map(Some).map_err(|_| Class::Option.error(format!("{name} is {text}: it must be finite, and at most 1e400")))
}

impl Number {
    pub(crate) fn spec(&self) -> &NumberSpec {
        &self.spec
    }
}

/// What makes it again: bounds and digits.
type Parts = (Option<Py<PyAny>>, Option<Py<PyAny>>, [u32; 3]);

#[pymethods]
impl Number {
    #[new]
    #[pyo3(signature = (lo=None, hi=None, *, integer_digits=None, fraction_digits=None, exponent_digits=None))]
    fn new(
        py: Python<'_>,
        lo: Option<Bound<'_, PyAny>>,
        hi: Option<Bound<'_, PyAny>>,
        integer_digits: Option<u32>,
        fraction_digits: Option<u32>,
        exponent_digits: Option<u32>,
    ) -> Result<PyClassInitializer<Self>> {
        let spec = NumberSpec::between(bound("lo", lo.as_ref())?, bound("hi", hi.as_ref())?);
        let spec = spec.digits(integer_digits, fraction_digits, exponent_digits);
        let rule = asked(py, Limits::default(), || spec.rule())??;
        let made = Self { spec, lo: lo.map(Bound::unbind), hi: hi.map(Bound::unbind) };
        Ok(PyClassInitializer::from(Rule::of_regular(rule)).add_subclass(made))
    }

    /// int | float | decimal.Decimal | None: the smallest.
    #[getter]
    fn lo(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.lo.as_ref().map(|bound| bound.clone_ref(py))
    }

    /// int | float | decimal.Decimal | None: the largest.
    #[getter]
    fn hi(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.hi.as_ref().map(|bound| bound.clone_ref(py))
    }

    /// int: the most digits before the point.
    #[getter]
    fn integer_digits(&self) -> u32 {
        self.spec.options().integer_digits
    }

    /// int: the most digits after it.
    #[getter]
    fn fraction_digits(&self) -> u32 {
        self.spec.options().fraction_digits
    }

    /// int: the most digits of the exponent.
    #[getter]
    fn exponent_digits(&self) -> u32 {
        self.spec.options().exponent_digits
    }

    /// The number that a text stands for.
    ///
    /// Args:
    ///     text: str, one of the rule's texts.
    ///
    /// Returns:
    ///     float: the nearest one.
    ///
    /// Raises:
    ///     RuleError: the text is none of the rule's.
    ///
    /// Example:
    ///     >>> tokentrie.Number().parse("2e3")
    ///     2000.0
    fn parse(slf: &Bound<'_, Self>, text: &Bound<'_, PyString>) -> Result<f64> {
        match value_of(slf.as_super(), text)? {
            Value::Number(number) => Ok(number),
            _ => Ok(text.to_str()?.parse().unwrap_or(f64::NAN)),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.spec == other.get().spec)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.spec)
    }

    fn __repr__(&self) -> String {
        let [integer, fraction, exponent] = self.digits();
        let shown = |bound: Option<&NumberBound>| bound.map_or_else(|| "None".to_owned(), ToString::to_string);
        let range = match (&self.spec.min, &self.spec.max) {
            (None, None) => String::new(),
            (lo, hi) => format!("{}, {}, ", shown(lo.as_ref()), shown(hi.as_ref())),
        };
        format!(
            "tokentrie.Number({range}integer_digits={integer}, fraction_digits={fraction}, exponent_digits={exponent})"
        )
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        let (py, it) = (slf.py(), slf.get());
        Ok((slf.get_type().getattr("_restore")?, (it.lo(py), it.hi(py), it.digits())))
    }

    /// What `__reduce__` took apart.
    #[staticmethod]
    fn _restore(
        py: Python<'_>,
        lo: Option<Bound<'_, PyAny>>,
        hi: Option<Bound<'_, PyAny>>,
        digits: [u32; 3],
    ) -> Result<Py<Self>> {
        let [integer, fraction, exponent] = digits.map(Some);
        Ok(Py::new(py, Self::new(py, lo, hi, integer, fraction, exponent)?)?)
    }
}

impl Number {
    fn digits(&self) -> [u32; 3] {
        [self.integer_digits(), self.fraction_digits(), self.exponent_digits()]
    }
}
