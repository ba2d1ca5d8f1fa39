//! Threads that are still here when the interpreter ends: daemon threads inside a call of this module.
//!
//! Two things would end the process with a crash instead of its exit code:
//!
//! - Up to Python 3.13 a thread that asks for the GIL of an interpreter that ends is removed with `pthread_exit`, which
//!   unwinds its stack. Where Python code runs below a call of ours, that unwinding comes through our frames. [`items`]
//!   and [`called`] stop such a thread for ever, as Python 3.14 does and as pyo3 does where it takes the GIL itself.
//! - The C library destroys llama.cpp's tables at the end of the process, whoever uses them. So work without the GIL is
//!   counted, and the end waits for it. Work that looks at [`is_ending`] gives up.

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use std::cell::Cell;
use std::ffi::c_int;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{park, sleep};
use std::time::{Duration, Instant};

/// Threads that work without the GIL.
static WORKING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many of those are this thread: work may call Python, which may call other work.
    static HERE: Cell<usize> = const { Cell::new(0) };
}

/// Whether the process ends: no work begins any more.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The longest that the end of the process waits for work that cannot be stopped.
const PATIENCE: Duration = Duration::from_secs(30);

/// Work without the GIL, from here until it is dropped.
pub(crate) struct Working(());

impl Working {
    pub(crate) fn begin() -> Self {
        count(1);
        Self(())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        discount(1);
    }
}

fn count(times: usize) {
    WORKING.fetch_add(times, Ordering::SeqCst);
    HERE.set(HERE.get() + times);
    if times > 0 && ENDING.load(Ordering::SeqCst) {
        discount(times);
        stop_for_ever();
    }
}

fn discount(times: usize) {
    HERE.set(HERE.get().saturating_sub(times));
    WORKING.fetch_sub(times, Ordering::SeqCst);
}

/// Whether the process ends and work should give up.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::Relaxed)
}

/// Takes the GIL back in the middle of work without it. `None` where the interpreter has ended.
pub(crate) fn attached<T>(use_python: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    // Waiting for the GIL may take for ever, and the end of the process must not wait for that.
    let here = HERE.get();
    discount(here);
    let result = Python::try_attach(use_python);
    count(here);
    result
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
    let os = py.import("os")?;
    if let Some(register) = os.getattr_opt("register_at_fork")? {
        let forget = [("after_in_child", pyo3::wrap_pyfunction!(forget_others, py)?)].into_py_dict(py)?;
        register.call((), Some(&forget))?;
    }
    Ok(())
}

/// A forked process has none of the other threads; the one that forks has the GIL.
#[pyfunction]
fn forget_others() {
    WORKING.store(0, Ordering::SeqCst);
}

/// Runs while Python still does: what the C library does at its end is done last registered first, and until now
/// llama.cpp has made and registered its tables.
#[pyfunction]
fn before_the_end() {
    // SAFETY: the handler is a function of this module, which is never unloaded, and it does not unwind.
    unsafe { atexit(wait_for_work) };
}

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
}

extern "C" fn wait_for_work() {
    ENDING.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    while WORKING.load(Ordering::SeqCst) > 0 && begun.elapsed() < PATIENCE {
        sleep(Duration::from_millis(1));
    }
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

/// Loads numpy, which this module loads when it needs it: that runs Python code for long, once.
///
/// # Errors
/// It is not installed.
pub(crate) fn load_numpy(py: Python<'_>) -> PyResult<()> {
    static LOADED: PyOnceLock<()> = PyOnceLock::new();
    if LOADED.get(py).is_none() {
        let import = py.import("builtins")?.getattr("__import__")?;
        called(&import, &("numpy",).into_pyobject(py)?, None)?;
        let _ = LOADED.set(py, ());
    }
    Ok(())
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
