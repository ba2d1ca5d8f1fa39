//! A request, as data.

use super::calibration::Calibration;
use super::options::{Decide, Prior};
use super::question::Question;
use crate::constraint::{SpecError, SpecProblem};
use crate::json::fields::{Fields, array, wrong_type};
use crate::json::parse;
use crate::json::place::Place;
use crate::run::{CallOptions, call_options};
use serde_json::Value;

type Result<T> = std::result::Result<T, SpecError>;

/// States, and what is asked about each.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// At least one: text, JSON, or a conversation, an array of objects with roles.
    pub states: Vec<Value>,
    /// At least one.
    pub questions: Vec<Question>,
    /// How.
    pub options: Decide,
    /// What makes the probabilities honest.
    pub calibration: Option<Calibration>,
    /// Its time and its turn.
    pub call: CallOptions,
}

impl Request {
    /// Reads `{"state": ..., "questions": {"name": {"type": "choice", "options": [...]}}, ...}`, or several states with
    /// `"states": [...]`: docs/decisions.md.
    ///
    /// # Errors
    /// [`SpecError`] with the place.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let value = parse(json)?;
        let names: Vec<&str> =
            Decide::OPTIONS.iter().map(|option| option.name).chain(["state", "states", "questions"]).collect();
        let fields = Fields::of(&Place::ROOT, &value, &names)?;
        let states = match (fields.read("states", states)?, fields.get("state")) {
            (None, _) => vec![fields.need("state", state)?],
            (Some(states), None) => states,
            (Some(_), Some(_)) => {
                let reason = "one state and several: give one of both".to_owned();
                return Err(SpecError::new(&Place::ROOT.field("state"), SpecProblem::Value(reason)));
            }
        };
        let questions: Vec<Question> = fields.need("questions", |place, value| {
            let all = value.as_object().ok_or_else(|| wrong_type(place, "an object of questions", value))?;
            if all.is_empty() {
                return Err(SpecError::new(place, SpecProblem::Value("there is no question".to_owned())));
            }
            all.iter().map(|(name, question)| Question::read(&place.field(name), name, question)).collect()
        })?;
        let options = Decide::read(&fields)?;
        if options.prior == Prior::Batch && states.len() == 1 {
            let reason = "\"batch\" is the mean over several states, and this is one".to_owned();
            return Err(SpecError::new(&Place::ROOT.field("prior"), SpecProblem::Value(reason)));
        }
        let calibration = fields.read("calibration", Calibration::read)?;
        if let Some(calibration) = &calibration {
            calibration.check(&Place::ROOT.field("calibration").field("questions"), &questions, &options)?;
        }
        Ok(Self { states, questions, options, calibration, call: call_options(&fields)? })
    }
}

fn state(place: &Place<'_>, value: &Value) -> Result<Value> {
    match value {
        Value::String(_) | Value::Object(_) | Value::Array(_) => Ok(value.clone()),
        _ => Err(wrong_type(place, "a text, an object or an array", value)),
    }
}

fn states(place: &Place<'_>, value: &Value) -> Result<Vec<Value>> {
    let all = array(place, value)?;
    if all.is_empty() {
        return Err(SpecError::new(place, SpecProblem::Value("there is no state".to_owned())));
    }
    all.iter().enumerate().map(|(number, value)| state(&place.item(number), value)).collect()
}
