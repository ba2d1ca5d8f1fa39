//! Rules that are a text and its limits.

/// Gives such a class what compares it, by text, and pickles it: it is made anew from both.
macro_rules! by_text {
    ($class:ident) => {
        #[pyo3::pymethods]
        impl $class {
            /// Limits: what making it may cost.
            #[getter]
            fn limits(&self) -> crate::limits::Limits {
                self.limits.into()
            }

            fn __eq__(&self, other: &pyo3::Bound<'_, pyo3::PyAny>) -> bool {
                other.cast::<Self>().is_ok_and(|other| self.text == other.get().text)
            }

            fn __hash__(&self) -> u64 {
                use std::hash::{DefaultHasher, Hash, Hasher};
                let mut hash = DefaultHasher::new();
                self.text.hash(&mut hash);
                hash.finish()
            }

            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::PyAny>, (String, crate::limits::Limits))> {
                let rule = slf.get();
                Ok((slf.get_type().getattr("_restore")?, (rule.text.clone(), rule.limits.into())))
            }

            /// What `__reduce__` took apart.
            #[staticmethod]
            fn _restore(
                py: pyo3::Python<'_>,
                text: String,
                limits: &pyo3::Bound<'_, crate::limits::Limits>,
            ) -> crate::errors::Result<pyo3::Py<Self>> {
                Ok(pyo3::Py::new(py, Self::new(py, text, Some(limits))?)?)
            }
        }
    };
}
pub(crate) use by_text;
