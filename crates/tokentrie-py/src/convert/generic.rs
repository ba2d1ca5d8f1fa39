//! Classes with a type in brackets, for annotations: `Generated[int]`.

/// Lets a class be written with the type of what it gives. Type checkers read it; nothing else does.
macro_rules! generic {
    ($($class:ident),+) => {$(
        #[pymethods]
        impl $class {
            #[classmethod]
            fn __class_getitem__<'py>(
                cls: &Bound<'py, pyo3::types::PyType>,
                of: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::exit::module(cls.py(), "types")?.getattr("GenericAlias")?.call1((cls, of))
            }
        }
    )+};
}

pub(crate) use generic;
