//! Results that can be pickled, copied and compared: by their fields.

/// Gives a class `__reduce__`, `_restore`, `__eq__` and `__hash__` over all of its fields. Its `PartialEq` decides what
/// is equal; every field goes to Python and comes back.
macro_rules! pickled {
    ($class:ident { $($field:ident),+ $(,)? }) => {
        impl $class {
            /// All fields by their names, in their order.
            fn fields<'py>(&self, py: pyo3::Python<'py>) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                let fields = pyo3::types::PyDict::new(py);
                $(fields.set_item(pyo3::intern!(py, stringify!($field)), self.$field.clone())?;)+
                Ok(fields)
            }
        }

        #[pyo3::pymethods]
        impl $class {
            fn __reduce__<'py>(
                slf: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::PyAny>, (pyo3::Bound<'py, pyo3::types::PyDict>,))> {
                let restore = slf.get_type().getattr(pyo3::intern!(slf.py(), "_restore"))?;
                Ok((restore, (slf.get().fields(slf.py())?,)))
            }

            /// Restores the state from `__reduce__`.
            #[staticmethod]
            fn _restore(state: &pyo3::Bound<'_, pyo3::types::PyDict>) -> pyo3::PyResult<Self> {
                Ok(Self { $($field: state.as_any().get_item(stringify!($field))?.extract()?),+ })
            }

            fn __eq__(slf: &pyo3::Bound<'_, Self>, other: &pyo3::Bound<'_, pyo3::PyAny>) -> bool {
                other.cast::<Self>().is_ok_and(|other| slf.get() == other.get())
            }

            // What holds lists is not a key of a dict.
            #[classattr]
            const __hash__: Option<pyo3::Py<pyo3::PyAny>> = None;
        }
    };
}
pub(crate) use pickled;
