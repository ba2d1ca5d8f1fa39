//! `Model.probability`: how probable it is that any text of a constraint is written.

use crate::call::{CancelToken, begun};
use crate::convert::gil::{asked, made_in};
use crate::convert::options::Options;
use crate::convert::results::{fields, result};
use crate::errors::Result;
use crate::model::loaded::Model;
use crate::model::watch::Watch;
use crate::rule::of_user::UserRule;
use crate::spec::{as_object, built};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokentrie::call::{CallOptions, ProbabilitySettings, read_options};
use trie_core::work::Limits;

#[pymethods]
impl Model {
    /// Implements `Model.probability` of Python.
    #[pyo3(
        signature = (prompt, constraint, *, cancel=None, timeout=None, priority=0, **options),
        text_signature = "($self, prompt, constraint, **options)"
    )]
    fn _probability<'py>(
        &self,
        prompt: &Bound<'py, PyAny>,
        constraint: &Bound<'py, PyAny>,
        cancel: Option<&Bound<'_, CancelToken>>,
        timeout: Option<f64>,
        priority: i32,
        options: Option<&Bound<'_, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let py = prompt.py();
        let call = begun(cancel, CallOptions { timeout, priority })?;
        let Options { data, end_tokens, .. } =
            Options::read(py, "probability", options, &["end_tokens"], read_options)?;
        let mut settings: ProbabilitySettings = data;
        settings.end_tokens = end_tokens;
        let loaded = self.loaded(py)?;
        let ready = made_in(py, &call, || {
            let built = built("constraint", &as_object(constraint)?, &loaded.around())?;
            let prompt = crate::convert::prompt::read(prompt)?;
            Ok(asked(py, Limits::NONE, || settings.ready(prompt, built, &loaded.sets))??)
        })?;
        UserRule::raised()?;
        let found = self.run(py, ready, Watch::new(&call))?;
        Ok(result("Probability", fields(py, &found)?)?)
    }
}
