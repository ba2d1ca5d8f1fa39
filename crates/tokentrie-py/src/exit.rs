//! Threads that are still here when the interpreter ends: daemon threads inside a call of this module.
//!
//! Two things would end the process with a crash instead of its exit code:
//!
//! - Up to Python 3.13 a thread that asks for the GIL of an interpreter that ends is removed with `pthread_exit`, which
//!   unwinds its stack. Where Python code runs below a call of ours, that unwinding comes through our frames. [`items`]
//!   and [`called`] stop such a thread for ever, as Python 3.14 does and as pyo3 does where it takes the GIL itself.
//! - The C library destroys llama.cpp's tables at the end of the process, whoever uses them. So work without the GIL is
//!   counted ([`llama_callbacks::exit`]), and the end waits for it.

use llama_callbacks::exit::{NativeCall, Working as Counted, heed_forks, paused, wait_at_exit};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use std::cell::Cell;
use std::hint::black_box;
use std::thread::park;

/// Work without the GIL, from here until it is dropped. A thread that comes too late for the end stops for ever.
pub(crate) struct Working(Counted);

impl Working {
    pub(crate) fn begin() -> Self {
        Self(Counted::begin().unwrap_or_else(|| stop_for_ever()))
    }
}

/// Takes the GIL back in the middle of work without it. `None` where the interpreter has ended.
pub(crate) fn attached<T>(use_python: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // Waiting for the GIL may take for ever, and the end of the process must not wait for that.
    let held = |py: Python<'_>| {
        let _mark = ReleasedMark::set(false);
        use_python(py)
    };
    paused(|| Python::try_attach(held)).unwrap_or_else(|| stop_for_ever())
}

thread_local! {
    static IS_RELEASED: Cell<bool> = const { Cell::new(false) };
}

/// Mark of a thread that says whether it works without the GIL, until this is dropped.
pub(crate) struct ReleasedMark {
    before: bool,
}

impl ReleasedMark {
    pub(crate) fn set(is_released: bool) -> Self {
        Self { before: IS_RELEASED.replace(is_released) }
    }

    /// Returns whether this thread works without the GIL.
    pub(crate) fn is_set() -> bool {
        IS_RELEASED.get()
    }
}

impl Drop for ReleasedMark {
    fn drop(&mut self) {
        IS_RELEASED.set(self.before);
    }
}

/// As [`attached`], for callers that can only fail.
///
/// # Errors
/// `RuntimeError` where the interpreter has ended, and those of `use_python`.
pub(crate) fn attached_or_fail<T, E: From<PyErr>>(use_python: impl FnOnce(Python<'_>) -> Result<T, E>) -> Result<T, E> {
    attached(use_python).unwrap_or_else(|| Err(PyRuntimeError::new_err("the interpreter has ended").into()))
}

/// Makes the end of the process wait for work. Called once, when the module is imported.
pub(crate) fn register(py: Python<'_>) -> PyResult<()> {
    let wait = pyo3::wrap_pyfunction!(before_the_end, py)?;
    py.import("atexit")?.call_method1("register", (wait,))?;
    heed_forks();
    Ok(())
}

/// Runs while Python still does, when llama.cpp has made and registered its tables.
#[pyfunction]
fn before_the_end() {
    wait_at_exit(NativeCall::Everything);
}

fn stop_for_ever() -> ! {
    loop {
        park();
    }
}

/// Stops this thread for ever if Python unwinds its stack. Forgotten where the call came back.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        stop_for_ever();
    }
}

// As in `pyo3::ffi`, but declared to unwind, so that `Stop` is dropped when they do.
#[allow(clashing_extern_declarations, reason = "they differ in nothing but the ability to unwind")]
mod unwinding {
    use pyo3::ffi::PyObject;

    unsafe extern "C-unwind" {
        pub(super) fn PyObject_GetIter(object: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyIter_Next(iterator: *mut PyObject) -> *mut PyObject;
        pub(super) fn PyObject_Call(
            callable: *mut PyObject,
            arguments: *mut PyObject,
            keywords: *mut PyObject,
        ) -> *mut PyObject;
    }
}

// Called through pointers that the compiler does not see through: it takes both declarations of a function for one, and
// what pyo3 declares does not unwind.
type Unary = unsafe extern "C-unwind" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
type Ternary =
    unsafe extern "C-unwind" fn(*mut ffi::PyObject, *mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;
const GET_ITER: Unary = unwinding::PyObject_GetIter;
const NEXT: Unary = unwinding::PyIter_Next;
const CALL: Ternary = unwinding::PyObject_Call;

/// Iterates over a Python object that may run Python code for each item.
pub(crate) struct Items<'py>(Bound<'py, PyAny>);

/// The items of an iterable.
///
/// # Errors
/// Those of Python's `iter`.
pub(crate) fn items<'py>(iterable: &Bound<'py, PyAny>) -> PyResult<Items<'py>> {
    let stop = Stop;
    // SAFETY: the pointer is that of a live object, and `py` of the bound object shows that the GIL is held.
    let iterator = unsafe { black_box(GET_ITER)(iterable.as_ptr()) };
    std::mem::forget(stop);
    // SAFETY: Python gave a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(iterable.py(), iterator) }.map(Items)
}

impl<'py> Iterator for Items<'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    fn next(&mut self) -> Option<Self::Item> {
        let py = self.0.py();
        let stop = Stop;
        // SAFETY: the pointer is that of a live iterator, and the GIL is held.
        let item = unsafe { black_box(NEXT)(self.0.as_ptr()) };
        std::mem::forget(stop);
        // SAFETY: Python gave a new reference, or null.
        match unsafe { Bound::from_owned_ptr_or_opt(py, item) } {
            Some(item) => Some(Ok(item)),
            None => PyErr::take(py).map(Err),
        }
    }
}

/// Loads numpy, which this module loads when it needs it.
///
/// # Errors
/// It is not installed.
pub(crate) fn load_numpy(py: Python<'_>) -> PyResult<()> {
    static LOADED: PyOnceLock<()> = PyOnceLock::new();
    if LOADED.get(py).is_none() {
        module(py, "numpy")?;
        let _ = LOADED.set(py, ());
    }
    Ok(())
}

/// A module of Python; to load one for the first time runs Python code for long.
///
/// # Errors
/// Those of importing it.
pub(crate) fn module<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    // Another thread may be about to load it, which this waits for.
    let import = py.import("importlib")?.getattr("import_module")?;
    called(&import, &(name,).into_pyobject(py)?, None)
}

/// Calls something that may run Python code for long.
///
/// # Errors
/// What it raises.
pub(crate) fn called<'py>(
    callable: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords: *mut ffi::PyObject = keywords.map_or(std::ptr::null_mut(), Bound::as_ptr);
    let stop = Stop;
    // SAFETY: the pointers are those of live objects of the types that the call wants, or null where it may be, and the
    // GIL is held.
    let result = unsafe { black_box(CALL)(callable.as_ptr(), arguments.as_ptr(), keywords) };
    std::mem::forget(stop);
    // SAFETY: Python gave a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(callable.py(), result) }
}
